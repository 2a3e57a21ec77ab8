"""The exact test beside the paper's own algorithm, in the same run."""

from __future__ import annotations

import time

import numpy as np
import pytest

from trackperm.exact import RationalStatistic, difference_test, structured_test
from trackperm.exact.reference import exact_perm_test


def answers(n_examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Right and wrong answers of two systems that agree on most examples."""
    rng = np.random.default_rng(0)
    baseline = rng.binomial(1, 0.88, n_examples)
    return np.where(rng.random(n_examples) < 0.8, baseline, rng.binomial(1, 0.9, n_examples)), baseline


def seconds(function, *args) -> float:
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


@pytest.mark.parametrize("n_examples", [500, 2_000, 10_000])
def test_accuracy_beside_convolve_fft(benchmark, n_examples: int):
    candidate, baseline = answers(n_examples)
    result = benchmark(difference_test, candidate, baseline)
    difference = candidate - baseline
    reference = seconds(exact_perm_test, difference, -difference)
    benchmark.extra_info["times_faster"] = reference / benchmark.stats.stats.median
    assert result.error_bound < 1e-10


@pytest.mark.parametrize("n_examples", [10**6, 10**7])
def test_accuracy_beside_counting(benchmark, n_examples: int):
    candidate, baseline = answers(n_examples)
    benchmark.pedantic(difference_test, args=(candidate, baseline), rounds=5, warmup_rounds=1)
    counting = min(seconds(lambda: np.bincount(np.abs(candidate - baseline))) for _ in range(5))
    benchmark.extra_info["times_bincount"] = benchmark.stats.stats.median / counting


@pytest.mark.parametrize("n_examples", [100, 10**4, 10**6])
def test_f1(benchmark, n_examples: int):
    rng = np.random.default_rng(0)
    u = rng.binomial(3, (0.8, 0.2), size=(n_examples, 2))
    v = rng.binomial(3, (0.79, 0.21), size=(n_examples, 2))
    tp_u, in_u, tp_v, in_v = (RationalStatistic.variable(i, 4) for i in range(4))
    h = tp_u.divide(tp_u + in_u / 2, undefined=0) - tp_v.divide(tp_v + in_v / 2, undefined=0)
    stay, swap = np.hstack([u, v]), np.hstack([v, u])
    result = benchmark.pedantic(structured_test, args=(stay, swap, h), rounds=5, warmup_rounds=1)
    benchmark.extra_info["log10_pvalue"] = result.log10_pvalue
    assert result.error_bound < 1e-8
