"""Untyped columns that look like numbers but are compared as text.

``1.10`` and ``1.1`` are the same number, but different versions of a program. If a file without types has
both in one column, it distinguishes them: the column stays text, provided that the statistic only tests its
values for equality. It is read as numbers if the statistic computes with it, or if the other run has types.
Programs that write numbers, such as pandas, write each number in one way within a column. A prediction
``1.0`` in one column and a label ``1`` in another column, or in the other run, are therefore still numbers.

Integer labels beside predictions of which some are words, such as ``N/A``, are compared as text, if no
prediction is a number that is written in another way than an integer, and some are integers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from trackperm.errors import InputError, InputTypeError
from trackperm.messages import listed
from trackperm.statistic import Statistic
from trackperm.statistic.count_expressions import count_expressions
from trackperm.statistic.definition import CLASS_COLUMN
from trackperm.statistic.expressions.types import literal_type
from trackperm.tables.columns.types import ColumnType, numbers_in_two_ways, typed_columns
from trackperm.tables.table import ExampleTable

NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
"""Pattern of texts that are numbers."""

_INTEGER = r"^(0|-?[1-9]\d*)$"
_MOST = 8  # columns up to which all sets are tried: 256 sets at most


def text_columns(
    tables: tuple[ExampleTable, ExampleTable],
    statistic: Statistic,
    names: Sequence[str],
    texts: Collection[str],
) -> tuple[tuple[str, ...], list[str]]:
    """Find the columns, among `names`, of numbers that are compared as text; `texts` are text in any case.

    It returns the columns in which a file writes a number in two ways, the columns that the statistic
    compares with these, and a note for each number; or else integers that it compares with words.
    """
    open_ = [name for name in names if name not in texts]
    found = {name: written for name in open_ if (written := numbers_in_two_ways(*tables, name)) is not None}
    free = [name for name in open_ if all(table.is_untyped(name) for table in tables)]
    if not free:
        return (), []
    try:
        types = typed_columns(*tables, names, text=texts)[2]
    except InputTypeError:  # pairing raises it again when it reads the columns
        return (), []
    if not found:
        return _beside_words(tables, free, types, statistic)
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


def _beside_words(
    tables: tuple[ExampleTable, ExampleTable],
    free: Sequence[str],
    types: Mapping[str, ColumnType],
    statistic: Statistic,
) -> tuple[tuple[str, ...], list[str]]:
    """Return the integer columns that the statistic can only compare as text, and a note."""
    integers = [name for name in free if types[name] is ColumnType.INTEGER][:_MOST]
    words = [name for name in free if types[name] is ColumnType.TEXT]
    if not integers or not words or _counts_with(statistic, types):
        return (), []
    sets = (chosen for size in range(1, len(integers) + 1) for chosen in combinations(integers, size))
    fitting = (
        chosen
        for chosen in sets
        if _counts_with(statistic, {**types, **dict.fromkeys(chosen, ColumnType.TEXT)})
    )
    chosen = next(fitting, ())
    for table in tables:
        columns = {name: table.only([name]).polars_column(name) for name in (*words, *chosen)}
        for values in columns.values():
            if (values.str.contains(NUMBER) & ~values.str.contains(_INTEGER)).any():
                return (), []
        integers_as_text = {value for name in chosen for value in columns[name].unique()} - {None}
        if any(integers_as_text.isdisjoint(columns[name].unique()) for name in words):
            return (), []  # a run that writes its predictions in another way is wrong everywhere
    verb = "is" if len(chosen) == 1 else "are"
    return chosen, [f"{listed(chosen)} {verb} compared as text, as is {listed(words)}"] if chosen else []


def _with(
    name: str,
    chosen: tuple[str, ...],
    free: Sequence[str],
    types: Mapping[str, ColumnType],
    statistic: Statistic,
) -> tuple[str, ...]:
    """Return the smallest set of columns, from `free`, with which `name` can be text; or an empty set."""
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
    """Whether the statistic accepts columns of these types; it cannot order text or compute with it."""
    of_classes = {}
    if statistic.class_column is not None:
        of_classes[CLASS_COLUMN] = types[statistic.columns[statistic.class_column]]
    elif statistic.classes:
        of_classes[CLASS_COLUMN] = literal_type(statistic.classes[0])
    try:
        count_expressions(statistic, {**types, **of_classes})
    except InputError:
        return False
    return True
