"""MLflow's own traps: stores made by accident, servers that vanish, odd names, tables that are none."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import time
from functools import partial
from pathlib import Path
from uuid import uuid4

import mlflow
import pandas as pd
import pytest
from mlflow.entities import Dataset, DatasetInput
from support.eval_logs import INSPECT, PROMPTFOO, write_eval
from support.faulty_proxy import FaultyProxy, is_write
from support.json_api import json_api
from support.mlflow_publication import check_complete, publication
from support.mlflow_server import free_port, silent_server
from support.mlflow_stores import MlflowStore
from support.tracker_stores import PREDICTIONS, Columns

import trackperm
from trackperm.errors import InputError, SourceError, TrackerError
from trackperm.trackers.mlflow.tracker import MlflowTracker

pytestmark = pytest.mark.tracker


class TestNoStoreIsMadeByAccident:
    def test_without_a_uri(self, tmp_path: Path):
        with pytest.raises(InputError, match="tracking_uri"):
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
        with pytest.raises(InputError, match="not an MLflow store"):
            MlflowTracker(uri)
        assert not list(tmp_path.iterdir())

    def test_in_an_empty_folder(self, tmp_path: Path):
        Path("mlruns").mkdir()
        with pytest.raises(InputError, match="not an MLflow store"):
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

    def test_in_a_file_that_is_not_a_database(self):
        Path("notes.db").write_text("no database, " * 100)
        with pytest.raises(TrackerError, match="not a database"):
            MlflowTracker("sqlite:///notes.db")

    def test_the_store_that_is_configured_is_opened(
        self, sqlite_store: MlflowStore, experiment: str, monkeypatch: pytest.MonkeyPatch
    ):
        run_id = sqlite_store.run(experiment, "forest")
        monkeypatch.setenv("MLFLOW_TRACKING_URI", sqlite_store.uri)
        assert MlflowTracker().find(run_id).name == "forest"
        monkeypatch.delenv("MLFLOW_TRACKING_URI")
        mlflow.set_tracking_uri(sqlite_store.uri)
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
        with silent_server() as uri:
            start = time.monotonic()
            with pytest.raises(TrackerError, match="does not answer"):
                MlflowTracker(uri).find("digits/forest")
            assert time.monotonic() - start < 20

    def test_patience_is_the_users_to_choose(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
        environment = dict(os.environ)
        with silent_server() as uri:
            start = time.monotonic()
            with pytest.raises(TrackerError, match="does not answer"):
                MlflowTracker(uri).find("abc")
            assert time.monotonic() - start < 15
        assert dict(os.environ) == environment

    def test_it_does_not_sleep_for_as_long_as_a_server_asks(self):
        with json_api(lambda _: (429, {}, {"Retry-After": "600"})) as uri:
            start = time.monotonic()
            with pytest.raises(TrackerError, match="429"):
                MlflowTracker(uri).find("abc")
            assert time.monotonic() - start < 60

    @pytest.mark.extended
    def test_permission_to_write_is_denied(
        self, http_store: MlflowStore, proxy: FaultyProxy, experiment: str
    ):
        http_store.run_with_predictions(experiment, "forest")
        proxy.fate = lambda method, path: "refuse" if is_write(method, path) else "pass"
        tracker = MlflowTracker(proxy.uri)
        run = tracker.find(f"{experiment}/forest")
        assert len(tracker.read(run).frame) == 4
        with pytest.raises(TrackerError, match=r"denies permission[\s\S]*m\.compare[\s\S]*m\.log"):
            tracker.publish(publication(run))
        assert not http_store.comparisons(experiment)

    @pytest.mark.extended
    def test_permission_to_write_artifacts_is_denied(
        self, http_store: MlflowStore, proxy: FaultyProxy, experiment: str
    ):
        http_store.run(experiment, "forest")
        proxy.fate = lambda method, path: "refuse" if method == "PUT" else "pass"
        tracker = MlflowTracker(proxy.uri)
        with pytest.raises(TrackerError, match=r"denies permission[\s\S]*trackperm\.compare"):
            tracker.publish(publication(tracker.find(f"{experiment}/forest")))
        (run,) = http_store.comparisons(experiment)
        assert run.info.status == "FAILED"

    @pytest.mark.extended
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
    def test_names_with_quotes(self, http_store: MlflowStore, experiment: str, name: str):
        run_id = http_store.run(f"{experiment}/a'b", name)
        assert http_store.tracker().find(f"{experiment}/a'b/{name}").reference.locator == run_id

    def test_names_with_slashes(self, http_store: MlflowStore, experiment: str):
        run_id = http_store.run(f"{experiment}/nested", "eval/2026/forest")
        tracker = http_store.tracker()
        assert tracker.find(f"{experiment}/nested/eval/2026/forest").reference.locator == run_id
        with pytest.raises(
            InputError, match=f"experiment `{experiment}/nested` has no run called `eval/forest`"
        ):
            tracker.find(f"{experiment}/nested/eval/forest")
        other = http_store.run(f"{experiment}/nested/eval", "2026/forest")
        with pytest.raises(InputError, match="2 runs are called") as error:
            tracker.find(f"{experiment}/nested/eval/2026/forest")
        assert f"{other}  run `2026/forest` of experiment `{experiment}/nested/eval`" in str(error.value)
        assert f"{run_id}  run `eval/2026/forest` of experiment `{experiment}/nested`" in str(error.value)

    def test_a_bare_name_gets_a_hint(self, sqlite_store: MlflowStore, experiment: str):
        sqlite_store.run(experiment, f"only-{experiment}")
        with pytest.raises(InputError, match=rf"Did you mean `mlflow:{experiment}/only-{experiment}`"):
            sqlite_store.tracker().find(f"only-{experiment}")

    def test_a_name_with_every_quote_is_refused(self, sqlite_store: MlflowStore, experiment: str):
        sqlite_store.run(experiment, "'\"`")
        with pytest.raises(InputError, match="by its id"):
            sqlite_store.tracker().find(f"{experiment}/'\"`")

    def test_deleted_runs_are_refused(self, sqlite_store: MlflowStore, experiment: str):
        tracker = sqlite_store.tracker()
        run = tracker.find(sqlite_store.run(experiment, "forest"))
        sqlite_store.client.delete_run(run.reference.locator)
        with pytest.raises(InputError, match=r"is deleted[\s\S]*mlflow runs restore"):
            tracker.find(run.reference.locator)
        with pytest.raises(InputError, match="no run called"):
            tracker.find(f"{experiment}/forest")
        with pytest.raises(InputError, match="is deleted"):
            tracker.publish(publication(run))
        assert not sqlite_store.comparisons(experiment)

    def test_deleted_experiments_are_refused(self, sqlite_store: MlflowStore, experiment: str):
        """Regression: hints named commands that fail, as the name of a deleted experiment is taken."""
        tracker, id_ = sqlite_store.tracker(), sqlite_store.experiment(experiment)
        run = tracker.find(sqlite_store.run(experiment, "forest"))
        sqlite_store.client.delete_experiment(id_)
        restores = rf"is deleted[\s\S]*Hint: `mlflow experiments restore --experiment-id {id_}`"
        for locator in (f"{experiment}/forest", run.reference.locator):
            with pytest.raises(InputError, match=restores):
                tracker.find(locator)
        sqlite_store.client.restore_run(run.reference.locator)
        with pytest.raises(InputError, match=rf"experiment `{experiment}` {restores}"):
            tracker.publish(publication(run))

    def test_deleted_comparisons_are_refused(self, sqlite_store: MlflowStore, experiment: str):
        """Regression: the hint named `trackperm family`, which does not list them."""
        tracker = sqlite_store.tracker()
        run = tracker.find(sqlite_store.run(experiment, "forest"))
        logged = tracker.publish(publication(run)).run.reference.locator
        sqlite_store.client.delete_run(logged)
        restores = rf"is deleted[\s\S]*Hint: `mlflow runs restore --run-id {logged}`"
        for find in (tracker.find, tracker.comparison):
            with pytest.raises(InputError, match=restores):
                find(logged)


class TestDatasets:
    def test_those_of_both_runs_are_compared(self, http_store: MlflowStore, experiment: str):
        frame = pd.DataFrame({"id": range(4), "prediction": [1, 0, 1, 1], "label": [1, 1, 0, 1]})
        run_ids = [http_store.run(experiment, name) for name in ("forest", "logistic", "boosting")]
        for run_id, rows in zip(run_ids, (4, 3, 4), strict=True):
            http_store.log_frame(run_id, frame.to_dict("list"), "predictions.parquet")
            described = mlflow.data.from_pandas(frame.head(rows), name="digits").to_dict()
            dataset = Dataset(**{key: described[key] for key in ("name", "digest", "source_type", "source")})
            http_store.client.log_inputs(run_id, datasets=[DatasetInput(dataset=dataset, tags=[])])
        notes = [
            trackperm.compare(
                f"mlflow:{run_ids[0]}", f"mlflow:{other}", tracking_uri=http_store.uri
            ).pairing.notes
            for other in run_ids[1:]
        ]
        assert [note for note in notes[0] if note.startswith("dataset differs: `digits ")]
        assert not [note for note in notes[1] if note.startswith("dataset differs")]


class Logged:
    """A finished run in an experiment of its own, to which artifacts are logged."""

    def __init__(self, store: MlflowStore) -> None:
        self.store, self.tracker = store, store.tracker()
        self.id = store.run(f"digits-{uuid4().hex[:8]}", "forest")
        self.run = self.tracker.find(self.id)

    def table(self, path: str = "predictions.json", columns: Columns = PREDICTIONS) -> None:
        self.store.log_columns(self.id, columns, path)

    def text(self, text: str, path: str) -> None:
        self.store.client.log_text(self.id, text, path)

    def ids(self, choice: str | None = None) -> list[str]:
        return self.tracker.read(self.run, choice).frame["id"].to_list()

    def refuses(self, message: str, choice: str | None = None, error: type[Exception] = InputError) -> None:
        with pytest.raises(error, match=message):
            self.tracker.read(self.run, choice)


@pytest.fixture
def logged(sqlite_store: MlflowStore) -> Logged:
    return Logged(sqlite_store)


IDS = PREDICTIONS["id"]


class TestDiscovery:
    def test_model_folders_and_settings_are_not_tables(self, logged: Logged):
        logged.table("eval/predictions.parquet")
        logged.text("flavors:", "model/MLmodel")
        for path in ("model/input_example.json", "model/data/example.json"):
            logged.text('{"columns": ["a"], "data": [[1]]}', path)
        logged.text('{"depth": 3}', "params.json")
        logged.table("trackperm/discordant.parquet", {"id": ["x"]})
        assert logged.ids() == IDS

    def test_a_table_that_log_table_did_not_note_counts(self, logged: Logged):
        logged.text('\n{ "data": [["7"]], "columns": ["id"]}', "mine.json")
        assert logged.ids() == ["7"]
        logged.table("noted.json", {"id": ["8"]})
        logged.refuses(r"2 artifacts[\s\S]*mine\.json[\s\S]*noted\.json")

    def test_parts_are_one_table_beside_others(self, logged: Logged):
        logged.table("predictions/")
        logged.table("dev.csv", {"id": ["7"]})
        logged.refuses(r"2 artifacts [\s\S]*    dev\.csv[\s\S]*    predictions  \(")
        assert logged.tracker.tables(logged.run) == ["dev.csv", "predictions"]
        for path in ("predictions", "predictions/"):
            assert logged.tracker.read(logged.run, path).frame.to_dict(as_series=False) == PREDICTIONS

    def test_parts_outside_all_folders(self, logged: Logged):
        """As `mlflow.log_artifacts(folder)` logs what is in it."""
        logged.text("depth: 3", "params.yaml")
        for i in range(2):
            logged.table(f"part-{i}.parquet", {"id": [f"q{i}"]})
        logged.refuses(r"one of 2 parts of a table[\s\S]*`artifact=.\..` reads the whole", "part-0.parquet")
        for choice in (None, "."):
            assert logged.ids(choice) == ["q0", "q1"]

    def test_a_folder_of_one_part_is_that_part(self, logged: Logged):
        logged.table("p.parquet/part-0.parquet", {"id": ["q0"]})
        logged.text("", "p.parquet/_SUCCESS")
        for choice in (None, "p.parquet", "p.parquet/part-0.parquet"):
            assert logged.ids(choice) == ["q0"]

    def test_parts_of_several_tables_and_parts_that_lack(self, logged: Logged):
        for name in ("dev-1-of-2", "dev-2-of-2", "test-1-of-2"):
            logged.table(f"data/{name}.parquet", {"id": [name]})
        logged.refuses(r"only `data/ \(parts of 2 tables\)`")
        logged.refuses(r"`data` of run .* holds parts of 2 tables", "data")
        logged.table("half/test-1-of-2.parquet", {"id": ["1"]})
        for choice in (None, "half", "half/test-1-of-2.parquet"):
            logged.refuses(r"has 1 of the 2 parts of a table", choice, SourceError)

    def test_a_list_that_was_logged_is_read(self, logged: Logged):
        """By `log_dict`; beside a table, which is one for sure, it does not count."""
        rows = '[{"id": "7", "prediction": "a"}, {"id": "8", "prediction": "b"}]'
        logged.text("[1, 2]", "settings.json")
        logged.text(rows, "predictions.json")
        assert logged.tracker.tables(logged.run) == ["predictions.json"]
        assert logged.ids() == ["7", "8"]
        logged.text(rows, "more.json")
        logged.refuses(r"2 artifacts[\s\S]*more\.json[\s\S]*predictions\.json")
        logged.table("predictions.csv", {"id": ["9"]})
        assert logged.ids() == ["9"]
        assert logged.ids("more.json") == ["7", "8"]

    def test_json_that_is_compressed(self, logged: Logged, tmp_path: Path):
        for name, text, ids in (
            ("params.json.gz", '{"depth": 3}', None),
            ("rows.json.gz", '[{"id": "7"}]', ["7"]),
            ("lines.jsonl.gz", '{"id": "8"}\n{"id": "9"}\n', ["8", "9"]),
        ):
            (tmp_path / name).write_bytes(gzip.compress(text.encode()))
            logged.store.client.log_artifact(logged.id, str(tmp_path / name))
            assert ids is None or logged.ids() == ids

    def test_logs_of_harnesses_are_tables(self, logged: Logged, tmp_path: Path):
        """Beside settings and summaries, which are JSON too."""
        write_eval(tmp_path / "log.eval", INSPECT)
        logged.store.client.log_artifact(logged.id, str(tmp_path / "log.eval"))
        for path, text in (
            ("stats.json", '[{"name": {"name": "exact_match"}, "sum": 3}]'),
            ("losses.json", '{"step": [1, 2], "loss": [0.5, 0.25]}'),
            ("names.json", '{"layer1": "dense", "layer2": "dense"}'),
            ("params.json", '{"depth": 3}'),
            ("broken.json", '{"depth": '),
        ):
            logged.text(text, path)
        assert logged.tracker.tables(logged.run) == ["log.eval"]
        assert logged.tracker.read(logged.run).frame["id"].to_list() == [1, 2]
        for path, document in (("logs/inspect.json", INSPECT), ("logs/promptfoo.json", PROMPTFOO)):
            logged.text(json.dumps(document), path)
        assert logged.tracker.tables(logged.run) == ["log.eval", "logs/inspect.json", "logs/promptfoo.json"]

    def test_other_files_are_named_by_hand(self, logged: Logged):
        logged.text("id\tprediction\n7\ta\n8\tb\n", "predictions.txt")
        logged.refuses(r"only `predictions\.txt`[\s\S]*PATH.* reads it")
        assert logged.ids("predictions.txt") == ["7", "8"]

    def test_a_broken_note_is_passed_over(self, logged: Logged):
        logged.table()
        for note in ("no json", '{"path": 1}', '[{"type": "table"}]', "null"):
            logged.store.client.set_tag(logged.id, "mlflow.loggedArtifacts", note)
            assert logged.ids() == IDS

    @pytest.mark.extended
    def test_too_many_folders_are_not_half_searched(self, logged: Logged):
        logged.table()
        for i in range(70):
            logged.text("", f"images/{i}/x.txt")
        logged.refuses(r"too many to search[\s\S]*artifact=")
        assert logged.ids("predictions.json") == IDS

    def test_nothing_is_left_in_the_temporary_folder(
        self, http_store: MlflowStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        logged = Logged(http_store)
        logged.table("predictions.parquet")
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        table = logged.tracker.read(logged.run)
        logged.tracker.publish(publication(logged.run))
        assert not list(tmp_path.iterdir())
        assert len(table.frame) == 4


@pytest.fixture
def local(tmp_path: Path) -> MlflowStore:
    return MlflowStore.local(tmp_path)


def test_a_store_that_was_moved_names_the_folder_that_is_missing(tmp_path: Path):
    """Regression: the runs had "no artifacts at all", and comparisons MISMATCH."""
    store = MlflowStore.local(tmp_path)
    run_id, tracker = store.run_with_predictions("digits", "forest"), MlflowTracker(store.uri)
    run = tracker.find(run_id)
    comparison = tracker.publish(publication(run)).run
    (tmp_path / "artifacts").rename(tmp_path / "new")
    for read in (
        lambda: tracker.read(run),
        lambda: tracker.read(run, "predictions.json"),
        lambda: tracker.files(comparison),
    ):
        with pytest.raises(
            InputError, match=r"its artifact folder `.*/artifacts/digits/\w+/artifacts`"
        ) as caught:
            read()
        assert not isinstance(caught.value, SourceError), "`verify` says MISMATCH"
        assert "if the store was moved" in str(caught.value.hint)
    (tmp_path / "artifacts").symlink_to(tmp_path / "new")
    assert len(tracker.read(run)) == len(PREDICTIONS["id"])


def test_an_empty_experiment(local: MlflowStore):
    """Regression: a leaderboard of it was a fault in trackperm itself."""
    local.experiment("empty")
    with pytest.raises(InputError, match="`mlflow:empty` has no finished run; expected at least two"):
        trackperm.leaderboard(experiment="mlflow:empty", tracking_uri=local.uri)
    with pytest.raises(InputError, match="`empty` is an experiment without a finished run"):
        trackperm.compare("mlflow:empty", "mlflow:empty", tracking_uri=local.uri)
    with pytest.raises(InputError, match=r"has no run called `a`\s+Hint: the experiment is empty"):
        trackperm.compare("mlflow:empty/a", "mlflow:empty/b", tracking_uri=local.uri)


def test_versions_of_models(local: MlflowStore):
    run_id = local.run_with_predictions("digits", "forest", PREDICTIONS)
    client, tracker = local.client, MlflowTracker(local.uri)
    client.create_registered_model("digits")
    made, by_hand = (client.create_model_version("digits", "nowhere", run_id=run) for run in (run_id, None))
    client.set_registered_model_alias("digits", "champion", made.version)
    for name in (f"models:/digits/{made.version}", "models:/digits@champion"):
        assert tracker.find(name).reference.locator == run_id
    other = local.run_with_predictions("digits", "tree", PREDICTIONS)
    compared = partial(trackperm.compare, "models:/digits/1", tracking_uri=local.uri)
    assert compared(f"mlflow:{other}", "accuracy").pvalue == 1.0
    with pytest.raises(InputError, match="are the same run"):
        compared("models:/digits@champion", "accuracy")
    lacks = r"version 2 of the model `digits` was not made by a run, so[\s\S]*mlflow:RUN_ID"
    with pytest.raises(InputError, match=lacks):
        tracker.find(f"models:/digits/{by_hand.version}")
    with pytest.raises(InputError, match="has no `models:/digits/77`"):
        tracker.find("models:/digits/77")
    with pytest.raises(InputError, match="is not a version of a model in MLflow"):
        tracker.find("models:/digits")


@pytest.mark.parametrize("ids", [["q1", "q2", "q3"], [7, 8, 9]])
def test_runs_of_different_experiments_are_told_so_by_name(local: MlflowStore, ids: list[object]):
    """Regression: the ids of two benchmarks were to be stored with the same type."""
    for experiment, own in (("gsm8k", [1, 2, 3]), ("mmlu", ids)):
        columns = {"id": own, "prediction": [1, 2, 3], "label": [1, 2, 4]}
        local.run_with_predictions(experiment, "forest", columns)
    with pytest.raises(InputError) as caught:
        trackperm.compare("mlflow:gsm8k/forest", "mlflow:mmlu/forest", "accuracy", tracking_uri=local.uri)
    assert "is in the experiment `gsm8k`" in str(caught.value)
    assert "in `mmlu`, whose test sets seem to differ" in str(caught.value)
    assert "Hint: compare runs on one test set." in str(caught.value)
    assert "store the column" not in str(caught.value)
