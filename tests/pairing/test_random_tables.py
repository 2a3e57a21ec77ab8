"""Any table: the order of rows, the engine and plain Python."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.budget import cases
from support.example_tables import rows, table

from trackperm.errors import PairingError
from trackperm.pairing import Pairing
from trackperm.pairing.pair import pair_in_memory
from trackperm.pairing.pair import pair_in_memory as pair
from trackperm.statistic import load_statistic
from trackperm.tables.table import ExampleTable

ACCURACY, MEAN = (load_statistic(name) for name in ("accuracy", "mean"))


def result(pairing: Pairing) -> Any:
    table = pairing.count_table
    grouped = [array.tolist() for array in (table.candidate, table.baseline, table.multiplicities)]
    return pairing.counts.frame.rows(), grouped, rows(pairing.discordant), pairing.report


@st.composite
def examples(draw: st.DrawFn) -> pl.DataFrame:
    n = draw(st.integers(1, 12))
    ids: st.SearchStrategy[Any] = draw(st.sampled_from([st.integers(-5, 50), st.text(max_size=3)]))
    values = draw(
        st.sampled_from(
            [st.integers(0, 2), st.sampled_from(["x", "yé", ""]), st.sampled_from([0.0, -0.0, 0.5])]
        )
    )
    return pl.DataFrame(
        {
            "id": draw(st.lists(ids, min_size=n, max_size=n, unique=True)),
            "label": draw(st.lists(values, min_size=n, max_size=n)),
            "baseline": draw(st.lists(values | st.none(), min_size=n, max_size=n)),
            "candidate": draw(st.lists(values, min_size=n, max_size=n)),
        },
        strict=False,
    )


def runs(frame: pl.DataFrame) -> list[pl.DataFrame]:
    return [frame.select("id", pl.col(run).alias("prediction"), "label") for run in ("baseline", "candidate")]


def paired(frames: list[Any]) -> Any:
    tables = [ExampleTable.from_native(frame, origin) for frame, origin in zip(frames, "bc", strict=True)]
    try:
        return result(pair(tables[0], tables[1], ACCURACY, missing="drop"))
    except PairingError as error:
        return str(error)


@settings(deadline=None, max_examples=cases(12))
@given(examples(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(frame: pl.DataFrame, random: Any) -> None:
    shuffled = [run[random.sample(range(len(run)), len(run))] for run in runs(frame)]
    assert paired(shuffled) == paired(runs(frame))


@pytest.mark.sample(1)
@settings(deadline=None, max_examples=cases(10))
@given(examples())
def test_counts_against_plain_python(frame: pl.DataFrame) -> None:
    expected = sorted(
        (id_, int(c == label), 1, int(b == label), 1) for id_, label, b, c in frame.rows() if b is not None
    )
    found = paired(runs(frame))
    assert (found[0] if expected else expected) == expected


def test_digests_depend_on_values_types_and_columns() -> None:
    def digest(**columns: list[Any]) -> str:
        run = table(id=[1, 2], **columns)
        return pair_in_memory(run, run, MEAN).report.baseline_digest

    different: list[dict[str, list[Any]]] = [
        {"score": [1, 2]}, {"score": [2, 1]}, {"score": [True, True]}, {"score": [1, 1]},
        {"score": [1, 2], "label": ["a", "bc"]}, {"score": [1, 2], "label": ["ab", "c"]},
        {"score": [1, 2], "label": [None, "c"]}, {"score": [1, 2], "label": ["", "c"]},
        {"score": [1, 2], "label": [1, None]}, {"score": [1, 2], "label": [None, 1]},
    ]  # fmt: skip
    assert len({digest(**columns) for columns in different}) == len(different)
    assert digest(score=[1, 2], label=[0.0, 0.5]) == digest(score=[1, 2], label=[-0.0, 0.5])
    assert digest(score=[1, 2], other=[3, 4]) == digest(score=[1.0, 2.0])


@pytest.mark.extended
def test_many_examples_take_little_time() -> None:
    n = 200_000
    rng = np.random.default_rng(1)
    label = rng.integers(0, 10, n)
    tables = []
    for origin in ("base", "cand"):
        order = rng.permutation(n)
        prediction = np.where(rng.random(n) < 0.8, label, rng.integers(0, 10, n))
        ids = [f"example-{i}" for i in order]
        columns = {"id": ids, "prediction": prediction[order], "label": label[order]}
        tables.append(ExampleTable.from_native(pd.DataFrame(columns), origin))
    start = time.process_time()
    multiplicities = pair(tables[0], tables[1], ACCURACY).count_table.multiplicities
    assert time.process_time() - start < 5  # 0.4 s
    assert multiplicities.sum() == n
