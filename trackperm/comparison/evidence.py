"""What is shown of the size of a difference: bounds at one level, and when they count.

Equivalence within a margin, and non-inferiority, ask for a lower and an upper bound of the difference, each
of which misses with a probability of about alpha.

1. They are the ends of the interval of confidence 1 - 2 alpha, where one is shown. That for paired
   proportions is exact, and always is shown. Others are where they cover about what they say
   (:mod:`trackperm.exact.intervals.coverage`).
2. An interval by shifts of the scores shows no margin that is smaller than what examples could cost unseen:
   1 - alpha^(1/n) of all, as many as may differ although none did (Clopper and Pearson 1934), each by the
   whole range of 0 and the scores. A failure that costs all of a score is rare, and is what margins are for.
3. Where no interval is shown, they come from the share s of examples that may differ at all: of n of which d
   tell the runs apart, P(Binomial(n, s) <= d) = alpha. The scores differ by no more than the score of either
   run changes if so many of its examples counted otherwise, in every count, as far as counts are known to go,
   and all in one direction.

References
----------
C. J. Clopper and E. S. Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of
the binomial", Biometrika 26.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from trackperm.comparison.effect import interval_of
from trackperm.exact import CountTable, RationalStatistic
from trackperm.exact.intervals import Interval
from trackperm.statistic import Statistic


@dataclass(frozen=True)
class SizeBounds:
    """Bounds of the difference, each of which misses with a probability of about alpha.

    Attributes
    ----------
    low, high : float
        The bounds, in units of the statistic; infinite where nothing bounds it.
    basis : Interval or str
        The interval that they are the ends of, or why none is shown.
    least : float
        Margin that is too small for them whatever they are.
    unseen : str
        How many examples tell the runs apart, and how many more may.
    """

    low: float
    high: float
    basis: Interval | str
    least: float
    unseen: str

    def joined(self, other: SizeBounds) -> SizeBounds:
        """Return bounds that hold where either these or the others do."""
        bases = [each.basis for each in (self, other)]
        weaker = max((self, other), key=lambda each: (isinstance(each.basis, str), each.least))
        basis = next((basis for basis in bases if isinstance(basis, str)), weaker.basis)
        low, high = min(self.low, other.low), max(self.high, other.high)
        return SizeBounds(low, high, basis, max(self.least, other.least), weaker.unseen)

    def lack(self, margin: float) -> str | None:
        """Say what is missing for bounds of this margin; None where they count, whatever they show."""
        if isinstance(self.basis, str):
            return None if max(-self.low, self.high) < margin else f"no interval is shown, {self.unseen}"
        return None if self.least < margin else self.unseen


def size_bounds(statistic: Statistic, table: CountTable, alpha: float) -> SizeBounds:
    """Return bounds of the difference, each at level alpha, by the rules of this module.

    Parameters
    ----------
    statistic : Statistic
        What was tested.
    table : CountTable
        The counts that were tested.
    alpha : float
        Probability with which a bound misses, between 0 and 1/2.
    """
    basis = interval_of(statistic, table, alpha=2.0 * alpha, alternative="two-sided")
    n, d = int(table.multiplicities.sum()), table.n_discordant
    unit = "example" if statistic.cluster is None else "cluster"
    if isinstance(basis, str):
        share = float(betaincinv(d + 1, n - d, 1.0 - alpha)) if d < n else 1.0
        change = _largest_change(statistic, table, share)
        return SizeBounds(-change, change, basis, 0.0, _unseen(d, n, share, unit))
    share = -math.expm1(math.log(alpha) / n)
    least = share * _range_of_scores(statistic, table) if basis.method == "shift" else 0.0
    return SizeBounds(basis.low, basis.high, basis, least, _unseen(d, n, share, unit))


def _unseen(d: int, n: int, share: float, unit: str) -> str:
    found = f"{d} of {n} {unit}{'s' * (n != 1)} tell{'s' * (d == 1)} the runs apart"
    return f"{found}, and up to {100.0 * share:.2g} % may"


def _largest_change(statistic: Statistic, table: CountTable, share: float) -> float:
    """Return the most by which a run changes if that share of its examples counted otherwise."""
    if statistic.score is None:
        return math.inf
    n = int(table.multiplicities.sum())
    rows = np.concatenate([table.candidate, table.baseline]).astype(np.float64)
    # A count that was never 1 can be, as errors of runs that have none.
    least, most = np.minimum(rows.min(axis=0), 0.0), np.maximum(rows.max(axis=0), 1.0)
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
    """Return the contrast of runs with the totals `moved` and one with `totals`."""
    scores = _scores(statistic, np.vstack([moved, totals]))
    if statistic.contrast == "log ratio":
        with np.errstate(all="ignore"):
            scores = np.log(scores)
    return np.asarray(scores[:-1] - scores[-1])


def _scores(statistic: Statistic, totals: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the scores of runs with these totals; NaN or infinite where they have none."""
    score: Any = statistic.score
    with np.errstate(all="ignore"):
        values = score.values(totals) if isinstance(score, RationalStatistic) else score(totals)
    return np.broadcast_to(np.asarray(values, dtype=np.float64), len(totals))


def _range_of_scores(statistic: Statistic, table: CountTable) -> float:
    """Return the length of the interval that holds 0 and the scores of single examples."""
    if statistic.score is None:
        return math.inf
    # The score of a run all of whose examples are like one of them: a sum is as large as that of all.
    n = int(table.multiplicities.sum())
    values = _scores(statistic, np.concatenate([table.candidate, table.baseline]).astype(np.float64) * n)
    values = values[np.isfinite(values)]
    return float(values.max(initial=0.0) - values.min(initial=0.0)) if values.size else math.inf
