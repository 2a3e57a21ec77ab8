"""Results of other tests on the same counts, for comparison; they do not affect the verdict.

Each test uses one difference for each example, or for each cluster if clusters are exchanged as a whole. A
statistic has such differences if exchanging the outputs of an example always changes it by the same amount,
as for means and shares. Ranks, moments and signs are computed from the distinct differences and their
multiplicities, so that the cost does not grow with the number of examples.

For ratios such as F1, a standard error is known to first order. Let v be the gradient of h at the observed
sums S = sum_k c_k a_k, and y_k = v . a_k. The variance of h(S) is near sum_k c_k (y_k - mean of y)^2, with a
sum over clusters if there are any (Liang and Zeger 1986; for ratios, the delta method).

The studentised permutation test is a separate option. It tests equal scores; see `engines.studentized`.

References
----------
F. Wilcoxon (1945), "Individual comparisons by ranking methods", Biometrics Bulletin 1.
Q. McNemar (1947), "Note on the sampling error of the difference between correlated proportions or
percentages", Psychometrika 12.
K.-Y. Liang and S. L. Zeger (1986), "Longitudinal data analysis using generalized linear models",
Biometrika 73.
E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson (1988), "Comparing the areas under two or more correlated
receiver operating characteristic curves", Biometrics 44.
A. C. Cameron and D. L. Miller (2015), "A practitioner's guide to cluster-robust inference", Journal of
Human Resources 50.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from trackperm.choices import Alternative
from trackperm.errors import TrackpermError
from trackperm.exact import CountTable, PermutationTest, RationalStatistic, RealStatistic
from trackperm.exact.counts import exact_column_sums
from trackperm.exact.differences import Differences
from trackperm.exact.engines.studentized import studentized_test
from trackperm.exact.pairwise import Influences
from trackperm.exact.types import IntArray
from trackperm.statistic import Statistic

DELONG = "DeLong's test"
"""Name of the second opinion on means over pairs of examples."""

STUDENTIZED = "studentised permutation test"
"""Name of the second opinion that has its own option."""

SAME = 0.01
"""Largest relative difference of p-values that count as equal; less is of no practical importance."""

FEW = 30
"""Nonzero differences below which a normal mean is called doubtful: the usual rule of textbooks."""

FEW_CLUSTERS = 40
"""Number of clusters below which the standard error is called too small.

Cameron and Miller (2015) call fewer than 20 to 50 clusters few, depending on the data.
"""

LARGE_SHARE = 0.1
"""Share of one difference in the sum of squares above which a normal mean is called doubtful.

