"""Parquet: a file, or a folder of parts as Spark, Dask and DuckDB write them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import polars as pl

from trackperm.errors import SourceError
from trackperm.tables.scan import Scan
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable

_MAGIC = b"PAR1"


def read_parquet(file: SourceFile) -> ExampleTable:
    """Read a Parquet file, with the types that it declares.

    Raises
    ------
    SourceError
        If it is not a whole Parquet file, or two columns have the same name.
    """
    return ExampleTable.from_scan(_scan([file.path], file.origin), file.origin)


def read_parts(file: SourceFile) -> ExampleTable:
    """Read the Parquet files in a folder as one table, in the order of their names.

    Raises
    ------
    SourceError
        If one is not a whole Parquet file, or their columns are not the same.
    """
    paths = _parts(file.path)
    schemas = {path: _scan([path], f"{file.origin}/{path.name}").schema for path in paths}
    first = schemas[paths[0]]
    for path, schema in schemas.items():
        if schema != first:
            differ = sorted({name for name, _ in set(schema.items()) ^ set(first.items())})
            raise SourceError(
                f"the parts `{paths[0].name}` and `{path.name}` of `{file.origin}` differ in"
                f" {', '.join(f'`{name}`' for name in differ) or 'the order of their columns'}",
                hint="the parts of one table have the same columns, with the same types.",
            )
    return ExampleTable.from_scan(_scan(paths, file.origin), file.origin)


def _scan(paths: list[Path], origin: str) -> Scan:
    lazy = pl.scan_parquet(paths, glob=False, hive_partitioning=False)
    return Scan(lazy, partial(_unreadable, origin))


def _unreadable(origin: str, error: BaseException) -> SourceError:
    return SourceError(
        f"`{origin}` is not a readable Parquet file: {error}", hint="was it written to its end?"
    )


def _parts(folder: Path) -> list[Path]:
    """Files of a folder but those that the writers of parts hide or write beside them."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))


def _is_folder_of_parts(file: SourceFile) -> bool:
    if not file.path.is_dir():
        return False
    parts = _parts(file.path)
    return bool(parts) and all(path.is_file() and SourceFile(path).head.startswith(_MAGIC) for path in parts)


PARQUET = Source("parquet", "Parquet", lambda file: file.head.startswith(_MAGIC), read_parquet)
PARQUET_PARTS = Source("parquet-parts", "folders of Parquet parts", _is_folder_of_parts, read_parts)
