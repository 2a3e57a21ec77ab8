"""Rows of predictions and of reference answers: which of them belong together.

They are matched by ids, or else by their order.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence

import narwhals as nw
import polars as pl

from trackperm.errors import InputTypeError, SourceError
from trackperm.messages import listed
from trackperm.tables.columns.names import (
    may_number_rows,
    names_clusters,
    names_individuals,
    names_input,
)
from trackperm.tables.columns.types import is_number, typed_columns
from trackperm.tables.columns.whole_numbers import with_like_whole_numbers
from trackperm.tables.named_frame import named_frame
from trackperm.tables.table import ExampleTable, rows_repeat, shared_columns

SHOWN = 5
"""Ids that an error shows."""

_MOST_INPUTS = 2**14
"""Most rows whose inputs are compared with those of the labels."""

_FEW_MOVED = 0.05
"""Share of inputs in other rows from which labels are those of other inputs."""


def require_same_length(table: ExampleTable, gold: ExampleTable) -> None:
    """Refuse labels without ids that are more or fewer than the predictions."""
    if len(table) != len(gold):
        raise SourceError(
            f"`{table.origin}` has {len(table):,} examples and `{gold.origin}` has {len(gold):,} labels;"
            " rows in the same order need equal numbers",
            hint="`--id NAME` names a column that identifies the examples.",
        )


def order_notes(table: ExampleTable, answers: ExampleTable, ids: list[str]) -> Iterator[str]:
    """Refuse ids that are in a different order in the labels; note ids that differ otherwise."""
    if not ids:
        return
    try:
        sides = [side.frame.to_polars() for side in typed_columns(table, answers, ids, text=ids)[:2]]
    except InputTypeError:
        return
    differ = pl.select(
        pl.any_horizontal(differing(*(side[name] for side in sides)) for name in ids)
    ).to_series()
    if not differ.any():
        return
    rows = [tuple(side.row(differ.arg_true()[0])) for side in sides]
    found = (
        f"{listed(ids)} of `{table.origin}` and of its labels `{answers.origin}` differ in"
        f" {differ.sum():,} of {len(differ):,} rows, first in row {differ.arg_true()[0]}:"
        f" {' and '.join(map(_shown, rows))}"
    )
    if sides[0].sort(ids).equals(sides[1].sort(ids)):
        raise SourceError(
            f"{found}; the rows are in different orders",
            hint=f"leave `--by-position` out, so that `--id {','.join(ids)}` matches them.",
        )
    yield f"look: {found}; check that the rows belong together"


def require_same_inputs(
    table: ExampleTable,
    gold: ExampleTable,
    answers: ExampleTable,
    keys: Sequence[str],
    roles: Collection[str],
) -> None:
    """Refuse `answers` to inputs that `gold` has in other rows, matched by `keys` or else by position.

    Inputs that `gold` lacks, such as those in other words, prove nothing, nor do columns of few values. Other
    ids prove something against numbers of rows alone.
    """
    if any(map(names_input, keys)):
        return
    may_be_numbers = all(may_number_rows(name) and is_number(name, (table, answers)) for name in keys)
    names = [
        name
        for name in shared_columns((table, gold))
        if name not in {*roles, *answers.columns, *table.unusable, *gold.unusable}
        and (names_input(name) or (may_be_numbers and (names_individuals(name) or names_clusters(name))))
        and not may_number_rows(name)
        and table.schema[name] == gold.schema[name]
        and (gold.schema[name] == nw.String or gold.schema[name].is_integer())
    ]
    if not names:
        return
    own = table.head(_MOST_INPUTS).only([*keys, *names])
    columns = [*polars_frame(answers).select(keys), *polars_frame(gold.only(names))]
    given = answers.with_rows(named_frame(columns))
    if keys:
        predictions, references = keyed(own, given, keys)
        matched = predictions.select(keys).join(
            references.unique(keys), on=keys, how="left", maintain_order="left"
        )
    else:
        predictions, references = polars_frame(own), polars_frame(given)
        matched = references.head(len(predictions))
    for name in names:
        differ = differing(predictions[name], matched[name])
        n_moved = int(predictions[name].filter(differ).is_in(references[name].implode()).sum())
        is_distinct = 2 * references[name].n_unique() >= len(references)
        if not is_distinct or n_moved < max(2, _FEW_MOVED * len(differ)):
            continue
        matches = not rows_repeat([gold], [name], if_unknown=True)
        option = f"`--id {shlex.quote(name)}` matches the labels by `{name}`"
        if not keys:
            option = f"{option}, without `--by-position`"
        elif not names_input(name):
            option = f"{option}; if {listed(keys)} is right, remove `{name}` from the labels"
        raise SourceError(
            f"`{name}` differs between `{table.origin}` and its labels `{gold.origin}` in {differ.sum():,}"
            f" of {len(differ):,} {'examples' if keys else 'rows'}, of which the labels have {n_moved:,} in"
            f" other rows; first in {place_of_row(predictions, keys, differ.arg_true()[0])}",
            hint=f"{option}."
            if matches
            else "the labels need the ids of the data set, by which `--id NAME` matches them.",
        )


def place_of_row(predictions: pl.DataFrame, keys: Sequence[str], row: int) -> str:
    """Return a row's example, or its number without `keys`, for messages."""
    return f"example {_shown(predictions.select(keys).row(row))}" if keys else f"row {row}"


