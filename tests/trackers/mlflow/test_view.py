"""What shows verdicts in MLflow's own pages: the saved view, and statistics kept in an experiment."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from support.browser import browser
from support.command_line import call_trackperm
from support.mlflow_server import MlflowServer
from support.mlflow_stores import MlflowStore

import trackperm
from trackperm.errors import InputError, SpecError
from trackperm.statistic import Statistic
from trackperm.trackers.mlflow.tracker import MlflowTracker
from trackperm.trackers.mlflow.view import VIEW_TAG

pytestmark = [pytest.mark.tracker, pytest.mark.contract, pytest.mark.extended]

SPEC = "counts:\n  wrong: prediction != label\n  n: 1\nscore: wrong / n\ngreater_is_better: false\n"


@pytest.fixture
def store(mlflow_server: MlflowServer) -> MlflowStore:
    return MlflowStore(mlflow_server.uri)


@pytest.fixture
def experiment(store: MlflowStore) -> str:
    """An experiment with two runs that have scores of their own and verdicts."""
    name = f"view-{uuid4().hex[:8]}"
    for run_name, score in (("logistic", 0.8), ("forest", 0.9)):
        run_id = store.run(name, run_name)
        store.client.log_metric(run_id, "accuracy", score)
        store.client.log_metric(run_id, "loss", 1.0 - score)
    store.client.set_tag(run_id, "sig.accuracy", "▲ p=0.0033")
    store.client.set_tag(run_id, "sig.accuracy.vs", "logistic")
    store.client.set_tag(run_id, "sig.error_rate", "▲ p=0.0033")
    return name


@pytest.fixture
def tracker(store: MlflowStore) -> MlflowTracker:
    return MlflowTracker(store.uri)


def tags(store: MlflowStore, experiment: str) -> dict[str, str]:
    return dict(store.client.get_experiment(store.experiment(experiment)).tags)


def saved(store: MlflowStore, experiment: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The view as MLflow's pages read it."""
    envelope = json.loads(tags(store, experiment)[VIEW_TAG])
    kind, _, state = envelope["state"].partition(";")
    assert kind == "deflate"
    return envelope, json.loads(zlib.decompress(base64.b64decode(state)))


def save(store: MlflowStore, experiment: str, envelope: dict[str, Any], state: dict[str, Any]) -> None:
    text = "deflate;" + base64.b64encode(zlib.compress(json.dumps(state).encode())).decode()
    tag = json.dumps({**envelope, "state": text})
    store.client.set_experiment_tag(store.experiment(experiment), VIEW_TAG, tag)


def test_columns_are_scores_and_verdicts_and_the_best_score_is_on_top(
    store: MlflowStore, tracker: MlflowTracker, experiment: str
):
    view = tracker.set_up_view(experiment)
    envelope, state = saved(store, experiment)
    assert envelope["name"] == "Significance"
    assert envelope["createdAt"] == envelope["updatedAt"]
    assert (
        state["selectedColumns"]
        == list(view.columns)
        == [
            "metrics.`accuracy`",
            "tags.`sig.accuracy`",
            "tags.`sig.accuracy.vs`",
            "tags.`sig.error_rate`",
        ]
    )
    assert (state["orderByKey"], state["orderByAsc"]) == ("metrics.`accuracy`", False)
    where = f"#/experiments/{store.experiment(experiment)}/runs?viewStateShareKey=trackperm"
    assert view.link == f"{store.uri}/{where}"


def test_the_same_again_writes_nothing_and_what_people_changed_stays(
    store: MlflowStore, tracker: MlflowTracker, experiment: str
):
    assert tracker.set_up_view(experiment).is_written
    before = tags(store, experiment)
    assert not tracker.set_up_view(experiment).is_written
    assert tags(store, experiment) == before

    envelope, state = saved(store, experiment)
    state |= {"columnWidths": {"metrics.`accuracy`": 240}, "searchFilter": "metrics.loss < 1"}
    state["selectedColumns"].append("params.`depth`")
    save(store, experiment, {**envelope, "name": "Ours", "createdAt": 7}, state)
    assert not tracker.set_up_view(experiment).is_written
    assert tracker.set_up_view(experiment, ["accuracy"]).is_written
    changed, narrowed = saved(store, experiment)
    assert (changed["name"], changed["createdAt"]) == ("Ours", 7)
    assert changed["updatedAt"] >= envelope["updatedAt"]
    assert narrowed["columnWidths"] == {"metrics.`accuracy`": 240}
    assert narrowed["searchFilter"] == "metrics.loss < 1"
    assert "params.`depth`" in narrowed["selectedColumns"]
    assert "tags.`sig.error_rate`" not in narrowed["selectedColumns"]


def test_of_errors_the_smallest_is_on_top_and_scores_of_comparisons_serve_where_runs_have_none(
    store: MlflowStore, tracker: MlflowTracker, experiment: str
):
    comparison = store.run(experiment, "comparison", tags={"trackperm.kind": "comparison"})
    store.client.log_metric(comparison, "error_rate/candidate_score", 0.1)
    tracker.set_up_view(experiment, ["error_rate"])
    _, state = saved(store, experiment)
    assert (state["orderByKey"], state["orderByAsc"]) == ("metrics.`error_rate/candidate_score`", True)


