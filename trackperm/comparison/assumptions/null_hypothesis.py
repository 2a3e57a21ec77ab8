"""Null hypothesis of the test, and remarks on data where equal scores can still be rejected.

The test asks whether outputs are exchangeable. Runs with equal scores need not have exchangeable outputs, and
then p can be below alpha more often than alpha. The data show this in two cases.

Ratios. If one run predicts 10 % and the other 50 % of the examples positive, swaps change more than their
precision. `engines.studentized` derives how often the test rejects equal precision.

Means. Under the null hypothesis, differences up and down have the same distribution. A mean of 0 is also
possible with many small differences down and few large ones up; samples that miss the large ones have a mean
below 0. By the Edgeworth expansion of a studentised mean (Hall 1992, chapter 2), an error rate of 5 % becomes
about 5 % + skewness^2 / 4n, which is less than 6 % if n > 25 skewness^2 (Cochran 1977, section 2.15).

References
----------
J. V. Bradley (1978), "Robustness?", British Journal of Mathematical and Statistical Psychology 31.
P. Hall (1992), "The bootstrap and Edgeworth expansion".
W. G. Cochran (1977), "Sampling techniques".
"""

from __future__ import annotations

from trackperm.choices import Alternative
from trackperm.errors import CapacityError
from trackperm.exact import CountTable, RationalStatistic, RealStatistic
from trackperm.exact.differences import Differences
from trackperm.exact.engines.studentized import variance_ratio
from trackperm.exact.functions.slopes import corners
from trackperm.exact.types import IntArray
from trackperm.statistic import Statistic

EXCESS = 1.5
"""Smallest rate of rejecting equal scores that causes a remark, as a multiple of alpha, to first order.

A test with a rate of up to 1.5 alpha counts as robust by the liberal criterion of Bradley (1978).
"""

FAR_APART = 1.5
"""Smallest ratio of the two scores' divisors with a remark.

The remark gives this ratio as the reason; with a smaller one, readers would see no difference.
"""

SKEWED = 50
"""Differences per unit of squared skewness below which a remark is made.

Cochran's rule is 25 with the true skewness; here it is twice that because a sample that misses the tail also
underestimates the skewness. In simulations, the remark is made for 15, 37 and 63 % of the false rejections of
lognormal differences with mean 0 (n = 15, 25 and 50), and for at most 1.4 % of the rejections of normal ones.
"""


def null_hypothesis(statistic: Statistic) -> str:
    """Describe the null hypothesis in one sentence, without capital and full stop."""
    where = "every row" if statistic.repeats == "rows" else "every example"
    if statistic.repeats == "attempts":
        return "the attempts of both runs at every example are exchangeable"
    if statistic.cluster is not None:
        where = f"all examples with the same `{statistic.columns[statistic.cluster]}` together"
    elif statistic.has_several_rows:
        where = "every example, all of its rows together"
    read = statistic.pair_term or statistic.rank_score
    if read is not None and read.scale == "ranks":
        return f"the ranks of the scores within each run are exchangeable on {where}"
    return f"outputs are exchangeable on {where}"


def remarks(
    statistic: Statistic, table: CountTable, *, observed: float, alternative: Alternative, alpha: float
) -> tuple[str, ...]:
    """Return remarks, which begin with ``look:``, on data where p can be small although scores are equal."""
    # Attempts: no example is swapped as a whole. Pairs and ranks: counts are not those of a sample.
    if statistic.repeats == "attempts" or statistic.depends_on_both:
        return ()
    pairs = statistic.pairs(table.candidate, table.baseline)
    differences = Differences.of(statistic.h, *pairs, table.multiplicities)
    if differences is not None:
        found = _of_skewness(differences, observed)
    else:
        found = _of_ratio(statistic, table, *pairs, alternative, alpha)
    return () if found is None else (f"look: p can be small although the scores are equal: {found}",)


def _of_skewness(differences: Differences, observed: float) -> str | None:
    skewness, n = differences.skewness, differences.n_moved
    # A sample that misses a long upper tail has a mean that is too low, never too high.
    if skewness is None or skewness * observed >= 0.0 or n >= SKEWED * skewness**2:
        return None
    many, few = ("up", "down") if observed > 0.0 else ("down", "up")
    return (
        f"the {n:,} differences that are not 0 are many small ones {many} and few large ones {few}, on which"
        " the mean depends"
    )


def _of_ratio(
    statistic: Statistic,
    table: CountTable,
    observed: IntArray,
    swapped: IntArray,
    alternative: Alternative,
    alpha: float,
) -> str | None:
    divisors, h = _ratio_of_divisors(statistic, table), statistic.h
    if not isinstance(h, RationalStatistic | RealStatistic):
        return None
    if corners(h) or (divisors is not None and divisors < FAR_APART):
        return None
    ratio = variance_ratio(observed, swapped, h, table.multiplicities)
    if ratio is None or (size := ratio.size(alpha, alternative)) < EXCESS * alpha:
        return None
    why = "the counts of the two runs differ much"
    if divisors is not None:
        why = f"the divisor of `{statistic.name}` is {divisors:.2g} times as large in one run as in the other"
    return (
        f"{why}, and about {100.0 * size:.2g} % of such comparisons with equal scores have p below {alpha:g};"
        " `--studentized` adds a test of equal scores"
    )


def _ratio_of_divisors(statistic: Statistic, table: CountTable) -> float | None:
    """Return the largest ratio of a divisor of the score between the two runs; None without divisors."""
    if not isinstance(statistic.score, RationalStatistic):
        return None
    try:
        divisors = statistic.score.divisors
    except CapacityError:  # too long to multiply out
        return None
    sizes = [[abs(divisor(totals)) for totals in table.totals()] for divisor in divisors]
    return max((max(pair) / min(pair) for pair in sizes if min(pair) > 0), default=None)
