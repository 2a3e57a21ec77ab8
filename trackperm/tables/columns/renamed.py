"""Renaming of columns, for two runs whose columns have different names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from trackperm.errors import InputError
from trackperm.messages import did_you_mean, listed
from trackperm.tables.columns.names import usual_spelling
from trackperm.tables.lazy.table import LazyTable
from trackperm.tables.table import ExampleTable


def like_names(table: ExampleTable, other: ExampleTable) -> dict[str, str]:
    """Return the columns that `other` spells differently, by their names in `table`.

    Spellings that a table has twice are left out.
    """
    own, others = (by_spelling(each.columns) for each in (table, other))
    pairs = ((own[spelt], others[spelt]) for spelt in own if spelt in others)
    return {a[0]: b[0] for a, b in pairs if len(a) == len(b) == 1 and a != b}


def by_spelling(columns: Iterable[str]) -> dict[str, list[str]]:
    """Return columns by the usual spelling of their names."""
    found: dict[str, list[str]] = {}
    for name in columns:
        found.setdefault(usual_spelling(name), []).append(name)
    return found


def with_renamed_columns(table: ExampleTable, columns: Mapping[str, str], option: str) -> ExampleTable:
    """Rename columns; those whose names are taken are left out.

    `columns` gives the old name of every new one, and `option` is the name of the option in messages.

    Raises
    ------
    InputError
        If the table lacks a column, or one column has two new names.
    """
    known = table.columns
    for new, old in columns.items():
        if old not in known:
            raise InputError(
                f"`--{option} {new}={old}`: `{table.origin}` has no column `{old}`; it has {listed(known)}",
                hint=f"`--{option} NAME=COLUMN` gives the name, then this run's column."
                f"{did_you_mean(old, known)}",
            )
    names = {old: new for new, old in columns.items()}
    if len(names) < len(columns):
        raise InputError(f"`--{option}` gives one column of `{table.origin}` two names")
    kept = [name for name in known if name in names or name not in columns]
    after = {name: names.get(name, name) for name in kept}
    if isinstance(table.data, LazyTable):
        data = table.data.renamed(after)
    else:
        data = table.data.select(kept).rename(after)
    return replace(
        table,
        data=data,
        untyped=frozenset(after[name] for name in kept if table.is_untyped(name)),
        unusable={after[name]: why for name, why in table.unusable.items() if name in after},
        identity=tuple(after[name] for name in table.identity if name in after),
        metrics={metric: after[name] for metric, name in table.metrics.items() if name in after},
        greater_is_better={
            after[name]: is_greater for name, is_greater in table.greater_is_better.items() if name in after
        },
    )
