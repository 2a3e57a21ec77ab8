"""Fast tests of all pairs of runs.

If the statistic is a sum of scores of examples plus a constant, the same in all runs, each run is one array
of integers, and a pair costs one :func:`~trackperm.exact.difference_test`. Other statistics are tested as in
:func:`trackperm.compare`. The p-values are the same as there, because the distribution of a sum depends on
the differences only, in any unit. If few distinct scores or counts occur, examples are counted for many pairs
together; see :mod:`~trackperm.leaderboards.cross_tables`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.comparison import count_table_test
from trackperm.errors import CapacityError, InputError
from trackperm.exact import PermutationTest, RationalStatistic, TestOptions
from trackperm.exact.counts import LARGEST
from trackperm.exact.scores.scaling import scale_scores
from trackperm.exact.sums import difference_test_of, sum_test_of
from trackperm.exact.types import IntArray
from trackperm.leaderboards.cross_tables import MOST_CODES, CrossTables
from trackperm.leaderboards.run_counts import RunCounts, scaled_pair

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class LinearScores:
    """Scores of runs that are a constant plus a sum over examples.

    Attributes
    ----------
    values : list of ndarray, shape (N,)
        Contributions of examples by run: integers, or floats that are converted anew for every pair.
    unit : Fraction
        Contribution of one unit of `values` to the score.
    """

    values: list[Array]
    unit: Fraction

    @classmethod
    def of(cls, counted: RunCounts) -> LinearScores | None:
        """Find the scores, with counts that are equal in all runs as constants; None if not linear."""
        statistic, varying = counted.statistic, counted.varying
        names, score = statistic.count_names, statistic.score
        if statistic.strata is not None or statistic.has_classes or statistic.contrast != "difference":
            return None
        if counted.is_read_by_pair:
            return None
        if not isinstance(score, RationalStatistic) or not varying:
            return None
        constants = [c for c in range(len(names)) if c not in varying]
        if any(names[c] in counted.decimals for c in constants):
            return None
        n, first = len(names), counted.values[0]
        arguments = [
            RationalStatistic.constant(exact_sum(first[c]), n)
            if c in constants
            else RationalStatistic.variable(c, n)
            for c in range(n)
        ]
        try:
            affine = score.substitute(arguments).simplified().affine
        except (CapacityError, ZeroDivisionError):
            return None
        if affine is None:
            return None
        slopes = {c: affine[1].get(c, Fraction(0)) for c in varying}
        columns = {c: [own[c] for own in counted.values] for c in varying}
        if not counted.decimals:
            return cls._of_integers(columns, slopes)
        if len(varying) > 1:
            return None
        ((place, slope),) = slopes.items()
        return cls._of_decimals(columns[place], slope)

    @classmethod
    def _of_integers(cls, columns: dict[int, list[Array]], slopes: dict[int, Fraction]) -> LinearScores:
        denominator = math.lcm(*(slope.denominator for slope in slopes.values()))
        weights = {c: int(slope * denominator) for c, slope in slopes.items()}
        if len(weights) == 1:
            ((place, weight),) = weights.items()
            return cls(columns[place], Fraction(weight, denominator))
        reach = sum(
            abs(weight) * max(int(np.abs(own.astype(np.int64)).max()) for own in columns[c])
            for c, weight in weights.items()
        )
        dtype = np.dtype(np.int64 if reach < LARGEST else object)
        n_runs = len(next(iter(columns.values())))
        values = [
            sum((columns[c][i].astype(dtype) * weight for c, weight in weights.items()), np.zeros((), dtype))
            for i in range(n_runs)
        ]
        return cls([np.asarray(own) for own in values], Fraction(1, denominator))

    @classmethod
    def _of_decimals(cls, columns: list[Array], slope: Fraction) -> LinearScores:
        """Convert all runs to integers at once, if each pair alone would be converted as decimals.

        The common unit is a power of ten at least as fine as that of each pair, so that it fits each pair.
        For numbers of single precision, pairs can have another unit, and are converted one by one.
        """
        everything = np.concatenate(columns)
        scaled = scale_scores(everything, everything, None, wide=False)
        is_single = (everything.astype(np.float32) == everything).all()
        if scaled.how != "decimals" or is_single:
            return cls(columns, slope)
        return cls(np.split(scaled.candidate, len(columns)), slope * scaled.unit)

    @cached_property
    def totals(self) -> list[int] | None:
        """Sums of `values` by run; None if they are floats."""
        if any(own.dtype.kind == "f" for own in self.values):
            return None
        return [exact_sum(own) for own in self.values]

    @cached_property
    def cross_tables(self) -> CrossTables | None:
        """Cross tables of the `values` of two runs; None if there are too many distinct values."""
        if self.totals is None or any(own.dtype == object for own in self.values):
            return None
        least = min(int(own.min()) for own in self.values)
        n_codes = max(int(own.max()) for own in self.values) - least + 1
        if n_codes > MOST_CODES:
            return None
        return CrossTables([(own.astype(np.int64) - least).astype(np.uint8) for own in self.values], n_codes)

    def test(
        self, candidate: int, baseline: int, options: TestOptions, table: IntArray | None = None
    ) -> PermutationTest:
        """Test the difference of the scores of two runs, with their cross table if it is known."""
        if table is not None and self.totals is not None:
            moved, unit = self.totals[candidate] - self.totals[baseline], self.unit
            moves = np.subtract.outer(np.arange(len(table)), np.arange(len(table)))
            reach = len(table) - 1
            counts = np.bincount((moves + reach).ravel(), table.ravel(), 2 * reach + 1).astype(np.int64)
            present = np.flatnonzero(counts)
            moves = (present - reach) * (1 if unit > 0 else -1)
            test = sum_test_of(moves, counts[present], Fraction(1, self.values[0].size), options)
            return replace(test, observed=float(unit * moved))
        u, v, unit = self.values[candidate], self.values[baseline], self.unit
        if self.totals is None:
            u, v, scale = scaled_pair(u, v)
            unit *= scale
            moved = exact_sum(u) - exact_sum(v)
        else:
            moved = self.totals[candidate] - self.totals[baseline]
        if unit < 0:
            u, v, unit, moved = v, u, -unit, -moved
        test = difference_test_of(u, v, options)
        return replace(test, observed=float(unit * moved))


def exact_sum(column: Array) -> int:
    """Return the exact sum of integers of any type."""
    if column.dtype == object or column.size * max(-int(column.min()), int(column.max())) >= LARGEST:
        return sum(map(int, column.tolist()))
    return int(column.sum(dtype=np.int64))


@dataclass(frozen=True, eq=False)
class PairTester:
    """Tester of pairs of the runs of a leaderboard."""

    counted: RunCounts
    linear: LinearScores | None
    options: TestOptions

    @classmethod
    def of(cls, counted: RunCounts, options: TestOptions) -> PairTester:
        """Choose the fast tests for linear scores, if the statistic has them."""
        return cls(counted, LinearScores.of(counted), options)

    def tests(self, pairs: Sequence[tuple[int, int]]) -> list[PermutationTest]:
        """Test pairs of candidate and baseline, given by the indices of the runs.

        Raises
        ------
        UndefinedStatisticError
            If the statistic is undefined after some swaps; the message names the pair.
        """
        cross = self.counted.cross_tables if self.linear is None else self.linear.cross_tables
        tables = repeat(None) if cross is None else cross.of_pairs(pairs)
        return [self._test(*pair, table) for pair, table in zip(pairs, tables, strict=False)]

    def _test(self, candidate: int, baseline: int, cross_table: IntArray | None) -> PermutationTest:
        if self.linear is not None:
            return self.linear.test(candidate, baseline, self.options, cross_table)
        table, statistic = self.counted.count_table(candidate, baseline, cross_table)
        try:
            return count_table_test(statistic, table, self.options)
        except InputError as error:
            names = [self.counted.entries[i].data.name for i in (candidate, baseline)]
            raise type(error)(
                f"`{names[0]}` against `{names[1]}`: {error.message}", hint=error.hint
            ) from error
