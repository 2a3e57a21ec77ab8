"""Predictions that are logged in one line: what is checked, what is kept, which run is meant."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import mlflow
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import wandb
from support.installed import installed
from support.mlflow_stores import MlflowExperiments, MlflowStore
from support.processes import run as run_process
from support.tracker_stores import PREDICTIONS
from support.wandb_projects import WandbProjects, logged_run
from support.wandb_standin import Standin

import trackperm
from trackperm.errors import InputError, InputTypeError, MissingDependencyError, PairingError, TrackerError
from trackperm.trackers.base import open_tracker

pytestmark = pytest.mark.tracker

COLUMNS = {name: list(values) for name, values in PREDICTIONS.items()}
FRAME = pl.DataFrame(COLUMNS)


@pytest.fixture
def run(sqlite_store: MlflowStore, monkeypatch: pytest.MonkeyPatch) -> str:
    """A finished run without predictions, in the store that the environment names."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", sqlite_store.uri)
    return f"mlflow:{sqlite_store.run('digits', 'forest')}"


def read(reference: str) -> dict[str, list[Any]]:
    scheme, _, locator = reference.partition(":")
    tracker = open_tracker(scheme)
    return tracker.read(tracker.find(locator)).frame.to_dict(as_series=False)


LIBRARIES: dict[str, Callable[[], Any]] = {
    "polars": lambda: FRAME,
    "lazy": lambda: FRAME.lazy(),
    "pandas": lambda: pd.DataFrame(COLUMNS, index=[3, 1, 4, 1]),
    "pandas objects": lambda: pd.DataFrame(COLUMNS, dtype=object),
    "pyarrow": lambda: pa.table(COLUMNS),
    "duckdb": lambda: duckdb.from_arrow(pa.table(COLUMNS)),
}


class TestFrames:
    def test_of_every_library_are_kept_in_order(self, sqlite_store: MlflowStore, run: str):
        for library, made in LIBRARIES.items():
            reference = f"mlflow:{sqlite_store.run('digits', library)}"
            assert trackperm.log_predictions(reference, made()) == reference
            assert read(reference) == PREDICTIONS, library

    def test_types_and_texts_are_kept(self, run: str):
        frame = pl.DataFrame(
            {
                "id": [2**53 + 1, 7],
                "prediction": ['a,\n"b"', "日本 é"],
                "score": [0.1, None],
                "ok": [True, False],
                "spans": [["B", "I"], []],
            }
        )
        trackperm.log_predictions(run, frame)
        assert read(run) == frame.to_dict(as_series=False)

    def test_columns_get_the_names_that_statistics_read(self, run: str):
        frame = FRAME.rename({"id": "question_id", "prediction": "answer"})
        trackperm.log_predictions(run, frame, columns={"id": "question_id", "prediction": "answer"})
        assert read(run) == PREDICTIONS

    def test_several_columns_may_identify_an_example(self, run: str):
        frame = FRAME.with_columns(id=pl.lit("q1"), turn=pl.int_range(4))
        with pytest.raises(PairingError, match="4 of 4 rows of `predictions` share their `id`"):
            trackperm.log_predictions(run, frame)
        trackperm.log_predictions(run, frame, columns={"id": "id,turn"})
        assert read(run) == frame.to_dict(as_series=False)

    def test_rows_of_one_example_need_a_column_of_attempts(self, run: str):
        """Regression: the hint named `repeats`, which only comparisons have."""
        rows = pl.DataFrame({"id": ["a", "a", "b", "b"], "attempt": [0, 1, 0, 1], "passed": [1, 0, 1, 1]})
        with pytest.raises(PairingError, match="share their `id` with another row") as caught:
            trackperm.log_predictions(run, rows.drop("attempt"))
        assert "repeats" not in str(caught.value)
        assert """`columns={"id": "id,NAME"}` names columns""" in str(caught.value)
        trackperm.log_predictions(run, rows)

    def test_what_cannot_be_kept_is_refused_and_nothing_is_written(self, sqlite_store: MlflowStore, run: str):
        refused: list[tuple[Any, dict[str, Any], str]] = [
            (FRAME.clear(), {}, "`predictions` has no examples"),
            (FRAME.with_columns(id=pl.lit(0.5)), {}, "column `id` is decimal; ids must be integers or text"),
            (FRAME.with_columns(id=pl.Series(["e\u0301", "é", "a", "b"])), {}, "two Unicode normal forms"),
            (FRAME.rename({"id": "qid"}), {}, r"no column `id`[\s\S]*`qid` could identify"),
            (FRAME.drop("id"), {}, r"no column `id`[\s\S]*no column identifies the examples"),
            (FRAME, {"columns": {"prediction": "answer"}}, "no column `answer`, only `id`"),
            (FRAME, {"columns": {"label": "prediction"}}, "more than one column `label`"),
            (FRAME, {"name": "../x"}, "`../x` is not a name for predictions"),
            (FRAME.with_columns(o=pl.Series([{1}] * 4, dtype=pl.Object)), {}, "column `o` .* holds objects"),
            ("predictions.parquet", {}, "the predictions are text"),
            (3, {}, "expected a data frame"),
        ]
        for frame, options, message in refused:
            with pytest.raises((InputError, InputTypeError), match=message):
                trackperm.log_predictions(run, frame, **options)
        assert sqlite_store.artifacts(run.removeprefix("mlflow:")) == {}


