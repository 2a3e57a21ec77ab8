"""Adjusted p-values that depend on the p-values only.

An adjusted p-value is the lowest level at which its hypothesis would be rejected: one below alpha is rejected
at alpha. Every rule multiplies sorted p-values by constants and accumulates extremes, so it works on
logarithms as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.multiplicity.family import (
    LINEAR,
    LOG10,
    Correction,
    Scale,
    checked_log10_pvalues,
    checked_pvalues,
)
from trackperm.exact.options import require_choice


@dataclass(frozen=True)
class Adjustment(Correction):
    """Correction that depends on the p-values of a family only."""

    _adjusted: Callable[[FloatArray, Scale], FloatArray] = field(repr=False)

    def of_sorted(self, ascending: FloatArray, scale: Scale) -> FloatArray:
        """Return adjusted p-values of sorted ones, on the same scale."""
        return scale.capped(self._adjusted(ascending, scale)) if ascending.size else ascending


def adjust(pvalues: npt.ArrayLike, method: str = "holm") -> FloatArray:
    """Return adjusted p-values, in the order of `pvalues`; shape (m,).

    Parameters
    ----------
    pvalues : array_like of float, shape (m,)
        P-values of all hypotheses of the family; upper bounds if they are only known within bounds.
    method : str
        Key of ADJUSTMENTS.

    Raises
    ------
    InputError
        If a p-value is NaN or outside [0, 1], or the method is unknown.
    InputTypeError
        If p-values are not numbers.

    Examples
    --------
    >>> adjust([0.01, 0.04, 0.03], "holm").tolist()
    [0.03, 0.06, 0.06]
    """
    return _in_order(checked_pvalues(pvalues), adjustment(method), LINEAR)


def adjust_log10(log10_pvalues: npt.ArrayLike, method: str = "holm") -> FloatArray:
    """Return decimal logarithms of adjusted p-values, which may be below the range of floats; shape (m,).

    Arguments and errors are those of :func:`adjust`, with the decimal logarithms of the p-values.

    Examples
    --------
    >>> adjust_log10([-400.0, -1.0], "bonferroni").round(3).tolist()
    [-399.699, -0.699]
    """
    return _in_order(checked_log10_pvalues(log10_pvalues), adjustment(method), LOG10)


def adjustment(method: str) -> Adjustment:
    """Return the adjustment with a name; raise InputError if it is unknown."""
    require_choice("method", method, ADJUSTMENTS)
    return ADJUSTMENTS[method]


def _in_order(values: FloatArray, rule: Adjustment, scale: Scale) -> FloatArray:
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    adjusted[order] = rule.of_sorted(values[order], scale)
    return adjusted


def _bonferroni(ascending: FloatArray, scale: Scale) -> FloatArray:
    """Return m p_i. Controls the FWER under any dependence, by the union bound."""
    return scale.times(ascending, ascending.size)


def _holm(ascending: FloatArray, scale: Scale) -> FloatArray:
    """Return max_{j <= i} (m - j + 1) p_(j). Controls the FWER under any dependence.

    It is the closure of Bonferroni's test of each intersection of hypotheses.
    """
    adjusted: FloatArray = np.maximum.accumulate(scale.times(ascending, np.arange(ascending.size, 0, -1)))
    return adjusted


def _hommel(ascending: FloatArray, scale: Scale) -> FloatArray:
    """Return the greatest of Simes' p-values of the sets that contain i.

    Controls the FWER if Simes' inequality holds, such as under independence and positive dependence (PRDS).

    With s_k Simes' p-value of the k greatest p-values, which falls with k, the closed test at level a rejects
    i exactly when h p_i <= a for h = #{k: s_k > a} (Meijer, Krebs and Goeman 2019). The lowest such level is
    min_k max(s_{k+1}, k p_i), with s_{m+1} = 0: the first falls with k, the second rises, and the minimum
    lies where they cross.
    """
    m = ascending.size
    ranks = np.arange(1, m + 1)
    simes = np.array([scale.times(ascending[m - k :], k / ranks[:k]).min() for k in range(1, m + 1)])
    # No p-value, and no product with one, is below the least, which therefore replaces s_{m+1} = 0.
    beyond = np.append(simes[1:], ascending[0])
    # beyond[k - 1] = s_{k+1}, and k p_i >= s_{k+1} from the crossing on.
    crossing = m - np.searchsorted(scale.times(beyond, 1.0 / ranks)[::-1], ascending, side="right")
    after = np.minimum(crossing, m - 1)
    before = np.maximum(crossing - 1, 0)
    adjusted: FloatArray = np.minimum(
        np.maximum(beyond[after], scale.times(ascending, after + 1)),
        np.maximum(beyond[before], scale.times(ascending, before + 1)),
    )
    return adjusted


def _benjamini_hochberg(ascending: FloatArray, scale: Scale) -> FloatArray:
    """Return min_{j >= i} m p_(j) / j. Controls the FDR under independence and positive dependence (PRDS)."""
    m = ascending.size
    scaled = scale.times(ascending, m / np.arange(1, m + 1))
    adjusted: FloatArray = np.minimum.accumulate(scaled[::-1])[::-1]
    return adjusted


def _benjamini_yekutieli(ascending: FloatArray, scale: Scale) -> FloatArray:
    """Return Benjamini and Hochberg's times 1 + 1/2 + ... + 1/m. Controls the FDR under any dependence."""
    harmonic = float((1.0 / np.arange(1, ascending.size + 1)).sum())
    return scale.times(_benjamini_hochberg(ascending, scale), harmonic)


ADJUSTMENTS: Mapping[str, Adjustment] = MappingProxyType(
    {
        rule.name: rule
        for rule in (
            Adjustment("holm", "Holm", "FWER", "any dependence", "Holm (1979)", _holm),
            Adjustment(
                "hommel",
                "Hommel",
                "FWER",
                "independence or positive dependence (PRDS)",
                "Hommel (1988); Benjamini and Yekutieli (2001), Theorem 1.2",
                _hommel,
            ),
            Adjustment("bonferroni", "Bonferroni", "FWER", "any dependence", "Dunn (1961)", _bonferroni),
            Adjustment(
                "bh",
                "Benjamini-Hochberg",
                "FDR",
                "independence or positive dependence (PRDS)",
                "Benjamini and Hochberg (1995); Benjamini and Yekutieli (2001), Theorem 1.2",
                _benjamini_hochberg,
            ),
            Adjustment(
                "by",
                "Benjamini-Yekutieli",
                "FDR",
                "any dependence",
                "Benjamini and Yekutieli (2001), Theorem 1.3",
                _benjamini_yekutieli,
            ),
        )
    }
)
"""Adjustments by name. The dependence among p-values of pairs of systems is not known to be positive, so
leaderboards need one that is valid under any dependence."""
