"""Comparisons in MLflow: clocks, lost answers, what is written again, crashes at every step."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import mlflow
import pytest
from support.faulty_proxy import Fate, FaultyProxy, is_write
from support.mlflow_publication import check_complete, publication
from support.mlflow_server import MlflowServer
from support.mlflow_stores import MlflowStore

from trackperm.errors import InputError, TrackerError
from trackperm.trackers.mlflow.tracker import MlflowTracker
from trackperm.trackers.publication import Publication

pytestmark = pytest.mark.tracker


@pytest.fixture
def experiment() -> str:
    return f"digits-{uuid4().hex[:8]}"


class TestPublishing:
    def test_a_comparison_is_nested_under_its_candidate(self, sqlite_store: MlflowStore, experiment: str):
        tracker = sqlite_store.tracker()
        candidate = tracker.find(sqlite_store.run(experiment, "forest"))
        run = sqlite_store.get(tracker.publish(publication(candidate)).run.reference.locator)
        assert run.data.tags["mlflow.parentRunId"] == candidate.reference.locator
        wanted = dataclasses.replace(publication(candidate, "ab" * 16), candidate=None)
        of_files = sqlite_store.get(tracker.publish(wanted, experiment).run.reference.locator)
        assert "mlflow.parentRunId" not in of_files.data.tags

    def test_unchanged_numbers_are_not_logged_again(self, sqlite_store: MlflowStore, experiment: str):
        tracker = sqlite_store.tracker()
        first = publication(tracker.find(sqlite_store.run(experiment, "forest")))
        run_id = tracker.publish(first).run.reference.locator
        tracker.publish(dataclasses.replace(first, metrics={**first.metrics, "f1/p_value": 0.002}))
        for name, n_points in (("f1/p_value", 2), ("f1/difference", 1)):
            assert len(sqlite_store.client.get_metric_history(run_id, name)) == n_points

    @pytest.mark.parametrize(
        "changes",
        [
            {"metrics": {"F1@10/p_value": 0.5}},
            {"tags": {"trackperm.baseline": "x" * 8001}},
            {"description": "x" * 8001},
            {"candidate_tags": {"sig.p(acc)": "x"}},
            {"candidate_tags": {"sig.p(acc).score": 0.5}},
            {"candidate_tags": {"sig.accuracy": "x" * 8001}},
        ],
        ids=["metric name", "long tag", "long description", "tag name", "score name", "long candidate tag"],
    )
    def test_what_mlflow_would_cut_or_refuse_is_refused_first(
        self, sqlite_store: MlflowStore, experiment: str, changes: dict[str, object]
    ):
        tracker = sqlite_store.tracker()
        wanted = publication(tracker.find(sqlite_store.run(experiment, "forest")))
        with pytest.raises(InputError):
            tracker.publish(dataclasses.replace(wanted, **changes))
        assert not sqlite_store.comparisons(experiment)

    def test_is_silent_and_leaves_the_session_alone(
        self, http_store: MlflowStore, experiment: str, capfd: pytest.CaptureFixture[str]
    ):
        http_store.run(experiment, "forest")
        mlflow.set_tracking_uri(http_store.uri)
        mlflow.set_experiment(experiment)
        with mlflow.start_run() as active:
            environment = dict(os.environ)
            capfd.readouterr()
            tracker = MlflowTracker()
            published = tracker.publish(publication(tracker.find(f"{experiment}/forest")))
            assert capfd.readouterr() == ("", "")
            assert dict(os.environ) == environment
            assert mlflow.active_run().info.run_id == active.info.run_id
        assert published.run.reference.locator != active.info.run_id
        assert not http_store.get(active.info.run_id).data.metrics
        assert published.run.url is not None
        assert published.run.url.endswith(f"/runs/{published.run.reference.locator}")

    def test_a_clock_that_is_behind_does_not_hide_the_new_value(
        self, sqlite_store: MlflowStore, experiment: str
    ):
        sqlite_store.run(experiment, "forest")
        tracker = sqlite_store.tracker()
        wanted = publication(tracker.find(f"{experiment}/forest"))
        run_id = tracker.publish(wanted).run.reference.locator
        tomorrow = int(time.time() * 1000) + 86_400_000
        sqlite_store.client.log_metric(run_id, "f1/p_value", 0.9, timestamp=tomorrow)
        assert not tracker.publish(wanted).created
        check_complete(sqlite_store, run_id, wanted)

    def test_what_was_lost_is_written_again(self, mlflow_server: MlflowServer, experiment: str):
        store = MlflowStore(mlflow_server.uri)
        store.run(experiment, "forest")
        tracker = store.tracker()
        wanted = publication(tracker.find(f"{experiment}/forest"))
        run_id = tracker.publish(wanted).run.reference.locator
        (lost,) = mlflow_server.artifacts.glob(f"*/{run_id}/artifacts/trackperm/part-001.txt")
        lost.unlink()
        store.client.delete_tag(run_id, "mlflow.note.content")
        assert not tracker.publish(wanted).created
        check_complete(store, run_id, wanted)

    def test_a_deleted_comparison_is_made_anew(self, sqlite_store: MlflowStore, experiment: str):
        sqlite_store.run(experiment, "forest")
        tracker = sqlite_store.tracker()
        wanted = publication(tracker.find(f"{experiment}/forest"))
        first = tracker.publish(wanted).run.reference.locator
        sqlite_store.client.delete_run(first)
        again = tracker.publish(wanted)
        assert again.created
        assert again.run.reference.locator != first
        check_complete(sqlite_store, again.run.reference.locator, wanted)

    def test_the_newest_complete_one_of_two_counts(self, sqlite_store: MlflowStore, experiment: str):
        sqlite_store.run(experiment, "forest")
        tracker = sqlite_store.tracker()
        wanted = publication(tracker.find(f"{experiment}/forest"))
        first = tracker.publish(wanted).run.reference.locator
        begun = sqlite_store.run(
            experiment,
            "twin",
            tags={
                "trackperm.kind": "comparison",
                "trackperm.key": wanted.key,
                "trackperm.state": "writing",
            },
        )
        again = tracker.publish(wanted)
        assert not again.created
        assert again.run.reference.locator == first
        assert sqlite_store.get(begun).data.tags["trackperm.state"] == "writing"

    @pytest.mark.parametrize("kind", ["local", pytest.param("remote", marks=pytest.mark.extended)])
    def test_many_comparisons_at_once(
        self, sqlite_store: MlflowStore, http_store: MlflowStore, experiment: str, kind: str
    ):
        store = sqlite_store if kind == "local" else http_store
        store.run(experiment, "forest")
        candidate = store.tracker().find(f"{experiment}/forest")
        publications = [publication(candidate, key=f"{i:08x}") for i in range(6)]

        def publish(wanted: Publication) -> str:
            return MlflowTracker(store.uri).publish(wanted).run.reference.locator

        with ThreadPoolExecutor(6) as pool:
            run_ids = list(pool.map(publish, publications))
        assert len(set(run_ids)) == 6
        for run_id, wanted in zip(run_ids, publications, strict=True):
            check_complete(store, run_id, wanted)


def test_the_pages_are_told_which_artifacts_are_tables(sqlite_store: MlflowStore, experiment: str):
    sqlite_store.run(experiment, "forest")
    tracker = sqlite_store.tracker()
    run_id = tracker.publish(publication(tracker.find(f"{experiment}/forest"))).run.reference.locator
    noted = json.loads(sqlite_store.get(run_id).data.tags["mlflow.loggedArtifacts"])
    assert noted == [{"path": "results.json", "type": "table"}]
    mlflow.set_tracking_uri(sqlite_store.uri)
    mlflow.set_experiment(experiment)
    shown = mlflow.load_table("results.json", run_ids=[run_id])
    assert shown["statistic"].tolist() == ["f1"]


class TestCrashes:
    """Whatever fails, no run looks finished that is not, and the next try completes the same run."""

    @pytest.mark.extended
    @pytest.mark.parametrize("fate", [pytest.param("cut", marks=pytest.mark.slow), "lose"])
    def test_at_every_request_that_writes(
        self,
        http_store: MlflowStore,
        proxy: FaultyProxy,
        experiment: str,
        monkeypatch: pytest.MonkeyPatch,
        fate: Fate,
    ):
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        candidate_id = http_store.run(experiment, "forest")
        tracker = MlflowTracker(proxy.uri)
        candidate = tracker.find(candidate_id)
        tracker.publish(publication(candidate, key="00000000"))
        n_writes = len(proxy.writes)
        assert n_writes >= 8

        for step in range(n_writes):
            wanted = publication(candidate, key=f"{step + 1:08x}")
            tags = {"sig.f1": f"f1 0.5000 ▲ p=0.{step}", "sig.f1.score": step / 100}
            wanted = dataclasses.replace(wanted, candidate_tags=tags)
            proxy.writes.clear()
            proxy.fate = lambda method, path, step=step: (
                "pass" if len(proxy.writes) <= step else fate if is_write(method, path) else "cut"
            )
            with pytest.raises(TrackerError):
                tracker.publish(wanted)
            begun = [
                run
                for run in http_store.comparisons(experiment)
                if run.data.tags["trackperm.key"] == wanted.key
            ]
            assert len(begun) == (0 if (step, fate) == (0, "cut") else 1)
            for run in begun:
                if run.info.status == "FINISHED" or run.data.tags["trackperm.state"] == "done":
                    assert step >= n_writes - 2
                    assert run.data.metrics == wanted.metrics
                    assert wanted.files.items() <= http_store.artifacts(run.info.run_id).items()

            proxy.fate = lambda method, path: "pass"
            published = tracker.publish(wanted)
            assert published.created == (not begun)
            assert all(published.run.reference.locator == run.info.run_id for run in begun)
            check_complete(http_store, published.run.reference.locator, wanted)
            for name in wanted.metrics:
                assert len(http_store.client.get_metric_history(published.run.reference.locator, name)) == 1
        assert len(http_store.comparisons(experiment)) == n_writes + 1

    def test_a_complete_run_stays_complete_when_the_candidate_cannot_be_tagged(
        self, http_store: MlflowStore, proxy: FaultyProxy, experiment: str
    ):
        tracker = MlflowTracker(proxy.uri)
        wanted = publication(tracker.find(http_store.run(experiment, "forest")))
        run_id = tracker.publish(wanted).run.reference.locator
        proxy.fate = lambda method, path: "refuse" if is_write(method, path) else "pass"
        changed = dataclasses.replace(wanted, candidate_tags={"sig.f1": "≈ p=0.6"})
        with pytest.raises(TrackerError, match="denies permission"):
            tracker.publish(changed)
        check_complete(http_store, run_id, wanted)

    @pytest.mark.parametrize("fate", ["lose", "break off"])
    def test_a_lost_answer_makes_no_second_run(
        self, http_store: MlflowStore, proxy: FaultyProxy, experiment: str, fate: Fate
    ):
        tracker = MlflowTracker(proxy.uri)
        wanted = publication(tracker.find(http_store.run(experiment, "forest")))
        proxy.fate = lambda method, path: fate if path.endswith("/runs/create") else "pass"
        with pytest.raises(TrackerError, match="does not answer"):
            tracker.publish(wanted)
        (begun,) = http_store.comparisons(experiment)
        assert tracker.publish(wanted).run.reference.locator == begun.info.run_id
        check_complete(http_store, begun.info.run_id, wanted)

    def test_a_stumbling_network_is_forgiven(
        self, http_store: MlflowStore, proxy: FaultyProxy, experiment: str
    ):
        tracker = MlflowTracker(proxy.uri)
        wanted = publication(tracker.find(http_store.run(experiment, "forest")))
        seen: set[str] = set()

        def lose_each_first_time(method: str, path: str) -> Fate:
            first = f"{method} {path}" not in seen and not path.endswith("/runs/create")
            seen.add(f"{method} {path}")
            return "lose" if first and is_write(method, path) else "pass"

        proxy.fate = lose_each_first_time
        run_id = tracker.publish(wanted).run.reference.locator
        check_complete(http_store, run_id, wanted)
        assert len(http_store.client.get_metric_history(run_id, "f1/p_value")) == 1

    @pytest.mark.slow
    def test_of_the_server_between_artifacts_and_metrics(
        self, tmp_path: Path, experiment: str, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
        with MlflowServer(tmp_path) as server:
            store = MlflowStore(server.uri)
            store.run_with_predictions(experiment, "forest")
            tracker = store.tracker()
            wanted = publication(tracker.find(f"{experiment}/forest"), n_files=60)

            def kill_when_the_first_artifact_is_there() -> None:
                while not list(server.artifacts.glob("*/*/artifacts/trackperm/*")):
                    time.sleep(0.001)
                server.kill()

            killer = threading.Thread(target=kill_when_the_first_artifact_is_there)
            killer.start()
            with pytest.raises(TrackerError, match="does not answer"):
                tracker.publish(wanted)
            killer.join()
            n_written = len(list(server.artifacts.glob("*/*/artifacts/trackperm/*")))
            assert 1 <= n_written < 60

            server.start()
            (begun,) = store.comparisons(experiment)
            assert begun.info.status == "RUNNING"
            assert begun.data.tags["trackperm.state"] == "writing"
            assert not begun.data.metrics
            assert not any("sig." in name for name in store.get(wanted.candidate.reference.locator).data.tags)

            published = tracker.publish(wanted)
            assert not published.created
            assert published.run.reference.locator == begun.info.run_id
            check_complete(store, begun.info.run_id, wanted)
            assert len(store.comparisons(experiment)) == 1

    def test_of_the_artifact_folder(self, sqlite_store: MlflowStore, experiment: str):
        sqlite_store.run(experiment, "forest")
        tracker = sqlite_store.tracker()
        wanted = publication(tracker.find(f"{experiment}/forest"))
        location = Path(
            sqlite_store.client.get_experiment_by_name(experiment).artifact_location.removeprefix("file://")
        )
        shutil.rmtree(location, ignore_errors=True)
        location.parent.mkdir(exist_ok=True)
        location.write_text("a file where a folder should be")
        with pytest.raises(TrackerError, match="logging comparison"):
            tracker.publish(wanted)
        (begun,) = sqlite_store.comparisons(experiment)
        assert begun.info.status == "FAILED"
        location.unlink()
        assert not tracker.publish(wanted).created
        check_complete(sqlite_store, begun.info.run_id, wanted)
