"""Refuse labels whose values do not suit the statistic, before anything is paired.

A statistic that counts one class against all others, such as F1, has to know which one. So has a statistic
that reads a score or a probability of the positive class. A statistic that tests whether predictions equal
labels is meaningless if both are written in different ways; if only some are, a note counts them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import polars as pl

from trackperm.errors import InputError, InputTypeError, SpecError, TrackpermError
from trackperm.messages import did_you_mean, listed, side_by_side
from trackperm.pairing.checks.differences import shown, trivial_difference
from trackperm.statistic import Statistic, load_statistic
from trackperm.statistic.definition import POSITIVE, class_text
from trackperm.statistic.document import scalar
from trackperm.tables.columns.truths import TruthsAsNumbers
from trackperm.tables.columns.types import LISTS, ColumnType, typed_columns
from trackperm.tables.lazy.query import Query
from trackperm.tables.lazy.table import COUNT, LazyTable
from trackperm.tables.named_frame import named_frame
from trackperm.tables.table import ExampleTable, have, id_columns

MOST_CLASSES = 2**16
"""Most distinct labels that count as classes; with more, labels are free answers and are not checked."""

_SHOWN = 5
"""Number of values that a message lists."""

_FIRST = 2**12  # first rows: nearly always they contain a predicted label, so that no more have to be read
_FIRST_TEXTS = 100_000  # rows of a run in which other spellings of labels are counted
_SLICE = 2**20  # rows that are read at once
_FEW = (
    0.05  # share of decimals among predictions of classes, such as wrong answers to questions of arithmetic
)
_QUANTITIES = 20  # fewest distinct whole numbers as labels for them to be quantities and not classes
_NEGATIVE = (0, -1)  # False is 0
_ALL_CLASSES = ("macro_f1", "balanced_accuracy", "accuracy")
_ALL_AREAS = ("macro_roc_auc", "weighted_roc_auc")
_CLASSES = (ColumnType.INTEGER, ColumnType.BOOLEAN)
_OTHER_COLUMNS = (
    "`--prediction NAME` and `--label NAME` name other columns, and `--allow-unseen` accepts these columns."
)


def require_label_values(
    tables: Sequence[ExampleTable], statistic: Statistic, *, allow_unseen: bool = False
) -> Statistic:
    """Refuse an ambiguous or absent positive class, absent listed classes, and predictions without labels.

    Only the columns of labels and predictions are read, and usually only a part of their rows. Columns that
    cannot be read, or whose types are not compatible, are refused by the pairing instead. `allow_unseen`
    accepts predictions that never equal a label, a chosen `positive` that is not a label, and listed classes
    that never occur.

    Returns
    -------
    Statistic
        The statistic, with `positive` as it is written in the labels: if these are text, 1 becomes ``'1'``
        and true becomes ``'True'``.

    Raises
    ------
    InputError
        If the parameter `positive` is not a label, or was not chosen although there are more than two labels;
        if predictions and labels are the same column; if a listed class is neither a label nor a prediction;
        or if predictions are scores, or labels repeat and no prediction of a run is one of them.
    """
    statistic = with_positive(tables, statistic, allow_unseen=allow_unseen)
    if not allow_unseen:
        label = statistic.columns["label"]
        if statistic.columns.get("prediction") == label:
            raise InputError(
                f"`{statistic.name}` compares predictions with labels, but both are the column `{label}`",
                hint="`--prediction NAME` and `--label NAME` name two columns.",
            )
        require_listed_classes(tables, statistic)
        for table in tables:
            require_predicted(table, statistic)
    return statistic


@dataclass(frozen=True)
class DistinctValues:
    """Distinct values of a column with their counts, the most frequent first.

    If there are more than :data:`MOST_CLASSES`, some are left out.
    """

    counts: Mapping[Any, int]
    type: ColumnType
    is_all: bool = True

    @classmethod
    def of(cls, tables: Sequence[ExampleTable], name: str) -> DistinctValues | None:
        """Count the values in the first table, as the type that all tables share; None for lists."""
        first = tables[0]
        dtype = first.schema[name]
        counts = first.value_counts(name, MOST_CLASSES)
        if counts is None:
            return None
        typed, type_ = _typed(first, counts, first, counts, name)
        for other in tables[1:]:
            is_known = not (first.is_untyped(name) or other.is_untyped(name) or dtype.is_float())
            if (is_known and other.schema[name] == dtype) or type_ is ColumnType.TEXT:
                continue  # the values of the other table cannot change the type
            others = other.value_counts(name, MOST_CLASSES)
            if others is not None:
                typed, type_ = _typed(first, counts, other, others, name)
        return cls(_summed(typed, counts), type_, len(counts) <= MOST_CLASSES)

    @property
    def number(self) -> str:
        """Number of values, as text."""
        return f"{len(self.counts):,}" if self.is_all else f"more than {MOST_CLASSES:,}"

    def shown(self) -> list[str]:
        """List the most frequent values with their counts, and the number of others."""
        found = [f"{shown(value)} ({n:,})" for value, n in list(self.counts.items())[:_SHOWN]]
        more = len(self.counts) - _SHOWN
        return [*found, f"and {more:,} more" if self.is_all else "and more"] if more > 0 else found

    def setting(self, value: Any) -> str:
        """Return the option that makes a value the positive class."""
        text = class_text(value)
        if self.type is ColumnType.TEXT:
            is_plain = read_option(text) is not None and len(self.read_as(read_option(text))) == 1
            text = text if is_plain else f"'{text}'"
        option = f"{POSITIVE}={text}"
        quoted = shlex.quote(option)
        if "'" in option and not set(option) & set('"$`\\!'):  # only these change in double quotes
            quoted = f'"{option}"'
        return f"`--set {quoted}`"

    def read_as(self, value: Any) -> list[Any]:
        """Return the values that equal `value`, or else the texts that an option would read as `value`."""
        if self.type is not ColumnType.TEXT:
            return [value] if value in self.counts else []
        if value in self.counts:
            return [value]
        texts = ((text, read_option(text)) for text in self.counts)
        return [text for text, read in texts if type(read) is type(value) and read == value]


def with_positive(
    tables: Sequence[ExampleTable], statistic: Statistic, *, allow_unseen: bool = False
) -> Statistic:
    """Refuse a positive class that is ambiguous or absent, and convert it to the type of the labels.

    This is the first part of :func:`require_label_values`.
    """
    if not statistic.has_positive:
        return statistic
    name = statistic.columns["label"]
    if any(name not in table.columns for table in tables):
        return statistic
    try:
        labels = DistinctValues.of(tables, name)
    except InputTypeError:
        return statistic
    if labels is None or not labels.counts:
        return statistic
    positive = statistic.parameters[POSITIVE]
    where = f"`{name}` of `{tables[0].origin}` has"
    found, is_chosen = labels.read_as(positive), POSITIVE in statistic.set_parameters
    if len(found) > 1:
        raise InputError(
            f"`{POSITIVE}` of `{statistic.name}` is {positive!r}, and {len(found)} labels are read as this"
            f" value: {listed(map(repr, found))}; expected one",
            hint=f"{_either([labels.setting(value) for value in found])} names one label exactly.",
        )
    if len(labels.counts) > 2 and not is_chosen:
        most = next(iter(labels.counts))
        others = _ALL_CLASSES if statistic.pair_term is None else _ALL_AREAS
        raise InputError(
            f"`{statistic.name}` counts one class against all others, but {where} {labels.number} classes:"
            f" {', '.join(labels.shown())}",
            hint=f"{labels.setting(most)}, for example, chooses the class; {listed(others)} count all"
            " classes.",
        )
    if not found and not (is_chosen and allow_unseen) and _lacks(labels, positive):
        given = "" if is_chosen else " by default"
        options = [labels.setting(value) for value in list(labels.counts)[:_SHOWN]]
        hint = f"{_either(options[::-1] if len(options) == 2 else options)} chooses the class"
        raise InputError(
            f"`{POSITIVE}` of `{statistic.name}` is {positive!r}{given}, which is not a label:"
            f" {where} {', '.join(labels.shown())}",
            hint=f"{hint}; `--allow-unseen` accepts a class that is not a label."
            if is_chosen
            else f"{hint}.",
        )
    if not is_chosen and not statistic.tells_classes and _is_arbitrary(labels, positive):
        options = [labels.setting(value) for value in sorted(labels.counts)]
        raise InputError(
            f"`{statistic.name}` needs the positive class of labels other than 0 and 1, but {where}"
            f" {', '.join(labels.shown())}",
            hint=f"{_either(options[::-1])} chooses the class.",
        )
    chosen = found[0] if found else positive
    if labels.type is ColumnType.INTEGER and found and _has_words(tables, statistic):
        chosen = str(chosen)  # the pairing compares the labels as text, too
    if chosen == positive:
        return statistic
    return load_statistic(statistic, parameters={POSITIVE: chosen})


def _has_words(tables: Sequence[ExampleTable], statistic: Statistic) -> bool:
    """Whether predictions in files without types have words, such as ``N/A``, beside numbers."""
    name = statistic.columns.get("prediction", "")
    names = [name, statistic.columns["label"]]
    if not have(tables, names) or not all(table.is_untyped(each) for table in tables for each in names):
        return False
    try:
        found = [DistinctValues.of([table], name) for table in tables]
    except InputTypeError:
        return False
    return any(each is not None and each.type is ColumnType.TEXT for each in found)


def _is_arbitrary(labels: DistinctValues, positive: Any) -> bool:
    """Whether labels have two values, and the other one than `positive` is not the usual negative class."""
    if len(labels.counts) != 2 or not labels.is_all:
        return False
    (other,) = (value for value in labels.counts if value not in labels.read_as(positive))
    return (read_option(other) if isinstance(other, str) else other) not in _NEGATIVE


def _lacks(labels: DistinctValues, positive: Any) -> bool:
    """Whether the labels must contain `positive`; a single class may be the negative one."""
    n = len(labels.counts)
    return labels.is_all and (n > 1 or (labels.type is ColumnType.TEXT) != isinstance(positive, str))


def require_listed_classes(tables: Sequence[ExampleTable], statistic: Statistic) -> None:
    """Refuse classes in parameters such as ``labels=cat,dog`` that are neither labels nor predictions.

    This is the second part of :func:`require_label_values`.
    """
    if not any(isinstance(value, str) for value in statistic.parameters.values()):
        return
    roles = ("label", "prediction")
    lists = sorted({name for role in roles for name in statistic.equality(role).lists})
    texts = {name: str(statistic.parameters[name]) for name in lists}
    classes = [(name, each.strip()) for name, text in texts.items() if text for each in text.split(",")]
    columns = [statistic.columns[role] for role in roles if role in statistic.columns]
    if not classes or any(column not in table.columns for table in tables for column in columns):
        return
    try:
        found = [DistinctValues.of([table], column) for column in columns for table in tables]
    except InputTypeError:
        return
    values = [each for each in found if each is not None]
    if len(values) < len(found) or not all(each.is_all for each in values):
        return
    occur = {class_text(value) for each in values for value in each.counts}
    for parameter, name in classes:
        if name not in occur:
            raise InputError(
                f"`{parameter}` of `{statistic.name}` lists the class {name!r}, which is neither a label nor"
                f" a prediction: `{columns[0]}` of `{tables[0].origin}` has {', '.join(values[0].shown())}",
                hint="check how the class is written in the data; `--allow-unseen` accepts classes that never"
                f" occur.{did_you_mean(name, sorted(occur))}",
            )


def require_predicted(table: ExampleTable, statistic: Statistic) -> None:
    """Refuse a run whose predictions are scores, or whose labels repeat but are never predicted.

    This is the last part of :func:`require_label_values`.
    """
    if not statistic.tells_classes:
        return
    prediction, label = statistic.columns["prediction"], statistic.columns["label"]
    if prediction not in table.columns or label not in table.columns:
        return
    try:
        if are_scores(table, prediction, label):
            raise _of_scores(table, statistic)
        if _is_predicted(table.head(_FIRST).only([prediction, label]), prediction, label):
            return
        if (unlike := TruthsAsNumbers.of(table, prediction, label)) is not None:
            raise InputError(
                f"`{statistic.name}` compares predictions with labels, but `{unlike.words}` of"
                f" `{table.origin}` says true and false, or yes and no, and `{unlike.numbers}` 0 and 1",
                hint=f"write both as 0 and 1: `{unlike.code}`.",
            )
        labels = DistinctValues.of([table], label)
        if labels is None or not labels.is_all:
            return
        predictions = _unseen(table, prediction, labels)
        if predictions is None or not _repeat(table, statistic, label, labels):
            return
    except InputTypeError:
        return
    if ColumnType.DECIMAL is predictions.type is not labels.type:
        raise _of_scores(table, statistic)
    is_text = labels.type is ColumnType.TEXT
    difference = trivial_difference(list(predictions.counts), list(labels.counts)) if is_text else ""
    if len(labels.counts) == 1 and not difference:
        return  # it is possible that a run never predicts the only class
    number = f" {sum(predictions.counts.values()):,}" if predictions.is_all else ""
    raise InputError(
        f"`{statistic.name}` compares predictions with labels, but none of the{number} predictions of"
        f" `{table.origin}` is a label{_side_by_side(statistic, predictions, labels)}{difference}",
        hint=f"write the labels and predictions of a class in the same way; {_OTHER_COLUMNS}",
    )


def other_spellings(tables: Sequence[ExampleTable], statistic: Statistic) -> Iterator[str]:
    """Yield a note for each run with such predictions, if the statistic tests predictions for equality."""
    if not statistic.tells_classes:
        return
    prediction, label = statistic.columns["prediction"], statistic.columns["label"]
    if prediction == label or not have(tables, [prediction, label]):
        return
    for table in tables:
        try:
            head = table.head(_FIRST_TEXTS).only([prediction, label])
            typed, _, types = typed_columns(head, head, [prediction, label])
        except TrackpermError:
            continue  # the pairing reports the error
        if {types[prediction], types[label]} != {ColumnType.TEXT}:
            continue
        texts = pl.DataFrame({name: typed.frame[name].to_polars() for name in (prediction, label)})
        plain = [pl.col(name).str.strip_chars().str.to_lowercase() for name in (prediction, label)]
        is_other = (plain[0] == plain[1]) & ~pl.col(prediction).is_in(texts[label].unique().implode())
        others = texts.filter(is_other)
        if len(others):
            said, meant = others.row(0)
            among = f" among the first {_FIRST_TEXTS:,}" if len(texts) == _FIRST_TEXTS else ""
            yield (
                f"look: only case or spaces differ from the label in {len(others):,} predictions{among} of"
                f" `{table.origin}`, such as {said!r} for {meant!r}; they count as wrong"
            )


def are_scores(table: ExampleTable, prediction: str, label: str) -> bool:
    """Whether labels are integers or booleans and predictions decimals: probabilities, logits or regressions.

    The first rows decide. Some scores may equal a label, such as probabilities of exactly 0.0 and 1.0. Few
    decimals among integers are wrong answers, and one decimal, such as 0.5, may mean no answer.
    """
    head = table.head(_FIRST).only(dict.fromkeys((prediction, label)))
    typed, _, types = typed_columns(head, head, [prediction, label])
    if types[prediction] is not ColumnType.DECIMAL or types[label] not in _CLASSES:
        return False
    values, labels = (typed.frame.get_column(name).to_polars().drop_nulls() for name in (prediction, label))
    decimals = values.filter(values != values.floor())
    return len(decimals) > _FEW * len(values) and decimals.n_unique() >= max(2, labels.n_unique())


def _of_scores(table: ExampleTable, statistic: Statistic) -> InputError:
    """Describe predictions that are scores of the labels."""
    prediction, label = statistic.columns["prediction"], statistic.columns["label"]
    values = [
        found for name in (prediction, label) if (found := DistinctValues.of([table], name)) is not None
    ]
    way = (
        "`--statistic mae` or `--statistic rmse` compares errors of a regression"
        if _are_quantities(*values)
        else "convert probabilities or logits to classes first, by a threshold or argmax"
    )
    return InputError(
        f"`{statistic.name}` compares predictions with labels, but `{prediction}` of `{table.origin}` holds"
        f" decimals, and `{label}` does not{_side_by_side(statistic, *values)}",
        hint=f"{way}; {_OTHER_COLUMNS}",
    )


def _are_quantities(predictions: DistinctValues, labels: DistinctValues) -> bool:
    """Whether predictions are those of a regression: of many classes each would have a score of its own."""
    return len(labels.counts) >= _QUANTITIES and any(not 0 <= value <= 1 for value in predictions.counts)


def _side_by_side(statistic: Statistic, predictions: DistinctValues, labels: DistinctValues) -> str:
    names = tuple(f"`{statistic.columns[role]}`" for role in ("prediction", "label"))
    return side_by_side(names, zip_longest(predictions.shown(), labels.shown(), fillvalue=""))


def _is_predicted(table: ExampleTable, prediction: str, label: str) -> bool:
    """Whether a prediction is among the labels, in a table of few rows."""
    first, second = (table.polars_column(name) for name in (prediction, label))
    if first.dtype == second.dtype and first.dtype in (pl.String, pl.Int64, pl.Boolean):
        # Equal values of one type stay equal, except for texts that are read as NaN.
        common = {*first.to_list()} & {*second.to_list()} - {None}
        if any(str(value).lower() != "nan" for value in common):
            return True
    typed, _, types = typed_columns(table, table, [prediction, label])
    if set(LISTS) & {types[prediction], types[label]}:
        return False
    columns = (typed.frame.get_column(name).drop_nulls().to_list() for name in (prediction, label))
    predictions, labels = map(set, columns)
    return not predictions.isdisjoint(labels)


def _unseen(table: ExampleTable, name: str, labels: DistinctValues) -> DistinctValues | None:
    """Return the predictions of a run if none is a label; None if one is, or if they cannot be compared."""
    found = DistinctValues.of([table], name)
    if (
        found is None
        or found.type in LISTS
        or (found.type is ColumnType.TEXT) != (labels.type is ColumnType.TEXT)
    ):
        return None
    if not found.counts or not labels.counts.keys().isdisjoint(found.counts):
        return None
    if found.is_all or not isinstance(table.data, LazyTable):
        return replace(found, is_all=True)  # rows in memory are all counted
    dtype = table.head(0).polars_column(name).dtype
    wanted = pl.Series(name, _of_type(labels.counts, found.type)).cast(dtype, strict=False)
    return None if table.data.among(name, wanted).n_rows else found


def _of_type(values: Iterable[Any], type_: ColumnType) -> list[Any]:
    """Return the values that a column of a type can hold."""
    if type_ is ColumnType.INTEGER:
        return [int(value) for value in values if value == int(value)]
    return list(values)


def _repeat(table: ExampleTable, statistic: Statistic, label: str, labels: DistinctValues) -> bool:
    """Whether several examples have the same label; rows with the same first id column are one example."""
    if all(n == 1 for n in labels.counts.values()):
        return False
    try:
        id_ = id_columns(statistic.columns["id"], [table])[0]
    except InputError:
        return False
    if id_ not in table.columns or id_ == label:
        return True
    ids: dict[Any, Any] = {}
    for part in _parts(table, [id_, label]):
        if part.schema[id_].is_nested() or part.schema[id_] == pl.Object:
            return False
        for value, own in part.drop_nulls().unique([label, id_]).select(label, id_).iter_rows():
            if ids.setdefault(value, own) != own:
                return True
    return False


def _parts(table: ExampleTable, names: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Read columns part by part: all rows in memory are one part, and of a query only the first is read."""
    if isinstance(table.data, LazyTable):
        table = table.head(_SLICE) if isinstance(table.data, Query) else table
        yield from table.slices(names, _SLICE)
    else:
        yield named_frame(map(table.polars_column, names))


def _typed(
    table: ExampleTable, values: pl.DataFrame, other: ExampleTable, others: pl.DataFrame, name: str
) -> tuple[pl.Series, ColumnType]:
    """Convert values of a table to the type shared with another's; raise InputTypeError if none is."""
    first, second = (side.with_rows(frame.select(name)) for side, frame in ((table, values), (other, others)))
    typed, _, types = typed_columns(first, second, [name])
    return typed.frame.get_column(name).to_polars(), types[name]


def _summed(values: pl.Series, counts: pl.DataFrame) -> dict[Any, int]:
    """Add up the counts of values that are equal after conversion, the greatest first, without nulls."""
    total: dict[Any, int] = {}
    for value, n in zip(values.to_list(), counts[COUNT].to_list(), strict=True):
        if value is not None:
            total[value] = total.get(value, 0) + n
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def read_option(text: str) -> Any:
    """Return the value that an option would have with this text; None if it cannot be read."""
    try:
        return scalar(text)
    except SpecError:
        return None


def _either(options: Sequence[str]) -> str:
    return " or ".join([", ".join(options[:-1]), options[-1]] if len(options) > 1 else options)
