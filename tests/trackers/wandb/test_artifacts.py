"""Which table of an online run is read, with the real SDK and a stand-in for the server."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl
import pytest
import wandb
from support.wandb_offline_runs import COLUMNS, log_tables, rows, table
from support.wandb_projects import logged_run
from support.wandb_standin import Standin

from trackperm.errors import InputError, SourceError, TrackerError
from trackperm.tables.table import ExampleTable
from trackperm.trackers.references import RunReference, TrackedRun
from trackperm.trackers.wandb.artifacts import find_artifact, is_artifact, read_run
from trackperm.trackers.wandb.store import Store

pytestmark = [pytest.mark.tracker, pytest.mark.contract, pytest.mark.extended]

Log = Callable[[Any], None]


class Project:
    """A project of its own on the stand-in, whose runs are logged and read back."""

    def __init__(self, standin: Standin) -> None:
        self.standin = standin
        self.name = f"digits-{uuid4().hex[:8]}"

    @property
    def store(self) -> Store:
        """A connection anew: wandb remembers what one has read."""
        return Store(self.standin.url)

    def log(self, log: Log, name: str = "forest") -> TrackedRun:
        with logged_run(self.name, name, standin=self.standin) as run:
            log(run)
        return self.store.tracked(self.store.fresh_api().run(f"team/{self.name}/{run.id}"))

    def read(self, run: TrackedRun, choice: str | None = None) -> ExampleTable:
        return read_run(self.store, run, choice)[0]

    def used(self, run: TrackedRun, choice: str | None = None) -> tuple[str, ...]:
        return read_run(self.store, run, choice)[1]

    def summary(self, run: TrackedRun) -> dict[str, Any]:
        return self.standin.run(run.reference.locator).read_summary()

    def change_summary(self, run: TrackedRun, **entries: Any) -> None:
        record = self.standin.run(run.reference.locator)
        record.summary = json.dumps({**record.read_summary(), **entries})


@pytest.fixture
def project(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("WANDB_BASE_URL", standin.url)  # wandb 0.26 asks the default server as well
    return Project(standin)


def contents(read: ExampleTable) -> list[list[object]]:
    return [list(row) for row in read.frame.rows()]


def log_file(
    run: Any, text: str, name: str = "p.csv", artifact: str = "predictions", type_: str = "result"
) -> None:
    file = Path(f"{uuid4().hex}{Path(name).suffix}")
    file.write_text(text)
    made = wandb.Artifact(artifact, type_)
    made.add_file(str(file), name=name)
    run.log_artifact(made).wait()


def test_the_one_table_of_a_run(project: Project):
    def log(run: Any) -> None:
        run.log({"predictions": table(7)})
        run.log({"chart": wandb.plot.confusion_matrix(y_true=[0, 1], preds=[0, 1], class_names=["a", "b"])})
        log_file(run, "weight\n1\n", artifact="weights", type_="model")

    run = project.log(log)
    read = project.read(run)
    assert (contents(read), read.origin, read.notes) == (rows(7), str(run.reference), ())
    assert project.used(run) == (f"team/{project.name}/run-{run.reference.locator[-8:]}-predictions:v0",)
    assert project.read(run, "chart_table").columns == ["Actual", "Predicted", "nPredictions"]
    assert project.read(run, "predictions::label").frame["prediction"].to_list() == ["a"] * 7


def test_parts_outside_all_folders_of_an_artifact(project: Project):
    def log(run: Any) -> None:
        made = wandb.Artifact("predictions", "result")
        for number in range(2):
            file = Path(f"part-{number}.parquet")
            pl.DataFrame({"id": [number], "prediction": ["a"]}).write_parquet(file)
            made.add_file(str(file))
        run.log_artifact(made).wait()

    run = project.log(log)
    artifact = find_artifact(project.store, f"team/{project.name}/predictions:v0")
    expected = [[0, "a"], [1, "a"]]
    for choice in (None, "predictions", "predictions/."):
        assert contents(project.read(run, choice)) == expected
    assert project.used(run) == (f"team/{project.name}/predictions:v0",)
    assert contents(project.read(artifact)) == contents(project.read(artifact, ".")) == expected
    with pytest.raises(SourceError, match=r"one of 2 parts of a table\n\nHint: `\.` names the whole"):
        project.read(artifact, "part-1.parquet")


def test_every_kind_of_table(project: Project):
    run = project.log(log_tables)
    for name, expected in [
        ("by epoch", rows(5)),
        ("eval/dev set", rows(6)),
        ("nested.deep", rows(7)),
        ("increments", rows(12)),
        ("mutable", rows(3)),
    ]:
        read = project.read(run, name)
        assert contents(read) == expected
        again = (f"the last of 2 tables that were logged as `{name}`",)
        assert read.notes == (again if name in ("by epoch", "mutable") else ())
    assert len(project.used(run, "increments")) == 3
    with pytest.raises(SourceError, match=r"6 tables[\s\S]*  increments  \(12 rows\)") as caught:
        project.read(run)
    assert caught.value.hint == "choose one: `--artifact 'eval/dev set'`."
    with pytest.raises(SourceError, match=r"no table `joined`[\s\S]*it has `by epoch`"):
        project.read(run, "joined")


def test_keys_with_the_same_ending_are_not_mixed_up(project: Project):
    def log(run: Any) -> None:
        run.log({"dev": {"preds": table(4)}})
        run.log({"test": {"preds": table(4, 50)}})
        wandb.Table.MAX_ROWS = 10
        run.log({"large": {"preds": table(12)}})

    most = wandb.Table.MAX_ROWS
    try:
        run = project.log(log)
    finally:
        wandb.Table.MAX_ROWS = most
    assert contents(project.read(run, "dev.preds")) == rows(4)
    assert contents(project.read(run, "test.preds")) == rows(4, 50)
    with pytest.raises(SourceError, match="W&B stored 10 of the 12 rows"):
        project.read(run, "large.preds")
    record = project.standin.run(run.reference.locator)
    record.files = dict.fromkeys(record.files, b"{}")
    with pytest.raises(SourceError, match=r"table `dev.preds` .*may not be[\s\S]*keys with the same ending"):
        project.read(run, "dev.preds")


def test_a_server_that_writes_its_own_ids_is_understood(project: Project):
    """Of three versions of a table, the second is the one that the summary refers to."""
    run = project.log(lambda run: [run.log({"preds": table(n)}) for n in (3, 4, 5)])
    assert len(project.read(run)) == 5
    entry = project.summary(run)["preds"]
    found = project.store.fresh_api().run(run.reference.locator).logged_artifacts()
    (second,) = [artifact for artifact in found if artifact.version == "v1"]
    reference = f"wandb-artifact://{base64.b64decode(second.id).hex()}/preds.table.json"
    project.change_summary(run, preds={**entry, "artifact_path": reference, "nrows": 4})
    assert contents(project.read(run)) == rows(4)


def test_a_number_of_rows_of_another_type_says_nothing(project: Project):
    run = project.log(lambda run: [run.log({"preds": table(2), "more": table(2)})])
    entries = project.summary(run)
    project.change_summary(run, preds={**entries["preds"], "nrows": {"x": 2}})
    assert contents(project.read(run, "preds")) == rows(2)
    with pytest.raises(SourceError, match=r"more  \(2 rows\)\n.*preds(\n|$)"):
        project.read(run)


def test_a_table_that_was_logged_again_unchanged_is_the_last(project: Project):
    """The server keeps one version of equal contents, and its alias tells that it is the newest."""
    run = project.log(lambda run: [run.log({"preds": table(4, start)}) for start in (0, 10, 0)])
    assert contents(project.read(run)) == rows(4)


def test_a_table_that_the_summary_does_not_hold(project: Project):
    run = project.log(lambda run: run.log({"preds": table(4)}))
    project.standin.run(run.reference.locator).summary = "{}"
    assert contents(project.read(run)) == contents(project.read(run, "preds")) == rows(4)


class TestFilesOfArtifacts:
    def test_are_read_in_any_format(self, project: Project):
        def log(run: Any) -> None:
            log_file(run, "id,prediction\n001,a\n1,b\n", "dev/p.csv", "csv")
            log_file(run, '{"id": "001", "prediction": "a"}\n', "p.jsonl", "jsonl")
            log_file(run, '[{"id": 1}]', "p.json", "json")

        run = project.log(log)
        assert contents(project.read(run, "csv/dev/p.csv")) == [["001", "a"], ["1", "b"]]
        assert contents(project.read(run, "csv")) == [["001", "a"], ["1", "b"]]
        assert contents(project.read(run, "jsonl")) == [["001", "a"]]
        assert contents(project.read(run, "json")) == [[1]]
        with pytest.raises(SourceError, match="2 tables"):
            project.read(run)

    def test_of_several_versions_the_run_s_last_is_read_and_any_can_be_named(self, project: Project):
        runs = [
            project.log(lambda run, name=name: [log_file(run, f"id\n{name}{i}\n") for i in range(2)])
            for name in ("a", "b")
        ]
        read = project.read(runs[0])
        assert contents(read) == [["a1"]]
        assert read.notes == ("the last of 2 tables that were logged as `predictions/p.csv`",)
        assert project.used(runs[0]) == (f"team/{project.name}/predictions:v1",)
        assert contents(project.read(runs[1])) == [["b1"]]
        assert contents(project.read(runs[1], "predictions:v2/p.csv")) == [["b0"]]
        assert contents(project.read(runs[1], "predictions:v2")) == [["b0"]]
        with pytest.raises(SourceError, match="no table `predictions:v0"):  # another run's
            project.read(runs[1], "predictions:v0/p.csv")

    def test_partitioned_tables_are_joined(self, project: Project):
        def log(run: Any) -> None:
            made = wandb.Artifact("parts", "dataset")
            made.add(table(2), "shards/0")
            made.add(table(3, 2), "shards/1")
            made.add(wandb.data_types.PartitionedTable("shards"), "all")
            run.log_artifact(made).wait()

        assert contents(project.read(project.log(log))) == rows(5)

    def test_nothing_stays_behind(self, project: Project, tmp_path: Path):
        content = b"id,prediction\n1,of nobody else\n"

        def copies() -> list[Path]:
            files = [path for path in tmp_path.rglob("*") if path.is_file()]
            return [path for path in files if content in path.read_bytes()]

        run = project.log(lambda run: log_file(run, content.decode()))
        for copy in copies():
            copy.unlink()
        assert len(project.read(run)) == 1
        assert copies() == []

    def test_references_are_not_followed(self, project: Project):
        def log(run: Any) -> None:
            made = wandb.Artifact("far", "predictions")
            made.add_reference("hdfs://bucket/p.csv", name="p.csv", checksum=False)
            run.log_artifact(made).wait()

        with pytest.raises(SourceError, match=r"is a reference to `hdfs://bucket/p\.csv`"):
            project.read(project.log(log))

    def test_inputs_of_a_run_are_facts_and_not_predictions(self, project: Project):
        def log(run: Any) -> None:
            Path("d.csv").write_text("id,label\n1,a\n")
            data = wandb.Artifact("data", "dataset")
            data.add_file("d.csv")
            run.use_artifact(data)
            log_file(run, "id,prediction\n1,a\n")

        first, second = (project.read(project.log(log)) for _ in range(2))
        assert first.columns == ["id", "prediction"]
        assert len(first.facts["dataset artifact"]) == 32
        in_place_of_the_run = find_artifact(project.store, f"team/{project.name}/predictions:v0")
        assert first.facts == second.facts == project.read(in_place_of_the_run).facts


class TestArtifactsInPlaceOfRuns:
    def test_they_are_found_with_the_version_that_they_have_now(self, project: Project):
        run = project.log(lambda run: [log_file(run, f"id\n{i}\n") for i in range(2)])
        locator = f"team/{project.name}/predictions:latest"
        assert is_artifact(locator)
        assert not is_artifact(run.reference.locator)
        found = find_artifact(project.store, locator)
        assert found.reference == RunReference("wandb", f"team/{project.name}/predictions:v1")
        assert (found.name, found.container) == ("predictions:v1", f"team/{project.name}")
        assert contents(project.read(found)) == contents(project.read(found, "p.csv")) == [["1"]]
        first = find_artifact(project.store, f"team/{project.name}/predictions:v0")
        assert contents(project.read(first)) == [["0"]]
        assert project.used(first) == (first.reference.locator,)

    def test_what_is_not_there(self, project: Project):
        project.log(lambda run: log_file(run, "hello", "notes.txt"))
        with pytest.raises(InputError, match=r"no artifact `team/.*/predictions:v7`"):
            find_artifact(project.store, f"team/{project.name}/predictions:v7")
        found = find_artifact(project.store, f"team/{project.name}/predictions:v0")
        with pytest.raises(SourceError, match=r"no table that could hold.*only `notes.txt`"):
            project.read(found)


class TestNoRowIsLostUnnoticed:
    def test_tables_that_wandb_cut_are_refused(self, project: Project, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(wandb.Table, "MAX_ROWS", 10)
        monkeypatch.setattr(wandb.Table, "MAX_ARTIFACT_ROWS", 20)
        run = project.log(lambda run: run.log({"shown": table(15), "cut": table(25)}))
        assert contents(project.read(run, "shown")) == rows(15)
        with pytest.raises(SourceError, match=r"W&B stored 20 of the 25 rows[\s\S]*add_file"):
            project.read(run, "cut")

    def test_increments_that_are_missing(self, project: Project):
        def log(run: Any) -> None:
            growing = wandb.Table(columns=COLUMNS, data=rows(2), log_mode="INCREMENTAL")
            run.log({"increments": growing})
            growing.add_data(*rows(1, 2)[0])
            run.log({"increments": growing})

        run = project.log(log)
        entry = project.summary(run)["increments"]
        project.change_summary(run, increments={**entry, "previous_increments_paths": []})
        with pytest.raises(SourceError, match="W&B stored 1 of the 3 rows"):
            project.read(run)
        lost = ["wandb-client-artifact://x/gone.inc.table.json"]
        project.change_summary(run, increments={**entry, "previous_increments_paths": lost})
        with pytest.raises(SourceError, match="lacks some of its 2 parts"):
            project.read(run)

    def test_files_that_come_short(self, project: Project):
        run = project.log(lambda run: log_file(run, "id\n1\n2\n"))
        blobs = project.standin.state.blobs
        (name,) = [name for name, content in blobs.items() if content == b"id\n1\n2\n"]
        blobs[name] = b"id\n1\n"
        with pytest.raises(TrackerError, match="arrived with 5 of its 7 bytes"):
            project.read(run)

    def test_failures_name_what_was_done(self, project: Project):
        run = project.log(lambda run: log_file(run, "id\n1\n"))
        project.standin.fail("GET /artifactsV2", itertools.repeat(403))
        with pytest.raises(TrackerError, match=r"downloading `p.csv` of artifact `predictions:v0`"):
            project.read(run)


def test_failures_are_noted(project: Project):
    run = project.log(lambda run: run.log({"preds": table(4)}))
    project.standin.run(run.reference.locator).state = "crashed"
    assert project.read(run).notes == ("the run crashed",)


@pytest.mark.parametrize("log", [lambda run: run.log({"loss": 1.0}), lambda run: log_file(run, "x", "x.bin")])
def test_runs_without_predictions(project: Project, log: Log):
    run = project.log(log)
    with pytest.raises(SourceError, match=r"\(forest\) has no table[\s\S]*`id`, `prediction` and `label`"):
        project.read(run)
