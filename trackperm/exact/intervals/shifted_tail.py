"""P-values of the test of shifted scores: tails of one weighted sum of coins for each shift.

For the shift a / b, P(sum_A m - shift sum_A w <= 0) is the tail of a sum with the integer steps b m - a w,
which the engines of the linear test compute. A simpler fraction has smaller integers and costs less. If the
integers are too large, the sums of m and w are taken together (`shifted_plane`), which is quick for few
distinct rows; of many, steps are rounded, and the remainder is bounded (`linear.bracket`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from scipy.special import ndtri_exp

from trackperm.exact.counts import LARGEST
from trackperm.exact.distributions.characteristic import UNIT
from trackperm.exact.distributions.line import LineLaw
from trackperm.exact.distributions.tilt import CERTAIN, TailMass
from trackperm.exact.engines.linear.bracket import bracket_tail, sufficient_spacing
from trackperm.exact.engines.linear.lattice import LOG_LOST, log_pruned
from trackperm.exact.engines.linear.tails import LinearStatistic, exact_seconds, exact_tails
from trackperm.exact.intervals.additive import AdditiveScores
from trackperm.exact.intervals.shifted_plane import ShiftedPlane

QUICK = 0.012
"""Largest estimated seconds of a p-value without rounding; an interval needs many."""

QUICK_LINE = 0.002
"""Estimated seconds of a p-value of one weighted sum beyond which a plane is taken, if there is one."""

QUICK_ROUNDED = 0.008
"""Largest estimated seconds of a tail with rounded steps."""

WIDTH = 2e-5
"""Intended relative width of a rounded p-value: 1e-5 deviations of the end. It is wider if too slow, or if a
step of the p-value is near: of N differences with a standard deviation of s units, those at shifts of b-ths
of a unit are about 2 / (b s sqrt(N)) deviations."""

LOG_LOST_ROUNDED = -18.0
"""Logarithm of the mass that a tail with rounded steps may lose under its tilt: 1.5e-8, less than `WIDTH`."""

SECONDS_OF_A_PEAK = 2e-6
"""Estimated seconds for one row of the histogram at the frequencies of one peak."""


@dataclass(frozen=True)
class Bound:
    """Upper bound of a p-value.

    Attributes
    ----------
    pvalue : float
        The bound.
    score : float
        Normal score of the bound.
    is_rounded : bool
        Whether steps were rounded, which makes the bound slightly too large.
    """

    pvalue: float
    score: float
    is_rounded: bool


@dataclass(frozen=True)
class ShiftedTail:
    """Tail P(sum_A m - shift sum_A w <= 0) as a function of the shift.

    Attributes
    ----------
    rows : AdditiveScores
        Source of m, w and their multiplicities.
    log_level : float
        Logarithm of the size of relevant p-values.
    memory_budget : int
        Bytes that may be allocated.
    """

    rows: AdditiveScores
    log_level: float
    memory_budget: int
    _spacings: list[Fraction] = field(default_factory=list, init=False, repr=False)
    _planes: list[ShiftedPlane | None] = field(default_factory=list, init=False, repr=False)

    @property
    def rounds(self) -> bool:
        """Whether a p-value took too long without rounding, so that all later ones are rounded."""
        return bool(self._spacings)

    def seconds(self, shift: Fraction) -> float:
        """Estimate the time of a p-value; infinite if steps would be rounded for it."""
        if self.rounds:
            return math.inf
        if self._plane is not None:
            return self._plane.seconds
        seconds = self._seconds(shift, *self._law(shift))
        return seconds if seconds <= QUICK else math.inf

    def bound(self, shift: Fraction) -> Bound:
        """Return an upper bound of the p-value, tight up to its certificate.

        Raises
        ------
        CapacityError
            If it does not fit the memory budget with any rounding of steps.
        """
        if self._plane is not None:
            return _bound(self._plane.tail(shift), is_rounded=False)
        law, limit = self._law(shift)
        if limit >= law.total:
            return _bound(CERTAIN, is_rounded=False)
        if not self.rounds:
            seconds = self._seconds(shift, law, limit)
            if seconds > QUICK_LINE and not self._planes:
                self._planes.append(ShiftedPlane.of(self.rows, self.log_level, self.memory_budget))
                return self.bound(shift)
            if seconds <= QUICK:
                (tail,) = exact_tails(law, [limit], self.memory_budget)
                return _bound(tail, is_rounded=False)
        if not self.rounds:
            spacing = sufficient_spacing(law, limit, WIDTH)
            while spacing <= law.root:
                excess = self._seconds(shift, law, limit, spacing) / QUICK_ROUNDED
                if excess <= 1.0:
                    break
                # An estimate falls no faster than the spacing grows.
                spacing *= 2 ** max(1, math.frexp(excess)[1] - 1)
            self._spacings.append(Fraction(spacing, shift.denominator))
        # Bounds by one spacing are off by as much, and a plan takes as long as a bound. Of the bracket only
        # the upper end is used, whose limit is the first.
        spacing = math.ceil(self._spacings[0] * shift.denominator)
        tail = bracket_tail(
            law,
            limit,
            spacing,
            self.log_level,
            lambda rough, limits: exact_tails(rough, limits[:1], self.memory_budget, LOG_LOST_ROUNDED),
        )
        return _bound(TailMass(tail.log_scale, tail.scaled, 0.0), is_rounded=True)

    @property
    def _plane(self) -> ShiftedPlane | None:
        return self._planes[0] if self._planes else None

    def _seconds(self, shift: Fraction, law: LineLaw, limit: int, spacing: int = 1) -> float:
        # At the frequency 2 pi k / b a coin of step b m - a w turns by pi k a w / b, whatever its m is. If
        # that is near a multiple of pi for all rows, k a modulo b is small, and there is a peak. Remainders
        # of rounding reduce peaks, most of all those of large k.
        log_lost = LOG_LOST if spacing == 1 else LOG_LOST_ROUNDED
        threshold = log_pruned(log_lost, max(law.width // spacing, 1))
        weights = math.sqrt(float(self.rows.multiplicities @ self.rows.weights.astype(np.float64) ** 2))
        n_peaks = shift.denominator * math.sqrt(-2.0 * threshold) / (math.pi * weights)
        more = SECONDS_OF_A_PEAK * law.steps.size * n_peaks / spacing
        return exact_seconds(law, limit, self.memory_budget, spacing, log_lost) + more

    def _law(self, shift: Fraction) -> tuple[LineLaw, int]:
        """Return X and x with P(X <= x) the p-value; a row with a negative step starts in A and leaves it."""
        a, b = shift.numerator, shift.denominator
        moves, weights, counts = self.rows.moves, self.rows.weights, self.rows.multiplicities
        largest = max(map(abs, moves.tolist())) * b + int(weights.max()) * abs(a)
        if largest * self.rows.n_rows > LARGEST:
            moves, weights = moves.astype(object), weights.astype(object)
        sums = LinearStatistic.from_differences(b * moves - a * weights, counts, Fraction(1), Fraction(0))
        return sums.law, sums.law.total - sums.observed_point


def _bound(tail: TailMass, *, is_rounded: bool) -> Bound:
    if tail.scaled == 0.0:
        return Bound(0.0, -math.inf, is_rounded)
    log = min(tail.log + math.log1p(tail.error), 0.0)
    # Without a scale and an error the bound is the p-value; else a few roundings are added.
    pvalue = tail.scaled
    if tail.log_scale != 0.0 or tail.error > 0.0:
        roundings = (8.0 + 4.0 * abs(tail.log_scale)) * UNIT
        pvalue = math.exp(tail.log_scale) * tail.scaled * (1.0 + tail.error) * (1.0 + roundings)
    return Bound(pvalue, float(ndtri_exp(log)), is_rounded)
