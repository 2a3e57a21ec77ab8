"""Comparisons in MLflow: clocks, lost answers, what is written again, crashes at every step."""

from __future__ import annotations

import dataclasses
import json
import os
import resource
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

from trackperm.errors import InputError, StorageError, TrackerError
from trackperm.trackers import publication as trackers_publication
from trackperm.trackers.mlflow.tracker import MlflowTracker
from trackperm.trackers.publication import CREATED_TAG, TEST_SET_TAG, Publication, Published
from trackperm.trackers.references import TrackedRun

pytestmark = pytest.mark.tracker


class Place:
    """An experiment with a finished candidate, whose comparisons are published there."""

    def __init__(self, store: MlflowStore, uri: str | None = None) -> None:
        self.store, self.experiment = store, f"digits-{uuid4().hex[:8]}"
        self.tracker = MlflowTracker(uri or store.uri)
        self.candidate = self.tracker.find(store.run(self.experiment, "forest"))
        self.wanted = publication(self.candidate)

    def publish(self, wanted: Publication | None = None) -> Published:
        return self.tracker.publish(wanted or self.wanted)

    def published(self) -> str:
        """Publish the comparison, and return the id of its run."""
        return self.publish().run.reference.locator

    def begun(self) -> str:
        """Return the id of the only comparison, which may be unfinished."""
        (run,) = self.store.comparisons(self.experiment)
        return str(run.info.run_id)

    def check(self, run_id: str, wanted: Publication | None = None) -> None:
        check_complete(self.store, run_id, wanted or self.wanted)


@pytest.fixture
def place(sqlite_store: MlflowStore) -> Place:
    return Place(sqlite_store)


@pytest.fixture
def proxied(http_store: MlflowStore, proxy: FaultyProxy) -> Place:
    """A place whose tracker is reached through the proxy."""
    return Place(http_store, proxy.uri)


class TestPlaces:
    def test_a_time_that_arrives_late_changes_no_place_that_was_told(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ):
        """Regression: a request that was repeated after a minute sorted before one that had been told 1."""
        own = dataclasses.replace(place.wanted, tags={**place.wanted.tags, TEST_SET_TAG: "a" * 64})
        other = dataclasses.replace(own, key="ab" * 16)
        requests: list[tuple[str, str]] = []
        set_tag = mlflow.MlflowClient.set_tag

        def delayed(client: mlflow.MlflowClient, run_id: str, key: str, value: str) -> None:
            if key == CREATED_TAG and not requests:
                requests.append((run_id, value))
                place.publish(other)
            set_tag(client, run_id, key, value)

        monkeypatch.setattr(mlflow.MlflowClient, "set_tag", delayed)
        monkeypatch.setattr(trackers_publication, "FRESH_SECONDS", 0.0)
        place.publish(own)

        def order() -> list[str]:
            found = place.tracker.comparisons(place.experiment)
            return [each.tags["trackperm.key"] for each in sorted(found, key=lambda each: each.created)]

        assert order() == [other.key, own.key]
        place.store.client.set_tag(requests[0][0], CREATED_TAG, requests[0][1])
        assert order() == [other.key, own.key]


