r"""Distribution of a weighted sum of hypergeometric counts, and its convolutions under tilts.

An example has a attempts of one system and b of another, m of which pass. The first system has x passes in
C(a, x) C(b, m - x) of the C(a + b, m) ways to place them, so X is hypergeometric. With w = X - max(0, m - b)
and integer steps s, the sum is S = sum_k sum_{j <= c_k} s_k w_kj. The tilt lambda multiplies the mass of
S = y by exp(lambda y).

A hypergeometric count is a sum of independent coins, because its generating polynomial has only real roots
(Vatutin and Mikhailov 1982); a tilt changes their odds. So Bernstein's inequality holds under every tilt,
with the greatest step as the bound of a summand:

    P_lambda(|S - E S| >= t) <= 2 exp(-t^2 / 2 / (Var S + t max_k s_k / 3)).

Accuracy. Masses of a row come from exact integers. The tilt of a row is relative to its most likely point,
and scales are powers of two, so no normalisation is rounded. All terms of a convolution are positive, so an
entry has at most one rounding for each cell of the shorter array, besides those of its factors. The mass that
is left out is counted separately.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.exact.distributions.characteristic import FloatArray, SwapDistribution
from trackperm.exact.distributions.tilt import solved_tilt
from trackperm.exact.types import IntArray

ROW_ROUNDINGS = 8.0
"""Roundings of a tilted mass: of two quotients of integers, the exponential and its argument, and a
product."""

LOST = 2.0**-90
"""Share of the mass that may be cut off at either end of a convolution: far below one rounding, also after
2^20 convolutions."""

LOG_LOST = -90.0 * math.log(2.0)

LOG_2 = math.log(2.0)
LOG_2_HIGH = float.fromhex("0x1.62e42feep-1")
LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
"""log 2 in two parts, the first of 32 bits, so that integer multiples of it are exact."""

SMALL = 256
"""Largest number of attempts for which masses are cached: 4,096 entries of it take 8 MiB."""

SHORT = 64
"""Number of cells up to which nothing is cut off: shorter arrays save no time."""


@dataclass(frozen=True)
class ScaledMass:
    """Masses of integers: start + j has mass 2^exponent * values[j].

    `roundings` bounds the relative error of each in units of the last place, and `lost` the share of the
    total mass that was left out.
    """

    start: int
    values: FloatArray
    exponent: int
    roundings: float
    lost: float

    def __mul__(self, other: ScaledMass) -> ScaledMass:
        """Return the convolution: the law of the sum of independent counts."""
        values = np.convolve(self.values, other.values)
        start, lost = self.start + other.start, self.lost + other.lost
        if values.size > SHORT:
            limit = LOST * float(values.sum())
            first = int(np.searchsorted(np.cumsum(values), limit))
            last = int(np.searchsorted(np.cumsum(values[::-1]), limit))
            values, start = values[first : values.size - last], start + first
            lost += 2.0 * LOST
        exponent = math.frexp(float(values.max()))[1]
        return ScaledMass(
            start,
            np.ldexp(values, -exponent),
            self.exponent + other.exponent + exponent,
            self.roundings + other.roundings + min(self.values.size, other.values.size) + 1.0,
            lost,
        )

    def __pow__(self, count: int) -> ScaledMass:
        """Return the convolution of `count` copies."""
        if count == 1:
            return self
        half = self ** (count // 2)
        return half * half * self if count % 2 else half * half


@dataclass(frozen=True)
class HypergeometricSum:
    """Distribution of the random variable S = sum_k s_k sum_{j <= c_k} w_kj.

    Attributes
    ----------
    first, second : ndarray of int64, shape (K,)
        Attempts of the two systems, a_k and b_k; positive.
    passes : ndarray of int64, shape (K,)
        Passes of both, m_k; positive, and fewer than there are attempts.
    steps : ndarray of int64, or of Python integers (dtype object), shape (K,)
        Positive s_k.
    multiplicities : ndarray of int64, shape (K,)
        Positive c_k.
    """

    first: IntArray
    second: IntArray
    passes: IntArray
    steps: npt.NDArray[Any]
    multiplicities: IntArray

    @cached_property
    def widths(self) -> IntArray:
        """Greatest value of each w_k: the least of a_k, b_k, m_k and a_k + b_k - m_k."""
        most, least = np.minimum(self.first, self.passes), np.maximum(0, self.passes - self.second)
        return np.asarray(most - least)

    @cached_property
    def total(self) -> int:
        """Greatest value of S."""
        return sum(s * w * c for s, w, c in _integers(self.steps, self.widths, self.multiplicities))

    @cached_property
    def mean(self) -> Fraction:
        """Mean of S, exactly."""
        least = np.maximum(0, self.passes - self.second)
        numerators: dict[int, int] = {}
        for a, b, m, low, s, c in _integers(
            self.first, self.second, self.passes, least, self.steps, self.multiplicities
        ):
            numerators[a + b] = numerators.get(a + b, 0) + c * s * (a * m - low * (a + b))
        return sum((Fraction(top, below) for below, top in numerators.items()), Fraction(0))

    def mirrored(self) -> HypergeometricSum:
        """Return the law of `total` - S: the passes of the second system."""
        return HypergeometricSum(self.second, self.first, self.passes, self.steps, self.multiplicities)

    @cached_property
    def log2_ways(self) -> float:
        """Binary logarithm of the number of ways to place the passes, as `ways` counts them."""
        logs = [
            c * math.log2(math.comb(a + b, w))
            for a, b, w, c in _integers(self.first, self.second, self.widths, self.multiplicities)
        ]
        return math.fsum(logs)

    @cached_property
    def log_edge(self) -> float:
        """Logarithm of the probability that S is `total`."""
        logs = []
        for ways, c in zip(self.ways(), self.multiplicities.tolist(), strict=True):
            logs.append(c * (math.log(ways[-1]) - math.log(sum(ways))))
        return math.fsum(logs)

    def ways(self) -> Iterator[list[int]]:
        """Yield for each row the numbers of ways to place the passes, up to a factor, for every w."""
        for a, b, m in _integers(self.first, self.second, self.passes):
            yield _ways(a, b, m)

    @cached_property
    def _cells(self) -> _Cells:
        return _Cells.of(self)

    def moments(self, tilt: float) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of w_k under a tilt, shape (K,) each."""
        return self._cells.moments(tilt)

    def mean_and_variance(self, tilt: float) -> tuple[float, float]:
        """Return mean and variance of S under a tilt."""
        means, variances = self.moments(tilt)
        steps = self.steps.astype(np.float64)
        weights = self.multiplicities * steps
        return float(weights @ means), float((weights * steps) @ variances)

    def coins(self, tilt: float) -> tuple[SwapDistribution, FloatArray]:
        """Return coins with biases; their characteristic function is nowhere smaller in modulus than S's.

        The squared modulus of a coin with probability q is 1 - 4 q (1 - q) sin^2. Its logarithm is concave in
        the variance q (1 - q), so the coins of a row, as many as its width, may be given equal variances.
        """
        _, variances = self.moments(tilt)
        sech2 = np.clip(4.0 * (1.0 - 1e-6) * variances / self.widths, 1e-300, 1.0)
        law = SwapDistribution(self.steps.astype(np.int64)[:, None], self.multiplicities * self.widths)
        return law, np.arccosh(1.0 / np.sqrt(sech2))

    def log_bound(self, tilt: float, point: int) -> float:
        """Approximate the logarithm of Chernoff's bound of P(S >= point) under a tilt of at least 0."""
        return self._cells.cumulant(tilt) - tilt * point

    def tilt_for(self, target: float) -> float:
        """Return the tilt that puts the mean of S about `target`, between its mean and its greatest value.

        It is rounded to 20 bits, or to fewer for long steps, so that its product with a value is exact.
        """
        largest = float(self.steps.max())

        def moments(tilt: float) -> tuple[float, float]:
            mean, variance = self.mean_and_variance(tilt / largest)
            return mean / largest, variance / (largest * largest)

        found = solved_tilt(moments, target / largest) / largest
        n_bits = min(20, 53 - int((self.steps * self.widths).max()).bit_length())
        fraction, exponent = math.frexp(found)
        return math.ldexp(round(math.ldexp(fraction, n_bits)), exponent - n_bits)

    def rows(self, tilt: float) -> tuple[list[ScaledMass], list[int]]:
        """Return the masses of each w_k under a tilt, relative to a point of the row, and these points.

        A mass is P(w = j) exp(tilt s_k (j - point)).
        """
        return self._cells.tilted(tilt)

    def groups(self, tilt: float) -> tuple[dict[int, ScaledMass], int]:
        """Return the tilted masses of the sum of all w with the same step, by step, and a point of S.

        The product of the masses is P(S = y) exp(tilt (y - point)).
        """
        rows, points = self.rows(tilt)
        parts: dict[int, list[ScaledMass]] = {}
        reference = 0
        for row, point, step, count in zip(
            rows, points, self.steps.tolist(), self.multiplicities.tolist(), strict=True
        ):
            parts.setdefault(step, []).append(row**count)
            reference += point * step * count
        return {step: _product(parts[step]) for step in sorted(parts)}, reference


