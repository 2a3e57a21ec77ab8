"""Readers of per-example tables in files, found by the file name's suffix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath

from trackperm.errors import SourceError
from trackperm.sources.delimited import read_csv, read_tsv
from trackperm.sources.json_lines import read_json_lines
from trackperm.sources.log_table import read_log_table
from trackperm.sources.parquet import read_parquet
from trackperm.tables import ExampleTable

__all__ = ["is_readable", "read_examples"]

_READERS: dict[str, Callable[[Path, str], ExampleTable]] = {
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".parquet": read_parquet,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_log_table,
}


def is_readable(name: str) -> bool:
    """Whether a file of this name could be read, judged by its suffix alone."""
    return PurePosixPath(name).suffix.lower() in _READERS


def read_examples(path: Path, origin: str | None = None) -> ExampleTable:
    """Read the per-example table in a file.

    Parameters
    ----------
    path : Path
        A ``.csv``, ``.tsv``, ``.parquet``, ``.jsonl`` or ``.ndjson`` file, or a ``.json`` file that
        MLflow's ``log_table`` wrote.
    origin : str, optional
        What messages call the table; by default the path.

    Raises
    ------
    SourceError
        If there is no such file, or it does not hold a table.
    """
    origin = str(path) if origin is None else origin
    formats = ", ".join(f"`{suffix}`" for suffix in _READERS)
    if path.is_dir():
        raise SourceError(f"`{origin}` is a directory", hint=f"name one file in it: {formats}.")
    if not path.exists():
        raise SourceError(
            f"there is no file `{origin}`",
            hint=f"a run of a tracker is written with its name in front: `mlflow:{origin}`.",
        )
    if not is_readable(path.name):
        raise SourceError(f"`{origin}` is in no format that can be read", hint=f"these can: {formats}.")
    try:
        if not path.stat().st_size:
            raise SourceError(f"`{origin}` is empty")
        return _READERS[path.suffix.lower()](path, origin)
    except OSError as error:
        raise SourceError(f"`{origin}` cannot be read: {error.strerror or error}") from error
