"""Intervals of a leaderboard's rows, at a level that agrees with the corrected verdicts.

An interval at the level of a single comparison can exclude 0 although the corrected verdict is undecided. The
intervals of a leaderboard never do:

- If the correction bounds the probability of any false difference (Holm, Bonferroni), the intervals are
  simultaneous. Each of the m comparisons has an interval of confidence 1 - alpha / m, so that all cover
  together with a probability of at least 1 - alpha (Bonferroni). The selection of the best run by its score
  does no harm, because every pair has an interval. An undecided pair has p >= alpha / m by either rule, and
  its interval contains 0. Holm decides more pairs than simultaneous intervals can: a row that Holm decides
  with p >= alpha / m keeps its interval, which contains 0, and is marked. (The intervals that correspond to
  Holm's procedure show only the sign of decided rows; Guilbaud 2008, Strassburger and Bretz 2008.)
- If the correction bounds the share of false verdicts (Benjamini and Yekutieli), each interval has the level
  R alpha / (m H_m), where R is the number of decided pairs, at least 1, and H_m = 1 + 1/2 + ... + 1/m. It
  excludes 0 exactly if its pair is decided. Among the intervals of decided pairs, the expected share that
  misses is at most alpha, under any dependence (false coverage rate; Benjamini and Yekutieli 2005). The
  intervals of undecided pairs do not have this property; they show the size of the difference only.

An approximate interval, or one beside a p-value by Monte Carlo, can exclude 0 although the pair is undecided.
It is then widened up to 0, which cannot reduce its coverage.

References
----------
Y. Benjamini and D. Yekutieli (2005), "False discovery rate-adjusted multiple confidence intervals for
selected parameters", Journal of the American Statistical Association 100.
O. Guilbaud (2008), "Simultaneous confidence regions corresponding to Holm's step-down procedure and other
closed-testing procedures", Biometrical Journal 50.
K. Strassburger and F. Bretz (2008), "Compatible simultaneous lower confidence bounds for the Holm procedure
and other Bonferroni-based closed tests", Statistics in Medicine 27.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trackperm.comparison.inference.effect import interval_of
from trackperm.exact import TestOptions
from trackperm.exact.intervals import Interval
from trackperm.exact.multiplicity import Correction
from trackperm.leaderboards.paired_runs import Progress
from trackperm.leaderboards.result import Pair
from trackperm.leaderboards.run_counts import RunCounts


def interval_level(rule: Correction, pairs: Sequence[Pair], alpha: float) -> float:
    """Compute the level of the interval of each row: one minus its confidence."""
    m = len(pairs)
    if rule.controls == "FWER":
        return alpha / m
    n_decided = sum(pair.verdict != "undecided" for pair in pairs)
    return max(n_decided, 1) * alpha / (m * sum(1.0 / k for k in range(1, m + 1)))


def agreeing(interval: Interval, pair: Pair) -> Interval:
    """Widen the interval of an undecided pair up to 0; return that of a decided pair unchanged."""
    if pair.test.is_drawn:
        interval = replace(interval, relation="may disagree")
    if pair.verdict != "undecided" or 0.0 in interval:
        return interval
    return replace(interval, low=min(interval.low, 0.0), high=max(interval.high, 0.0))


def intervals_of_rows(
    pairs: Sequence[Pair],
    counted: RunCounts,
    order: Sequence[int],
    options: TestOptions,
    level: float,
    progress: Progress,
) -> dict[int, Interval | str]:
    """Return the interval of each pair, or why there is none, by the place of its candidate.

    `order` has the runs by place, and one minus `level` is the confidence.
    """
    found: dict[int, Interval | str] = {}
    for pair in pairs:
        places = order[pair.candidate], order[pair.baseline]
        progress(f"interval: {counted.entries[places[0]].data.name}")
        table, statistic = counted.count_table(*places)
        interval = interval_of(
            statistic,
            table,
            options.interval,
            alpha=level,
            alternative=options.tested,
            influences=counted.influences(*places),
        )
        found[pair.candidate] = interval if isinstance(interval, str) else agreeing(interval, pair)
    return found
