"""Bounds of differences of tau-b: against all exchanges, and against p-values without bounds."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats
from support.budget import cases

from trackperm.exact.options import TestOptions
from trackperm.exact.pairwise import ranked_scores
from trackperm.exact.rank_statistics import RankedExamples, rank_test_of, scores_by_stratum
from trackperm.exact.rank_statistics.kendall import KendallTauB
from trackperm.exact.rank_statistics.registry import MeanOverStrata
from trackperm.exact.rank_statistics.tau_bounds import ORDER


def counts(scores: Any, labels: Any) -> tuple[int, int]:
    """Return concordant minus discordant pairs, and pairs that are tied in the scores."""
    signs, others = (np.sign(each[:, None] - each) for each in (scores, labels))
    return int((signs * others).sum()) // 2, (int((signs == 0).sum()) - scores.size) // 2


def test_moments_and_linear_sums_over_all_exchanges() -> None:
    rng = np.random.default_rng(0)
    for number in range(cases(30)):
        n = int(rng.integers(2, 9))
        u, v = rng.integers(0, (2, 4, 9)[number % 3], (2, n))
        labels = rng.integers(0, (2, 9)[number % 2], n)
        ranked = RankedExamples.of(u, v, labels)
        bounds = KendallTauB.of(ranked).bounds
        if bounds is None:
            assert np.unique(np.concatenate([u, v])).size >= n
            continue
        sums, ties = [], []
        for toss in product((0, 1), repeat=ranked.n_coins):
            is_exchanged = (ranked.coins >= 0) & (np.array([*toss, 0])[ranked.coins] == 1)
            own, other = (counts(np.where(is_exchanged, a, b), labels) for a, b in ((v, u), (u, v)))
            signs = 1.0 - 2.0 * np.array(toss)
            assert (signs @ bounds.weights).tolist() == [own[0] - other[0], own[1] - other[1]]
            sums.append(own[0] + other[0])
            ties.append(own[1] + other[1])
        assert sum(bounds.sums) / 2.0 == pytest.approx(np.mean(sums), abs=1e-9)
        factor = math.e * (ORDER - 1.0)
        assert bounds.sums[1] - np.mean(sums) >= factor * np.std(sums) - 1e-9
        assert bounds.ties[1] - np.mean(ties) >= factor * np.std(ties) - 1e-9
        assert bounds.ties[0] <= min(ties)


def samples(n: int, kind: str) -> tuple[RankedExamples, Any, Any, Any]:
    rng = np.random.default_rng(1)
    labels = rng.normal(size=n)
    u, v = np.round(labels + rng.normal(size=(2, n)), 0 if kind == "grades" else 2)
    labels = np.unique(np.rint(labels) if kind == "grades" else labels, return_inverse=True)[1]
    codes = ranked_scores(u, v)
    return RankedExamples.of(codes.u, codes.v, labels, by_run=True), codes.u, codes.v, labels


@pytest.mark.parametrize("kind", ["grades", "decimals"])
def test_bounds_contain_differences_and_are_narrow(kind: str) -> None:
    ranked, u, v, labels = samples(3_000, kind)
    bounds = KendallTauB.of(ranked).bounds
    assert bounds is not None
    tosses = np.random.default_rng(2).integers(0, 2, (40, ranked.n_coins)).astype(np.uint8)
    low, high = bounds.ends(tosses)
    padded = np.concatenate([tosses, np.zeros((40, 1), dtype=np.uint8)], axis=1)
    differences = []
    for toss in padded:
        is_exchanged = toss[ranked.coins] == 1
        own, other = (
            stats.kendalltau(np.where(is_exchanged, a, b), labels).statistic for a, b in ((v, u), (u, v))
        )
        differences.append(own - other)
    assert (low <= differences).all()
    assert (differences <= high).all()
    assert np.mean(high - low) < 0.25 * np.std(differences)


@pytest.mark.sample(3)
@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
@pytest.mark.parametrize("kind", ["grades", "decimals"])
def test_bounds_do_not_change_the_pvalue(kind: str, alternative: Any) -> None:
    ranked, *_ = samples(400, kind)
    scores = scores_by_stratum("kendall_tau_b", ranked)
    (part,) = scores.parts
    assert isinstance(part, KendallTauB)
    assert scores.bounds is not None
    plain = MeanOverStrata((replace(part, bounds=None),), scores.weights)
    assert plain.bounds is None
    options = TestOptions(alternative=alternative, n_samples=3_000)
    found, expected = (rank_test_of(each, ranked, options, n_units=400) for each in (scores, plain))
    assert found.method == expected.method == "monte-carlo"
    assert 0.0 < found.pvalue < 1.0
    assert found.pvalue == expected.pvalue


def test_clusters_and_strata_have_no_bounds() -> None:
    ranked, u, v, labels = samples(60, "grades")
    both = RankedExamples.of(u, v, labels, np.arange(60) // 2, by_run=True)
    assert scores_by_stratum("kendall_tau_b", both).bounds is None
    strata = np.arange(60) % 2
    assert scores_by_stratum("kendall_tau_b", ranked, strata, [1.0, 1.0]).bounds is None
    assert scores_by_stratum("spearman", ranked).bounds is None
