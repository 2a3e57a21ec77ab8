"""Values that runs share in a column, and columns that identify the examples of all runs."""

from __future__ import annotations

from typing import Any

import pytest
from support.example_tables import table

from trackperm.pairing.columns.shared_values import (
    agreeing_ids,
    agreeing_pair,
    have_same_values,
    have_values_of_one,
    possible_keys,
    share_values,
)
from trackperm.tables.table import ExampleTable


@pytest.mark.parametrize(
    ("other", "share", "same", "of_one"),
    [
        ([2, 1], True, True, True),
        ([2, 2], True, False, True),
        ([2, None], True, False, True),
        ([1, 2, 3], True, False, True),
        ([2, 3], True, False, False),
        ([3, 4], False, False, False),
        ([[1], [2]], True, True, True),
        (["1", "2"], True, True, True),
    ],
)
def test_values_that_runs_share(other: list[Any], share: bool, same: bool, of_one: bool) -> None:
    """Lists are not compared, so that nothing is known of them."""
    for runs in ([[1, 2], other], [other, [1, 2]]):
        tables = [table(id=values) for values in runs]
        found = (share_values(tables, "id"), have_same_values(tables, "id"), have_values_of_one(tables, "id"))
        assert found == (share, same, of_one)


@pytest.mark.parametrize("values", [[2, 1, 2], ["b", None, "a"]])
def test_values_in_another_order_are_not_counted(values: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of a million long texts take longer than the comparison itself."""
    tables = [table(id=values), table(id=values[::-1])]
    monkeypatch.setattr(ExampleTable, "value_counts", None)
    assert have_same_values(tables, "id")
    assert have_values_of_one(tables, "id")


def test_columns_that_identify_the_examples_of_all_runs() -> None:
    texts, numbers = [*"abcdef"], [*range(6)]
    shared = {
        "note": texts,
        "n": numbers,
        "request": texts,
        "userID": numbers,
        "output": texts,
        "x.answer": texts,
    }
    runs = [
        table(
            **shared, kind=["x"] * 6, span=[f"{run}{text}" for text in texts], share=[i / 7 for i in numbers]
        )
        for run in "uv"
    ]
    assert agreeing_ids(runs) == ["userID", "note", "request"]
    assert agreeing_ids(runs, taken=["userID"]) == ["note", "request"]
    assert agreeing_ids(runs[:1]) == []
    assert agreeing_ids([runs[0], table(**{name: values[1:] for name, values in shared.items()})]) == []


def test_two_columns_that_identify_the_examples_of_all_runs() -> None:
    halves, thirds = [i // 3 for i in range(6)], [*"abcabc"]
    run = table(series_id=halves, day=thirds, kind=["x"] * 6)
    assert agreeing_pair([run, run]) == ("series_id", "day")
    assert agreeing_pair([run]) is None
    crossed = table(series_id=[i % 2 for i in range(6)], day=[*"aabbcc"], kind=["x"] * 6)
    assert agreeing_pair([run, crossed]) == ("series_id", "day")
    others = {
        "has other pairs": table(series_id=halves, day=[*"abcabd"], kind=["x"] * 6),
        "repeats pairs": table(series_id=halves, day=[*"abbabc"], kind=["x"] * 6),
    }
    for why, other in others.items():
        assert agreeing_pair([run, other]) is None, why
    single = table(series_id=halves, day=thirds, task_id=[*range(6)])
    assert agreeing_pair([single, single]) is None


def test_columns_that_may_be_keys():
    run = table(
        turn=[1, 2, 3],
        trace=["x" * 1000] * 3,
        prompt=["y" * 1000] * 3,
        conversation_id=["a", "b", "c"],
        url=["u", "v", "w"],
        prediction=["a", "b", "c"],
        rank=[1, 2, 3],
        row_id=[1, 2, 3],
        **{"a,b": ["x", "y", "z"], "latency": [0.1, 0.2, 0.3]},
    )
    assert possible_keys([run, run], ["url"]) == ["conversation_id", "prompt", "turn"]
    assert agreeing_pair([run, run]) is None
    parts = table(conversation=["a", "a", "b"], turn=[1, 2, 1])
    assert agreeing_pair([parts, parts]) == ("conversation", "turn")
