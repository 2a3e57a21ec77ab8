"""Reference answers in a separate file, and their join with predictions."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from trackperm.errors import InputTypeError, SourceError
from trackperm.messages import listed
from trackperm.tables.columns.names import (
    IDS,
    PREDICTIONS,
    is_of_examples,
    may_number_rows,
    names_id,
    place_of_id,
    usual_spelling,
)
from trackperm.tables.columns.nested_fields import fields_of
from trackperm.tables.columns.types import typed_columns
from trackperm.tables.examples_in_one_row import examples_in_one_row
from trackperm.tables.first_line import example_as_header, has_values_as_header, look_of_example
from trackperm.tables.json_values import are_ids
from trackperm.tables.label_rows import (
    SHOWN,
    differing,
    key_notes,
    keyed,
    order_notes,
    place_of_row,
    polars_frame,
    require_known,
    require_same_inputs,
    require_same_length,
)
from trackperm.tables.lazy.labelled import Labelled
from trackperm.tables.lazy.table import LazyTable
from trackperm.tables.remote import shown_locator
from trackperm.tables.table import ExampleTable, have, id_columns, rows_repeat, shared_columns


@dataclass(frozen=True)
class References:
    """Location of reference answers, and the columns by which they are joined.

    Attributes
    ----------
    path : Path, or str
        Their file or URL; for a table in memory, its name in messages.
    part : str or None
        Part of the file.
    id, label : str
        Names of the columns in the predictions; several columns of ids are separated by commas.
    by_position : bool
        Whether rows are matched by their order.
    prediction : str
        Name of the column of predictions.
    table : ExampleTable or None
        The reference answers, if they are in memory already.
    """

    path: Path | str
    part: str | None = None
    id: str = "id"
    label: str = "label"
    by_position: bool = False
    prediction: str = "prediction"
    table: ExampleTable | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the file, without credentials of a URL, and the columns as JSON values.

        The file is None for a table in memory.
        """
        file = str(self.path) if self.part is None else f"{self.path}::{self.part}"
        return {
            "file": shown_locator(file) if self.table is None else None,
            "id": self.id,
            "label": self.label,
            "prediction": self.prediction,
            "by_position": self.by_position,
        }


class _Roles(NamedTuple):
    """Columns of labels and predictions, and the next step if a run has other labels of this name."""

    label: str
    prediction: str
    next_step: str


def with_labels(
    table: ExampleTable,
    gold: ExampleTable,
    id_: str = "id",
    label: str = "label",
    *,
    by_position: bool = False,
    prediction: str = "prediction",
) -> ExampleTable:
    """Add the reference answer of every example, and the examples that a run lacks.

    Columns of files and queries are read and joined when they are used; by position, all are read at once. If
    some labels are empty because their questions have no answer, an empty prediction in an untyped table
    means that the question has no answer, and becomes the empty text.

    `id_` and `label` are the names of both columns in `table`; in `gold` they may have these names or ``id``,
    ``_id`` and ``label``, and labels also the name of predictions: `prediction` or ``prediction``. Of several
    columns of ids, such as ``id,epoch``, `gold` needs at least one. Where one of them has no column ``id``,
    rows are matched by a column such as ``question_id`` that both have, with different values in `gold`. The
    result has the rows of `table`, followed by a row with nulls for every example that only `gold` has. Rows
    without an id are kept, without a label.

    Raise SourceError if a column is missing, an id repeats in `gold`, `gold` lacks examples that have
    predictions, or inputs or labels differ; or, by position, if the numbers of rows differ or their ids are
    in different orders.
    """
    gold = _with_rows_of_answers(gold)
    found_id = id_ if by_position else _shared_id(table, gold, id_)
    said = [] if found_id == id_ else [f"its labels `{gold.origin}` were matched by `{found_id}`"]
    said += [f"look: {look_of_example(each)}" for each in (table, gold) if has_values_as_header(each)]
    id_ = found_id
    ids = id_columns(id_, (table,))
    usual = ("label", prediction, "prediction")
    names = {label: (label, *usual)} | ({id_: (id_, "id", "_id")} if len(ids) == 1 else {})
    answers = _answers(gold, names, table, ids, required=(label,) if by_position else tuple(names))
    roles = _Roles(label, prediction, _next_step(table, gold, label, prediction, usual))
    keys = [name for name in ids if name in answers.columns]
    added = [name for name in answers.columns if name not in keys]
    if by_position:
        require_same_length(table, gold)
        require_same_inputs(table, gold, answers, [], (label, prediction))
        table = table.loaded()
        notes = [*said, *order_notes(table, answers, [name for name in keys if name in table.columns])]
        return _joined(table, answers, [], added, roles, notes)
    notes = [*said, *key_notes(table, answers, ids, keys)]
    require_same_inputs(table, gold, answers, keys, (label, prediction))
    if not isinstance(table.data, LazyTable):
        return _joined(table, answers, keys, added, roles, notes)

    def joined(wanted: Collection[str]) -> ExampleTable:
        used = {*keys, *added, prediction, *wanted}
        own = table.only([name for name in table.columns if name in used])
        return _joined(own, answers, keys, added, roles, notes)

    found = joined(())
    others = [name for name in table.columns if name not in found.columns]
    schema = {name: table.schema[name] for name in others} | dict(found.schema)
    order = dict.fromkeys(name for name in (*table.columns, *added) if name in schema)
    lazy = Labelled(
        lambda wanted: joined(wanted).frame.to_polars(),
        nw.Schema({name: schema[name] for name in order}),
        found.frame.to_polars(),
        is_query=table.data.is_query,
    )
    untyped = {name for name in found.columns if found.is_untyped(name)}
    return replace(found, data=lazy, untyped=frozenset(untyped.union(filter(table.is_untyped, others))))


