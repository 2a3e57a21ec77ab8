"""Scores after exchanges against libraries, exact tails, and the draws of Monte Carlo."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata
from support import rank_scores
from support.budget import cases

from trackperm.errors import CapacityError, InputError
from trackperm.exact import PermutationTest, TestOptions
from trackperm.exact.rank_statistics import (
    RankedExamples,
    changes_by_coin,
    draws_by_default,
    rank_test_of,
    scores_by_stratum,
)
from trackperm.exact.rank_statistics import spearman as spearman_module

SCORES = {
    "spearman": rank_scores.spearman,
    "average_precision": rank_scores.average_precision,
    "kendall_tau_b": rank_scores.kendall_tau_b,
}


def random_examples(
    rng: np.random.Generator, name: str, n: int, n_values: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return codes of two systems and labels with ties of every kind."""
    u, v = rng.integers(0, n_values, (2, n))
    labels = rng.integers(0, 2, n) if name == "average_precision" else rng.integers(-3, 4, n)
    labels[:2] = 0, 1
    return u, v, labels


def tested(name: str, u: Any, v: Any, labels: Any, **options: Any) -> PermutationTest:
    ranked = RankedExamples.of(u, v, labels)
    return rank_test_of(scores_by_stratum(name, ranked), ranked, TestOptions(**options), n_units=len(u))


