"""Start of the command line: closed streams, interrupts and a working directory that is gone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from trackperm import cli
from trackperm.cli import commands
from trackperm.errors import TrackerError


def test_closed_streams_get_the_null_device() -> None:
    """Regression: libraries opened files as standard output and error, and the command never ended."""
    code = (
        "import os; os.closerange(0, 3); from trackperm.cli import main; main(); "
        "assert os.open(os.devnull, os.O_RDONLY) > 2; os._exit(5)"
    )
    ended = subprocess.run([sys.executable, "-c", code, "--version"], check=False, capture_output=True)
    assert ended.returncode == 5


def test_a_version_without_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["trackperm", "--version"])
    monkeypatch.setattr(sys, "stdout", None)
    cli.main()


@pytest.mark.parametrize("is_imported", [False, True])
def test_an_interrupt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_imported: bool
) -> None:
    """Regression: one while modules were imported showed a traceback."""

    class Interrupted:
        @property
        def run(self) -> None:
            raise KeyboardInterrupt

    if is_imported:
        monkeypatch.setattr(commands, "app", Mock(side_effect=KeyboardInterrupt))
    else:
        monkeypatch.setitem(sys.modules, "trackperm.cli.commands", Interrupted())
    monkeypatch.setattr(cli, "_start_quickly", Mock())
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert (ended.value.code, capsys.readouterr().err) == (130, "interrupted\n")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps the working directory of a process")
@pytest.mark.parametrize(
    "error",
    [TrackerError("MLflow failed while opening it"), FileNotFoundError(2, "No such file or directory")],
)
def test_a_working_directory_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    """Regression: "No such file or directory" named nothing."""
    monkeypatch.setattr(commands, "app", Mock(side_effect=error))
    for is_gone in (False, True):
        if is_gone:
            folder = tmp_path / "gone"
            folder.mkdir()
            monkeypatch.chdir(folder)
            folder.rmdir()
        with pytest.raises(SystemExit):
            commands.run()
        said = capsys.readouterr().err
        assert ("the working directory does not exist any more" in said) == is_gone
    monkeypatch.chdir(tmp_path)
