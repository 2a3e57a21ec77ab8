"""Reader for Parquet from untrusted files, some of which end the process that reads them."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys

import polars as pl

from trackperm.errors import InputError

# -I: no module of the working directory is imported before the path is set
_TRY = """
import io, pickle, sys
sys.path[:], content = pickle.load(sys.stdin.buffer)
import polars
try:
    polars.read_parquet(io.BytesIO(content))
except BaseException:
    pass
"""


def read_damaged_parquet(content: bytes) -> pl.DataFrame:
    """Read a table that may be damaged, after another process has tried to.

    polars allocates as much memory as a file states. If a damaged file states far too much, Rust aborts the
    process, which no ``try`` can catch.

    Raises
    ------
    InputError
        If reading it ends the other process.
    polars.exceptions.PolarsError, polars.exceptions.PanicException
        If it is not Parquet.
    """
    tried = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-I", "-c", _TRY],
        input=pickle.dumps((sys.path, content)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if tried.returncode:
        raise InputError("the file is damaged: it ends the process that reads it")
    return pl.read_parquet(io.BytesIO(content))
