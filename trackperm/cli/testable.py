"""Statistics by which a run can be compared, found by trying them, and a command that does so."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trackperm.cli.column_roles import Column, candidates_of, is_called
from trackperm.errors import InputTypeError, TrackpermError

if TYPE_CHECKING:
    from trackperm.comparison import RunData
    from trackperm.statistic import Statistic
    from trackperm.tables import Source
    from trackperm.tables.table import ExampleTable

_TRIED = 1_000
"""Examples on which statistics are tried, so that all statistics together take little time."""

OTHER = "OTHER"
"""Place of the other run in the command that is offered."""

CLASS = "CLASS"
"""Place of the positive class in the command, where scores or probabilities of it are read."""

_COMMON = (
    "accuracy",
    "span_f1",
    "las",
    "bracket_f1",
    "pooled_error_rate",
    "roc_auc",
    "multiclass_log_loss",
    "rmse",
    "mean",
    "pass_at_1",
    "squad_em",
    "multilabel_f1",
)
"""Statistics in order of preference for the example command; the mean is that of a metric."""

_OPTIONS = {"id": "--id", "prediction": "--prediction", "label": "--label"}


@dataclass(frozen=True)
class Testable:
    """Statistics that can be tested on a run, with a command that tests one of them.

    Attributes
    ----------
    default : str
        The default statistics of such runs, or the reason why there are none.
    statistics : tuple of str
        Names of built-in statistics.
    command : tuple of str
        Words of the command, with :data:`OTHER` for the second run, and :data:`CLASS` for a positive class
        that only the user knows; empty if no statistic can be tested.
    is_of_systems : bool
        Whether the command compares columns of the file as two systems.
    verdict : str or None
        If there is no command, a column of words as ``COLUMN=VALUE``.
    classes : tuple
        The two labels. The user replaces :data:`CLASS` in the command by one of them.
    has_examples : bool
        Whether the rows may be examples; if not, `default` says what they are.
    """

    default: str
    statistics: tuple[str, ...]
    command: tuple[str, ...]
    is_of_systems: bool = False
    verdict: str | None = None
    classes: tuple[object, ...] = ()
    has_examples: bool = True

    def lines(self) -> Iterator[str]:
        """Yield the lines that say so."""
        if not self.has_examples:
            yield f"cannot be compared as it is: {self.default}"
            return
        yield f"by default: {self.default.removesuffix(' (by default)')}"
        if self.statistics:
            yield f"can be tested: {', '.join(self.statistics)}"
        elif self.verdict is not None:
            share = shlex.quote(self.verdict)
            yield f"`trackperm compare` with `--metric {share}` compares the shares of a good value"
        elif not self.command:
            yield "no built-in statistic reads these columns; `trackperm statistic list` lists their columns"
        if self.command:
            if self.is_of_systems:
                yield "for example, if its columns belong to two systems:"
            elif self.classes:
                choices = " or ".join(map(str, self.classes))
                yield f"for example, with the other run for {OTHER}, and for {CLASS} the label that greater"
                yield f"scores stand for ({choices}):"
            else:
                yield f"for example, with the other run for {OTHER}:"
            yield f"  {shlex.join(self.command)}"


def testable(run: str, data: RunData, columns: Sequence[Column], options: Sequence[str]) -> Testable:
    """Find the built-in statistics by which the run can be compared with itself."""
    from trackperm.statistic import builtin_names, load_statistic
    from trackperm.tables.first_line import example_as_header
    from trackperm.tables.row_meaning import why_no_examples

    reason = why_no_examples([data.table]) or example_as_header([data.table])
    if reason is not None:
        return Testable(reason, (), (), has_examples=False)
    candidates, whole = candidates_of(columns, len(data.table)), data.table
    data = replace(data, table=data.table.head(_TRIED).loaded())
    candidates["prediction"] = _likeliest_predictions(data.table, candidates)
    finds_ids = _finds_ids(data)
    by_position = not candidates["id"] and not finds_ids
    if (summary := _summary(whole, None if by_position else _id_of(data, candidates["id"]))) is not None:
        return Testable(summary, (), (), has_examples=False)
    default, plain = _default(data, by_position=by_position)
    found: dict[str, list[str]] = {}
    ids = {"id": candidates["id"][0]} if candidates["id"] and not finds_ids else {}
    for name in builtin_names():
        arguments = _arguments(data, load_statistic(name), candidates, ids, by_position)
        if arguments is not None:
            found[name] = arguments
    systems = _systems(run, data)
    if systems:
        of_systems = "pooled_f1" if len(columns) == 4 else "mean"
        command = ("trackperm", "compare", *systems, "-s", of_systems, "--by-position", *options)
        return Testable(default, tuple(found), command, is_of_systems=True)
    logs = [] if data.tracker is None else ["--no-log"]
    if plain is None:
        has_other = "accuracy" in found and _has_other_question(data, candidates)
        verdicts = _verdicts(data.table, candidates)
        metric = _metric(data, candidates, verdicts, ids, by_position)
        ways = {name: ["-s", name, *arguments] for name, arguments in found.items()} | {"mean": metric or []}
        names = (*data.table.whole_log_metrics.values(), *_COMMON[has_other:])
        plain = next((way for name in names if (way := ways.get(name))), None)
        if plain is None:
            return Testable(default, tuple(found), (), verdict=next(iter(verdicts), None))
    plain = plain if _are_ids_clear(whole) else _with_repeats(plain, whole, ids)
    classes = _open_classes(plain, data.table, candidates["label"])
    if classes:
        plain = [f"positive={CLASS}" if word.startswith("positive=") else word for word in plain]
    command = ("trackperm", "compare", run, OTHER, *plain, *options, *logs)
    return Testable(default, tuple(found), command, classes=classes)


def _id_of(data: RunData, candidates: Sequence[str]) -> str:
    """Return the column of ids that a comparison finds, or else the likeliest."""
    from trackperm.comparison.question.example_columns import columns_of_examples

    return columns_of_examples([data.table])[0] if _finds_ids(data) else candidates[0]


def _summary(table: ExampleTable, id_: str | None) -> str | None:
    """Say that a row summarises the others; None if none does."""
    from trackperm.errors import PairingError
    from trackperm.pairing.checks.summary_rows import require_no_summary

    try:
        require_no_summary([table], id_)
    except PairingError as error:
        return error.message
    return None


def _open_classes(words: Sequence[str], table: ExampleTable, labels: Sequence[str]) -> tuple[object, ...]:
    """Return both classes of scores if the positive one was guessed: the other one reverses the verdict."""
    from trackperm.statistic import load_statistic

    if not any(word.startswith("positive=") for word in words) or load_statistic(words[1]).tells_classes:
        return ()
    label = "label" if "label" in table.columns else labels[0]
    return tuple(table.frame.get_column(label).to_polars().drop_nulls().unique().sort())


def _are_ids_clear(table: ExampleTable) -> bool:
    """Whether a comparison finds the column of ids by itself, and their rows are different or numbered."""
    from trackperm.comparison.question.example_columns import columns_of_examples

    id_, attempts = columns_of_examples([table])
    try:
        return bool(attempts) or (id_ in table.columns and not table.repeats([id_]))
    except TrackpermError:
        return True


def _with_repeats(words: Sequence[str], table: ExampleTable, ids: Mapping[str, str]) -> list[str]:
    """Name the ids of examples with several rows, or two columns, in place of positions or other ids."""
    from trackperm.pairing.columns.repeated_rows import joint_id, repeated_rows

    joint, repeated = joint_id([table]), repeated_rows([table])
    if joint is not None:
        options = ["--id", ",".join(joint)]
    elif repeated is not None:
        options = ["--id", repeated.column, "--repeats", repeated.rule]
    else:
        return [*words]
    replaced = ("--by-position", "--id", *ids.values())
    return [*(word for word in words if word not in replaced), *options]


def _likeliest_predictions(table: ExampleTable, candidates: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the columns that may be predictions; one that has labels precedes one that has none."""
    from trackperm.comparison.question.default_statistics import other_prediction

    names, labels = candidates["prediction"], candidates["label"]
    other = other_prediction([table], names[0], labels[0]) if names and labels else None
    return sorted(names, key=lambda name: other is not None and name != other)