def key_notes(
    table: ExampleTable, answers: ExampleTable, ids: Sequence[str], keys: Sequence[str]
) -> Iterator[str]:
    """Refuse `ids` that the predictions lack, or the labels all of them; note those that the labels lack."""
    lacking = [name for name in ids if name not in table.columns]
    if lacking:
        raise SourceError(
            f"`{table.origin}` lacks the column {listed(lacking)}, which identifies its labels; it has"
            f" {listed(table.columns)}",
            hint="leave `--id` out: `_id` of the labels is matched with `id`."
            if lacking == ["_id"] and "id" in table.columns
            else "`--id NAME` names the column of ids; `--by-position` matches rows by their order.",
        )
    if not keys:
        raise SourceError(
            f"`{answers.origin}` lacks the columns {listed(ids)}, which identify its labels; it has"
            f" {listed(answers.columns)}",
            hint="the labels need at least one of the columns of ids.",
        )
    if len(keys) < len(ids):
        yield f"its labels `{answers.origin}` were matched by {listed(keys)} alone; they lack other ids"


def keyed(
    table: ExampleTable, answers: ExampleTable, keys: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return both tables with their ids converted to one type."""
    table, answers = with_like_whole_numbers((table, answers), keys)
    try:
        typed = typed_columns(table, answers, keys, text=keys)[:2]
    except InputTypeError as error:
        raise SourceError(error.message, hint=error.hint) from error
    predictions, references = (
        polars_frame(side).with_columns(column.to_polars() for column in ids.frame.iter_columns())
        for side, ids in zip((table, answers), typed, strict=True)
    )
    return predictions, references


def require_known(
    predictions: pl.DataFrame,
    references: pl.DataFrame,
    table: ExampleTable,
    answers: ExampleTable,
    keys: Sequence[str],
) -> None:
    """Refuse ids of labels that are missing or repeat, and predictions of which the labels have no id."""
    ids = references.select(keys)
    is_bad = ids.is_duplicated() | _lacks(ids)
    if is_bad.any():
        raise SourceError(
            f"ids of `{answers.origin}` are missing or repeated (first: {_first(ids.filter(is_bad))})",
            hint="every reference answer needs an id of its own.",
        )
    strangers = predictions.select(keys).filter(~_lacks(predictions.select(keys)))
    strangers = strangers.join(ids, on=keys, how="anti", maintain_order="left")
    if len(strangers):
        raise SourceError(
            f"`{answers.origin}` has no label for {len(strangers):,} of {len(predictions):,} examples of"
            f" `{table.origin}` (first: {_first(strangers)})",
            hint="labels and predictions have to be of the same data.",
        )


def polars_frame(table: ExampleTable) -> pl.DataFrame:
    """Return all columns of a table."""
    return named_frame(column.to_polars() for column in table.frame.iter_columns())


def _lacks(ids: pl.DataFrame) -> pl.Series:
    """Whether any id of a row is null, by row."""
    return ids.select(pl.any_horizontal(pl.all().is_null()).alias("lacks")).to_series()


def differing(first: pl.Series, second: pl.Series) -> pl.Series:
    """Whether both sides have values that differ, by row."""
    return (first != second).fill_null(False) & first.is_not_null() & second.is_not_null()


def _first(ids: pl.DataFrame) -> str:
    return ", ".join(map(_shown, ids.head(SHOWN).rows()))


def _shown(id_: tuple[object, ...]) -> str:
    return ", ".join(map(repr, id_))
