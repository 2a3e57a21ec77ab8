"""Options that may be given once say so, in place of using the last value."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import call_trackperm
from support.comparisons import answers


@pytest.mark.parametrize(
    "command",
    [
        ["leaderboard", "-s", "accuracy", "-s", "macro_f1"],
        ["leaderboard", "--metric", "a", "--metric", "b"],
        ["power", "--metric", "a", "--metric", "b"],
    ],
)
def test_a_second_value_is_refused(command: list[str], tmp_path: Path) -> None:
    for name in ("old.csv", "new.csv"):
        answers([True, False]).write_csv(tmp_path / name)
    done = call_trackperm(tmp_path, command[0], "old.csv", "new.csv", *command[1:])
    assert (done.returncode, done.stdout) == (2, "")
    option = {"-s": "--statistic"}.get(command[1], command[1])
    assert f"`{option}` is given 2 times, as `{command[2]}`, `{command[4]}`; expected one" in done.stderr
