"""What shows verdicts in MLflow's own pages: the saved view, and statistics kept in an experiment."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import pytest
from mlflow.exceptions import MlflowException
from mlflow.utils.search_utils import SearchUtils
from support.browser import browser
from support.command_line import call_trackperm
from support.mlflow_server import MlflowServer
from support.mlflow_stores import MlflowStore
from typer.testing import CliRunner

import trackperm
from trackperm.cli import commands
from trackperm.errors import InputError, SpecError
from trackperm.statistic import Statistic
from trackperm.trackers.mlflow.tracker import MlflowTracker
from trackperm.trackers.mlflow.view import RUNS_ONLY, VIEW_TAG

pytestmark = [pytest.mark.tracker, pytest.mark.contract, pytest.mark.extended]

SPEC = "counts:\n  wrong: prediction != label\n  n: 1\nscore: wrong / n\ngreater_is_better: false\n"


@pytest.fixture
def store(mlflow_server: MlflowServer) -> MlflowStore:
    return MlflowStore(mlflow_server.uri)


@pytest.fixture
def experiment(store: MlflowStore) -> str:
    """An experiment with two runs that have scores of their own and verdicts, and a comparison of them."""
    name = f"view-{uuid4().hex[:8]}"
    for run_name, score in (("logistic", 0.8), ("forest", 0.9)):
        run_id = store.run(name, run_name)
        store.client.log_metric(run_id, "accuracy", score)
        store.client.log_metric(run_id, "loss", 1.0 - score)
    store.client.set_tag(run_id, "sig.accuracy", "accuracy 0.9000 ▲ p=0.0033")
    store.client.set_tag(run_id, "sig.accuracy.vs", "logistic")
    store.client.set_tag(run_id, "sig.error_rate", "▲ p=0.0033")  # as version 0.1 wrote it
    compared = {"trackperm.kind": "comparison", "mlflow.parentRunId": run_id}
    comparison = store.run(name, "forest beats logistic in accuracy, p 0.0033", tags=compared)
    store.client.log_metric(comparison, "accuracy/candidate_score", 0.9)
    store.run(name, "accuracy: leaderboard of 2 runs", tags={"trackperm.kind": "leaderboard"})
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


def test_columns_are_verdicts_and_scores_of_runs_and_the_best_score_is_on_top(
    store: MlflowStore, tracker: MlflowTracker, experiment: str
):
    view = tracker.set_up_view(experiment)
    envelope, state = saved(store, experiment)
    assert envelope["name"] == "Significance"
    assert envelope["createdAt"] == envelope["updatedAt"]
    columns = ["tags.`sig.accuracy`", "tags.`sig.error_rate`", "metrics.`accuracy`", "tags.`sig.accuracy.vs`"]
    assert state["selectedColumns"] == state["columnOrder"] == list(state["columnWidths"]) == columns
    assert view.columns == tuple(columns)
    assert (state["orderByKey"], state["orderByAsc"]) == ("metrics.`accuracy`", False)
    assert view.hides_comparisons == can_filter()
    assert state["searchFilter"] == (RUNS_ONLY if view.hides_comparisons else "")
    where = f"#/experiments/{store.experiment(experiment)}/runs?viewStateShareKey=trackperm"
    assert view.link == f"{store.uri}/{where}"


def can_filter() -> bool:
    """Whether MLflow finds runs without a tag, which 3.10 does not."""
    return "IS NULL" in SearchUtils.VALID_TAG_COMPARATORS


def test_the_filter_finds_the_runs(store: MlflowStore, experiment: str):
    if not can_filter():
        with pytest.raises(MlflowException):
            store.client.search_runs([store.experiment(experiment)], RUNS_ONLY)
        return
    runs = store.client.search_runs([store.experiment(experiment)], RUNS_ONLY)
    assert {run.info.run_name for run in runs} == {"forest", "logistic"}


def test_the_same_again_writes_nothing_and_what_people_changed_stays(
    store: MlflowStore, tracker: MlflowTracker, experiment: str
):
    assert tracker.set_up_view(experiment).is_written
    before = tags(store, experiment)
    assert not tracker.set_up_view(experiment).is_written
    assert tags(store, experiment) == before

    envelope, state = saved(store, experiment)
    state["columnWidths"]["metrics.`accuracy`"] = 240
    state["searchFilter"] = "metrics.loss < 1"
    state["selectedColumns"].append("params.`depth`")
    before_depth = ["tags.`sig.accuracy`", "metrics.`accuracy`", "tags.`sig.accuracy.vs`"]
    state["columnOrder"] = ["params.`depth`", *reversed(state["columnOrder"])]
    before_depth.reverse()
    save(store, experiment, {**envelope, "name": "Ours", "createdAt": 7}, state)
    assert tracker.set_up_view(experiment).is_written == can_filter()  # trackperm's filter is added
    assert not tracker.set_up_view(experiment).is_written
    assert tracker.set_up_view(experiment, ["accuracy"]).is_written
    changed, narrowed = saved(store, experiment)
    assert (changed["name"], changed["createdAt"]) == ("Ours", 7)
    assert changed["updatedAt"] >= envelope["updatedAt"]
    assert narrowed["columnWidths"]["metrics.`accuracy`"] == 240
    assert narrowed["searchFilter"].startswith("metrics.loss < 1")
    assert narrowed["searchFilter"].endswith(f" AND {RUNS_ONLY}") == can_filter()
    assert narrowed["columnOrder"] == ["params.`depth`", *before_depth]
    assert "params.`depth`" in narrowed["selectedColumns"]
    assert "tags.`sig.error_rate`" not in {*narrowed["selectedColumns"], *narrowed["columnOrder"]}


def test_of_errors_the_smallest_is_on_top_and_the_most_frequent_score_orders(
    store: MlflowStore, tracker: MlflowTracker, experiment: str
):
    runs = {
        run.info.run_name: run.info.run_id for run in store.client.search_runs([store.experiment(experiment)])
    }
    store.client.log_metric(runs["forest"], "sig.error_rate.score", 0.1)
    tracker.set_up_view(experiment, ["error_rate"])
    _, state = saved(store, experiment)
    assert (state["orderByKey"], state["orderByAsc"]) == ("metrics.`sig.error_rate.score`", True)
    for name in ("forest", "logistic"):
        store.client.log_metric(runs[name], "error_rate", 0.2)
    tracker.set_up_view(experiment, ["error_rate"])
    assert saved(store, experiment)[1]["orderByKey"] == "metrics.`error_rate`"


def test_a_view_of_version_0_1_is_brought_up_to_date(
    store: MlflowStore, tracker: MlflowTracker, experiment: str
):
    columns = ["metrics.`accuracy/candidate_score`", "tags.`sig.accuracy`", "attributes.`Source`"]
    earlier = {"selectedColumns": columns, "searchFilter": "", "orderByKey": columns[0], "orderByAsc": False}
    save(store, experiment, {"name": "Significance", "createdAt": 7, "updatedAt": 7}, earlier)
    other = {"mlflow.sharedViewState.other": "{}", "note": "ours"}
    for name, value in other.items():
        store.client.set_experiment_tag(store.experiment(experiment), name, value)
    assert tracker.set_up_view(experiment, ["accuracy"]).is_written
    _, state = saved(store, experiment)
    expected = ["tags.`sig.accuracy`", "metrics.`accuracy`", "tags.`sig.accuracy.vs`", "attributes.`Source`"]
    assert state["selectedColumns"] == state["columnOrder"] == expected
    assert state["orderByKey"] == "metrics.`accuracy`"
    assert state["searchFilter"] == (RUNS_ONLY if can_filter() else "")
    assert other.items() <= tags(store, experiment).items()


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
@pytest.mark.skipif(not can_filter(), reason="MLflow cannot search for runs without a tag")
def test_the_pages_of_mlflow_show_runs_with_their_verdicts_first(
    store: MlflowStore, tracker: MlflowTracker, experiment: str
):
    """All of the verdict is visible on 1,280 pixels, where MLflow's assistant takes the right quarter."""
    from playwright.sync_api import expect, sync_playwright

    view = tracker.set_up_view(experiment)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser(), args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(60_000)
        page.goto(view.link)
        verdict = page.locator("[role=gridcell][col-id='tags.`sig.accuracy`']")
        expect(verdict.first).to_have_text("accuracy 0.9000 ▲ p=0.0033", timeout=60_000)
        expect(page.get_by_text("2 matching runs")).to_be_visible()
        names = page.locator("[role=gridcell][col-id='attributes.`Run Name`']")
        tops = {
            name.inner_text().strip().split()[-1]: name.evaluate("cell => cell.getBoundingClientRect().y")
            for name in names.all()
        }
        assert sorted(tops, key=lambda name: tops[name]) == ["forest", "logistic"]
        box, table = verdict.first.bounding_box(), page.locator(".ag-root").bounding_box()
        assert box["x"] + box["width"] <= table["x"] + table["width"] <= 1280
        assert verdict.first.evaluate("cell => cell.scrollWidth <= cell.clientWidth")
        others = page.locator(
            "[role=columnheader][col-id^='tags.'], [role=columnheader][col-id^='metrics.`']"
        )
        assert all(box["x"] <= other["x"] for each in others.all() if (other := each.bounding_box()))
        chromium.close()


