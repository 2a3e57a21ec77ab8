"""Law of a comparison's data, from which the power of equivalence follows."""

from __future__ import annotations

from trackperm.comparison.inference.evidence import unseen_of_interval
from trackperm.comparison.inference.unseen import unit_scores
from trackperm.exact import CountTable
from trackperm.exact.intervals import Interval
from trackperm.exact.pairwise import Influences
from trackperm.exact.power.equivalence import DifferenceLaw, PairedLaw, PairsLaw, ScoreLaw, ShiftLaw
from trackperm.statistic import Statistic


def law_by_interval(
    statistic: Statistic, table: CountTable, basis: Interval, influences: Influences | None = None
) -> DifferenceLaw | None:
    """Return the law of data for equivalence by this interval; None if its spread is unknown.

    A mean over pairs of examples has the law of their `influences`. An interval by resampling has the law of
    the score interval, to which it is equal to first order.
    """
    unseen = unseen_of_interval(statistic, table, basis, influences)
    if influences is not None:
        return PairsLaw.of(influences, unseen)
    observed, swapped = statistic.pairs(table.candidate, table.baseline)
    counts = table.multiplicities
    scores = unit_scores(statistic, table) if basis.method in ("paired proportions", "shift") else None
    if scores is None:
        return ScoreLaw.of(observed, swapped, statistic.h, counts, unseen)
    if basis.method == "shift":
        return ShiftLaw.of(scores, unseen)
    return PairedLaw.of(scores)