class TestPublishing:
    def test_a_comparison_is_nested_under_its_candidate(self, place: Place):
        run = place.store.get(place.published())
        assert run.data.tags["mlflow.parentRunId"] == place.candidate.reference.locator
        wanted = dataclasses.replace(place.wanted, key="ab" * 16, candidate=None)
        of_files = place.tracker.publish(wanted, place.experiment).run.reference.locator
        assert "mlflow.parentRunId" not in place.store.get(of_files).data.tags

    def test_unchanged_numbers_are_not_logged_again(self, place: Place):
        run_id = place.published()
        place.publish(
            dataclasses.replace(place.wanted, metrics={**place.wanted.metrics, "f1/p_value": 0.002})
        )
        for name, n_points in (("f1/p_value", 2), ("f1/difference", 1)):
            assert len(place.store.client.get_metric_history(run_id, name)) == n_points

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
    def test_what_mlflow_would_cut_or_refuse_is_refused_first(self, place: Place, changes: dict[str, object]):
        with pytest.raises(InputError):
            place.publish(dataclasses.replace(place.wanted, **changes))
        assert not place.store.comparisons(place.experiment)

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
        assert published.run.url.endswith(f"/runs/{published.run.reference.locator}")

    def test_a_clock_that_is_behind_does_not_hide_the_new_value(self, place: Place):
        run_id = place.published()
        tomorrow = int(time.time() * 1000) + 86_400_000
        place.store.client.log_metric(run_id, "f1/p_value", 0.9, timestamp=tomorrow)
        assert not place.publish().created
        place.check(run_id)

    def test_what_was_lost_is_written_again(self, mlflow_server: MlflowServer, http_store: MlflowStore):
        place = Place(http_store)
        run_id = place.published()
        (lost,) = mlflow_server.artifacts.glob(f"*/{run_id}/artifacts/trackperm/part-001.txt")
        lost.unlink()
        place.store.client.delete_tag(run_id, "mlflow.note.content")
        assert not place.publish().created
        place.check(run_id)

    def test_a_full_folder_of_temporary_files_is_named(
        self, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        """Regression: a full TMPDIR was called a failure of MLflow."""
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        large = dataclasses.replace(place.wanted, files={"trackperm/large.bin": bytes(2**26)})
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**25, before[1]))
        try:
            with pytest.raises(StorageError, match=rf"temporary files in `{tmp_path}` cannot be written"):
                place.publish(large)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert not list(tmp_path.iterdir())
        run_id = place.published()
        place.check(run_id)

    def test_a_deleted_comparison_is_made_anew(self, place: Place):
        first = place.published()
        place.store.client.delete_run(first)
        again = place.publish()
        assert again.created
        assert again.run.reference.locator != first
        place.check(again.run.reference.locator)

    def test_the_newest_complete_one_of_two_counts(self, place: Place):
        first = place.published()
        tags = {"kind": "comparison", "key": place.wanted.key, "state": "writing"}
        tags = {f"trackperm.{name}": value for name, value in tags.items()}
        begun = place.store.run(place.experiment, "twin", tags=tags)
        again = place.publish()
        assert not again.created
        assert again.run.reference.locator == first
        assert place.store.get(begun).data.tags["trackperm.state"] == "writing"

    @pytest.mark.extended
    @pytest.mark.parametrize("kind", ["local", pytest.param("remote", marks=pytest.mark.extended)])
    def test_many_comparisons_at_once(self, sqlite_store: MlflowStore, http_store: MlflowStore, kind: str):
        place = Place(sqlite_store if kind == "local" else http_store)
        publications = [publication(place.candidate, key=f"{i:08x}") for i in range(6)]

        def publish(wanted: Publication) -> str:
            return MlflowTracker(place.store.uri).publish(wanted).run.reference.locator

        with ThreadPoolExecutor(6) as pool:
            run_ids = list(pool.map(publish, publications))
        assert len(set(run_ids)) == 6
        for run_id, wanted in zip(run_ids, publications, strict=True):
            place.check(run_id, wanted)


def test_the_pages_are_told_which_artifacts_are_tables(place: Place):
    run_id = place.published()
    noted = json.loads(place.store.get(run_id).data.tags["mlflow.loggedArtifacts"])
    assert noted == [{"path": "results.json", "type": "table"}]
    mlflow.set_tracking_uri(place.store.uri)
    mlflow.set_experiment(place.experiment)
    shown = mlflow.load_table("results.json", run_ids=[run_id])
    assert shown["statistic"].tolist() == ["f1"]


