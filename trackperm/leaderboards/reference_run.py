"""Reference run of a leaderboard, with which all others are paired: its choice, and its missing examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from trackperm.comparison import RunData
from trackperm.errors import InputError, InputTypeError, SpecError
from trackperm.pairing import Pairing
from trackperm.pairing.checks.label_values import require_predicted
from trackperm.pairing.columns.roles import PairedColumns
from trackperm.statistic import Statistic
from trackperm.tables.columns.types import typed_columns
from trackperm.tables.table import ExampleTable, id_columns

Failures = dict[int, InputError | InputTypeError | None]
"""Errors of incomplete runs, by index of the run; None for the reference run."""


def unseen_predictions(runs: Sequence[RunData], statistic: Statistic) -> Failures:
    """Find the runs whose predictions never occur among their labels."""
    failures: Failures = {}
    for i, run in enumerate(runs):
        try:
            require_predicted(run.table, statistic)
        except InputError as error:
            failures[i] = error
    return failures


def reference_run(
    runs: Sequence[RunData],
    order: Sequence[int],
    failures: Failures,
    paired: Callable[[ExampleTable, RunData], Pairing],
    *,
    is_baseline: bool,
) -> tuple[RunData, Failures]:
    """Choose the reference run; return it with the failures of runs that cannot be paired with themselves."""
    for i in order:
        try:
            if (unseen := failures.get(i)) is not None:
                raise unseen
            paired(runs[i].table, runs[i])
        except SpecError:
            raise
        except (InputError, InputTypeError) as error:
            if is_baseline:
                raise
            failures[i] = error
            continue
        return runs[i], {**failures, i: None}
    raise next(error for error in failures.values() if error is not None)


def most_agreed(runs: Sequence[RunData], statistic: Statistic, *, by_position: bool) -> list[int]:
    """Order runs by the number of runs with the same ids and labels, then by the number of examples.

    The ids and labels and the names break ties, so that the input order does not matter.
    """
    kinds: list[pl.DataFrame] = []
    of_run: list[int] = []
    for run in runs:
        content = _ids_and_labels(run.table, statistic, by_position=by_position)
        same = (i for i, kind in enumerate(kinds) if content is not None and kind.equals(content))
        kind = -1 if content is None else next(same, len(kinds))
        if content is not None and kind == len(kinds):
            kinds.append(content)
        of_run.append(kind)
    sizes = Counter(of_run)

    def place(i: int) -> tuple[bool, int, int, str, str, str]:
        name, origin = runs[i].name, runs[i].table.origin
        if of_run[i] < 0:
            return True, 0, 0, "", name, origin
        content = kinds[of_run[i]]
        tied = [k for k in sizes if k >= 0 and sizes[k] == sizes[of_run[i]] and len(kinds[k]) == len(content)]
        ends = str(content.head(1).rows() + content.tail(1).rows()) if len(tied) > 1 else ""
        return False, -sizes[of_run[i]], -len(content), ends, name, origin

    return sorted(range(len(runs)), key=place)


def _ids_and_labels(table: ExampleTable, statistic: Statistic, *, by_position: bool) -> pl.DataFrame | None:
    """Return the ids and labels, sorted by id; None if they cannot be read."""
    ids = () if by_position else id_columns(statistic.columns["id"], (table,))
    label = statistic.columns.get("label")
    names = [*ids, *([label] if label in table.columns else [])]
    if not set(ids) <= set(table.columns):
        return None
    if not names:
        return pl.DataFrame({"row": np.arange(len(table))})
    try:
        typed, _, _ = typed_columns(table, table, names, text=names)
    except InputTypeError:
        return None
    frame = pl.DataFrame(typed.frame.to_native())
    is_ordered = not ids or (len(ids) == 1 and frame[ids[0]].is_sorted())
    return frame if is_ordered else frame.sort(list(ids), maintain_order=True)


def with_all_examples(
    reference: RunData,
    runs: Sequence[RunData],
    statistic: Statistic,
    failures: Failures,
    paired: Callable[[ExampleTable, RunData], Pairing],
    *,
    by_position: bool,
) -> ExampleTable:
    """Add a row without a prediction to the reference run for every example that only another run has.

    A run that contradicts an earlier run on an example is marked as failed. Runs are processed in the order
    of their digests, so that the input order does not matter.
    """
    table, found = reference.table, []
    for i, run in enumerate(runs):
        if i in failures:
            continue
        try:
            found.append((paired(table, run).report.candidate_digest, i))
        except SpecError:
            raise
        except (InputError, InputTypeError) as error:
            failures[i] = error
    for _, i in sorted(found):
        try:
            paired(table, runs[i])
            table = extended(table, runs[i].table, statistic, by_position=by_position)
        except (InputError, InputTypeError) as error:
            failures[i] = error
    return table


def extended(
    table: ExampleTable, other: ExampleTable, statistic: Statistic, *, by_position: bool
) -> ExampleTable:
    """Add a row without a prediction to `table` for every example that only `other` has."""
    columns = PairedColumns.find(table, other, statistic, by_position, "wrong")
    if columns.id is None:
        return table
    names = list(dict.fromkeys((*columns.of_examples, *columns.used, *columns.identity)))
    typed, others, _ = typed_columns(table, other, names, text=(*columns.texts, *columns.ids))
    ids = list(columns.ids)
    own = typed.frame.to_polars()
    of_examples = dict.fromkeys((*columns.of_examples, *columns.identity))
    absent = others.frame.to_polars().drop_nulls(ids).join(own, on=ids, how="anti").select(*of_examples)
    if not len(absent):
        return table
    return typed.with_rows(pl.concat([own, absent], how="diagonal"))
