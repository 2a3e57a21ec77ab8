"""Linear statistics: tail of one weighted sum of fair coins, and the choice of its engine.

Every h(g_1..g_m) that is affine in the g_i equals observed + unit * (X - X observed) with X = sum_k B_k d_k:
accuracy, means, macro-averages. Coins with large steps are removed first: in P(X <= x), every coin with a
step beyond x must show 0, so only those with smaller steps remain random.

Each engine estimates its costs beforehand. The cheapest exact one runs; if none fits, the sum is bracketed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trackperm.choices import Method
from trackperm.errors import CapacityError
from trackperm.exact.counts import LARGEST
from trackperm.exact.distributions.characteristic import UNIT
from trackperm.exact.distributions.frequencies import MOST_FACTORS, FrequencySearch
from trackperm.exact.distributions.line import FEW_STEPS, LineLaw
from trackperm.exact.distributions.pmf import FEW, LARGEST_PERIOD
from trackperm.exact.distributions.tilt import CERTAIN, TailMass, scale_factor, share_of_swaps
from trackperm.exact.engines import enumeration
from trackperm.exact.engines.choice import Engine, run_cheapest, run_named
from trackperm.exact.engines.enumeration import counts_up_to, halves
from trackperm.exact.engines.linear import binomial, dynamic
from trackperm.exact.engines.linear.bracket import LOG_FAILURE, bracket_tail, rounded, sufficient_spacing
from trackperm.exact.engines.linear.lattice import (
    BYTES_PER_FREQUENCY,
    LOG_LOST,
    line_window,
    log_pruned,
    upper_tails,
    upper_tilt,
)
from trackperm.exact.types import INSIDE, OUTSIDE, IntArray, Membership

EXACT_IN_FLOATS = 2**52
"""Largest integer whose half is exact in float64."""

LOG2_LISTED = 21
"""Binary logarithm of the largest number of configurations of one half: 2^21 take under a second."""

QUICK = 1.0
"""Estimated seconds that one tail of a bracket may take: a bracket needs several."""

MOST_BITS = 50
"""Largest number of bits of a number of cells whose time is estimated: more never fit in memory."""

BRACKET_WIDTH = 2e-3
"""Intended relative width of a bracket, which changes the third digit of a p-value at most."""

MOST_GUESSES = 40
"""Largest number of rough brackets; each may come closer to the size of the tail by exp(LOG_FAILURE)."""

LOG2_ROOT = 20
"""Binary logarithm of twice the standard deviation, in units fine enough to guess a tail."""


LATTICE_SECONDS = 4e-4
"""Estimated seconds of the lattice engine for the smallest problem."""


@dataclass(frozen=True)
class LinearStatistic:
    """Statistic observed + unit * (X - X observed), with X = sum_k d_k Binomial(c_k, 1/2).

    Attributes
    ----------
    law : LineLaw
        Distribution of X under fair swaps.
    n_up : ndarray of int64, shape (K,)
        Observed number of coins of each kind that show 1.
    unit : Fraction
        Change of the statistic for one unit of X; positive.
    observed : Fraction
        Observed statistic.
    """

    law: LineLaw
    n_up: IntArray
    unit: Fraction
    observed: Fraction

    @classmethod
    def from_differences(
        cls, differences: npt.NDArray[Any], counts: IntArray, unit: Fraction, observed: Fraction
    ) -> LinearStatistic:
        """Fold signed differences d_n, whose contribution a swap removes: X has steps |d_n|.

        `differences`, shape (J,), need not be distinct; `counts` are the examples of each.
        """
        if differences.size <= FEW_STEPS:
            # A dictionary folds few differences in less time than NumPy takes to start.
            numbers: dict[int, list[int]] = {}
            for difference, count in zip(differences.tolist(), counts.tolist(), strict=True):
                if difference:
                    found = numbers.setdefault(abs(difference), [0, 0])
                    found[0] += count
                    found[1] += count if difference > 0 else 0
            few = sorted(numbers)
            sizes = np.array(few, dtype=differences.dtype)
            totals, ups = np.array([numbers[size] for size in few], dtype=np.int64).reshape(-1, 2).T
        else:
            sizes, places = np.unique(np.abs(differences), return_inverse=True)
            totals, ups = np.zeros((2, sizes.size), dtype=np.int64)
            np.add.at(totals, places, counts)
            np.add.at(ups, places, np.where(differences > 0, counts, 0))
            first = int(sizes[0] == 0)
            sizes, totals, ups = sizes[first:], totals[first:], ups[first:]
        law, divisor = LineLaw(sizes, totals).divided()
        return cls(law, ups, unit if divisor == 1 else divisor * unit, observed)

    @cached_property
    def observed_point(self) -> int:
        """Observed value of X."""
        return self.law.value(self.n_up)

    @property
    def is_antisymmetric(self) -> bool:
        """Whether exchanging all pairs negates the statistic."""
        return 2 * self.observed == self.unit * (2 * self.observed_point - self.law.total)

    def value(self, point: int) -> Fraction:
        """Return the statistic at X = `point`."""
        return self.observed + self.unit * (point - self.observed_point)

    def values(self, points: IntArray) -> npt.NDArray[np.float64]:
        """Return the statistic at integer points, in floating point."""
        return float(self.value(0)) + float(self.unit) * points.astype(np.float64)


@dataclass(frozen=True)
class UpperRay:
    """Region of the integers from `least` up."""

    least: int

    def membership(self, points: Sequence[IntArray]) -> Membership:
        """Classify integers, given as one coordinate array."""
        return np.where(points[0] >= self.least, INSIDE, OUTSIDE).astype(np.int8)


def linear_tails(
    law: LineLaw, limits: Sequence[int], method: Method, memory_budget: int
) -> tuple[list[TailMass], Method, str]:
    """Return P(X <= limit) for each limit, the engine used, and the reason for it.

    Limits are to be at least 0, the greatest first, and close to each other; `method` is ``auto`` or the name
    of an engine. It raises CapacityError if the named engine cannot run, and InputError if it is not for
    linear statistics.
    """
    if limits[-1] >= law.total:
        return [CERTAIN for _ in limits], "enumerate", "every swap is as extreme"
    if method == "auto" and _is_binomial(law) and limits[-1] >= law.steps[0] == 1:
        # No coin is forced, and 1 is the only divisor.
        engine = _binomial(law, limits)
        if engine.obstacle(memory_budget) is None:
            return engine.run(), engine.name, engine.why
    reduced = _Reduced.of(law, limits)
    rest, limits = reduced.law, reduced.limits
    if limits[-1] >= rest.total:
        why = "every swap that keeps the large differences is as extreme"
        return reduced.tails([CERTAIN for _ in limits]), "enumerate", why
    if method == "auto":
        try:
            engines = [_binomial(rest, limits)] if _is_binomial(rest) else _exact_engines(rest, limits)
            tails, engine = run_cheapest(engines, memory_budget)
        except CapacityError:
            engine = _bracket(rest, limits, memory_budget)
            tails = engine.run()
    else:
        engines = [*_exact_engines(rest, limits), _bracket(rest, limits, memory_budget)]
        tails, engine = run_named(method, engines, memory_budget, others=["monte-carlo"])
    return reduced.tails(tails), engine.name, engine.why


def exact_tails(
    law: LineLaw, limits: Sequence[int], memory_budget: int, log_lost: float = LOG_LOST
) -> list[TailMass]:
    """Return P(X <= limit) for each limit by the cheapest exact engine; limits as for :func:`linear_tails`.

    The lattice engine may lose `log_lost` (:func:`~trackperm.exact.engines.linear.lattice.upper_tails`). It
    raises CapacityError if none fits.
    """
    if limits[-1] >= law.total:
        return [CERTAIN for _ in limits]
    reduced = _Reduced.of(law, limits)
    if reduced.limits[-1] >= reduced.law.total:
        return reduced.tails([CERTAIN for _ in limits])
    found, _ = run_cheapest(_exact_engines(reduced.law, reduced.limits, log_lost), memory_budget)
    return reduced.tails(found)


def exact_seconds(
    law: LineLaw, greatest: int, memory_budget: int, spacing: int = 1, log_lost: float = LOG_LOST
) -> float:
    """Estimate the time of P(X <= greatest), with steps rounded to `spacing`; inf if no engine fits."""
    rough, limit = law, greatest
    if spacing > 1:
        rough, _ = rounded(law, spacing)
        limit = (2 * greatest - law.total + rough.total * spacing) // (2 * spacing)
    if not 0 <= limit < rough.total:
        return 0.0
    reduced = _Reduced.of(rough, [limit])
    if reduced.limits[-1] >= reduced.law.total:
        return 0.0
    engines = _exact_engines(reduced.law, reduced.limits, log_lost)
    return min(math.inf if e.obstacle(memory_budget) is not None else e.seconds for e in engines)


class _Reduced(NamedTuple):
    """Distribution below a limit, without forced coins and common divisors.

    P(X <= x) = 2^-n_forced P(X / divisor <= x // divisor) over the remaining coins; the others must show 0.
    """

    law: LineLaw
    limits: list[int]
    n_forced: int

    @classmethod
    def of(cls, law: LineLaw, limits: Sequence[int]) -> _Reduced:
        rest, divisor = law.below(max(limits)).divided()
        return cls(rest, [limit // divisor for limit in limits], law.n_coins - rest.n_coins)

    def tails(self, tails: Sequence[TailMass]) -> list[TailMass]:
        """Convert tails of the reduced distribution into those of the original."""
        return [_scaled(tail, self.n_forced) for tail in tails]


def _scaled(tail: TailMass, n_coins: int) -> TailMass:
    """Return the probability times 2^-n_coins."""
    if n_coins == 0:
        return tail
    log_scale = tail.log_scale - n_coins * math.log(2.0)
    if tail.error >= 1.0:
        # An upper bound stays valid; a lower bound, if any, rises no more than the upper one.
        roundings = 4.0 * UNIT * (n_coins + abs(log_scale))
        return TailMass(log_scale, tail.scaled * (1.0 + roundings), tail.error * (1.0 + 4.0 * roundings))
    if tail.log_scale == 0.0 and tail.log + log_scale > -690.0:
        return TailMass(0.0, math.ldexp(tail.scaled, -n_coins), tail.error)
    return TailMass(log_scale, tail.scaled, tail.error + (2.0 * n_coins + 2.0 * abs(log_scale)) * UNIT)


def _exact_engines(law: LineLaw, limits: Sequence[int], log_lost: float = LOG_LOST) -> list[Engine]:
    engines = [_enumerate(law, limits), _dp(law, limits)]
    if _is_binomial(law):
        engines.append(_binomial(law, limits))
    # An engine within the lattice engine's least time would finish before the planning alone.
    is_late = any(engine.refusal is None and engine.seconds <= LATTICE_SECONDS for engine in engines)
    return [*engines, _lattice(law, limits, log_lost, planned=not is_late)]


def _is_binomial(law: LineLaw) -> bool:
    return law.steps.size == 1 and law.n_coins <= binomial.MOST_COINS


def _binomial(law: LineLaw, limits: Sequence[int]) -> Engine:
    return Engine(
        "binomial",
        seconds=0.0,
        n_bytes=64 * 7 * math.isqrt(law.n_coins),
        refusal=None,
        why="every differing example counts the same",
        run=lambda: [binomial.binomial_tail(law.n_coins, limit) for limit in limits],
    )


def _enumerate(law: LineLaw, limits: Sequence[int]) -> Engine:
    refusal, n_listed, small = None, 0, law.n_coins <= enumeration.MOST_COINS and law.total <= LARGEST
    n_bits = law.n_coins + law.total.bit_length()
    log_configurations = float(np.log2(law.multiplicities + 1.0).sum())
    if log_configurations > 2 * LOG2_LISTED:
        refusal = f"there are 2^{log_configurations:.0f} configurations; the limit is 2^{2 * LOG2_LISTED}"
    else:
        n_listed = sum(math.prod(int(law.multiplicities[row]) + 1 for row in side) for side in halves(law))
    return Engine(
        "enumerate",
        seconds=4e-5 + 8e-6 * law.steps.size + n_listed * (3e-7 if small else 3e-6 + 1e-9 * n_bits),
        n_bytes=n_listed * (80 if small else 512 + n_bits // 2),
        refusal=refusal,
        why=f"{law.n_coins} differing examples: swaps listed in two halves",
        run=lambda: [share_of_swaps(count, law.n_coins) for count in counts_up_to(law, limits)],
    )


def _dp(law: LineLaw, limits: Sequence[int]) -> Engine:
    n_cells = limits[0] + 1
    huge = n_cells.bit_length() > MOST_BITS
    return Engine(
        "dp",
        seconds=math.inf if huge else 3e-5 + law.n_coins * (1.5e-6 + 0.5e-9 * n_cells),
        n_bytes=dynamic.BYTES_PER_CELL * n_cells,
        refusal=None,
        why=f"{law.n_coins} differing examples, {'many' if huge else n_cells} values in the tail",
        run=lambda: dynamic.dynamic_tails(law, limits),
    )


def _lattice(law: LineLaw, limits: Sequence[int], log_lost: float, *, planned: bool) -> Engine:
    """Return the lattice engine, with its least cost unless `planned`."""
    refusal, seconds, frequencies = None, 0.0, 0.0
    if law.total > EXACT_IN_FLOATS:
        refusal = "sums of the differences exceed 2^52, beyond which floats are not exact"
    elif law.width > LARGEST_PERIOD:
        n_bits, most = law.width.bit_length(), LARGEST_PERIOD.bit_length() - 1
        refusal = f"its window has about 2^{n_bits} points; the limit is 2^{most}"
    elif planned:
        lattice = law.lattice()
        tilt = upper_tilt(lattice, law.total - limits[0])
        _, period, _ = line_window(lattice, tilt, log_lost)
        threshold = log_pruned(log_lost, period)
        search = FrequencySearch(lattice, tilt, (period,), threshold)
        # The main peak is a normal law's; elsewhere, frequencies survive as often as random ones.
        deviation = math.sqrt(float(lattice.covariance(tilt)[0, 0]))
        peak = period * math.sqrt(-2.0 * threshold) / (2.0 * math.pi * max(deviation, 1e-300))
        frequencies = min(peak + period / 2 * search.share_of_survivors, period / 2 + 1)
        seconds = 3e-8 * (frequencies + 2.0) * law.steps.size + 4e-9 * search.least_factors
        if search.least_factors > MOST_FACTORS:
            needed = f"{search.least_factors:.0e} factors"
            refusal = f"the search for frequencies needs {needed}; the limit is {MOST_FACTORS:.0e}"
    return Engine(
        "lattice",
        seconds=LATTICE_SECONDS + seconds,
        n_bytes=int(BYTES_PER_FREQUENCY * min(frequencies, FEW)) + 128 * law.steps.size,
        refusal=refusal,
        why="linear statistic: one-dimensional lattice",
        run=lambda: upper_tails(law.lattice(), [law.total - limit for limit in limits], log_lost),
    )


def _bracket(law: LineLaw, limits: Sequence[int], memory_budget: int) -> Engine:
    def run() -> list[TailMass]:
        return [_bracketed(law, limit, memory_budget) for limit in limits]

    return Engine(
        "bracket",
        seconds=math.inf,
        n_bytes=0,
        refusal=None,
        why=f"{law.n_coins} differing examples, a lattice too fine: rounded, with certified ends",
        run=run,
    )


def _bracketed(law: LineLaw, greatest: int, memory_budget: int) -> TailMass:
    """Return a bracket with the finest rounding that fits, starting from one that is sufficient."""

    def tails(rough: LineLaw, limits: list[int]) -> list[TailMass]:
        return exact_tails(rough, limits, memory_budget)

    spacing = sufficient_spacing(law, greatest, BRACKET_WIDTH)
    while spacing <= law.root and exact_seconds(law, greatest, memory_budget, spacing) > QUICK:
        spacing *= 4
    # Rough brackets estimate the tail, on which the width depends.
    log_guess = _chernoff(law, greatest, 64 * spacing)
    while spacing <= law.root:
        try:
            for _ in range(MOST_GUESSES):
                last, log_guess = log_guess, bracket_tail(law, greatest, 64 * spacing, log_guess, tails).log
                if log_guess > last + LOG_FAILURE / 2.0:
                    break
            return bracket_tail(law, greatest, spacing, log_guess, tails)
        except CapacityError:
            spacing *= 4
    raise CapacityError(f"{law.steps.size:,} distinct differences are too many for any rounding")


def _chernoff(law: LineLaw, greatest: int, spacing: int) -> float:
    """Estimate the logarithm of Chernoff's bound of P(X <= greatest), with rounded steps."""
    spacing = max(spacing, law.root >> LOG2_ROOT)
    rough, _ = rounded(law, spacing)
    limit = (2 * greatest - law.total + rough.total * spacing) // (2 * spacing)
    if not 0 <= limit < rough.total:
        # If rounding has left nothing, Hoeffding's bound replaces it.
        return -((max(law.total - 2 * greatest, 0) / law.root) ** 2) / 2.0
    lattice, point = rough.lattice(), rough.total - limit
    return scale_factor(lattice, upper_tilt(lattice, point), (point,)).log
