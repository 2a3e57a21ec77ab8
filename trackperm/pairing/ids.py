"""Validation of an id column of one run, by the same rules as in pairing."""

from __future__ import annotations

from trackperm.errors import InputError, PairingError, TrackpermError
from trackperm.messages import listed
from trackperm.pairing.checks.differences import (
    ids_of,
    require_distinct_ids,
    require_unique_ids,
    without_id,
)
from trackperm.pairing.columns.roles import require_id_types
from trackperm.pairing.engines.in_memory import InMemory
from trackperm.pairing.joined import has_beyond_ascii, keyed_run
from trackperm.tables.columns.names import ATTEMPT, PERHAPS_ATTEMPT
from trackperm.tables.table import ExampleTable, id_columns


def require_ids(table: ExampleTable, id_: str) -> None:
    """Refuse a table whose examples are not identified by `id_`: a column, or several separated by commas.

    Rows of one example that a column such as ``attempt`` distinguishes are accepted, as pairing does.

    Raises
    ------
    InputError
        If the table has no such column; the message lists the columns that could serve as id.
    PairingError
        If the table has no examples, or ids are null, repeated, neither integers nor text, or the same text
        in two Unicode normal forms.
    """
    if not len(table):
        raise PairingError(f"`{table.origin}` has no examples")
    ids = id_columns(id_, [table])
    if absent := [name for name in ids if name not in table.columns]:
        could = listed(name for name in table.columns if _identifies(table, name))
        raise InputError(
            f"`{table.origin}` has no column {listed(absent)}, only {listed(table.columns)}",
            hint=f"{could} could identify the examples: `--id NAME` names the column."
            if could
            else "no column identifies the examples: add the ids of the data set.",
        )
    _require(table, ids, id_)


def _require(table: ExampleTable, ids: tuple[str, ...], id_: str) -> None:
    engine = InMemory()
    (frame, _), types = engine.typed((table, table), ids, ids)
    require_id_types(ids, types)
    run = keyed_run(engine, frame, table, ids)
    found = ids_of(engine, run, ids)
    if found.without_id.n:
        raise PairingError(without_id(found, id_), hint="every example needs an id, which all runs share.")
    others = (name for name in table.columns if name not in ids)
    attempts = (name for name in others if ATTEMPT.fullmatch(name) or PERHAPS_ATTEMPT.fullmatch(name))
    if not found.repeated.n or not any(_identifies(table, *ids, name) for name in attempts):
        try:
            require_unique_ids([found], id_, [table])
        except PairingError as error:
            error.hint = (
                "a column such as `attempt` numbers the rows of one example, and"
                f" `--id {id_},NAME` names columns that identify an example together."
            )
            raise
    if has_beyond_ascii(engine, run):
        require_distinct_ids(engine, run, id_)


def _identifies(table: ExampleTable, *names: str) -> bool:
    """Whether columns identify the rows of a table together."""
    try:
        _require(table, names, ",".join(names))
    except TrackpermError:
        return False
    return True
