"""Detection of columns that come with the data set: their values are the same in all runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from trackperm.tables.columns.names import IDS, INPUTS, names_id
from trackperm.tables.lazy.table import COUNT
from trackperm.tables.table import ExampleTable, shared_columns

_BLOCK = 100_000
"""Number of first rows that are compared."""

_FIRST = 10_000
"""Number of first rows that are compared for a hint, in many columns."""


def is_of_data(tables: Sequence[ExampleTable], name: str, label: str) -> bool:
    """Whether a column has the same value for each example in all of several runs; false for one run.

    Rows belong together if they agree in the label and in the ids and inputs that all runs share.
    """
    if all(table is tables[0] for table in tables):
        return False
    keys = [key for key in shared_columns(tables) if key in (label, *IDS, *INPUTS) or names_id(key)]
    return _are_same(tables, [*(key for key in keys if _are_same(tables, [key])), name])


def are_same(tables: Sequence[ExampleTable], name: str) -> bool:
    """Whether all runs have the same values of a column, in any order."""
    return _are_same(tables, [name])


def matched_rows(
    tables: Sequence[ExampleTable], names: Sequence[str]
) -> list[tuple[tuple[str, ...], ...]] | None:
    """Return the values of some columns as text, a row of each run for each example; None without matches.

    Rows belong together if they agree in the ids and inputs that all runs share, or else by their position.
    """
    keys = [key for key in shared_columns(tables) if key in (*IDS, *INPUTS) or names_id(key)]
    keys = [key for key in keys if key not in names and _are_same(tables, [key])]
    found = [_values(table.head(_BLOCK), [*keys, *names]) for table in tables]
    if len({*map(len, found)}) > 1:
        return None
    n = len(keys)
    if any(row[:n] != other[:n] for rows in found[1:] for row, other in zip(found[0], rows, strict=True)):
        if any(len({row[:n] for row in rows}) < len(rows) for rows in found):
            return None
        found = [sorted(rows) for rows in found]
        if any(row[:n] != other[:n] for rows in found[1:] for row, other in zip(found[0], rows, strict=True)):
            return None
    return list(zip(*([row[n:] for row in rows] for rows in found), strict=True))


def differing_columns(tables: Sequence[ExampleTable], names: Sequence[str]) -> list[str]:
    """Return the columns that are not the same in the first rows of all runs; all `names` for equal runs.

    A column is the same if it has the same values in the same order, or beside an id or input that occurs
    once in a run.
    """
    heads = [table.head(_FIRST) for table in tables]
    shared = shared_columns(heads)
    keys = [key for key in shared if key in (*IDS, *INPUTS) or names_id(key)]
    keys = [key for key in keys if max(_rows(heads[0], [key]).values(), default=2) == 1]

    def differs(name: str) -> bool:
        first, *others = (_values(head, [name]) for head in heads)
        return any(other != first for other in others) and not any(
            _are_same(heads, [key, name]) for key in keys
        )

    found = [name for name in names if differs(name)]
    return found if found or any(map(differs, shared)) else [*names]


def _are_same(tables: Sequence[ExampleTable], names: Sequence[str]) -> bool:
    """Whether all runs have the same rows in some columns, in any order."""
    first, *others = tables
    rows = _rows(first, names)
    return all(_rows(table, names) == rows for table in others)


def _rows(table: ExampleTable, names: Sequence[str]) -> Counter[tuple[str, ...]]:
    if len(names) > 1 or (counts := table.head(_BLOCK).counts_of_few(names[0], _BLOCK)) is None:
        return Counter(_values(table, names))
    rows = Counter[tuple[str, ...]]()
    for value, n in zip(counts[names[0]].to_list(), counts[COUNT].to_list(), strict=True):
        rows[_plain(value),] += n
    return rows


def _values(table: ExampleTable, names: Sequence[str]) -> list[tuple[str, ...]]:
    frame = table.head(_BLOCK).only(dict.fromkeys(names)).frame
    return list(zip(*(map(_plain, frame[name].to_list()) for name in names), strict=True))


def _plain(value: object) -> str:
    """Return a value as text, which is the same for `4` and `4.0`, `True` and `"true"`."""
    text = str(value).lower()
    try:
        return repr(float(text))
    except ValueError:
        return text
