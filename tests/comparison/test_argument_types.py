"""Arguments of other types than a function takes are refused by errors of the product, in one short line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import trackperm
from trackperm.errors import InputError, InputTypeError

LABELS = ["yes", "no"] * 20


class Long:
    def __repr__(self) -> str:
        return "x" * 5000


def run(wrong: range) -> pl.DataFrame:
    prediction = ["?" if i in wrong else LABELS[i] for i in range(40)]
    return pl.DataFrame({"id": range(40), "prediction": prediction, "label": LABELS})


OLD, NEW = run(range(14)), run(range(10, 16))
NOT_A_MAPPING = (0, "", [], set(), ["answer"], "prediction=answer", np.array([1, 2]), pl.Series([1]))
OF_COLUMNS = (*NOT_A_MAPPING, {"id": None}, {1: "id"}, {"id": 1})


@pytest.mark.parametrize("value", OF_COLUMNS, ids=repr)
@pytest.mark.parametrize("name", ["columns", "baseline_columns", "candidate_columns"])
def test_columns(name: str, value: Any) -> None:
    with pytest.raises(InputTypeError, match=f"^`{name}` (is|contains) "):
        trackperm.compare(OLD, NEW, **{name: value})


@pytest.mark.parametrize(
    "options",
    [
        *({"parameters": value} for value in (*NOT_A_MAPPING, {1: 2})),
        {"resolution": {1: 2}},
        {"metric": [1]},
        {"metric": [None]},
        {"tracking_uri": 1},
        {"artifact": 1},
    ],
    ids=repr,
)
def test_options_of_compare(options: dict[str, Any]) -> None:
    with pytest.raises(InputTypeError, match=f"`{next(iter(options))}` (is|contains) "):
        trackperm.compare(OLD, NEW, **options)


def test_a_rule_for_missing_predictions_that_is_an_array() -> None:
    for function, runs in (
        (trackperm.compare, (OLD, NEW)),
        (trackperm.leaderboard, ({"a": OLD, "b": NEW},)),
        (trackperm.power, (OLD, NEW)),
    ):
        with pytest.raises((InputError, InputTypeError), match="`missing` is array"):
            function(*runs, missing=np.array([1, 2]))


def test_a_cluster_without_a_name_is_not_taken_for_no_cluster() -> None:
    for function, runs in (
        (trackperm.compare, (OLD, NEW)),
        (trackperm.leaderboard, ({"a": OLD, "b": NEW},)),
        (trackperm.power, (OLD, NEW)),
    ):
        with pytest.raises(InputError, match="`cluster` is ''; expected the name of a column"):
            function(*runs, cluster="")


@pytest.mark.parametrize("name", ["experiment", "test_set", "tracking_uri"])
def test_options_of_a_family(name: str) -> None:
    with pytest.raises(InputTypeError, match=f"^`{name}` is array"):
        trackperm.family(**{"experiment": "mlflow:digits", name: np.arange(3)})


@pytest.mark.parametrize("runs", [None, 3, Path("x.csv"), "x.csv", OLD], ids=lambda each: type(each).__name__)
def test_runs_of_a_leaderboard(runs: Any) -> None:
    with pytest.raises(InputTypeError, match=r"`runs` is .*; expected a list of runs"):
        trackperm.leaderboard(runs)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("metric", ["acc", "f1"]),
        ("experiment", 1),
        ("experiment", ["digits"]),
        ("intervals", "no"),
        ("artifact", 3),
        ("tracking_uri", 3),
        *(("columns", value) for value in OF_COLUMNS),
        *(("parameters", value) for value in NOT_A_MAPPING),
    ],
    ids=repr,
)
def test_options_of_a_leaderboard(name: str, value: Any) -> None:
    with pytest.raises(InputTypeError, match=f"^`{name}` (is|contains) "):
        trackperm.leaderboard({"a": OLD, "b": NEW}, **{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("statistic", 1), ("statistic", [None]), ("experiment", 1), ("columns", 0), ("parameters", "")],
    ids=repr,
)
def test_options_of_power(name: str, value: Any) -> None:
    with pytest.raises(InputTypeError, match=f"^`{name}` is "):
        trackperm.power(OLD, NEW, **{name: value})


def test_results_and_trackers() -> None:
    comparison = trackperm.compare(OLD, NEW)
    with pytest.raises(InputTypeError, match=r"`tracker` is \['x'\]; expected a tracker"):
        trackperm.log(comparison, ["x"])
    with pytest.raises(InputTypeError, match=r"`comparison` is <Leaderboard .*; expected a comparison"):
        trackperm.report.html(trackperm.leaderboard({"a": OLD, "b": NEW}))
    with pytest.raises(InputTypeError, match=r"`scheme` is \[\]; expected the name of a tracker"):
        trackperm.open_tracker([])


@pytest.mark.parametrize("digits", [30, 0, -1, 1.5, "3", True])
def test_digits_of_a_pvalue(digits: Any) -> None:
    comparison = trackperm.compare(OLD, NEW)
    with pytest.raises(InputError, match=r"`digits` is .*; expected an integer from 1 to 17"):
        comparison.format_pvalue(digits)
    assert float(comparison.format_pvalue(17)) == comparison.pvalue


@pytest.mark.parametrize(
    "name", ["alpha", "seed", "method", "cluster", "columns", "margin", "mid_p", "memory_budget"]
)
def test_values_are_echoed_to_a_limit(name: str) -> None:
    """Regression: a value with a representation of 5,000 characters was written in full."""
    with pytest.raises((InputError, InputTypeError)) as caught:
        trackperm.compare(OLD, NEW, **{name: Long()})
    assert len(str(caught.value)) < 600
