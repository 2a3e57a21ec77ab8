"""The studentised permutation test: against all swaps one by one, its laws, and its size."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom
from support.budget import Measured, cases
from support.cases import F1

from trackperm.choices import Alternative
from trackperm.errors import CapacityError, InputError, UndefinedStatisticError
from trackperm.exact import RationalStatistic, RealStatistic, structured_test
from trackperm.exact.engines import studentized
from trackperm.exact.engines.studentized import Smooth, studentized_test, variance_ratio

Counts = npt.NDArray[np.int64]
X = [RationalStatistic.variable(i, 4) for i in range(4)]
Y = [RealStatistic.variable(i, 4) for i in range(4)]
PRECISION = X[0].divide(X[1], undefined=0) - X[2].divide(X[3], undefined=0)
LOG_RATIO = ((Y[0] + 1) / (Y[1] + 2)).log() - ((Y[2] + 1) / (Y[3] + 2)).log()
ROOTS = Y[0].divide((Y[1] * (Y[0] + 1)).sqrt(), undefined=0) - Y[2].divide(
    (Y[3] * (Y[2] + 1)).sqrt(), undefined=0
)
STATISTICS: dict[str, Smooth] = {"precision": PRECISION, "f1": F1, "log ratio": LOG_RATIO, "roots": ROOTS}


def sides(u: npt.ArrayLike, v: npt.ArrayLike) -> tuple[Counts, Counts]:
    """Both runs' counts, as they are and with the outputs exchanged."""
    return np.hstack([u, v]).astype(np.int64), np.hstack([v, u]).astype(np.int64)


def once(rows: Counts) -> Counts:
    return np.ones(len(rows), dtype=np.int64)


def by_definition(rows: Counts, h: Smooth) -> float:
    """T of one configuration, its influence values by divided differences, example by example."""
    m = rows.shape[1]
    steps = 1e-5 * np.vstack([np.zeros(m), np.eye(m), -np.eye(m)])
    points = rows.sum(axis=0) + steps
    value, *around = h.values(points) if isinstance(h, RationalStatistic) else h(points)
    if abs(value) < 1e-12:
        return 0.0
    slopes = (np.array(around[:m]) - np.array(around[m:])) / 2e-5
    # a declared value of 0/0 has no slope
    slopes[~np.isfinite(slopes)] = 0.0
    parts = rows @ slopes
    square = float(((parts - parts.mean()) ** 2).sum())
    return value / math.sqrt(square) if square > 1e-12 else math.copysign(math.inf, value)


def one_by_one(observed: Counts, swapped: Counts, h: Smooth, alternative: Alternative) -> float:
    """The p-value from all 2^N swaps of examples, discordant or not."""

    def extremity(rows: Counts) -> float:
        t = by_definition(rows, h)
        return {"two-sided": abs(t), "greater": t, "less": -t}[alternative]

    at = extremity(observed)
    least = at if math.isinf(at) else at - 1e-6 * abs(at)
    kept = itertools.product([True, False], repeat=len(observed))
    found = [extremity(np.where(np.array(chosen)[:, None], observed, swapped)) >= least for chosen in kept]
    return sum(found) / len(found)


def random_counts(seed: int, n: int = 7) -> tuple[Counts, Counts]:
    rng = np.random.default_rng(seed)
    total = rng.integers(1, 4, (2, n))
    part = rng.integers(0, total + 1)
    return sides(np.column_stack([part[0], total[0]]), np.column_stack([part[1], total[1]]))


@pytest.mark.sample(12)
@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("seed", range(3))
def test_against_all_swaps_one_by_one(name: str, seed: int, alternative: Alternative) -> None:
    observed, swapped = random_counts(seed)
    found = studentized_test(observed, swapped, STATISTICS[name], once(observed), alternative=alternative)
    assert found.n_samples is None
    assert found.pvalue == one_by_one(observed, swapped, STATISTICS[name], alternative)
    assert found.statistic == pytest.approx(by_definition(observed, STATISTICS[name]), rel=1e-6)


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_against_all_swaps_of_outputs_of_0_and_1(alternative: Alternative) -> None:
    """Many swaps in which a run predicts nothing, or all that it predicts is right: 0/0, and errors of 0."""
    u = [[1, 1], [0, 1], [0, 0], [1, 1], [0, 0], [1, 1], [0, 0]]
    v = [[0, 0], [1, 1], [0, 1], [0, 0], [0, 0], [0, 0], [1, 1]]
    for observed, swapped in (sides(u, v), sides(v, u)):
        found = studentized_test(observed, swapped, PRECISION, once(observed), alternative=alternative)
        assert found.pvalue == one_by_one(observed, swapped, PRECISION, alternative)


