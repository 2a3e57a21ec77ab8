"""Tilted sampling: its levels under the null hypothesis, and its estimates against exact p-values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from benchmarks.workloads import strata_of_f1
from support.budget import cases
from support.tilted_levels import LEVELS, NULLS, rejection_rates, two_blocks

from trackperm.errors import CapacityError, InputError
from trackperm.exact import PermutationTest, RationalStatistic, RealStatistic, structured_test
from trackperm.exact.counts import DifferenceHistogram
from trackperm.exact.distributions.characteristic import SwapDistribution
from trackperm.exact.engines.tilted_draws import tilted_swaps
from trackperm.exact.engines.tilted_sampling import Mixture, Path, ladder


def strata(n: int, n_strata: int = 2, seed: int = 0, rates: tuple[float, float] = (0.8, 0.7)) -> Any:
    """Counts of both runs, and the difference of their mean F1 over strata."""
    return strata_of_f1(n, n_strata, seed, rates, n_items=2)


def tested(problem: Any, **options: Any) -> PermutationTest:
    return structured_test(*problem, **{"method": "tilted", **options})


@pytest.mark.parametrize("name", NULLS)
@pytest.mark.parametrize("n_draws", [20, 200])
def test_levels_under_the_null_hypothesis(name: str, n_draws: int) -> None:
    rates, errors = rejection_rates(NULLS[name](), n_draws, cases(60))
    assert (rates <= np.array(LEVELS) + 4.0 * errors).all()
    assert rates[0] > 0.01  # the test is not empty


def towards_the_observed(
    law: SwapDistribution, value: Callable[..., Any], observed: npt.NDArray[np.int64]
) -> Mixture:
    """A tilt of the block with the greater observed sum, up to that sum."""
    n = int(law.multiplicities[0])
    greater, height = int(np.argmax(observed)), int(observed.max())
    tilt = np.zeros(2)
    tilt[greater] = max(math.log((height + 0.5) / (n - height + 0.5)), 0.0)
    return Mixture(law, tilt[None, :], np.ones(1))


def test_a_tilt_towards_the_observed_point_has_twice_its_level() -> None:
    """It misses the other block. A ladder that is the same for all points does not."""
    null = two_blocks(30)
    points, mass = null.points()
    heights = null.value(points.astype(np.float64))
    exact = sorted({float(mass[heights >= height].sum()) for height in heights})
    levels = [0.55 * pvalue for pvalue in exact if 1e-4 < pvalue < 2e-3]
    wrong, errors = rejection_rates(null, 2_000, cases(20), towards_the_observed, levels)
    right, _ = rejection_rates(null, 2_000, cases(20), levels=levels)
    assert len(levels) == 2
    assert (wrong > 1.5 * np.array(levels)).all()
    assert (errors < 0.2 * np.array(levels)).all()
    assert (right <= levels).all()


def test_the_ladder_is_the_same_for_every_configuration() -> None:
    observed, swapped, h = strata(60)
    rng = np.random.default_rng(1)
    found = []
    for _ in range(4):
        exchanged = rng.random(len(observed)) < 0.5
        a, b = (
            np.where(exchanged[:, None], swapped, observed),
            np.where(exchanged[:, None], observed, swapped),
        )
        histogram = DifferenceHistogram.from_pairs(a, b)
        law = SwapDistribution(histogram.differences, histogram.multiplicities)
        origin = np.array(histogram.origin, dtype=np.float64)[:, None]
        path = Path(law, lambda points, origin=origin: h.values((origin + points).T))
        found.append(ladder(path, law))
    assert len(found[0].shares) > 5
    for other in found[1:]:
        assert np.array_equal(other.tilts, found[0].tilts)
        assert np.array_equal(other.shares, found[0].shares)


def test_exchanging_the_runs_changes_nothing() -> None:
    observed, swapped, h = strata(300)
    there, back = tested((observed, swapped, h)), tested((swapped, observed, h))
    assert there.observed == -back.observed
    assert there.pvalue == back.pvalue
    assert there.estimate == back.estimate
    less, greater = (
        tested((observed, swapped, h), alternative="less"),
        tested((observed, swapped, h), alternative="greater"),
    )
    assert less.pvalue > 0.9 > greater.pvalue
    assert tested((swapped, observed, h), alternative="less").log10_pvalue == pytest.approx(
        greater.log10_pvalue, abs=0.1
    )


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("n", "rates", "seed"),
    [(30, (0.7, 0.6), 0), (40, (0.8, 0.6), 1), (40, (0.6, 0.8), 2), (60, (0.95, 0.6), 3)],
)
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_estimates_against_the_lattice(
    n: int, rates: tuple[float, float], seed: int, alternative: Any
) -> None:
    problem = strata(n, seed=seed, rates=rates)
    exact = structured_test(*problem, method="lattice", alternative=alternative)
    found = tested(problem, alternative=alternative)
    assert exact.rank == 4
    assert found.estimate is not None
    away = found.estimate.log10 - exact.log10_pvalue
    assert abs(away) <= math.log10(1.0 + 4.5 * found.estimate.relative_error)
    assert found.log10_pvalue >= found.estimate.log10
    assert found.log10_pvalue <= exact.log10_pvalue + 0.3
    assert found.interval == (0.0, found.pvalue)
    assert math.isinf(found.error_bound)


def test_two_seeds_agree_far_in_the_tail() -> None:
    problem = strata(2000, n_strata=5, rates=(0.8, 0.65))
    one, other = (tested(problem, seed=seed, n_samples=4000) for seed in (0, 1))
    assert one.log10_pvalue < -40.0
    assert one.pvalue != other.pvalue
    assert one.estimate is not None
    assert other.estimate is not None
    errors = math.hypot(one.estimate.relative_error, other.estimate.relative_error)
    assert errors < 0.15
    assert abs(one.estimate.log10 - other.estimate.log10) <= math.log10(1.0 + 4.5 * errors)
    assert one.estimate.effective_samples > 100


def test_the_same_seed_gives_the_same_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = strata(300, n_strata=3)
    found = []
    for threads in (1, 3):
        monkeypatch.setattr("os.cpu_count", lambda threads=threads: threads)
        found.append(tested(problem, seed=5))
    assert found[0].pvalue == found[1].pvalue
    assert found[0].estimate == found[1].estimate


def test_auto_samples_where_the_lattice_takes_more_than_two_seconds() -> None:
    found = structured_test(*strata(150))
    assert found.method == "tilted"
    assert "lattice: it would take about" in found.why
    assert "`--method lattice` runs it" in found.why
    assert structured_test(*strata(20)).method in ("enumerate", "lattice")


@pytest.mark.parametrize("count", [1, 3, 20, 200, 1000])
@pytest.mark.parametrize("slope", [-3.0, -0.2, 0.0, 1.5])
def test_draws_are_binomial(count: int, slope: float) -> None:
    law = SwapDistribution(np.array([[1]]), np.array([count]))
    drawn = tilted_swaps(law, np.array([slope]), 4096, np.random.default_rng(0))[0]
    chance = 1.0 / (1.0 + math.exp(-slope))
    deviation = math.sqrt(count * chance * (1.0 - chance))
    assert 0 <= drawn.min() <= drawn.max() <= count
    assert abs(drawn.mean() - count * chance) < 4.5 * deviation / 64.0
    assert drawn.var() == pytest.approx(deviation**2, rel=0.15)


def test_draws_of_sums_beyond_floats_are_exact() -> None:
    """Steps that are 3^31 times as large give sums that are 3^31 times as large, from the same coins."""
    rng, factor = np.random.default_rng(0), 3**31
    steps, counts = rng.integers(-9, 10, (300, 2)), rng.integers(1, 40, 300)
    tilt = np.array([0.05, -0.1])
    small = tilted_swaps(SwapDistribution(steps, counts), tilt, 512, np.random.default_rng(1))
    law = SwapDistribution(steps * factor, counts)
    assert max(high for _, high in law.support) > 2**60
    assert (tilted_swaps(law, tilt / factor, 512, np.random.default_rng(1)) == small * factor).all()


def correlation(precision: int, n: int = 300) -> Any:
    """Sums for the difference of two correlations with the same values, multiples of 2^-precision."""
    rng, scale = np.random.default_rng(3), 2.0**precision
    label = rng.normal(size=n)
    spread = math.sqrt(float(label @ label) - float(label.sum()) ** 2 / n)
    sides = [np.rint((label + error * rng.normal(size=n)) * 2**8) / 2**8 for error in (0.5, 0.7)]
    there, back = (
        np.stack([np.rint(column * scale) for column in (x, x * x, x * label)], axis=1).astype(np.int64)
        for x in sides
    )
    x = [RealStatistic.variable(i, 6) for i in range(6)]
    total = int(np.rint(label.sum() * scale))

    def score(first: int) -> RealStatistic:
        value, square, product = x[first : first + 3]
        moment = n * product / 2**precision - value * total / 4**precision
        variance = n * square / 2**precision - value * value / 4**precision
        return moment.divide((variance * int(spread * 2**20)).sqrt(), undefined=0)

    return np.hstack([there, back]), np.hstack([back, there]), score(0) - score(3)


def test_sums_beyond_floats_have_the_pvalue_of_rounded_ones() -> None:
    fine, coarse = (tested(correlation(precision)) for precision in (48, 16))
    assert fine.estimate is not None
    assert coarse.estimate is not None
    assert -12.0 < coarse.estimate.log10 < -3.0
    assert fine.estimate.log10 == pytest.approx(coarse.estimate.log10, abs=0.05)


def test_weights_have_mean_one() -> None:
    null = NULLS["macro-F1 of 3 classes"]()
    mixture = ladder(Path(null.law, null.value), null.law)
    points, mass = null.points()
    density = np.exp(mixture.log_density(points))
    assert float(mass @ density) == pytest.approx(1.0, abs=1e-9)


def test_refusals() -> None:
    problem = strata(20)
    with pytest.raises(InputError, match="exact method"):
        tested(problem, mid_p=True)
    with pytest.raises(InputError, match="never stops early"):
        tested(problem, exceedances=10)
    observed, swapped, _ = problem
    with pytest.raises(CapacityError, match="ties are not decided exactly"):
        tested(
            (
                observed,
                swapped,
                lambda x: x[..., 0] / (x[..., 0] + x[..., 1] + 1) - x[..., 4] / (x[..., 4] + x[..., 5] + 1),
            )
        )
    # An even function of the difference has no slope at the mean.
    x = [RationalStatistic.variable(i, 8) for i in range(8)]
    even = (x[0] - x[4]) * (x[0] - x[4])
    with pytest.raises(CapacityError, match="no slope"):
        tested((observed, swapped, even), alternative="greater")


def test_a_callable_stays_monte_carlo() -> None:
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 9, (2, 200, 9))
    found = structured_test(
        np.hstack([u, v]),
        np.hstack([v, u]),
        lambda x: (x[..., :9] ** 0.5).sum(axis=-1) - (x[..., 9:] ** 0.5).sum(axis=-1),
        n_samples=1000,
    )
    assert found.method == "monte-carlo"
    assert found.estimate is None


@pytest.mark.slow
def test_against_many_plain_draws() -> None:
    problem = strata(700, n_strata=3, seed=4, rates=(0.8, 0.752))
    found = tested(problem)
    plain = structured_test(*problem, method="monte-carlo", n_samples=cases(1_000_000))
    assert 2e-6 < plain.pvalue < 5e-4
    assert found.estimate is not None
    low, high = plain.interval
    assert low * 0.95 < 10.0**found.estimate.log10 < high * 1.05


@pytest.mark.nightly
@pytest.mark.parametrize("name", NULLS)
def test_levels_with_many_sets_of_draws(name: str) -> None:
    for n_draws in (20, 200, 2_000):
        rates, errors = rejection_rates(NULLS[name](), n_draws, 2_000)
        assert (rates <= np.array(LEVELS) + 4.0 * errors).all()
