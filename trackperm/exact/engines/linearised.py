r"""Certified bounds of the p-value of a function of many counts, by the weighted sum that is closest to it.

Let y be the deviations of the counts S from their means under the null hypothesis, and h(S) = v + L(y) + R(y)
with a linear form L. `functions.expansion` bounds |R| by r except on a set whose probability is at most eps.
L is a weighted sum of fair coins, symmetric about 0, with a certified tail. So

    P(L >= t - v + r) - eps <= P(h >= t) <= P(L >= t - v - r) + eps,

and the same for the other side and for both. Points of L that several swaps reach keep their mass. The
coefficients of L are rounded to multiples of a unit, so that steps are small integers, and r contains what
the rounding changes. The upper bound is a valid p-value, since it is never below the exact one.

The choice by `auto`. Levels are distances of t - v in steps of :data:`STEP` standard deviations of L, rounded
up. eps and r are determined by the level and by the unordered pairs, and r rises with the level. The bounds
are used up to the greatest level at which they are tight. So there is a value of h, the same for all
configurations of the pairs, up to which the upper bound is reported, and another valid p-value beyond. That
is valid, too. Let B be the configurations beyond, and R_x those at least as extreme as x. For x in B, R_x is
a part of B; for others, B is a part of R_x.

- If a < P(B), no x outside B has an upper bound of at most a, since P(R_x) >= P(B). Those reported at most a
  are in B, and the other p-value is valid.
- If a >= P(B), each x that is reported at most a has P(R_x) <= a: outside B because of the bound, and in B
  because P(R_x) <= P(B). Such x have at most the probability a.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from trackperm.choices import Alternative
from trackperm.errors import CapacityError
from trackperm.exact.counts import DifferenceHistogram
from trackperm.exact.distributions.characteristic import UNIT, FloatArray, SwapDistribution
from trackperm.exact.distributions.tilt import TailMass, scale_factor
from trackperm.exact.engines.axes import Axes
from trackperm.exact.engines.choice import PATIENCE
from trackperm.exact.engines.linear.lattice import upper_tilt
from trackperm.exact.engines.linear.tails import (
    EXACT_IN_FLOATS,
    LinearStatistic,
    exact_seconds,
    linear_tails,
)
from trackperm.exact.functions.expansion import ROUNDING, SLACK, Deviations, Expander, Expansion
from trackperm.exact.functions.operations import OperationTree, parts_of

STEP = 0.25
"""Width of a level in standard deviations: r grows by a tenth or less from one to the next."""

LOG_LOST = -7.0
"""Logarithm of eps, relative to the tail: 0.1 %, small beside the width that counts as tight."""

ROUNDED = 1 / 16
"""Part of r at level 0 that may come from rounding the coefficients of L: finer steps take longer."""

FINEST = 2.0**-24
"""Smallest unit of the coefficients of L, in standard deviations: sums of moderate steps stay below 2^52."""

TIGHT = 0.1
"""Approximate logarithm of the ratio of both bounds, up to which `auto` uses them: a ratio of 1.1."""

MOST_AXES = 400
"""Largest number of counts: the spectrum of a matrix of this size takes 0.1 s."""

SECONDS_PER_OPERATION, SECONDS_PER_ENTRY = 5e-4, 1e-8
"""Time of the three expansions of an operation, and of an entry of the matrix by which they take norms."""


@dataclass(frozen=True)
class Remainder:
    """Bound of |h - v - L| at a level.

    Attributes
    ----------
    bound : float
        r.
    log_failure : float
        Logarithm of eps.
    is_tight : bool
        Whether the bounds of a p-value at this level are close enough for `auto`.
    """

    bound: float
    log_failure: float
    is_tight: bool


class Linearisation:
    """Function of many counts near the mean of its null distribution.

    It is the same for all configurations of the pairs.

    Parameters
    ----------
    histogram : DifferenceHistogram
        Differences of the pairs, of which some are not 0.
    h : OperationTree
        Function of the m counts.
    patience : float
        Estimated seconds that expansions may take.

    Raises
    ------
    CapacityError
        If they would take longer, if counts are too many or too large, if h has no slope at the mean, or if
        the bounds do not prove that it is defined and smooth around it.
    """

    def __init__(
        self, histogram: DifferenceHistogram, h: OperationTree, *, patience: float = math.inf
    ) -> None:
        self._h = h
        whole = SwapDistribution(histogram.differences, histogram.multiplicities)
        reaches = [
            abs(x) + max(-low, high) for x, (low, high) in zip(histogram.origin, whole.support, strict=True)
        ]
        if max(reaches) > EXACT_IN_FLOATS:
            raise CapacityError("sums of the counts exceed 2^52, beyond which floats are not exact")
        self._means = [x + e / 2 for x, e in zip(histogram.origin, whole.total, strict=True)]
        self._axes = Axes.of(whole)
        law, n_operations = self._axes.law, len(parts_of(h))
        if law.rank > MOST_AXES:
            raise CapacityError(f"{law.rank} counts vary; the limit is {MOST_AXES}")
        seconds = n_operations * (SECONDS_PER_OPERATION + SECONDS_PER_ENTRY * law.rank**2)
        if seconds > patience:
            raise CapacityError(f"it would take about {seconds:.0f} s; `--method bracket` runs it")
        self._root = covariance_root(law)
        self._ends = np.array([(high - low) / 2 for low, high in law.support])
        deviations, centre = self._expanded(0.0)
        if centre is None or centre.form is None:
            raise _no_slope()
        self._value, self._slopes, self._n_bounds = centre.value, centre.form.vector, deviations.n_bounds + 2
        # L has the coefficients unit * weights. A rounded coefficient is off by unit / 2 at most.
        deviations, bound = self._curve(LOG_LOST)
        bound = max(ROUNDED * bound / math.sqrt(2.0 * deviations.exponent), FINEST * centre.form.norm)
        unit = 2.0 ** math.floor(math.log2(2.0 * bound / np.linalg.norm(self._root)))
        weights = np.rint(self._slopes / unit)
        if float(law.multiplicities @ np.abs(law.coordinates) @ np.abs(weights)) > EXACT_IN_FLOATS:
            raise CapacityError("the weighted sum exceeds 2^52 units, beyond which floats are not exact")
        self._coefficients = weights * unit
        steps = law.coordinates @ weights.astype(np.int64)
        sums = LinearStatistic.from_differences(steps, law.multiplicities, Fraction(unit), Fraction(0))
        self._line, self._unit = sums.law, sums.unit
        if not self._line.steps.size:
            raise _no_slope()

    @property
    def deviation(self) -> float:
        """Standard deviation of L."""
        return float(self._unit) * self._line.root / 2.0

    def seconds(self, memory_budget: int) -> float:
        """Estimate the time of a tail of L; inf if no exact engine fits."""
        return exact_seconds(self._line, self._line.total // 2, memory_budget)

    def remainder(self, observed: float, alternative: Alternative) -> Remainder:
        """Bound the remainder at the level of an observed value.

        It raises CapacityError if the bounds do not prove that h is defined and smooth.
        """
        level = STEP * max(math.ceil(self._distance(observed, alternative) / self.deviation / STEP), 0)
        log_lost = self._log_chernoff(level) + LOG_LOST - math.log1p(level)
        deviations, bound = self._curve(log_lost)
        rounded = deviations.form(self._coefficients - self._slopes)
        bound += 0.0 if rounded is None else rounded.reach
        bound += abs(self._value) * (alternative == "two-sided")
        # The rule depends on the level alone, so it precedes the roundings of the observed value.
        is_tight = 2.0 * (1.0 + level) * bound <= TIGHT * self.deviation
        bound += ROUNDING * (abs(observed) + abs(self._value))
        return Remainder(bound * SLACK, deviations.log_failure(), is_tight)

    def bracket(
        self, observed: float, alternative: Alternative, remainder: Remainder, memory_budget: int
    ) -> TailMass:
        """Return the upper bound of one side, whose `error` reaches down to the lower bound.

        Of a two-sided test, twice the bounds are those of the p-value.
        """
        distance, half = Fraction(self._distance(observed, alternative)), Fraction(self._line.total, 2)
        limits = [
            math.floor(half - (distance + shift * Fraction(remainder.bound)) / self._unit)
            for shift in (-1, 1)
        ]
        (log_high, high_error), (log_low, low_error) = self._tails(limits, memory_budget)
        reference = max(log_high, remainder.log_failure)
        lost = math.exp(remainder.log_failure - reference)
        high = math.exp(log_high - reference) * (1.0 + high_error) + lost
        low = math.exp(log_low - reference) * (1.0 - low_error) - lost
        # The observed configuration is one of 2^n.
        least = math.exp(max(-self._axes.law.n_coins * math.log(2.0) - reference, -700.0))
        low = max(low, least if least > math.exp(-700.0) else 0.0)
        high = max(high, low)
        # Roundings of exponentials and logarithms of this size.
        roundings = 16.0 * UNIT * (4.0 + abs(reference))
        width = high / low * (1.0 + 4.0 * roundings) - 1.0 if low > 0.0 else math.inf
        return TailMass(reference, high * (1.0 + roundings), width)

    def _tails(self, limits: Sequence[int], memory_budget: int) -> list[tuple[float, float]]:
        """Return an upper bound of P(X <= limits[0]), and a lower one of P(X <= limits[1]).

        Each is a logarithm, with a relative error.
        """
        inner = [limit for limit in limits if 0 <= limit < self._line.total]
        found: dict[int, TailMass] = {}
        method = "auto"
        if inner:
            tails, method, _ = linear_tails(self._line, inner, "auto", memory_budget)
            found = dict(zip(inner, tails, strict=True))
        ends = []
        for is_upper, limit in zip((True, False), limits, strict=True):
            tail = found.get(limit)
            if tail is None:
                ends.append((-math.inf if limit < 0 else 0.0, 0.0))
            elif is_upper and (method == "bracket" or tail.error >= 1.0):
                ends.append((tail.log, 0.0))
            elif method == "bracket":
                ends.append((tail.log - math.log1p(tail.error), 0.0))
            elif tail.error >= 1.0:
                ends.append((-math.inf, 0.0))
            else:
                ends.append((tail.log, tail.error / (1.0 - tail.error)))
        return ends

    def _distance(self, observed: float, alternative: Alternative) -> float:
        """Return the distance of the observed value from the centre, towards the extreme side."""
        if alternative == "two-sided":
            return abs(observed)
        return observed - self._value if alternative == "greater" else self._value - observed

    def _expanded(self, exponent: float) -> tuple[Deviations, Expansion | None]:
        """Return the expansion of h with bounds of this exponent."""
        deviations = Deviations(self._root, self._ends, exponent)
        signed = {sign: [deviations.form(sign * row) for row in np.eye(self._ends.size)] for sign in (1, -1)}
        variables = [
            Expansion(mean, signed[sign][axis] if sign else None)
            for mean, axis, sign in zip(self._means, self._axes.source, self._axes.sign.tolist(), strict=True)
        ]
        return deviations, Expander(deviations, variables).expand(self._h)

    def _curve(self, log_lost: float) -> tuple[Deviations, float]:
        """Return bounds that fail with the given probability at most, and one of |h - v - slopes . y|."""
        deviations, found = self._expanded(math.log(2.0 * self._n_bounds) - log_lost)
        if found is None:
            raise CapacityError(
                "within the bounds of its counts, the statistic may be undefined or not smooth"
            )
        return deviations, deviations.bound(found.products, found.remainders) + found.error

    def _log_chernoff(self, level: float) -> float:
        """Return the logarithm of Chernoff's bound of P(L >= level standard deviations)."""
        line = self._line
        point = math.ceil((line.total + level * line.root) / 2.0)
        if point >= line.total:
            return -line.n_coins * math.log(2.0)
        lattice = line.lattice()
        return min(scale_factor(lattice, upper_tilt(lattice, point), (point,)).log, 0.0)


