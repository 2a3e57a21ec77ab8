"""Folders that the real wandb wrote offline: every kind of table, files that are gone, rows that were cut."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import python
from support.wandb_offline_runs import COLUMNS, N_ROWS, OfflineRuns, rows

from trackperm.errors import SourceError
from trackperm.tables import read_examples, split_part
from trackperm.tables.registry import detect_format
from trackperm.tables.table import ExampleTable
from trackperm.tables.wandb.logged_tables import Likelihood, tables_of_artifact
from trackperm.tables.wandb.run_folder import RunFolder
from trackperm.tables.wandb.run_log import LoggedArtifact, ManifestEntry, RunLog


@pytest.fixture
def copied(tmp_path: Path, offline_runs: OfflineRuns) -> Path:
    """The folder of run ``cut``, copied from the machine that its staged files are on."""
    return shutil.copytree(offline_runs["cut"], tmp_path / "run")


def read(folder: Path, table: str | None = None) -> ExampleTable:
    return read_examples(folder, part=table)


def contents(table: ExampleTable) -> list[list[object]]:
    return [list(row) for row in table.frame.rows()]


@pytest.mark.sample(1)
@pytest.mark.parametrize("log", [False, True])
def test_the_one_table_of_a_run(offline_runs: OfflineRuns, log: bool):
    folder = offline_runs["forest"]  # has a chart's table as well
    table = read(folder / "run-forest.wandb" if log else folder)
    assert table.columns == COLUMNS
    assert contents(table) == rows(N_ROWS)


def test_wandb_is_not_imported(offline_runs: OfflineRuns):
    printed = python(f"""
import sys
from pathlib import Path
from trackperm.tables import read_examples
from trackperm.trackers.wandb.offline import find_offline_run, read_offline_run

print(len(read_examples(Path({str(offline_runs["forest"])!r}))))
print(len(read_offline_run(find_offline_run({str(offline_runs["forest"])!r}))))
print("wandb" in sys.modules, "google.protobuf" in sys.modules)
""")
    assert printed.split() == [str(N_ROWS), str(N_ROWS), "False", "False"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("by epoch", rows(5)),
        ("eval/dev set", rows(6)),
        ("nested.deep", rows(7)),
        ("increments", rows(12)),
        ("increments twice", rows(4)),
        ("then a page", rows(2)),
        ("mutable", rows(3)),
        ("final", rows(3)),
    ],
)
def test_every_kind_of_table(offline_runs: OfflineRuns, name: str, expected: list[list[object]]):
    path, part = split_part(f"{offline_runs['tables']}::{name}")
    table = read(path, part)
    assert contents(table) == expected
    again = (f"the last of 2 tables that were logged as `{name}`",)
    assert table.notes == (again if name in ("by epoch", "increments twice", "mutable") else ())


def test_values_stay_what_they_were(offline_runs: OfflineRuns):
    table = read(offline_runs["tables"], "typed")
    assert table.frame.to_dict(as_series=False) == {
        "id": [1, 2],
        "large": [2**60, 1],
        "correct": [True, False],
        "text": [None, "x"],
        "score": [0.5, None],
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("predictions/dev/p.csv", [["001", "a"], ["1", "b"]]),
        ("predictions/elsewhere.csv", [["001", "a"], ["1", "b"]]),
        ("predictions/shown.table.json", rows(3)),
        ("parts/all.partitioned-table.json", rows(5)),
        ("parts", rows(5)),
    ],
)
def test_files_of_artifacts(offline_runs: OfflineRuns, name: str, expected: list[list[object]]):
    assert contents(read(offline_runs["files"], name)) == expected


def test_the_last_version_of_the_only_artifact_that_is_not_a_model(offline_runs: OfflineRuns):
    table = read(offline_runs["one-file"])
    assert contents(table) == [["1", "1"]]
    assert table.notes == ("the last of 2 tables that were logged as `predictions/p.csv`",)


def test_a_system_in_a_table(offline_runs: OfflineRuns):
    folder = RunFolder.open(offline_runs["tables"], "run")
    assert folder.read("final::label", "", detect_format).frame["prediction"].to_list() == ["a"] * 3


def test_several_tables_are_listed_and_none_is_preferred(offline_runs: OfflineRuns):
    with pytest.raises(SourceError, match="9 tables that could hold its predictions") as caught:
        read(offline_runs["tables"])
    for line in ("by epoch  (5 rows)", "nested.deep  (7 rows)", "increments  (12 rows)", "final  (3 rows)"):
        assert line in caught.value.message
    assert caught.value.hint == f"choose one: `{offline_runs['tables']}::eval/dev set`."
    with pytest.raises(SourceError, match="5 tables") as caught:
        read(offline_runs["files"])
    assert "notes.json" not in caught.value.message


def test_the_log_of_a_harness_is_likelier_than_other_json():
    """Of Inspect's archives, whose names show what they are."""
    found = tables_of_artifact("logs/", ["a.eval", "b.json", "c.txt"], lambda _: None, lambda *_: [])
    assert {table.name: table.likelihood for table in found} == {
        "logs/a.eval": Likelihood.TABLE,
        "logs/b.json": Likelihood.PERHAPS,
    }