def test_a_colon_in_the_name_of_an_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the hint was to give only its name, which `colon:x` is."""
    monkeypatch.setattr("trackperm.trackers.base.open_tracker", Mock())
    found = CliRunner().invoke(commands.app, ["mlflow", "setup-view", "colon:x"])
    assert isinstance(found.exception, InputError)
    assert "write `mlflow:colon:x`" in str(found.exception.hint)


def test_the_commands(store: MlflowStore, experiment: str, tmp_path: Path):
    (tmp_path / "wrong.yaml").write_text(SPEC, encoding="utf-8")
    env = {"MLFLOW_TRACKING_URI": store.uri}

    def command(*arguments: str) -> tuple[int, str, str]:
        done = call_trackperm(tmp_path, "mlflow", *arguments, env=env)
        return done.returncode, done.stdout, done.stderr

    code, printed, said = command("setup-view", f"mlflow:{experiment}", "-s", "accuracy", "-s", "f2")
    shown_too = "this MLflow cannot search for runs without a tag, so comparisons are shown too\n"
    assert (code, said) == (0, "no run has a verdict by `f2` yet\n" + shown_too * (not can_filter()))
    assert printed.startswith("saved\n  tags.`sig.accuracy`\n  tags.`sig.f2`\n  metrics.`accuracy`\n")
    assert printed.endswith("/runs?viewStateShareKey=trackperm\n")
    assert command("store-statistic", experiment, "wrong.yaml") == (0, "stored as `wrong`\n", "")
    code, _, said = command("setup-view", "no-such-experiment")
    assert code == 2
    assert "no experiment called `no-such-experiment`" in said
