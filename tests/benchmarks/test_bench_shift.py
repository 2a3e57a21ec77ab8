"""The interval of all shifts that are not rejected: part of every printed comparison of real scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from benchmarks.summary import Row
from benchmarks.workloads import Integers, seconds
from support.cases import mean_scores

from trackperm.exact import difference_test
from trackperm.exact.intervals import shift_interval


def normal(rng: np.random.Generator, n: int) -> Integers:
    return np.rint(10_000 * rng.normal(0.02, 0.1, n)).astype(np.int64)


def heavy_tailed(rng: np.random.Generator, n: int) -> Integers:
    return np.rint(10_000 * np.clip(0.01 + 0.02 * rng.standard_cauchy(n), -100, 100)).astype(np.int64)


def six_decimals(rng: np.random.Generator, n: int) -> Integers:
    return np.rint(1_000_000 * rng.normal(0.02, 0.1, n)).astype(np.int64)


@pytest.mark.parametrize(
    ("kind", "draw", "n", "limit"),
    [
        ("normal, four decimals", normal, 112, 0.5),
        ("normal, four decimals", normal, 5_000, 1.0),
        ("heavy tails, four decimals", heavy_tailed, 1_000, 1.0),
        ("normal, six decimals", six_decimals, 50, 1.0),
        ("normal, six decimals", six_decimals, 200, 1.0),
    ],
)
def test_shifts(
    kind: str, draw: Callable[[np.random.Generator, int], Integers], n: int, limit: float, benchmark, table
):
    differences = draw(np.random.default_rng(n), n)
    values, counts = np.unique(differences, return_counts=True)
    scores = mean_scores(values.tolist(), counts.tolist())
    interval = benchmark.pedantic(shift_interval, args=(scores,), rounds=3, warmup_rounds=1)
    table.add(
        Row(
            f"interval by shifts, {kind}, N = {n}",
            benchmark.stats.stats.median,
            beside="the p-value",
            theirs=seconds(difference_test, differences, np.zeros_like(differences), rounds=3),
            compare="share",
            limit=limit,
            note=f"{interval.low:.6g} to {interval.high:.6g}",
        )
    )
