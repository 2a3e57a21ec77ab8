"""One contract for every tracker adapter, over the real thing."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from uuid import uuid4

import pytest
from mlflow_stores import PREDICTIONS, MlflowStore

from trackperm.errors import InputError, SourceError
from trackperm.trackers.base import Publication, Table, TrackedRun, Tracker

pytestmark = pytest.mark.tracker


@pytest.fixture(scope="module")
def sqlite_store(tmp_path_factory: pytest.TempPathFactory) -> MlflowStore:
    return MlflowStore.local(tmp_path_factory.mktemp("mlflow-store"))


@pytest.fixture(params=["mlflow-sqlite", "mlflow-http"])
def store(request: pytest.FixtureRequest) -> MlflowStore:
    if request.param == "mlflow-sqlite":
        return request.getfixturevalue("sqlite_store")
    return MlflowStore(request.getfixturevalue("mlflow_server").uri)


@pytest.fixture
def experiment() -> str:
    return f"digits-{uuid4().hex[:8]}"


@pytest.fixture
def tracker(store: MlflowStore) -> Tracker:
    return store.tracker()


@pytest.fixture
def pair(store: MlflowStore, tracker: Tracker, experiment: str) -> tuple[TrackedRun, TrackedRun]:
    """Baseline and candidate, with predictions."""
    for name in ("logistic", "forest"):
        store.run_with_predictions(experiment, name)
    return tracker.find(f"{experiment}/logistic"), tracker.find(f"{experiment}/forest")


def publication(baseline: TrackedRun | None, candidate: TrackedRun | None, **changes: object) -> Publication:
    made = Publication(
        key="5eed" * 8,
        name="accuracy: forest vs logistic",
        metrics={"accuracy/p_value": 3.5e-12, "accuracy/difference": -0.25, "accuracy/n_examples": 4.0},
        tables={
            "results": Table(("statistic", "p_value", "bound"), [("accuracy", "3.5e-12", math.inf)]),
            "discordant": Table(("id", "better"), [("001", True), ("1", None)]),
        },
        files={"pmf.png": b"\x89PNG\r\n\x1a\n\x00", "trackperm/statistic.yaml": b"name: accuracy\n"},
        tags={"trackperm.statistic": "accuracy", "trackperm.verdict": "▼ worse"},
        description="**worse**, p = 3.5e-12 ▼",
        baseline=baseline,
        candidate=candidate,
        candidate_tags={"sig.accuracy": "▼ p=3.5e-12", "sig.accuracy.vs": "logistic"},
    )
    return dataclasses.replace(made, **changes)


def test_a_run_is_found_by_id_and_by_name(store: MlflowStore, tracker: Tracker, experiment: str):
    run_id = store.run_with_predictions(experiment, "forest")
    found = tracker.find(run_id)
    assert found == tracker.find(f"{experiment}/forest")
    assert (str(found.reference), found.name) == (f"mlflow:{run_id}", "forest")


@pytest.mark.parametrize("artifact", ["predictions.json", "eval/predictions.parquet", "predictions.csv"])
def test_ids_are_read_as_they_were_logged(
    store: MlflowStore, tracker: Tracker, experiment: str, artifact: str
):
    run = tracker.find(store.run_with_predictions(experiment, "forest", artifact=artifact))
    table = tracker.read(run)
    assert table.frame.to_dict(as_series=False) == PREDICTIONS
    assert table.origin == str(run.reference)
    assert tracker.read(run, artifact).frame.to_dict(as_series=False) == PREDICTIONS


def test_several_runs_of_one_name_are_listed_and_refused(
    store: MlflowStore, tracker: Tracker, experiment: str
):
    ids = [store.run_with_predictions(experiment, "forest") for _ in range(3)]
    with pytest.raises(InputError, match="3 runs of experiment") as caught:
        tracker.find(f"{experiment}/forest")
    assert all(run_id in caught.value.message for run_id in ids)


def test_what_is_not_there_is_said_with_what_is(store: MlflowStore, tracker: Tracker, experiment: str):
    store.run_with_predictions(experiment, "forest")
    with pytest.raises(InputError, match=r"no run called `forrest`[\s\S]*did you mean `forest`"):
        tracker.find(f"{experiment}/forrest")
    with pytest.raises(InputError, match=rf"no experiment called[\s\S]*did you mean `{experiment}`"):
        tracker.find(f"{experiment}s/forest")
    store.run(experiment, f"only-{experiment}")
    with pytest.raises(InputError, match=rf"did you mean `mlflow:{experiment}/only-{experiment}`"):
        tracker.find(f"only-{experiment}")
    with pytest.raises(InputError, match="no run with id `nobody`"):
        tracker.find("nobody")


def test_several_tables_are_listed_and_one_is_chosen(store: MlflowStore, tracker: Tracker, experiment: str):
    run_id = store.run_with_predictions(experiment, "forest", artifact="dev.json")
    store.log_frame(run_id, {"id": ["z"], "prediction": ["b"]}, "eval/test.parquet")
    run = tracker.find(run_id)
    with pytest.raises(
        InputError, match=r"2 artifacts[\s\S]*dev\.json[\s\S]*eval/test\.parquet[\s\S]*--artifact"
    ):
        tracker.read(run)
    assert tracker.read(run, "eval/test.parquet").frame["id"].to_list() == ["z"]
    assert tracker.read(run, "eval/test.parquet::id").frame["prediction"].to_list() == ["z"]


@pytest.mark.parametrize("artifact", ["dve.json", "eval", "eval/none.json", "../dev.json", "/etc/passwd", ""])
def test_artifacts_that_are_none_are_refused(
    store: MlflowStore, tracker: Tracker, experiment: str, artifact: str
):
    run_id = store.run_with_predictions(experiment, "forest", artifact="dev.json")
    store.log_frame(run_id, {"id": ["z"]}, "eval/test.parquet")
    with pytest.raises(InputError, match=artifact or "artifact"):
        tracker.read(tracker.find(run_id), artifact)


def test_runs_without_predictions_are_refused(store: MlflowStore, tracker: Tracker, experiment: str):
    run_id = store.run(experiment, "forest")
    store.client.log_text(run_id, "hello", "notes.txt")
    with pytest.raises(InputError, match=r"no artifact[\s\S]*`notes\.txt`[\s\S]*log_table"):
        tracker.read(tracker.find(run_id))


def test_an_artifact_that_is_no_table_is_refused_with_the_run_named(
    store: MlflowStore, tracker: Tracker, experiment: str
):
    run_id = store.run(experiment, "forest")
    store.client.log_text(run_id, "no parquet", "predictions.parquet")
    with pytest.raises(SourceError, match=f"mlflow:{run_id}"):
        tracker.read(tracker.find(run_id))


def test_a_publication_is_kept_to_the_letter(
    store: MlflowStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    before = store.get(pair[1].reference.locator)
    wanted = publication(*pair)
    published = tracker.publish(wanted)

    assert published.created
    (run,) = store.comparisons(experiment)
    run_id = run.info.run_id
    assert published.run.reference.locator == run_id
    assert (run.info.status, run.info.run_name) == ("FINISHED", wanted.name)
    assert run.data.metrics == wanted.metrics
    assert wanted.tags.items() <= run.data.tags.items()
    assert run.data.tags["mlflow.note.content"] == wanted.description
    assert run.data.tags["mlflow.parentRunId"] == pair[1].reference.locator
    assert run.data.tags["trackperm.state"] == "done"
    written = store.artifacts(run_id)
    assert written.keys() == {*wanted.files, "results.json", "discordant.json"}
    assert wanted.files.items() <= written.items()
    assert store.table(run_id, "discordant.json") == {
        "columns": ["id", "better"],
        "data": [["001", True], ["1", None]],
    }
    assert store.table(run_id, "results.json")["data"] == [["accuracy", "3.5e-12", "inf"]]

    after = store.get(pair[1].reference.locator)
    assert {k: v for k, v in after.data.tags.items() if k not in before.data.tags} == wanted.candidate_tags
    assert after.info.to_proto() == before.info.to_proto()
    assert after.data.metrics == before.data.metrics
    assert store.artifacts(pair[1].reference.locator).keys() == {"predictions.json"}
    baseline = store.get(pair[0].reference.locator)
    assert not any("sig." in name or "trackperm" in name for name in baseline.data.tags)


def test_the_same_comparison_is_not_added_again(
    store: MlflowStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    first = tracker.publish(publication(*pair))
    before = store.get(first.run.reference.locator)
    again = tracker.publish(publication(*pair))
    assert not again.created
    assert again.run == first.run
    (run,) = store.comparisons(experiment)
    assert run.to_dictionary() == before.to_dictionary()
    for name in run.data.metrics:
        assert len(store.client.get_metric_history(run.info.run_id, name)) == 1
    assert store.table(run.info.run_id, "discordant.json")["data"] == [["001", True], ["1", None]]


def test_a_changed_comparison_replaces_what_was_there(
    store: MlflowStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    tracker.publish(publication(*pair))
    changed = publication(
        *pair,
        metrics={"accuracy/p_value": 1e-13, "accuracy/difference": -0.25, "accuracy/n_examples": 4.0},
        tables={"discordant": Table(("id",), [("x",)])},
        description="another",
    )
    assert not tracker.publish(changed).created
    (run,) = store.comparisons(experiment)
    assert run.data.metrics == changed.metrics
    assert run.data.tags["mlflow.note.content"] == "another"
    assert run.info.status == "FINISHED"
    assert store.table(run.info.run_id, "discordant.json")["data"] == [["x"]]
    assert len(store.client.get_metric_history(run.info.run_id, "accuracy/difference")) == 1


def test_the_newest_comparison_tags_the_candidate(
    store: MlflowStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    first = publication(*pair)
    second = publication(
        *pair, key="ab" * 16, candidate_tags={"sig.accuracy": "≈ p=0.6", "sig.accuracy.vs": "svm"}
    )
    for wanted in (first, second, first):
        tracker.publish(wanted)
        tags = store.get(pair[1].reference.locator).data.tags
        assert wanted.candidate_tags.items() <= tags.items()
    assert len(store.comparisons(experiment)) == 2


def test_comparisons_are_no_runs_to_compare(
    store: MlflowStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    published = tracker.publish(publication(*pair, name="forest"))
    with pytest.raises(InputError, match="is a comparison"):
        tracker.find(published.run.reference.locator)
    assert tracker.find(f"{experiment}/forest") == pair[1]


def test_a_named_experiment_takes_the_comparison_and_nothing_else_is_touched(
    store: MlflowStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    before = store.get(pair[1].reference.locator)
    store.experiment(f"{experiment}/results")
    published = tracker.publish(publication(*pair), f"{experiment}/results")
    (run,) = store.comparisons(f"{experiment}/results")
    assert run.info.run_id == published.run.reference.locator
    assert not store.comparisons(experiment)
    assert store.get(pair[1].reference.locator).to_dictionary() == before.to_dictionary()


def test_files_can_be_compared_into_a_named_experiment(store: MlflowStore, tracker: Tracker, experiment: str):
    store.experiment(experiment)
    tracker.publish(publication(None, None), experiment)
    (run,) = store.comparisons(experiment)
    assert "mlflow.parentRunId" not in run.data.tags


def test_nowhere_to_write_is_refused(
    store: MlflowStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    with pytest.raises(InputError, match=r"--log-to mlflow:EXPERIMENT"):
        tracker.publish(publication(None, None))
    with pytest.raises(
        InputError, match=rf"no experiment called `{experiment}s`[\s\S]*did you mean `{experiment}`"
    ):
        tracker.publish(publication(*pair), f"{experiment}s")
    with pytest.raises(InputError, match="mlflow experiments create"):
        tracker.publish(publication(*pair), "something quite different")
    assert not store.comparisons(experiment)


_TOO_MUCH: dict[str, Callable[[], dict[str, object]]] = {
    "metric name": lambda: {"metrics": {"F1@10/p_value": 0.5}},
    "metric path": lambda: {"metrics": {"a//p_value": 0.5}},
    "long name": lambda: {"metrics": {"a" * 251: 0.5}},
    "infinite metric": lambda: {"metrics": {"accuracy/error_bound": math.inf}},
    "undefined metric": lambda: {"metrics": {"accuracy/difference": math.nan}},
    "long tag": lambda: {"tags": {"trackperm.baseline": "x" * 8001}},
    "long description": lambda: {"description": "x" * 8001},
    "tag name": lambda: {"candidate_tags": {"sig.p(acc)": "x"}},
    "long candidate tag": lambda: {"candidate_tags": {"sig.accuracy": "x" * 8001}},
    "path": lambda: {"files": {"../pmf.png": b""}},
    "long table": lambda: {"tables": {"results": Table(("id",), [(i,) for i in range(1001)])}},
    "key": lambda: {"key": "x' or 1=1"},
}


@pytest.mark.parametrize("case", _TOO_MUCH)
def test_what_the_tracker_would_cut_or_change_is_refused_before_anything_is_written(
    store: MlflowStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun], case: str
):
    with pytest.raises(InputError):
        tracker.publish(publication(*pair, **_TOO_MUCH[case]()))
    assert not store.comparisons(experiment)