@dataclass(frozen=True)
class _Cells:
    """Values of all w_k, concatenated, with their masses mantissa * 2^exponent."""

    mantissas: FloatArray
    exponents: IntArray
    starts: IntArray
    rows: IntArray
    values: IntArray
    steps: FloatArray
    multiplicities: IntArray

    @classmethod
    def of(cls, law: HypergeometricSum) -> _Cells:
        sizes = law.widths + 1
        starts = np.cumsum(sizes) - sizes
        rows = np.repeat(np.arange(sizes.size), sizes)
        found = [
            _masses(a, b, m) if a + b > SMALL else _small_masses(a, b, m)
            for a, b, m in _integers(law.first, law.second, law.passes)
        ]
        return cls(
            np.concatenate([mantissas for mantissas, _ in found]),
            np.concatenate([exponents for _, exponents in found]),
            starts,
            rows,
            np.arange(rows.size) - starts[rows],
            law.steps.astype(np.float64),
            law.multiplicities,
        )

    def _logs(self, tilt: float) -> tuple[FloatArray, FloatArray]:
        """Return logarithms of tilted masses, and the greatest one of each row."""
        logs = np.log(self.mantissas) + self.exponents * LOG_2
        logs += tilt * self.steps[self.rows] * self.values
        return logs, np.maximum.reduceat(logs, self.starts)

    def moments(self, tilt: float) -> tuple[FloatArray, FloatArray]:
        logs, greatest = self._logs(tilt)
        masses = np.exp(logs - greatest[self.rows])
        masses /= np.add.reduceat(masses, self.starts)[self.rows]
        means = np.add.reduceat(masses * self.values, self.starts)
        return means, np.add.reduceat(masses * (self.values - means[self.rows]) ** 2, self.starts)

    def cumulant(self, tilt: float) -> float:
        logs, greatest = self._logs(tilt)
        sums = np.add.reduceat(np.exp(logs - greatest[self.rows]), self.starts)
        return float(self.multiplicities @ (np.log(sums) + greatest))

    def tilted(self, tilt: float) -> tuple[list[ScaledMass], list[int]]:
        logs, greatest = self._logs(tilt)
        peaks = np.flatnonzero(logs == greatest[self.rows])
        _, first = np.unique(self.rows[peaks], return_index=True)
        points, scales = self.values[peaks[first]], self.exponents[peaks[first]]
        turns = tilt * (self.steps[self.rows] * (self.values - points[self.rows]))
        halvings = np.rint(turns / LOG_2)
        masses = self.mantissas * np.exp((turns - halvings * LOG_2_HIGH) - halvings * LOG_2_LOW)
        # What underflows is below 2^-1000 of the row's greatest mass.
        shifts = np.clip(halvings, -(2.0**20), 2.0**20).astype(np.int64) + self.exponents - scales[self.rows]
        masses = np.ldexp(masses, shifts.astype(np.int32))
        return [
            ScaledMass(0, values, exponent, ROW_ROUNDINGS, 2.0**-900)
            for values, exponent in zip(np.split(masses, self.starts[1:]), scales.tolist(), strict=True)
        ], points.tolist()


