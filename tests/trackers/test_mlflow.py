"""MLflow's own traps: stores made by accident, servers that vanish, clocks, crashes at every step."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import mlflow
import pandas as pd
import pytest
from faulty_proxy import Fate, FaultyProxy, is_write
from mlflow.entities import Dataset, DatasetInput
from mlflow_server import MlflowServer, free_port
from mlflow_stores import MlflowStore

import trackperm
from trackperm.errors import InputError, TrackerError
from trackperm.trackers.base import Publication, Table, TrackedRun
from trackperm.trackers.mlflow import MlflowTracker

pytestmark = pytest.mark.tracker


@pytest.fixture(scope="module")
def local_store(tmp_path_factory: pytest.TempPathFactory) -> MlflowStore:
    return MlflowStore.local(tmp_path_factory.mktemp("mlflow-traps"))


@pytest.fixture
def remote_store(mlflow_server: MlflowServer) -> MlflowStore:
    return MlflowStore(mlflow_server.uri)


@pytest.fixture
def proxy(mlflow_server: MlflowServer) -> Iterator[FaultyProxy]:
    with FaultyProxy(mlflow_server.uri) as proxy:
        yield proxy


@pytest.fixture
def experiment() -> str:
    return f"digits-{uuid4().hex[:8]}"


def publication(candidate: TrackedRun, key: str = "5eed" * 8, n_files: int = 2) -> Publication:
    return Publication(
        key=key,
        name="f1: forest vs logistic",
        metrics={"f1/p_value": 0.003, "f1/difference": 0.02},
        tables={"results": Table(("statistic", "p_value"), [("f1", "0.003")])},
        files={f"trackperm/part-{i:03d}.txt": b"counts %d" % i for i in range(n_files)},
        tags={"trackperm.verdict": "▲ better"},
        description="**better**",
        candidate=candidate,
        candidate_tags={"sig.f1": "▲ p=0.003"},
    )


def check_complete(store: MlflowStore, run_id: str, wanted: Publication) -> None:
    """Hold every part of a comparison's run against the publication."""
    run = store.get(run_id)
    assert run.info.status == "FINISHED"
    assert run.data.tags["trackperm.state"] == "done"
    assert run.data.metrics == wanted.metrics
    assert wanted.tags.items() <= run.data.tags.items()
    assert run.data.tags["mlflow.note.content"] == wanted.description
    assert store.artifacts(run_id).keys() == {*wanted.files, "results.json"}
    assert wanted.files.items() <= store.artifacts(run_id).items()
    assert wanted.candidate is not None
    assert wanted.candidate_tags.items() <= store.get(wanted.candidate.reference.locator).data.tags.items()


