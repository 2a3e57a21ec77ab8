"""Law of a comparison's data, from which the power of equivalence follows."""

from __future__ import annotations

from trackperm.comparison.evidence import range_of_scores
from trackperm.exact import CountTable
from trackperm.exact.intervals import Interval, additive_scores
from trackperm.exact.power.equivalence import DifferenceLaw, PairedLaw, ScoreLaw, ShiftLaw
from trackperm.statistic import Statistic


def law_by_interval(statistic: Statistic, table: CountTable, basis: Interval) -> DifferenceLaw | None:
    """Return the law of data for equivalence by this interval; None if its spread is unknown.

    An interval by resampling has the law of the score interval, to which it is equal to first order.
    """
    observed, swapped = statistic.pairs(table.candidate, table.baseline)
    counts = table.multiplicities
    scores = None
    if basis.method in ("paired proportions", "shift"):
        scores = additive_scores(observed, swapped, statistic.h, counts)
    if scores is None:
        return ScoreLaw.of(observed, swapped, statistic.h, counts)
    if basis.method == "shift":
        return ShiftLaw.of(scores, range_of_scores(statistic, table))
    return PairedLaw.of(scores)
