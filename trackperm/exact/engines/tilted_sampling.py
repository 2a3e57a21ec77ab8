r"""Valid p-values far below 1/draws for any number of counts, from swaps drawn with tilted coins.

Proposal. Under the null hypothesis X = sum_k sum_{j <= c_k} B_kj x_k has fair coins. The tilt lambda gives
each coin of row k the odds exp(lambda . x_k) : 1, so that, with the cumulant function K of
`distributions.characteristic`,

    P_lambda(X = x) / P(X = x) = exp(lambda . (x - E/2) - K(lambda)).

A draw has the tilt lambda_j with probability e_j. Its weight is w(x) = 1 / sum_j e_j P_lambda_j(x) / P(x). As
lambda_0 = 0, no weight exceeds 1 / e_0.

The ladder. lambda_j is the fixed point of lambda = s grad t(m), with m the mean of X under lambda, s > 0, and
lambda . m - K(lambda) = l_j^2 / 2 for the fixed :data:`LEVELS` l_j: the point where t grows fastest at a
distance of l_j standard deviations. Steps and gradients are functions of (x_k, c_k), of E and of t alone.
These are the same for every configuration of the pairs, since x_k is the difference of a pair up to its sign:
exchanging the two outputs of any examples changes neither the ladder nor w. An iteration that is stopped
early changes the variance only.

Validity (Harrison 2012). Let Z_0, ..., Z_M be independent draws, R_i the points at least as extreme as Z_i
and p_i = sum_j w(Z_j) 1[Z_j in R_i] / (M + 1). The observed configuration has the density w relative to a
draw. So, with all others drawn and by exchangeability,

    P(p <= a) = E[w(Z_0) 1[p_0 <= a]] = E[sum_i w(Z_i) 1[p_i <= a]] / (M + 1).

Of the Z_i with p_i <= a let Z_* be the least extreme. All of them lie in R_*, so that their weights sum to at
most (M + 1) p_* <= (M + 1) a. Hence P(p <= a) <= a for every a, with any ties, any M and any proposal that is
the same for all configurations. A tilt towards the observed value is not: on the largest of two blocks of
differences it has twice its level.

Two-sided, for t(E - x) = -t(x): p = min(1, 2 p_greater) if the observed value is positive, and the same for
p_less if it is negative. Each of the two events has probability at most a/2. A negative value is reflected,
so that exchanging the runs does not change p.

The estimate. Half of all draws have one more tilt, that at which t(m) is the observed value. The estimate is
the sum of the weights of all draws as extreme as the observed one, with the mixture of all draws as their
density (the balance heuristic of Veach and Guibas 1995), which is unbiased. Its standard error is that of the
two groups of draws. The estimate is not a valid p-value, since its proposal depends on the observed value.

Reproducibility. Draws come in blocks whose number and sizes are determined by the number of rows, of draws
and of tilts. Block i has its own generator, the i-th child of the seed, so that threads do not matter.

References
----------
M. T. Harrison (2012), "Conservative hypothesis tests and confidence intervals using importance sampling",
Biometrika 99.
E. Veach and L. J. Guibas (1995), "Optimally combining sampling techniques for Monte Carlo rendering".
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trackperm.errors import CapacityError
from trackperm.exact.counts import LARGEST
from trackperm.exact.distributions.characteristic import FloatArray, SwapDistribution, log_cosh
from trackperm.exact.distributions.tilt import quantised
from trackperm.exact.engines.axes import Axes
from trackperm.exact.engines.monte_carlo import LARGEST_COUNT, undefined_after_swaps
from trackperm.exact.engines.tilted_draws import (
    BLOCK_CELLS,
    MOST_SPLIT,
    TOSSED,
    exceeds_floats,
    tilted_swaps,
)
from trackperm.exact.types import INSIDE, UNDEFINED, IntArray, Region

N_DRAWS = 20_000
"""Draws by default, and as many again for the estimate: a standard error of 3 % at p = 1e-50."""

FEWEST_DRAWS = 2_000
"""Draws by default, however many rows are drawn: a standard error of 10 % far out."""

MOST_COINS = 2**27
"""Coins that are tossed by default if that leaves :data:`FEWEST_DRAWS`: about 3 seconds."""

UNTILTED = 0.3
"""Share of draws with fair coins: weights are at most 3.4, and p = 0.05 has a standard error of 3 %."""

LEVELS = tuple(float(level) for level in (*range(1, 20), *range(20, 41, 2)))
"""Distances of the ladder in standard deviations. Up to 40, where p is 1e-350, the standard error is
moderate; beyond, p is still valid but far greater than the estimate."""

ROUNDS = 3
"""Steps of the fixed-point iteration at each level, which starts from the direction of the level before."""

HALVINGS = 12
"""Halvings of the interval between two levels, in search of the observed value: 0.0005 of their distance."""

FARTHER = 1.25
"""Ratio of successive levels beyond the ladder, in search of the observed value."""

REACHED = 0.98
"""Part of the largest rate, that of one configuration, beyond which a level cannot be reached."""

FEWEST = 10.0
"""Effective number of draws below which there is no estimate: its standard error would be unreliable."""

BLOCK = 4096
"""Draws per block, and fewer for many coordinates."""


@dataclass(frozen=True)
class TiltedTail:
    """Valid p-value of one side, and an estimate of the exact one.

    Attributes
    ----------
    log_pvalue : float
        Natural logarithm of the valid p-value, at most 0.
    n_samples, n_extreme : int
        Number of draws of the valid p-value, and of these that are at least as extreme as the observed one.
    log_estimate : float or None
        Natural logarithm of the estimate; None if too few draws are as extreme.
    relative_error : float
        Standard error of the estimate, relative to it; infinite without an estimate.
    effective_samples : float
        Effective number of extreme draws of the estimate, (sum w)^2 / sum w^2.
    n_tilts : int
        Number of tilts of the ladder, fair coins not counted.
    seed : int
        Seed that gives the same numbers again, on any number of threads.
    """

    log_pvalue: float
    n_samples: int
    n_extreme: int
    log_estimate: float | None
    relative_error: float
    effective_samples: float
    n_tilts: int
    seed: int


@dataclass(frozen=True)
class Mixture:
    """Mixture of tilts of a law.

    Attributes
    ----------
    law : SwapDistribution
        Distribution of X, of rank r.
    tilts : ndarray of float, shape (J, r)
        The tilts lambda_j.
    shares : ndarray of float, shape (J,)
        Their probabilities e_j.
    """

    law: SwapDistribution
    tilts: FloatArray
    shares: FloatArray

    @cached_property
    def _offsets(self) -> FloatArray:
        """Logarithms of e_j exp(-K(lambda_j))."""
        return np.asarray(np.log(self.shares) - np.array([self.law.cumulant(tilt) for tilt in self.tilts]))

    def log_density(self, points: IntArray) -> FloatArray:
        """Return the log of the density relative to fair coins at points, shape (r, n)."""
        centred = points - np.array([float(e) / 2 for e in self.law.total])[:, None]
        logs = self.tilts @ centred + self._offsets[:, None]
        top = logs.max(axis=0)
        return np.asarray(top + np.log(np.exp(logs - top).sum(axis=0)))

    def joined(self, tilt: FloatArray) -> Mixture:
        """Return the mixture of this one and a tilt in equal parts."""
        return Mixture(self.law, np.vstack([self.tilts, tilt]), np.append(self.shares / 2.0, 0.5))


class Path:
    """Tilts towards the fastest growth of a function of X, by their distance from fair coins.

    Parameters
    ----------
    law : SwapDistribution
        Distribution of X, of rank r.
    value : callable
        t, a function of points of shape (r, n) that returns n floats, NaN where undefined.
    """

    def __init__(self, law: SwapDistribution, value: Callable[[FloatArray], FloatArray]) -> None:
        self._law, self._value = law, value
        self._middle = np.array([float(e) / 2 for e in law.total])
        deviations = np.sqrt(np.diag(law.fair_covariance))
        # A quarter of the unit, unless that is below the roundings of the values.
        steps = np.minimum(1e-3 * deviations, np.maximum(0.25, 1e-6 * deviations))
        self._steps = np.diag(steps)
        self._exponents = np.frexp(deviations)[1]
        self.start = self._gradient(np.zeros(law.rank))

    def value_at(self, tilt: FloatArray) -> float:
        """Return t at the mean of X under a tilt."""
        return float(self._value((self._middle + self._law.centred_mean(tilt))[:, None])[0])

    def tilt(self, level: float, direction: FloatArray) -> FloatArray | None:
        """Return the tilt at a level, found from a first direction; None if the level is out of reach."""
        found = self._scaled(direction, level)
        for _ in range(ROUNDS):
            if found is None:
                return None
            moved = self._gradient(self._law.centred_mean(found))
            if moved is None:
                break
            found = self._scaled(moved, level)
        if found is None:
            return None
        # Relative to the deviations, because one may be 10^12 times another.
        return np.ldexp(quantised(np.ldexp(found, self._exponents)), -self._exponents)

    def _gradient(self, centred: FloatArray) -> FloatArray | None:
        """Return the gradient of t by divided differences; None where it is 0 or undefined."""
        points = (self._middle + centred)[:, None] + np.hstack([self._steps, -self._steps])
        values = self._value(points)
        ahead, behind = values[: self._law.rank], values[self._law.rank :]
        widths = 2.0 * np.diag(self._steps)
        with np.errstate(all="ignore"):
            gradient = np.where(widths > 0.0, (ahead - behind) / widths, 0.0)
        length = float(np.abs(gradient).max(initial=0.0))
        return gradient / length if math.isfinite(length) and length > 0.0 else None

    def _scaled(self, direction: FloatArray, level: float) -> FloatArray | None:
        """Return s * direction whose rate, s direction . m - K, is level^2 / 2."""
        halves = np.abs(self._law.coordinates @ direction) / 2.0
        # Sums of products, not dot products: BLAS has threads of its own, which wait for each other long if
        # processors are busy.
        counts = self._law.multiplicities.astype(np.float64)
        # Smaller steps are roundings of the divided differences.
        halves = np.where(halves > 1e-7 * halves.max(initial=0.0), halves, 0.0)
        goal = level * level / 2.0
        if goal >= REACHED * math.log(2.0) * float(counts[halves > 0.0].sum()):
            return None
        low, high, scale = 0.0, math.inf, level / math.sqrt(float((counts * halves**2).sum()))
        for _ in range(100):
            a = scale * halves
            tanh = np.tanh(a)
            gap = goal - float((counts * (a * tanh - log_cosh(a))).sum())
            if abs(gap) <= 1e-6 * goal:
                break
            low, high = (scale, high) if gap > 0.0 else (low, scale)
            slope = scale * float((counts * halves**2 * (1.0 - tanh * tanh)).sum())
            moved = scale + gap / slope if slope > 0.0 else math.inf
            scale = moved if low < moved < high else (2.0 * low if math.isinf(high) else (low + high) / 2.0)
        return scale * direction


def ladder(path: Path, law: SwapDistribution) -> Mixture:
    """Return the proposal of the valid p-value; without a direction at the null mean, fair coins alone.

    It depends on the law and the function of `path` only, which are the same for every configuration.
    """
    tilts, lengths, direction, below = [np.zeros(law.rank)], [], path.start, 0.0
    for level in LEVELS:
        found = None if direction is None else path.tilt(level, direction)
        if found is None:
            break
        tilts.append(found)
        lengths.append((level - below) / level)
        direction, below = found, level
    parts = np.array(lengths)
    if not lengths:
        return Mixture(law, np.array(tilts), np.ones(1))
    shares = np.append(UNTILTED, (1.0 - UNTILTED) * parts / parts.sum())
    return Mixture(law, np.array(tilts), shares)


def observed_tilt(path: Path, proposal: Mixture, observed: float) -> FloatArray:
    """Return a tilt at whose mean the function of `path` is near the observed value; zeros if it is less."""
    below: FloatArray = proposal.tilts[0]
    level_below = 0.0
    direction = path.start
    if direction is None or not path.value_at(below) < observed:
        return below
    level = LEVELS[0]
    while (found := path.tilt(level, direction)) is not None and path.value_at(found) < observed:
        below, level_below, direction = found, level, found
        following = [each for each in LEVELS if each > level]
        level = following[0] if following else FARTHER * level
    above = level
    for _ in range(HALVINGS):
        middle = (level_below + above) / 2.0
        tried = path.tilt(middle, direction)
        if tried is not None and path.value_at(tried) < observed:
            below, level_below, direction = tried, middle, tried
        else:
            above = middle
    return below


def tilted_tail(
    law: SwapDistribution,
    region: Region,
    value: Callable[[FloatArray], FloatArray],
    observed: float,
    observed_point: Sequence[int],
    *,
    reflect: bool,
    n_samples: int,
    seed: int,
    memory_budget: int,
    n_threads: int | None = None,
) -> TiltedTail | None:
    """Return a valid p-value and an estimate of P(X in R); None if no tilt raises the function `value`.

    Parameters
    ----------
    law : SwapDistribution
        Distribution of X, of rank 1 or more.
    region : Region
        R, the points at least as extreme as the observed one. Several threads call it at a time.
    value : callable
        Function that grows towards R, of points of shape (r, n).
    observed, observed_point
        Value and coordinates of the observed point.
    reflect : bool
        Whether to draw E - X instead of X; `value` then is a function of E - x, and so is `observed_point`.
    n_samples, seed, memory_budget, n_threads : int
        Draws of the valid p-value, and as many again for the estimate; the others as for Monte Carlo.

    Raises
    ------
    UndefinedStatisticError
        If the statistic is undefined at a drawn point.
    CapacityError
        If sums exceed 2^62, or 2^52 with more than 2^26 coins, a multiplicity 2^40, or a block of draws the
        memory budget.
    """
    _check_size(law)
    axes = Axes.of(law)
    whole, law = law, axes.law
    path = Path(law, lambda points: value(axes.expanded(points)))
    proposal = ladder(path, law)
    n_tilts = len(proposal.shares) - 1
    if n_tilts == 0:
        return None
    closest = observed_tilt(path, proposal, observed)
    root = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    drawn = root.multinomial(n_samples, proposal.shares)
    blocks = _blocks(law, proposal.tilts, drawn)
    n_for_pvalue = len(blocks)
    blocks += _blocks(law, closest[None, :], np.array([n_samples]))
    everything = proposal.joined(closest)
    end = np.array(whole.total, dtype=np.int64)[:, None]
    point = np.array(observed_point, dtype=np.int64)[axes.kept, None]

    def weighed(numbered: tuple[int, tuple[FloatArray, int]]) -> tuple[FloatArray, FloatArray]:
        number, (tilt, size) = numbered
        child = np.random.SeedSequence(seed, spawn_key=(number,))
        points = tilted_swaps(law, tilt, size, np.random.Generator(np.random.PCG64(child)))
        asked = axes.expanded(points)
        membership = region.membership(list(end - asked if reflect else asked))
        if (membership == UNDEFINED).any():
            raise undefined_after_swaps()
        inside = points[:, membership == INSIDE]
        return -proposal.log_density(inside), -everything.log_density(inside)

    n_bytes = max(_block_bytes(law, size) for _, size in blocks)
    threads = min(n_threads or os.cpu_count() or 1, memory_budget // n_bytes, len(blocks))
    if threads < 1:
        raise CapacityError(
            f"a block of draws of {law.rank} coordinates takes {n_bytes} bytes; "
            f"the memory budget is {memory_budget}"
        )
    with ThreadPoolExecutor(threads) as pool:
        weights = list(pool.map(weighed, enumerate(blocks)))
    own = np.concatenate([each for each, _ in weights[:n_for_pvalue]])
    at_observed = -proposal.log_density(point)
    log_pvalue = _log_sum(np.append(own, at_observed)) - math.log(n_samples + 1)
    groups = [weights[:n_for_pvalue], weights[n_for_pvalue:]]
    log_estimate, error, effective = _estimate(
        [np.concatenate([each for _, each in group]) for group in groups], n_samples
    )
    return TiltedTail(
        log_pvalue=min(log_pvalue, 0.0),
        n_samples=n_samples,
        n_extreme=own.size,
        log_estimate=log_estimate,
        relative_error=error,
        effective_samples=effective,
        n_tilts=n_tilts,
        seed=seed,
    )


def draws_by_default(law: SwapDistribution) -> int:
    """Return the number of draws by default: fewer if many rows are drawn one by one."""
    n_coins = int(np.minimum(law.multiplicities, TOSSED).sum())
    return max(min(N_DRAWS, MOST_COINS // (2 * max(n_coins, 1))), FEWEST_DRAWS)


def _check_size(law: SwapDistribution) -> None:
    if any(max(-low, high) > LARGEST for low, high in law.support):
        raise CapacityError("sums of the differences exceed 2^62")
    if law.n_coins > MOST_SPLIT and exceeds_floats(law):
        raise CapacityError(f"sums of the differences of more than {MOST_SPLIT:,} examples exceed 2^52")
    if int(law.multiplicities.max(initial=0)) > LARGEST_COUNT:
        raise CapacityError(f"more than {LARGEST_COUNT:,} examples have the same counts")


def _blocks(law: SwapDistribution, tilts: FloatArray, drawn: IntArray) -> list[tuple[FloatArray, int]]:
    """Split the draws of each tilt into blocks."""
    most = max(min(BLOCK, BLOCK_CELLS // law.rank), 1)
    return [
        (tilt, min(most, int(number) - first))
        for tilt, number in zip(tilts, drawn, strict=True)
        for first in range(0, int(number), most)
    ]


def _block_bytes(law: SwapDistribution, size: int) -> int:
    """Estimate the memory of a block of draws and their classification."""
    rows = min(max(BLOCK_CELLS // size, 1), law.multiplicities.size)
    return 8 * (3 * rows * size + 12 * size * law.rank + 4 * size * len(LEVELS))


def _log_sum(logs: FloatArray) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _estimate(groups: Sequence[FloatArray], n_each: int) -> tuple[float | None, float, float]:
    """Return the log of the mean weight over groups of draws, its relative error and effective size.

    `groups` has the log weights of the extreme draws among the `n_each` of each group.
    """
    logs = np.concatenate(groups)
    if logs.size == 0:
        return None, math.inf, 0.0
    top = float(logs.max())
    sums = [(float(w.sum()), float(w @ w)) for w in (np.exp(group - top) for group in groups)]
    total, squares = sum(s for s, _ in sums), sum(q for _, q in sums)
    effective = total * total / squares
    if effective < FEWEST:
        return None, math.inf, effective
    variance = sum(max(q - s * s / n_each, 0.0) for s, q in sums)
    return top + math.log(total / (len(groups) * n_each)), math.sqrt(variance) / total, effective