def _has_other_question(data: RunData, candidates: Mapping[str, Sequence[str]]) -> bool:
    """Whether the likeliest predictions never equal the likeliest labels, or have scores of the log."""
    from trackperm.comparison.question.default_statistics import why_no_accuracy
    from trackperm.comparison.question.own_scores import own_score
    from trackperm.errors import InputError
    from trackperm.tables.columns.names import SCORES
    from trackperm.tables.columns.types import is_number

    table = data.table
    prediction, label = (
        candidates[role][0] if candidates[role] else role for role in ("prediction", "label")
    )
    if why_no_accuracy([table], prediction, label) is not None:
        return True
    scores = [name for name in SCORES if is_number(name, [table])]
    try:
        return own_score([table], prediction, label, scores) is not None
    except InputError:
        return True


def _verdicts(table: ExampleTable, candidates: Mapping[str, Sequence[str]]) -> list[str]:
    """Return ``COLUMN=VALUE`` for each column of words that holds neither predictions nor labels.

    The likeliest is the first; columns called a score come before others without a good value.
    """
    from trackperm.comparison.question.share_of_value import PLACEHOLDER, likely_option, option_of_column

    outputs = {*candidates["prediction"], *candidates["label"]}
    names = [name for name in table.columns if name not in outputs]
    found = (likely_option([table], names), *(option_of_column([table], name) for name in names))
    options = dict.fromkeys(option for option in found if option is not None)
    return sorted(
        options, key=lambda option: option.endswith(f"={PLACEHOLDER}") and not _names_scores(option)
    )


