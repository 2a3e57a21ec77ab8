"""Hint that tells which columns identify the examples of runs, or why their rows are not examples."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from trackperm.pairing.columns.repeated_rows import index_levels, joint_id, repeated_rows, unnamed_id
from trackperm.pairing.columns.shared_values import agreeing_pair, share_values
from trackperm.tables.columns.names import INPUTS, MEDIA, TEXTS
from trackperm.tables.row_meaning import why_no_examples
from trackperm.tables.table import ExampleTable, rows_repeat, shared_columns

_INPUTS = {*INPUTS, *MEDIA} - {*TEXTS}


def id_hint(tables: Sequence[ExampleTable], *first: str) -> str | None:
    """Return the hint, without a full stop; None if no column is clear.

    The columns `first` are tried before others.
    """
    if (reason := why_no_examples(tables)) is not None:
        return reason
    if (joint := joint_id(tables, *first)) is not None:
        names = shlex.quote(",".join(joint))
        return (
            f"`{joint[1]}` has several rows of each value, as ids do that start anew in each `{joint[0]}`:"
            f" `--id {names}` identifies the examples by both columns"
        )
    if (repeated := repeated_rows(tables, *first)) is not None:
        return repeated.hint
    if (unnamed := unnamed_id(tables)) is not None:
        return (
            f"`--id {shlex.quote(unnamed)}` names the first column, which has no name in the file and a value"
            " of its own in each row, as an index of pandas or R has"
        )
    if levels := index_levels(tables):
        return (
            f"`--id {','.join(levels)}` names the levels of an index of pandas, which identify the examples"
            " together"
        )
    if (pair := agreeing_pair(tables)) is not None:
        names = shlex.quote(",".join(pair))
        return f"`{pair[0]}` and `{pair[1]}` identify the examples together: `--id {names}`"
    for name in shared_columns(tables):
        if name not in _INPUTS or rows_repeat(tables, [name], if_unknown=True):
            continue
        if share_values(tables, name):
            return (
                f"each run has a `{name}` that the other lacks: `--id {shlex.quote(name)}` pairs those that"
                " agree, if they are inputs"
            )
        if not first:
            return (
                f"no `{name}` is in both runs, so that it identifies no example: `--by-position` pairs rows,"
                " if they are in the same order"
            )
    return None
