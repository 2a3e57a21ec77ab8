"""Several statistics, and slices of the examples, of the same two runs: one family of tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import narwhals as nw
import polars as pl

from trackperm.choices import CorrectionName, MissingRule
from trackperm.comparison.context import Slice
from trackperm.comparison.corrections import corrected, uncorrected
from trackperm.comparison.result import Comparison
from trackperm.comparison.runs import RunData
from trackperm.comparison.single import compare_runs
from trackperm.errors import InputError, PairingError, TrackpermError
from trackperm.exact import TestOptions
from trackperm.messages import did_you_mean, listed
from trackperm.statistic import Statistic
from trackperm.tables.column_types import typed_columns
from trackperm.tables.table import id_columns

MOST_SLICES = 100
"""Values up to which a column makes slices."""


def compare_statistics(
    baseline: RunData,
    candidate: RunData,
    statistics: Sequence[Statistic],
    options: TestOptions | None = None,
    *,
    slices: Sequence[str] = (),
    correction: CorrectionName = "holm",
    margin: float | None = None,
    missing: MissingRule = "error",
    by_position: bool = False,
    begin: Callable[[str], None] = lambda _: None,
) -> list[Comparison]:
    """Compare two runs by several statistics, on all examples and on slices, and correct for all of them.

    Parameters
    ----------
    baseline, candidate : RunData
        The runs.
    statistics : sequence of Statistic
        What is tested; the slices that each declares are compared as well.
    options : TestOptions, optional
        Alternative, level and engine.
    slices : sequence of str
        Columns whose values make further slices, which are exploratory.
    correction : str
        A key of :data:`~trackperm.comparison.CORRECTIONS`, or ``none``; one comparison alone needs none.
    margin, missing, by_position
        As in :func:`~trackperm.comparison.compare.compare`.
    begin : callable
        Receives what is tested next.

    Returns
    -------
    list of Comparison
        By each statistic: all examples, then its slices in ascending order of their values.

    Raises
    ------
    InputError
        As by :func:`compare_runs` and :func:`corrected`; also if a column makes no slices, or two statistics
        have the same name.
    PairingError
        If an example is not in the same slice in both runs, or a slice is of one run alone.
    """
    _require_distinct_names(statistics)
    compared = partial(
        compare_runs,
        options=options,
        margin=margin,
        missing=missing,
        by_position=by_position,
    )
    found = []
    for statistic in statistics:
        begin(f"pairing and testing: {statistic.name}")
        try:
            found.append(compared(baseline, candidate, statistic))
        except InputError as error:
            if statistic.chosen and len(statistics) > 1:
                alone = (
                    f"`--metric {statistics[0].columns.get('score', 'NAME')}` compares by one metric alone."
                )
                error.hint = f"{error.hint} {alone}" if error.hint else alone
            raise
        for part, first, second in _slices(baseline, candidate, statistic, slices, by_position=by_position):
            begin(f"pairing and testing: {statistic.name}, {part}")
            try:
                one = compared(first, second, statistic, look_for_clusters=False)
            except TrackpermError as error:
                error.message = f"slice {part}: {error.message}"
                raise
            found.append(replace(one, part=part, options={**one.options, "slice": str(part)}))
    if len(found) < 2:
        return found
    return uncorrected(found) if correction == "none" else corrected(found, correction)


def _require_distinct_names(statistics: Sequence[Statistic]) -> None:
    """Refuse two statistics of one name, which nothing that is shown or logged tells apart.

    Raises
    ------
    InputError
        If there are; the correction would count the same statistic as two tests.
    """
    names = [statistic.name for statistic in statistics]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(
            f"two statistics are called {listed(twice)}",
            hint="leave one out; with other parameters or columns, a spec gives it a name of its own.",
        )


def _slices(
    baseline: RunData,
    candidate: RunData,
    statistic: Statistic,
    columns: Sequence[str],
    *,
    by_position: bool,
) -> Iterator[tuple[Slice, RunData, RunData]]:
    """Both runs on the examples of every slice."""
    for column in dict.fromkeys([*statistic.slices, *columns]):
        sides = _values(baseline, candidate, statistic, column, by_position=by_position)
        values = sorted(set(sides[0].drop_nulls()) | set(sides[1].drop_nulls()))
        if not 1 <= len(values) <= MOST_SLICES:
            raise InputError(
                f"column `{column}` has {len(values)} values; slices are made of 1 to {MOST_SLICES}",
                hint="`--slice COLUMN` names one such as `language`.",
            )
        for value in values:
            yield (
                Slice(column, value, declared=column in statistic.slices),
                _rows(baseline, sides[0] == value),
                _rows(candidate, sides[1] == value),
            )


def runs_of_slice(
    baseline: RunData, candidate: RunData, statistic: Statistic, part: Slice, *, by_position: bool
) -> tuple[RunData, RunData]:
    """Return both runs on the examples of one slice.

    Raises
    ------
    InputError
        If a run has no such column.
    PairingError
        If an example is not in the same slice in both runs.
    """
    sides = _values(baseline, candidate, statistic, part.column, by_position=by_position)
    return _rows(baseline, sides[0] == part.value), _rows(candidate, sides[1] == part.value)


def _values(
    baseline: RunData, candidate: RunData, statistic: Statistic, column: str, *, by_position: bool
) -> tuple[pl.Series, pl.Series]:
    """Return the values of a column as text, by row; an example has the same in both runs."""
    tables = baseline.table, candidate.table
    for table in tables:
        if column not in table.columns:
            raise InputError(
                f"`{table.origin}` has no column `{column}` to make slices of",
                hint=f"its columns are {listed(table.columns)}.{did_you_mean(column, table.columns)}",
            )
    ids = [] if by_position else list(id_columns(statistic.columns["id"], tables))
    first, second, _ = typed_columns(*tables, [*ids, column], text=[*ids, column])
    frames = [side.frame.to_polars().with_columns(pl.col(column).cast(pl.String)) for side in (first, second)]
    if by_position:
        joined = frames[0].with_columns(frames[1][column].alias("candidate"))
    else:
        joined = frames[0].join(frames[1].rename({column: "candidate"}), on=ids)
    differ = joined.filter(pl.col(column).ne_missing(pl.col("candidate")))
    if len(differ):
        row = differ.row(0, named=True)
        where = " of example " + ", ".join(repr(row[name]) for name in ids) if ids else ""
        raise PairingError(
            f"column `{column}` differs between the runs on {len(differ)} examples: first{where},"
            f" {row[column]!r} in the baseline and {row['candidate']!r} in the candidate",
            hint="slices are those of the examples, the same in both runs.",
        )
    return frames[0][column], frames[1][column]


def _rows(run: RunData, chosen: pl.Series) -> RunData:
    frame = run.table.frame
    mask = nw.from_native(chosen.fill_null(False), series_only=True)
    return replace(run, table=replace(run.table, data=frame.filter(mask.to_list())))
