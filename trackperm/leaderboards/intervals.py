"""The interval for the difference that stands in a row of a leaderboard."""

from __future__ import annotations

from trackperm.errors import CapacityError, InputError
from trackperm.exact import Alternative
from trackperm.exact.intervals import Interval, difference_interval
from trackperm.leaderboards.counted import Counted


def pair_interval(
    counted: Counted, candidate: int, baseline: int, *, alpha: float, alternative: Alternative
) -> Interval | str:
    """Return the interval that goes with the test of these two runs alone, or why there is none.

    It is that of :func:`~trackperm.exact.intervals.difference_interval`: its confidence is that of one
    interval, not of all rows together, and not of a row that was chosen for its score.
    """
    table, statistic = counted.count_table(candidate, baseline)
    stay, swap = statistic.pairs(table.candidate, table.baseline)
    try:
        return difference_interval(
            stay,
            swap,
            statistic.h,
            multiplicities=table.multiplicities,
            alpha=alpha,
            alternative=alternative,
        )
    except (InputError, CapacityError) as error:
        return error.message