def _names_scores(name: str) -> bool:
    """Whether a column is called a score of something, such as ``score_match`` or ``scores``."""
    from trackperm.tables.columns.names import words_of

    return not {"score", "scores"}.isdisjoint(words_of(name))


def _metric(
    data: RunData,
    candidates: Mapping[str, Sequence[str]],
    verdicts: Sequence[str],
    ids: Mapping[str, str],
    by_position: bool,
) -> list[str] | None:
    """Find options that compare a column of scores, or else the share of a verdict; None without either."""
    from trackperm.comparison import Question
    from trackperm.comparison.question.own_scores import names_metric, names_quantity
    from trackperm.comparison.question.share_of_value import PLACEHOLDER

    table = data.table
    outputs = {*candidates["prediction"], *candidates["label"]}
    numbers = [name for name in candidates["score"] if name not in outputs]
    scores = [name for name in numbers if is_called(name, "score")]
    if any(_names_scores(name) for name in table.columns if name not in numbers):
        numbers = [*scores, *filter(names_metric, numbers)]  # others are durations, counts and metadata
    constants = [name for name in numbers if table.counts_of_few(name, 1) is not None]
    # A score may have one value where a run does well, but quantities such as probabilities are no scores.
    numbers = [name for name in numbers if not (name in constants and names_quantity(name))]
    numbers.sort(key=constants.__contains__)
    good = [verdict for verdict in verdicts if not verdict.endswith(f"={PLACEHOLDER}")]
    for metric in dict.fromkeys((*scores, *good, *numbers)):
        question = Question(metrics=(metric,), columns=ids, by_position=by_position)
        try:
            statistic = question.statistic_of([table, table])
        except TrackpermError:
            continue
        for missing in ("error", "drop"):
            if _can_be_tested(data, statistic, by_position, missing):
                options = ["--by-position"] * by_position + ["--missing", missing] * (missing == "drop")
                named = [word for name in ids.values() for word in ("--id", name)]
                return ["--metric", metric, *named, *options]
    return None


def _default(data: RunData, *, by_position: bool) -> tuple[str, list[str] | None]:
    """Describe the default statistics of two such runs, with the options that a test needs."""
    from trackperm.comparison import Question

    try:
        statistics = Question(by_position=by_position).statistics_of([data.table, data.table])
    except TrackpermError as error:
        return error.message.partition("\n")[0], None
    default = f"{', '.join(statistic.title for statistic in statistics)} ({statistics[0].chosen})"
    options = ["--by-position"] * by_position
    for missing, words in (("error", []), ("drop", ["--missing", "drop"])):
        errors = [_error_of(data, statistic, by_position, missing) for statistic in statistics]
        if not any(errors):
            return default, [*options, *words]
        unreadable = [error for error in errors if isinstance(error, InputTypeError)]
        if unreadable:  # every comparison refuses the columns
            return unreadable[0].message.partition("\n")[0], None
    return default, None


