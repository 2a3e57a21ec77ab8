"""Parquet files."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from trackperm.errors import SourceError
from trackperm.tables import ExampleTable


def read_parquet(path: Path, origin: str) -> ExampleTable:
    """Read a Parquet file, with the types that it declares.

    Raises
    ------
    SourceError
        If it is not a whole Parquet file, or two columns have the same name.
    """
    try:
        frame = pl.read_parquet(path, glob=False, hive_partitioning=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise SourceError(
            f"`{origin}` is not a readable Parquet file: {error}", hint="was it written to its end?"
        ) from error
    return ExampleTable.from_native(frame, origin)
