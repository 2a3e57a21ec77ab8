"""Columns that identify the examples of runs, and columns that number the attempts at an example."""

from __future__ import annotations

from collections.abc import Sequence

from trackperm.pairing.columns.shared_values import have_same_values, have_values_of_one
from trackperm.tables.columns.names import ATTEMPT, IDS, INPUTS, MEDIA, PERHAPS_ATTEMPT, TEXTS, names_id
from trackperm.tables.columns.types import are_integers, may_be_ids
from trackperm.tables.table import ExampleTable, have, rows_repeat, shared_columns


def columns_of_examples(tables: Sequence[ExampleTable]) -> tuple[str, tuple[str, ...]]:
    """Return the column of ids that is used by default, and those that number the attempts at an example.

    The column of ids is ``id``, even if the runs lack it, where no other is clear.
    """
    id_ = "id" if have(tables, ["id"]) else identifying_column(tables)[0]
    return id_, attempt_columns(tables, [id_]) if have(tables, [id_]) else ()


def identifying_column(tables: Sequence[ExampleTable]) -> tuple[str, list[str]]:
    """Return the column that identifies the examples of all runs, with a note; ``id`` if none is clear."""
    named = [name for name in shared_columns(tables) if names_id(name)]
    named.sort(key=lambda name: IDS.index(name.lower()) if name.lower() in IDS else len(IDS))
    inputs = [name for name in (*INPUTS, *MEDIA) if name not in TEXTS] + [*TEXTS]
    for name in (*named, *(name for name in inputs if name not in named and have(tables, [name]))):
        is_input, repeats = name in inputs, rows_repeat(tables, [name], if_unknown=False)
        if (repeats and not attempt_columns(tables, [name])) or (is_input and not _are_inputs(tables, name)):
            continue
        is_different = is_input and not repeats
        return name, [
            f"id: column `{name}`" + ", the input, which is different in every example" * is_different
        ]
    return "id", []


def _are_inputs(tables: Sequence[ExampleTable], name: str) -> bool:
    """Whether a column that has a name of inputs holds the inputs of the same examples in all runs.

    A run may lack some, but not texts and paths: a text that a run lacks may be what a recogniser read
    differently.
    """
    if name in MEDIA or name in TEXTS:
        return may_be_ids(name, tables) and have_same_values(tables, name)
    return have_values_of_one(tables, name)


def attempt_columns(tables: Sequence[ExampleTable], ids: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of all runs that number attempts; the columns `ids` identify examples.

    Return no columns if every id has one row, or if the columns do not distinguish the rows of an id.
    """
    shared = [name for name in shared_columns(tables) if name not in ids]
    named = tuple(name for name in shared if ATTEMPT.fullmatch(name))
    perhaps = tuple(name for name in shared if PERHAPS_ATTEMPT.fullmatch(name))
    if not (named or perhaps) or not rows_repeat(tables, ids, if_unknown=False):
        return ()
    either = (*named, *(name for name in perhaps if numbers_attempts(name, tables)))
    for names in filter(None, dict.fromkeys((named, either))):
        if not rows_repeat(tables, (*ids, *names), if_unknown=False):
            return names
    return ()


def numbers_attempts(name: str, tables: Sequence[ExampleTable]) -> bool:
    """Whether a column numbers the rows of an id, by its name; a ``run`` has to hold integers."""
    if ATTEMPT.fullmatch(name):
        return True
    return PERHAPS_ATTEMPT.fullmatch(name) is not None and are_integers(name, tables)