def _with_rows_of_answers(gold: ExampleTable) -> ExampleTable:
    """Make rows of ``{id: [answer, ...]}``, whose lists are the accepted answers of each example."""
    if isinstance(gold.data, LazyTable) or len(gold) != 1 or gold.unusable or not are_ids(gold.columns):
        return gold
    if any(dtype != nw.List(nw.String) for dtype in gold.schema.values()):
        return gold
    answers = gold.frame.rows(named=True)[0]
    return gold.with_rows(pl.DataFrame({"id": list(answers), "label": list(answers.values())}))


def _shared_id(table: ExampleTable, gold: ExampleTable, id_: str) -> str:
    """Return the column of ids that predictions and reference answers share; `id_` if no other is clear."""
    if id_ != "id" or have((table, gold), ["id"]):
        return id_
    shared = sorted(filter(names_id, shared_columns((table, gold))), key=place_of_id)
    alike = [name for name in table.columns if usual_spelling(name) == id_]
    found = (name for name in shared if not rows_repeat([gold], [name], if_unknown=True))
    return next(found, alike[0] if len(alike) == 1 else id_)


def _joined(
    table: ExampleTable,
    answers: ExampleTable,
    keys: Sequence[str],
    added: Sequence[str],
    roles: _Roles,
    notes: Sequence[str],
) -> ExampleTable:
    """Check reference answers, and join them with predictions in memory, by `keys` or else by position."""
    label, prediction, next_step = roles
    table = _with_empty_answers(table, answers.frame.get_column(label), prediction)
    predictions, references, matched = polars_frame(table), polars_frame(answers), polars_frame(answers)
    if keys:
        predictions, references = keyed(table, answers, keys)
        require_known(predictions, references, table, answers, keys)
        matched = predictions.select(keys).join(references, on=keys, how="left", maintain_order="left")
    rows = _Rows(table, answers, predictions, matched, keys)
    rows.require_same([name for name in added if name != label])
    notes = [*notes, *rows.label_notes(label, next_step)]
    own = predictions.drop(added, strict=False)
    joined = own.with_columns(matched[name] for name in added)
    if keys:
        joined = own.join(references, on=keys, how="full", coalesce=True, maintain_order="left_right")
    order = dict.fromkeys(name for name in (*table.columns, *added) if name in joined.columns)
    return replace(
        table,
        data=nw.from_native(joined.select(list(order)), eager_only=True),
        untyped=_untyped(table, answers, added, prediction, label),
        unusable={
            **{name: why for name, why in table.unusable.items() if name not in added},
            **{
                name: f"is that of `{answers.origin}`, which {why}"
                for name, why in answers.unusable.items()
                if name in added
            },
        },
        facts={**answers.facts, **table.facts},
        has_joined_labels=True,
        notes=(*table.notes, *(f"its labels `{answers.origin}`: {note}" for note in answers.notes), *notes),
    )


