"""Detection of columns that come with the data set: their values are the same in all runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from trackperm.tables.column_names import IDS, INPUTS, names_id
from trackperm.tables.table import ExampleTable, shared_columns

_BLOCK = 100_000
"""Number of first rows that are compared."""


def is_of_data(tables: Sequence[ExampleTable], name: str, label: str) -> bool:
    """Whether a column has the same value for each example in all of several runs; false for one run.

    Rows belong together if they agree in the label and in the ids and inputs that all runs share.
    """
    if all(table is tables[0] for table in tables):
        return False
    keys = [key for key in shared_columns(tables) if key in (label, *IDS, *INPUTS) or names_id(key)]
    return _are_same(tables, [*(key for key in keys if _are_same(tables, [key])), name])


def _are_same(tables: Sequence[ExampleTable], names: Sequence[str]) -> bool:
    """Whether all runs have the same rows in some columns, in any order."""
    first, *others = tables
    rows = _rows(first, names)
    return all(_rows(table, names) == rows for table in others)


def _rows(table: ExampleTable, names: Sequence[str]) -> Counter[tuple[str, ...]]:
    frame = table.head(_BLOCK).only(dict.fromkeys(names)).frame
    return Counter(zip(*(map(_plain, frame[name].to_list()) for name in names), strict=True))


def _plain(value: object) -> str:
    """Return a value as text, which is the same for `4` and `4.0`, `True` and `"true"`."""
    text = str(value).lower()
    try:
        return repr(float(text))
    except ValueError:
        return text