@pytest.mark.parametrize(
    ("run_id", "name", "message"),
    [
        ("tables", "by eboch", r"no table `by eboch`[\s\S]*Did you mean `by epoch`"),
        ("tables", "joined", "no table `joined`"),
        ("files", "predictions", r"has 5 files that could be meant[\s\S]*`predictions/dev/p.csv`"),
        ("files", "predictions/far.csv", "is a reference to `hdfs://bucket/p.csv`"),
        ("only-metrics", None, r"no table that could hold per-example predictions \(no tables at all\)"),
        ("only-metrics", "p", r"no table `p`[\s\S]*log_artifact"),
    ],
)
def test_what_cannot_be_chosen(offline_runs: OfflineRuns, run_id: str, name: str | None, message: str):
    with pytest.raises(SourceError, match=message):
        read(offline_runs[run_id], name)


class TestNoRowIsLostUnnoticed:
    @pytest.mark.parametrize(("name", "n"), [("all", 10), ("shown in part", 15)])
    def test_the_cut_copy_for_pages_is_not_read(self, offline_runs: OfflineRuns, name: str, n: int):
        assert contents(read(offline_runs["cut"], name)) == rows(n)

    @pytest.mark.parametrize(("name", "kept", "noted"), [("cut", 20, 25), ("stale", 1, 2)])
    def test_tables_that_wandb_cut_are_refused(
        self, offline_runs: OfflineRuns, name: str, kept: int, noted: int
    ):
        with pytest.raises(
            SourceError, match=f"W&B stored {kept} of the {noted} rows of table `{name}`"
        ) as caught:
            read(offline_runs["cut"], name)
        assert "add_file('predictions.parquet')" in str(caught.value.hint)

    def test_the_copy_for_pages_replaces_a_lost_file_if_it_is_whole(
        self, offline_runs: OfflineRuns, copied: Path, monkeypatch: pytest.MonkeyPatch
    ):
        lost = self.lose(monkeypatch)
        assert contents(read(copied, "all")) == rows(10)
        with pytest.raises(SourceError, match="W&B stored 10 of the 15 rows"):
            read(copied, "shown in part")
        (shown,) = (copied / "files/media/table").glob("all_*")
        shown.write_text(json.dumps({"columns": COLUMNS, "data": rows(10, 5)}))
        with pytest.raises(SourceError, match=r"is not at `/gone[\s\S]*copy `WANDB_DATA_DIR`"):
            read(copied, "all")
        assert lost

    @staticmethod
    def lose(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
        """Let the log say of every staged file that it lies where nothing is."""
        from trackperm.tables.wandb import run_log

        lost: list[Path] = []
        genuine = run_log._entry

        def moved(data: bytes) -> ManifestEntry:
            entry = genuine(data)
            lost.append(Path(entry.local_path))
            return ManifestEntry(
                entry.path, entry.digest, entry.size, entry.ref, f"/gone/{Path(entry.local_path).name}"
            )

        monkeypatch.setattr(run_log, "_entry", moved)
        return lost

    def test_staged_files_are_found_where_they_were_copied_to(
        self, offline_runs: OfflineRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        self.lose(monkeypatch)
        with pytest.raises(SourceError, match=r"is not at `/gone[\s\S]*copy `WANDB_DATA_DIR`"):
            read(offline_runs["one-file"])
        shutil.copytree(offline_runs.staging, tmp_path / "artifacts/staging")
        monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path))
        assert contents(read(offline_runs["one-file"])) == [["1", "1"]]

    def test_staged_files_that_were_changed_are_refused(
        self, offline_runs: OfflineRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        self.lose(monkeypatch)
        shutil.copytree(offline_runs.staging, tmp_path / "artifacts/staging")
        for file in (tmp_path / "artifacts/staging").iterdir():
            file.write_text("id,prediction\n1,2\n")
        monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path))
        with pytest.raises(SourceError, match="was changed at"):
            read(offline_runs["one-file"])

    @pytest.mark.slow
    def test_the_limits_are_wandbs_own(self, tmp_path: Path):
        """250,000 rows: cut as a table, whole as a Parquet file."""
        python(
            """
import os
for name in ("DATA", "CACHE", "CONFIG"):
    os.environ[f"WANDB_{name}_DIR"] = os.path.abspath(name)
import polars as pl
import wandb

n = 250_000
rows = [[i, "a"] for i in range(n)]
with wandb.init(mode="offline", dir=".", id="large") as run:
    run.log({"table": wandb.Table(columns=["id", "prediction"], data=rows)})
    pl.DataFrame({"id": range(n), "prediction": ["a"] * n}).write_parquet("p.parquet")
    artifact = wandb.Artifact("predictions", "predictions")
    artifact.add_file("p.parquet")
    run.log_artifact(artifact)
""",
            cwd=tmp_path,
        )
        (folder,) = (tmp_path / "wandb").glob("offline-run-*")
        with pytest.raises(SourceError, match="W&B stored 200,000 of the 250,000 rows"):
            read(folder, "table")
        assert len(read(folder, "predictions")) == 250_000