def _next_step(
    table: ExampleTable, gold: ExampleTable, label: str, prediction: str, usual: Sequence[str]
) -> str:
    """Say how to name the labels of `gold` otherwise if `table` has a column `label` of its own."""
    if label not in gold.columns or label in usual:
        way = f"give the labels another name: `--label {shlex.quote(f'gold_{label}')}`"
        are_predictions = not {prediction, *PREDICTIONS}.intersection(table.columns)
        return f"{way} with `--prediction {shlex.quote(label)}`" if are_predictions else way
    if prediction not in table.columns:
        return _of_one_name(label)
    return f"rename the column to `label` in `{gold.origin}`, and leave `--label` out"


def _answers(
    gold: ExampleTable,
    names: Mapping[str, Sequence[str]],
    table: ExampleTable,
    ids: Sequence[str],
    required: Collection[str],
) -> ExampleTable:
    """Read the used columns of reference answers; `names` gives the names that each may have in the file."""
    renamed: dict[str, str] = {}
    for name, candidates in names.items():
        found = next((each for each in candidates if each in gold.columns), None)
        alike = [each for each in gold.columns if usual_spelling(each) in candidates]
        found = alike[0] if found is None and len(alike) == 1 else found
        if found is not None:
            renamed[found] = name
        elif name in required:
            raise SourceError(
                f"`{gold.origin}` has no column {' or '.join(f'`{c}`' for c in dict.fromkeys(candidates))};"
                f" it has {listed(gold.columns)}",
                hint=f"{_way_to_columns(table, gold, ids, candidates)}.",
            )
    used = {*renamed, *ids, *gold.identity}
    if all(may_number_rows(name) for name in ids):
        used |= {name for name in shared_columns((table, gold)) if is_of_examples(name)}
    own = gold.only([name for name in gold.columns if name in used])
    unusable = {renamed.get(name, name): why for name, why in gold.unusable.items()}
    return _with_texts_of_answers(replace(own, data=own.frame.rename(renamed), unusable=unusable), names)


def _with_texts_of_answers(answers: ExampleTable, names: Iterable[str]) -> ExampleTable:
    """Read the texts of ``{"text": [...], "answer_start": [...]}``, which are SQuAD's answers elsewhere."""
    for name in names:
        if not {"text", "answer_start"}.issubset(fields_of(answers, name)):
            continue
        objects = answers.frame.get_column(name).to_list()
        texts = [None if each is None else each["text"] for each in objects]
        if any(each is not None and not isinstance(each, list) for each in texts):
            continue
        frame = answers.frame.to_polars().with_columns(pl.Series(name, texts, pl.List(pl.String)))
        others = {column: why for column, why in answers.unusable.items() if column != name}
        answers = replace(answers.with_rows(frame), unusable=others)
    return answers


def _way_to_columns(
    table: ExampleTable, gold: ExampleTable, ids: Sequence[str], candidates: Sequence[str]
) -> str:
    """Return the hint at columns of reference answers that have none of the names `candidates`."""
    if (first := example_as_header([gold], "`id` and `label`")) is not None:
        return first
    if (inside := examples_in_one_row([gold])) is not None:
        return inside.sentence(gold.origin, "name this file by `--labels`")
    shared = _of_shared_column(table, gold, ids) if "label" in candidates else ""
    return (
        "reference answers have columns `id` and `label`, or those of `--id NAME` and `--label NAME`" + shared
    )


def _of_shared_column(table: ExampleTable, gold: ExampleTable, ids: Sequence[str]) -> str:
    """Return the hint that names the only shared column besides ids; empty if none or several are shared."""
    shared = [name for name in gold.columns if name in table.columns]
    shared = [name for name in shared if name not in (*ids, *IDS) and not names_id(name)]
    return f"; or {_of_one_name(shared[0])}" if len(shared) == 1 else ""


