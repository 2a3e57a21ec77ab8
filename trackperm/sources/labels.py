"""Reference answers that lie in a file of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.documents import listed
from trackperm.errors import InputTypeError, SourceError
from trackperm.tables import ExampleTable, typed_columns


@dataclass(frozen=True)
class Gold:
    """Where reference answers lie, and how they are found.

    Attributes
    ----------
    path : Path, or str
        Their file, or a URL.
    part : str or None
        Which part of it.
    id, label : str
        Names of the columns in the predictions.
    by_position : bool
        Whether rows belong together in the order in which they stand.
    prediction : str
        Name of the column of predictions.
    """

    path: Path | str
    part: str | None = None
    id: str = "id"
    label: str = "label"
    by_position: bool = False
    prediction: str = "prediction"


def with_labels(
    table: ExampleTable,
    gold: ExampleTable,
    id_: str = "id",
    label: str = "label",
    *,
    by_position: bool = False,
    prediction: str = "prediction",
) -> ExampleTable:
    """Add the reference answers of every example, and the examples that a run has left out.

    Where some questions have no answer, so that their labels are empty, an empty field of an untyped table
    is the answer that there is none, and becomes the empty text.

    Parameters
    ----------
    table : ExampleTable
        Predictions.
    gold : ExampleTable
        Reference answers: its column `label`, or ``label``, or ``prediction``.
    id_, label : str
        Names of both columns in `table`; in `gold` they may have these names or ``id`` and ``label``.
    by_position : bool
        Whether rows belong together in the order in which they stand.
    prediction : str
        Name of the column of predictions in `table`.

    Returns
    -------
    ExampleTable
        With a row for every example of `gold`: one without a prediction has nulls.

    Raises
    ------
    SourceError
        If a column is missing, an id repeats in `gold`, predictions are for examples that `gold` lacks, the
        inputs are not the same, or rows that belong together by position are not equally many.
    """
    answers = _renamed(gold, {label: (label, "label", "prediction"), id_: (id_, "id")}, by_position, id_)
    answers = replace(
        answers, frame=answers.frame.select([n for n in answers.columns if n in (id_, label, *gold.identity)])
    )
    own = table.frame.drop([label] if label in table.columns else [])
    table = _with_empty_answers(replace(table, frame=own), answers.frame.get_column(label), prediction)
    shared = [name for name in gold.identity if name in own.columns and name != id_]
    if by_position:
        _require_same_length(table, gold)
        return _beside(table, answers, shared)
    if id_ not in own.columns:
        raise SourceError(
            f"`{table.origin}` has no column `{id_}` to find its labels by; it has {listed(own.columns)}",
            hint="`--id NAME` names the column of ids; `--by-position` takes rows as they stand.",
        )
    return _by_id(table, answers, id_, shared)


def _renamed(
    gold: ExampleTable, wanted: dict[str, Sequence[str]], by_position: bool, id_: str
) -> ExampleTable:
    frame = gold.frame
    for name, candidates in wanted.items():
        if name == id_ and by_position:
            continue
        found = next((candidate for candidate in candidates if candidate in frame.columns), None)
        if found is None:
            raise SourceError(
                f"`{gold.origin}` has no column {' or '.join(f'`{c}`' for c in dict.fromkeys(candidates))};"
                f" it has {listed(frame.columns)}",
                hint="reference answers have columns `id` and `label`, or those of `--id` and `--label`.",
            )
        if found != name:
            frame = frame.drop([name] if name in frame.columns else []).rename({found: name})
    return replace(gold, frame=frame)


def _with_empty_answers(table: ExampleTable, labels: nw.Series[Any], prediction: str) -> ExampleTable:
    if not table.untyped or prediction not in table.columns:
        return table
    accepted = labels.to_polars()
    is_empty = accepted.list.len() == 0 if isinstance(accepted.dtype, pl.List) else accepted == ""
    n_empty = table.frame.get_column(prediction).null_count()
    if not n_empty or not is_empty.any():
        return table
    filled = table.frame.with_columns(nw.col(prediction).fill_null(""))
    note = f"{n_empty} empty fields of `{prediction}` are empty answers, as there are labels that are empty"
    return replace(table, frame=filled, notes=(*table.notes, note))


def _require_same_length(table: ExampleTable, gold: ExampleTable) -> None:
    if len(table) != len(gold):
        raise SourceError(
            f"`{table.origin}` has {len(table)} examples and `{gold.origin}` has {len(gold)} labels:"
            " they cannot be put together by position",
            hint="`--id NAME` names a column that identifies the examples.",
        )


def _beside(table: ExampleTable, answers: ExampleTable, shared: list[str]) -> ExampleTable:
    _require_same_inputs(table, answers, table.frame, answers.frame, shared, None)
    added = [name for name in answers.columns if name not in table.columns]
    columns = [*table.frame.iter_columns(), *(answers.frame.get_column(name) for name in added)]
    frame = pl.DataFrame([column.to_polars() for column in columns])
    return replace(table, frame=nw.from_native(frame, eager_only=True))


def _by_id(table: ExampleTable, answers: ExampleTable, id_: str, shared: list[str]) -> ExampleTable:
    try:
        keyed = typed_columns(table, answers, [id_], text=[id_])[:2]
    except InputTypeError as error:
        raise SourceError(error.message, hint=error.hint) from error
    predictions, gold = (
        _polars(side).with_columns(keys.frame.get_column(id_).to_polars().alias(id_))
        for side, keys in zip((table, answers), keyed, strict=True)
    )
    if gold[id_].has_nulls() or gold[id_].is_duplicated().any():
        twice = gold.filter(gold[id_].is_duplicated() | gold[id_].is_null())[id_].head(5).to_list()
        raise SourceError(
            f"ids of `{answers.origin}` are missing or repeat (first: {', '.join(map(repr, twice))})",
            hint="every reference answer has an id of its own.",
        )
    strangers = predictions.filter(~predictions[id_].is_in(gold[id_].implode()))
    if len(strangers):
        raise SourceError(
            f"`{answers.origin}` has no label for {len(strangers)} of {len(predictions)} examples of"
            f" `{table.origin}` (first: {', '.join(map(repr, strangers[id_].head(5).to_list()))})",
            hint="labels and predictions have to be of the same data.",
        )
    matched = predictions.select(id_).join(gold, on=id_, how="left", maintain_order="left")
    _require_same_inputs(
        table,
        answers,
        nw.from_native(predictions, eager_only=True),
        nw.from_native(matched, eager_only=True),
        shared,
        id_,
    )
    joined = gold.join(predictions.drop(shared), on=id_, how="left", maintain_order="left")
    order = [name for name in (*predictions.columns, *gold.columns) if name in joined.columns]
    frame = joined.select(list(dict.fromkeys(order)))
    return replace(table, frame=nw.from_native(frame, eager_only=True))


def _polars(table: ExampleTable) -> pl.DataFrame:
    return pl.DataFrame([column.to_polars() for column in table.frame.iter_columns()])


def _require_same_inputs(
    table: ExampleTable,
    gold: ExampleTable,
    predictions: nw.DataFrame[Any],
    answers: nw.DataFrame[Any],
    shared: list[str],
    id_: str | None,
) -> None:
    for name in shared:
        differ = predictions.get_column(name).to_polars() != answers.get_column(name).to_polars()
        if differ.any():
            row = differ.arg_true()[0]
            place = f"row {row}" if id_ is None else f"example {predictions.get_column(id_).to_list()[row]!r}"
            raise SourceError(
                f"`{name}` differs between `{table.origin}` and its labels `{gold.origin}` in"
                f" {differ.sum()} of {len(predictions)} examples, first in {place}",
                hint="labels and predictions have to be of the same data, split into the same units.",
            )
