"""Predictions that the MLflow evaluator logs: where their ids come from, and digests of the inputs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from trackperm.tables.table import ExampleTable

ROW_NUMBERS = "row numbers"
"""Value of the tag where the evaluated data have no ids, so that row numbers are used."""

_TAG = "trackperm.ids."
_INPUTS = re.compile(r"inputs_[0-9a-f]{8}")


def ids_tag(name: str) -> str:
    """Return the name of the tag that says where the ids of the predictions `name` come from."""
    return f"{_TAG}{name}"


def inputs_column(features: Iterable[str]) -> str:
    """Return the name of the column with digests of inputs; models with the same features share it."""
    return f"inputs_{hashlib.sha256(chr(10).join(sorted(features)).encode()).hexdigest()[:8]}"


def as_evaluated(table: ExampleTable, tags: Mapping[str, str], path: str) -> ExampleTable:
    """Add to a table what the evaluator recorded: how ids were made, and inputs that have to agree."""
    ids = tags.get(ids_tag(PurePosixPath(path).stem))
    if ids is None:
        return table
    notes = ("ids are row numbers, as the evaluated data have no ids",) if ids == ROW_NUMBERS else ()
    return replace(
        table,
        identity=(*table.identity, *filter(_INPUTS.fullmatch, table.columns)),
        notes=(*table.notes, *notes),
    )
