r"""Branch and bound search for the frequencies at which a characteristic function is not negligible.

A factor's modulus depends on the distance d of b_k = theta . x_k / 2 from the nearest multiple of pi alone,
and falls with it: |cos b| = cos d. Over a box of frequencies with centre theta_0 the distance is at least
max(d_0 - h, 0), where h = sum_i |x_ki| delta_i / 2 bounds how far b_k moves inside the box. The product
of the bounds over any of the k bounds the characteristic function over the whole box, so boxes below the
threshold are dropped and the others split, down to single frequencies. Every grid frequency is covered by
some box: secondary peaks are found like the main one.

Far from any peak a few rows bound a box, however many there are. For a uniform phase, the log modulus of a
tilted coin has the mean log((1 + tanh |a|) / 2); a bound over a reach h keeps about (1 - 2 h / pi)^4 of it.
So rows with small steps bound wide boxes, and rows with some variance left under the tilt bound narrow ones.
Rows of about equal merit are taken in random order: steps of nearly the same size, or in arithmetic
progression, would all keep frequencies that other rows rule out. The bound holds for any choice.

Near frequency 0 no phase reaches a right angle, and few rows say little. If all distances are at most x half
turns, of d_k = pi y_k each, sin d_k >= y_k sin(pi x) / x, as sin(pi x) / x falls. With log(1 - z) <= -z,

    log |cf| <= -1/2 sum_k c_k sech^2 a_k sin^2 d_k <= -1/2 (sin(pi x) / x)^2 l^T Q l,

where l is the frequency, y_k = |s_k . l| and Q = sum_k c_k sech^2 a_k s_k s_k^T, from all rows at once. It
holds for any of the rows: those with short steps have small distances farther from 0.

The number of frequencies of fair coins is estimated beforehand. For the phase U of a random frequency,

    E |cos U|^a = Gamma((a + 1) / 2) / (sqrt(pi) Gamma(a / 2 + 1)) = (1 + pi a / 2)^(-1/2), nearly.

With M(s) = -1/2 sum_k log(1 + pi s c_k / 2) and s > 0 that minimises M(s) - s l, the modulus of independent
phases is above exp(l) with the probability exp(M(s) - s l) / (s sqrt(2 pi M''(s))), nearly (Bahadur and Rao
1960).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trackperm.errors import CapacityError
from trackperm.exact.distributions.characteristic import UNIT, FloatArray, SwapDistribution
from trackperm.exact.types import IntArray

ENOUGH = 1.25
"""Expected loss of log modulus by the first rows, in terms of the threshold: a quarter more than it takes, as
losses of random frequencies vary."""

FEW_ROWS = 48
"""Largest number of rows that are all used at once: choosing among fewer saves nothing."""

FEW_BOXES = 64
"""Number of boxes at or below which they are split: that is cheaper than more rows."""

SPLIT = 2**8
"""Number of boxes up to which they are split by several levels at once: few are bounded as quickly as one."""

FIRST_BOXES = 128
"""Number of boxes with which a search may start even if few of them can be dropped."""

SMALL = 32
"""Largest number of frequencies of a box that is not bounded in parts if most boxes of its size are kept: to
evaluate all of them then takes no longer than to rule some out."""

FEW = 1_500
"""Number of frequencies that are not bounded any more: evaluating them takes less time than bounding them."""

SMALLEST = 4
"""The same as `SMALL` of any boxes: to bound that few frequencies each takes as long as to evaluate them."""

MOST_DOUBLINGS = 4
"""Number of doublings of the rows that bound a box: sixteen times as many rule out what can be ruled out.
Single frequencies get all rows, as they cannot be split."""

BLOCK = 2**14
"""Widest boxes that are searched together: they bound the memory of a level."""

HALVINGS = 10
"""Halvings of the longest steps for bounds near frequency 0: rows with shorter ones have little variance."""

CHUNK = 2**15
"""Box-row pairs per step: work arrays of 256 KiB stay in the cache."""

MOST_FACTORS = 2**32
"""Largest number of box-row pairs: a quarter of a minute, after which other engines are quicker."""

MOST_LEFT_OUT = 8
"""Most rows without which survivors are estimated as well."""

EXPONENTS = 2.0 ** np.arange(-8.0, 5.0)
"""Values of s that are tried for the number of frequencies."""


def n_expected(law: SwapDistribution, periods: Sequence[int], log_threshold: float) -> tuple[float, float]:
    """Estimate the numbers of frequencies that :func:`surviving_frequencies` finds for fair coins.

    They are those near 0, where the squared modulus is nearly exp(-theta^T C theta) with the covariance C,
    and those elsewhere.
    """
    half = math.prod(periods) / 2.0
    root = math.sqrt(max(float(np.linalg.det(law.fair_covariance)), 1e-300))
    ball = math.pi ** (law.rank / 2.0) / math.gamma(law.rank / 2.0 + 1.0)
    near_0 = half * ball * (-log_threshold / (2.0 * math.pi**2)) ** (law.rank / 2.0) / root
    slopes = math.pi / 2.0 * law.multiplicities
    growth = 1.0 + np.outer(EXPONENTS, slopes)
    logs = -0.5 * np.log(growth).sum(axis=1) - EXPONENTS * log_threshold
    best = int(np.argmin(logs))
    deviation = math.sqrt(0.5 * float(((slopes / growth[best]) ** 2).sum()))
    spread = max(float(EXPONENTS[best]) * deviation * math.sqrt(2.0 * math.pi), 1.0)
    return min(near_0, half), half * math.exp(min(float(logs[best]), 0.0)) / spread


def surviving_frequencies(
    law: SwapDistribution, tilt: FloatArray, periods: Sequence[int], log_threshold: float, limit: int
) -> IntArray:
    """Return the grid frequencies whose characteristic function may exceed exp(log_threshold), shape (n, r).

    Frequency l is theta_i = 2 pi l_i / P_i for the grid sizes P_i = `periods`. One of each conjugate pair is
    returned: 0 <= l_i < P_i, the last one up to P_r // 2. It raises CapacityError if there are more than
    `limit`, or too many boxes to find them.
    """
    return FrequencySearch(law, tilt, tuple(periods), log_threshold).survivors(limit)


class FrequencySearch:
    """Search of :func:`surviving_frequencies`, with an estimate of its cost; parameters as there.

    `biases`, shape (K,), gives the a_k of coins that have no common tilt.
    """

    def __init__(
        self,
        law: SwapDistribution,
        tilt: FloatArray,
        periods: tuple[int, ...],
        log_threshold: float,
        biases: FloatArray | None = None,
    ) -> None:
        a = law.coordinates @ tilt / 2.0 if biases is None else biases
        self.periods, self.log_threshold = periods, log_threshold
        self._steps = law.coordinates / np.array(periods, dtype=np.float64)
        self._counts = law.multiplicities.astype(np.float64)
        self._biases = np.abs(a)
        self._sech2 = 1.0 / np.cosh(np.minimum(self._biases, 350.0)) ** 2
        self._extents = np.array([*periods[:-1], periods[-1] // 2 + 1], dtype=np.int64)
        self._lengths = lengths = np.abs(self._steps)
        self._longest = lengths.max(axis=0)
        # Phases err by a few roundings of the sizes of their terms.
        self._roundings = 16.0 * UNIT * (lengths @ self._extents)
        self._sizes = _box_sizes(self._extents, np.maximum(self._longest, 1.0 / np.array(periods)))
        self._levels: dict[int, BoxBounds] = {}
        # Start with the widest boxes that can mostly be dropped, or with single frequencies; but a few boxes
        # are bounded as quickly as one.
        numbers = -(-self._extents // self._sizes)
        n_boxes = numbers.prod(axis=1, dtype=np.float64)
        few = int(np.searchsorted(n_boxes, FIRST_BOXES, side="right")) - 1
        needed = -ENOUGH * log_threshold

        def loss(index: int) -> float:
            return float(self._expected(self._reach(index)).sum())

        self._first, last = few, len(self._sizes) - 1
        if few < last and loss(few) < needed:
            self._first = bisect_left(range(last), needed, lo=few + 1, key=loss)
        self._shape: list[int] = numbers[self._first].tolist()

    @cached_property
    def _losses(self) -> FloatArray:
        """Average loss of log modulus by each row, over random phases."""
        return np.asarray(-self._counts * np.log((1.0 + np.tanh(self._biases)) / 2.0))

    @cached_property
    def least_factors(self) -> int:
        """Number of box-row pairs if no box survives its first bound."""
        return math.prod(self._shape) * max(self._level(self._first).ends[0], 1)

    @cached_property
    def share_of_survivors(self) -> float:
        """Estimated share of random frequencies above the threshold.

        The variance of a row's log modulus is pi^2 / 12 for a = 0; it is assumed to shrink with the square of
        the mean, and the sum to be normal. It is not where few rows have most of the coins, such as ties that
        a shift has moved: what the other rows leave is a bound, for no row raises the modulus.
        """
        n_left_out = min(MOST_LEFT_OUT, self._losses.size - 1)
        heaviest = np.sort(np.partition(self._losses, -n_left_out - 1)[-n_left_out - 1 :])[::-1]
        mean, square = float(self._losses.sum()), float(self._losses @ self._losses)
        shares = []
        for loss in heaviest.tolist():
            deviation = math.pi / math.sqrt(12.0) / math.log(2.0) * math.sqrt(max(square, 1e-300))
            excess = self.log_threshold + mean
            shares.append(math.erfc(excess / (deviation * math.sqrt(2.0))) / 2.0)
            mean, square = mean - loss, square - loss * loss
        return min(shares)

    def survivors(self, limit: int) -> IntArray:
        """Return the frequencies, at most `limit`, or raise CapacityError."""
        if self.least_factors > MOST_FACTORS:
            raise self._refusal(f"the search for frequencies needs {self.least_factors:.0e} factors")
        found, n_found, n_factors, n_boxes = [], 0, 0, math.prod(self._shape)
        volumes = [math.prod(sizes) for sizes in self._sizes.tolist()]
        for first in range(0, n_boxes, BLOCK):
            boxes = _corners(
                np.arange(first, min(first + BLOCK, n_boxes)), self._shape, self._sizes[self._first]
            )
            index, last = self._first, len(self._sizes) - 1
            while boxes.shape[1]:
                if index == last:
                    boxes = boxes[:, self._near_bounds(boxes) >= self.log_threshold]
                level, n_before = self._level(index), boxes.shape[1]
                boxes, n_bounded = level.survivors(boxes, self.log_threshold)
                n_factors += n_bounded
                if n_factors > MOST_FACTORS or n_found + boxes.shape[1] > 4 * limit:
                    raise self._refusal(f"more than {limit} frequencies matter")
                if index == last:
                    break
                n_each, few_rows = volumes[index], level.ends == [self._counts.size]
                mostly_kept = n_each <= SMALLEST or (n_each <= SMALL and 2 * boxes.shape[1] > n_before)
                if few_rows and (mostly_kept or n_each * boxes.shape[1] <= FEW):
                    boxes = self._split(boxes, index, last)
                    break
                further = index + 1
                while further < last and boxes.shape[1] * n_each <= SPLIT * volumes[further + 1]:
                    further += 1
                boxes, index = self._split(boxes, index, further), further
            found.append(boxes)
            n_found += boxes.shape[1]
            if n_found > limit:
                raise self._refusal(f"more than {limit} frequencies matter")
        return np.concatenate(found, axis=1).T

    def _refusal(self, reason: str) -> CapacityError:
        return CapacityError(
            f"{reason} on a grid of {' x '.join(map(str, self.periods))} points",
            hint="give a statistic with smaller integers.",
        )

    def _reach(self, index: int) -> FloatArray:
        """Return the distance that phases move inside a box, in half turns, shape (K,)."""
        return np.asarray(self._lengths @ ((self._sizes[index] - 1) / 2.0))

    def _expected(self, reach: FloatArray) -> FloatArray:
        """Return the average loss of log modulus by each row far from any peak."""
        square = np.maximum(1.0 - 2.0 * reach, 0.0) ** 2
        return np.asarray(self._losses * square * square)

    @cached_property
    def _near_rows(self) -> list[tuple[FloatArray, FloatArray]]:
        """Longest steps by axis and matrices Q of all rows, and of rows with ever shorter steps."""
        found = []
        weights, relative = self._counts * self._sech2, (self._lengths / self._longest).max(axis=1)
        for k in range(HALVINGS + 1):
            steps, w = (each[relative <= 0.5**k] for each in (self._steps, weights))
            if not w.size:
                break
            found.append((np.abs(steps).max(axis=0), (steps.T * w) @ steps))
        return found

    def _near_bounds(self, frequencies: IntArray) -> FloatArray:
        """Return upper bounds of the log modulus near 0, at `frequencies` of shape (r, n); 0 for others."""
        periods = np.array(self.periods, dtype=np.int64)
        signed = frequencies.T.astype(np.float64)
        signed -= np.where(2 * signed > periods, periods, 0)
        sizes, bounds = np.abs(signed), np.zeros(len(signed))
        # Each entry of a matrix is a sum over the rows; a few roundings more are those of the form.
        rounding = UNIT * (self._counts.size + 64)
        for longest, matrix in self._near_rows:
            squares = ((signed @ matrix) * signed).sum(axis=1)
            squares -= rounding * (sizes @ np.sqrt(np.diag(matrix))) ** 2
            distance = np.maximum(sizes @ longest, 1e-300)
            slopes = np.sin(math.pi * np.minimum(distance, 0.5)) / distance
            near = -(1.0 - 1e-6) / 2.0 * slopes**2 * np.maximum(squares, 0.0)
            bounds = np.minimum(bounds, np.where(distance <= 0.5, near, 0.0))
        return bounds

    def _level(self, index: int) -> BoxBounds:
        """Choose the rows that bound boxes of one size, in their order; once for each size."""
        if index in self._levels:
            return self._levels[index]
        reach = self._reach(index)
        rows: IntArray | slice = slice(None)
        ends = [reach.size]
        if reach.size > FEW_ROWS:
            rows, ends = self._most_useful(index, reach)
        self._levels[index] = BoxBounds(
            self._sizes[index],
            self._steps[rows],
            reach[rows] + self._roundings[rows],
            self._counts[rows],
            self._sech2[rows],
            ends,
        )
        return self._levels[index]

    def _most_useful(self, index: int, reach: FloatArray) -> tuple[IntArray, list[int]]:
        """Return the rows that lower the log modulus far from peaks, best first, and the ends to stop at."""
        expected = self._expected(reach)
        rows = np.flatnonzero(expected)
        if rows.size <= FEW_ROWS:
            return rows, [rows.size]
        # Exponents of the merits come first; rows with equal ones are in random order.
        merits = np.random.default_rng(index).random(rows.size) - np.frexp(expected[rows])[1]
        n_first, needed = FEW_ROWS, -ENOUGH * self.log_threshold
        losses = np.cumsum(expected[rows[_smallest(merits, n_first)]])
        while losses[-1] < needed and n_first < rows.size:
            n_first *= 4
            losses = np.cumsum(expected[rows[_smallest(merits, n_first)]])
        ends = [max(int(np.searchsorted(losses, needed)) + 1, FEW_ROWS)]
        is_single = index == len(self._sizes) - 1
        while ends[-1] < rows.size and (is_single or len(ends) <= MOST_DOUBLINGS):
            ends.append(2 * ends[-1])
        ends[-1] = min(ends[-1], rows.size)
        return rows[_smallest(merits, ends[-1])], ends

    def _split(self, corners: IntArray, index: int, further: int) -> IntArray:
        """Return the boxes of a smaller size that make up those of one size."""
        smaller = self._sizes[further]
        parts = (self._sizes[index] // smaller).tolist()
        steps = _corners(np.arange(math.prod(parts)), parts, smaller)
        corners = (corners[:, :, None] + steps[:, None]).reshape(smaller.size, -1)
        if (corners.max(axis=1, initial=0) < self._extents).all():
            return corners
        return corners[:, (corners < self._extents[:, None]).all(axis=0)]


def _corners(which: IntArray, shape: Sequence[int], sizes: IntArray) -> IntArray:
    """Return the corners of some of the boxes of equal sizes that tile a grid, by their numbers; (r, n)."""
    return np.array(np.unravel_index(which, shape)) * sizes[:, None]


def _smallest(values: FloatArray, n: int) -> IntArray:
    """Return the places of the n smallest values, or of all if they are fewer, in ascending order."""
    if n >= values.size:
        return np.argsort(values)
    places = np.argpartition(values, n)[:n]
    return places[np.argsort(values[places])]


def _box_sizes(extents: IntArray, longest: FloatArray) -> IntArray:
    """Return sizes of boxes from all frequencies to single ones, shape (levels, r), all powers of two.

    `longest` are the largest steps by axis. Halving the relatively widest axes keeps boxes about as long as
    the peak they cover.
    """
    whole, logs = [(n - 1).bit_length() for n in extents.tolist()], [math.log2(x) for x in longest.tolist()]
    widest = max(w + log for w, log in zip(whole, logs, strict=True))
    halvings = range(math.floor(widest - min(logs)) + 2)
    by_axis = [
        [1 << min(max(math.floor(widest - k - log + 1e-9), 0), w) for k in halvings]
        for w, log in zip(whole, logs, strict=True)
    ]
    return np.array([*dict.fromkeys(zip(*by_axis, strict=True))], dtype=np.int64)


@dataclass(frozen=True)
class BoxBounds:
    """Upper bounds of the log modulus over boxes of one size, by some rows of the histogram.

    Attributes
    ----------
    sizes : ndarray of int64, shape (r,)
        Number of frequencies of a box on each axis.
    steps : ndarray of float64, shape (m, r)
        Half turns of each row's phase from one frequency to the next.
    reach : ndarray of float64, shape (m,)
        Largest distance from the phase at a box's centre, in half turns, roundings included.
    counts, sech2 : ndarray of float64, shape (m,)
        c_k and sech^2 a_k.
    ends : list of int
        Numbers of rows used: at first for all boxes, then after each doubling for those left.
    """

    sizes: IntArray
    steps: FloatArray
    reach: FloatArray
    counts: FloatArray
    sech2: FloatArray
    ends: list[int]

    def survivors(self, corners: IntArray, log_threshold: float) -> tuple[IntArray, int]:
        """Return corners, shape (r, n), of boxes that may exceed the threshold, and the number of factors."""
        logs, first, n_bounded = np.zeros(corners.shape[1]), 0, 0
        for end in self.ends:
            logs = logs + self._log_bounds(corners, slice(first, end))
            n_bounded += corners.shape[1] * (end - first)
            kept = logs >= log_threshold
            corners, logs, first = corners[:, kept], logs[kept], end
            if corners.shape[1] <= (0 if (self.sizes == 1).all() else FEW_BOXES):
                break
        return corners, n_bounded

    def _log_bounds(self, corners: IntArray, rows: slice) -> FloatArray:
        """Return the bounds by some of the rows."""
        steps, reach, counts = self.steps[rows], self.reach[rows, None], self.counts[rows]
        minus_sech2, middle = -self.sech2[rows, None], (self.sizes[:, None] - 1) / 2.0
        bounds = np.empty(corners.shape[1])
        n_together = max(1, CHUNK // max(counts.size, 1))
        for first in range(0, corners.shape[1], n_together):
            # Boxes that stick out of the grid are bounded as if they did not: more, never less, survives.
            distance = steps @ (corners[:, first : first + n_together] + middle)
            distance -= np.rint(distance)
            np.abs(distance, out=distance)
            distance -= reach
            np.maximum(distance, 0.0, out=distance)
            factors = _least_square_sines(distance)
            # Squared moduli, with room for their roundings.
            factors *= minus_sech2
            factors += 1.0 + 32.0 * UNIT
            # A product below the range of floats is below any threshold.
            with np.errstate(divide="ignore", under="ignore"):
                # A product takes less time than logarithms, and copies of a few rows more than either.
                if counts.size <= FEW_ROWS:
                    logs = counts @ np.log(np.minimum(factors, 1.0))
                else:
                    single = counts == 1.0
                    logs = np.log(factors[single].prod(axis=0))
                    logs += counts[~single] @ np.log(np.minimum(factors[~single], 1.0))
            bounds[first : first + n_together] = logs
        return (1.0 - 1e-6) / 2.0 * bounds


def _least_square_sines(half_turns: FloatArray) -> FloatArray:
    """Return lower bounds of sin^2(pi x) for x from 0 to 1/2: cos 2y is less than its series to y^8."""
    square = half_turns * half_turns
    square *= math.pi**2
    sines = square * (-1.0 / 315.0)
    for coefficient in (2.0 / 45.0, -1.0 / 3.0, 1.0):
        sines += coefficient
        sines *= square
    return sines