def _systems(run: str, data: RunData) -> list[str]:
    """Return the parts of the two systems in a file of numbers without a header."""
    n_columns, source = len(data.table.columns), source_of(run)
    is_headerless = source is not None and source.name == "headerless"
    if not is_headerless or n_columns not in (2, 4) or data.table.origin != run:
        return []
    return [f"{run}::{part}" for part in (("1", "2") if n_columns == 2 else ("A", "B"))]


def source_of(run: str) -> Source | None:
    """Return the format of a file; None for a run of a tracker or a URL."""
    from trackperm.tables import SourceFile, split_part
    from trackperm.tables.registry import detect_format
    from trackperm.trackers.references import RunReference

    reference = RunReference.parse(run)
    path = split_part(reference.locator)[0] if reference.scheme == "file" else None
    return detect_format(SourceFile.opened(path)) if isinstance(path, Path) else None


def _finds_ids(data: RunData) -> bool:
    """Whether a comparison finds the column of ids by itself."""
    from trackperm.comparison.question.example_columns import columns_of_examples

    return columns_of_examples([data.table])[0] in data.table.columns


def _arguments(
    data: RunData,
    statistic: Statistic,
    candidates: Mapping[str, Sequence[str]],
    ids: Mapping[str, str],
    by_position: bool,
) -> list[str] | None:
    """Find options with which a statistic can be tested on the run; None if it cannot."""
    table = data.table
    columns = {
        role: names[0]
        for role, names in candidates.items()
        if role in statistic.columns
        and names
        and (role not in table.columns or (role == "prediction" and names[0] != role))
    }
    columns.pop("id", None)
    ways: dict[object, tuple[Mapping[str, str], object, Statistic]] = {}
    for named in (ids, {**ids, **columns}) if columns else (ids,):
        for positive in _positives(table, statistic, columns):
            if (adapted := _adapted(data, statistic, named, by_position, positive)) is not None:
                read = frozenset(adapted.columns.items())
                ways.setdefault((read, positive), (named, positive, adapted))
    for missing in ("error", "drop"):
        for named, positive, adapted in ways.values():
            if _can_be_tested(data, adapted, by_position, missing):
                options = [
                    argument
                    for role, column in named.items()
                    for argument in (
                        (_OPTIONS[role], column) if role in _OPTIONS else ("--column", f"{role}={column}")
                    )
                ]
                options += [] if positive is None else ["--set", f"positive={positive}"]
                options += ["--by-position"] if by_position else []
                return [*options, *([] if missing == "error" else ["--missing", missing])]
    return None


def _positives(table: ExampleTable, statistic: Statistic, columns: Mapping[str, str]) -> Sequence[object]:
    """Return candidates for the positive label: the default of the statistic (None), and the rarer of two."""
    label = columns.get("label", "label")
    if "positive" not in statistic.parameters or label not in table.columns or label in table.unusable:
        return (None,)
    values = table.frame.get_column(label).to_polars().drop_nulls()
    if values.dtype.is_nested() or values.n_unique() != 2:
        return (None,)
    return (None, values.value_counts(name="n").sort("n", label)[label][0])


def _adapted(
    data: RunData, statistic: Statistic, columns: Mapping[str, str], by_position: bool, positive: Any
) -> Statistic | None:
    """Give a statistic the columns of the run; None if the run lacks one or its labels do not suit."""
    from trackperm.comparison import Question
    from trackperm.pairing.checks.label_values import require_label_values
    from trackperm.statistic.document import scalar

    parameters = {} if positive is None else {"positive": scalar(str(positive))}
    question = Question((statistic,), parameters=parameters, columns=columns, by_position=by_position)
    tables = [data.table, data.table]
    try:
        adapted = question.statistic_of(tables, check_labels=False)
        if not set(adapted.used_columns) <= set(data.table.columns):
            return None
        return require_label_values(tables, adapted)
    except TrackpermError:
        return None


def _can_be_tested(data: RunData, statistic: Statistic, by_position: bool, missing: Any) -> bool:
    return _error_of(data, statistic, by_position, missing) is None


def _error_of(data: RunData, statistic: Statistic, by_position: bool, missing: Any) -> TrackpermError | None:
    """Return the error of a test of the run with itself; None if it can be tested."""
    from trackperm.comparison import compare_runs

    try:
        compare_runs(data, data, statistic, by_position=by_position, missing=missing, check_logs=False)
    except TrackpermError as error:
        return error
    return None
