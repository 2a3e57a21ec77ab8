from __future__ import annotations

import os

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
