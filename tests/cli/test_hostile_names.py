"""Names of files with line ends and escape sequences are escaped in all output."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import call_trackperm
from support.comparisons import answers

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
