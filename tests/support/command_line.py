"""The command line, called in this process: one of its own imports everything anew, which takes a second."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.processes import without_trackers
from trackperm import cli
from trackperm.cli import commands


def invoke(*arguments: str | Path) -> str:
    """Return what a command prints, or raise its error."""
    result = CliRunner().invoke(commands.app, [*map(str, arguments)])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def call_trackperm(
    folder: Path, *arguments: str | Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Call ``trackperm ARGUMENTS`` in `folder`, with the environment that a process would have."""
    command = ["trackperm", *map(str, arguments)]
    out, err = (TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(folder)
        patch.setattr(sys, "argv", command)
        for name in os.environ.keys() - without_trackers().keys():
            patch.delenv(name)
        for name, value in (env or {}).items():
            patch.setenv(name, value)
        try:
            cli.main()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    printed, said = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess(command, code, printed, said)
