r"""Tails of a weighted sum of hypergeometric counts: attempts permuted within examples.

The sum is tilted so that its mean is where the tail begins. Counts with the same step are convolved directly,
with positive terms only. There is one step if each system attempts all examples equally often.

Across steps s_g, with masses f_g of the count in units of its step, the characteristic function is
prod_g hat f_g(s_g theta). In a short window of P integers it is transformed back: hat f_g(s_g .) is one
transform of f_g with its masses placed at multiples of s_g. In the Euclidean norm a transform errs by at most
FFT_ROUNDINGS log2(P) u of its result (`distributions.pmf`), no other factor of the product is above 1, and a
sum over cells with weights of at most 1 errs by at most this times the norm of the weights (Cauchy and
Schwarz). In longer windows the few frequencies that matter are found with coins whose characteristic function
bounds this one, and the tail is summed over them as in `engines.linear.lattice`. Both error bounds include
roundings of the masses, mass that was left out, and mass outside the window.

Steps that are too large for both are rounded to multiples of r: s_k = r q_k + e_k. With
S - E S = r (Q - E Q) + R and R = sum e_k (w_k - E w_k), by Hoeffding's inequality

    P(R >= rho) <= exp(-2 rho^2 / sum_k c_k (e_k width_k)^2),

so P(S >= y) lies between P(r (Q - E Q) >= y - E S + rho) - P(-R > rho) and
P(r (Q - E Q) >= y - E S - rho) + P(R > rho).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from trackperm.errors import CapacityError
from trackperm.exact.distributions.characteristic import UNIT, ComplexArray, FloatArray, remainders
from trackperm.exact.distributions.frequencies import FrequencySearch
from trackperm.exact.distributions.hypergeometric import LOG_2, LOG_LOST, SHORT, HypergeometricSum, ScaledMass
from trackperm.exact.distributions.pmf import (
    BYTES_PER_CELL,
    FFT_ROUNDINGS,
    LARGEST_PERIOD,
    LOG_PRUNED,
    LOG_WINDOW,
    MOST_SURVIVING_FACTORS,
    fast_length,
)
from trackperm.exact.distributions.rounded_sum import RoundedSum
from trackperm.exact.distributions.tilt import CERTAIN, EMPTY, TailMass, certified
from trackperm.exact.engines.linear.lattice import BYTES_PER_FREQUENCY, folded_angles, tail_sums
from trackperm.exact.types import IntArray
from trackperm.messages import size

PERMUTED = "attempts permuted within examples"
"""Reason of the method, as a result states it."""

ROUNDED = "the lattice of the weights is too fine: rounded, with certified ends"

MEANS = "swap the means of examples instead, as `difference_test` does; that is valid for many examples only."
"""Hint of every refusal for size."""

MOST_DIRECT = 2**16
"""Largest number of cells of a directly convolved count: the products take seconds."""

MOST_BITS = 2**32
"""Largest total size of the exact integers of all masses: they take seconds to compute."""

EXACT_IN_FLOATS = 2**52
"""Largest sum whose half is exact in float64."""

SECONDS_PER_CELL = 6e-8
"""Estimated time of one transform for each cell of the window."""

MOST_SECONDS = 15.0
"""Estimated seconds of transforms beyond which rounded steps are better than waiting."""

QUICK = 0.05
"""Estimated seconds of transforms below which the search for frequencies takes longer itself."""

CHUNK = 2**17
"""Frequencies, or factors of the characteristic function, per step: 2 MiB of complex numbers."""

SINES = 5
"""Measured time of a sine and a cosine, in complex products."""

MOST_FREQUENCIES = 2**20
"""Largest number of frequencies of a sum: with `BYTES_PER_FREQUENCY`, 256 MiB."""

LOG2_GREATEST = 20
"""Binary logarithm of the greatest step, in units in which a window is estimated."""

LOG2_CELLS = (36, 28, 20)
"""Binary logarithms of the windows' cells for which steps are rounded; the first one that fits is used."""