def _masses(a: int, b: int, m: int) -> tuple[FloatArray, IntArray]:
    """Return mantissas and binary exponents of P(X = x), each mantissa rounded once."""
    ways = _ways(a, b, m)
    total = sum(ways)
    shifts = [total.bit_length() - way.bit_length() for way in ways]
    mantissas = [(way << shift) / total for way, shift in zip(ways, shifts, strict=True)]
    return np.array(mantissas), -np.array(shifts, dtype=np.int64)


_small_masses = lru_cache(maxsize=4096)(_masses)


def _integers(*columns: npt.NDArray[Any]) -> list[tuple[int, ...]]:
    """Return rows of Python integers."""
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _ways(a: int, b: int, m: int) -> list[int]:
    """Return numbers proportional to P(X = x) for every x, ascending.

    The law is that of j blue ones among k drawn from p blue and q red ones, read in four ways: the drawn are
    the m passes, the a or b attempts of a system, or the failures. With the least k, j begins with 0.
    """
    p, q, k = min([(a, b, m), (m, a + b - m, a), (a + b - m, m, b), (b, a, a + b - m)], key=itemgetter(2))
    ways = [math.comb(q, k)]
    for j in range(k):
        ways.append(ways[-1] * (p - j) * (k - j) // ((j + 1) * (q - k + j + 1)))
    return ways


def _product(masses: list[ScaledMass]) -> ScaledMass:
    """Return the convolution of all masses, shortest first."""
    heap = [(mass.values.size, index, mass) for index, mass in enumerate(masses)]
    heapq.heapify(heap)
    for index in range(len(masses), 2 * len(masses) - 1):
        product = heapq.heappop(heap)[2] * heapq.heappop(heap)[2]
        heapq.heappush(heap, (product.values.size, index, product))
    return heap[0][2]
