"""Bounds of a difference at one level, as evidence of equivalence and non-inferiority.

Equivalence within a margin and non-inferiority need a lower and an upper bound of the difference, each of
which misses with a probability of about alpha.

1. If an interval of confidence 1 - 2 alpha is available, its ends are the bounds. The interval for paired
   proportions is exact and always available. Others are available if their coverage is near their confidence
   (:mod:`trackperm.exact.intervals.coverage`).
2. An interval by shifts of the scores, and any approximate one of a mean over strata or classes, supports no
   margin below the loss that rare, unseen differences can cause. If no example differs, up to a share of
   1 - alpha^(1/n) of all examples may differ (Clopper and Pearson 1934), each by the whole range of the
   scores and 0, and more of the examples of a small stratum (:mod:`trackperm.exact.intervals.unseen`).
   Margins have to guard against such rare failures. The interval for paired proportions needs no such rule:
   its two scores are the ends of the range. Any other interval of a mean does.
3. If no interval is available, the bounds use the share s of examples that may differ. With d discordant
   examples among n, s solves P(Binomial(n, s) <= d) = alpha. The bound is the largest change of either run's
   score when a share s of its examples changes in every count, over the whole range of the counts, and all in
   one direction. The range of a count includes what it can be on a unit of as many rows as the largest.

References
----------
C. J. Clopper and E. S. Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of
the binomial", Biometrika 26.
D. J. Schuirmann (1987), "A comparison of the two one-sided tests procedure and the power approach for
assessing the equivalence of average bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtr, ndtri

from trackperm.choices import IntervalChoice
from trackperm.comparison.inference.effect import interval_of
from trackperm.comparison.inference.unseen import (
    ends_of_counts,
    has_parts,
    scores_of,
    unit_scores,
    unseen_differences,
    unseen_in_pairs,
)
from trackperm.exact import CountTable
from trackperm.exact.intervals import Interval, UnseenDifferences
from trackperm.exact.pairwise import Influences
from trackperm.exact.result import format_pvalue
from trackperm.exact.root import bracketed_root
from trackperm.messages import amount
from trackperm.statistic import Statistic

LEAST_LEVEL = 1e-6
"""Smallest level at which equivalence is tried; a smaller p-value would convince nobody more."""

LEAST_APPROXIMATE_LEVEL = 0.002
"""Smallest level tried with an approximate interval: what the usual number of resamples supports."""

_PRECISION = 1e-4  # of the normal score of a level: 3 digits of a level above 1e-6
_BEYOND = 1e100


@dataclass(frozen=True)
class SizeBounds:
    """Lower and upper bound of a difference, each missing with a probability of about alpha.

    Attributes
    ----------
    low, high : float
        The bounds, in units of the statistic; infinite if the difference is unbounded.
    basis : Interval or str
        The interval whose ends are the bounds, or the reason why no interval is available.
    least : float
        Largest margin that the bounds cannot support, whatever their values.
    unseen : str
        Clause on the differences that no example showed, which the bounds or `least` follow from.
    """

    low: float
    high: float
    basis: Interval | str
    least: float
    unseen: str

    def joined(self, other: SizeBounds) -> SizeBounds:
        """Return the bounds that cover both these and the other ones."""
        bases = [each.basis for each in (self, other)]
        weaker = max((self, other), key=lambda each: (isinstance(each.basis, str), each.least))
        basis = next((basis for basis in bases if isinstance(basis, str)), weaker.basis)
        low, high = min(self.low, other.low), max(self.high, other.high)
        return SizeBounds(low, high, basis, max(self.least, other.least), weaker.unseen)

    def lack(self, margin: float) -> str | None:
        """Return the reason why the bounds cannot support this margin; None if they could support it."""
        if isinstance(self.basis, str):
            return None if max(-self.low, self.high) < margin else f"no interval is available, {self.unseen}"
        return None if self.least < margin else self.unseen


def size_bounds(
    statistic: Statistic,
    table: CountTable,
    alpha: float,
    choice: IntervalChoice = "auto",
    influences: Influences | None = None,
) -> SizeBounds:
    """Compute the bounds of a difference by the rules of this module; each misses with probability alpha."""
    basis = interval_of(
        statistic, table, choice, alpha=2.0 * alpha, alternative="two-sided", influences=influences
    )
    n, d = int(table.multiplicities.sum()), table.n_discordant
    unit = "example" if statistic.cluster is None else "cluster"
    if isinstance(basis, str) and statistic.depends_on_both:
        # An example that changes can change all of its pairs, and the ranks of all others.
        return SizeBounds(-math.inf, math.inf, basis, 0.0, _seen(statistic, d, n, unit))
    if isinstance(basis, str):
        share = float(betaincinv(d + 1, n - d, 1.0 - alpha)) if d < n else 1.0
        change = _largest_change(statistic, table, share)
        return SizeBounds(-change, change, basis, 0.0, _unseen(statistic, d, n, share, unit))
    unseen = unseen_of_interval(statistic, table, basis, influences)
    if unseen is None:
        return SizeBounds(basis.low, basis.high, basis, 0.0, _seen(statistic, d, n, unit))
    noun = "stratum" if statistic.strata is not None else "class"
    said = _rare(unseen, alpha, unit, noun)
    return SizeBounds(basis.low, basis.high, basis, unseen.largest(alpha), said)


def unseen_of_interval(
    statistic: Statistic, table: CountTable, basis: Interval, influences: Influences | None = None
) -> UnseenDifferences | None:
    """Return the differences that this interval does not guard against, by rule 2; None if it does."""
    if influences is not None:
        return unseen_in_pairs(influences)
    if basis.method == "paired proportions":
        return None
    if basis.method == "shift" or has_parts(statistic):
        return unseen_differences(statistic, table)
    scores = unit_scores(statistic, table)
    is_guarded = scores is None or (scores.gap is not None and scores.equally_weighted)
    return None if is_guarded else unseen_differences(statistic, table)


@dataclass(frozen=True)
class EquivalencePValue:
    """p-value of an equivalence: the smallest level at which the bounds lie within the margin.

    Both one-sided tests of |difference| >= margin have a p-value of at most this (Schuirmann 1987).

    Attributes
    ----------
    pvalue : float
        The smallest level at which equivalence was shown.
    is_bound : bool
        Whether smaller levels were not tried, so that the p-value is only known to be below `pvalue`.
    alpha : float
        Level of the verdict.
    """

    pvalue: float
    is_bound: bool
    alpha: float

    def __str__(self) -> str:
        """Return the p-value with its name: ``p = 0.0123``, or ``p < 0.002``."""
        if self.is_bound:
            return f"p < {self.pvalue:.3g}"
        return f"p = {format_pvalue(self.pvalue, math.log10(self.pvalue), level=self.alpha)}"


def equivalence_pvalue(
    statistic: Statistic,
    table: CountTable,
    margin: float,
    alpha: float,
    choice: IntervalChoice = "auto",
    influences: Influences | None = None,
) -> EquivalencePValue:
    """Return the p-value of an equivalence that is shown at level `alpha`, within `margin`.

    Levels below :data:`LEAST_LEVEL` are not tried, nor below :data:`LEAST_APPROXIMATE_LEVEL` if the interval
    is approximate.
    """
    shown = alpha

    def excess(score: float) -> float:
        """Return by how much the bounds at the level with this normal score exceed the margin."""
        nonlocal shown
        level = float(ndtr(score))
        size = size_bounds(statistic, table, level, choice, influences)
        if size.lack(margin) is not None:
            return _BEYOND
        found = min(max(-size.low, size.high) - margin, _BEYOND)
        if found < 0.0:
            shown = min(shown, level)
            return found
        return max(found, math.ulp(0.0))

    basis = size_bounds(statistic, table, alpha, choice, influences).basis
    if not isinstance(basis, str) and basis.approximate:
        for level in (LEAST_APPROXIMATE_LEVEL, 0.01):
            if level < alpha and excess(float(ndtri(level))) < 0.0:
                return EquivalencePValue(level, True, alpha)
        return EquivalencePValue(alpha, True, alpha)
    ends = float(ndtri(min(LEAST_LEVEL, alpha))), float(ndtri(alpha))
    if excess(ends[0]) < 0.0:
        return EquivalencePValue(shown, True, alpha)
    if excess(ends[1]) < 0.0:
        bracketed_root(excess, *ends, xtol=_PRECISION, max_steps=60, must_converge=False)
    return EquivalencePValue(shown, shown == alpha, alpha)


def _seen(statistic: Statistic, d: int, n: int, unit: str) -> str:
    if statistic.repeats == "attempts":  # examples with equal scores are discordant if their attempts differ
        return f"{d:,} of {amount(n, unit)} {'differs' if d == 1 else 'differ'} in score"
    return f"{d:,} of {amount(n, unit)} {'is' if d == 1 else 'are'} discordant"


def _unseen(statistic: Statistic, d: int, n: int, share: float, unit: str) -> str:
    verb = "do so" if statistic.repeats == "attempts" else "be"
    return f"{_seen(statistic, d, n, unit)}, and up to {_in_percent(share)} may {verb}"


def _in_percent(share: float) -> str:
    """Return a share with two digits, and with a third one where two would be 1e+02."""
    return f"{100.0 * share:.{2 if share < 0.995 else 3}g} %"


def _rare(unseen: UnseenDifferences, alpha: float, unit: str, noun: str) -> str:
    """Return what differences as large as the range change, on as many examples as may differ unseen."""
    changed = unseen.changed(alpha)
    whose, k = "", int(np.argmax(unseen.shares))
    if unseen.heaviest is not None:
        whose = f" of the {noun} `{unseen.heaviest.name}`"
        if np.count_nonzero(changed) > 1:
            whose += " and fewer of others"
    return (
        f"a difference as large as the range of the scores, {unseen.widest:.4g}, on an unseen"
        f" {_in_percent(float(changed[k]))} of the {unit}s{whose} would change the score by"
        f" {unseen.largest(alpha):.4g}"
    )


def _largest_change(statistic: Statistic, table: CountTable, share: float) -> float:
    """Return the largest change of a run's score if that share of its examples changes."""
    if statistic.score is None:
        return math.inf
    n = int(table.multiplicities.sum())
    rows = np.concatenate([table.candidate, table.baseline]).astype(np.float64)
    least, most = ends_of_counts(statistic, rows)
    step = (most - least) * min(math.ceil(share * n), n)
    largest = 0.0
    for totals in np.array(table.totals(), dtype=np.float64):
        slopes = [_changes(statistic, totals + sign * np.diag(most - least), totals) for sign in (1.0, -1.0)]
        up = np.where(np.nan_to_num(slopes[0] - slopes[1]) < 0.0, -1.0, 1.0)
        moved = np.clip(totals + np.stack([up, -up]) * step, n * least, n * most)
        changes = np.abs(_changes(statistic, moved, totals))
        largest = max(largest, *(float(x) if math.isfinite(x) else math.inf for x in changes))
    return largest


def _changes(
    statistic: Statistic, moved: npt.NDArray[np.float64], totals: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the contrast of each run with totals `moved`, shape (k, m), to one with `totals`, shape (m,)."""
    scores = scores_of(statistic.score, np.vstack([moved, totals]))
    if statistic.contrast == "log ratio":
        with np.errstate(all="ignore"):
            scores = np.log(scores)
    return np.asarray(scores[:-1] - scores[-1])