@pytest.mark.parametrize("name", SCORES)
def test_scores_after_random_exchanges(name: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(cases(10)):
        n = int(rng.integers(2, 40))
        u, v, labels = random_examples(rng, name, n, int(rng.integers(2, 60)))
        ranked = RankedExamples.of(u, v, labels, rng.integers(0, 12, n))
        tosses = rng.integers(0, 2, (9, ranked.n_coins)).astype(np.uint8)
        found = scores_by_stratum(name, ranked).scores(ranked.states(tosses))
        for draw, toss in enumerate(tosses):
            swapped = np.append(toss, 0)[ranked.coins] == 1
            sides = np.where(swapped, v, u), np.where(swapped, u, v)
            expected = [SCORES[name](side, labels) for side in sides]
            assert [side[draw] for side in found] == pytest.approx(expected, abs=1e-12)


@pytest.mark.sample(1)
@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_a_correlation_without_ties_is_exact_as_all_exchanges_say(alternative: Any) -> None:
    rng = np.random.default_rng(1)
    for _ in range(cases(6)):
        codes = rng.permutation(14)
        u, v, labels = codes[:7], codes[7:], rng.integers(0, 5, 7)
        labels[:2] = 0, 1
        found = tested("spearman", u, v, labels, alternative=alternative)
        assert (found.ties, found.rank) == ("exact", 1)
        values = []
        for place in range(2**7):
            swapped = place >> np.arange(7) & 1 == 1
            sides = np.where(swapped, v, u), np.where(swapped, u, v)
            values.append(np.subtract(*(rank_scores.spearman(side, labels) for side in sides)))
        sign = {"two-sided": 0, "less": -1, "greater": 1}[alternative]
        extreme = [
            sign * x >= sign * values[0] - 1e-11 if sign else abs(x) >= abs(values[0]) - 1e-11 for x in values
        ]
        assert found.pvalue == pytest.approx(np.mean(extreme), rel=1e-12)
        assert found.observed == pytest.approx(values[0], abs=1e-14)
        law = found.null_distribution
        assert law.mass @ law.values**2 == pytest.approx(np.mean(np.square(values)), rel=1e-9)


def test_a_tail_far_below_the_number_of_draws() -> None:
    rng = np.random.default_rng(2)
    labels = rng.permutation(2000)
    u, v = labels + rng.normal(0, 300, 2000), labels + rng.normal(0, 700, 2000)
    codes = np.unique(np.concatenate([u, v]), return_inverse=True)[1]
    found = tested("spearman", codes[:2000], codes[2000:], labels)
    assert found.error_bound <= 1e-10
    assert found.log10_pvalue < -20


@pytest.mark.parametrize("name", SCORES)
def test_draws_agree_with_all_exchanges(name: str) -> None:
    rng = np.random.default_rng(3)
    u, v, labels = random_examples(rng, name, 14, 6)
    exact = tested(name, u, v, labels, method="enumerate")
    drawn = tested(name, u, v, labels, method="monte-carlo", n_samples=20_000)
    assert (exact.method, drawn.method) == ("enumerate", "monte-carlo")
    assert drawn.interval[0] <= exact.pvalue <= drawn.interval[1]
    n_extreme = round(drawn.pvalue * 20_001) - 1
    assert drawn.pvalue == (n_extreme + 1) / 20_001


@pytest.mark.parametrize("name", SCORES)
def test_draws_depend_on_the_seed_alone(name: str) -> None:
    rng = np.random.default_rng(4)
    u, v, labels = random_examples(rng, name, 300, 40)
    options: dict[str, Any] = {"method": "monte-carlo", "n_samples": 3000}
    found = [
        tested(name, u, v, labels, **options, **more)
        for more in ({}, {"memory_budget": 2**24}, {"seed": 1}, {"exceedances": 20})
    ]
    assert found[0].pvalue == found[1].pvalue != found[2].pvalue
    stopped = found[3]
    assert stopped.n_samples is not None
    assert stopped.pvalue == 20 / stopped.n_samples
    again = tested(name, u, v, labels, **options | {"n_samples": stopped.n_samples})
    assert round(again.pvalue * (stopped.n_samples + 1)) - 1 == 20


@pytest.mark.extended
def test_the_level_is_kept_by_few_draws() -> None:
    rng = np.random.default_rng(5)
    n_rejected = 0
    for seed in range(200):
        u, v, labels = random_examples(rng, "average_precision", 30, 1000)
        options: dict[str, Any] = {"method": "monte-carlo", "n_samples": 19, "seed": seed}
        n_rejected += tested("average_precision", u, v, labels, **options).pvalue <= 0.1
    assert n_rejected <= 35  # binomial(200, 0.1) exceeds it with a probability of 0.0003


def test_default_number_of_draws() -> None:
    found = [draws_by_default(n) for n in (10, 10_000, 20_000, 10**6, 10**9)]
    assert found == [100_000, 100_000, 50_000, 1_000, 1_000]
    rng = np.random.default_rng(6)
    u, v, labels = random_examples(rng, "average_precision", 200_000, 100)
    v = np.where(np.arange(200_000) < 100, v, u)
    test = tested("average_precision", u, v, labels, exceedances=1)
    assert "5,000 by default for 200,000 examples, `--samples` draws more" in test.why


@pytest.mark.parametrize("name", SCORES)
def test_changes_by_single_coins(name: str) -> None:
    rng = np.random.default_rng(7)
    u, v, labels = random_examples(rng, name, 20, 8)
    ranked = RankedExamples.of(u, v, labels)
    found = changes_by_coin(scores_by_stratum(name, ranked), ranked)
    for coin, change in enumerate(found):
        swapped = ranked.coins == coin
        sides = [(u, v), (np.where(swapped, v, u), np.where(swapped, u, v))]
        observed, changed = (np.subtract(*(SCORES[name](side, labels) for side in pair)) for pair in sides)
        assert change == pytest.approx((observed - changed) / 2, abs=1e-12)


def test_refused() -> None:
    u, v, labels = random_examples(np.random.default_rng(8), "average_precision", 60, 500)
    for method, error, said in (
        ("lattice", InputError, '`method="lattice"` does not apply'),
        ("enumerate", CapacityError, r"have 2\^\d+ exchanges"),
    ):
        with pytest.raises(error, match=said):
            tested("average_precision", u, v, labels, method=method)
    with pytest.raises(CapacityError, match="memory budget"):
        tested("average_precision", u, v, labels, memory_budget=1000)
    with pytest.raises(CapacityError, match="mid-p"):
        tested("average_precision", u, v, labels, mid_p=True)


def test_mid_p_of_few_examples() -> None:
    u, v, labels = random_examples(np.random.default_rng(9), "average_precision", 8, 4)
    plain, mid = (tested("average_precision", u, v, labels, mid_p=mid_p) for mid_p in (False, True))
    assert plain.pvalue / 2 <= mid.pvalue < plain.pvalue


@pytest.mark.parametrize("name", SCORES)
def test_equal_scores(name: str) -> None:
    u, _, labels = random_examples(np.random.default_rng(10), name, 8, 4)
    found = tested(name, u, u, labels)
    assert (found.pvalue, found.observed, found.n_discordant) == (1.0, 0.0, 0)


def test_correlations_of_many_examples_do_not_lose_ties() -> None:
    """Rounding errors stay far below the band of ties, so that every exchange ties with itself."""
    n, rng = 300_000, np.random.default_rng(1)
    u, v = rng.integers(0, 10**7, (2, n))
    u[rng.random(n) < 0.5] = 0
    labels = rng.integers(0, n, n)
    ranked = RankedExamples.of(u, v, labels)
    prepared = scores_by_stratum("spearman", ranked)
    assert prepared.linear is None
    found = prepared.scores(ranked.states(np.zeros((1, ranked.n_coins), dtype=np.uint8)))
    doubled = [(2 * rankdata(each)).astype(np.int64) - (n + 1) for each in (u, v, labels)]
    for side, own in zip(found, doubled[:2], strict=True):
        # Sums of products are at most n^3 / 3, below 2^63.
        scale = math.sqrt(int(own @ own)) * math.sqrt(int(doubled[2] @ doubled[2]))
        assert side[0] == pytest.approx(int(own @ doubled[2]) / scale, abs=1e-15)


def test_beyond_integers_only_tied_scores_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.random.default_rng(0).permutation(24)
    u, v, labels = codes[:12], codes[12:], np.arange(12)
    within = tested("spearman", u, v, labels)
    monkeypatch.setattr(spearman_module, "MOST_EXAMPLES", 11)
    beyond = tested("spearman", u, v, labels)
    assert (beyond.pvalue, beyond.observed) == (within.pvalue, pytest.approx(within.observed, abs=1e-14))
    with pytest.raises(CapacityError, match=r"of 12 examples are too many .* the limit is 11"):
        tested("spearman", u // 2, v // 2, labels)