def _of_one_name(column: str) -> str:
    return f"compare `{column}` of both files by `--prediction {shlex.quote(column)}`, without `--label`"


def _with_empty_answers(table: ExampleTable, labels: nw.Series[Any], prediction: str) -> ExampleTable:
    if prediction not in table.columns or not table.is_untyped(prediction):
        return table
    accepted = labels.to_polars()
    if isinstance(accepted.dtype, pl.List):
        has_empty = (accepted.list.len() == 0).any()
    else:
        has_empty = accepted.dtype == pl.String and (accepted == "").any()
    n_empty = table.frame.get_column(prediction).null_count()
    if not n_empty or not has_empty:
        return table
    filled = table.frame.with_columns(nw.col(prediction).fill_null(""))
    note = f"{n_empty} empty fields of `{prediction}` are empty answers, as some labels are empty"
    return replace(table, data=filled, notes=(*table.notes, note))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Predictions with the matching rows of reference answers."""

    table: ExampleTable
    answers: ExampleTable
    predictions: pl.DataFrame
    matched: pl.DataFrame
    keys: Sequence[str]

    def sides(self, name: str) -> tuple[pl.Series, pl.Series]:
        """Convert a column of both tables to one type; raises InputTypeError."""
        first, second = (
            table.with_rows(frame.select(name))
            for table, frame in ((self.table, self.predictions), (self.answers, self.matched))
        )
        first, second, _ = typed_columns(first, second, [name])
        return first.frame.get_column(name).to_polars(), second.frame.get_column(name).to_polars()

    def place(self, row: int) -> str:
        return place_of_row(self.predictions, self.keys, row)

    def require_same(self, names: Sequence[str]) -> None:
        """Refuse inputs and other ids that differ."""
        for name in names:
            if name not in self.predictions.columns:
                continue
            try:
                differ = differing(*self.sides(name))
            except InputTypeError as error:
                raise SourceError(error.message, hint=error.hint) from error
            if differ.any():
                first = self.place(differ.arg_true()[0])
                raise SourceError(
                    f"`{name}` differs between `{self.table.origin}` and its labels `{self.answers.origin}`"
                    f" in {differ.sum():,} of {len(differ):,} examples, first in {first}",
                    hint=f"`--id {name}` matches the labels by these ids."
                    if is_of_examples(name)
                    else "labels and predictions have to be of the same data, with the same tokens.",
                )

    def label_notes(self, label: str, next_step: str) -> Iterator[str]:
        """Refuse a run whose own labels differ from the reference; note if they cannot be compared."""
        if label not in self.predictions.columns:
            return
        try:
            own, given = self.sides(label)
        except InputTypeError as error:
            own, given = self.predictions[label], self.matched[label]
            if any(side.dtype.is_nested() or side.dtype == pl.Object for side in (own, given)):
                yield f"its own `{label}` was replaced by the labels without a comparison: {error.message}"
                return
            own, given = own.cast(pl.String), given.cast(pl.String)
        differ = differing(own, given)
        if differ.any():
            first = "".join(
                f"\n    {self.place(row)}: {own[row]!r}, and {given[row]!r} in the labels"
                for row in differ.arg_true().head(SHOWN)
            )
            raise SourceError(
                f"`{label}` of `{self.table.origin}` differs from its labels `{self.answers.origin}` in"
                f" {differ.sum():,} of {len(differ):,} examples:{first}",
                hint=f"remove the column, leave `--labels` out, or {next_step}.",
            )


def _untyped(
    table: ExampleTable, answers: ExampleTable, added: Sequence[str], prediction: str, label: str
) -> frozenset[str]:
    """Return the columns that are text because their format has no types.

    If only one of predictions and labels is untyped, and the other is text or lists, both count as typed.
    """
    sources = dict.fromkeys(table.columns, table) | dict.fromkeys(added, answers)
    untyped = {name for name, source in sources.items() if source.is_untyped(name)}
    if prediction in sources and len({prediction, label} & untyped) == 1:
        (typed,) = {prediction, label} - untyped
        dtype = sources[typed].schema[typed]
        if dtype in (nw.String, nw.Categorical, nw.Enum) or dtype.is_nested():
            untyped -= {prediction, label}
    return frozenset(untyped)
