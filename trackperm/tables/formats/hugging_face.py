"""Data sets of Hugging Face as ``save_to_disk`` writes them: a folder of shards, or one of such folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from trackperm.errors import SourceError
from trackperm.messages import listed
from trackperm.tables.expansion import Expansion
from trackperm.tables.formats.arrow import read_part
from trackperm.tables.formats.arrow_messages import held_bytes
from trackperm.tables.formats.parquet import require_one_schema
from trackperm.tables.json_values import member, parsed
from trackperm.tables.source import Source, SourceFile, chosen_part
from trackperm.tables.table import ExampleTable

_STATE = "state.json"
_SPLITS = "dataset_dict.json"


def read_saved_dataset(file: SourceFile) -> ExampleTable:
    """Read the shards of a data set as one table, in the order of its ``state.json``.

    Raise SourceError if a shard is missing, their columns differ, or the rows are chosen by indices, as of
    ``select`` and ``shuffle`` in versions of `datasets` before 2.0.
    """
    state = _json(file.path / _STATE)
    if member(state, "_indices_data_files"):
        raise SourceError(
            f"`{file.origin}` has rows that its file of indices chooses, which is not read",
            hint="`load_from_disk(...).flatten_indices().save_to_disk(...)` of `datasets` writes the rows.",
        )
    names = _shards(state)
    paths = [file.path / name for name in names]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise SourceError(
            f"`{file.origin}` lacks {len(missing)} of the {len(names)} parts of a table: {listed(missing)}",
            hint="was it written, or downloaded, completely?",
        )
    limit, n_bytes = Expansion.of_columns(file.origin, *paths), 0
    shards: dict[Path, ExampleTable] = {}
    for path in paths:
        shards[path] = read_part(SourceFile(path, f"{file.origin}/{path.name}"))
        n_bytes += held_bytes(path)
        limit.require(n_bytes)
    require_one_schema({path: shard.schema for path, shard in shards.items()}, file.origin)
    frame = pl.concat([shard.frame.to_polars() for shard in shards.values()])
    return ExampleTable.from_native(frame, file.origin)


def read_saved_splits(file: SourceFile) -> ExampleTable:
    """Read the split that ``FOLDER::SPLIT`` names, or the only one.

    Raise SourceError if there are several and none was chosen, or the split cannot be read.
    """
    split = chosen_part(file, _splits(file), "split")
    folder = SourceFile(file.path / split, f"{file.origin}/{split}")
    if not _is_dataset(folder):
        raise SourceError(
            f"`{folder.origin}` is not a data set; expected shards and a `{_STATE}` that names them",
            hint="was it written, or downloaded, completely?",
        )
    return read_saved_dataset(folder)


def _shards(state: Any) -> list[str]:
    """List the file names of shards, without those outside their folder."""
    files = member(state, "_data_files")
    names = [member(each, "filename") for each in files] if isinstance(files, list) else []
    return [name for name in names if isinstance(name, str) and name == Path(name).name]


def _splits(file: SourceFile) -> list[str]:
    names = member(_json(file.path / _SPLITS), "splits")
    names = names if isinstance(names, list) else []
    return [name for name in names if isinstance(name, str) and name == Path(name).name]


def _json(path: Path) -> Any:
    """Return the value of a JSON document; None if it cannot be read."""
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _is_dataset(file: SourceFile) -> bool:
    return file.path.is_dir() and bool(_shards(_json(file.path / _STATE)))


SAVED_DATASET = Source("saved-dataset", "Hugging Face `save_to_disk`", _is_dataset, read_saved_dataset)
SAVED_SPLITS = Source(
    "saved-splits",
    SAVED_DATASET.title,
    lambda file: file.path.is_dir() and bool(_splits(file)),
    read_saved_splits,
    part="split",
)
