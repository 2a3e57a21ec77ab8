"""Leaderboards on the command line and in every format; names cannot act as markup."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from support.command_line import invoke
from support.comparisons import answers
from support.mlflow_stores import MlflowStore
from typer.testing import CliRunner

import trackperm
from trackperm.cli import commands
from trackperm.errors import InputError

RIGHT = {"first": 60, "second": 58, "third": 20}
NAMES = ("text", "markdown", "html", "latex", "csv", "json")


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """Three runs on 80 examples, two of them close."""
    paths = []
    for name, n in RIGHT.items():
        paths.append(tmp_path / f"{name}.csv")
        answers([i < n for i in range(80)]).write_csv(paths[-1])
    return list(map(str, paths))


def printed(*arguments: str) -> str:
    return invoke("leaderboard", *arguments)


def test_the_ranking(runs: list[str]) -> None:
    lines = printed(*runs).splitlines()
    assert lines[0] == "1 of the other 2 runs cannot be told from the best"
    assert lines[1] == "accuracy: 3 runs on 80 examples, all pairs, 3 comparisons"
    rows = [line.split() for line in lines[3:] if line.strip()[:1].isdigit()]
    assert [row[:2] for row in rows] == [["1", "first.csv"], ["2", "second.csv"], ["3", "third.csv"]]
    assert [row[-2:] for row in rows] == [["a", "1-2"], ["a", "1-2"], ["b", "3"]]
    assert rows[1][-5:-2] == ["≈", "undecided", "0.5"]
    assert rows[2][-5:-3] == ["▼", "worse"]


@pytest.mark.parametrize("format_", NAMES)
def test_every_format_has_the_same_facts(runs: list[str], format_: str) -> None:
    text = printed(*runs, "--format", format_)
    for name in RIGHT:
        assert f"{name}.csv" in text.replace("\\_", "_").replace("\\.", ".")
    assert "0.7500" in text or "0.75" in text


@pytest.mark.parametrize("format_", ["text", "markdown", "html", "latex"])
def test_the_direction_is_shown(runs: list[str], format_: str) -> None:
    said = "(lower is better): 3 runs on 80 examples"
    text = printed(*runs, "-s", "error_rate", "--format", format_)
    assert f"error_rate {said}" in text.replace("\\_", "_").lower()
    assert "lower is better" not in printed(*runs, "--format", format_)


def test_csv_and_json_are_read_back(runs: list[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(printed(*runs, "--format", "csv"))))
    assert len(rows) == 3
    found = json.loads(printed(*runs, "--format", "json"))
    assert [row["score"] for row in found["rows"]] == [0.75, 0.725, 0.25]
    alone = trackperm.compare(runs[1], runs[0])
    (pair,) = [pair for pair in found["pairs"] if abs(pair["difference"]) == pytest.approx(0.025)]
    assert pair["pvalue"] == alone.pvalue == 0.5


def test_files_are_written_in_the_format_of_their_names(runs: list[str], tmp_path: Path) -> None:
    files = [
        tmp_path / f"board{suffix}"
        for suffix in (".md", ".html", ".tex", ".csv", ".json", ".png", ".svg", ".txt")
    ]
    printed(*runs, *(part for file in files for part in ("-o", str(file))))
    contents = {file.suffix: file.read_bytes() for file in files}
    assert contents[".png"].startswith(b"\x89PNG")
    assert contents[".svg"].startswith(b"<svg ")
    assert b"\\toprule" in contents[".tex"]
    assert contents[".html"].startswith(b"<!DOCTYPE html>")
    assert b"default-src 'none'" in contents[".html"]
    with pytest.raises(InputError, match="is not a format of this command"):
        printed(*runs, "-o", str(tmp_path / "board.doc"))


def test_stars_are_optional(runs: list[str]) -> None:
    assert "***" not in printed(*runs)
    with_stars = printed(*runs, "--stars")
    assert "***" in with_stars
    assert (
        "\nstars: adjusted p * below 0.05, ** below 0.01, *** below 0.001; verdicts are at level 0.05\n"
        in with_stars
    )


def test_names_are_not_markup(tmp_path: Path) -> None:
    evil = ["<script>alert(1)</script>", "a|b *c* $d$ & 50% {e} #_"]
    board = trackperm.leaderboard(
        {name: answers([i < n for i in range(20)]) for name, n in zip(evil, (18, 3), strict=True)}
    )
    page = trackperm.report.render(board, "html").decode()
    assert "<script>alert" not in page
    table = trackperm.report.render(board, "markdown").decode()
    assert "|b" not in table.replace("\\|b", "")
    latex = trackperm.report.render(board, "latex").decode()
    assert r"\$d\$ \& 50\%" in latex


@pytest.fixture
def store(tmp_path: Path) -> MlflowStore:
    """An experiment with the three runs, and one without predictions."""
    store = MlflowStore.local(tmp_path)
    for name, n in RIGHT.items():
        frame = answers([i < n for i in range(80)])
        store.run_with_predictions("digits", name, frame.to_dict(as_series=False), artifact="p.parquet")
    store.run("digits", "without predictions")
    return store


@pytest.mark.extended
@pytest.mark.tracker
def test_all_runs_of_an_experiment(store: MlflowStore) -> None:
    text = printed("--experiment", "mlflow:digits", "--tracking-uri", store.uri)
    assert "accuracy: 3 runs on 80 examples" in text
    assert "without predictions" in text
    runs = store.client.search_runs([store.experiment("digits")])
    found = {run.info.run_name: run.info.run_id for run in runs}
    comparison = trackperm.compare(
        f"mlflow:{found['first']}", f"mlflow:{found['third']}", tracking_uri=store.uri
    )
    trackperm.log(comparison)
    assert printed("--experiment", "mlflow:digits", "--tracking-uri", store.uri) == text
    assert not store.comparisons("digits", "leaderboard")


@pytest.mark.extended
@pytest.mark.tracker
def test_it_is_logged_on_request(store: MlflowStore) -> None:
    def said(*arguments: str, command: str = "leaderboard") -> tuple[str, str]:
        result = CliRunner().invoke(commands.app, [command, *arguments, "--tracking-uri", store.uri])
        if result.exception is not None:
            raise result.exception
        return result.stdout, result.stderr

    store.describe("digits", "ours")
    experiment = ("--experiment", "mlflow:digits")
    text, told = said(*experiment, "--log")
    (run,) = store.comparisons("digits", "leaderboard")
    places = "logged comparisons 1 to 3 on this test set, one for each pair\n"
    assert told == f"logged: mlflow:{run.info.run_id}\n{places}"
    again = said(*experiment, "--log")
    assert again == (text, f"already logged, updated: mlflow:{run.info.run_id}\n{places}")
    assert len(store.comparisons("digits", "leaderboard")) == 1
    description = store.description("digits")
    assert description.startswith("ours\n\n")
    assert "without predictions: run" in description
    first = next(r for r in store.client.search_runs([run.info.experiment_id]) if r.info.run_name == "first")
    for arguments in (experiment, (f"mlflow:{run.info.run_id}",), (f"mlflow:{first.info.run_id}",)):
        listed = said(*arguments, command="family")[0].splitlines()
        assert listed[0].endswith(": 3 logged comparisons, 3 of them pairs of leaderboards")
        assert listed[2].startswith("1-3  ")
        assert "accuracy: leaderboard of 3 of 4 runs, 3 pairs" in listed[2]
    with pytest.raises(InputError, match="is a leaderboard; expected a comparison"):
        said(f"mlflow:{run.info.run_id}", command="verify")


def test_options_of_logging_are_checked_first() -> None:
    for arguments, message in (
        (["--tag-runs"], "needs `--log`"),
        (["--log", "--tag-runs"], "needs a baseline"),
        (["--log-to", "results.csv"], "does not name a tracker"),
    ):
        with pytest.raises(InputError, match=message):
            printed("nothing.csv", *arguments)


def test_files_have_no_place_to_log_to(runs: list[str]) -> None:
    with pytest.raises(InputError, match="is in a tracker"):
        printed(*runs, "--log")
