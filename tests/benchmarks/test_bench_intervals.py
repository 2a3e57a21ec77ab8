"""Intervals beside their tests, in CPU time: at most ten times as long, or 50 ms where the test is short."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import polars as pl
import pytest
from benchmarks.summary import Row
from benchmarks.workloads import Integers, seconds
from support.cases import mean_scores

import trackperm
from trackperm.comparison.inference.effect import interval_of
from trackperm.exact import difference_test, structured_test
from trackperm.exact.intervals import Interval, shift_interval

MOST = 10.0
FLOOR = 0.05
cpu_seconds = partial(seconds, rounds=3, clock=time.process_time)


def row(name: str, interval: float, test: float, note: str) -> Row:
    return Row(
        f"interval, {name}",
        interval,
        beside="the p-value",
        theirs=test,
        compare="share",
        limit=max(MOST * test, FLOOR),
        note=note,
    )


def predictions(n: int, n_classes: int) -> list[pl.DataFrame]:
    """Two classifiers that are wrong on 5 % of the examples together, and on 10 and 12 % alone."""
    rng = np.random.default_rng(n + n_classes)
    label = (rng.random(n) < 0.3).astype(int) if n_classes == 2 else rng.integers(0, n_classes, n)
    both, runs = rng.random(n) < 0.05, []
    for rate in (0.1, 0.12):
        wrong = both | (rng.random(n) < rate)
        other = (label + rng.integers(1, n_classes, n)) % n_classes
        runs.append(
            pl.DataFrame({"id": np.arange(n), "label": label, "prediction": np.where(wrong, other, label)})
        )
    return runs


@pytest.mark.parametrize(
    ("statistic", "n", "n_classes"),
    [
        ("f1", 10**3, 2),
        ("f1", 10**5, 2),
        ("f1", 10**6, 2),
        ("precision", 10**5, 2),
        ("mcc", 10**5, 2),
        ("cohen_kappa", 10**5, 5),
        ("macro_f1", 10**5, 3),
        ("macro_f1", 10**5, 20),
    ],
)
def test_score_intervals(statistic: str, n: int, n_classes: int, benchmark, table):
    comparison = trackperm.compare(*predictions(n, n_classes), statistic)
    spec, counted = comparison.statistic, comparison.count_table
    rows = spec.pairs(counted.candidate, counted.baseline)

    def tested() -> object:
        return structured_test(
            *rows, spec.tested(*rows, counted.multiplicities), multiplicities=counted.multiplicities
        )

    found = interval_of(spec, counted, alpha=0.05, alternative="two-sided")
    assert isinstance(found, Interval), found
    interval = benchmark.pedantic(
        lambda: cpu_seconds(lambda: interval_of(spec, counted, alpha=0.05, alternative="two-sided")), rounds=1
    )
    name = f"{statistic}{f' of {n_classes} classes' * (n_classes > 2)}, N = {n:,}"
    table.add(row(name, interval, cpu_seconds(tested), found.method))


def differences(scale: float, n: int) -> Integers:
    return np.rint(scale * np.random.default_rng(n).normal(0.0005, 0.1, n)).astype(np.int64)


@pytest.mark.parametrize(
    ("kind", "scale", "n"),
    [
        ("four decimals", 1e4, 10**3),
        ("four decimals", 1e4, 10**5),
        ("six decimals", 1e6, 10**5),
        ("floats", 1e15, 10**3),
        ("floats", 1e15, 10**5),
    ],
)
def test_intervals_of_real_scores(kind: str, scale: float, n: int, benchmark, table):
    drawn = differences(scale, n)
    values, counts = np.unique(drawn, return_counts=True)
    scores = mean_scores(values.tolist(), counts.tolist())
    interval = benchmark.pedantic(lambda: cpu_seconds(lambda: shift_interval(scores)), rounds=1)
    test = cpu_seconds(lambda: difference_test(drawn, np.zeros_like(drawn)))
    table.add(row(f"real scores, {kind}, N = {n:,}", interval, test, f"{values.size:,} distinct differences"))
