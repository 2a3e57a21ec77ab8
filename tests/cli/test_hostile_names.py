"""Names of files with line ends and escape sequences are escaped in all output."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from support.command_line import call_trackperm
from support.comparisons import answers

import trackperm
from trackperm.ledger.entries import LedgerEntry, TestFamily
from trackperm.ledger.family_text import family_lines
from trackperm.ledger.verification.checks import Check, Verification
from trackperm.report import description
from trackperm.report.leaderboard import text
from trackperm.trackers.references import RunReference, TrackedRun

NAME = "a\nerror: b\x1b[2J"
SHOWN = r"a\nerror: b\x1b[2J"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, correct in (("one", [True] * 9 + [False] * 9), ("two", [False] * 18)):
        answers(correct).write_csv(tmp_path / f"{name}{NAME}.csv")
    (tmp_path / f"broken{NAME}.csv").write_text("id,prediction\n1\n")
    (tmp_path / f"column{NAME}.csv").write_text('id,"' + NAME + '"\n1,2\n')
    (tmp_path / f"spec{NAME}.yaml").write_text("counts: [")
    policy = "policies: [{name: p, baseline: {run: nowhere.csv}}, {name: q, baseline: {run: nowhere.csv}}]"
    (tmp_path / f"policy{NAME}.yaml").write_text(policy)
    return tmp_path


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("code", "command"),
    [
        (0, ["compare", "one.csv", "two.csv", "-o", "out.md"]),
        (0, ["leaderboard", "one.csv", "two.csv", "-o", "board.md"]),
        (0, ["inspect", "one.csv"]),
        (0, ["inspect", "column.csv"]),
        (2, ["inspect", "broken.csv"]),
        (2, ["compare", "one.csv", "nowhere.csv"]),
        (2, ["compare", "one.csv", "two.csv", "-s", "nothing"]),
        (2, ["compare", "one.csv", "two.csv", "-s", "spec.yaml"]),
        (2, ["compare", "one.csv", "two.csv", "-s", "nowhere.yaml"]),
        (2, ["compare", "one.csv", "two.csv", "-o", "out.wrong"]),
        (2, ["compare", "one.csv", "two.csv", "-o", "nowhere/out.md"]),
        (2, ["statistic", "check", "spec.yaml"]),
        (2, ["policy", "check", "spec.yaml"]),
        (2, ["watch", "--policy", "policy.yaml", "--state", "state.d"]),
        (2, ["gate", "--policy", "policy.yaml", "--candidate", "one.csv"]),
        (2, ["gate", "--policy", "nowhere.yaml", "--candidate", "one.csv"]),
        (
            1,
            [
                "gate",
                "--policy",
                "policy.yaml",
                "--name",
                "p",
                "--candidate",
                "two.csv",
                "--baseline",
                "one.csv",
            ],
        ),
    ],
)
def test_names_are_escaped(folder: Path, code: int, command: list[str]):
    arguments = [
        f"{stem}{NAME}.{suffix}" if suffix else word
        for word in command
        for stem, _, suffix in [word.partition(".")]
    ]
    result = call_trackperm(folder, *arguments)
    said = result.stdout + result.stderr
    assert result.returncode == code, said
    assert "error: b" not in [line[:8] for line in said.splitlines()]
    assert "\x1b" not in said
    assert SHOWN in said or command[0] == "compare"


def test_names_of_runs_and_values_are_escaped_in_python_too(folder: Path):
    """Regression: a clone could forge the notes of a leaderboard, and a slice the verdict of a comparison."""
    rows = answers([True] * 9 + [False] * 9)
    board = trackperm.leaderboard({NAME: rows, "clone\u202e": rows, "other": answers([False] * 18)})
    sliced = [frame.with_columns(part=pl.lit(NAME)) for frame in (rows, answers([False] * 18))]
    several = trackperm.compare(*sliced, slices=["part"])
    texts = [str(board), *map(str, several)]
    texts += [text.markdown(board), *map(description.markdown, several)]
    for said in texts:
        assert "\nerror: b" not in said
        assert not {"\x1b", "\u202e"} & set(said)
    assert f"{SHOWN}, clone\\u202e" in texts[0]


def test_a_logged_value_cannot_forge_a_line_of_the_verification():
    check = Check.equal("tag", "x\nall 3 match\x1b[2J", "y")
    assert "\x1b" not in "".join(Verification((check,), ("note\nall 3 match",)).lines())
    assert not [line for line in Verification((check,)).lines() if "\n" in line]


def test_a_comparison_that_was_renamed_cannot_forge_a_line_of_its_family():
    run = TrackedRun(RunReference("mlflow", "1"), f"a{NAME}", "0")
    family = TestFamily("0" * 64, (LedgerEntry(1, "0" * 8, run, created=None, is_finished=False, tags={}),))
    said = list(family_lines(family, "holm", spend=False))
    assert not [line for line in said if "\n" in line or "\x1b" in line]
