"""Hints of errors where several rows have one id: how they are taken together, and no way to count each."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from support.example_tables import table

import trackperm
from trackperm.errors import InputError, PairingError
from trackperm.pairing.columns.repeated_rows import repeated_rows

TASKS = [i for _ in range(8) for i in range(15)]
TAKEN_TOGETHER = (
    "`task_id` has 8 rows of each value: `--id task_id` with `--repeats sum` takes them together as one"
    " example"
)


def attempts(right: set[int], **columns: list[Any]) -> pl.DataFrame:
    """Eight attempts at each of 15 tasks, all right or all wrong."""
    return pl.DataFrame({"task_id": TASKS, "reward": [int(task in right) for task in TASKS], **columns})


OLD, NEW = {*range(6)}, {*range(5), *range(6, 11)}


def test_without_an_id() -> None:
    with pytest.raises(InputError) as caught:
        trackperm.compare(attempts(OLD), attempts(NEW))
    assert caught.value.hint == f"{TAKEN_TOGETHER}."
    assert 'columns={"id": "task_id"}` with `repeats="sum"`' in str(caught.value)
    found = trackperm.compare(attempts(OLD), attempts(NEW), columns={"id": "task_id"}, repeats="sum")
    assert (found.n_examples, found.n_better, found.n_worse, found.verdict) == (15, 5, 1, "undecided")


def test_by_an_id_that_repeats() -> None:
    with pytest.raises(PairingError, match="120 of 120 rows of `baseline` share their `task_id`") as caught:
        trackperm.compare(attempts(OLD), attempts(NEW), columns={"id": "task_id"})
    assert TAKEN_TOGETHER in str(caught.value.hint)


def test_numbers_of_rows_that_differ_between_the_runs_are_no_id() -> None:
    frames = [
        attempts(right, uuid=[f"{name}-{i}" for i in range(120)])
        for name, right in (("old", OLD), ("new", NEW))
    ]
    with pytest.raises(InputError) as caught:
        trackperm.compare(*frames)
    assert caught.value.hint == f"{TAKEN_TOGETHER}."
    with pytest.raises(InputError) as caught:
        trackperm.compare(*(frame.drop("task_id") for frame in frames))
    assert caught.value.hint == "`--id NAME` names the column; `--by-position` pairs rows in their order."
    with pytest.raises(InputError) as caught:
        trackperm.compare(frames[0].drop("task_id"), frames[0].drop("task_id"))
    assert str(caught.value.hint).startswith("`--id uuid` names the column")


def test_other_columns_that_are_missing_are_still_named() -> None:
    frames = [attempts(right).rename({"reward": "value"}) for right in (OLD, NEW)]
    with pytest.raises(InputError) as caught:
        trackperm.compare(*frames, "mean")
    assert caught.value.hint == f"`--column score=NAME` names the column; {TAKEN_TOGETHER}."


@pytest.mark.parametrize(
    ("other", "rule", "n_rows"),
    [
        (TASKS, "sum", (8, 8)),
        (TASKS[::-1], "sum", (8, 8)),
        ([*TASKS, 3], "mean", (8, 9)),
        (TASKS[1:], "mean", (7, 8)),
    ],
)
def test_the_rule(other: list[int], rule: str, n_rows: tuple[int, int]) -> None:
    found = repeated_rows([table(task_id=TASKS), table(task_id=other)])
    assert found == ("task_id", rule, n_rows)
    if rule == "mean":
        assert found is not None
        assert f"has {n_rows[0]} to {n_rows[1]} rows of each value: " in found.hint


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"task_id": list(range(120))}, "each value has one row"),
        ({"task_id": [*range(119), 0]}, "most values have one row"),
        ({"prompt": [task % 3 for task in TASKS]}, "three values are rather templates"),
        ({"language": TASKS}, "no id and no input"),
        ({"task_id": [[task] for task in TASKS]}, "lists"),
    ],
)
def test_columns_whose_rows_are_not_taken_together(columns: Any, why: str) -> None:
    assert repeated_rows([table(**columns), table(**columns)]) is None, why


def test_the_column_that_was_named_comes_first() -> None:
    run = table(task_id=TASKS, mine=TASKS)
    assert repeated_rows([run, run], "mine") == ("mine", "sum", (8, 8))
    other = table(task_id=[task + 1 for task in TASKS], mine=TASKS)
    assert repeated_rows([run, other]) is None
