"""Scores of runs from the totals of their counts, or from the codes of a rank statistic."""

from __future__ import annotations

import math

import numpy as np

from trackperm.errors import InputError, UndefinedError
from trackperm.exact import CountTable, RationalStatistic
from trackperm.exact.rank_statistics import MeanOverStrata, RankedExamples, scores_by_stratum
from trackperm.statistic import Statistic
from trackperm.statistic.rank_score import CLUSTER, RANK, STRATUM, TARGET


def scores_of(statistic: Statistic, table: CountTable) -> tuple[float | None, float | None]:
    """Compute the scores of candidate and baseline; None or NaN if they are undefined."""
    if statistic.rank_score is None:
        candidate, baseline = (score_of(statistic, totals) for totals in table.totals())
        return candidate, baseline
    ranked, scores = ranked_examples(statistic, table)
    sides = scores.scores(ranked.states(np.zeros((1, ranked.n_coins), dtype=np.uint8)))
    return float(sides[0][0]), float(sides[1][0])


def ranked_examples(statistic: Statistic, table: CountTable) -> tuple[RankedExamples, MeanOverStrata]:
    """Return the examples of a rank statistic from their codes, and the scores after any exchange.

    Raises
    ------
    InputError
        If the statistic is not a rank statistic, or the table has other columns than its codes.
    """
    read = statistic.rank_score
    if read is None:
        raise InputError(f"`{statistic.name}` is not a rank statistic")
    place = {name: i for i, name in enumerate(table.names)}
    own, other = (np.repeat(side, table.multiplicities, axis=0) for side in (table.candidate, table.baseline))
    shared = [i for name, i in place.items() if name != RANK]
    if (own[:, shared] != other[:, shared]).any():
        raise InputError(f"labels or groups of `{statistic.name}` differ between the runs")
    units = own[:, place[CLUSTER]] if CLUSTER in place else None
    strata = own[:, place[STRATUM]] if STRATUM in place else None
    weights = [float(weight) for weight in statistic.weights.values()]
    if strata is not None and not set(np.unique(strata).tolist()) == set(range(len(weights))):
        raise InputError(f"the strata of `{statistic.name}` are not those that have weights")
    ranked = RankedExamples.of(
        own[:, place[RANK]], other[:, place[RANK]], own[:, place[TARGET]], units, by_run=read.scale == "ranks"
    )
    return ranked, scores_by_stratum(read.function, ranked, strata, weights)


def score_of(statistic: Statistic, totals: tuple[int, ...]) -> float | None:
    """Compute the score of a run from the totals of its counts; None or NaN if it is undefined."""
    if statistic.score is None:
        return None
    if isinstance(statistic.score, RationalStatistic):
        try:
            return float(statistic.score(totals))
        except ZeroDivisionError:
            return None
    try:
        score = float(statistic.score.number(totals))
    except UndefinedError:
        return math.nan
    if math.isinf(score):
        raise InputError(
            f"a score by `{statistic.name}` is beyond the range of floats",
            hint="use smaller numbers in `exp` and powers.",
        )
    return score
