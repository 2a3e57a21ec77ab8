"""Apache Arrow: IPC files, which include Feather of version 2, and IPC streams."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from glob import escape

import polars as pl

from trackperm.errors import SourceError
from trackperm.tables.expansion import Expansion
from trackperm.tables.formats.arrow_messages import held_bytes
from trackperm.tables.formats.parquet import require_whole
from trackperm.tables.lazy.scan import UNREADABLE, Scan
from trackperm.tables.panics import panics_unprinted
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable

_FILE, _STREAM, _FEATHER_1 = b"ARROW1", b"\xff\xff\xff\xff", b"FEA1"


def read_arrow(file: SourceFile) -> ExampleTable:
    """Read an Arrow IPC file or stream, with the types that it declares.

    Raise SourceError if the file is truncated, or is Feather of version 1, or its name shows that it is one
    of several parts of a table.
    """
    require_whole(file)
    return read_part(file)


def read_part(file: SourceFile) -> ExampleTable:
    """Read a file like :func:`read_arrow`, also one of several parts."""
    if file.head.startswith(_FEATHER_1):
        raise SourceError(
            f"`{file.origin}` is Feather of version 1; expected version 2",
            hint="write it again with `pyarrow.feather.write_feather(table, path)`, or as Parquet.",
        )
    limit = Expansion.of_columns(file.origin, file.path)
    if file.head.startswith(_FILE):
        scan = pl.scan_ipc(escape(str(file.path)))

        def held(_: Collection[str]) -> int:
            return held_bytes(file.path)

        return ExampleTable.from_scan(
            Scan(scan, partial(_unreadable, file.origin), expansion=limit, held=held), file.origin
        )
    try:
        n_bytes = held_bytes(file.path)
    except (ValueError, OSError) as error:
        raise _unreadable(file.origin, error) from error
    limit.require(n_bytes)
    try:
        with panics_unprinted():
            frame = pl.read_ipc_stream(file.path.read_bytes())
    except UNREADABLE as error:
        raise _unreadable(file.origin, error) from error
    return ExampleTable.from_native(frame, file.origin)


def _unreadable(origin: str, error: BaseException) -> SourceError:
    return SourceError(f"`{origin}` is not readable as Arrow IPC: {error}", hint="was it written completely?")


def _recognises(file: SourceFile) -> bool:
    # An encapsulated message begins with a continuation and the length of its metadata, a multiple of 8.
    is_stream = file.head.startswith(_STREAM) and len(file.head) >= 8 and file.head[4] % 8 == 0
    return is_stream or file.head.startswith((_FILE, _FEATHER_1))


ARROW = Source("arrow", "Arrow IPC or Feather", _recognises, read_arrow)