class TestRunsThatDidNotEnd:
    def test_what_is_there_is_read(self, offline_runs: OfflineRuns, tmp_path: Path):
        content = (offline_runs["forest"] / "run-forest.wandb").read_bytes()
        log = tmp_path / "run-forest.wandb"
        log.write_bytes(content[: content.rindex(b"matrix")])
        table = read(tmp_path)
        assert (contents(table), table.notes) == (rows(N_ROWS), ("the run has not ended",))

    def test_failures_are_noted(self, offline_runs: OfflineRuns):
        run = RunFolder.open(offline_runs["forest"], "run")
        run.log.exit_code = 137
        assert run.read(None, "", detect_format).notes == ("the run failed, with exit code 137",)

    def test_without_a_table_it_is_said(self, offline_runs: OfflineRuns, tmp_path: Path):
        content = (offline_runs["forest"] / "run-forest.wandb").read_bytes()
        log = tmp_path / "run-forest.wandb"
        log.write_bytes(content[: content.index(b"run-forest-predictions")])
        with pytest.raises(SourceError, match="has not ended, has no table"):
            read(tmp_path)
        log.write_bytes(content[:7])  # what a run leaves that is killed in its first seconds
        with pytest.raises(SourceError, match=r"log of `.*` is empty[\s\S]*killed early"):
            read(tmp_path)


def test_folders_with_several_logs(offline_runs: OfflineRuns, tmp_path: Path):
    for run_id in ("forest", "logistic"):
        shutil.copy(offline_runs[run_id] / f"run-{run_id}.wandb", tmp_path)
    with pytest.raises(SourceError, match=r"2 logs of W&B runs[\s\S]*`run-forest.wandb`"):
        read(tmp_path)


def test_entries_of_artifacts_with_very_many_files(offline_runs: OfflineRuns, tmp_path: Path):
    file = tmp_path / "p.csv"
    file.write_text("id,prediction\n1,a\n")
    entry = {"path": "p.csv", "digest": "", "local_path": str(file)}
    manifest = tmp_path / "m.jl.gz"
    manifest.write_bytes(gzip.compress(json.dumps(entry).encode()))
    run = RunFolder.open(offline_runs["only-metrics"], "run")
    artifact = LoggedArtifact("many", "predictions", "d", "c", False, {}, str(manifest))
    run.log.artifacts.append(artifact)
    assert [table.name for table in run.tables()] == ["many/p.csv"]
    manifest.write_bytes(b"no gzip")
    assert run.tables() == []


def test_datasets_that_a_run_used_are_facts(offline_runs: OfflineRuns):
    run = RunFolder.open(offline_runs["forest"], "run")
    for digest in ("7ac4", "00ff"):
        entries = {"data.csv": ManifestEntry("data.csv")}
        run.log.artifacts.append(LoggedArtifact("data", "dataset", digest, "c", True, entries))
    assert run.read(None, "", detect_format).facts == {"dataset artifact": "00ff, 7ac4"}


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_manifest_that_is_not_a_file_is_not_read(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "manifest")
    artifact = LoggedArtifact("a", "dataset", "d", "c", False, {}, str(tmp_path / "manifest"))
    assert RunFolder(tmp_path, RunLog(run_id="x", artifacts=[artifact]), "run").tables() == []


def test_a_manifest_that_is_nested_deeply_has_no_entries(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest"
    manifest.write_bytes(gzip.compress(b"[" * 100_000))
    artifact = LoggedArtifact("a", "dataset", "d", "c", False, {}, str(manifest))
    assert RunFolder(tmp_path, RunLog(run_id="x", artifacts=[artifact]), "run").tables() == []


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("file://[", r"^`file://\[` is not the address of a file: Invalid IPv6 URL"),
        ("s3://user:hidden@bucket/a.csv", r"is a reference to `s3://bucket/a.csv`"),
        ("https://a/b.csv?X-Amz-Signature=hidden", r"is a reference to `https://a/b.csv\?X-Amz-Signature=…`"),
    ],
)
def test_addresses_of_references(address: str, said: str, tmp_path: Path) -> None:
    artifact = LoggedArtifact("a", "dataset", "d", "c", False, {"a.csv": ManifestEntry("a.csv", ref=address)})
    with pytest.raises(SourceError, match=said) as caught:
        RunFolder(tmp_path, RunLog(run_id="x"), "run").staged(artifact, "a.csv")
    assert "hidden" not in str(caught.value)
