"""Columns that number the attempts at an example: epochs, samples, trials, seeds."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from trackperm.errors import InputTypeError
from trackperm.tables.table import ExampleTable

_ATTEMPT = re.compile(
    r"(train_)?(epoch|sample|trial|repeat|repetition|replicate|rollout|seed|attempt)"
    r"([ _.-]?(id|idx|index|number|num|no|nr))?",
    re.IGNORECASE,
)


def numbers_attempts(name: str) -> bool:
    """Whether a column has a usual name for the number of an attempt, such as ``epoch``."""
    return _ATTEMPT.fullmatch(name) is not None


def attempt_columns(tables: Collection[ExampleTable], ids: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of all `tables` that number attempts; the columns `ids` identify examples.

    Return no columns if every id has one row, or if the columns do not distinguish the rows of an id.
    """
    first, *others = tables
    names = tuple(
        name
        for name in first.columns
        if numbers_attempts(name) and name not in ids and all(name in table.columns for table in others)
    )
    if not names or not any(repeats(table, ids) for table in tables):
        return ()
    return () if any(repeats(table, (*ids, *names)) for table in tables) else names


def repeats(table: ExampleTable, names: Sequence[str]) -> bool:
    """Whether two rows have the same values in all columns `names`; false if these cannot be read."""
    try:
        return table.repeats(names)
    except InputTypeError:
        return False