LOG2_SHOWN = 18
"""Binary logarithm of the cells of a null distribution with rounded steps: enough for any chart."""

LOG_FAILURE = -24.0
"""Logarithm, relative to the tail, of the probability that the remainder exceeds rho: 4e-11."""


def attempts_tails(
    law: HypergeometricSum, points: Sequence[int], memory_budget: int
) -> tuple[list[TailMass], str]:
    """Return P(S >= point) for each point, and the name of the method.

    Points have to be close to each other: the first one decides the tilt. It raises CapacityError if there
    are too many attempts.
    """
    try:
        return _tails(law, points, points[0], memory_budget), PERMUTED
    except CapacityError as error:
        refusal = error
    for bits in LOG2_CELLS:
        try:
            rough = _fitting(law, points[0], 2**bits)
            if rough.spacing == 1:
                continue
            return [_bracketed(rough, point, memory_budget) for point in points], f"{PERMUTED}; {ROUNDED}"
        except CapacityError as error:
            refusal = error
    raise refusal


def check_attempts(first: IntArray, second: IntArray, passes: IntArray) -> None:
    """Refuse examples whose exact masses need integers of more than `MOST_BITS` bits in all."""
    n_attempts = first.astype(np.float64) + second
    widths = np.minimum(first, passes) - np.maximum(0, passes - second) + 1.0
    if float((widths * widths) @ np.log2(n_attempts)) > MOST_BITS:
        raise CapacityError(
            f"up to {n_attempts.max():.0f} attempts are too many to permute within an example",
            hint=MEANS,
        )


@dataclass(frozen=True)
class TiltedMass:
    """Distribution of S under a tilt, as masses of the counts with the same step.

    Attributes
    ----------
    tilt : float
        The tilt, at least 0.
    groups : dict
        Masses of each step's count, in units of the step; they add up to 1.
    scale, exponent, reference : float, int and int
        scale 2^exponent times a tilted mass is P(S = y) exp(tilt (y - reference)).
    start, period : int
        Least value and length of a window that contains all but exp(LOG_WINDOW) of the mass.
    total : int
        Greatest value of S.
    """

    tilt: float
    groups: dict[int, ScaledMass]
    scale: float
    exponent: int
    reference: int
    start: int
    period: int
    total: int

    @classmethod
    def of(cls, law: HypergeometricSum, tilt: float) -> TiltedMass:
        """Convolve counts that have the same step; raise CapacityError if there are too many values."""
        start, end = _window(law, tilt)
        _check_counts(law, tilt)
        found, reference = law.groups(tilt)
        groups, scale, exponent = {}, 1.0, 0
        for step, mass in found.items():
            share = float(mass.values.sum())
            scale, shift = math.frexp(scale * share)
            exponent += mass.exponent + shift
            # Roundings of the share, its product and a quotient.
            roundings = mass.roundings + math.log2(mass.values.size) + 24.0
            groups[step] = ScaledMass(mass.start, mass.values / share, 0, roundings, mass.lost)
        return cls(tilt, groups, scale, exponent, reference, start, end - start + 1, law.total)

    @property
    def roundings(self) -> float:
        """Bound on the relative errors of the masses, in units of the last place."""
        return sum(mass.roundings for mass in self.groups.values())

    @property
    def lost(self) -> float:
        """Bound on the share of the mass that was left out."""
        return sum(mass.lost for mass in self.groups.values())

    def outside(self, period: int) -> float:
        """Return a bound on the share of the mass that wraps around in a window of that length."""
        return 0.0 if self.start == 0 and period > self.total else 2.0 * math.exp(LOG_WINDOW)

    def seconds(self, period: int) -> float:
        """Estimate the time of the transforms in a window of that length."""
        return 0.0 if list(self.groups) == [1] else SECONDS_PER_CELL * period * len(self.groups)

    def certified(self, point: int, total: float, error: float) -> TailMass:
        """Return scale 2^exponent total exp(-tilt (point - reference)); `error` bounds that of `total`."""
        total, error = self.scale * total, self.scale * error
        if self.tilt == 0.0 and self.exponent > -900:
            return certified(0.0, math.ldexp(total, self.exponent), math.ldexp(error, self.exponent))
        scale, shift = self.exponent * LOG_2, self.tilt * (point - self.reference)
        roundings = 4.0 * (abs(scale) + abs(shift) + abs(scale - shift)) + 4.0
        return certified(scale - shift, total, error + UNIT * roundings * abs(total))


