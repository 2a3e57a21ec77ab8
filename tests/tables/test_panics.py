from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from trackperm.tables.panics import panics_unprinted

PANIC = b"""
thread 'async-executor-0' (4711) panicked at crates/polars-parquet/src/arrow/read.rs:12:3:
range end index 9 out of range
in two lines
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""
LATER = b"\nthread '<unnamed>' panicked at crates/polars-core/src/x.rs:1:1:\nagain\n"


@pytest.mark.parametrize("panic", [PANIC, PANIC + PANIC, PANIC + LATER, LATER + PANIC])
def test_panics_are_taken_out_and_all_else_stays(panic: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    with panics_unprinted():
        os.write(2, b"before\n")
        with panics_unprinted():
            os.write(2, panic)
            if not panic.endswith(LATER):
                os.write(2, b"after\n")
    os.write(2, b"later\n")
    rest = "" if panic.endswith(LATER) else "after\n"
    assert capfd.readouterr().err == f"before\n{rest}later\n"


def test_without_a_folder_for_temporary_files_nothing_is_lost(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as context:
        context.setattr(tempfile, "tempdir", "/nowhere")
        with panics_unprinted():
            os.write(2, b"first\n")
    with panics_unprinted():
        os.write(2, PANIC + b"second\n")
    assert capfd.readouterr().err == "first\nsecond\n"


def test_a_reader_that_is_killed_leaves_no_file(tmp_path: Path) -> None:
    code = """
import os, signal
from trackperm.tables.panics import panics_unprinted
with panics_unprinted():
    os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)})
    assert killed.returncode < 0
    assert list(tmp_path.iterdir()) == []
