"""Counters of a million examples of twelve tokens."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from benchmarks.summary import Row

from trackperm.statistic.counters import COUNTERS

N, LENGTH = 1_000_000, 12
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG"]
WORDS = [f"w{i}" for i in range(30_000)]
LIMITS = {
    "token_matches": 5.0,
    "span_tp": 10.0,
    "set_overlap": 10.0,
    "edit_operations": 10.0,
    "answer_f1": 20.0,
}


def lists(items: list[str], numbers: np.ndarray) -> pl.Series:
    return pl.Series(np.array(items)[numbers].ravel()).reshape((N, LENGTH)).arr.to_list()


@pytest.mark.parametrize("name", LIMITS)
def test_a_million_examples(benchmark, table, name: str):
    rng = np.random.default_rng(0)
    items = TAGS if name == "span_tp" else WORDS
    label = rng.integers(0, len(items), (N, LENGTH))
    prediction = np.where(rng.random((N, LENGTH)) < 0.2, rng.integers(0, len(items), (N, LENGTH)), label)
    columns = [lists(items, numbers) for numbers in (prediction, label)]
    counter = COUNTERS[name]
    if name == "answer_f1":
        columns = [column.list.join(" ") for column in columns]
    found = benchmark.pedantic(counter.function, args=(*columns, *counter.choices[:1]), rounds=1)
    assert len(found) == N
    table.add(
        Row(
            f"{name} of {N:,} examples of {LENGTH} tokens",
            benchmark.stats.stats.median,
            limit=LIMITS[name],
            note="texts" if name == "answer_f1" else "lists of text",
        )
    )