@dataclass(frozen=True)
class Cells:
    """Masses of S = start + j under a tilt.

    `roundings` bounds their relative errors in units of the last place, `error_norm` the Euclidean norm of
    their absolute errors, and `lost` the share of the mass that was left out or wrapped around.
    """

    start: int
    values: FloatArray
    roundings: float
    error_norm: float
    lost: float

    @classmethod
    def of(cls, law: TiltedMass, memory_budget: int) -> Cells:
        """Compute the masses in the window of a law.

        It raises CapacityError if they do not fit the budget in bytes, or would take more than
        `MOST_SECONDS`.
        """
        if list(law.groups) == [1]:
            mass = law.groups[1]
            return cls(mass.start, mass.values, mass.roundings, 0.0, mass.lost)
        period, n_groups = fast_length(law.period), len(law.groups)
        n_bytes, seconds = BYTES_PER_CELL * period, law.seconds(period)
        if n_bytes > memory_budget or seconds > MOST_SECONDS:
            raise CapacityError(
                f"the lattice of the weights needs a window of {period} points, about "
                f"{size(n_bytes)} and {seconds:.0f} s",
                hint="numbers of attempts with a smaller common multiple need less.",
            )
        spectrum = np.ones(period // 2 + 1, dtype=np.complex128)
        norms = 0.0
        for step, mass in law.groups.items():
            places = (mass.start + np.arange(mass.values.size)) * step % period
            placed = np.bincount(places, weights=mass.values, minlength=period)
            spectrum *= np.fft.rfft(placed)
            norms += float(np.linalg.norm(placed))
        cells = np.fft.irfft(spectrum, period)
        norm = float(np.linalg.norm(cells))
        transform = FFT_ROUNDINGS * (math.log2(period) + 1.0)
        # A product of complex numbers errs by less than three roundings.
        error_norm = 1.01 * UNIT * (transform * (norms + norm) + 3.0 * n_groups * norm)
        # Each addition of masses in one cell is one more rounding.
        roundings, lost = law.roundings + n_groups, law.lost + law.outside(period)
        return cls(law.start, np.roll(cells, -law.start % period), roundings, error_norm, lost)

    def tail(self, law: TiltedMass, point: int) -> TailMass:
        """Return P(S >= point)."""
        first = max(point, self.start)
        masses = self.values[first - self.start :]
        offsets = np.arange(first - point, first - point + masses.size, dtype=np.float64)
        weights = np.exp(-law.tilt * offsets)
        total = float((masses * weights).sum())
        # Roundings of pairwise summation in blocks, an exponential and a product.
        error = UNIT * (self.roundings + math.log2(masses.size + 1) + 40.0) * abs(total)
        error += self.error_norm * float(np.linalg.norm(weights)) + 1.01 * self.lost
        return law.certified(point, total, error)


def null_cells(law: HypergeometricSum, memory_budget: int) -> tuple[Cells, RoundedSum]:
    """Return the masses of S in a window, or of the rounded sum Q if S has too many.

    It raises CapacityError if a window of either does not fit `memory_budget` bytes.
    """
    whole = RoundedSum(law, 1, (law.mean, law.mean), 0)
    middle = math.floor(law.mean)
    try:
        tilted = TiltedMass.of(law, 0.0)
        if list(tilted.groups) == [1] or tilted.period <= 4 << LOG2_SHOWN:
            return Cells.of(tilted, memory_budget), whole
    except CapacityError:
        pass
    rough = _fitting(law, middle, 1 << LOG2_SHOWN)
    return Cells.of(TiltedMass.of(rough.law, 0.0), memory_budget), rough


def _tails(law: HypergeometricSum, points: Sequence[int], middle: int, memory_budget: int) -> list[TailMass]:
    """Return P(S >= point) for each point, under the tilt for a point in their middle."""
    inner = [point for point in points if 0 < point <= law.total]
    found = {}
    if inner:
        tilted = TiltedMass.of(law, _tilt(law, middle))
        try:
            quick = tilted.seconds(tilted.period) <= QUICK
            tails = None if quick else _summed(law, tilted, inner, memory_budget)
        except CapacityError:
            tails = None
        if tails is None:
            cells = Cells.of(tilted, memory_budget)
            tails = [cells.tail(tilted, point) for point in inner]
        found = dict(zip(inner, tails, strict=True))
    return [CERTAIN if point <= 0 else found.get(point, EMPTY) for point in points]


def _summed(
    law: HypergeometricSum, tilted: TiltedMass, points: Sequence[int], memory_budget: int
) -> list[TailMass]:
    """Return P(S >= point) for each point, from the frequencies that matter."""
    period, start = tilted.period, tilted.start
    if period > LARGEST_PERIOD:
        raise CapacityError(f"the window has {period} points; the limit is {LARGEST_PERIOD}")
    sizes = [mass.values.size for mass in tilted.groups.values()]
    n_factors = sum(size if size <= SHORT else SINES * size for size in sizes)
    limit = min(MOST_FREQUENCIES, MOST_SURVIVING_FACTORS // n_factors, memory_budget // BYTES_PER_FREQUENCY)
    coins, biases = law.coins(tilted.tilt)
    search = FrequencySearch(coins, np.zeros(1), (period,), LOG_PRUNED, biases)
    frequencies = search.survivors(limit)[:, 0]
    spectrum = (
        _characteristic(tilted, points[0], frequencies[first : first + CHUNK])
        for first in range(0, frequencies.size, CHUNK)
    )
    sums = tail_sums(spectrum, tilted.tilt, start, period, points, LOG_PRUNED)
    lost = tilted.outside(period) + 1.01 * tilted.lost
    tails = []
    for point, (total, error) in zip(points, sums, strict=True):
        if point > start:
            tails.append(tilted.certified(point, total, error + lost))
        else:
            tails.append(TailMass(0.0, 1.0, UNIT + 2.0 * lost if tilted.tilt == 0.0 else 1.0))
    return tails


def _characteristic(
    law: TiltedMass, origin: int, frequencies: IntArray
) -> tuple[IntArray, ComplexArray, FloatArray]:
    """Return frequencies, the conjugates of the characteristic function of S - origin, and their errors."""
    period, shift, roundings = law.period, -origin, 16.0
    values = np.ones(frequencies.size, dtype=np.complex128)
    for step, mass in law.groups.items():
        turns = remainders(frequencies, np.array(step % period), period)
        shift += step * mass.start
        size = mass.values.size
        if size <= SHORT:
            root = np.exp(-1j * folded_angles(turns, period))
            factor = np.full(frequencies.size, mass.values[-1], dtype=np.complex128)
            for value in mass.values[-2::-1].tolist():
                factor *= root
                factor += value
            values *= factor
            # The root errs by 4 roundings, a product by 3 and a sum by one; each enters all later ones.
            roundings += mass.roundings + 8.0 * size + 4.0
            continue
        for first in range(0, frequencies.size, max(1, CHUNK // size)):
            chunk = slice(first, first + max(1, CHUNK // size))
            # Counts have at most 2^16 values, and windows 2^44: products fit.
            angles = folded_angles(turns[chunk, None] * np.arange(size) % period, period)
            values[chunk] *= np.cos(angles) @ mass.values - 1j * (np.sin(angles) @ mass.values)
        # Roundings: each term's angle, sine and product; their sum; the product with other factors.
        roundings += mass.roundings + size + 24.0
    values *= np.exp(-1j * folded_angles(remainders(frequencies, np.array(shift % period), period), period))
    return frequencies, values, np.full(frequencies.size, 1.01 * UNIT * roundings)


def _fitting(law: HypergeometricSum, point: int, n_cells: int) -> RoundedSum:
    """Round steps so that the window under the tilt for a point has about `n_cells` integers."""
    greatest = int(law.steps.max())
    rough = RoundedSum.of(law, max(greatest >> LOG2_GREATEST, 1))
    start, end = _window(rough.law, _tilt(rough.law, rough.point(Fraction(point))))
    spacing = rough.spacing * (end - start + 1) // n_cells
    return RoundedSum.of(law, max(min(spacing, greatest), 1))


def _bracketed(rough: RoundedSum, point: int, memory_budget: int) -> TailMass:
    """Return an upper bound of P(S >= point), whose error reaches down to a certified lower bound."""
    middle = rough.point(Fraction(point))
    log_failure = min(rough.law.log_bound(_tilt(rough.law, middle), middle), 0.0) + LOG_FAILURE
    rho = rough.reach(log_failure)
    ends = [rough.point(Fraction(point + shift)) for shift in (-rho, rho)]
    upper, lower = _tails(rough.law, ends, middle, memory_budget)
    reference = max([log_failure, *(end.log for end in (upper, lower) if end.scaled > 0.0)])
    failure = math.exp(log_failure - reference)
    low, high = -failure, failure
    if upper.scaled > 0.0:
        high += math.exp(upper.log - reference) * (1.0 + upper.error)
    if lower.scaled > 0.0:
        low += math.exp(lower.log - reference) * (1.0 - min(lower.error, 1.0))
    # Roundings of two exponentials and a logarithm of this size.
    roundings = 16.0 * UNIT * (4.0 + abs(reference))
    width = high / low * (1.0 + 4.0 * roundings) - 1.0 if low > 0.0 else 1.0
    return TailMass(reference, high * (1.0 + roundings), min(width, 1.0))


def _tilt(law: HypergeometricSum, point: int) -> float:
    """Return the tilt that raises the mean to a point, or to 0.25 below the maximum; 0 if none is needed."""
    _check_total(law)
    target = min(float(point), law.total - 0.25)
    return law.tilt_for(target) if target > law.mean_and_variance(0.0)[0] else 0.0


def _check_total(law: HypergeometricSum) -> None:
    if law.total > EXACT_IN_FLOATS:
        raise CapacityError("sums of the weights exceed 2^52, beyond which floats are not exact")


def _check_counts(law: HypergeometricSum, tilt: float) -> None:
    """Refuse counts with too many values for direct convolution."""
    _, variances = law.moments(tilt)
    steps, inverse = np.unique(law.steps, return_inverse=True)
    spread, reach = np.zeros(steps.size), np.zeros(steps.size)
    np.add.at(spread, inverse, law.multiplicities * variances)
    np.add.at(reach, inverse, law.multiplicities * law.widths.astype(np.float64))
    for variance, width in zip(spread.tolist(), reach.tolist(), strict=True):
        if min(width, 2.0 * _radius(variance, 1.0, LOG_LOST)) > MOST_DIRECT:
            raise CapacityError(
                f"the passes of examples with the same weight vary over more than {MOST_DIRECT} numbers",
                hint=MEANS,
            )


def _window(law: HypergeometricSum, tilt: float) -> tuple[int, int]:
    """Return ends of an interval that contains all but exp(LOG_WINDOW) of the tilted mass."""
    _check_total(law)
    mean, variance = law.mean_and_variance(tilt)
    radius = (1.0 + 1e-6) * _radius(variance, float(law.steps.max()), LOG_WINDOW) + 1.0
    return max(0, math.floor(mean - radius)), min(law.total, math.ceil(mean + radius))


def _radius(variance: float, step: float, log_probability: float) -> float:
    """Return t with P(|S - E S| >= t) <= exp(log_probability), by Bernstein's inequality."""
    log_side = math.log(2.0) - log_probability
    edge = log_side * step / 3.0
    return edge + math.sqrt(edge * edge + 2.0 * log_side * variance)
