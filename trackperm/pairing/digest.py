"""Digest of a run's data, whatever the order of its rows and the engine that held it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from trackperm.tables import LISTS, ColumnType

_SLICE = 2**18  # texts that are joined at once
_BYTES = {ColumnType.INTEGER: "<i8", ColumnType.DECIMAL: "<f8", ColumnType.BOOLEAN: "u1"}


def digest(frame: nw.DataFrame[Any], types: Mapping[str, ColumnType]) -> str:
    """SHA-256 of the typed columns of `frame`, whose rows are in canonical order."""
    header = [len(frame), *([name, types[name].value] for name in sorted(types))]
    sha = hashlib.sha256(json.dumps(header).encode())
    for name in sorted(types):
        values = frame.get_column(name)
        if types[name] is ColumnType.TEXT:
            for part in _text_bytes(values.to_polars()):
                sha.update(part)
            continue
        if types[name] in LISTS:
            for part in _list_bytes(values.to_polars()):
                sha.update(part)
            continue
        is_null = values.is_null().to_numpy()
        present = values.drop_nulls().to_numpy().astype(_BYTES[types[name]])
        sha.update(np.packbits(is_null).tobytes())
        sha.update((present + 0 if types[name] is ColumnType.DECIMAL else present).tobytes())  # -0.0 is 0.0
    return sha.hexdigest()


def _text_bytes(texts: pl.Series) -> Iterator[bytes]:
    """How long texts are (-1 where there is none), and then the texts end to end."""
    yield texts.str.len_bytes().cast(pl.Int64).fill_null(-1).to_numpy().astype("<i8").tobytes()
    for part in texts.to_frame().iter_slices(_SLICE):
        yield str(part.to_series().str.join("").item()).encode()


def _list_bytes(lists: pl.Series) -> Iterator[bytes]:
    """How long lists and their items are (-1 where there is none), and then the items end to end."""
    lengths = lists.list.len()
    items = lists.filter(lengths > 0).explode()
    yield lengths.cast(pl.Int64).fill_null(-1).to_numpy().astype("<i8").tobytes()
    if items.dtype == pl.String:
        yield from _text_bytes(items)
    else:
        yield np.packbits(items.is_null().to_numpy()).tobytes()
        yield items.drop_nulls().to_numpy().astype("<i8").tobytes()
