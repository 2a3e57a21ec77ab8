"""Arguments of other types than a function takes are refused by errors of the product, in one short line."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from support.yes_no_runs import LABELS, NEW, OLD

import trackperm
from trackperm.errors import InputError, InputTypeError, TrackpermError


class Long:
    def __repr__(self) -> str:
        return "x" * 5000


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


@pytest.mark.parametrize("number", [np.float64, np.float32], ids=lambda number: number.__name__)
def test_numbers_of_numpy_are_those_of_python(number: Any) -> None:
    """Regression: results could not be printed, written as JSON or logged."""
    options: dict[str, Any] = {"alpha": number(0.05), "margin": number(0.2), "seed": np.int32(0)}
    found = trackperm.compare(OLD, NEW, **options, memory_budget=np.int64(2**30), mid_p=np.bool_(False))
    expected = trackperm.compare(OLD, NEW, alpha=0.05, margin=0.2)
    assert (found.to_json(), str(found)) == (expected.to_json(), str(expected))
    assert found._repr_html_() == expected._repr_html_()
    boards = [trackperm.leaderboard({"a": OLD, "b": NEW}, alpha=alpha) for alpha in (number(0.05), 0.05)]
    assert boards[0].to_json() == boards[1].to_json()
    assert boards[0]._repr_html_() == boards[1]._repr_html_()


def test_parameters_of_numpy_are_those_of_python() -> None:
    """Regression: a label of `numpy.unique` was "a decimal parameter", and a boolean was refused."""
    positive = np.unique(np.array(LABELS))[1]
    found = trackperm.compare(OLD, NEW, "f1", parameters={"positive": positive})
    assert found.to_json() == trackperm.compare(OLD, NEW, "f1", parameters={"positive": "yes"}).to_json()
    runs = [frame.select("id", pl.col("prediction", "label") == "yes") for frame in (OLD, NEW)]
    both = [trackperm.compare(*runs, "f1", parameters={"positive": one}) for one in (np.bool_(True), True)]
    assert both[0].to_json() == both[1].to_json()


@pytest.mark.parametrize(
    "ids",
    [
        pd.date_range("2020", "2021", periods=40),
        pd.date_range("2020", "2021", periods=40, tz="Europe/Vienna"),
        pd.to_timedelta(range(40)),
        [bytes([i]) for i in range(40)],
        [uuid.uuid5(uuid.NAMESPACE_DNS, str(i)) for i in range(40)],
        [i % 2 == 0 for i in range(40)],
        [i + 0.5 for i in range(40)],
    ],
    ids=["time", "time of a zone", "duration", "bytes", "UUID", "boolean", "decimal"],
)
def test_ids_that_cannot_be_used_can_be_converted_to_text(ids: Any) -> None:
    """Regression: nothing said so; decimals and booleans were recommended, and refused next."""
    runs = [run.to_pandas().assign(id=ids) for run in (OLD, NEW)]
    with pytest.raises(TrackpermError) as refused:
        trackperm.compare(*runs)
    assert "convert them to text" in refused.value.hint
    if not isinstance(ids[0], bool):
        assert trackperm.compare(*(run.assign(id=run["id"].astype(str)) for run in runs)).n_examples == 40


def test_sparse_columns_of_pandas() -> None:
    """Regression: they "mixed values of several types"."""
    runs = [pd.DataFrame({"id": range(8), "score": [0.0, 0.0, 0.5, end] * 2}) for end in (0.0, 0.25)]
    sparse = [run.assign(score=pd.arrays.SparseArray(run["score"])) for run in runs]
    assert trackperm.compare(*sparse, "mean").to_json() == trackperm.compare(*runs, "mean").to_json()
    series = [pd.Series(run["score"], name="score") for run in sparse]
    assert trackperm.compare(*series, statistic="mean").pvalue == trackperm.compare(*runs, "mean").pvalue


@pytest.mark.parametrize(
    ("option", "instead"),
    [
        ({"positive": "yes"}, '`parameters={"positive": "yes"}` gives a parameter of the statistic'),
        ({"label": "gold"}, '`columns={"label": "gold"}` names a column'),
        ({"memory": "2GiB"}, '`memory_budget="2GiB"`'),
        ({"by_postion": True}, "Did you mean `by_position`?"),
        ({"set": {"positive": "yes"}}, "`parameters={'positive': 'yes'}`"),
        ({"discordance": 0.2}, "it has `"),
    ],
)
def test_an_unknown_argument_has_a_next_step(option: Any, instead: str):
    """Regression: `compare(..., positive="yes")` ended in Python's own TypeError."""
    (name,) = option
    functions = {trackperm.compare: (OLD, NEW), trackperm.leaderboard: ({"old": OLD, "new": NEW},)}
    for function, runs in functions.items():
        if function is trackperm.compare or name != "memory":
            with pytest.raises(InputTypeError, match=f"has no argument `{name}`") as caught:
                function(*runs, **option)
            assert instead in str(caught.value)
