"""The null hypothesis of a test, and remarks where runs of equal scores can be far from it.

The test asks whether outputs are exchangeable. Runs whose outputs are not may have equal scores all the same,
and then p can be small more often than alpha says, in two ways that the data show.

Ratios. Where one run predicts 10 % and the other 50 % of the examples positive, swaps change more than their
precision: `engines.studentized` derives how often the test rejects if that is equal.

Means. Under the null hypothesis differences up and down are alike. Many small ones down and few large ones
up may have the mean 0 too; in samples that lack the large ones the mean seems to be below 0. By the Edgeworth
expansion of a studentised mean (Hall 1992, chapter 2) 5 % then become 5 % + skewness^2 / 4n or so, and less
than 6 % where n > 25 skewness^2 (Cochran 1977, section 2.15).

References
----------
P. Hall (1992), "The bootstrap and Edgeworth expansion".
W. G. Cochran (1977), "Sampling techniques".
"""

from __future__ import annotations

from trackperm.choices import Alternative
from trackperm.errors import CapacityError
from trackperm.exact import CountTable, RationalStatistic
from trackperm.exact.differences import Differences
from trackperm.exact.engines.studentized import variance_ratio
from trackperm.exact.functions.slopes import corners
from trackperm.exact.types import IntArray
from trackperm.statistic import Statistic

EXCESS = 1.5
"""How many times alpha the test may reject equal scores, to first order, before a remark says so."""

FAR_APART = 1.5
"""Ratio of what the two scores divide by, up to which they count as near."""

SKEWED = 50
"""Differences for a squared skewness of 1, up to which a remark says so.

Cochran asks for 25 where the skewness is known; a sample whose mean is misjudged lacks much of the tail. In
simulations the remark is there in 15, 37 and 63 % of the false rejections of lognormal differences with mean
0 (n = 15, 25 and 50), and in at most 1.4 % of the rejections of normal ones.
"""


def null_hypothesis(statistic: Statistic) -> str:
    """Return what the test takes for granted, in one sentence without its capital and its full stop."""
    where = "every row" if statistic.repeats == "rows" else "every example"
    if statistic.repeats == "attempts":
        return "the attempts of both runs at every example are exchangeable"
    if statistic.cluster is not None:
        where = f"all examples with the same `{statistic.columns[statistic.cluster]}` together"
    elif statistic.has_several_rows:
        where = "every example, all of its rows together"
    return f"outputs are exchangeable on {where}"


def remarks(
    statistic: Statistic, table: CountTable, *, observed: float, alternative: Alternative, alpha: float
) -> tuple[str, ...]:
    """Say where p can be small although the scores are equal; nothing for most comparisons.

    Parameters
    ----------
    statistic : Statistic
        What was tested.
    table : CountTable
        The counts that were tested.
    observed : float
        The statistic of the runs as they are.
    alternative : {'two-sided', 'less', 'greater'}
        Of the test.
    alpha : float
        Its level.

    Returns
    -------
    tuple of str
        Sentences that begin with ``look:``.
    """
    if statistic.repeats == "attempts":  # nothing is swapped as a whole
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
    # A long tail above 0 makes the mean seem too low, never too high.
    if skewness is None or skewness * observed >= 0.0 or n >= SKEWED * skewness**2:
        return None
    many, few = ("up", "down") if observed > 0.0 else ("down", "up")
    return (
        f"the {n} differences that are not 0 are many small ones {many} and few large ones {few}, on which"
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
    apart = _divisors_apart(statistic, table)
    if corners(statistic.h) or (apart is not None and apart < FAR_APART):
        return None
    ratio = variance_ratio(observed, swapped, statistic.h, table.multiplicities)
    if ratio is None or (size := ratio.size(alpha, alternative)) < EXCESS * alpha:
        return None
    why = "the counts of the two runs are far apart"
    if apart is not None:
        why = f"`{statistic.name}` divides by {apart:.2g} times as much in one run as in the other"
    return (
        f"{why}, and about {100.0 * size:.2g} % of such comparisons with equal scores have p below {alpha:g};"
        " `--studentized` adds a test of equal scores"
    )


def _divisors_apart(statistic: Statistic, table: CountTable) -> float | None:
    """Return how many times as large a divisor of the score is in one run as in the other, at the most."""
    if not isinstance(statistic.score, RationalStatistic):
        return None
    try:
        divisors = statistic.score.divisors
    except CapacityError:  # too long to multiply out
        return None
    sizes = [[abs(divisor(totals)) for totals in table.totals()] for divisor in divisors]
    return max((max(pair) / min(pair) for pair in sizes if min(pair) > 0), default=None)
