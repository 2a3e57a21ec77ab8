"""Readers of per-example files; the format is detected from the content of a file, not from its name."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import polars as pl

from trackperm.errors import SourceError, StorageError
from trackperm.messages import did_you_mean, printable
from trackperm.tables.formats.parquet import tables_in_parts
from trackperm.tables.labels import References, with_labels
from trackperm.tables.panics import panics_unprinted
from trackperm.tables.registry import detect_format
from trackperm.tables.remote import is_remote, read_remote, shown_locator
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.spark_tables import is_spark_table
from trackperm.tables.systems import of_system
from trackperm.tables.table import ExampleTable, require_plain_names

__all__ = [
    "References",
    "Source",
    "SourceFile",
    "is_readable",
    "labelled",
    "read_examples",
    "split_part",
    "tables_in_parts",
]

_TEXT = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")
_BINARY = (".parquet", ".arrow", ".feather", ".npz", ".eval")


def is_readable(name: str) -> bool:
    """Whether a file may hold predictions, judged only by the suffix of its name.

    Text files may be compressed by gzip, such as ``predictions.csv.gz``.
    """
    path = PurePosixPath(name.lower())
    return path.suffix in (*_TEXT, *_BINARY) or (
        path.suffix == ".gz" and path.with_suffix("").suffix in _TEXT
    )


def split_part(locator: str) -> tuple[Path | str, str | None]:
    """Split ``FILE::PART`` into file and part; a leading ``~/`` is the home directory.

    If a file has the whole text as its name, the part is None. If there are several ``::``, the part begins
    after the first that follows the name of an existing file. A URL is returned as text, and ends at the
    first ``::``. A table of Spark is returned as text too, and has no part. Raise SourceError if the text
    does not name a file.
    """
    if is_spark_table(locator):
        return locator, None
    if is_remote(locator):
        url, colons, part = locator.partition("::")
        return (url, part) if colons and is_remote(url) and part else (locator, None)
    places = [match.start() for match in re.finditer("::", locator) if match.end() < len(locator)]
    splits = [(locator[:place], locator[place + 2 :]) for place in places if place]
    whole = _expanded(locator)
    if not locator.strip() or (places and not splits and not whole.exists()):
        raise SourceError(
            f"{locator!r} is not the name of a file", hint="a run is `FILE`, `FILE::PART` or `mlflow:RUN`."
        )
    if whole.exists() or not splits:
        return whole, None
    path, part = next((split for split in splits if _expanded(split[0]).exists()), splits[0])
    return _expanded(path), part


def _expanded(path: str) -> Path:
    return Path(path).expanduser() if path.startswith("~/") else Path(path)


def read_examples(
    path: Path | str,
    origin: str | None = None,
    *,
    part: str | None = None,
    references: References | None = None,
) -> ExampleTable:
    """Read the per-example table in a file.

    Parameters
    ----------
    path : Path, or str
        A file of any of the formats in :mod:`trackperm.tables.registry`, or the URL of a table, or
        ``spark:TABLE``.
    origin : str, optional
        Name of the table in messages; by default the path.
    part : str, optional
        Part of the file, as the format defines it, such as a filter or a scorer. If the format defines no
        parts, it is the column of one system among several.
    references : References, optional
        Reference answers from another place.

    Raises
    ------
    SourceError
        If the file does not exist or does not hold a table, or the reference answers do not belong to it.
    """
    if isinstance(path, str):
        table = read_remote(path, path if origin is None else origin)
        require_plain_names(table)
        table = table if part is None else of_system(table, part)
        return table if references is None else labelled(table, references)
    called = printable(path if origin is None else origin)
    try:
        file = SourceFile.opened(path, origin, part)
        with panics_unprinted():
            source = _source(file)
            if source.needs_references:
                file.references = _references(file, source, references)
            table = file.keep_for(source.read(file))
            require_plain_names(table)
    except StorageError:
        raise
    except OSError as error:
        raise SourceError(f"`{called}` cannot be read: {error.strerror or error}") from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise SourceError(
            f"`{called}` cannot be read: {error}",
            hint="was it written completely, in the format that its name suggests?",
        ) from error
    if part is not None and source.part is None:
        table = of_system(table, part)
    return table if references is None or source.needs_references else labelled(table, references)


def labelled(table: ExampleTable, references: References) -> ExampleTable:
    """Read reference answers and add them, as :func:`~trackperm.tables.labels.with_labels` does."""
    answers = (
        read_examples(references.path, part=references.part) if references.table is None else references.table
    )
    return with_labels(
        table,
        answers,
        references.id,
        references.label,
        by_position=references.by_position,
        prediction=references.prediction,
    )


def _references(file: SourceFile, source: Source, references: References | None) -> SourceFile:
    if references is None:
        raise SourceError(
            f"`{file.origin}` ({source.title}) needs reference answers to make a table",
            hint="`--labels FILE` names their file.",
        )
    if isinstance(references.path, str) or references.table is not None:
        raise SourceError(
            f"`{file.origin}` ({source.title}) needs its reference answers in a file of their own",
            hint=f"copy `{shown_locator(str(references.path))}` to a file.",
        )
    answers = SourceFile.opened(references.path, part=references.part)
    _require_file(answers)
    return answers


def _source(file: SourceFile) -> Source:
    _require_file(file)
    return detect_format(file)


def _like(path: Path) -> str:
    """Ask about the file with the most similar name in the same folder, if there is one."""
    try:
        names = [printable(each.name) for each in path.parent.iterdir()]
    except OSError:
        return ""
    return did_you_mean(path.name, names)


def _require_file(file: SourceFile) -> None:
    if not file.path.exists():
        run = "" if file.path.suffix else f"a run of a tracker is written as `mlflow:{file.origin}`."
        hint = f"{run}{_like(file.path)}".strip()
        raise SourceError(f"`{file.origin}` does not exist", hint=hint or None)
    if file.path.is_file() and not file.path.stat().st_size:
        raise SourceError(f"`{file.origin}` is empty")