@pytest.mark.parametrize("name", ["precision", "f1"])
def test_both_ways_to_draw_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty examples by sums of products, which are fewer than kinds, and by coins of every kind."""
    observed, swapped = random_counts(9, n=40)
    h = STATISTICS[name]
    drawn = studentized_test(observed, swapped, h, once(observed), n_samples=20_000)
    assert drawn.n_samples == 20_000
    law = studentized._Swaps.of(observed, swapped, h, once(observed)).law
    assert law.rank < len(law.multiplicities)
    monkeypatch.setattr(studentized, "_products", lambda *_: None)
    law = studentized._Swaps.of(observed, swapped, h, once(observed)).law
    assert law.rank == len(law.multiplicities)
    again = studentized_test(observed, swapped, h, once(observed), n_samples=20_000, seed=1)
    assert again.statistic == pytest.approx(drawn.statistic, rel=1e-12)
    assert max(drawn.interval[0], again.interval[0]) <= min(drawn.interval[1], again.interval[1])


@pytest.mark.parametrize("way", ["products", "kinds"])
def test_the_interval_of_drawn_swaps_holds_the_listed_pvalue(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed, swapped = random_counts(4, n=13)
    listed = studentized_test(observed, swapped, F1, once(observed))
    monkeypatch.setattr(studentized, "LISTED", 0)
    if way == "kinds":
        monkeypatch.setattr(studentized, "_products", lambda *_: None)
    drawn = studentized_test(observed, swapped, F1, once(observed), n_samples=50_000)
    assert listed.n_samples is None
    assert drawn.n_samples == 50_000
    assert drawn.interval[0] <= listed.pvalue <= drawn.interval[1]
    assert drawn.statistic == pytest.approx(listed.statistic, rel=1e-12)


def test_multiplicities_equal_repeated_examples() -> None:
    observed, swapped = random_counts(2, n=6)
    counts = np.array([3, 1, 2, 1, 1, 2])
    one = studentized_test(observed, swapped, F1, counts)
    other = studentized_test(
        np.repeat(observed, counts, axis=0), np.repeat(swapped, counts, axis=0), F1, np.ones(10, int)
    )
    assert one.pvalue == other.pvalue
    assert one.standard_error == pytest.approx(other.standard_error, rel=1e-12)


@pytest.mark.parametrize("name", STATISTICS)
def test_exchanging_the_runs_changes_sides_alone(name: str) -> None:
    observed, swapped = random_counts(5)
    h = STATISTICS[name]
    there, back = (
        studentized_test(*pair, h, once(observed)) for pair in ((observed, swapped), (swapped, observed))
    )
    assert there.pvalue == back.pvalue
    assert there.statistic == pytest.approx(-back.statistic, rel=1e-12)
    greater = studentized_test(observed, swapped, h, once(observed), alternative="greater")
    less = studentized_test(swapped, observed, h, once(observed), alternative="less")
    assert greater.pvalue == less.pvalue


def test_identical_runs() -> None:
    u = random_counts(6)[0][:, :2]
    same = studentized_test(*sides(u, u), F1, once(u))
    assert (same.pvalue, same.statistic, same.interval) == (1.0, 0.0, (1.0, 1.0))


def test_equal_scores_of_runs_without_errors() -> None:
    """0 over 0: precision 1 in both runs, so that both the difference and its standard error are 0."""
    u, v = [[1, 1], [1, 1], [0, 0]], [[1, 1], [0, 0], [1, 1]]
    found = studentized_test(*sides(u, v), PRECISION, np.ones(3, int))
    assert (found.statistic, found.standard_error, found.pvalue) == (0.0, 0.0, 1.0)


def test_a_difference_without_an_error_is_the_most_extreme() -> None:
    """All right against all wrong: infinite, as after swapping everything and nothing else."""
    u, v = [[1, 1]] * 3 + [[0, 0]] * 3, [[0, 0]] * 3 + [[0, 1]] * 3
    observed, swapped = sides(u, v)
    found = studentized_test(observed, swapped, PRECISION, once(observed))
    assert found.statistic == math.inf
    assert found.pvalue == one_by_one(observed, swapped, PRECISION, "two-sided")
    assert studentized_test(swapped, observed, PRECISION, once(observed), alternative="greater").pvalue == 1.0


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_exact_under_exchangeability(name: str, alternative: Alternative) -> None:
    """Given the pairs, all swaps are equally likely: at most a share a of their p-values is at most a."""
    for seed in range(3):
        observed, swapped = random_counts(20 + seed, n=6)
        found = Counter[float]()
        for chosen in itertools.product([True, False], repeat=6):
            keep = np.array(chosen)[:, None]
            pair = np.where(keep, observed, swapped), np.where(keep, swapped, observed)
            test = studentized_test(*pair, STATISTICS[name], once(observed), alternative=alternative)
            found[test.pvalue] += 1
        below = 0
        for pvalue in sorted(found):
            below += found[pvalue]
            assert below / 2**6 <= pvalue


@pytest.mark.parametrize("alternative", ["two-sided", "less"])
def test_a_mean_is_the_plain_test(alternative: Alternative) -> None:
    rng = np.random.default_rng(3)
    u, v = rng.integers(0, 5, (2, 11, 1))
    h = (RationalStatistic.variable(0, 2) - RationalStatistic.variable(1, 2)) / 11
    observed, swapped = sides(u, v)
    plain = structured_test(observed, swapped, h, alternative=alternative)
    assert (
        studentized_test(observed, swapped, h, once(observed), alternative=alternative).pvalue == plain.pvalue
    )


def test_statistics_without_a_slope_or_value_are_refused() -> None:
    observed, swapped = random_counts(1)
    with pytest.raises(InputError, match="`max` in the statistic is not differentiable"):
        studentized_test(observed, swapped, Y[0].maximum(Y[1]) - Y[2].maximum(Y[3]), once(observed))
    with pytest.raises(UndefinedStatisticError, match="undefined after some swaps"):
        studentized_test(
            *sides([[1, 1], [0, 0]], [[0, 0], [1, 1]]), X[0] / X[1] - X[2] / X[3], np.ones(2, int)
        )


def test_too_many_kinds_of_large_counts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    u, v = rng.integers(2**30, 2**31, (2, 60, 2))
    observed, swapped = sides(u, v)
    assert 0.0 < studentized_test(observed, swapped, PRECISION, once(observed), n_samples=500).pvalue <= 1.0
    monkeypatch.setattr(studentized, "MOST_CELLS", 50**2)
    with pytest.raises(
        CapacityError, match="60 kinds of discordant examples, each with 4 counts, are too many"
    ):
        studentized_test(observed, swapped, PRECISION, once(observed))


def test_many_kinds_of_examples_are_drawn_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studentized, "MOST_WORK", 2**26)
    rng = np.random.default_rng(0)
    total = rng.integers(20, 400, (2, 1_500))
    part = rng.binomial(total, 0.3)
    observed, swapped = sides(np.column_stack([part[0], total[0]]), np.column_stack([part[1], total[1]]))
    found = studentized_test(observed, swapped, PRECISION, once(observed))
    assert found.n_samples is not None
    assert studentized.LEAST_SAMPLES <= found.n_samples < 100_000


# --- how far the plain test is from one of equal scores ----------------------------------------------


def predictions(rng: np.random.Generator, n: int, shares: tuple[float, float]) -> tuple[Counts, Counts]:
    """True positives and positives of two runs of precision 0.4, however much each predicts positive."""
    label = rng.random(n) < 0.4
    flagged = [rng.random(n) < share for share in shares]
    u, v = (np.column_stack([label & each, each]) for each in flagged)
    return sides(u, v)


def test_variance_ratio_of_precision() -> None:
    """(q + r)^2 / 4qr for independent outputs, as derived in the module."""
    observed, swapped = predictions(np.random.default_rng(8), 400_000, (0.1, 0.5))
    found = variance_ratio(observed, swapped, PRECISION, once(observed))
    assert found is not None
    assert found.ratio == pytest.approx(0.6**2 / (4 * 0.1 * 0.5), rel=0.02)
    assert found.size(0.05, "two-sided") == pytest.approx(0.144, abs=0.004)
    assert found.size(0.05, "greater") == pytest.approx(0.110, abs=0.004)
    alike = variance_ratio(
        *predictions(np.random.default_rng(8), 400_000, (0.3, 0.3)), PRECISION, once(observed)
    )
    assert alike is not None
    assert alike.size(0.05, "two-sided") == pytest.approx(0.05, abs=0.001)


def test_without_variance_there_is_no_variance_ratio() -> None:
    observed, swapped = sides([[1, 1]], [[1, 1]])
    assert variance_ratio(observed, swapped, PRECISION, once(observed)) is None


@pytest.mark.slow
@pytest.mark.generated
@pytest.mark.parametrize("n", [200, pytest.param(500, marks=pytest.mark.nightly)])
def test_size_under_equal_precision(n: int, measured: Measured) -> None:
    """Denominators of 10 % and 50 %: the plain test rejects in .15, the studentised one in .05."""
    rng, number = np.random.default_rng(12), cases(1_000)
    rejected = np.zeros(2)
    for _ in range(number):
        observed, swapped = predictions(rng, n, (0.1, 0.5))
        test = studentized_test(observed, swapped, PRECISION, once(observed), n_samples=999)
        rejected += structured_test(observed, swapped, PRECISION).pvalue < 0.05, test.pvalue < 0.05
    measured(f"N = {n}, p < 0.05 in {rejected / number} of {number}: plain, studentised")
    assert 0.11 < rejected[0] / number < 0.18
    low, high = binom.ppf(1e-3, number, 0.04), binom.ppf(1 - 1e-3, number, 0.06)
    assert low <= rejected[1] <= high