class TestNoStoreIsMadeByAccident:
    def test_without_a_uri(self, tmp_path: Path):
        with pytest.raises(InputError, match="--tracking-uri"):
            MlflowTracker()
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        "uri",
        [
            "sqlite:///nowhere.db",
            "sqlite:////nowhere/mlflow.db",
            "sqlite+pysqlite:///nowhere.db",
            "sqlite:///nowhere.db?timeout=10",
            "sqlite://",
            "sqlite:///:memory:",
            "mlruns",
            "./mlruns",
            "file:mlruns",
            "file:///nowhere/mlruns",
            "~/mlruns",
        ],
    )
    def test_where_nothing_is(self, uri: str, tmp_path: Path):
        with pytest.raises(InputError, match="no MLflow store"):
            MlflowTracker(uri)
        assert not list(tmp_path.iterdir())

    def test_in_an_empty_folder(self, tmp_path: Path):
        Path("mlruns").mkdir()
        with pytest.raises(InputError, match="no MLflow store"):
            MlflowTracker("mlruns")
        assert not list(Path("mlruns").iterdir())

    @pytest.mark.parametrize("made_by", ["touch", "another program"])
    def test_in_a_database_of_something_else(self, made_by: str):
        file = Path("other.db")
        file.touch()
        if made_by == "another program":
            connection = sqlite3.connect(file)
            connection.execute("create table users (id integer)")
            connection.close()
        before = file.read_bytes()
        with pytest.raises(InputError, match="holds no MLflow store"):
            MlflowTracker("sqlite:///other.db")
        assert file.read_bytes() == before

    def test_in_what_is_no_database(self):
        Path("notes.db").write_text("no database, " * 100)
        with pytest.raises(TrackerError, match="not a database"):
            MlflowTracker("sqlite:///notes.db")

    def test_the_store_that_is_configured_is_opened(
        self, local_store: MlflowStore, experiment: str, monkeypatch: pytest.MonkeyPatch
    ):
        run_id = local_store.run(experiment, "forest")
        monkeypatch.setenv("MLFLOW_TRACKING_URI", local_store.uri)
        assert MlflowTracker().find(run_id).name == "forest"
        monkeypatch.delenv("MLFLOW_TRACKING_URI")
        mlflow.set_tracking_uri(local_store.uri)
        assert MlflowTracker().find(run_id).name == "forest"

    def test_a_folder_of_runs_is_opened(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # needed since 3.12 or so
        store = MlflowStore(Path("runs").absolute().as_uri())
        run_id = store.run_with_predictions("digits", "forest")
        for uri in (store.uri, "runs", "./runs", "file:runs"):
            tracker = MlflowTracker(uri)
            run = tracker.find("digits/forest")
            assert run.reference.locator == run_id
        assert len(tracker.read(run).frame) == 4
        wanted = publication(run)
        published = tracker.publish(wanted)
        check_complete(store, published.run.reference.locator, wanted)


class TestOutOfReach:
    def test_nobody_listens(self):
        environment = dict(os.environ)
        tracker = MlflowTracker(f"http://me:secret@127.0.0.1:{free_port()}")
        start = time.monotonic()
        with pytest.raises(TrackerError, match="does not answer") as caught:
            tracker.find("abc")
        assert time.monotonic() - start < 15
        assert "secret" not in str(caught.value)
        assert dict(os.environ) == environment

    @pytest.mark.slow
    def test_somebody_listens_and_is_silent(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            tracker = MlflowTracker(f"http://127.0.0.1:{silent.getsockname()[1]}")
            start = time.monotonic()
            with pytest.raises(TrackerError, match="does not answer"):
                tracker.find("digits/forest")
            assert time.monotonic() - start < 20

    def test_patience_is_the_users_to_choose(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
        environment = dict(os.environ)
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            start = time.monotonic()
            with pytest.raises(TrackerError, match="does not answer"):
                MlflowTracker(f"http://127.0.0.1:{silent.getsockname()[1]}").find("abc")
            assert time.monotonic() - start < 15
        assert dict(os.environ) == environment

    def test_permission_to_write_is_denied(
        self, remote_store: MlflowStore, proxy: FaultyProxy, experiment: str
    ):
        remote_store.run_with_predictions(experiment, "forest")
        proxy.fate = lambda method, path: "refuse" if is_write(method, path) else "pass"
        tracker = MlflowTracker(proxy.uri)
        run = tracker.find(f"{experiment}/forest")
        assert len(tracker.read(run).frame) == 4
        with pytest.raises(TrackerError, match=r"denies permission[\s\S]*--no-log[\s\S]*--log-to"):
            tracker.publish(publication(run))
        assert not remote_store.comparisons(experiment)

    def test_permission_to_write_artifacts_is_denied(
        self, remote_store: MlflowStore, proxy: FaultyProxy, experiment: str
    ):
        remote_store.run(experiment, "forest")
        proxy.fate = lambda method, path: "refuse" if method == "PUT" else "pass"
        tracker = MlflowTracker(proxy.uri)
        with pytest.raises(TrackerError, match=r"denies permission[\s\S]*--no-log"):
            tracker.publish(publication(tracker.find(f"{experiment}/forest")))
        (run,) = remote_store.comparisons(experiment)
        assert run.info.status == "FAILED"

    def test_permission_to_read_is_denied(self, proxy: FaultyProxy):
        proxy.fate = lambda method, path: "refuse"
        with pytest.raises(TrackerError, match=r"denies permission[\s\S]*permission to read"):
            MlflowTracker(proxy.uri).find("abc")

    def test_credentials_are_missing(self, proxy: FaultyProxy):
        proxy.fate = lambda method, path: "challenge"
        with pytest.raises(TrackerError, match=r"credentials[\s\S]*MLFLOW_TRACKING_USERNAME"):
            MlflowTracker(proxy.uri).find("abc")


class TestFinding:
    @pytest.mark.parametrize(
        "name", ["it's", 'the "best"', "50% off", "a\\b", "sig `x`", "Größe ▲", " padded "]
    )
    def test_names_with_quotes(self, remote_store: MlflowStore, experiment: str, name: str):
        run_id = remote_store.run(f"{experiment}/a'b", name)
        assert remote_store.tracker().find(f"{experiment}/a'b/{name}").reference.locator == run_id

    def test_names_with_slashes(self, remote_store: MlflowStore, experiment: str):
        run_id = remote_store.run(f"{experiment}/nested", "eval/2026/forest")
        tracker = remote_store.tracker()
        assert tracker.find(f"{experiment}/nested/eval/2026/forest").reference.locator == run_id
        with pytest.raises(
            InputError, match=f"experiment `{experiment}/nested` has no run called `eval/forest`"
        ):
            tracker.find(f"{experiment}/nested/eval/forest")
        remote_store.run(f"{experiment}/nested/eval", "2026/forest")
        with pytest.raises(InputError, match="2 runs"):
            tracker.find(f"{experiment}/nested/eval/2026/forest")

    def test_a_bare_name_gets_a_hint(self, local_store: MlflowStore, experiment: str):
        local_store.run(experiment, f"only-{experiment}")
        with pytest.raises(InputError, match=rf"did you mean `mlflow:{experiment}/only-{experiment}`"):
            local_store.tracker().find(f"only-{experiment}")

    def test_a_name_with_every_quote_is_refused(self, local_store: MlflowStore, experiment: str):
        local_store.run(experiment, "'\"`")
        with pytest.raises(InputError, match="by its id"):
            local_store.tracker().find(f"{experiment}/'\"`")

    def test_deleted_runs_are_refused(self, local_store: MlflowStore, experiment: str):
        tracker = local_store.tracker()
        run = tracker.find(local_store.run(experiment, "forest"))
        local_store.client.delete_run(run.reference.locator)
        with pytest.raises(InputError, match=r"is deleted[\s\S]*mlflow runs restore"):
            tracker.find(run.reference.locator)
        with pytest.raises(InputError, match="no run called"):
            tracker.find(f"{experiment}/forest")
        with pytest.raises(InputError, match="is deleted"):
            tracker.publish(publication(run))
        assert not local_store.comparisons(experiment)

    def test_deleted_experiments_are_refused(self, local_store: MlflowStore, experiment: str):
        local_store.run(experiment, "forest")
        local_store.client.delete_experiment(local_store.experiment(experiment))
        with pytest.raises(InputError, match="no experiment called"):
            local_store.tracker().find(f"{experiment}/forest")

    @pytest.mark.parametrize("locator", ["/", "x/", "/x", "a b", "日本", "x" * 300])
    def test_odd_locators_are_bad_input(self, remote_store: MlflowStore, locator: str):
        with pytest.raises(InputError):
            remote_store.tracker().find(locator)


class TestDatasets:
    def test_those_of_both_runs_are_compared(self, remote_store: MlflowStore, experiment: str):
        frame = pd.DataFrame({"id": range(4), "prediction": [1, 0, 1, 1], "label": [1, 1, 0, 1]})
        run_ids = [remote_store.run(experiment, name) for name in ("forest", "logistic", "boosting")]
        for run_id, rows in zip(run_ids, (4, 3, 4), strict=True):
            remote_store.log_frame(run_id, frame.to_dict("list"), "predictions.parquet")
            described = mlflow.data.from_pandas(frame.head(rows), name="digits").to_dict()
            dataset = Dataset(**{key: described[key] for key in ("name", "digest", "source_type", "source")})
            remote_store.client.log_inputs(run_id, datasets=[DatasetInput(dataset=dataset, tags=[])])
        notes = [
            trackperm.compare(
                f"mlflow:{run_ids[0]}", f"mlflow:{other}", tracking_uri=remote_store.uri
            ).pairing.notes
            for other in run_ids[1:]
        ]
        assert [note for note in notes[0] if note.startswith("dataset differs: `digits ")]
        assert not [note for note in notes[1] if note.startswith("dataset differs")]


class TestDiscovery:
    def test_model_folders_and_settings_are_no_tables(self, remote_store: MlflowStore, experiment: str):
        run_id = remote_store.run_with_predictions(experiment, "forest", artifact="eval/predictions.parquet")
        client = remote_store.client
        client.log_text(run_id, "flavors:", "model/MLmodel")
        client.log_text(run_id, '{"columns": ["a"], "data": [[1]]}', "model/input_example.json")
        client.log_text(run_id, '{"columns": ["a"], "data": [[1]]}', "model/data/example.json")
        client.log_dict(run_id, {"depth": 3}, "params.json")
        remote_store.log_frame(run_id, {"id": ["x"]}, "trackperm/discordant.parquet")
        tracker = remote_store.tracker()
        assert len(tracker.read(tracker.find(run_id)).frame) == 4

    def test_a_table_that_log_table_did_not_note_counts(self, local_store: MlflowStore, experiment: str):
        run_id = local_store.run(experiment, "forest")
        local_store.client.log_text(run_id, '\n{ "data": [["7"]], "columns": ["id"]}', "mine.json")
        tracker = local_store.tracker()
        run = tracker.find(run_id)
        assert tracker.read(run).frame["id"].to_list() == ["7"]
        local_store.client.log_table(run_id, {"id": ["8"]}, "noted.json")
        with pytest.raises(InputError, match=r"2 artifacts[\s\S]*mine\.json[\s\S]*noted\.json"):
            tracker.read(run)

    def test_a_broken_note_is_passed_over(self, local_store: MlflowStore, experiment: str):
        run_id = local_store.run_with_predictions(experiment, "forest")
        tracker = local_store.tracker()
        for note in ("no json", '{"path": 1}', '[{"type": "table"}]', "null"):
            local_store.client.set_tag(run_id, "mlflow.loggedArtifacts", note)
            assert len(tracker.read(tracker.find(run_id)).frame) == 4

    def test_too_many_folders_are_not_half_searched(self, local_store: MlflowStore, experiment: str):
        run_id = local_store.run_with_predictions(experiment, "forest")
        for i in range(70):
            local_store.client.log_text(run_id, "", f"images/{i}/x.txt")
        tracker = local_store.tracker()
        with pytest.raises(InputError, match=r"too many to look through[\s\S]*--artifact"):
            tracker.read(tracker.find(run_id))
        assert len(tracker.read(tracker.find(run_id), "predictions.json").frame) == 4

    def test_nothing_is_left_in_the_temporary_folder(
        self, remote_store: MlflowStore, experiment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        run_id = remote_store.run_with_predictions(experiment, "forest", artifact="predictions.parquet")
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        tracker = remote_store.tracker()
        table = tracker.read(tracker.find(run_id))
        tracker.publish(publication(tracker.find(run_id)))
        assert not list(tmp_path.iterdir())
        assert len(table.frame) == 4


class TestPublishing:
    def test_a_comparison_is_nested_under_its_candidate(self, local_store: MlflowStore, experiment: str):
        tracker = local_store.tracker()
        candidate = tracker.find(local_store.run(experiment, "forest"))
        run = local_store.get(tracker.publish(publication(candidate)).run.reference.locator)
        assert run.data.tags["mlflow.parentRunId"] == candidate.reference.locator
        wanted = dataclasses.replace(publication(candidate, "ab" * 16), candidate=None)
        of_files = local_store.get(tracker.publish(wanted, experiment).run.reference.locator)
        assert "mlflow.parentRunId" not in of_files.data.tags

    def test_unchanged_numbers_are_not_logged_again(self, local_store: MlflowStore, experiment: str):
        tracker = local_store.tracker()
        first = publication(tracker.find(local_store.run(experiment, "forest")))
        run_id = tracker.publish(first).run.reference.locator
        tracker.publish(dataclasses.replace(first, metrics={**first.metrics, "f1/p_value": 0.002}))
        for name, n_points in (("f1/p_value", 2), ("f1/difference", 1)):
            assert len(local_store.client.get_metric_history(run_id, name)) == n_points

    @pytest.mark.parametrize(
        "changes",
        [
            {"metrics": {"F1@10/p_value": 0.5}},
            {"tags": {"trackperm.baseline": "x" * 8001}},
            {"description": "x" * 8001},
            {"candidate_tags": {"sig.p(acc)": "x"}},
            {"candidate_tags": {"sig.accuracy": "x" * 8001}},
        ],
        ids=["metric name", "long tag", "long description", "tag name", "long candidate tag"],
    )
    def test_what_mlflow_would_cut_or_refuse_is_refused_first(
        self, local_store: MlflowStore, experiment: str, changes: dict[str, object]
    ):
        tracker = local_store.tracker()
        wanted = publication(tracker.find(local_store.run(experiment, "forest")))
        with pytest.raises(InputError):
            tracker.publish(dataclasses.replace(wanted, **changes))
        assert not local_store.comparisons(experiment)

    def test_is_silent_and_leaves_the_session_alone(
        self, remote_store: MlflowStore, experiment: str, capfd: pytest.CaptureFixture[str]
    ):
        remote_store.run(experiment, "forest")
        mlflow.set_tracking_uri(remote_store.uri)
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
        assert not remote_store.get(active.info.run_id).data.metrics
        assert published.run.url is not None
        assert published.run.url.endswith(f"/runs/{published.run.reference.locator}")

    def test_a_clock_that_is_behind_does_not_hide_the_new_value(
        self, local_store: MlflowStore, experiment: str
    ):
        local_store.run(experiment, "forest")
        tracker = local_store.tracker()
        wanted = publication(tracker.find(f"{experiment}/forest"))
        run_id = tracker.publish(wanted).run.reference.locator
        tomorrow = int(time.time() * 1000) + 86_400_000
        local_store.client.log_metric(run_id, "f1/p_value", 0.9, timestamp=tomorrow)
        assert not tracker.publish(wanted).created
        check_complete(local_store, run_id, wanted)

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

    def test_a_deleted_comparison_is_made_anew(self, local_store: MlflowStore, experiment: str):
        local_store.run(experiment, "forest")
        tracker = local_store.tracker()
        wanted = publication(tracker.find(f"{experiment}/forest"))
        first = tracker.publish(wanted).run.reference.locator
        local_store.client.delete_run(first)
        again = tracker.publish(wanted)
        assert again.created
        assert again.run.reference.locator != first
        check_complete(local_store, again.run.reference.locator, wanted)

    def test_the_newest_complete_one_of_two_counts(self, local_store: MlflowStore, experiment: str):
        local_store.run(experiment, "forest")
        tracker = local_store.tracker()
        wanted = publication(tracker.find(f"{experiment}/forest"))
        first = tracker.publish(wanted).run.reference.locator
        begun = local_store.run(
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
        assert local_store.get(begun).data.tags["trackperm.state"] == "writing"

    @pytest.mark.parametrize("kind", ["local", "remote"])
    def test_many_comparisons_at_once(
        self, local_store: MlflowStore, remote_store: MlflowStore, experiment: str, kind: str
    ):
        store = local_store if kind == "local" else remote_store
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


class TestCrashes:
    """Whatever fails, no run looks finished that is not, and the next try completes the same run."""

    @pytest.mark.extended
    @pytest.mark.parametrize("fate", [pytest.param("cut", marks=pytest.mark.slow), "lose"])
    def test_at_every_request_that_writes(
        self,
        remote_store: MlflowStore,
        proxy: FaultyProxy,
        experiment: str,
        monkeypatch: pytest.MonkeyPatch,
        fate: Fate,
    ):
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        candidate_id = remote_store.run(experiment, "forest")
        tracker = MlflowTracker(proxy.uri)
        candidate = tracker.find(candidate_id)
        tracker.publish(publication(candidate, key="00000000"))
        n_writes = len(proxy.writes)
        assert n_writes >= 8

        for step in range(n_writes):
            wanted = publication(candidate, key=f"{step + 1:08x}")
            wanted = dataclasses.replace(wanted, candidate_tags={"sig.f1": f"▲ p=0.{step}"})
            proxy.writes.clear()
            proxy.fate = lambda method, path, step=step: (
                "pass" if len(proxy.writes) <= step else fate if is_write(method, path) else "cut"
            )
            with pytest.raises(TrackerError):
                tracker.publish(wanted)
            begun = [
                run
                for run in remote_store.comparisons(experiment)
                if run.data.tags["trackperm.key"] == wanted.key
            ]
            assert len(begun) == (0 if (step, fate) == (0, "cut") else 1)
            for run in begun:
                if run.info.status == "FINISHED" or run.data.tags["trackperm.state"] == "done":
                    assert step >= n_writes - 2
                    assert run.data.metrics == wanted.metrics
                    assert wanted.files.items() <= remote_store.artifacts(run.info.run_id).items()

            proxy.fate = lambda method, path: "pass"
            published = tracker.publish(wanted)
            assert published.created == (not begun)
            assert all(published.run.reference.locator == run.info.run_id for run in begun)
            check_complete(remote_store, published.run.reference.locator, wanted)
            for name in wanted.metrics:
                assert len(remote_store.client.get_metric_history(published.run.reference.locator, name)) == 1
        assert len(remote_store.comparisons(experiment)) == n_writes + 1

    def test_a_complete_run_stays_complete_when_the_candidate_cannot_be_tagged(
        self, remote_store: MlflowStore, proxy: FaultyProxy, experiment: str
    ):
        tracker = MlflowTracker(proxy.uri)
        wanted = publication(tracker.find(remote_store.run(experiment, "forest")))
        run_id = tracker.publish(wanted).run.reference.locator
        proxy.fate = lambda method, path: "refuse" if is_write(method, path) else "pass"
        changed = dataclasses.replace(wanted, candidate_tags={"sig.f1": "≈ p=0.6"})
        with pytest.raises(TrackerError, match="denies permission"):
            tracker.publish(changed)
        check_complete(remote_store, run_id, wanted)

    @pytest.mark.parametrize("fate", ["lose", "break off"])
    def test_a_lost_answer_makes_no_second_run(
        self, remote_store: MlflowStore, proxy: FaultyProxy, experiment: str, fate: Fate
    ):
        tracker = MlflowTracker(proxy.uri)
        wanted = publication(tracker.find(remote_store.run(experiment, "forest")))
        proxy.fate = lambda method, path: fate if path.endswith("/runs/create") else "pass"
        with pytest.raises(TrackerError, match="does not answer"):
            tracker.publish(wanted)
        (begun,) = remote_store.comparisons(experiment)
        assert tracker.publish(wanted).run.reference.locator == begun.info.run_id
        check_complete(remote_store, begun.info.run_id, wanted)

    def test_a_stumbling_network_is_forgiven(
        self, remote_store: MlflowStore, proxy: FaultyProxy, experiment: str
    ):
        tracker = MlflowTracker(proxy.uri)
        wanted = publication(tracker.find(remote_store.run(experiment, "forest")))
        seen: set[str] = set()

        def lose_each_first_time(method: str, path: str) -> Fate:
            first = f"{method} {path}" not in seen and not path.endswith("/runs/create")
            seen.add(f"{method} {path}")
            return "lose" if first and is_write(method, path) else "pass"

        proxy.fate = lose_each_first_time
        run_id = tracker.publish(wanted).run.reference.locator
        check_complete(remote_store, run_id, wanted)
        assert len(remote_store.client.get_metric_history(run_id, "f1/p_value")) == 1

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

    def test_of_the_artifact_folder(self, local_store: MlflowStore, experiment: str):
        local_store.run(experiment, "forest")
        tracker = local_store.tracker()
        wanted = publication(tracker.find(f"{experiment}/forest"))
        location = Path(
            local_store.client.get_experiment_by_name(experiment).artifact_location.removeprefix("file://")
        )
        shutil.rmtree(location, ignore_errors=True)
        location.parent.mkdir(exist_ok=True)
        location.write_text("a file where a folder should be")
        with pytest.raises(TrackerError, match="logging comparison"):
            tracker.publish(wanted)
        (begun,) = local_store.comparisons(experiment)
        assert begun.info.status == "FAILED"
        location.unlink()
        assert not tracker.publish(wanted).created
        check_complete(local_store, begun.info.run_id, wanted)


def test_the_pages_are_told_which_artifacts_are_tables(local_store: MlflowStore, experiment: str):
    local_store.run(experiment, "forest")
    tracker = local_store.tracker()
    run_id = tracker.publish(publication(tracker.find(f"{experiment}/forest"))).run.reference.locator
    noted = json.loads(local_store.get(run_id).data.tags["mlflow.loggedArtifacts"])
    assert noted == [{"path": "results.json", "type": "table"}]
    mlflow.set_tracking_uri(local_store.uri)
    mlflow.set_experiment(experiment)
    shown = mlflow.load_table("results.json", run_ids=[run_id])
    assert shown["statistic"].tolist() == ["f1"]
