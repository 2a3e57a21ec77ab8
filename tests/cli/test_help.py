"""Help, completion, colours and widths of the command line."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import call_trackperm
from support.comparisons import answers
from support.processes import run, script, without_trackers

from trackperm.cli.commands import _COMMANDS
from trackperm.cli.output import wrapped
from trackperm.version import __version__

ANSI = "\x1b["


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("help")
    answers([True] * 20 + [False] * 20).write_csv(path / "old.csv")
    answers([True] * 35 + [False] * 5).write_csv(path / "new.csv")
    return path


def on_terminal(folder: Path, *arguments: str, columns: int = 80, **env: str) -> str:
    """Run a command whose output is a terminal of that width, and return what it shows."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**without_trackers(), "TERM": "xterm", **env}
    for name in ("COLUMNS", "LINES", *(each for each in ("NO_COLOR", "FORCE_COLOR") if each not in env)):
        environment.pop(name, None)
    command = [script("trackperm"), *arguments]
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the end of a terminal on Linux
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert process.wait(timeout=60) == 0, shown
    return shown.decode().replace("\r\n", "\n")


def test_the_first_commands_are_those_of_every_day(folder: Path):
    said = call_trackperm(folder, "--help").stdout
    assert said == call_trackperm(folder, "-h").stdout
    headings = re.findall(r"^(\S.*):$", said, re.MULTILINE)
    assert headings == ["Every day", "Planning and checking", "Automation", "Set-up", "Options"]
    commands = said.partition("Every day:")[2].partition("Options:")[0]
    named = re.findall(r"^  ([a-z][a-z-]*)  +\S", commands, re.MULTILINE)
    assert named == list(_COMMANDS)
    assert named[:3] == ["compare", "leaderboard", "inspect"]
    assert "..." not in commands


def test_arguments_are_upper_case_and_without_types(folder: Path):
    for command in ("compare", "verify", "power", "inspect", "leaderboard", "family"):
        said = call_trackperm(folder, command, "-h").stdout
        assert not re.search(r"<(str|int|float|path|list|datetime)", said), command
        usage = said.partition("\n\n")[0].replace("\n", " ").split()[4:]
        assert usage
        assert all(re.fullmatch(r"\[?[A-Z|.]+\]?", word) for word in usage), usage
    said = call_trackperm(folder, "compare", "-h").stdout
    assert said.startswith("Usage: trackperm compare [OPTIONS] BASELINE CANDIDATE\n")
    assert said.index("\nStatistic:") < said.index("\nTrackers and logging:") < said.index("\nOptions:")


def test_help_uses_the_width_of_the_terminal(folder: Path):
    said = {columns: on_terminal(folder, "compare", "-h", columns=columns) for columns in (80, 110, 300)}
    longest = {
        columns: max(len(re.sub(r"\x1b\[\d*m", "", line)) for line in text.splitlines())
        for columns, text in said.items()
    }
    assert longest[80] <= 80
    assert 80 < longest[110] <= 110 < longest[300] <= 120


def test_module_and_script_are_the_same():
    version = run([sys.executable, "-m", "trackperm", "--version"]).stdout
    assert version == f"trackperm {__version__}\n"
    assert "Usage: " in run([sys.executable, "-m", "trackperm", "compare", "-h"]).stdout


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("trackperm com", ["compare"]),
        ("trackperm compare -s macro_f", ["macro_f1"]),
        ("trackperm gate --gi", ["--github"]),
    ],
)
def test_bash_completes(words: str, found: list[str], folder: Path):
    env = {
        "_TRACKPERM_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    assert run([script("trackperm")], cwd=folder, env=env).stdout.split() == found


# --- colours and widths --------------------------------------------------------------------------------

COMPARE = ("compare", "old.csv", "new.csv")


@pytest.mark.extended
def test_leaderboards_have_the_width_of_the_terminal(folder: Path):
    """Regression: their tables took 90 columns without names, and a terminal broke each row."""
    command = ("leaderboard", "old.csv", "new.csv")
    shown = on_terminal(folder, *command, NO_COLOR="1")
    assert max(map(len, shown.splitlines())) <= 80
    assert "simultaneous" not in shown
    piped = call_trackperm(folder, *command).stdout
    for number in re.findall(r"[-+]?\d\.\d{4}", piped):
        assert number in shown


@pytest.mark.extended
def test_colours_are_for_terminals_and_can_be_chosen(folder: Path):
    assert f"{ANSI}32m" in on_terminal(folder, *COMPARE)
    assert ANSI not in on_terminal(folder, *COMPARE, NO_COLOR="1")
    assert ANSI not in on_terminal(folder, *COMPARE, TERM="dumb")
    assert ANSI not in on_terminal(folder, "--help", NO_COLOR="1")
    assert ANSI not in call_trackperm(folder, *COMPARE, "-o", "out.txt").stdout
    forced = call_trackperm(folder, *COMPARE, "-o", "out.txt", env={"FORCE_COLOR": "1"})
    assert f"{ANSI}32m" in forced.stdout
    assert ANSI not in (folder / "out.txt").read_text(encoding="utf-8")
    assert ANSI not in call_trackperm(folder, *COMPARE, "--format", "json", env={"FORCE_COLOR": "1"}).stdout
    assert ANSI not in call_trackperm(folder, *COMPARE, env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout


def test_errors_are_red_where_colours_are_wanted(folder: Path):
    wrong = ("compare", "old.csv", "none.csv")
    assert call_trackperm(folder, *wrong).stderr.startswith("error: `none.csv` does not exist")
    assert f"{ANSI}31m" in call_trackperm(folder, *wrong, env={"FORCE_COLOR": "1"}).stderr


@pytest.mark.extended
def test_the_result_fits_the_terminal(folder: Path):
    shown = on_terminal(folder, *COMPARE, columns=72, NO_COLOR="1")
    shown = re.split(r"\x1b\[[?0-9;]*[A-Za-z]", shown)[-1]  # after progress, where the machine is slow
    shown = shown[shown.index("accuracy") :]
    assert max(map(len, shown.splitlines())) <= 72
    piped = call_trackperm(folder, *COMPARE).stdout
    assert shown.split() == piped.split()
    for number in re.findall(r"[-+]?\d+\.\d+", piped):
        assert number in shown


@pytest.mark.parametrize(
    ("line", "width", "lines"),
    [
        ("one two three", 40, ["one two three"]),
        ("a" * 60, 40, ["a" * 60]),
        (f"{'a' * 30}   {'b' * 20}   {'c' * 15}", 40, ["a" * 30, f"  {'b' * 20}   {'c' * 15}"]),
        ("word " * 9 + "end", 40, ["word word word word word word word word", "  word end"]),
        ("", 40, [""]),
    ],
)
def test_wrapped(line: str, width: int, lines: list[str]):
    assert wrapped(line, width).split("\n") == lines
