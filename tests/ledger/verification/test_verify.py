"""``verify`` in Python and on the command line, for folders, files and runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.changed_evidence import changed
from support.comparisons import accuracy, answers
from support.mlflow_stores import MlflowStore
from typer.testing import CliRunner

import trackperm
from trackperm.cli import commands
from trackperm.errors import InputError, InputTypeError
from trackperm.ledger.comparison_publication import evidence
from trackperm.trackers.publication import Published
from trackperm.trackers.references import TrackedRun


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return evidence(accuracy(20, 4, both=10, neither=3))


def saved(files: dict[str, bytes], folder: Path) -> Path:
    for path, content in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


class TestInPython:
    def test_a_folder(self, files: dict[str, bytes], tmp_path: Path):
        folder = saved(files, tmp_path)
        found = trackperm.verify(folder)
        assert found.matches
        assert trackperm.verify(str(folder / "trackperm")) == found
        assert list(found.lines())[-1] == f"all {len(found.checks)} match"

    def test_labels_and_artifacts_are_for_runs(self, files: dict[str, bytes], tmp_path: Path):
        for options in ({"labels": "gold.csv"}, {"artifact": "predictions.json"}):
            with pytest.raises(InputError, match="need `from_runs=True`"):
                trackperm.verify(saved(files, tmp_path), **options)

    def test_something_else_is_refused(self):
        with pytest.raises(InputTypeError, match="'int' is not a run; expected text"):
            trackperm.verify(3)

    @pytest.mark.tracker
    def test_a_run_as_it_was_logged(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        """By reference and as an object, with predictions in artifacts of two names."""
        store = MlflowStore.local(tmp_path)
        right = {"old": [True] * 6 + [False] * 8, "new": [True] * 14}
        for name, each in right.items():
            run = store.run_with_predictions("digits", name, answers(each).to_dict(as_series=False))
            store.log_columns(run, answers(each).to_dict(as_series=False), f"{name}.parquet")
        comparison = trackperm.compare(
            *(f"mlflow:digits/{name}" for name in right),
            artifact=("old.parquet", "new.parquet"),
            tracking_uri=store.uri,
        )
        run_of = trackperm.log(comparison).run
        assert isinstance(run_of, TrackedRun)
        options: dict[str, Any] = {"tracking_uri": store.uri}
        found = trackperm.verify(run_of, **options)
        assert found.matches
        assert trackperm.verify(str(run_of.reference), **options) == found
        assert trackperm.verify(f"mlflow:digits/{run_of.name}", **options) == found
        with pytest.raises(InputError, match="experiment `digits` has no comparison called `new`"):
            trackperm.verify("mlflow:digits/new", **options)
        again = trackperm.verify(run_of, from_runs=True, artifact=("old.parquet", "new.parquet"), **options)
        assert again.matches
        assert len(again.checks) > len(found.checks)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/other.db")
        in_its_store = trackperm.verify(run_of, from_runs=True, artifact=("old.parquet", "new.parquet"))
        assert in_its_store == again
        with pytest.raises(InputError, match=r"has no artifact `new\.parquet`"):
            trackperm.verify(run_of, from_runs=True, artifact=("new.parquet", "old.parquet"), **options)
        wrong = replace(run_of, reference=comparison.candidate_run.reference)
        with pytest.raises(InputError):
            trackperm.verify(wrong, **options)

    @pytest.mark.tracker
    def test_a_logged_comparison_of_bounded_missing_predictions(self, tmp_path: Path):
        """Regression: its interval, of both cases, did not match that of the weaker one."""
        store = MlflowStore.local(tmp_path)
        for name, n in (("old", 20), ("new", 17)):
            store.run_with_predictions("digits", name, answers([True] * n).to_dict(as_series=False))
        runs = [f"mlflow:digits/{name}" for name in ("old", "new")]
        logged = trackperm.log(trackperm.compare(*runs, missing="bounds", tracking_uri=store.uri)).run
        assert isinstance(logged, TrackedRun)
        for from_runs in (False, True):
            assert trackperm.verify(logged, from_runs=from_runs, tracking_uri=store.uri).matches

    @pytest.mark.tracker
    def test_a_part_of_what_runs_logged(self, tmp_path: Path):
        """Regression: `mlflow:ID::a` was not found, nor counted as the run, nor verified without its path."""
        store = MlflowStore.local(tmp_path)
        columns = {"id": [*range(14)], "label": [1] * 14, "a": [1] * 6 + [0] * 8, "b": [1] * 14}
        runs = [f"mlflow:{store.run_with_predictions('digits', name, columns)}" for name in ("old", "new")]
        options = {"artifact": ("predictions.json::a", "predictions.json::b"), "tracking_uri": store.uri}
        logged = trackperm.log(trackperm.compare(*runs, "accuracy", **options))
        for run in runs:
            (found,) = trackperm.family(run, tracking_uri=store.uri)
            assert found.n_comparisons == 1
        assert trackperm.verify(logged.run, from_runs=True).matches
        swapped = trackperm.verify(logged.run, from_runs=True, artifact=options["artifact"][::-1])
        assert not swapped.matches

    @pytest.mark.tracker
    def test_runs_that_were_renamed(self, tmp_path: Path):
        """Regression: a harmless new name was a mismatch, also after the comparison was logged again."""
        store = MlflowStore.local(tmp_path)
        right = {"old": [True] * 6 + [False] * 8, "new": [True] * 14}
        runs = [
            store.run_with_predictions("digits", name, answers(each).to_dict(as_series=False))
            for name, each in right.items()
        ]

        def logged() -> Published:
            references = (f"mlflow:{run}" for run in runs)
            return trackperm.log(trackperm.compare(*references, tracking_uri=store.uri))

        first = logged()
        for run in runs:
            store.client.update_run(run, name=f"renamed {run[:4]}")
        assert trackperm.verify(first.run, from_runs=True).matches
        again = logged()
        assert (again.created, again.run) == (False, first.run)
        name = store.get(first.run.reference.locator).info.run_name
        assert name.startswith(f"renamed {runs[1][:4]} beats renamed {runs[0][:4]}")
        assert trackperm.verify(first.run, from_runs=True).matches


class TestWhatWasTakenAsLogged:
    """Notes on recomputed values and on values taken as logged."""

    OF_FAMILY = "the effect of the other test on the corrected p-value and its sign"

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for name, right in (("old", [True, False] * 6), ("new", [True] * 12)):
            answers(right).write_csv(tmp_path / f"{name}.csv")
        first, *_ = trackperm.compare(tmp_path / "old.csv", tmp_path / "new.csv", ["accuracy", "error_rate"])
        (tmp_path / "logged").mkdir()
        return saved(evidence(first), tmp_path / "logged")

    def test_from_the_counts(self, folder: Path):
        of_pairing, of_choice, of_family, of_rows = trackperm.verify(folder).notes
        assert of_pairing.startswith("taken as logged: names and digests of the runs, and how they")
        assert of_choice == "taken as logged: why the statistic and the method were chosen"
        assert of_family == f"taken as logged: {self.OF_FAMILY}"
        assert of_rows == "taken as logged: ids and columns of the discordant examples (`--from-runs`)"

    @pytest.mark.parametrize("without", [None, "count_table.parquet"])
    def test_from_the_runs(self, folder: Path, without: str | None):
        if without is not None:
            (folder / "trackperm" / without).unlink()
        found = trackperm.verify(folder, from_runs=True)
        assert found.matches
        recomputed, *logged = found.notes
        assert recomputed.startswith("recomputed from the predictions: all lines that end in `from the runs`")
        assert logged == [
            "taken as logged: names of the runs, spec and options",
            "taken as logged: notes on the pairing, and why the statistic and the method were chosen",
            f"taken as logged: {self.OF_FAMILY}",
        ]
        assert {f"{name}, from the runs" for name in ("baseline_digest", "by", "p-value")} <= {
            check.what for check in found.checks
        }


class TestCommand:
    def run(self, *arguments: str | Path) -> Any:
        return CliRunner().invoke(commands.app, ["verify", *map(str, arguments)])

    def test_files_that_are_read_are_not_written(self, tmp_path: Path):
        """Regression: runs and labels, which the command does not name, were replaced."""
        for name, right in (("old", [True, False] * 6), ("new", [True] * 12)):
            answers(right).drop("label").write_json(tmp_path / f"{name}.json")
        answers([True] * 12).select("id", "label").write_json(tmp_path / "gold.json")
        runs = tmp_path / "old.json", tmp_path / "new.json"
        found = trackperm.compare(*runs, "accuracy", labels=str(tmp_path / "gold.json"))
        (tmp_path / "logged").mkdir()
        folder = saved(evidence(found), tmp_path / "logged")
        for path in (*runs, tmp_path / "gold.json", folder / "trackperm" / "comparison.json"):
            before = path.read_bytes()
            refused = self.run(folder, "--from-runs", "-o", path)
            assert isinstance(refused.exception, InputError)
            assert "is a file that the verification reads" in refused.exception.message
            assert path.read_bytes() == before
        assert self.run(folder, "--from-runs", "-o", tmp_path / "found.json").exit_code == 0

    def test_a_mismatch_is_exit_code_4(self, files: dict[str, bytes], tmp_path: Path):
        folder = saved(changed(files, pvalue=0.04), tmp_path)
        result = self.run(folder)
        assert result.exit_code == 4
        (line,) = (line for line in result.stdout.splitlines() if line.startswith("MISMATCH"))
        assert "logged 0.04, found 0.0015" in line
        assert "1 of " in result.stdout.splitlines()[-1]
        result = self.run(folder, "--format", "json")
        assert (result.exit_code, json.loads(result.stdout)["matches"]) == (4, False)
        written = self.run(folder, "-o", tmp_path / "found.json", "-o", tmp_path / "found.txt")
        assert written.exit_code == 4
        assert (tmp_path / "found.json").read_text() == result.stdout
        assert (tmp_path / "found.txt").read_text() == written.stdout

    def test_files_are_read_again(self, tmp_path: Path):
        for name, right in (("old", [True, False] * 6), ("new", [True] * 12)):
            answers(right).write_csv(tmp_path / f"{name}.csv")
        comparison = trackperm.compare(tmp_path / "old.csv", tmp_path / "new.csv")
        (tmp_path / "logged").mkdir()
        folder = saved(evidence(comparison), tmp_path / "logged")
        assert self.run(folder, "--from-runs").exit_code == 0
        answers([False] * 12).write_csv(tmp_path / "old.csv")
        assert self.run(folder).exit_code == 0
        assert self.run(folder, "--from-runs").exit_code == 4

    def test_folders_without_a_comparison_are_refused(self, tmp_path: Path):
        with pytest.raises(InputError, match="names no tracker"):
            raise self.run(tmp_path).exception
        with pytest.raises(InputError, match="from_runs=True"):
            raise self.run(tmp_path, "--labels", "gold.csv").exception
