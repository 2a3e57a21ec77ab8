"""Columns that identify the examples of runs, and columns that number the attempts at an example."""

from __future__ import annotations

from collections.abc import Sequence

from trackperm.pairing.checks.rival_ids import better_id
from trackperm.pairing.columns.shared_values import have_same_values, have_values_of_one, share_values
from trackperm.tables.columns.names import (
    ATTEMPT,
    IDS,
    INPUTS,
    MEDIA,
    PERHAPS_ATTEMPT,
    TEXTS,
    names_id,
    names_rows,
    place_of_id,
    usual_spelling,
)
from trackperm.tables.columns.types import are_integers, may_be_ids
from trackperm.tables.table import ExampleTable, have, rows_repeat, shared_columns


def columns_of_examples(tables: Sequence[ExampleTable]) -> tuple[str, tuple[str, ...]]:
    """Return the column of ids that is used by default, and those that number the attempts at an example.

    The column of ids is ``id``, even if the runs lack it, where no other is clear.
    """
    id_ = identifying_column(tables)[0]
    return id_, attempt_columns(tables, [id_]) if have(tables, [id_]) else ()


def identifying_column(tables: Sequence[ExampleTable]) -> tuple[str, list[str]]:
    """Return the column that identifies the examples of all runs, with a note; ``id`` if none is clear.

    A column that numbers the rows of each run yields to ids or inputs that contradict it, and ids that no
    example has in all runs, such as those of calls, yield to inputs.
    """
    named = sorted(filter(names_id, shared_columns(tables)), key=place_of_id)
    of_rows = [name for name in named if names_rows(name)]
    others = [name for name in named if name not in of_rows]
    usual = (*(name for name in (*INPUTS, *MEDIA) if name not in TEXTS), *TEXTS)
    inputs = [name for name in usual if have(tables, [name])]
    is_only = (len(named) == 1 and not inputs) or len(tables) == 1
    found = next((name for name in others if _identifies(tables, name, is_only=is_only)), None)
    if found is not None:
        rivals = [name for name in others if name != found]
        if rivals and (better := better_id(tables, found, rivals)) is not None:
            return better, [f"id: column `{better}`; `{found}` numbers the rows of each run"]
        return found, [] if found == "id" else [f"id: column `{found}`"]
    numbers = [name for name in of_rows if _repeats_only_in_attempts(tables, name)]
    rows = next((name for name in numbers if not inputs or share_values(tables, name)), None)
    for name in inputs:
        if not _repeats_only_in_attempts(tables, name):
            continue
        repeats = rows_repeat(tables, [name], if_unknown=False)
        if (rows is None or _contradicts(tables, name, rows, repeats=repeats)) and _are_inputs(tables, name):
            return name, [
                f"id: column `{name}`" + ", the input, which is different in every example" * (not repeats)
            ]
    # Other ids have no value in common, which the pairing says.
    possible = (*numbers, *(name for name in others if _repeats_only_in_attempts(tables, name)))
    last = rows or next(iter(possible), None)
    return ("id", []) if last is None else (last, [f"id: column `{last}`"])


def _contradicts(tables: Sequence[ExampleTable], name: str, rows: str, *, repeats: bool) -> bool:
    """Whether an input, which may have a row for each attempt, tells that `rows` only numbers the rows."""
    if repeats:
        return not rows_repeat(tables, [rows], if_unknown=False)
    return better_id(tables, rows, [name]) is not None


def _identifies(tables: Sequence[ExampleTable], name: str, *, is_only: bool) -> bool:
    """Whether a column with the name of an id identifies the examples; ``id`` is meant to."""
    if name == "id":
        return True
    if not _repeats_only_in_attempts(tables, name):
        return False
    return is_only or usual_spelling(name) in IDS or share_values(tables, name)


def _repeats_only_in_attempts(tables: Sequence[ExampleTable], name: str) -> bool:
    return not rows_repeat(tables, [name], if_unknown=False) or bool(attempt_columns(tables, [name]))


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
