"""Check that scores of two runs have one unit: no fractions in one run and percentages in the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from trackperm.errors import InputError, TrackpermError
from trackperm.statistic import Statistic
from trackperm.tables.columns.names import REWARD
from trackperm.tables.columns.types import typed_columns
from trackperm.tables.table import ExampleTable

_BLOCK = 100_000
"""Rows by which the unit of a run is judged."""

_FROM_ONE, _ABOVE_ONE = 0.9, 0.5
"""Shares of the values other than 0 that are at least 1, and above 1, in percent; times seldom have so many.
"""

_LEAST_LARGEST = 2.0
"""Largest value up to which a run may hold fractions with a few values above 1, such as error rates."""

_RATIO = 20.0
"""Ratio of the means of the values other than 0 from which on they are rather two units."""

_FEW = 10.0
"""Largest integer up to which integers may be counts of what the other run has at most once."""


@dataclass(frozen=True)
class _Scores:
    """Scores of a run: their range, and of those other than 0 the mean, the shares from 1 and above 1."""

    origin: str
    least: float
    greatest: float
    mean: float
    share_from_one: float
    share_above_one: float
    has_decimals: bool

    @classmethod
    def of(cls, table: ExampleTable, column: str) -> _Scores | None:
        """Summarise a column; None if it has no number other than 0, or cannot be read."""
        try:
            head = table.head(_BLOCK).only((column,))
            typed, _, _ = typed_columns(head, head, [column])
            values = typed.frame.get_column(column).to_polars().cast(pl.Float64).drop_nulls()
        except (TrackpermError, pl.exceptions.PolarsError):
            return None  # the pairing reports the error
        others = values.filter(values != 0.0).to_numpy()
        if not others.size:
            return None
        return cls(
            table.origin,
            float(values.to_numpy().min()),
            float(values.to_numpy().max()),
            float(others.mean()),
            float((others >= 1.0).mean()),
            float((others > 1.0).mean()),
            bool((others % 1.0 != 0.0).any()),
        )

    @property
    def may_be_fractions(self) -> bool:
        """Whether all values lie between 0 and 1."""
        return self.least >= 0.0 and self.greatest <= 1.0

    @property
    def may_be_percentages(self) -> bool:
        """Whether all values lie between 0 and 100, and those other than 0 nearly all from 1."""
        is_within = self.least >= 0.0 and _LEAST_LARGEST < self.greatest <= 100.0
        return is_within and self.share_from_one >= _FROM_ONE and self.share_above_one >= _ABOVE_ONE


def with_one_unit(
    tables: Sequence[ExampleTable], statistic: Statistic, *, is_meant: bool | None
) -> Statistic:
    """Refuse a mean of fractions in one run and of percentages in another; a note says so if `is_meant`.

    The statistic has a column `score`; one that reads other columns as well, or declares the range of scores,
    is not checked. `is_meant` is whether the user has named the statistic or metric for these runs; None if
    it was named before they were made.

    Raises
    ------
    InputError
        If the units differ and the statistic or metric is not meant.
    """
    column = statistic.columns["score"]
    is_other = set(statistic.used_columns) != {column} or statistic.rank_score is not None
    if is_other or "score" in statistic.ranges:
        return statistic
    scores = [
        found
        for table in tables
        if column in table.columns and (found := _Scores.of(table, column)) is not None
    ]
    fractions, percentages = _in_two_units(scores, statistic, is_bounded=column != REWARD)
    if not fractions:
        return statistic
    message = _sentence((fractions, percentages), scores[0], column)
    if is_meant:
        return replace(statistic, found=(*statistic.found, f"look: {message}"))
    others = f"`--metric {column}` compares them as they are."
    if is_meant is None:
        others = "A spec with `ranges: {score: [0, 100]}` compares them as they are."
    raise InputError(
        message,
        hint=f"write the scores of all runs in one unit: multiply or divide those of one by 100. {others}",
    )


def _in_two_units(
    scores: Sequence[_Scores], statistic: Statistic, *, is_bounded: bool
) -> tuple[list[_Scores], list[_Scores]]:
    """Return the runs of fractions and those of percentages; no runs if all may have one unit."""
    fractions = [each for each in scores if each.may_be_fractions]
    percentages = [each for each in scores if each.may_be_percentages]
    is_bounded = is_bounded and statistic.greater_is_better
    if not any(_differ(a, b, is_bounded=is_bounded) for a in fractions for b in percentages):
        return [], []
    return fractions, percentages


def _differ(fractions: _Scores, percentages: _Scores, *, is_bounded: bool) -> bool:
    """Whether two runs are rather in two units than of very different quality.

    Scores where greater is better seldom have a run below 1 and another above; losses, times and counts may.
    """
    if fractions.has_decimals and is_bounded:
        return True
    are_counts = not fractions.has_decimals and not percentages.has_decimals and percentages.greatest <= _FEW
    return not are_counts and percentages.mean >= _RATIO * fractions.mean


def _sentence(groups: Sequence[Sequence[_Scores]], first: _Scores, column: str) -> str:
    """Name the runs of each unit with their range, those of the rarer unit first, or else that of `first`."""
    rarer, others = sorted(groups, key=lambda runs: (len(runs), first not in runs))
    of_others = _runs(others) if len(others) < 3 else f"the other {len(others):,} runs"
    return (
        f"`{column}` of {_runs(rarer)} lies between {_range(rarer)}, and that of {of_others} between"
        f" {_range(others)}: they seem to have two units, such as fractions and percentages"
    )


def _runs(scores: Sequence[_Scores]) -> str:
    return " and ".join(f"`{each.origin}`" for each in scores)


def _range(scores: Sequence[_Scores]) -> str:
    return f"{min(each.least for each in scores):.4g} and {max(each.greatest for each in scores):.4g}"
