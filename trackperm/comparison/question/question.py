"""Statistics, columns and unit of a comparison: named by the user or inferred from the runs.

Choices of the user have precedence. All other choices are inferred here, for all sources and all kinds of
comparison:

1. The id is the column ``id``; else a column with such a name (``question_id``, ``doc_id``) that identifies
   the examples of all runs; else the input (``question``, ``image``), if each example has a different one and
   the runs have the same inputs. Numbers of rows yield to other ids that contradict them.
2. The unit is the example. If ids are repeated and a column numbers the repeats (``epoch``, ``seed``), the
   rows of an example form one unit.
3. The statistics are those that the user named; else the metrics that the log declares; else those for which
   the format is made; else accuracy, if there are predictions and labels, and no score of the log that says
   otherwise; else the mean of the only score column, or the share of true in it if it says true or false as
   text. A score that may be a label or what a model computed, that may say that attacks or calls succeed,
   that mixes metrics, or in which a number may mark a missing score, is refused, and so are runs of which
   several statistics could be meant; the error explains how to name one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import get_args

from trackperm.choices import Repeats, RepeatsInSpec, Unit
from trackperm.comparison.argument_types import require_names, require_types
from trackperm.comparison.question.default_statistics import (
    columns_of_numbers,
)
from trackperm.comparison.question.example_columns import (
    attempt_columns,
    identifying_column,
    numbers_attempts,
)
from trackperm.comparison.question.inferred_statistics import statistics_of_columns, statistics_of_format
from trackperm.comparison.question.log_metrics import (
    column_of_metric,
    named_metric,
    own_metrics,
)
from trackperm.comparison.question.metric_directions import (
    metrics_of,
    note_on_presumed_direction,
    why_lower_is_better,
)
from trackperm.comparison.question.score_units import with_one_unit
from trackperm.comparison.question.unclear_statistic import ROLES
from trackperm.comparison.question.whole_log_metrics import require_metrics_of_examples
from trackperm.comparison.question.written_names import (
    errors_in_written_names,
    with_usual_names,
    with_written_names,
    written_names,
)
from trackperm.errors import InputError, InputTypeError
from trackperm.exact.options import require_choice
from trackperm.exact.scores.resolution import Resolution
from trackperm.messages import echoed, listed
from trackperm.pairing.checks.compared_texts import require_compared_texts
from trackperm.pairing.checks.label_values import other_spellings, require_label_values
from trackperm.pairing.checks.summary_rows import require_no_only_row, require_no_summary
from trackperm.statistic import Statistic, load_statistic
from trackperm.statistic.class_columns import patterns_of_classes, with_class_columns
from trackperm.tables.columns.decimal_commas import require_decimal_points
from trackperm.tables.columns.names import (
    SCORES,
    SECOND_ANSWERS,
    usual_spelling,
)
from trackperm.tables.columns.truths import are_numbers_or_truths, with_like_truths
from trackperm.tables.columns.written_numbers import with_numbers
from trackperm.tables.first_line import has_values_as_header, look_of_example
from trackperm.tables.row_meaning import progress_of_training
from trackperm.tables.table import ExampleTable, have, id_columns, may_write_truths, rows_repeat

StatisticSource = str | Path | Statistic

_GREATER_IS_BETTER = {
    "mean": "score",
    "pass_at_1": "passed",
    "pass_at_k": "passed",
    "pass_hat_k": "passed",
}
"""Built-in statistics of one column of any name, of which greater values are better."""

_TYPES: Sequence[tuple[str, type | tuple[type, ...], str]] = (
    ("cluster", (str, type(None)), "the name of a column"),
    ("by_position", bool, "True or False"),
    ("allow_unseen", bool, "True or False"),
)


@dataclass(frozen=True)
class Question:
    """Choices of a user: statistics, columns and unit.

    Attributes
    ----------
    statistics : tuple of str, path or Statistic
        The statistics that were named; if empty, they are inferred from the runs.
    metrics : tuple of str
        Columns that score every example, whose means are compared, and values such as ``verdict=CORRECT``,
        whose shares of the examples are compared. With a statistic, the column that it reads as ``score`` or
        ``passed``.
    parameters, columns, resolution
        As in :func:`trackperm.compare`.
    unit : {'example', 'row', 'attempt'}, optional
        Unit that is exchanged between the runs.
    repeats : {'sum', 'mean', 'any', 'all', 'bundle'}, optional
        Rule that combines several rows of one example.
    cluster : str, optional
        Column whose groups of examples are exchanged as a whole.
    by_position : bool
        Whether rows are paired in their order.
    allow_unseen : bool
        Whether predictions may be compared with labels that none of them equals.
    is_standing : bool
        Whether the choices were made before the runs, as by a policy: a named metric then says nothing about
        their units.
    """

    statistics: tuple[StatisticSource, ...] = ()
    metrics: tuple[str, ...] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    resolution: Resolution | Mapping[str, Resolution] | None = None
    unit: Unit | None = None
    repeats: Repeats | None = None
    cluster: str | None = None
    by_position: bool = False
    allow_unseen: bool = False
    is_standing: bool = False

    def __post_init__(self) -> None:
        """Refuse contradictory choices, and values of other types than a program may give."""
        require_types(parameters=self.parameters, columns=self.columns)
        require_names("metric", self.metrics)
        if isinstance(self.resolution, Mapping):
            require_names("resolution", self.resolution)
        for name, type_, expected in _TYPES:
            if not isinstance(value := getattr(self, name), type_):
                raise InputTypeError(f"`{name}` is {echoed(value)}; expected {expected}")
        for option, choice in (("unit", Unit), ("repeats", Repeats)):
            if getattr(self, option) is not None:
                require_choice(option, getattr(self, option), get_args(choice))
        if self.repeats is not None and self.unit in ("row", "attempt"):
            raise InputError(
                f"`--unit {self.unit}` and `--repeats {self.repeats}` contradict each other: `--repeats`"
                " combines the rows of an example",
                hint="leave one of them out.",
            )
        if len(self.metrics) > 1 and self.statistics:
            raise InputError(
                f"{len(self.metrics)} metrics are given with a statistic, which reads one score",
                hint="leave the statistic out, or name one metric.",
            )

    def require_loadable(self) -> None:
        """Load the statistics once, so that errors in them are raised before runs are read."""
        specs = self._with_parameters([load_statistic(source) for source in self.statistics])
        for spec in specs:
            self._with_columns(spec, specs)

    def _with_parameters(self, statistics: Sequence[Statistic]) -> list[Statistic]:
        """Give each statistic the parameters that it has; refuse a parameter that none of them has."""
        known = {parameter for statistic in statistics for parameter in statistic.parameters}
        if len(statistics) == 1 or not self.parameters.keys() <= known:
            return [load_statistic(each, parameters=self.parameters) for each in statistics]
        return [
            load_statistic(
                each, parameters={k: v for k, v in self.parameters.items() if k in each.parameters}
            )
            for each in statistics
        ]

    def _with_columns(self, statistic: Statistic, statistics: Sequence[Statistic]) -> Statistic:
        """Give one of several statistics the columns that it reads, and those that none of them reads."""
        others = {role for each in statistics if each is not statistic for role in each.columns}
        columns = {
            role: name
            for role, name in self.columns.items()
            if role in statistic.columns or role not in others
        }
        return load_statistic(statistic, columns=columns, resolution=self.resolution, cluster=self.cluster)

    def statistics_of(self, tables: Sequence[ExampleTable], *, check_labels: bool = True) -> list[Statistic]:
        """Return the statistics for these runs, with their columns and unit.

        `check_labels` calls :func:`~trackperm.pairing.checks.label_values.require_label_values`.

        Raises
        ------
        InputError
            If no statistic is named and none is clear, if no statistic has a parameter, or if predictions and
            labels do not match; subclasses name the problem.
        """
        if all(name == usual_spelling(name) for table in tables for name in table.columns):
            return self._found(tables, check_labels=check_labels)
        names = written_names(tables, self._named_columns())
        tables = [with_usual_names(table, names) for table in tables]
        with errors_in_written_names(names):
            found = self._found(tables, check_labels=check_labels)
        return [with_written_names(each, names) for each in found]

    def _named_columns(self) -> set[str]:
        """Return the columns that the user named, also in specs."""
        of_specs = {name for each in self.statistics for name in load_statistic(each).columns.values()}
        of_metrics = {part.strip() for metric in self.metrics for part in re.split("!?=", metric)}
        of_ids = {part.strip() for name in self.columns.values() for part in name.split(",")}
        return of_specs | of_metrics | {*self.metrics, *self.columns.values()} | of_ids | {self.cluster or ""}

    def _found(self, tables: Sequence[ExampleTable], *, check_labels: bool) -> list[Statistic]:
        """Return the statistics for runs with usual names of columns."""
        scores = self.metrics or SCORES
        if any(name in table.columns for table in tables for name in scores):
            tables = with_numbers(tables, scores)
        typical = _typical(tables)
        if "id" in self.columns:
            id_columns(self.columns["id"], typical)  # refuse an empty name before data are read
        named = self._with_parameters(self._named(typical))
        if self.metrics and self.statistics:
            _require_score(named, self.metrics[0])
        identify = cache(lambda: identifying_column(typical))
        found = [self._adapted(self._with_columns(each, named), typical, identify) for each in named]
        found = [with_class_columns(each, typical) if each.names_by_class else each for each in found]
        for each in found:
            if numbers := columns_of_numbers(each):
                require_decimal_points(typical, numbers)
        is_meant = None if self.is_standing else bool(self.statistics or self.metrics)
        found = [
            with_one_unit(tables, each, is_meant=is_meant) if "score" in each.columns else each
            for each in found
        ]
        if self.by_position:
            require_no_only_row(tables)
        for id_ in {None if self.by_position else each.columns["id"] for each in found}:
            require_no_summary(tables, id_)
        unseen = self.allow_unseen
        if any(each.compared_texts for each in found):
            found = [require_compared_texts(tables, each, allow_unseen=unseen) for each in found]
        if not check_labels:
            return found
        found = [
            require_label_values(
                with_like_truths(tables, each.answer_columns)
                if may_write_truths(tables, each.answer_columns)
                else tables,
                each,
                allow_unseen=unseen,
            )
            for each in found
        ]
        first_lines = [
            f"look: {look_of_example(table)}"
            for table in tables
            if table.untyped is True and has_values_as_header(table, tables)
        ]
        notes = [(*other_spellings(tables, each), *first_lines) for each in found]
        return [
            replace(each, found=(*each.found, *said)) if said else each
            for each, said in zip(found, notes, strict=True)
        ]

    def statistic_of(self, tables: Sequence[ExampleTable], *, check_labels: bool = True) -> Statistic:
        """Return the only statistic, as :meth:`statistics_of`; refuse logs that declare several metrics."""
        found = self.statistics_of(tables, check_labels=check_labels)
        if len(found) > 1:
            names = [statistic.columns.get("score", statistic.name) for statistic in found]
            raise InputError(
                f"the runs have {len(names)} metrics; expected one: {listed(names)}",
                hint=f"choose one, such as `--metric {names[0]}`; `trackperm compare` compares all of them.",
            )
        return found[0]

    # The statistics.

    def _named(self, tables: Sequence[ExampleTable]) -> list[Statistic]:
        """Return the statistics that the user named, or else those inferred from the runs."""
        if self.statistics:
            return [load_statistic(source) for source in self.statistics]
        if self.metrics:
            return [named_metric(name, tables, allow_unseen=self.allow_unseen) for name in self.metrics]
        if found := own_metrics(tables) or statistics_of_format(tables):
            return found
        require_metrics_of_examples(tables)
        predictions, labels = (self._column(role, tables) for role in ("prediction", "label"))
        return statistics_of_columns(tables, predictions, labels, allow_unseen=self.allow_unseen)

    def _column(self, role: str, tables: Sequence[ExampleTable]) -> str | None:
        """Return the column of predictions or of labels; None if it is unclear."""
        given = self.columns.get(role)
        if given is not None:
            return given
        if have(tables, [role]):
            return role
        found = [name for name in ROLES[role] if have(tables, [name])]
        found = [name for name in found if name not in SECOND_ANSWERS] or found
        return found[0] if len(found) == 1 else None

    # Their columns and unit.

    def _adapted(
        self,
        statistic: Statistic,
        tables: Sequence[ExampleTable],
        identify: Callable[[], tuple[str, Sequence[str]]],
    ) -> Statistic:
        """Give a statistic its columns and unit, as named by the user or inferred from the runs.

        `identify` finds the column of ids, with a note.
        """
        columns = dict(self._inferred_columns(statistic, tables))
        found = [*statistic.found, *(f"{role}: column `{name}`" for role, name in columns.items())]
        for name, pattern in patterns_of_classes(statistic, tables) if statistic.names_by_class else ():
            columns[name] = pattern
            found.append(f"{name}: columns `{pattern}`, one for each class")
        id_, repeats = statistic.columns["id"], self.repeats or statistic.repeats
        if not self.by_position:
            if id_ == "id" and "id" not in self.columns:
                id_, why = identify()
                found += why
            names = id_columns(id_, tables)
            id_, repeats = self._unit(id_, statistic, tables)
            if self.unit is None and self.repeats is None:
                found += _note_on_attempts(names, id_columns(id_, tables))
        columns["id"] = id_
        adapted = load_statistic(statistic, columns=columns, repeats=repeats)
        score = adapted.columns.get(_GREATER_IS_BETTER.get(adapted.name, ""), "")
        reason = why_lower_is_better(score, tables) if score and adapted.greater_is_better else None
        if reason is not None:
            raise InputError(
                f"greater values of `{adapted.name}` are better, but {reason}",
                hint=f"use `--metric {score}`, for which smaller values are better.",
            )
        if score and have(tables, [score]):
            found += note_on_presumed_direction(score, tables)
        if "score" in adapted.columns and (progress := progress_of_training(tables)) is not None:
            found.append(
                f"look: `{progress.strip()}` numbers the rows of a training, which are not examples: values"
                " of one training depend on each other, and p says nothing of new examples"
            )
        is_named = "id" in self.columns
        # The same statistic keeps what was computed of it once.
        if adapted.found == tuple(found) and adapted.id_is_named == is_named:
            return adapted
        return replace(adapted, found=tuple(found), id_is_named=is_named)

    def _inferred_columns(
        self, statistic: Statistic, tables: Sequence[ExampleTable]
    ) -> Iterator[tuple[str, str]]:
        """Yield role and column for each name that the statistic reads and the runs do not have."""
        for role, column in statistic.columns.items():
            is_metric = role in ("score", "passed") and self.statistics
            if is_metric and self.metrics:
                yield role, column_of_metric(self.metrics[0], tables)
            elif column != role or have(tables, [role]):
                continue
            elif role in ROLES:
                name = self._column(role, tables) if column in statistic.used_columns else None
                if name is not None and name not in statistic.columns.values():
                    yield role, name
            elif is_metric:
                own = {each for table in tables for each in metrics_of(table).values()}
                own = own or {name for name in SCORES if are_numbers_or_truths(name, tables)}
                if len(own) == 1:
                    yield role, own.pop()

    def _unit(
        self, id_: str, statistic: Statistic, tables: Sequence[ExampleTable]
    ) -> tuple[str, RepeatsInSpec | None]:
        """Return the columns of ids, and the rule that combines the rows of one example."""
        names = id_columns(id_, tables)
        if not have(tables, names):
            return id_, statistic.repeats
        examples = tuple(name for name in names if not numbers_attempts(name, tables)) or names
        attempts = tuple(name for name in names if name not in examples)
        if not attempts:
            attempts = attempt_columns(tables, names)
        elif not rows_repeat(tables, examples, if_unknown=False):
            return id_, statistic.repeats
        estimates = statistic.repeats in ("pass_at_k", "pass_hat_k")
        if estimates and (self.unit in ("row", "attempt") or self.repeats):
            raise InputError(
                f"`{statistic.name}` combines the attempts at an example by its own rule",
                hint="leave `--unit` and `--repeats` out.",
            )
        of_examples = ",".join(examples)
        if self.unit == "row":
            return (",".join((*examples, *attempts)), "rows") if attempts else (id_, "rows")
        if self.unit == "attempt":
            return of_examples, "attempts"
        if self.repeats is not None:
            return of_examples, self.repeats
        if statistic.repeats is not None:
            return of_examples, statistic.repeats
        return (of_examples, "sum") if attempts or self.unit == "example" else (id_, None)


def _note_on_attempts(named: Sequence[str], examples: Sequence[str]) -> Iterator[str]:
    """Say that columns of attempts that the user named as ids are none of the example."""
    if attempts := [name for name in named if name not in examples]:
        are, tell = ("is", "tells") if len(attempts) == 1 else ("are", "tell")
        yield (
            f"unit: the example is `{','.join(examples)}`; {listed(attempts)}, which {are} named by `--id"
            f" {','.join(named)}`, {tell} its rows apart; `--unit row` takes each row as an example"
        )


def _require_score(statistics: Sequence[Statistic], metric: str) -> None:
    """Refuse a metric beside statistics that read no score."""
    if not any({"score", "passed"} & each.columns.keys() for each in statistics):
        names = listed([each.name for each in statistics])
        raise InputError(
            f"the metric `{metric}` is given beside {names}, which reads no score",
            hint="leave one of them out.",
        )


def _typical(tables: Sequence[ExampleTable]) -> Sequence[ExampleTable]:
    """Select the runs that have every column of the majority, so that one odd run does not decide."""
    if len(tables) < 3:
        return tables
    n = Counter(name for table in tables for name in table.columns)
    usual = {name for name in n if 2 * n[name] > len(tables)}
    return [table for table in tables if usual <= set(table.columns)] or tables
