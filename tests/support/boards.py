"""Leaderboards of 2, 40 and 129 runs, and of unusual results, for the tests of what is shown."""

from __future__ import annotations

import random
from functools import cache

import polars as pl

import trackperm
from support.comparisons import answers
from trackperm.leaderboards import Leaderboard


def sweep_tables(n: int) -> dict[str, pl.DataFrame]:
    """Draw `n` runs of a sweep on 400 examples, whose accuracy decreases from about 0.95 to 0.65."""
    rng = random.Random(3)
    hard = [rng.random() for _ in range(400)]
    runs = {}
    for i in range(n):
        level = 0.85 - 0.25 * (i / max(n - 1, 1)) ** 1.3
        name = f"roberta-large-lr{(1, 2, 3, 5)[i % 4]}e-05-warmup{100 * (i // 4 % 3)}-seed{i // 12}"
        runs[name] = answers([0.65 * each + 0.35 * rng.random() < level for each in hard])
    return runs


@cache
def sweep(n: int, *, correction: str = "holm", baseline: int | None = None) -> Leaderboard:
    """Rank the runs of :func:`sweep_tables`."""
    runs = sweep_tables(n)
    against = None if baseline is None else list(runs)[baseline]
    return trackperm.leaderboard(runs, "accuracy", correction=correction, baseline=against)


def of_scores(*right: int, n: int = 200, statistic: str = "accuracy", **options: object) -> Leaderboard:
    """Rank runs that are right on the first examples, as many as `right` says; `m0` is the first."""
    runs = {f"m{i}": answers([each < k for each in range(n)]) for i, k in enumerate(right)}
    return trackperm.leaderboard(runs, statistic, **options)
