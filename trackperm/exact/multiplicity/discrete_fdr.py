"""FDR control for independent discrete tests: the adaptive step-down procedure AHSD.

Doehler, Durand and Roquain (2018) bound the FDR of a step-down procedure with critical values
tau_1 <= ... <= tau_m. With independent p-values that have the distribution functions F_i under their nulls,

    FDR <= max_k (1/k) sum_i F_i(tau_k) / (1 - F_i(tau_k)),

where only the m - k + 1 greatest terms of each sum are needed. AHSD uses the greatest critical values that
keep this bound at alpha. A p-value is below tau_k exactly when the k-th sum at it is below k alpha, so
critical values need not be listed. F_i may be any upper bound of the distribution function.

The same authors' HSD keeps all terms of the sums and rejects no more than AHSD; their step-up procedures have
no adjusted p-values, because their rejections need not grow with alpha.

Independence holds for disjoint slices of a test set and for different test sets. Statistics of one pair of
systems on the same examples are not independent, nor are pairs that share a system: nothing is proven for
them.

References
----------
S. Doehler, G. Durand and E. Roquain (2018), "New FDR bounds for discrete and heterogeneous tests", Electronic
Journal of Statistics 12.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from trackperm.errors import InputError
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.multiplicity.attainable import TIE, AttainablePvalues
from trackperm.exact.multiplicity.family import Correction, checked_pvalues

AHSD = Correction(
    "ahsd", "adaptive discrete step-down (AHSD)", "FDR", "independence", "Doehler, Durand and Roquain (2018)"
)
"""Name of the procedure, and what it controls."""

CELLS = 2**22
"""Largest number of values F_i(p_(k)) in memory: 32 MB."""


def adjust_discrete(pvalues: npt.ArrayLike, attainable: Sequence[AttainablePvalues]) -> FloatArray:
    """Return p-values adjusted by AHSD; shape (m,).

    Rejecting the hypotheses whose adjusted p-value is below alpha keeps the FDR at most alpha, in O(m^2)
    operations.

    Parameters
    ----------
    pvalues : array_like of float, shape (m,)
        P-values of all hypotheses, which have to be independent; the upper end of one that is known within
        bounds.
    attainable : sequence of AttainablePvalues, length m
        Attainable p-values of each test.

    Raises
    ------
    InputError
        If a p-value is out of range or not attainable, or the lengths differ.
    InputTypeError
        If p-values are not numbers.

    Examples
    --------
    Two tests have 6 discordant examples, and one has 2, too few for significance:

    >>> six = AttainablePvalues.listed([1 / 32, 7 / 32, 22 / 32, 1])
    >>> two = AttainablePvalues.listed([1 / 2, 1])
    >>> adjust_discrete([1 / 32, 1 / 32, 1 / 2], [six, six, two]).round(3).tolist()
    [0.065, 0.065, 0.333]
    """
    values = _checked_family(pvalues, attainable)
    if not values.size:
        return values
    order = np.argsort(values, kind="stable")
    bounds = _sums(values[order], attainable) / np.arange(1, values.size + 1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(bounds), 1.0)
    return adjusted


def _checked_family(pvalues: npt.ArrayLike, attainable: Sequence[AttainablePvalues]) -> FloatArray:
    values = checked_pvalues(pvalues)
    if len(attainable) != values.size:
        raise InputError(
            f"{values.size} p-values and attainable ones of {len(attainable)} tests; expected one for each"
        )
    least = np.array([law.smallest for law in attainable])
    below = np.flatnonzero(values < least * (1.0 - TIE))
    if below.size:
        raise InputError(
            f"the p-value at index {below[0]} is {values[below[0]]}, below the smallest attainable one, "
            f"{least[below[0]]}"
        )
    return values


def _sums(ascending: FloatArray, attainable: Sequence[AttainablePvalues]) -> FloatArray:
    """Return the sum of the m - k + 1 greatest F_i / (1 - F_i) at each p_(k)."""
    sums = np.empty(ascending.size)
    n_rows = max(CELLS // len(attainable), 1)
    for start in range(0, ascending.size, n_rows):
        levels = ascending[start : start + n_rows]
        terms = np.stack([law.cdf(levels) for law in attainable], axis=1)
        with np.errstate(divide="ignore"):
            terms /= 1.0 - terms
        for row, k in zip(terms, range(start, start + levels.size), strict=True):
            row.partition(k)  # the k least come first
            row[:k] = 0.0
        sums[start : start + levels.size] = terms.sum(axis=1)
    return sums