A normal limit needs this share to vanish; 0.1 is the share of each of ten equal differences.
"""

RANKED_EXACTLY = 50
"""Most differences for SciPy's exact signed-rank test, as in SciPy's own rule; they have no ties."""

STEP = 1e-6
"""Relative step of central differences: near the cube root of the precision of floats, which is best."""

SMALLEST = 1e-300
"""Smallest p-value that is written; floats lose digits soon below it."""


_ALL_ZERO = "all differences are 0"
_SEVERAL_SIZES = "it needs differences of one size, such as those of scores of 0 and 1"


@dataclass(frozen=True)
class SecondOpinion:
    """Result of another test on the same counts.

    Attributes
    ----------
    name : str
        Name of the test.
    pvalue : float or None
        p-value of the test; None if the test does not apply.
    differs : bool
        Whether the p-value differs by more than 1 % from that of the permutation test.
    overturns : bool
        Whether the two p-values lie on different sides of alpha.
    sentence : str
        Comparison of the two p-values with its reason, or the reason why the test does not apply.
    """

    name: str
    pvalue: float | None
    differs: bool
    overturns: bool
    sentence: str

    @property
    def shown(self) -> str:
        """The p-value as text, which is never rounded to 0; empty if the test does not apply."""
        return "" if self.pvalue is None else _written(self.pvalue)


def second_opinions(
    statistic: Statistic,
    table: CountTable,
    test: PermutationTest,
    alpha: float = 0.05,
    *,
    influences: Influences | None = None,
) -> tuple[SecondOpinion, ...]:
    """Run the paired t, Wilcoxon, sign and McNemar tests, and one with a clustered standard error.

    They have the alternative of `test`, and its counts: those of clusters if the statistic declares them. For
    a mean over pairs of examples, with the `influences` of these, run DeLong's test alone.
    """
    if statistic.pair_term is not None:
        result = _delong(statistic, test, None if influences is None else influences.standard_error)
        return (_Reader(test, alpha).opinion(DELONG, result),)
    if statistic.rank_score is not None:
        why = f"`{statistic.name}` is a rank statistic, not a mean of one difference for each example"
        return (_Reader(test, alpha).opinion("paired t-test", why),)
    observed, swapped = statistic.pairs(table.candidate, table.baseline)
    reader = _Reader(test, alpha)
    differences = Differences.of(statistic.h, observed, swapped, table.multiplicities)
    refusal = ""
    if differences is None:
        refusal = f"`{statistic.name}` is not a mean of one difference for each of the {_units(statistic)}"
    elif statistic.weights:
        refusal = f"`{statistic.name}` has weighted strata or classes, which this test does not support"
    found = []
    for name, opinion in (
        ("paired t-test", _t_test),
        ("Wilcoxon signed-rank test", _signed_rank_test),
        ("sign test", _sign_test),
        ("McNemar's test, exact", _mcnemar_exact),
        ("McNemar's test, chi-squared", partial(_mcnemar_normal, correction=0)),
        ("McNemar's test, chi-squared with continuity correction", partial(_mcnemar_normal, correction=1)),
    ):
        result = refusal if differences is None or refusal else opinion(differences, test.alternative)
        found.append(reader.opinion(name, result))
    result = _clustered(statistic, observed, table.multiplicities, test, is_linear=differences is not None)
    return (*found, reader.opinion("clustered standard error", result))


def _delong(
    statistic: Statistic, test: PermutationTest, standard_error: float | None
) -> str | tuple[float, str]:
    from scipy import stats

    if statistic.cluster is not None:
        return "its standard error assumes independent examples, not clusters"
    if not standard_error:
        return "the standard error of the difference is 0 or unknown"
    why = (
        f"Its standard error {standard_error:.3g} is that of the infinitesimal jackknife over"
        f" {test.n_examples:,} independent examples, for areas under ROC curves that of DeLong, DeLong and"
        " Clarke-Pearson (1988); the difference is taken as normal"
    )
    if test.n_discordant < FEW:
        why += ", which is doubtful with so few differences"
    return _two_or_one_sided(stats.norm, test.observed / standard_error, test.alternative), why


def studentized_opinion(
    statistic: Statistic, table: CountTable, test: PermutationTest, alpha: float = 0.05
) -> SecondOpinion:
    """Run the studentised permutation test; for a mean or a sum, it is the same test."""
    return _Reader(test, alpha).opinion(STUDENTIZED, _studentized(statistic, table, test))


def _studentized(statistic: Statistic, table: CountTable, test: PermutationTest) -> str | tuple[float, str]:
    if statistic.pair_term is not None:
        return f"`{statistic.name}` is a mean over pairs of examples, whose standard error needs their scores"
    if statistic.rank_score is not None:
        return f"`{statistic.name}` is a rank statistic, whose standard error is unknown"
    observed, swapped = statistic.pairs(table.candidate, table.baseline)
    if Differences.of(statistic.h, observed, swapped, table.multiplicities) is not None:
        return test.pvalue, (
            f"It is the same test: `{statistic.name}` is a sum of one difference for each of the"
            f" {_units(statistic)}, and no swap changes the squares of these differences"
        )
    h = statistic.h
    if not isinstance(h, RationalStatistic | RealStatistic):
        return f"`{statistic.name}` is a Python function, whose slopes are unknown"
    try:
        found = studentized_test(observed, swapped, h, table.multiplicities, alternative=test.alternative)
    except TrackpermError as error:
        return error.message
    how = "all swaps are enumerated"
    if found.n_samples is not None:
        low, high = found.interval
        how = f"Monte Carlo of {found.n_samples:,} swaps, 99 % interval {low:.3g} to {high:.3g}"
    return found.pvalue, (
        "It tests equal scores: asymptotically, and in samples of any size if outputs are exchangeable. The"
        f" difference after each swap is divided by its own standard error (delta method); {how}. It does not"
        " affect the verdict"
    )


def _units(statistic: Statistic) -> str:
    return "examples" if statistic.cluster is None else "clusters"


@dataclass(frozen=True)
class _Reader:
    """Comparison of p-values with that of the permutation test."""

    test: PermutationTest
    alpha: float

    def opinion(self, name: str, result: str | tuple[float, str]) -> SecondOpinion:
        """Build a second opinion from a p-value with its explanation, or from the reason for its absence."""
        if isinstance(result, str):
            return SecondOpinion(name, None, False, False, f"Does not apply: {result}.")
        pvalue, why = result
        exact = self.test.pvalue
        is_exact = self.test.relation == "=" and not self.test.mid_p
        kind = "the exact" if is_exact else "the permutation test's"
        own = "mid-p" if self.test.mid_p else "p"
        shown = f"{kind} {own} {self.test.relation} {self.test.format_pvalue(3, self.alpha)}"
        differs = abs(pvalue - exact) > SAME * max(pvalue, exact)
        overturns = (pvalue < self.alpha) != (exact < self.alpha)
        digits = 3
        while digits < 17 and (float(f"{pvalue:.{digits}g}") < self.alpha) != (pvalue < self.alpha):
            digits += 1
        beside = f"p {'= ' * (pvalue >= SMALLEST)}{_written(pvalue, digits)} beside {shown}"
        if differs or overturns:
            beside += f", on the {'other' if overturns else 'same'} side of {self.alpha:g}"
        return SecondOpinion(name, pvalue, differs, overturns, f"{beside}. {why}.")


def _written(pvalue: float, digits: int = 3) -> str:
    """Format a p-value; one near or below the range of floats becomes an upper bound, not 0."""
    return f"{pvalue:.{digits}g}" if pvalue >= SMALLEST else f"< {SMALLEST:g}"


def _t_test(differences: Differences, alternative: Alternative) -> str | tuple[float, str]:
    from scipy import stats

    n = differences.n
    values, counts = differences.values.astype(np.float64), differences.counts
    mean = float(counts @ values) / n
    squares = float(counts @ (values - mean) ** 2)
    if differences.values.size == 1:
        return f"all {n:,} differences are equal"
    t = mean / math.sqrt(squares / (n - 1) / n)
    n_moved = differences.n_moved
    share = float((values**2).max() / (counts @ values**2))
    why = f"It assumes that the mean of {n:,} differences, {n_moved:,} of them not 0, is normally distributed"
    if n_moved < FEW:
        why += ", which is doubtful with so few"
    elif share > LARGE_SHARE:
        why += f", which is doubtful because one is {100.0 * share:.0f} % of the sum of squares"
    return _two_or_one_sided(stats.t(n - 1), t, alternative), why


def _signed_rank_test(differences: Differences, alternative: Alternative) -> str | tuple[float, str]:
    from scipy import stats

    if not (n := differences.n_moved):
        return _ALL_ZERO
    moved = differences.values != 0
    values, counts = differences.values[moved], differences.counts[moved]
    sizes, rows = np.unique(np.abs(values), return_inverse=True)
    ties = np.zeros(sizes.size, dtype=np.int64)
    np.add.at(ties, rows, counts)
    ends = np.cumsum(ties)
    ranks = (ends - ties + 1 + ends) / 2.0
    up = values > 0
    n_tied = int(ties[ties > 1].sum())
    zeros = differences.n - n
    dropped = f"drops {zeros:,} differences of 0 and " if zeros else ""
    why = (
        f"It {dropped}ranks the sizes of {n:,} differences, {n_tied:,} of them tied: it tests a shift of the"
        " typical difference, not of the mean"
    )
    if sizes.size == 1:
        why = (
            f"It {dropped}gives the other {n:,} the same rank, because they have the same size: the sign test"
        )
    if n_tied == 0 and n <= RANKED_EXACTLY:
        signed = np.where(up, ranks[rows], -ranks[rows])
        return float(stats.wilcoxon(signed, alternative=alternative, method="exact").pvalue), why
    total = float(counts[up] @ ranks[rows][up])
    # With fair signs, the variance of the sum of positive midranks is a quarter of the sum of their squares.
    z = (total - n * (n + 1) / 4.0) / math.sqrt(float(ties @ ranks**2) / 4.0)
    return _two_or_one_sided(stats.norm, z, alternative), f"{why}; its p is a normal approximation"


def _sign_test(differences: Differences, alternative: Alternative) -> str | tuple[float, str]:
    from scipy import stats

    up, down = differences.n_up, differences.n_down
    if not up + down:
        return _ALL_ZERO
    pvalue = float(stats.binomtest(up, up + down, alternative=alternative).pvalue)
    if differences.size is not None:
        return pvalue, f"It counts {up:,} up and {down:,} down: for differences of one size, the same test"
    return pvalue, f"It counts {up:,} up and {down:,} down, whatever their size"


def _mcnemar_exact(differences: Differences, alternative: Alternative) -> str | tuple[float, str]:
    result = _sign_test(differences, alternative)
    if isinstance(result, str) or differences.size is None:
        return result if isinstance(result, str) else _SEVERAL_SIZES
    return result[0], "For differences of one size it is the same test"


def _mcnemar_normal(
    differences: Differences, alternative: Alternative, correction: int
) -> str | tuple[float, str]:
    from scipy import stats

    if not differences.n_moved or differences.size is None:
        return _SEVERAL_SIZES if differences.n_moved else _ALL_ZERO
    up, down = differences.n_up, differences.n_down
    excess = up - down
    if alternative == "two-sided":
        excess = max(abs(excess) - correction, 0)
    else:
        excess += correction if alternative == "less" else -correction
    z = excess / math.sqrt(up + down)
    why = f"It approximates the binomial distribution of {up + down:,} differences by a normal one"
    return _two_or_one_sided(stats.norm, z, alternative), why


def _clustered(
    statistic: Statistic, observed: IntArray, counts: IntArray, test: PermutationTest, *, is_linear: bool
) -> str | tuple[float, str]:
    from scipy import stats

    h = statistic.h
    if not isinstance(h, RationalStatistic):
        return f"`{statistic.name}` is not a ratio of sums"
    units = _units(statistic)
    n = int(counts.sum())
    if n < 2:
        return f"it needs at least two {units}"
    sums = np.array(exact_column_sums(observed, counts), dtype=np.float64)
    steps = STEP * np.maximum(np.abs(sums), 1.0)
    slopes = (h.values(sums + np.diag(steps)) - h.values(sums - np.diag(steps))) / (2.0 * steps)
    if not np.isfinite(slopes).all():
        return f"`{statistic.name}` is undefined near the observed counts"
    parts = observed @ slopes
    variance = n / (n - 1) * float(counts @ (parts - float(counts @ parts) / n) ** 2)
    if variance <= (STEP * test.observed) ** 2:
        return f"all {units} contribute the same"
    why = f"Its standard error {math.sqrt(variance):.3g} assumes {n:,} independent {units}"
    if statistic.cluster is None:
        why += ", because no clusters are declared"
    if not is_linear:
        why += ", and a statistic that is linear near its value (delta method)"
    if statistic.cluster is not None and n < FEW_CLUSTERS:
        why += f"; with fewer than {FEW_CLUSTERS} it is usually too small"
    return _two_or_one_sided(stats.t(n - 1), test.observed / math.sqrt(variance), test.alternative), why


def _two_or_one_sided(law: Any, value: float, alternative: Alternative) -> float:
    """Return the p-value of a statistic whose distribution is symmetric about 0."""
    if alternative == "two-sided":
        return float(2.0 * law.sf(abs(value)))
    return float(law.sf(value) if alternative == "greater" else law.cdf(value))
