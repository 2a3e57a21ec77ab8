"""Counts of joined rows by any statistic: of examples, by class, shares of pairs, or codes of ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from trackperm.exact import CountTable
from trackperm.exact.pairwise import Influences
from trackperm.pairing.counts.by_unit import by_unit
from trackperm.pairing.counts.classes import ClassCounts, counted_by_class
from trackperm.pairing.counts.counting import DIFFERS, STRATUM, count_table, counted, differ, discordant_rows
from trackperm.pairing.counts.pairwise import RANKS, shares_of_pairs
from trackperm.pairing.counts.rank_codes import RANKED_ANEW, codes_of_ranks
from trackperm.pairing.engines.base import Frame, Types
from trackperm.pairing.joined import KEY, JoinedRows
from trackperm.statistic import Outcome, Statistic, load_statistic
from trackperm.statistic.expressions.frames import Decimals


@dataclass(frozen=True, eq=False)
class RowCounts:
    """Counts of both runs on their rows, or on the units that are exchanged.

    Attributes
    ----------
    rows : JoinedRows
        The rows that are counted, in memory if the statistic compares them with each other.
    frame : narwhals.LazyFrame
        The counts of both runs: a row for each of `rows`, or for each unit and stratum.
    statistic : Statistic
        The statistic, with the classes, strata and units of decimals in the data.
    by_class : ClassCounts or None
        Counts of every class; None without classes.
    notes : tuple of str
        What a reader has to know about the counts.
    decimals : mapping of str to Decimals
        Columns that are decimals on all rows.
    asymptotic : str or None
        Why p is only asymptotic; None if nothing about the counts makes it so.
    influences : Influences or None
        Influences of the examples on a score over pairs.
    has_units : bool
        Whether a row of `frame` is a cluster, or all rows of an example.
    """

    rows: JoinedRows
    frame: Frame
    statistic: Statistic
    by_class: ClassCounts | None = None
    notes: tuple[str, ...] = ()
    decimals: Mapping[str, Decimals] = field(default_factory=dict)
    asymptotic: str | None = None
    influences: Influences | None = None
    has_units: bool = False

    @property
    def has_strata(self) -> bool:
        """Whether counts are by stratum; those of a rank statistic have the stratum as one of its codes."""
        return self.rows.columns.strata is not None and self.statistic.rank_score is None

    def with_strata(self) -> RowCounts:
        """Add the stratum of each row, and to the statistic the names of all strata."""
        if not self.has_strata:
            return self
        rows, statistic = self.rows, self.statistic
        stratum = rows.example(str(rows.columns.strata)).cast(rows.functions.String)
        frame = self.frame.with_columns(stratum.alias(STRATUM))
        if statistic.pair_term is None:
            names = rows.engine.collected(frame.select(STRATUM).unique())[STRATUM].sort().to_list()
            statistic = load_statistic(statistic, strata=names)
        return replace(self, frame=frame, statistic=statistic)

    def of_units(self) -> RowCounts:
        """Add up the counts of each cluster or example, if these are exchanged and not the single rows.

        The rows of a rank statistic stay examples, which have the cluster as one of their codes.
        """
        columns, f = self.rows.columns, self.rows.functions
        if (columns.cluster is None and not columns.repeats) or self.statistic.rank_score is not None:
            counts = replace(self, frame=self.frame.with_columns(f.col(KEY).alias("id")))
        else:
            frame, statistic, by_class = by_unit(self.rows, self.frame, self.statistic, self.by_class)
            counts = replace(self, frame=frame, statistic=statistic, by_class=by_class, has_units=True)
        if counts.by_class is not None:
            return counts
        return replace(counts, frame=counts.frame.with_columns(differ(f, counts.statistic).alias(DIFFERS)))

    def table(self) -> CountTable:
        """Return the table of the counts, whose rows the test exchanges."""
        if self.by_class is not None:
            return self.by_class.count_table()
        engine = self.rows.engine
        return count_table(engine, self.frame, self.statistic, strata=self.has_strata, units=self.has_units)

    def discordant(self) -> pl.DataFrame:
        """Return the rows or units on which the counts of the runs differ."""
        return discordant_rows(self.rows, self.frame, self.statistic, has_values=not self.has_units)


def row_counts(
    rows: JoinedRows,
    statistic: Statistic,
    types: Types,
    outcomes: tuple[Outcome, Outcome] | None,
    decimals: Mapping[str, Decimals] | None,
) -> RowCounts:
    """Count joined rows by a statistic.

    `types` includes those of :func:`~trackperm.pairing.counts.classes.class_types` where there are classes;
    `outcomes` replace missing predictions of baseline and candidate, and `decimals` are known if the runs are
    two of a leaderboard.

    Raises
    ------
    InputError, SpecError
        If rows cannot be counted, as the function for the kind of statistic says.
    """
    known = decimals or {}
    if (term := statistic.pair_term) is not None:
        shares = shares_of_pairs(rows, statistic, term, types)
        return RowCounts(
            shares.rows,
            shares.frame,
            shares.statistic,
            shares.by_class,
            decimals=known,
            asymptotic=RANKS if term.scale == "ranks" else None,
            influences=shares.influences,
        )
    if (score := statistic.rank_score) is not None:
        coded = codes_of_ranks(rows, statistic, score, types)
        why = RANKED_ANEW if score.scale == "ranks" else None
        return RowCounts(coded.rows, coded.frame, coded.statistic, decimals=known, asymptotic=why)
    if statistic.has_classes:
        frame, classes = counted_by_class(rows, statistic, types, outcomes, decimals)
        return RowCounts(rows, frame, classes.statistic, classes, classes.notes, classes.decimals)
    own = counted(rows, rows.examples, statistic, types, outcomes, decimals=decimals)
    return RowCounts(rows, own.frame, own.statistic, notes=own.notes, decimals=own.decimals)
