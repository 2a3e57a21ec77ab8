"""What the examples of two runs come to that are paired bucket by bucket."""

from __future__ import annotations

import functools
import operator
from contextlib import ExitStack
from dataclasses import dataclass, replace

import narwhals as nw
import numpy as np
import polars as pl

from trackperm.choices import Missing
from trackperm.errors import TrackpermError
from trackperm.exact import CountTable
from trackperm.pairing.changed import n_changed
from trackperm.pairing.checks.differences import Differences, RunDifferences
from trackperm.pairing.checks.refusals import refuse_differences, require_unique_ids
from trackperm.pairing.checks.suspicions import Evidence, suspicions
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.counting import discordant_rows, paired_counts, read_columns
from trackperm.pairing.examples_digest import TestSetOfParts
from trackperm.pairing.folds import MOST_FOLDS
from trackperm.pairing.frame_file import FrameFile, Place
from trackperm.pairing.grouping import grouped
from trackperm.pairing.keyed_run import KeyedRun
from trackperm.pairing.missing import counted_runs
from trackperm.pairing.pair import (
    PairedRuns,
    design,
    differ,
    lacking_predictions,
    matched,
    predictions_missing,
    reported,
)
from trackperm.pairing.report import OUTCOMES
from trackperm.statistic import Statistic
from trackperm.tables.column_types import ColumnType
from trackperm.tables.scan import copied

Runs = tuple[KeyedRun, KeyedRun]


@dataclass(frozen=True, eq=False)
class _Counted:
    """What some paired examples come to."""

    statistic: Statistic
    count_table: CountTable
    first_ids: pl.DataFrame
    evidence: Evidence
    n_lacking: tuple[int, int]
    n_changed: int | None

    def __add__(self, later: _Counted) -> _Counted:
        tables = self.count_table, later.count_table
        candidate, baseline, multiplicities = (
            np.concatenate([getattr(table, part) for table in tables])
            for part in ("candidate", "baseline", "multiplicities")
        )
        return _Counted(
            self.statistic,
            CountTable.from_counts(tables[0].names, candidate, baseline, multiplicities),
            pl.concat([self.first_ids, later.first_ids]).head(MOST_FOLDS + 1),
            self.evidence + later.evidence,
            (self.n_lacking[0] + later.n_lacking[0], self.n_lacking[1] + later.n_lacking[1]),
            None if self.n_changed is None or later.n_changed is None else self.n_changed + later.n_changed,
        )


class Totals:
    """What the buckets come to that were added so far, in ascending order of their keys.

    Parameters
    ----------
    without_id : (RunDifferences, RunDifferences)
        Rows of baseline and candidate that are in no bucket.
    sampled : int
        Of how many examples one is looked at for suspicions.
    columns : PairedColumns
        What is read of the runs.
    types : dict of str to ColumnType
        Types of the columns.
    statistic : Statistic
        Counts the outcomes, all of them as integers.
    missing : Missing
        What to do with examples that lack a partner or a value.
    files : ExitStack
        Closes the temporary file of what is to be kept.
    """

    def __init__(
        self,
        without_id: tuple[RunDifferences, RunDifferences],
        sampled: int,
        columns: PairedColumns,
        types: dict[str, ColumnType],
        statistic: Statistic,
        missing: Missing,
        files: ExitStack,
    ) -> None:
        self._columns, self._types, self._sampled = columns, types, sampled
        self._statistic, self._missing = statistic, missing
        self._ids = [RunDifferences(run.origin) for run in without_id]
        self._found = Differences.none(without_id, columns)
        self._counted: list[_Counted] = []
        self._discordant = FrameFile(files)
        self._test_set = TestSetOfParts(columns, files)
        self._places: list[Place] = []
        self._error: TrackpermError | None = None

    def add(self, runs: Runs) -> None:
        """Add the examples of a bucket."""
        self._ids = [ids + RunDifferences.of_ids(run) for ids, run in zip(self._ids, runs, strict=True)]
        if any(ids.repeated.n for ids in self._ids):
            return
        self._test_set.add(runs)
        found, paired = matched(runs, self._columns, self._missing)
        self._found += found
        if self._error is None and found.n_paired:
            try:
                self._counted.append(self._count(paired))
            except TrackpermError as error:  # what is refused is said first
                self._error = error

    def _count(self, paired: Runs) -> _Counted:
        columns, types = self._columns, self._types
        own = counted_runs(paired, self._statistic, columns, types, OUTCOMES.get(self._missing))
        counts = paired_counts(paired[0].keys, own.baseline, own.candidate)
        read, n_before = read_columns(*paired, columns), self._found.n_paired - len(paired[0])
        discordant = discordant_rows(counts, differ(counts), None, read, own.statistic)
        self._places.append(self._discordant.write(discordant.to_polars()))
        evidence = Evidence.of(paired, columns, types, every=self._sampled, start=n_before)
        return _Counted(
            own.statistic,
            grouped(counts, None, own.statistic),
            copied(counts.frame.select("id").head(MOST_FOLDS + 1).to_polars()),
            replace(evidence, samples=(copied(evidence.samples[0]), copied(evidence.samples[1]))),
            lacking_predictions(paired, columns, self._missing),
            n_changed(paired, columns, own.statistic),
        )

    def refuse(self) -> None:
        """Refuse what :func:`~trackperm.pairing.pair.pair` refuses, in the same words."""
        columns = self._columns
        if columns.id is not None:
            require_unique_ids(self._ids, columns.id)
        refuse_differences(self._found, columns, self._missing, has_wrong=self._statistic.counts_missing)
        if self._error is not None:
            raise self._error

    def result(self, baseline_digest: str, candidate_digest: str) -> PairedRuns:
        """Return what all buckets come to."""
        columns, counted = self._columns, functools.reduce(operator.add, self._counted)
        notes = (
            *design(nw.from_native(counted.first_ids["id"], series_only=True), columns, counted.statistic),
            *predictions_missing(counted.n_lacking, self._missing),
            *suspicions(counted.evidence, columns, self._types),
        )
        return PairedRuns(
            statistic=counted.statistic,
            count_table=counted.count_table,
            report=reported(
                self._found,
                columns,
                self._missing,
                notes,
                (baseline_digest, candidate_digest),
                self._test_set.hexdigest(),
                counted.n_changed,
            ),
            discordant=nw.from_native(pl.concat(map(self._discordant.read, self._places)), eager_only=True),
        )
