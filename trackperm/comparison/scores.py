"""Score of one run from the totals of its counts."""

from __future__ import annotations

import math

from trackperm.errors import InputError, UndefinedError
from trackperm.exact import RationalStatistic
from trackperm.statistic import Statistic


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
