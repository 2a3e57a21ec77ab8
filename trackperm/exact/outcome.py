"""Assembly of a test result from its options and the tail that an engine computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from trackperm.choices import MethodOfResult
from trackperm.errors import CapacityError, InputError
from trackperm.exact.distributions.characteristic import UNIT, FloatArray, SwapDistribution
from trackperm.exact.distributions.tilt import CERTAIN, EMPTY, TailMass
from trackperm.exact.engines.lattice.statistic import LatticeStatistic, Ties
from trackperm.exact.engines.monte_carlo import MonteCarloTail, monte_carlo_tail
from trackperm.exact.engines.tilted_sampling import draws_by_default, tilted_tail
from trackperm.exact.null_distribution import NullDistribution
from trackperm.exact.options import N_SAMPLES, TestOptions
from trackperm.exact.result import PermutationTest, PValueEstimate
from trackperm.exact.types import Region

DEVIATIONS = 2.576
"""Standard errors of an estimate up to the ends of its interval: 99 % confidence, as for Monte Carlo."""


class ResultFields(NamedTuple):
    """Fields of a result that no engine computes; `ties` is called after the engine has run."""

    observed: float
    ties: Callable[[], Ties]
    n_examples: int
    n_discordant: int
    rank: int
    n_better: int | None
    n_worse: int | None
    distribution: Callable[[], NullDistribution]
    log10_smallest: float | None = None

    def result(
        self,
        options: TestOptions,
        *,
        pvalue: float,
        log10_pvalue: float,
        error_bound: float,
        interval: tuple[float, float],
        method: MethodOfResult,
        why: str,
        n_samples: int | None = None,
        estimate: PValueEstimate | None = None,
    ) -> PermutationTest:
        """Complete the fields to a result."""
        return PermutationTest(
            alternative=options.tested,
            observed=self.observed,
            pvalue=pvalue,
            log10_pvalue=log10_pvalue,
            error_bound=error_bound,
            interval=interval,
            method=method,
            why=why,
            ties=self.ties(),
            mid_p=options.mid_p,
            n_examples=self.n_examples,
            n_discordant=self.n_discordant,
            rank=self.rank,
            n_better=self.n_better,
            n_worse=self.n_worse,
            n_samples=n_samples,
            _distribution=self.distribution,
            _log10_smallest=self.log10_smallest,
            estimate=estimate,
        )


class TailResult(NamedTuple):
    """Mass of one side of the region, and of its interior if ties count half.

    `certain` means that every value is as extreme, so there are no two sides to add. `lesser` has the mass
    and interior of the other side if the law is not symmetric; its mass is the smaller one.
    """

    mass: TailMass
    method: MethodOfResult
    why: str
    interior: TailMass = EMPTY
    certain: bool = False
    lesser: tuple[TailMass, TailMass] | None = None


def all_extreme(n_coins: int, is_zero: bool) -> TailResult | None:
    """Return the tail if every swap is as extreme as the observed one, else None."""
    if n_coins == 0:
        return TailResult(CERTAIN, "enumerate", "no swap changes the statistic", certain=True)
    if is_zero:
        why = "the observed value is 0, so every value is as extreme"
        return TailResult(CERTAIN, "enumerate", why, certain=True)
    return None


def computed_result(found: TailResult, options: TestOptions, fields: ResultFields) -> PermutationTest:
    """Return the result of a computed tail."""
    sides = 2.0 if options.two_sided and found.lesser is None else 1.0
    is_upper_end = found.method == "bracket"
    other, other_interior = found.lesser or (EMPTY, EMPTY)
    parts = [(found.mass, 1.0 if found.certain else sides)]
    if other.scaled > 0.0:
        parts.append((other, 1.0))
    if options.mid_p:
        interiors = [(found.interior, sides), (other_interior, 1.0)]
        parts = [(tail, share / 2.0) for tail, share in [*parts, *interiors]]
    log_scale = found.mass.log_scale
    scaled = low = high = 0.0
    for tail, share in parts:
        if tail.scaled > 0.0:
            distance = tail.log_scale - log_scale
            mass = share * tail.scaled * math.exp(distance)
            error = tail.error + (4.0 * UNIT * (1.0 + abs(distance)) if len(parts) > 1 else 0.0)
            # |p - truth| <= error * truth; an error of 1 and more leaves the upper end alone.
            scaled += mass
            low += 0.0 if error >= 1.0 and not is_upper_end else mass / (1.0 + error)
            high += mass if error >= 1.0 or is_upper_end else mass / (1.0 - error)
    error = max(scaled / low - 1.0, 1.0 - scaled / high) if low > 0.0 else math.inf
    if len(parts) == 1:
        error = found.mass.error
    elif math.isinf(error) and not is_upper_end:
        error = 1.0
    log10 = min((log_scale + math.log(scaled)) / math.log(10.0), 0.0)
    pvalue = min(math.exp(log_scale) * scaled if abs(log_scale) < 700.0 else 10.0**log10, 1.0)
    return fields.result(
        options,
        pvalue=pvalue,
        log10_pvalue=log10,
        error_bound=error,
        interval=(
            math.nextafter(pvalue * (low / scaled), 0.0) if error else pvalue,
            min(math.nextafter(pvalue * (high / scaled), 2.0), 1.0) if error else pvalue,
        ),
        method=found.method,
        why=found.why,
    )


def n_requested(test: PermutationTest, options: TestOptions, by_default: int = N_SAMPLES) -> int | None:
    """Return the number of random swaps that were requested for a result; None for exact engines.

    `by_default` is the number of Monte Carlo if the options have none.
    """
    # Monte Carlo may stop early.
    return options.draws(by_default) if test.method == "monte-carlo" else test.n_samples


def drawn_result(
    law: SwapDistribution, region: Region, options: TestOptions, fields: ResultFields
) -> PermutationTest:
    """Return the result of drawing random swaps."""
    found = monte_carlo_tail(
        law,
        region,
        two_sided=options.two_sided,
        n_samples=options.draws(N_SAMPLES),
        seed=options.seed,
        exceedances=options.exceedances,
        memory_budget=options.memory_budget,
    )
    return monte_carlo_result(found, options, fields)


def monte_carlo_result(found: MonteCarloTail, options: TestOptions, fields: ResultFields) -> PermutationTest:
    """Return the result of a tail that was estimated from random swaps."""
    return fields.result(
        options,
        pvalue=found.pvalue,
        log10_pvalue=math.log10(found.pvalue),
        error_bound=math.inf,
        interval=found.interval,
        method="monte-carlo",
        why=f"{found.n_samples:,} random swaps (seed {found.seed}), {found.n_extreme:,} of them as extreme",
        n_samples=found.n_samples,
    )


def tilted_result(
    law: SwapDistribution,
    statistic: LatticeStatistic,
    region: Region,
    upper: bool,
    options: TestOptions,
    fields: ResultFields,
) -> PermutationTest:
    """Return the result of tilted sampling; CapacityError if tilts do not apply to the statistic."""
    if statistic.observed_exact is None:
        raise CapacityError("the statistic is a NumPy function, whose ties are not decided exactly")
    # The smaller side of a two-sided test is reflected, so that exchanging the runs changes nothing.
    reflect = options.two_sided and not upper
    end = np.array(law.total, dtype=np.float64)[:, None]

    def value(points: FloatArray) -> FloatArray:
        found = statistic.values(list(end - points if reflect else points))
        return found if upper else -found

    observed, point = statistic.observed, statistic.observed_point
    if reflect:
        point = tuple(e - x for e, x in zip(law.total, point, strict=True))
    found = tilted_tail(
        law,
        region,
        value,
        observed if upper else -observed,
        point,
        reflect=reflect,
        n_samples=options.draws(draws_by_default(law)),
        seed=options.seed,
        memory_budget=options.memory_budget,
    )
    if found is None:
        raise CapacityError("the statistic has no slope at the mean of its null distribution")
    sides = math.log(2.0) if options.two_sided else 0.0
    # A p-value that is raised stays valid: at least to the probability of the observed configuration, and to
    # the upper end of the estimate's interval, so that the exact p-value is rarely greater.
    log_pvalue, estimate = max(found.log_pvalue, -law.n_coins * math.log(2.0)), None
    if found.log_estimate is not None:
        log_upper = found.log_estimate + math.log1p(DEVIATIONS * found.relative_error)
        log_pvalue = max(log_pvalue, log_upper)
        log10_estimate = min(found.log_estimate + sides, 0.0) / math.log(10.0)
        estimate = PValueEstimate(log10_estimate, found.relative_error, found.effective_samples)
    log10 = min(log_pvalue + sides, 0.0) / math.log(10.0)
    pvalue = 10.0**log10
    return fields.result(
        options,
        pvalue=pvalue,
        log10_pvalue=log10,
        error_bound=math.inf,
        interval=(0.0, pvalue),
        method="tilted",
        why=f"{found.n_samples:,} random swaps from a mixture of fair coins and {found.n_tilts} tilts of them"
        f" (seed {found.seed}); {found.n_extreme:,} are at least as extreme",
        n_samples=found.n_samples,
        estimate=estimate,
    )


def as_float(value: Fraction) -> float:
    """Round a value of the statistic to a float; refuse one beyond the range of floats."""
    try:
        return float(value)
    except OverflowError as error:
        raise InputError("the observed value of the statistic is beyond the range of floats") from error
