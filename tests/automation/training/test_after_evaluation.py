"""What the callbacks of training frameworks end in: predictions logged, the run compared, nothing raised."""

from __future__ import annotations

import math
import time
from typing import Any
from unittest.mock import Mock

import mlflow
import polars as pl
import pytest
from support.hooked_runs import Script
from support.mlflow_server import silent_server
from support.server_client import predictions

import trackperm
from trackperm.automation.training import after_evaluation
from trackperm.automation.training.after_evaluation import AfterEvaluation
from trackperm.trackers.open_runs import mlflow_run

pytestmark = [pytest.mark.tracker, pytest.mark.usefixtures("mlflow_script")]


def columns() -> Any:
    return dict(predictions(2, rate=0.5))


def logged(runs: Script, after: AfterEvaluation, found: Any = columns) -> dict[str, bytes]:
    """Finish an evaluation inside of a run, and return the artifacts of the run."""
    with mlflow.start_run() as run:
        after.finish(found)
    return runs.store.artifacts(run.info.run_id)


@pytest.mark.slow
def test_the_active_run_is_logged_and_compared(runs: Script):
    runs.baseline()
    after = AfterEvaluation(runs.policy_file(), budget_seconds=60)
    after.prepare()
    with mlflow.start_run(tags={"role": "candidate"}) as run:
        after.finish(columns)
    assert runs.store.frame(run.info.run_id).equals(pl.DataFrame(columns()))
    assert runs.compared() == [f"mlflow:{run.info.run_id}"]
    assert "under policy `nightly`: fail" in runs.told
    assert not runs.kept


def test_without_a_policy_it_only_logs(runs: Script):
    assert list(logged(runs, AfterEvaluation(None, name="answers"))) == ["answers.parquet"]
    assert not runs.state.exists()


@pytest.mark.parametrize("problem", ["no file", "not valid", "no such policy"])
def test_a_policy_that_cannot_be_read_is_said_at_once_and_predictions_are_logged(runs: Script, problem: str):
    path, name = runs.policy_file(), None
    if problem == "no file":
        path = runs.folder / "other.yaml"
    elif problem == "not valid":
        path.write_text("policies: [}")
    else:
        name = "other"
    after = AfterEvaluation(path, policy_name=name)
    after.prepare()
    assert "predictions will be logged, but nothing will be compared" in runs.told
    assert list(logged(runs, after)) == ["predictions.parquet"]


def test_other_predictions_of_that_name_are_not_compared(runs: Script):
    """What the run has logged before would be judged in place of these."""
    runs.baseline()
    with mlflow.start_run() as run:
        runs.log(run.info.run_id)
        AfterEvaluation(runs.policy(), budget_seconds=60).finish(columns)
    assert "holds other predictions as `predictions.parquet`" in runs.told
    assert runs.compared() == []
    [path] = runs.kept
    assert pl.read_parquet(path).equals(pl.DataFrame(columns()))
    assert str(path) in runs.told


@pytest.mark.extended
def test_a_tracker_that_does_not_answer_costs_the_budget_and_nothing_is_lost(runs: Script):
    with silent_server() as uri:
        found = [mlflow_run("a" * 32, uri)]
        began = time.monotonic()
        AfterEvaluation(runs.policy(tracking_uri=uri), budget_seconds=2).finish(columns, lambda: found)
        assert time.monotonic() - began < 20
    assert "the tracker did not answer within 2 seconds" in runs.told
    [path] = runs.kept
    assert "a" * 32 in path.name
    assert trackperm.compare(path, path).difference == 0


