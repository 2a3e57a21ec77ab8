"""Changes to the logged files of a comparison, and the checks that find them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import polars as pl

from trackperm.ledger.verification import Verification


def failures(found: Verification) -> set[str]:
    """Return the names of the checks that do not match."""
    return {check.what for check in found.checks if not check.matches}


def changed(files: dict[str, bytes], **fields: Any) -> dict[str, bytes]:
    """Return the files with other values of fields of `comparison.json`."""
    data = json.loads(files["trackperm/comparison.json"])
    for name, value in fields.items():
        assert data[name] != value
        data[name] = value
    return {**files, "trackperm/comparison.json": json.dumps(data).encode()}


def rewritten(
    files: dict[str, bytes], name: str, change: Callable[[pl.DataFrame], pl.DataFrame]
) -> dict[str, bytes]:
    """Return the files with another table."""
    path, buffer = f"trackperm/{name}.parquet", io.BytesIO()
    change(pl.read_parquet(io.BytesIO(files[path]))).write_parquet(buffer)
    return {**files, path: buffer.getvalue()}