@pytest.mark.parametrize(
    "held",
    [
        "no JSON",
        "[]",
        '{"name": "x", "createdAt": 1, "state": 3}',
        '{"name": "x", "createdAt": 1, "state": "deflate;AAAA"}',
        '{"name": "x", "createdAt": 1, "state": "{\\"selectedColumns\\": 3}"}',
        '{"name": "x", "state": "{}"}',
    ],
)
def test_a_view_that_cannot_be_read_is_left_as_it_is(
    store: MlflowStore, tracker: MlflowTracker, experiment: str, held: str
):
    store.client.set_experiment_tag(store.experiment(experiment), VIEW_TAG, held)
    with pytest.raises(InputError, match=r"mlflow\.sharedViewState\.trackperm") as caught:
        tracker.set_up_view(experiment)
    assert "delete_experiment_tag" in str(caught.value.hint)
    assert tags(store, experiment)[VIEW_TAG] == held


def test_a_view_of_nothing_and_one_that_is_too_large_are_refused(store: MlflowStore, tracker: MlflowTracker):
    empty = f"view-{uuid4().hex[:8]}"
    store.run(empty, "forest")
    with pytest.raises(InputError, match="no run of the experiment has a verdict"):
        tracker.set_up_view(empty)
    many = [uuid4().hex * 2 for _ in range(1000)]
    with pytest.raises(InputError, match="MLflow stores at most 20,000"):
        tracker.set_up_view(empty, many)
    assert VIEW_TAG not in tags(store, empty)


def test_a_spec_is_checked_stored_once_and_replaced_only_on_request(
    store: MlflowStore, tracker: MlflowTracker, experiment: str, tmp_path: Path
):
    file = tmp_path / "wrong.yaml"
    file.write_text(SPEC, encoding="utf-8")
    assert tracker.store_statistic(experiment, file) == "wrong"
    assert tracker.store_statistic(experiment, file) == "wrong"
    assert tags(store, experiment)["trackperm.statistic.wrong"] == SPEC
    file.write_text(f"# another\n{SPEC}", encoding="utf-8")
    with pytest.raises(InputError, match="another statistic is stored as `wrong`"):
        tracker.store_statistic(experiment, file)
    assert tags(store, experiment)["trackperm.statistic.wrong"] == SPEC
    tracker.store_statistic(experiment, file, is_replaced=True)
    assert tags(store, experiment)["trackperm.statistic.wrong"].startswith("# another")

    store.client.set_experiment_tag(store.experiment(experiment), "trackperm.statistic.bad", "counts: {")
    found = tracker.stored_statistics(store.experiment(experiment))
    assert list(found) == ["bad", "wrong"]
    assert isinstance(found["bad"], SpecError)
    statistic = found["wrong"]
    assert isinstance(statistic, Statistic)
    assert (statistic.name, statistic.greater_is_better) == ("wrong", False)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("wrong.yaml", f"{SPEC}#{'-' * 20_000}", "20,"),
        ("wrong.yaml", SPEC.replace("/ n", "/ m"), "`m`"),
        ("f1.yaml", SPEC, "`f1` is the name of a built-in statistic"),
        ("wrong.txt", SPEC, "is not a spec"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_nothing_is_written(
    store: MlflowStore,
    tracker: MlflowTracker,
    experiment: str,
    tmp_path: Path,
    name: str,
    text: str,
    message: str,
):
    (tmp_path / name).write_text(text, encoding="utf-8")
    before = tags(store, experiment)
    with pytest.raises(trackperm.TrackpermError, match=message):
        tracker.store_statistic(experiment, tmp_path / name)
    assert tags(store, experiment) == before


@pytest.mark.slow
def test_the_pages_of_mlflow_show_the_columns_in_their_order(
    store: MlflowStore, tracker: MlflowTracker, experiment: str
):
    from playwright.sync_api import expect, sync_playwright

    view = tracker.set_up_view(experiment)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser(), args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1800, "height": 900})
        page.set_default_timeout(60_000)
        page.goto(view.link)
        for text in ("▲ p=0.0033", "sig.accuracy", "0.9"):
            expect(page.get_by_text(text).first).to_be_visible(timeout=60_000)
        names = page.get_by_role("link", name=re.compile("^(forest|logistic)$"))
        assert names.all_inner_texts() == ["forest", "logistic"]
        chromium.close()


def test_the_commands(store: MlflowStore, experiment: str, tmp_path: Path):
    (tmp_path / "wrong.yaml").write_text(SPEC, encoding="utf-8")
    env = {"MLFLOW_TRACKING_URI": store.uri}

    def command(*arguments: str) -> tuple[int, str, str]:
        done = call_trackperm(tmp_path, "mlflow", *arguments, env=env)
        return done.returncode, done.stdout, done.stderr

    code, printed, said = command("setup-view", f"mlflow:{experiment}", "-s", "accuracy", "-s", "f2")
    assert (code, said) == (0, "no run has a verdict by `f2` yet\n")
    assert printed.startswith("saved\n  metrics.`accuracy`\n")
    assert printed.endswith("/runs?viewStateShareKey=trackperm\n")
    assert command("store-statistic", experiment, "wrong.yaml") == (0, "stored as `wrong`\n", "")
    code, _, said = command("setup-view", "no-such-experiment")
    assert code == 2
    assert "no experiment called `no-such-experiment`" in said