@pytest.mark.extended
def test_comparing_has_what_logging_has_left_of_the_budget(runs: Script, monkeypatch: pytest.MonkeyPatch):
    runs.baseline()
    left: list[float] = []

    def queued(*given: Any, budget_seconds: float, **options: Any) -> Any:
        left.append(budget_seconds)
        return trackperm.compare_on_exit(*given, budget_seconds=0, **options)

    def slowly() -> tuple[()]:
        time.sleep(2)
        return ()

    monkeypatch.setattr(after_evaluation, "compare_on_exit", queued)
    with mlflow.start_run(tags={"role": "candidate"}) as run:
        AfterEvaluation(runs.policy(), budget_seconds=60).finish(columns, slowly)
    assert list(runs.store.artifacts(run.info.run_id)) == ["predictions.parquet"]
    assert 0 < left[0] < 58
    [entry] = runs.entries
    assert (entry.candidate, entry.state) == (f"mlflow:{run.info.run_id}", "waiting")
    assert "`trackperm watch` compares it" in runs.told


def test_no_run_is_open(runs: Script):
    with mlflow.start_run():
        pass
    after = AfterEvaluation(runs.policy())
    after.prepare()
    after.finish(columns)
    assert "no run of MLflow or W&B is open" in runs.told
    assert len(runs.kept) == 1


@pytest.mark.parametrize("budget", [None, "20", math.nan, -1, math.inf])
def test_an_invalid_budget_alone_is_reported_at_once_and_nothing_is_lost(runs: Script, budget: Any):
    after = AfterEvaluation(None, budget_seconds=budget)
    is_valid = budget == math.inf
    assert (f"`budget_seconds` is {budget!r}" in runs.told) != is_valid
    assert list(logged(runs, after)) == ["predictions.parquet"]
    assert (runs.told == "") == is_valid


def test_predictions_are_kept_whatever_fails_before_they_are_logged(
    runs: Script, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(after_evaluation.Snapshot, "taken", Mock(side_effect=RuntimeError("oops")))
    AfterEvaluation(None).finish(columns)
    [path] = runs.kept
    assert pl.read_parquet(path).equals(pl.DataFrame(columns()))
    assert f"are kept in {path}: RuntimeError: oops" in runs.told


def test_whole_numbers_and_others_are_made_numbers(runs: Script):
    found = {"id": ["a", "b", "c", "d"], "prediction": [1, 2.5, None, True], "label": [True, 2, 3, 4]}
    [artifact] = logged(runs, AfterEvaluation(None), lambda: found).values()
    assert pl.read_parquet(artifact).to_dict(as_series=False) == {**found, "label": [1.0, 2.0, 3.0, 4.0]}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"id": ["a", 3]}, "column `id` of the predictions mixes the types `int`, `str`"),
        ({"prediction": [1, "b"]}, "column `prediction` of the predictions mixes the types"),
        ({"label": [2**60 + 1, 0.5]}, "mixes the types `float`, `int`, with whole numbers above 2**53"),
        (
            {"label": [1]},
            "the columns of the predictions differ in length: `id` 2, `prediction` 2, `label` 1",
        ),
    ],
)
def test_invalid_columns_are_reported_in_one_sentence(runs: Script, changed: Any, message: str):
    found = {"id": ["a", "b"], "prediction": [1, 2], "label": [1, 2], **changed}
    assert not logged(runs, AfterEvaluation(None), lambda: found)
    assert message in runs.told
    assert "strict=False" not in runs.told


@pytest.mark.parametrize("fault", ["columns", "runs", "folder", "own"])
def test_nothing_is_raised(runs: Script, fault: str, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, **__: object) -> Any:
        raise RuntimeError("oops")

    options = {}
    if fault == "own":
        monkeypatch.setattr(after_evaluation, "log_predictions", broken)
    if fault == "folder":
        (runs.folder / "file").write_text("")
        options = {"state": runs.folder / "file"}
    with mlflow.start_run():
        AfterEvaluation(runs.policy(), **options).finish(
            broken if fault == "columns" else columns, broken if fault in ("runs", "folder") else lambda: ()
        )
    [warning] = runs.said
    assert "were not logged" in warning
    assert "oops" in warning
    assert ("could not be kept either" in warning) == (fault == "folder")