class TestMlflowRuns:
    def test_any_object_or_reference_names_the_run(self, sqlite_store: MlflowStore, run: str):
        run_id = run.removeprefix("mlflow:")
        assert trackperm.log_predictions(sqlite_store.get(run_id), FRAME) == run
        assert trackperm.log_predictions(run, FRAME) == run
        active = mlflow.start_run(experiment_id=sqlite_store.experiment("digits"), run_name="active")
        assert trackperm.log_predictions(active, FRAME) == f"mlflow:{active.info.run_id}"
        assert trackperm.log_predictions("mlflow:digits/active", FRAME) == f"mlflow:{active.info.run_id}"

    def test_a_finished_run_stays_as_it_is(self, sqlite_store: MlflowStore, run: str):
        experiments = MlflowExperiments(sqlite_store)
        *before, artifacts = experiments.snapshot(run.removeprefix("mlflow:"))
        trackperm.log_predictions(run, FRAME)
        *after, _ = experiments.snapshot(run.removeprefix("mlflow:"))
        assert len(after[1]["tags"].pop("trackperm.predictions")) == 16
        assert after == before
        assert artifacts == {}
        assert list(sqlite_store.artifacts(run.removeprefix("mlflow:"))) == ["predictions.parquet"]

    @pytest.mark.slow
    def test_the_store_that_mlflow_itself_chooses_is_found(self, tmp_path: Path):
        with mlflow.start_run() as active:  # in the current folder, as no URI is set
            reference = trackperm.log_predictions(active, FRAME)
        uri = mlflow.get_tracking_uri()
        assert trackperm.compare(FRAME, reference, tracking_uri=uri).pvalue == 1

    def test_other_objects_than_runs_are_refused(self, sqlite_store: MlflowStore, run: str):
        experiment = sqlite_store.client.get_experiment(sqlite_store.experiment("digits"))
        with pytest.raises(InputTypeError, match="Experiment is not a run of MLflow"):
            trackperm.log_predictions(experiment, FRAME)
        with pytest.raises(InputError, match="has no run with id"):
            trackperm.log_predictions(f"mlflow:{'0' * 32}", FRAME)
        with pytest.raises(InputError, match=r"is not a run of a tracker[\s\S]*mlflow:0a1b"):
            trackperm.log_predictions("0a1b", FRAME)

    def test_what_is_not_kept_is_an_error(self, run: str, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(mlflow.MlflowClient, "log_artifact", lambda self, run_id, file: None)
        with pytest.raises(TrackerError, match=r"failed while logging `predictions\.parquet`"):
            trackperm.log_predictions(run, FRAME)


class TestWandbRuns:
    def test_is_one_version_of_one_artifact_of_the_run(self, standin: Standin):
        with logged_run("log-predictions", standin=standin, run_id="eval run 1") as run:
            for _ in range(2):
                assert trackperm.log_predictions(run, FRAME) == "wandb:team/log-predictions/eval run 1"
        logged = standin.logged("team/log-predictions/eval run 1")
        assert [(name, found.kind, found.version) for name, found in logged.items()] == [
            ("predictions-eval-run-1", "predictions", 0)
        ]
        assert standin.state.entries(logged["predictions-eval-run-1"]).keys() == {"predictions.parquet"}

    def test_is_refused_by_what_takes_none(self, standin: Standin):
        project = WandbProjects(standin).container("log-predictions")
        path = WandbProjects(standin).run(project, "forest")
        for other in (f"wandb:{path}", wandb.Api().run(path)):
            with pytest.raises(InputTypeError, match="is not an open run of W&B"):
                trackperm.log_predictions(other, FRAME)
        disabled = wandb.init(mode="disabled")
        with pytest.raises(InputError, match="W&B is disabled"):
            trackperm.log_predictions(disabled, FRAME)
        disabled.finish()
        assert not standin.logged(path)

    def test_does_not_add_to_an_artifact_of_that_name(self, standin: Standin, tmp_path: Path):
        (tmp_path / "notes.txt").write_text("mine")
        with logged_run("log-predictions", standin=standin) as run:
            made = wandb.Artifact(f"predictions-{run.id}", "notes")
            made.add_file(str(tmp_path / "notes.txt"))
            run.log_artifact(made).wait()
            with pytest.raises(InputError, match="holds other predictions"):
                trackperm.log_predictions(run, FRAME)

    def test_is_refused_by_a_finished_run(self, tmp_path: Path):
        with logged_run("digits", folder=tmp_path) as run:
            pass
        with pytest.raises(TrackerError, match=r"logging `predictions.parquet` to run .*is finished"):
            trackperm.log_predictions(run, FRAME)

    def test_what_is_not_kept_is_an_error(self, standin: Standin, monkeypatch: pytest.MonkeyPatch):
        with logged_run("log-predictions", standin=standin) as run:
            standin.fail("PUT /blobs", [403] * 20)
            with pytest.raises(TrackerError, match=r"logging `predictions.parquet` to run `wandb:team/log-"):
                trackperm.log_predictions(run, FRAME)
            standin.mend()

    @pytest.mark.extended
    def test_offline_nobody_need_be_logged_in(self, tmp_path: Path):
        """As the README has it: three offline runs, by somebody whom no server knows."""
        program = """
import polars as pl
import trackperm, wandb
references = []
for name, prediction in (("first", "b"), ("second", "a")):
    frame = pl.DataFrame({"id": range(9), "prediction": [prediction] * 9, "label": ["a"] * 9})
    with wandb.init(project="pets", name=name, mode="offline") as run:
        references.append(trackperm.log_predictions(run, frame))
comparison = trackperm.compare(*references)
assert not comparison.candidate_data.table.notes
print(references[1], comparison.pvalue, trackperm.log(comparison).created)
"""
        nobody = {"HOME": str(tmp_path), "NETRC": str(tmp_path / "netrc"), "WANDB_SILENT": "true"}
        result = run_process([sys.executable, "-c", program], cwd=tmp_path, env=nobody)
        assert result.returncode == 0, result.stderr
        *folder, pvalue, created = result.stdout.split()
        assert Path(" ".join(folder).removeprefix("wandb:")).parent == tmp_path / "wandb"
        assert (float(pvalue), created) == (2 * 0.5**9, "True")


class TestOtherTrackers:
    """An adapter of another package joins by its entry point; its runs are told by their library's name."""

    def test_are_found_by_the_library_of_the_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        (tmp_path / "sometracker").mkdir()
        (tmp_path / "sometracker" / "__init__.py").write_text(_LIBRARY)
        (tmp_path / "sometracker-1.0.dist-info").mkdir()
        (tmp_path / "sometracker-1.0.dist-info" / "METADATA").write_text("Name: sometracker\nVersion: 1.0\n")
        (tmp_path / "sometracker-1.0.dist-info" / "entry_points.txt").write_text(
            "[trackperm.trackers]\nsometracker = sometracker:Adapter\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        import sometracker

        class MyRun(sometracker.Run):
            """Of somebody's own module."""

        run = MyRun()
        assert trackperm.log_predictions(run, FRAME) == "sometracker:at-home"
        assert pl.read_parquet(run.logged["predictions.parquet"]).equals(FRAME)
        monkeypatch.delitem(sys.modules, "sometracker")

    @pytest.mark.parametrize(
        ("code", "needed"),
        [
            ("import folio_client", "the module `folio_client`, which it imports"),
            ("raise ImportError('broken')", "what it imports"),
        ],
    )
    def test_whose_library_is_missing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, needed: str
    ):
        (tmp_path / "folio_adapter.py").write_text(code)
        installed(tmp_path, "trackperm_folio", "[trackperm.trackers]\nfolio = folio_adapter:Adapter\n")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(MissingDependencyError, match=r"runs at `folio:` need") as caught:
            open_tracker("folio")
        assert caught.value.hint == f"the package `trackperm_folio` has this adapter; install {needed}."

    def test_of_no_library_are_refused(self):
        for run in (None, 3, SimpleNamespace(id="x")):
            with pytest.raises(InputTypeError, match=r"is not a run of mlflow or [\s\S]*wandb"):
                trackperm.log_predictions(run, FRAME)


_LIBRARY = """
from trackperm.trackers.references import RunReference

class Run:
    def __init__(self):
        self.logged = {}

class Adapter:
    @classmethod
    def of_run(cls, run, tracking_uri=None):
        return cls()

    def log_predictions(self, run, predictions):
        run.logged[predictions.file] = predictions.data
        return RunReference("sometracker", "at-home")
"""
