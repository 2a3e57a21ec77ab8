"""Power from a pilot: against the exact power, its size under the null hypothesis, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from support.cases import F1

from trackperm.errors import InputError, UndefinedStatisticError
from trackperm.exact import CountTable, PermutationTest, RationalStatistic, structured_test
from trackperm.exact.engines.monte_carlo import exact_interval
from trackperm.exact.power import paired_power, simulated_power

X = [RationalStatistic.variable(i, 4) for i in range(4)]
CORRECT = RationalStatistic.variable(0, 2) - RationalStatistic.variable(1, 2)


def permuted(h: RationalStatistic, table: CountTable, **options: Any) -> PermutationTest:
    observed, swapped = (
        np.hstack([table.candidate, table.baseline]),
        np.hstack([table.baseline, table.candidate]),
    )
    return structured_test(observed, swapped, h, multiplicities=table.multiplicities, **options)


def pilot(better: int, worse: int, both: int) -> CountTable:
    counts = np.array([better, worse, both])
    u, v = np.array([[1], [0], [1]])[counts > 0], np.array([[0], [1], [1]])[counts > 0]
    return CountTable.from_counts(("correct",), u, v, counts[counts > 0])


def f1_pilot() -> CountTable:
    generator = np.random.default_rng(3)
    u = generator.multinomial(1, [0.4, 0.1, 0.5], 300)[:, :2]
    v = generator.multinomial(1, [0.3, 0.2, 0.5], 300)[:, :2]
    return CountTable.from_counts(("tp", "incorrect"), u, v)


@pytest.mark.parametrize(("n", "effect"), [(200, 1.0), (200, 0.5), (40, 1.0)])
def test_against_the_exact_power(n: int, effect: float):
    found = simulated_power(pilot(15, 5, 80), partial(permuted, CORRECT), n, effect=effect, n_resamples=400)
    low, high = found.interval
    assert low <= paired_power(n, 0.1 * effect, 0.2) <= high
    assert found.power == found.n_rejected / 400
    assert found.interval == exact_interval(found.n_rejected, 400, stopped=False)


@pytest.mark.nightly
@pytest.mark.parametrize(("n", "effect"), [(60, 0.8), (200, 1.0), (463, 0.3)])
def test_against_the_exact_power_closely(n: int, effect: float):
    found = simulated_power(
        pilot(15, 5, 80), partial(permuted, CORRECT), n, effect=effect, n_resamples=20_000
    )
    low, high = found.interval
    assert low <= paired_power(n, 0.1 * effect, 0.2) <= high
    assert high - low < 0.02


@pytest.mark.parametrize(
    ("table", "h"), [(pilot(15, 5, 80), CORRECT), (f1_pilot(), F1)], ids=["accuracy", "f1"]
)
def test_without_an_effect_it_is_the_size(table: CountTable, h: RationalStatistic):
    found = simulated_power(table, partial(permuted, h), 100, effect=0.0, n_resamples=100)
    assert found.interval[0] <= 0.05


def test_power_of_f1_rises_with_n_and_with_the_effect():
    powers = [
        simulated_power(f1_pilot(), partial(permuted, F1), n, effect=effect, n_resamples=40).power
        for n, effect in [(20, 1.0), (60, 1.0), (150, 1.0), (150, 0.2)]
    ]
    assert powers[0] < powers[1] < powers[2]
    assert powers[3] < powers[2]


def test_a_seed_gives_the_same_again():
    draw = partial(simulated_power, f1_pilot(), partial(permuted, F1), 80, n_resamples=20)
    assert draw(seed=4) == draw(seed=4)
    assert len({draw(seed=seed).n_rejected for seed in range(4)}) > 1


def test_resamples_have_the_requested_size():
    sizes = []

    def remembered(table: CountTable) -> PermutationTest:
        sizes.append(table.n_examples)
        assert (table.multiplicities > 0).all()
        return permuted(CORRECT, table)

    simulated_power(pilot(3, 1, 2), remembered, 37, n_resamples=20)
    assert sizes == [6] + [37] * 20


def test_undefined_statistics_count_as_not_rejected():
    """F1 of two true positives in 40 examples: some resamples have none, and 0/0 has no value."""
    f1 = X[0].divide(X[0] + X[1] / 2) - X[2].divide(X[2] + X[3] / 2)
    counts = [1, 1, 38]
    rare = CountTable.from_counts(
        ("tp", "incorrect"), [[1, 0], [1, 0], [0, 0]], [[1, 0], [0, 1], [0, 0]], counts
    )
    found = simulated_power(rare, partial(permuted, f1), 20, n_resamples=60)
    # no true positive is drawn with a probability of (38/40)^20 = 0.36
    assert 8 <= found.n_undefined <= 35
    assert found.n_rejected == 0
    assert f"60 resamples of the pilot, {found.n_undefined} of them undefined" in found.sentence(
        "200 examples"
    )


def test_errors_of_the_pilot_are_raised():
    def refusing(table: CountTable) -> PermutationTest:
        raise UndefinedStatisticError("0/0")

    with pytest.raises(UndefinedStatisticError):
        simulated_power(pilot(3, 1, 2), refusing, 10, n_resamples=5)


def test_a_pvalue_counts_as_below_alpha_with_its_whole_interval():
    better = pilot(1, 0, 0)
    draw = partial(simulated_power, better, n_examples=5, n_resamples=3)
    assert draw(partial(permuted, CORRECT), alpha=1 / 16).power == 0.0
    assert draw(partial(permuted, CORRECT), alpha=0.0626).power == 1.0
    sampled = partial(permuted, CORRECT, method="monte-carlo", n_samples=20)
    drawn = partial(simulated_power, better, sampled, n_resamples=3)
    assert sampled(CountTable.from_counts(("correct",), [[1]], [[0]], [30])).pvalue < 0.05
    assert drawn(n_examples=30).power == 0.0


def test_the_method_is_named():
    found = simulated_power(pilot(15, 5, 80), partial(permuted, CORRECT), 200, n_resamples=50)
    assert found.sentence("200 examples").startswith(f"power {found.power:.3g} [")
    assert found.sentence("200 examples").endswith(
        "with 200 examples (Monte Carlo: 50 resamples of the pilot, 99 % interval)"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_examples": 0}, "`n_examples` is 0; expected an integer of at least 1"),
        ({"n_resamples": 0}, "`n_resamples` is 0"),
        ({"seed": -1}, "`seed` is -1"),
        ({"effect": 1.2}, r"`effect` is 1\.2; expected a share"),
        ({"alpha": 0.0}, r"`alpha` is 0\.0"),
    ],
)
def test_refusals(options: dict[str, float], message: str):
    call: Callable[..., object] = simulated_power
    with pytest.raises(InputError, match=message):
        call(pilot(3, 1, 2), partial(permuted, CORRECT), **{"n_examples": 10, **options})
