"""Runs of a comparison from arrays: labels, and the predictions or scores of two systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from trackperm.comparison.question.question import StatisticSource
from trackperm.comparison.runs import RunData
from trackperm.errors import InputError
from trackperm.messages import listed
from trackperm.statistic import Statistic, load_statistic
from trackperm.tables import References, labelled
from trackperm.tables.arrays import Values, paired_by_ids
from trackperm.tables.table import ExampleTable


def require_none_given(options: Mapping[str, object]) -> None:
    """Refuse options that need columns or runs of a tracker, which arrays do not have."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InputError(
            f"arrays have no columns and no tracker, so that {listed(given)} cannot be used",
            hint="pass two data frames with the columns.",
        )


@dataclass(frozen=True)
class ArrayRuns:
    """Two runs from arrays.

    Attributes
    ----------
    runs : tuple of RunData
        Baseline and candidate.
    by_position : bool
        Whether the arrays have no ids, so that their values are paired by position.
    """

    runs: tuple[RunData, RunData]
    by_position: bool


def runs_of_arrays(
    y_true: Any, y_baseline: Any, y_candidate: Any, statistics: Sequence[StatisticSource]
) -> ArrayRuns:
    """Make two runs of arrays; `y_true` is None for scores that need no labels.

    Raises
    ------
    InputTypeError
        If an argument holds no values of examples.
    InputError
        If the statistics read other columns than labels and one column of each run, or the arrays cannot be
        paired; subclasses name the problem.
    """
    loaded = [load_statistic(each) for each in statistics]
    columns = _Columns.read_by(loaded, has_labels=y_true is not None)
    lists = any(each.names_by_class for each in loaded)
    sides = (
        Values.of(y_baseline, "y_baseline", lists=lists),
        Values.of(y_candidate, "y_candidate", lists=lists),
    )
    truth = None if y_true is None else Values.of(y_true, "y_true")
    by_position = not paired_by_ids(sides if truth is None else (truth, *sides))
    combining = [each.name for each in loaded if each.has_several_rows]
    if by_position and combining:
        raise InputError(
            f"{listed(combining)} combines the rows of an example, which needs ids",
            hint="pass series of pandas with ids as their index, or mappings from ids to values.",
        )
    runs = []
    for side, role in zip(sides, ("baseline", "candidate"), strict=True):
        data: dict[str, pl.Series | None] = {columns.of_run: side.values}
        if not by_position:
            data = {columns.id: side.ids, **data}
        elif truth is not None:
            data |= {columns.label: truth.values}
        table = replace(ExampleTable.from_native(pl.DataFrame(data), role), is_in_program=True)
        if truth is not None and not by_position:
            answers = ExampleTable.from_native(
                pl.DataFrame({columns.id: truth.ids, columns.label: truth.values}), "y_true"
            )
            references = References(
                "y_true", id=columns.id, label=columns.label, prediction=columns.of_run, table=answers
            )
            table = labelled(table, references)
        runs.append(RunData(table, role))
    return ArrayRuns((runs[0], runs[1]), by_position)


@dataclass(frozen=True)
class _Columns:
    """Names of the columns that the arrays become."""

    id: str
    of_run: str
    label: str

    @classmethod
    def read_by(cls, statistics: Sequence[Statistic], *, has_labels: bool) -> _Columns:
        """Return the columns that statistics read; refuse those for which arrays are too many or too few."""
        if not statistics and not has_labels:
            raise InputError(
                "two arrays are given without a statistic; expected labels too, or a statistic of scores",
                hint='add the labels, as in `y_true, y_baseline, y_candidate`; or `statistic="mean"`.',
            )
        if not statistics:
            return cls("id", "prediction", "label")
        id_, label = (statistics[0].columns[name] for name in ("id", "label"))
        used = dict.fromkeys(column for each in statistics for column in _columns_of(each))
        names = listed(each.name for each in statistics)
        if label in used and not has_labels:
            raise InputError(
                f"{names} compares predictions with labels, and two arrays are given; expected three",
                hint="`trackperm.compare(y_true, y_baseline, y_candidate, statistic=...)`.",
            )
        if label not in used and has_labels:
            raise InputError(
                f"{names} reads no labels, and three arrays are given; expected two",
                hint=f"pass the {listed(used)} of both runs: `trackperm.compare(baseline, candidate,"
                " statistic=...)`.",
            )
        of_run = [column for column in used if column != label]
        if len(of_run) != 1:
            raise InputError(
                f"{names} reads the columns {listed(used)}; arrays give one column of each run",
                hint="pass two data frames with these columns.",
            )
        return cls(id_, of_run[0], label)


def _columns_of(statistic: Statistic) -> list[str]:
    """Return the columns that a statistic reads, those of clusters, strata and classes included."""
    groups = (statistic.cluster, statistic.strata, statistic.class_column)
    return [*statistic.used_columns, *(statistic.columns[name] for name in groups if name is not None)]
