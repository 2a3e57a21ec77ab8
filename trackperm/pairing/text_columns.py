"""Columns of numbers that are text: of formats without types, where one number is written in two ways.

``1.10`` and ``1.1`` are two versions of a program and one number, and both would be the same class. A file
that has both in one column tells them apart, so that they stay text where the statistic only asks whether
values are equal. Where it computes with them they are numbers, and so they are beside a run that knows its
types. Writers of numbers, such as pandas, write each number in one way; that ``1.0`` is predicted in one
column and ``1`` is the label in another, or in the other run, makes no text of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from trackperm.errors import InputError, InputTypeError
from trackperm.messages import listed
from trackperm.statistic import Statistic
from trackperm.statistic.definition import CLASS_COLUMN
from trackperm.statistic.expressions.types import literal_type
from trackperm.tables.column_types import ColumnType, numbers_in_two_ways, typed_columns
from trackperm.tables.table import ExampleTable

_MOST = 8  # columns of which all sets are tried


def text_columns(
    tables: tuple[ExampleTable, ExampleTable],
    statistic: Statistic,
    names: Sequence[str],
    texts: Collection[str],
) -> tuple[tuple[str, ...], list[str]]:
    """Find the columns of numbers that are compared as text.

    Parameters
    ----------
    tables : (ExampleTable, ExampleTable)
        Baseline and candidate.
    statistic : Statistic
        Reads the columns.
    names : sequence of str
        Columns of both that are read, but ids.
    texts : collection of str
        Those among `names` that are text in any case.

    Returns
    -------
    columns : tuple of str
        With a number that a file writes in two ways, and those that the statistic compares with them.
    notes : list of str
        What was found, for each of the former.
    """
    open_ = [name for name in names if name not in texts]
    found = {name: written for name in open_ if (written := numbers_in_two_ways(*tables, name)) is not None}
    if not found:
        return (), []
    try:
        types = typed_columns(*tables, names, text=texts)[2]
    except InputTypeError:  # which is said by whoever reads them next
        return (), []
    free = [name for name in open_ if all(table.is_untyped(name) for table in tables)]
    chosen: tuple[str, ...] = ()
    for name in found:
        chosen = _with(name, chosen, free, types, statistic) or chosen
    notes = [
        f"`{name}` of `{origin}` has `{first}` and `{second}`, the same number written in two ways:"
        f" {listed(chosen)} {'is' if len(chosen) == 1 else 'are'} compared as text"
        for name, (origin, first, second) in found.items()
        if name in chosen
    ]
    return chosen, notes


def _with(
    name: str,
    chosen: tuple[str, ...],
    free: Sequence[str],
    types: Mapping[str, ColumnType],
    statistic: Statistic,
) -> tuple[str, ...]:
    """Return the fewest of the columns `free` that can be text together with `name`; nothing if it cannot."""
    own = dict.fromkeys((*chosen, name))
    others = [other for other in free if other not in own]
    sizes = range(len(others) + 1) if len(others) <= _MOST else (0, 1, len(others))
    return next(
        (
            (*own, *more)
            for size in sizes
            for more in combinations(others, size)
            if _counts_with(statistic, {**types, **dict.fromkeys((*own, *more), ColumnType.TEXT)})
        ),
        (),
    )


def _counts_with(statistic: Statistic, types: Mapping[str, ColumnType]) -> bool:
    """Whether the statistic takes columns of these types: text has no order, and is in no arithmetic."""
    of_classes = {}
    if statistic.class_column is not None:
        of_classes[CLASS_COLUMN] = types[statistic.columns[statistic.class_column]]
    elif statistic.classes:
        of_classes[CLASS_COLUMN] = literal_type(statistic.classes[0])
    try:
        statistic.counts({**types, **of_classes})
    except InputError:
        return False
    return True
