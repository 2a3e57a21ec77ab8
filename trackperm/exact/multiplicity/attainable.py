"""Which p-values a test could have given: what makes a correction for many tests aware of discreteness.

Under its null hypothesis the p-value of an exact test has P(p <= t) = F(t), the greatest attainable p-value
that is at most t, and F(t) <= t. What is kept here is an upper bound on F, because procedures that are proven
for F stay valid for any upper bound (super-uniformity is all that their proofs use).
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
"""Relative difference below which p-values of different tests count as tied, so that rounding errors in
either cannot hide that one reaches the other."""

RESOLVED = 1e6
"""Attainable p-values are told apart down to this multiple of the error of the null distribution; below, F(t)
is bounded by t."""

MOST_VALUES = 2**20
"""Attainable p-values of one test that are listed at most; a law that fine differs little from F(t) = t."""


@dataclass(frozen=True)
class AttainablePvalues:
    """An upper bound on the distribution function of a p-value under its null hypothesis.

    Attributes
    ----------
    starts : ndarray of float64, shape (J,)
        Points at which the bound steps up, ascending: the attainable p-values less their possible errors.
    heights : ndarray of float64, shape (J,)
        Its values from there on: the attainable p-values and their possible errors. The last is 1.
    smallest : float
        No p-value below it is attainable. Between it and the first of `starts` the bound is t itself.
    """

    starts: FloatArray
    heights: FloatArray
    smallest: float

    @classmethod
    def listed(cls, pvalues: npt.ArrayLike) -> AttainablePvalues:
        """Make one from the list of all attainable p-values.

        Parameters
        ----------
        pvalues : array_like of float, shape (J,)
            In any order. The greatest has to be 1, the p-value of the least extreme outcome.

        Raises
        ------
        InputError
            If they are not such p-values.
        """
        values = np.unique(checked_pvalues(pvalues))
        if not values.size or values[0] == 0.0:
            raise InputError("attainable p-values have to be positive, and there has to be one")
        if values[-1] < 1.0 - TIE:
            raise InputError(
                f"the greatest attainable p-value is {values[-1]}; expected 1, that of the least extreme "
                "outcome",
                hint="mid p-values have no valid distribution function; list those of the test itself.",
            )
        return cls(values * (1.0 - TIE), values, float(values[0]))

    @classmethod
    def continuous(cls, smallest: float = 0.0) -> AttainablePvalues:
        """Make the bound F(t) <= t that holds for every valid p-value, from `smallest` on."""
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
    """Return what p-values `test` could have given, from its exact null distribution.

    One-sided and two-sided p-values are those of the test: two-sided, values of equal size are equally
    extreme. Values of the statistic that agree to 12 digits of the largest count as tied.

    Parameters
    ----------
    test : PermutationTest
        An exact one.

    Raises
    ------
    InputError
        If its p-value is none of an exact test: drawn at random, or a mid p-value, which is not valid.
    CapacityError
        If the null distribution does not fit the memory budget, had to be rounded, or has too many values.
        ``AttainablePvalues.continuous()`` is valid in its place, and loses little where values are that many.
    """
    if test.mid_p:
        raise InputError(
            "a mid p-value may be below its level too often, so that no correction of many can rely on it",
            hint="test without `mid_p`.",
        )
    if test.method == "monte-carlo":
        raise InputError(
            "the p-value was drawn at random; its attainable values are not those of the exact test",
            hint="use an exact engine, or a correction that needs the p-values alone, such as `holm`.",
        )
    law = test.null_distribution
    if law.value_error_bound > 0.0 or law.values.size > MOST_VALUES:
        raise CapacityError(
            "the null distribution has too many values to list its attainable p-values",
            hint="`AttainablePvalues.continuous()` is valid in their place, and hardly less powerful.",
        )
    error = law.mass_error_bound
    values = np.unique(law.attainable_pvalues(test.alternative))
    least = 10.0**test.log10_smallest_pvalue
    # Each outcome has at least the mass of one swap, and none that is above the error is left out.
    if least > 2.0 * RESOLVED * error:
        least = max(least, float(values[0]) - error)
    values = values[values > RESOLVED * error]
    return AttainablePvalues(values * (1.0 - TIE) - error, np.minimum(values + error, 1.0), least)
