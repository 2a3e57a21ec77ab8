"""Judges of answers in logs: columns that hold what a judge wrote, by their names and values."""

from __future__ import annotations

from collections.abc import Sequence

from trackperm.pairing.columns.shared_values import have_values_of_one
from trackperm.tables.columns.judge_names import names_judgement, names_reasons
from trackperm.tables.table import ExampleTable, rows_repeat, shared_columns


def has_judge(tables: Sequence[ExampleTable]) -> bool:
    """Whether a column says how answers were judged.

    A judge writes other comments on other answers: texts without repeats that are the same in both runs are
    inputs or part of the data, such as the comments that are classified.
    """
    names = sorted(filter(names_judgement, shared_columns(tables)), key=names_reasons)
    # Values are read last: a name that means no reasons decides without them.
    return any(not names_reasons(name) or not _is_of_data(tables, name) for name in names)


def _is_of_data(tables: Sequence[ExampleTable], name: str) -> bool:
    return not rows_repeat(tables, [name], if_unknown=True) and have_values_of_one(tables, name)
