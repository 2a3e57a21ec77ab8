"""Runs that are in no tracker: files, URLs and tables of Spark."""

from __future__ import annotations

from trackperm.tables import References, read_examples, split_part
from trackperm.tables.table import ExampleTable


def read_file(locator: str, references: References | None = None) -> ExampleTable:
    """Read the table at ``FILE``, ``FILE::PART`` (one system, filter or scorer in it) or ``spark:TABLE``.

    Raise SourceError if the file does not exist or is not a table.
    """
    path, part = split_part(locator)
    origin = locator if part is None else locator.removesuffix(f"::{part}")
    return read_examples(path, origin, part=part, references=references)
