"""Paired-permutation tests of weighted sums: the differences of examples add up, each with a coin's sign."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.choices import Alternative, Method
from trackperm.errors import CapacityError
from trackperm.exact.counts import LARGEST, DifferenceHistogram, signed_differences
from trackperm.exact.distributions.line import LineLaw
from trackperm.exact.distributions.tilt import EMPTY
from trackperm.exact.engines.lattice.statistic import not_antisymmetric
from trackperm.exact.engines.linear.tails import LinearStatistic, UpperRay, linear_tails
from trackperm.exact.null_distribution import linear_distribution
from trackperm.exact.options import MEMORY_BUDGET, TestOptions
from trackperm.exact.outcome import (
    ResultFields,
    TailResult,
    all_extreme,
    as_float,
    computed_result,
    drawn_result,
)
from trackperm.exact.result import PermutationTest
from trackperm.exact.scores.scaling import scale_scores
from trackperm.exact.types import IntArray


def difference_test(
    candidate: npt.ArrayLike,
    baseline: npt.ArrayLike,
    *,
    resolution: str | float | Fraction | Decimal | None = None,
    alternative: Alternative = "two-sided",
    mid_p: bool = False,
    method: Method = "auto",
    n_samples: int | None = None,
    seed: int = 0,
    exceedances: int | None = None,
    memory_budget: int = MEMORY_BUDGET,
) -> PermutationTest:
    """Test the difference in mean of the scores of two systems on the same examples.

    Parameters
    ----------
    candidate, baseline : array_like, shape (N,)
        Scores of the two systems, example by example: integers, booleans, fractions, decimals or floats.
        Floats that are decimals or fractions, such as 0.3 or 1/3, are taken as such (`scores`), so that
        0.1 + 0.2 ties with 0.3.
    resolution : str, float, Fraction or Decimal, optional
        Scores are rounded to multiples of it.
    alternative : {'two-sided', 'less', 'greater'}
        ``greater``: the candidate's mean is greater.
    mid_p : bool
        Count ties with the observed value half: less conservative, but no longer a valid p-value.
    method : {'auto', 'binomial', 'enumerate', 'dp', 'lattice', 'bracket', 'monte-carlo'}
        Numerical engine.
    n_samples, seed, exceedances : int
        For Monte Carlo: number of random swaps, by default 100,000, their seed, and optionally the number of
        extreme ones at which drawing stops (Besag and Clifford 1991).
    memory_budget : int
        Bytes that the test may allocate.

    Raises
    ------
    InputTypeError
        If scores are not numbers.
    InputError
        If shapes differ, there are no examples, or values are NaN, infinite or too large.
    CapacityError
        If the named engine cannot solve the problem.

    Examples
    --------
    >>> difference_test([1, 1, 1, 1, 0, 1], [0, 0, 1, 0, 0, 0]).pvalue
    0.125

    References
    ----------
    Zmigrod, Vieira and Cotterell (2022), Algorithm 1.
    """
    options = TestOptions(
        alternative=alternative,
        mid_p=mid_p,
        method=method,
        n_samples=n_samples,
        seed=seed,
        exceedances=exceedances,
        memory_budget=memory_budget,
    )
    return difference_test_of(candidate, baseline, options, resolution=resolution)


def difference_test_of(
    candidate: npt.ArrayLike,
    baseline: npt.ArrayLike,
    options: TestOptions,
    *,
    resolution: str | float | Fraction | Decimal | None = None,
) -> PermutationTest:
    """Test a difference in mean as :func:`difference_test` does, with options that were checked before."""
    scores = scale_scores(candidate, baseline, resolution, differences_only=True)
    moves, counts = signed_differences(scores.candidate, scores.baseline)
    note = "" if scores.how == "integers" else scores.note()
    unit = Fraction(scores.unit.numerator, scores.unit.denominator * scores.candidate.size)
    return sum_test_of(moves, counts, unit, options, note)


def sum_test_of(
    moves: npt.NDArray[Any], counts: IntArray, unit: Fraction, options: TestOptions, note: str = ""
) -> PermutationTest:
    """Test a sum of signed differences of examples: integers of any size, and the number of examples of each.

    A difference of 1 adds `unit` to the statistic; `note` says how the differences were read.
    """
    numbers = counts.tolist()
    moved = sum(map(operator.mul, moves.tolist(), numbers))
    # A swap turns the difference d of an example into -d.
    step, value = (Fraction(factor * unit.numerator, unit.denominator) for factor in (2, moved))
    statistic = LinearStatistic.from_differences(moves, counts, step, value)
    return _linear_test(statistic, sum(numbers), statistic.law.n_coins, options, note)


def linear_statistic(
    histogram: DifferenceHistogram, moves: IntArray, slopes: Sequence[Fraction], observed: Fraction
) -> LinearStatistic:
    """Return the linear statistic that a swap in row k changes by slopes . moves[k]."""
    denominator = math.lcm(*(slope.denominator for slope in slopes))
    weights = [int(slope * denominator) for slope in slopes]
    reach = sum(abs(w) * int(x) for w, x in zip(weights, np.abs(moves).max(axis=0, initial=0), strict=True))
    dtype = np.int64 if max([reach, *map(abs, weights)]) <= LARGEST else object
    steps = moves.astype(dtype) @ np.array(weights, dtype=dtype)
    down = histogram.multiplicities - histogram.n_up
    moves_and_back, counts = np.concatenate([steps, -steps]), np.concatenate([histogram.n_up, down])
    present = counts > 0
    return LinearStatistic.from_differences(
        moves_and_back[present], counts[present], Fraction(1, denominator), observed
    )


def affine_test(
    statistic: LinearStatistic, histogram: DifferenceHistogram, options: TestOptions
) -> PermutationTest:
    """Test a weighted sum of counts that add up over the examples of a histogram.

    It raises InputError for a two-sided test of a sum that exchanging the runs does not negate.
    """
    if options.two_sided and not statistic.is_antisymmetric:
        raise not_antisymmetric()
    return _linear_test(statistic, histogram.n_examples, histogram.n_discordant, options, "")


def _linear_test(
    statistic: LinearStatistic, n_examples: int, n_discordant: int, options: TestOptions, note: str
) -> PermutationTest:
    law, point = statistic.law, statistic.observed_point
    n_better = law.number(statistic.n_up)
    fields = ResultFields(
        observed=as_float(statistic.observed),
        ties=lambda: "exact",
        n_examples=n_examples,
        n_discordant=n_discordant,
        rank=min(law.steps.size, 1),
        n_better=n_better,
        n_worse=law.n_coins - n_better,
        distribution=partial(linear_distribution, statistic, options.memory_budget),
    )
    # X and E - X have the same law: the mass from x up is that up to E - x.
    upper = options.tested == "greater" or (options.two_sided and 2 * point > law.total)
    greatest = law.total - point if upper else point
    certain = all_extreme(law.n_coins, options.two_sided and 2 * point == law.total)
    if options.method == "monte-carlo" and certain is None:
        if law.total > LARGEST:
            raise CapacityError("sums of the differences exceed 2^62", hint="`--method auto` takes them.")
        return drawn_result(law.lattice(), UpperRay(law.total - greatest), options, fields)
    found = _computed_tail(law, greatest, certain, options)
    return computed_result(found._replace(why=f"{found.why}; {note}") if note else found, options, fields)


def _computed_tail(
    law: LineLaw, greatest: int, certain: TailResult | None, options: TestOptions
) -> TailResult:
    """Return P(X <= greatest), or a `certain` tail, with the interior if ties count half."""
    limits = [greatest] if certain is None else []
    if options.mid_p and greatest > 0:
        limits.append(greatest - 1)
    if certain is not None and not limits:
        return certain
    tails, method, why = linear_tails(law, limits, options.method, options.memory_budget)
    interior = tails[-1] if options.mid_p and greatest > 0 else EMPTY
    mass = tails[0] if certain is None else certain.mass
    return TailResult(mass, method, why, interior, certain=certain is not None)
