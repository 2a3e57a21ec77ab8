"""FDR procedures for independent discrete tests: Doehler, Durand and Roquain (2018), HSU, HSD, AHSU, AHSD.

With independent p-values of distribution functions F_i under their nulls, and critical values
tau_1 <= ... <= tau_m, their bounds on the FDR are

    step-up:    max_k (1/k) sum_i F_i(tau_k) / (1 - F_i(tau_m)),
    step-down:  max_k (1/k) sum_i F_i(tau_k) / (1 - F_i(tau_k)),

and for both only the m - k + 1 greatest terms of each sum are needed. Each procedure takes the greatest
critical values that keep its bound at alpha: with all terms (HSU, HSD) or with those that are needed (AHSU,
AHSD, called adaptive). In the step-up procedures tau_m is that of HSU. A p-value is below tau_k exactly when
the k-th sum at it is below k alpha, so that critical values need not be listed. F_i may be any upper bound.

Independence is needed, as of disjoint slices of a test set or of different test sets. Statistics of one pair
of systems on the same examples are not independent, nor are pairs that share a system: there nothing is
proven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from trackperm.choices import require_choice
from trackperm.errors import InputError
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.multiplicity.attainable import TIE, AttainablePvalues
from trackperm.exact.multiplicity.family import Correction, checked_level, checked_pvalues

BoolArray = npt.NDArray[np.bool_]

CELLS = 2**22
"""Values F_i(p_(k)) that are held at once."""

PARTS, ROUNDS = 256, 8
"""The search for tau_m divides an interval into so many parts, so many times: down to 2^-64."""


@dataclass(frozen=True)
class DiscreteProcedure(Correction):
    """A procedure that needs the attainable p-values of each test.

    Attributes
    ----------
    step_up : bool
        From the greatest p-value down; such a procedure has no adjusted p-values, for its rejections need not
        grow with alpha.
    adaptive : bool
        Whether sums have only the m - k + 1 greatest terms. It rejects at least as many, and takes O(m^2)
        instead of O(m log m) operations.
    """

    step_up: bool
    adaptive: bool


DISCRETE_PROCEDURES: Mapping[str, DiscreteProcedure] = MappingProxyType(
    {
        name: DiscreteProcedure(
            name,
            title,
            "FDR",
            "independence",
            "Doehler, Durand and Roquain (2018)",
            step_up=name.endswith("su"),
            adaptive=name.startswith("a"),
        )
        for name, title in (
            ("hsd", "discrete step-down (HSD)"),
            ("hsu", "discrete step-up (HSU)"),
            ("ahsd", "adaptive discrete step-down (AHSD)"),
            ("ahsu", "adaptive discrete step-up (AHSU)"),
        )
    }
)


def reject_discrete(
    pvalues: npt.ArrayLike,
    attainable: Sequence[AttainablePvalues],
    alpha: float = 0.05,
    procedure: str = "hsd",
) -> BoolArray:
    """Return which hypotheses are rejected at `alpha`; shape (m,).

    Parameters
    ----------
    pvalues : array_like of float, shape (m,)
        The p-values of all hypotheses, which have to be independent; of one that is known within bounds, the
        upper end.
    attainable : sequence of AttainablePvalues, length m
        What each could have been.
    alpha : float
        The FDR is at most `alpha`.
    procedure : {'hsd', 'hsu', 'ahsd', 'ahsu'}
        A key of DISCRETE_PROCEDURES, chosen before the p-values are seen.

    Raises
    ------
    InputError
        If p-values are not a family, `attainable` has not one entry for each, or an argument is unknown.
    InputTypeError
        If p-values are not numbers.

    Examples
    --------
    Two tests on 6 and one on 2 discordant examples, of which the last could not have come out significant:

    >>> six = AttainablePvalues.listed([1 / 32, 7 / 32, 22 / 32, 1])
    >>> two = AttainablePvalues.listed([1 / 2, 1])
    >>> reject_discrete([1 / 32, 1 / 32, 1 / 2], [six, six, two], alpha=0.07).tolist()
    [True, True, False]
    """
    rule = _procedure(procedure)
    values, alpha = _checked_family(pvalues, attainable), checked_level(alpha)
    if not values.size:
        return np.zeros(0, dtype=np.bool_)
    if not rule.step_up:
        return _step_down(values, attainable, rule.adaptive) < alpha
    highest = _last_critical_value(attainable, alpha)
    denominators = np.array([1.0 - float(law.cdf(highest)) for law in attainable])
    ascending = np.sort(values)
    ascending = ascending[ascending <= highest]
    sums = _sums(ascending, attainable, denominators, rule.adaptive)
    passed = np.flatnonzero(sums < alpha * np.arange(1, ascending.size + 1))
    return values <= ascending[passed[-1]] if passed.size else np.zeros(values.shape, dtype=np.bool_)


def adjust_discrete(
    pvalues: npt.ArrayLike, attainable: Sequence[AttainablePvalues], procedure: str = "hsd"
) -> FloatArray:
    """Return adjusted p-values of a step-down procedure; shape (m,).

    The hypotheses whose adjusted p-value is below alpha are those that :func:`reject_discrete` rejects.

    Parameters
    ----------
    pvalues, attainable : array_like and sequence
        As in :func:`reject_discrete`.
    procedure : {'hsd', 'ahsd'}
        A step-down procedure.

    Raises
    ------
    InputError
        As in :func:`reject_discrete`, and for a step-up procedure, which has none.
    InputTypeError
        If p-values are not numbers.
    """
    rule = _procedure(procedure)
    if rule.step_up:
        raise InputError(
            f"`{procedure}` has no adjusted p-values: its rejections need not grow with alpha",
            hint="ask for its rejections at one alpha, or use the step-down procedure.",
        )
    values = _checked_family(pvalues, attainable)
    return _step_down(values, attainable, rule.adaptive) if values.size else values


def _procedure(name: str) -> DiscreteProcedure:
    require_choice("procedure", name, DISCRETE_PROCEDURES)
    return DISCRETE_PROCEDURES[name]


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


def _step_down(values: FloatArray, attainable: Sequence[AttainablePvalues], adaptive: bool) -> FloatArray:
    """Return max_{j <= k} of (1/j) sum_i F_i(p_(j)) / (1 - F_i(p_(j)))."""
    order = np.argsort(values, kind="stable")
    sums = _sums(values[order], attainable, None, adaptive)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(sums / np.arange(1, values.size + 1)), 1.0)
    return adjusted


def _sums(
    ascending: FloatArray,
    attainable: Sequence[AttainablePvalues],
    denominators: FloatArray | None,
    adaptive: bool,
) -> FloatArray:
    """Return the sum over tests at p_(1), p_(2), ..., of F_i / `denominators`, or of F_i / (1 - F_i)."""
    m = len(attainable)
    sums = np.empty(ascending.size)
    n_rows = max(CELLS // m, 1)
    for start in range(0, ascending.size, n_rows):
        levels = ascending[start : start + n_rows]
        terms = np.stack([law.cdf(levels) for law in attainable], axis=1)
        with np.errstate(divide="ignore"):
            terms /= 1.0 - terms if denominators is None else denominators
        if adaptive:
            for row, k in zip(terms, range(start, start + levels.size), strict=True):
                row.partition(k)  # the k least come first
                row[:k] = 0.0
        sums[start : start + levels.size] = terms.sum(axis=1)
    return sums


def _last_critical_value(attainable: Sequence[AttainablePvalues], alpha: float) -> float:
    """Return tau_m, the greatest t with sum_i F_i(t) / (1 - F_i(t)) <= alpha m, or a float just below."""
    low, high = 0.0, 1.0
    for _ in range(ROUNDS):
        levels = np.linspace(low, high, PARTS + 1)
        # The sum is infinite at 1, and grows with t.
        last = (
            int(np.searchsorted(_sums(levels, attainable, None, False), alpha * len(attainable), "right")) - 1
        )
        low, high = float(levels[last]), float(levels[last + 1])
    return low
