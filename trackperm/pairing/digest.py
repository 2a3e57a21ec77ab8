"""Digest of a run's data, whatever the order of its rows and the engine that held it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np

from trackperm.tables import ColumnType

_BYTES = {ColumnType.INTEGER: "<i8", ColumnType.DECIMAL: "<f8", ColumnType.BOOLEAN: "u1"}


def digest(frame: nw.DataFrame[Any], types: Mapping[str, ColumnType]) -> str:
    """SHA-256 of the typed columns of `frame`, whose rows are in canonical order."""
    header = [len(frame), *([name, types[name].value] for name in sorted(types))]
    sha = hashlib.sha256(json.dumps(header).encode())
    for name in sorted(types):
        values = frame.get_column(name)
        if types[name] is ColumnType.TEXT:
            sha.update(json.dumps(values.to_list()).encode())
            continue
        is_null = values.is_null().to_numpy()
        present = values.drop_nulls().to_numpy().astype(_BYTES[types[name]])
        sha.update(np.packbits(is_null).tobytes())
        sha.update((present + 0 if types[name] is ColumnType.DECIMAL else present).tobytes())  # -0.0 is 0.0
    return sha.hexdigest()
