"""Runs that are in no tracker: files, URLs and tables of Spark."""

from __future__ import annotations

from trackperm.tables import Gold, read_examples, split_part
from trackperm.tables.table import ExampleTable


def read_file(locator: str, gold: Gold | None = None) -> ExampleTable:
    """Read the per-example table that a locator names, as :func:`~trackperm.tables.split_part` takes it.

    Parameters
    ----------
    locator : str
        ``FILE``, or ``FILE::PART`` for one system, filter or scorer of several, or ``spark:TABLE``.
    gold : Gold, optional
        Reference answers that lie elsewhere.

    Raises
    ------
    SourceError
        If there is no such file, or it does not hold a table.
    """
    path, part = split_part(locator)
    origin = locator if part is None else locator.removesuffix(f"::{part}")
    return read_examples(path, origin, part=part, gold=gold)