class TestCrashes:
    """Whatever fails, no run looks finished that is not, and the next try completes the same run."""

    @pytest.mark.extended
    @pytest.mark.parametrize("fate", ["lose", pytest.param("cut", marks=pytest.mark.nightly)])
    def test_at_every_request_that_writes(
        self, proxied: Place, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch, fate: Fate
    ):
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        store, experiment = proxied.store, proxied.experiment
        proxied.publish(publication(proxied.candidate, key="00000000"))
        n_writes = len(proxy.writes)
        assert n_writes >= 8
        for step in range(n_writes):
            wanted = publication(proxied.candidate, key=f"{step + 1:08x}")
            tags = {"sig.f1": f"f1 0.5000 ▲ p=0.{step}", "sig.f1.score": step / 100}
            wanted = dataclasses.replace(wanted, candidate_tags=tags)
            proxy.writes.clear()
            proxy.fate = lambda method, path, step=step: (
                "pass" if len(proxy.writes) <= step else fate if is_write(method, path) else "cut"
            )
            with pytest.raises(TrackerError):
                proxied.publish(wanted)
            begun = [
                run for run in store.comparisons(experiment) if run.data.tags["trackperm.key"] == wanted.key
            ]
            assert len(begun) == (0 if (step, fate) == (0, "cut") else 1)
            for run in begun:
                if run.info.status == "FINISHED" or run.data.tags["trackperm.state"] == "done":
                    assert step >= n_writes - 2
                    assert run.data.metrics == wanted.metrics
                    assert wanted.files.items() <= store.artifacts(run.info.run_id).items()
            proxy.fate = lambda method, path: "pass"
            published = proxied.publish(wanted)
            run_id = published.run.reference.locator
            assert published.created == (not begun)
            assert all(run_id == run.info.run_id for run in begun)
            proxied.check(run_id, wanted)
            for name in wanted.metrics:
                assert len(store.client.get_metric_history(run_id, name)) == 1
        assert len(store.comparisons(experiment)) == n_writes + 1

    def test_a_complete_run_stays_complete_when_the_candidate_cannot_be_tagged(
        self, proxied: Place, proxy: FaultyProxy
    ):
        run_id = proxied.published()
        proxy.fate = lambda method, path: "refuse" if is_write(method, path) else "pass"
        with pytest.raises(TrackerError, match="denies permission"):
            proxied.publish(dataclasses.replace(proxied.wanted, candidate_tags={"sig.f1": "≈ p=0.6"}))
        proxied.check(run_id)

    @pytest.mark.parametrize("fate", ["lose", "break off"])
    def test_a_lost_answer_makes_no_second_run(self, proxied: Place, proxy: FaultyProxy, fate: Fate):
        proxy.fate = lambda method, path: fate if path.endswith("/runs/create") else "pass"
        with pytest.raises(TrackerError, match="does not answer"):
            proxied.publish()
        begun = proxied.begun()
        assert proxied.published() == begun
        proxied.check(begun)

    def test_a_stumbling_network_is_forgiven(self, proxied: Place, proxy: FaultyProxy):
        seen: set[str] = set()

        def lose_each_first_time(method: str, path: str) -> Fate:
            first = f"{method} {path}" not in seen and not path.endswith("/runs/create")
            seen.add(f"{method} {path}")
            return "lose" if first and is_write(method, path) else "pass"

        proxy.fate = lose_each_first_time
        run_id = proxied.published()
        proxied.check(run_id)
        assert len(proxied.store.client.get_metric_history(run_id, "f1/p_value")) == 1

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

    def test_of_the_artifact_folder(self, place: Place):
        found = place.store.client.get_experiment_by_name(place.experiment)
        location = Path(found.artifact_location.removeprefix("file://"))
        shutil.rmtree(location, ignore_errors=True)
        location.parent.mkdir(exist_ok=True)
        location.write_text("a file where a folder should be")
        with pytest.raises(TrackerError, match="logging comparison"):
            place.publish()
        begun = place.begun()
        assert place.store.get(begun).info.status == "FAILED"
        location.unlink()
        assert not place.publish().created
        place.check(begun)


@pytest.mark.parametrize("renamed", [False, True])
def test_a_verdict_on_the_baseline_does_not_outlive_its_candidates(place: Place, renamed: bool):
    """Regression: the baseline of a candidate that became worse kept "forest ▲"."""
    tag, report = "sig.f1.baseline_of", "trackperm_report.html"
    baseline = place.tracker.find(place.store.run(place.experiment, "svm"))
    base_id, client = baseline.reference.locator, place.store.client

    def compared(
        name: str, mark: str, *, candidate: TrackedRun = place.candidate, tag_runs: bool = False
    ) -> str:
        made = dataclasses.replace(
            publication(candidate, f"{ord(mark):08x}"),
            baseline=baseline,
            baseline_tags={tag: f"{name} {mark}"},
            files={report: mark.encode()},
        )
        place.tracker.publish(made, tag_runs=tag_runs)
        return str(place.store.get(base_id).data.tags.get(tag))

    assert compared("forest", "≈") == "None"
    assert compared("forest", "▲", tag_runs=True) == "forest ▲"
    other = place.tracker.find(place.store.run(place.experiment, "other"))
    assert compared("other", "▼", candidate=other) == "forest ▲"
    if renamed:
        client.update_run(place.candidate.reference.locator, name="trees")
    name = "trees" if renamed else "forest"
    assert compared(name, "▼") == f"{name} ▼"
    pages = [place.store.artifacts(run)[report] for run in (base_id, place.candidate.reference.locator)]
    assert pages == ["▼".encode()] * 2
