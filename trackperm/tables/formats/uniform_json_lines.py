"""JSON Lines as programs write them: the same members with values of the same type on every line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from trackperm.tables.scan import Scan
from trackperm.tables.text_parts import scan_parts

# Values that both readers take alike: texts without escapes, integers far from the ends of int64, decimals
# among which no integer is rounded and no exponent overflows.
_PATTERNS: dict[type, tuple[str, Any]] = {
    str: (r'"[^"\\\x00-\x1f]*"', pl.String),
    int: (r"-?(?:0|[1-9][0-9]{0,17})", pl.Int64),
    float: (r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,2})?", pl.Float64),
    bool: (r"true|false", pl.Boolean),
}
_UNIT = "\x1f"  # separates nothing in JSON, where it has to be escaped


def read_uniform(data: bytes, first: Mapping[str, Any]) -> pl.DataFrame | None:
    """Polars' reading of `data` where it is beyond doubt, else None.

    Polars turns numbers into text where a column mixes them, takes the last of two members of one name, and
    lets lines lack members. A pattern made of the first line, which every other has to match, rules that out.

    Parameters
    ----------
    data : bytes
        The file.
    first : mapping of str to object
        Members of its first line.
    """
    if not first or any(type(value) not in _PATTERNS for value in first.values()):
        return None
    if b"\r" in data or _UNIT.encode() in data or data.startswith(b"\xef\xbb\xbf"):
        return None
    members = (
        f"{re.escape(json.dumps(name, ensure_ascii=False))}: ?(?:{_PATTERNS[type(value)][0]}|null)"
        for name, value in first.items()
    )
    pattern = r"^\{" + ", ?".join(members) + r"\}$"
    try:
        lines = pl.read_csv(
            data, has_header=False, separator=_UNIT, quote_char=None, infer_schema=False, new_columns=["line"]
        )
        if (
            lines.width > 1
            or not lines.select(pl.col("line").str.contains(pattern).fill_null(False).all()).item()
        ):
            return None
        schema = {name: _PATTERNS[type(value)][1] for name, value in first.items()}
        frame = pl.read_ndjson(data, schema=schema)
    except pl.exceptions.PolarsError:
        return None
    return frame if len(frame) == len(lines) else None


def scan_uniform(path: Path, first: Mapping[str, Any], origin: str) -> Scan | None:
    """Copy what :func:`read_uniform` reads of a file to temporary files; None where some of it is in doubt.

    Parameters
    ----------
    path : Path
        The file.
    first : mapping of str to object
        Members of its first line.
    origin : str
        What messages call it.
    """
    return scan_parts(path, lambda data, _: read_uniform(data, first), origin)
