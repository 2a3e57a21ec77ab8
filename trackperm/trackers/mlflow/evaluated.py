"""What the evaluator logs beside predictions: where ids come from, and digests of the inputs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from trackperm.tables.table import ExampleTable

ROW_NUMBERS = "row numbers"
"""Value of the tag where the evaluated data have no ids."""

_TAG = "trackperm.ids."
_INPUTS = re.compile(r"inputs_[0-9a-f]{8}")


def ids_tag(name: str) -> str:
    """Name the run's tag that says what the ids of the predictions `name` are."""
    return f"{_TAG}{name}"


def inputs_column(features: Iterable[str]) -> str:
    """Name the column of digests of inputs, which models with the same features have in common."""
    return f"inputs_{hashlib.sha256(chr(10).join(sorted(features)).encode()).hexdigest()[:8]}"


def as_evaluated(table: ExampleTable, tags: Mapping[str, str], path: str) -> ExampleTable:
    """Say of a table what is known of it if the evaluator logged it: digests of inputs have to agree."""
    ids = tags.get(ids_tag(PurePosixPath(path).stem))
    if ids is None:
        return table
    notes = ("ids are numbers of rows, for the evaluator was told of none",) if ids == ROW_NUMBERS else ()
    return replace(
        table,
        identity=(*table.identity, *filter(_INPUTS.fullmatch, table.columns)),
        notes=(*table.notes, *notes),
    )
