"""Means over pairs of examples: weights of all examples and the exact p-value, from scores to p."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.summary import Row

from trackperm.exact import PermutationTest, difference_test
from trackperm.exact.pairwise import Roles, ranked_pairs, ranked_scores


def of_classes(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    label = rng.random(n) < 0.3
    shared = rng.normal(size=n) + label
    return label, shared + 0.8 * rng.normal(size=n), shared + rng.normal(size=n)


def roc_auc(label: np.ndarray, candidate: np.ndarray, baseline: np.ndarray) -> PermutationTest:
    zeros = np.zeros(label.size, dtype=np.int64)
    roles = Roles(np.where(label, 0, -1), np.where(label, -1, 0), zeros, zeros, zeros, zeros)
    terms = np.array([0, 1, 2])[None, None, None].repeat(3, axis=2)
    sums = ranked_pairs(ranked_scores(candidate, baseline), roles, terms, np.ones((1, 1, 3), dtype=bool))
    return difference_test(sums.weights, np.zeros_like(sums.weights))


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