def linearised_bounds(
    histogram: DifferenceHistogram,
    h: OperationTree,
    observed: float,
    alternative: Alternative,
    memory_budget: int,
    *,
    only_tight: bool = False,
) -> tuple[Callable[[], TailMass], str]:
    """Return a function that computes certified bounds of one side of a p-value, and the reason for them.

    Parameters
    ----------
    histogram, h, observed
        Differences of the pairs, of which some are not 0; the statistic, and its observed value, which is not
        0 if the test is two-sided.
    alternative : {'two-sided', 'less', 'greater'}
        Extreme values.
    memory_budget : int
        Bytes that the tail of L may allocate.
    only_tight : bool
        Whether to refuse bounds that are not close to each other.

    Raises
    ------
    CapacityError
        If there are no bounds, or none that are tight within the planner's patience.
    """
    linear = Linearisation(histogram, h, patience=PATIENCE if only_tight else math.inf)
    if only_tight and linear.seconds(memory_budget) > PATIENCE:
        raise CapacityError(
            f"the certified ends would take more than {PATIENCE:.0f} s; `--method bracket` computes them"
        )
    remainder = linear.remainder(observed, alternative)
    distance = f"{remainder.bound / linear.deviation:.2g} standard deviations"
    if only_tight and not remainder.is_tight:
        raise CapacityError(f"the statistic differs from a weighted sum by up to {distance}")
    bounds = partial(linear.bracket, observed, alternative, remainder, memory_budget)
    return bounds, f"a weighted sum differs from the statistic by at most {distance}"


def covariance_root(law: SwapDistribution) -> FloatArray:
    """Return a matrix A for which A A^T - C is positive semidefinite, with C the covariance of the law.

    Axes, which have positive variances, are scaled by powers of 2 to variances between 1/16 and 1/4. Then a
    multiple of the identity is added that exceeds the roundings of C, at most (K + 5) units of
    sqrt(C_ii C_jj), and of Cholesky's method, at most n + 1 units of the trace (Higham 2002, theorem 10.3).
    """
    coordinates = law.coordinates.astype(np.float64)
    n_rows, n = coordinates.shape
    scales = np.array([2.0 ** math.frexp(scale)[1] for scale in law.ranges])
    scaled = coordinates / scales
    covariance = (scaled.T * law.multiplicities) @ scaled / 4.0
    root = np.linalg.cholesky(covariance + 16.0 * UNIT * n * (n_rows + n + 8) * np.eye(n))
    return np.asarray(root * scales[:, None])


def _no_slope() -> CapacityError:
    return CapacityError("the statistic has no slope at the mean of its null distribution")
