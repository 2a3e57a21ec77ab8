"""Scores over pairs of examples, from scores to p: exact ones of weights, and tau-b with ties by swaps."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from benchmarks.summary import Row
from exact.pairwise.levels import weights

import trackperm
from trackperm.exact import PermutationTest, difference_test
from trackperm.exact.options import TestOptions
from trackperm.exact.pairwise import Roles, ranked_pairs, ranked_scores
from trackperm.exact.rank_statistics import RankedExamples, rank_test_of, scores_by_stratum


def of_classes(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    label = rng.random(n) < 0.3
    shared = rng.normal(size=n) + label
    return label, shared + 0.8 * rng.normal(size=n), shared + rng.normal(size=n)


def roc_auc(label: np.ndarray, candidate: np.ndarray, baseline: np.ndarray) -> PermutationTest:
    added = weights(label, candidate, baseline)
    return difference_test(added, np.zeros_like(added))


def concordance_index(label: np.ndarray, candidate: np.ndarray, baseline: np.ndarray) -> PermutationTest:
    rng = np.random.default_rng(1)
    n = label.size
    zeros = np.zeros(n, dtype=np.int64)
    event = rng.random(n) < 0.5
    time = np.argsort(np.argsort(rng.exponential(size=n) * np.exp(-baseline / 2 - candidate / 2)))
    roles = Roles(np.where(event, 0, -1), (~event).astype(np.int64), time, time, zeros, zeros)
    terms = np.zeros((1, 2, 3, 3), dtype=np.int64)
    terms[:, :, 0] = terms[:, 1:, 1] = 0, 1, 2
    sums = ranked_pairs(ranked_scores(candidate, baseline), roles, terms, terms.any(axis=3))
    return difference_test(sums.weights, np.zeros_like(sums.weights))


@pytest.mark.parametrize("n", [10**5, 10**6])
@pytest.mark.parametrize("test", [roc_auc, concordance_index])
def test_pairs(benchmark, table, test, n):
    result = benchmark.pedantic(test, args=of_classes(n), rounds=3 if n > 10**5 else 7, warmup_rounds=1)
    assert result.error_bound <= 1e-10
    table.add(
        Row(
            f"{test.__name__}, N = 10^{round(np.log10(n))}",
            benchmark.stats.stats.median,
            limit=0.5 if n == 10**5 else 6.0,
            series=test.__name__,
            n_examples=n,
        )
    )


def test_areas_of_ten_classes(benchmark, table):
    n, rng = 10**5, np.random.default_rng(0)
    label = rng.integers(0, 10, n)
    runs = []
    for _ in range(2):
        odds = np.exp(rng.normal(size=(n, 10)) + (label[:, None] == np.arange(10)))
        shares = (odds / odds.sum(axis=1, keepdims=True)).T
        columns = {f"probability_{c}": share for c, share in enumerate(shares)}
        runs.append(pl.DataFrame({"id": range(n), "label": label, **columns}))
    benchmark.pedantic(trackperm.compare, args=(*runs, "macro_roc_auc"), rounds=3, warmup_rounds=1)
    table.add(Row("compare, macro_roc_auc of 10 classes, N = 10^5", benchmark.stats.stats.median, limit=5.0))


def kendall_tau_b(label: np.ndarray, candidate: np.ndarray, baseline: np.ndarray) -> PermutationTest:
    codes = ranked_scores(candidate, baseline)
    ranked = RankedExamples.of(codes.u, codes.v, label, by_run=True)
    return rank_test_of(scores_by_stratum("kendall_tau_b", ranked), ranked, TestOptions(), n_units=label.size)


@pytest.mark.parametrize("digits", [0, 2])
def test_tau_b_with_ties(benchmark, table, digits):
    rng = np.random.default_rng(0)
    label = rng.normal(size=10**4)
    both = [np.round(label + rng.normal(size=label.size), digits) for _ in range(2)]
    places = np.argsort(np.argsort(label))
    result = benchmark.pedantic(kendall_tau_b, args=(places, *both), rounds=3, warmup_rounds=1)
    assert result.method == "monte-carlo"
    table.add(
        Row(
            f"kendall_tau_b, N = 10^4, scores of {digits} decimals, 100,000 swaps",
            benchmark.stats.stats.median,
            limit=3.0,
            series="kendall_tau_b",
            n_examples=10**4,
        )
    )
