"""Intervals of a leaderboard's rows, at the level at which its verdicts are reached.

An interval at the level of one comparison may exclude 0 where the verdict, corrected for all, is undecided.
Those of a leaderboard never do:

- Where the correction bounds the probability of any false difference (Holm, Bonferroni), intervals are
  simultaneous: each of the m comparisons has one of confidence 1 - alpha / m, so that all of them cover at
  once with a probability of at least 1 - alpha (Bonferroni). That the best run was chosen by its score does
  not matter, as every pair has one. An undecided pair has p >= alpha / m by either rule, and its interval
  holds 0. Holm decides more than intervals for all sizes at once can: a row that it decides with
  p >= alpha / m keeps its interval, which holds 0, and is marked. (The intervals that belong to Holm's
  procedure say nothing of decided rows but the sign; Guilbaud 2008, Strassburger and Bretz 2008.)
- Where it bounds the share of false verdicts (Benjamini and Yekutieli), each interval has the level
  R alpha / (m H_m), with R the number of decided pairs, at least 1, and H_m = 1 + 1/2 + ... + 1/m. It
  excludes 0 exactly where its pair is decided; of those of the decided pairs the expected share that misses
  is at most alpha, under any dependence (false coverage rate; Benjamini and Yekutieli 2005). Those of
  undecided pairs have no such property, and are there for their size alone.

An interval that is approximate, or goes with a p-value by Monte Carlo, can exclude 0 although the pair is
undecided. It is widened up to 0 then, which no interval covers less by.

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

from trackperm.exact.intervals import Interval
from trackperm.exact.multiplicity import Correction
from trackperm.leaderboards.result import Pair


def interval_level(rule: Correction, pairs: Sequence[Pair], alpha: float) -> float:
    """Return the level of the interval of each row, one minus its confidence."""
    m = len(pairs)
    if rule.controls == "FWER":
        return alpha / m
    n_decided = sum(pair.verdict != "undecided" for pair in pairs)
    return max(n_decided, 1) * alpha / (m * sum(1.0 / k for k in range(1, m + 1)))


def agreeing(interval: Interval, pair: Pair) -> Interval:
    """Return the interval of a pair, widened up to 0 where the pair is undecided."""
    if pair.test.method == "monte-carlo":
        interval = replace(interval, relation="may disagree")
    if pair.verdict != "undecided" or 0.0 in interval:
        return interval
    return replace(interval, low=min(interval.low, 0.0), high=max(interval.high, 0.0))
