"""Parquet: a file, or a folder of parts as Spark, Dask and DuckDB write them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import narwhals as nw
import polars as pl

from trackperm.errors import SourceError
from trackperm.messages import listed
from trackperm.tables.expansion import Expansion
from trackperm.tables.formats.parquet_metadata import held_bytes, named_range_index, row_groups
from trackperm.tables.lazy.scan import Scan
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable

_MAGIC = b"PAR1"
_MARKS = ("_SUCCESS", "_metadata", "_common_metadata")
# Names of parts by Spark, pyarrow and Dask; by DuckDB and polars; and by Hugging Face, with their number.
_PART = re.compile(r"part[-_.]?\d.*\.parquet|(data_)?\d+\.parquet", re.IGNORECASE)
_NUMBERED = re.compile(r"(?P<table>.*?)-?(?P<number>\d+)-of-(?P<of>\d+)\.(parquet|arrow)", re.IGNORECASE)


def read_parquet(file: SourceFile) -> ExampleTable:
    """Read a Parquet file with the types that it declares, and with a named index of pandas as a column.

    Raise SourceError if it is not a complete Parquet file, two columns have the same name, or its name and
    the files beside it show that it is one of several parts of a table.
    """
    require_whole(file)
    table = ExampleTable.from_scan(scan := _scan([file.path], file.origin), file.origin)
    if (index := named_range_index(file.path)) is None:
        return table
    name, values = index
    if name in table.columns or len(values) != len(table):
        return table
    number = pl.col(name).cast(pl.Int64) * values.step + values.start
    lazy = scan.lazy.with_row_index(name).with_columns(number)
    return ExampleTable.from_scan(replace(scan, lazy=lazy, parquet=()), file.origin)


def read_parts(file: SourceFile) -> ExampleTable:
    """Read the Parquet files in a folder as one table, in the order of their names.

    Raise SourceError if a file is not a complete Parquet file, their columns differ, or their names show that
    some are missing.
    """
    paths = _parts(file.path)
    _require_all([path.name for path in paths], file.origin)
    schemas = {path: _scan([path], f"{file.origin}/{path.name}").schema for path in paths}
    require_one_schema(schemas, file.origin)
    return ExampleTable.from_scan(_scan(paths, file.origin), file.origin)


def require_one_schema(schemas: Mapping[Path, nw.Schema], origin: str) -> None:
    """Refuse parts of a table, by their paths, if their columns differ; raise SourceError."""
    (path, first), *others = schemas.items()
    for other, schema in others:
        if schema != first:
            differ = sorted({name for name, _ in set(schema.items()) ^ set(first.items())})
            raise SourceError(
                f"the parts `{path.name}` and `{other.name}` of `{origin}` differ in"
                f" {', '.join(f'`{name}`' for name in differ) or 'the order of their columns'}",
                hint="the parts of one table have the same columns, with the same types.",
            )


def require_whole(file: SourceFile) -> None:
    """Refuse one part of a table; files such as ``1.parquet`` beside ``2.parquet`` may be runs.

    Raise SourceError if the name of the file, of Parquet or Arrow, and the files beside it show that it is
    one of several.
    """
    name, folder = file.path.name, file.path.parent
    if not (name.lower().startswith("part") or _NUMBERED.fullmatch(name) or (folder / _MARKS[0]).exists()):
        return
    beside = [path.name for path in folder.iterdir() if path.is_file()]
    parts = next((parts for parts in tables_in_parts(beside) if name in parts), (name,))
    if (n := max(len(parts), _n_parts(name))) > 1:
        raise SourceError(
            f"`{file.origin}` is one of {n} parts of a table",
            hint="name the folder of the parts, which is read as a whole; a part that is a table of its own"
            " needs another name.",
        )


def tables_in_parts(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Group the names in one folder that are parts of the same table, by the naming of common writers.

    A name of a whole table, such as ``predictions.parquet`` or a single ``part-0.parquet``, is in no group.
    With a marker file of Spark or Dask, such as ``_SUCCESS``, all files are parts.
    """
    names = list(names)
    visible = sorted(name for name in names if not _is_hidden(name) and name.lower().endswith(".parquet"))
    if visible and any(mark in names for mark in _MARKS):
        return [tuple(visible)]
    groups: dict[str, list[str]] = {}
    for name in visible:
        if found := _NUMBERED.fullmatch(name):
            groups.setdefault(f"{found['table']} of {found['of']}", []).append(name)
        elif _PART.fullmatch(name):
            groups.setdefault("", []).append(name)
    return [tuple(group) for group in groups.values() if len(group) > 1 or _n_parts(group[0]) > 1]


def _n_parts(name: str) -> int:
    found = _NUMBERED.fullmatch(name)
    return int(found["of"]) if found else 1


def _require_all(names: Iterable[str], origin: str) -> None:
    for parts in tables_in_parts(names):
        if len(parts) < _n_parts(parts[0]):
            raise SourceError(
                f"`{origin}` has {len(parts)} of the {_n_parts(parts[0])} parts of a table: {listed(parts)}",
                hint="was it written, or downloaded, completely?",
            )


def _scan(paths: list[Path], origin: str) -> Scan:
    lazy = pl.scan_parquet(paths, glob=False, hive_partitioning=False)
    limit = Expansion.of_columns(origin, *paths)

    groups = cache(row_groups)

    @cache
    def of_column(name: str) -> int:
        return sum(held_bytes(path, groups(path), [name]) for path in paths)

    def held(names: Collection[str]) -> int:
        return sum(map(of_column, names))

    return Scan(lazy, partial(_unreadable, origin), expansion=limit, held=held, parquet=tuple(paths))


def _unreadable(origin: str, error: BaseException) -> SourceError:
    return SourceError(
        f"`{origin}` is not a readable Parquet file: {error}", hint="was it written completely?"
    )


def _parts(folder: Path) -> list[Path]:
    """Return the files of a folder, without hidden files and markers of the writers of parts."""
    return sorted(path for path in folder.iterdir() if not _is_hidden(path.name))


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _is_folder_of_parts(file: SourceFile) -> bool:
    if not file.path.is_dir():
        return False
    parts = _parts(file.path)
    return bool(parts) and all(path.is_file() and SourceFile(path).head.startswith(_MAGIC) for path in parts)


PARQUET = Source("parquet", "Parquet", lambda file: file.head.startswith(_MAGIC), read_parquet)
PARQUET_PARTS = Source("parquet-parts", "folders of Parquet parts", _is_folder_of_parts, read_parts)
