"""Holm's procedure for discrete tests, in which tests that cannot be significant cost nothing.

Tarone (1990) omits from Bonferroni's factor the tests whose smallest attainable p-value is above the level.
His test of an intersection I of hypotheses, in the form that is monotone in the level (Hommel and
Krummenauer 1998), has the p-value

    P_I = min_{i in I} p_i #{j in I: a_j <= p_i},    a_j the smallest attainable p-value of test j,

since sum_j P(p_j <= t) <= t #{j in I: a_j <= t} for every t. As t #{j: a_j <= t} grows with t, the minimum is
attained at the least p-value of I, and the closed test of all intersections has the step-down form

    adjusted p_(i) = max_{j <= i} p_(j) #{l >= j: a_(l) <= p_(j)}.

The bound needs no independence, but the a_j have to be constants: all p-values have to be conditional on
the same information. P-values of several statistics of one pair of systems are: on the unordered pairs of
outputs. Those of the pairs of a leaderboard are not: each is conditional on its own outputs, and the a_j of
one are random given those of another. For them it is not proven, and Holm's or Benjamini and Yekutieli's
procedure has to be used.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from trackperm.errors import CapacityError, InputError
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.multiplicity.family import (
    LINEAR,
    LOG10,
    Correction,
    Scale,
    checked_log10_pvalues,
    checked_pvalues,
)
from trackperm.exact.result import PermutationTest

TIE = 1e-9
"""Relative difference below which p-values of different tests count as tied, far above their roundings."""

RESOLVED = 1e6
"""Smallest p-value that the null distribution proves to be the smallest, in errors of its mass."""

LISTABLE = 45
"""Largest number of discordant examples whose null distribution may show every outcome: beyond, 2^-n is below
its rounding errors."""


def tarone_holm(pvalues: npt.ArrayLike, smallest: npt.ArrayLike) -> FloatArray:
    """Return adjusted p-values of several discrete tests of one pair of systems; shape (m,).

    They are never greater than Holm's, and equal if every test could have given any p-value.

    Parameters
    ----------
    pvalues : array_like of float, shape (m,)
        P-values of all hypotheses of the family.
    smallest : array_like of float, shape (m,)
        Smallest attainable p-value of each test, or a lower bound on it; 0 if unknown.

    Raises
    ------
    InputError
        If a p-value is NaN, outside [0, 1] or smaller than the smallest attainable one, or the shapes differ.
    InputTypeError
        If they are not numbers.

    Examples
    --------
    The second test, on three discordant examples, could not have given less than 0.25:

    >>> tarone_holm([0.03, 0.5], [0.0, 0.25]).tolist()
    [0.03, 0.5]

    References
    ----------
    Tarone (1990); Hommel and Krummenauer (1998).
    """
    values, least = checked_pvalues(pvalues), checked_pvalues(smallest)
    _check_attainable(values, least, least * (1.0 - TIE))
    return _step_down(values, least * (1.0 - TIE), LINEAR)


def tarone_holm_log10(log10_pvalues: npt.ArrayLike, log10_smallest: npt.ArrayLike) -> FloatArray:
    """Return decimal logarithms of the adjusted p-values of :func:`tarone_holm`; shape (m,).

    Arguments are also decimal logarithms; an unknown smallest attainable p-value is -inf.
    """
    values = checked_log10_pvalues(log10_pvalues)
    known = np.asarray(log10_smallest, dtype=np.float64)
    checked_log10_pvalues(np.where(known == -np.inf, 0.0, known))
    _check_attainable(values, known, known - TIE)
    return _step_down(values, known - TIE, LOG10)


def log10_smallest_pvalue(test: PermutationTest) -> float:
    """Return the decimal logarithm of a test's smallest attainable p-value, or a lower bound.

    It is exact for linear statistics, and for others with at most 45 discordant examples if their null
    distribution fits the memory budget. It is -inf for p-values that were drawn at random.

    Raises
    ------
    InputError
        If the p-value is a mid p-value, which is not valid.
    """
    if test.is_drawn:
        return -math.inf
    if test.mid_p:
        raise InputError(
            "the p-value is a mid p-value, which is not valid; corrections need valid p-values",
            hint="test without `mid_p`.",
        )
    is_linear = test.n_better is not None
    if is_linear or test.n_discordant > LISTABLE:
        return test.log10_smallest_pvalue
    try:
        law = test.null_distribution
    except CapacityError:
        return test.log10_smallest_pvalue
    least, error = 10.0**test.log10_smallest_pvalue, law.mass_error_bound
    # Each outcome has at least the mass of one swap; if that is above the errors, none is left out.
    if least > 2.0 * RESOLVED * error:
        least = max(least, float(law.attainable_pvalues(test.alternative).min()) - error)
    return math.log10(least)


def _check_attainable(values: FloatArray, smallest: FloatArray, ends: FloatArray) -> None:
    if smallest.shape != values.shape:
        raise InputError(
            f"`smallest` has shape {smallest.shape}; expected one number for each of {values.size} p-values"
        )
    below = np.flatnonzero(values < ends)
    if below.size:
        raise InputError(
            f"at index {below[0]}, {values[below[0]]} is below the smallest attainable, {smallest[below[0]]}",
            hint="give the smallest attainable p-values of the same tests.",
        )


def _step_down(values: FloatArray, smallest: FloatArray, scale: Scale) -> FloatArray:
    """Return max_{j <= i} p_(j) #{l >= j: a_(l) <= p_(j)}."""
    order = np.argsort(values, kind="stable")
    ascending, least = values[order], smallest[order]
    # As a_(l) <= p_(l), test l counts from the first j with p_(j) >= a_(l) up to j = l.
    entered = np.bincount(np.searchsorted(ascending, least, side="left"), minlength=values.size)
    counting = np.cumsum(entered) - np.arange(values.size)
    adjusted = np.empty_like(values)
    adjusted[order] = scale.capped(np.maximum.accumulate(scale.times(ascending, counting)))
    return adjusted


TARONE_HOLM = Correction(
    "tarone-holm",
    "Tarone-Holm",
    "FWER",
    "any dependence of p-values that are conditional on the same information: statistics of one pair of "
    "systems; not proven for several pairs",
    "Tarone (1990); Hommel and Krummenauer (1998)",
)
"""Name of the correction, and the error rate that it controls."""
