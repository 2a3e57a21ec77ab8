"""Attainable p-values of exact tests, for corrections that use discreteness.

Under its null hypothesis the p-value of an exact test has P(p <= t) = F(t), the greatest attainable p-value
that is at most t, and F(t) <= t. An upper bound on F suffices, because the proofs of the procedures use only
super-uniformity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trackperm.errors import CapacityError, InputError
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.multiplicity.family import checked_pvalues
from trackperm.exact.result import PermutationTest

TIE = 1e-9
"""Relative difference below which p-values of different tests count as tied, far above their roundings."""

RESOLVED = 1e6
"""Smallest listed p-value, in errors of the null distribution; below it, F(t) is bounded by t."""

MOST_VALUES = 2**20
"""Largest number of listed p-values of one test; with more, F(t) = t loses almost nothing."""


@dataclass(frozen=True)
class AttainablePvalues:
    """Upper bound on the distribution function of a p-value under its null hypothesis.

    Attributes
    ----------
    starts : ndarray of float64, shape (J,)
        Points at which the bound steps up, ascending: attainable p-values minus their possible errors.
    heights : ndarray of float64, shape (J,)
        Values of the bound from there on: attainable p-values plus their possible errors. The last is 1.
    smallest : float
        Lower bound on all attainable p-values. Between it and the first of `starts` the bound is t itself.
    """

    starts: FloatArray
    heights: FloatArray
    smallest: float

    @classmethod
    def listed(cls, pvalues: npt.ArrayLike) -> AttainablePvalues:
        """Build the bound from the list of all attainable p-values.

        Parameters
        ----------
        pvalues : array_like of float, shape (J,)
            P-values in any order. The greatest has to be 1, the p-value of the least extreme outcome.

        Raises
        ------
        InputError
            If the list is empty, has a 0, or has no 1.
        """
        values = np.unique(checked_pvalues(pvalues))
        if not values.size or values[0] == 0.0:
            raise InputError("the attainable p-values are empty or contain 0; expected positive numbers")
        if values[-1] < 1.0 - TIE:
            raise InputError(
                f"the greatest attainable p-value is {values[-1]}; expected 1, that of the least extreme "
                "outcome",
                hint="mid p-values have no valid distribution function; list those of the test itself.",
            )
        return cls(values * (1.0 - TIE), values, float(values[0]))

    @classmethod
    def continuous(cls, smallest: float = 0.0) -> AttainablePvalues:
        """Build the bound F(t) <= t, which holds for every valid p-value, from `smallest` on."""
        return cls(np.empty(0), np.empty(0), smallest)

    def cdf(self, levels: npt.ArrayLike) -> FloatArray:
        """Return the upper bound on P(p <= t) at each t of `levels`, numbers from 0 to 1."""
        t = np.asarray(levels, dtype=np.float64)
        steps = np.searchsorted(self.starts, t, side="right")
        unlisted = np.where(t >= self.smallest * (1.0 - TIE), t, 0.0)
        if not self.starts.size:
            return unlisted
        return np.where(steps > 0, self.heights[np.maximum(steps - 1, 0)], unlisted)


def attainable_pvalues(test: PermutationTest) -> AttainablePvalues:
    """Return the attainable p-values of a test, from its exact null distribution.

    One-sided and two-sided p-values are those of the test: two-sided, values of equal size are equally
    extreme. Values of the statistic that agree to 12 digits of the largest count as tied.

    Parameters
    ----------
    test : PermutationTest
        An exact one.

    Raises
    ------
    InputError
        If its p-value was drawn at random, or is a mid p-value, which is not valid.
    CapacityError
        If the null distribution does not fit the memory budget, had to be rounded, or has too many values.
        ``AttainablePvalues.continuous()`` is valid instead, and loses little with so many values.
    """
    if test.mid_p:
        raise InputError(
            "the p-value is a mid p-value, which is not valid; corrections need valid p-values",
            hint="test without `mid_p`.",
        )
    if test.method == "monte-carlo":
        raise InputError(
            "the p-value was drawn at random; its attainable values are not those of the exact test",
            hint="use an exact engine, or a correction that depends on the p-values only, such as `holm`.",
        )
    law = test.null_distribution
    if law.value_error_bound > 0.0 or law.values.size > MOST_VALUES:
        raise CapacityError(
            "the null distribution has too many values to list its attainable p-values",
            hint="`AttainablePvalues.continuous()` is valid instead, and hardly less powerful.",
        )
    error = law.mass_error_bound
    values = np.unique(law.attainable_pvalues(test.alternative))
    least = 10.0**test.log10_smallest_pvalue
    # Each outcome has at least the mass of one swap, and those with masses above the error are complete.
    if least > 2.0 * RESOLVED * error:
        least = max(least, float(values[0]) - error)
    values = values[values > RESOLVED * error]
    return AttainablePvalues(values * (1.0 - TIE) - error, np.minimum(values + error, 1.0), least)
