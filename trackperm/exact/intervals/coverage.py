r"""Rules under which intervals from observed outcomes have nearly their nominal coverage.

Resampling, and shifts of the scores, ignore outcomes that no example showed. If few examples distinguish the
runs, or few of them have most of the weight, unseen outcomes matter, and the interval is too short. With 50
examples and 5 % positives, 30 % of the 95 % bootstrap intervals for a difference of F1 miss; one that never
leaves an observed tie is [0, 0]. An interval is shown, and may decide equivalence, if

1. enough examples distinguish the runs. With e_n the change of the statistic by swapping example n alone,

       n_eff = (sum_n e_n^2)^2 / sum_n e_n^4

   is the number of examples with e_n != 0 if these are of one size, and less if few of them have most of the
   weight. It has to be at least 20 for resampling, 12 for shifts, and 5.5 for score intervals, whose laws
   have outcomes that were not seen; beyond the quantile of 95 %, 5.5 (z / 1.96)^4;
2. for resampling, n_eff is at least z^4 / 1.6, with z the normal quantile of the level on either side. The
   probability beyond an end is wrong by a factor of about exp(z^4 / (6 n_eff)), found by enumeration of
   differences of two Poisson counts, and stays below 1.3. Below 0.9 % a side this requires n_eff > 20;
3. for shifts, the differences are not skewed: an interval that inverts a sign-flip test has the same error as
   that of a t test, a share of s (2 z^3 + z) / 6 of the level, where s is the skewness over sqrt(N) (Hall
   1992, section 2.6, first term). s has to be at most 0.1, and less below 2.5 % a side, to bound this share;
4. for score intervals and resampling of statistics with absolute values, such as the expected calibration
   error, totals T that vary as by resampling are not near a bend. With d such a variation,

       (h(T + d) + h(T - d)) / 2 - h(T)  and  (h(T + d) - h(T - d)) / 2

   are its even and its odd part. The root mean square of the even part is at most 0.1 of that of the odd one.
   With a calibrated run it was 0.5 to 1.1; from 0.14 on, some ends were near the limits of the statistic;
5. for score intervals of counts that are not combined, such as squared errors, counts of whole documents or
   clusters, and sums of a correlation, n_eff is also at least sqrt(2 M), with M the number of examples that
   distinguish the runs, and beyond the quantile of 95 %, sqrt(2 M) (z / 1.96)^2. So is the same number of the
   influences of all examples on the statistic. Only outcomes that were observed have mass in such laws, so
   that the tail of the influences has to be in the data. N / n_eff is the kurtosis of the influences, which
   grows slower than sqrt(N / 2) if their tail is lighter than x^(-8/3). If 5 % of 50 predictions fail badly,
   the 5 % bound for RMSE misses in 20 % of the data sets without this rule, and in 3 % with it.

A mean over strata or classes has a further rule (:mod:`trackperm.exact.intervals.unseen`): its interval is
shown only if it is at least as wide as what differences may change that no example showed.

With these numbers the one-sided error of a 5 % bound is at most 7 % over a grid of laws
(``tests/exact/intervals/test_coverage.py``): 5 to 30 % positives, F1 from .5 to .99, 20 to 1,000 examples, of
systems with shared errors or not; means of skewed, heavy-tailed and rarely different scores. For precision,
recall, MCC, kappa, Jaccard and balanced accuracy it is 4 to 7 % over laws with at least 20 positives. By rule
5 it is at most 6 % for RMSE and correlations of 50 or 200 examples, with errors from normal ones to failures
and Student's t of 3 degrees of freedom, and 7 % for F1 of 50 documents, on 5 % of which a run fails, so that
8 % of the data sets have no failure (``tests/exact/intervals/coverages_of_numbers.py``). The rules do not
catch unseen outcomes that are rare and large, such as a failure that costs a whole score: with 15 positives,
the error for balanced accuracy is 11 %, and if 1 % of 100 predictions fail, equivalence is shown at a margin
as large as the true difference in 17 % (RMSE) to 37 % (MAE) of the data sets.

References
----------
P. Hall (1992), "The bootstrap and Edgeworth expansion".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from trackperm.choices import Alternative
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.engines.lattice.statistic import Statistic, values_at
from trackperm.exact.functions.operations import OperationTree, parts_of
from trackperm.exact.intervals.additive import AdditiveScores
from trackperm.exact.intervals.interval import tail_level
from trackperm.exact.intervals.score import ConstrainedLaws, combined_counts, possible_outcomes
from trackperm.exact.types import IntArray

FEWEST_RESAMPLED = 20.0
"""Smallest effective number of examples for resampling at 95 %, by rule 1 and its simulations."""

FEWEST_SHIFTED = 12.0
"""Smallest effective number of examples for shifts, which are exact for symmetric differences."""

FEWEST_SCORED = 5.5
"""Smallest effective number of examples for score intervals at 95 %: no p-value of 5 examples is below 5 %,
and 6 examples weigh as much as slightly fewer equal ones."""

SPREAD_OUT = 2.0
"""Smallest square of the effective number over the number of examples that differ, at 95 %, by rule 5."""

TAIL = 1.6
"""Divisor of z^4 in rule 2: exp(1.6 / 6) = 1.3 is the accepted error of a tail probability."""

MOST_SKEWED = 0.1
"""Largest skewness over sqrt(N) for shifts at 95 %, by rule 3 and its simulations."""

MOST_BENT = 0.1
"""Largest even part of the variation of a statistic, in units of its odd part, by rule 4."""

_USUAL = float(-ndtri(0.025))
"""Normal quantile of 95 %, up to which the limits are the same."""

_VARIATIONS = 64
"""Variations of the totals by which rule 4 measures both parts, each within about 1 / sqrt(128) = 9 %."""

BLOCK_CELLS = 2**20
"""Totals per step: 8 MiB."""


def why_not_resampled(
    observed: IntArray,
    swapped: IntArray,
    h: Statistic,
    multiplicities: IntArray,
    *,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    unit: str = "example",
) -> str | None:
    """Return the reason against an interval by resampling; None if its coverage is nearly nominal.

    Rows are those of :func:`~trackperm.exact.structured_test`; `unit` is the noun for one of them.
    """
    effects, counts = swap_effects(observed, swapped, h, multiplicities)
    z = _quantile(alpha, alternative)
    needed = max(FEWEST_RESAMPLED, z**4 / TAIL)
    found = effective_number(effects, counts)
    return _too_few(found, int(counts.sum()), needed, unit, "a resampled interval")


def why_not_scored(
    observed: IntArray,
    swapped: IntArray,
    h: Statistic,
    multiplicities: IntArray,
    *,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    unit: str = "example",
) -> str | None:
    """Return the reason against a score interval; None if its coverage is nearly nominal."""
    scored = ScoredNumber.of(observed, swapped, h, multiplicities)
    needed = scored.needed(_quantile(alpha, alternative))
    what = "a score interval" if scored.is_combined else "a score interval of many different counts"
    return _too_few(scored.effective, scored.n_moved, needed, unit, what)


@dataclass(frozen=True)
class ScoredNumber:
    """Effective number of examples for a score interval, and the smallest sufficient one: rules 1 and 5.

    Attributes
    ----------
    effective : float
        Effective number by changes by swaps, or by influences if that is smaller and counts are not combined.
    n_moved : int
        Number of examples that distinguish the runs.
    is_combined : bool
        Whether all pairs of counts of single runs are outcomes of the laws.
    """

    effective: float
    n_moved: int
    is_combined: bool

    @classmethod
    def of(
        cls, observed: IntArray, swapped: IntArray, h: Statistic, multiplicities: IntArray
    ) -> ScoredNumber:
        """Return the number for these rows."""
        effects, counts = swap_effects(observed, swapped, h, multiplicities)
        found, n_moved = effective_number(effects, counts), int(counts.sum())
        if combined_counts(observed, swapped) is not None:
            return cls(found, n_moved, True)
        if found < FEWEST_SCORED:
            return cls(found, n_moved, False)
        outcomes, numbers = possible_outcomes(observed, swapped, multiplicities)
        influences = ConstrainedLaws(outcomes, numbers, h).influences
        if not np.isfinite(influences).all():
            return cls(found, n_moved, False)
        return cls(min(found, effective_number(influences, numbers)), n_moved, False)

    def needed(self, z: float) -> float:
        """Return the smallest sufficient effective number, for the normal quantile of the level."""
        even, spread_out = _scored_limits(z)
        return even if self.is_combined else max(even, math.sqrt(spread_out * self.n_moved))

    def fewest(self, z: float) -> float:
        """Return how many examples have to distinguish the runs if they are as even as these."""
        even, spread_out = _scored_limits(z)
        evenness = self.effective / self.n_moved
        return even / evenness if self.is_combined else max(even / evenness, spread_out / evenness**2)


def why_not_shifted(
    scores: AdditiveScores,
    *,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    unit: str = "example",
) -> str | None:
    """Return the reason against an interval by shifts; None if its coverage is nearly nominal."""
    moved = scores.moves != 0
    counts = scores.multiplicities[moved]
    effective = effective_number(scores.moves[moved].astype(np.float64), counts)
    few = _too_few(effective, int(counts.sum()), FEWEST_SHIFTED, unit, "an interval by shifts")
    if few is not None:
        return few
    z = max(_quantile(alpha, alternative), _USUAL)
    most = MOST_SKEWED * ((2.0 * _USUAL**3 + _USUAL) / (2.0 * z**3 + z))
    found = skewness(scores)
    if found <= most:
        return None
    return (
        f"the differences of {scores.n_rows} {unit}s are skewed; an interval by shifts would be too"
        f" short (skewness over root n is {found:.2g}; the limit is {most:.2g})"
    )


def why_bent(observed: IntArray, h: Statistic, multiplicities: IntArray) -> str | None:
    """Return the reason against an interval near a bend of the statistic; None if it is straight enough."""
    if not isinstance(h, OperationTree) or all(part.operation != "abs" for part in parts_of(h)):
        return None
    found = bend(observed, h, multiplicities)
    if found <= MOST_BENT:
        return None
    return (
        "an absolute value in the statistic is near 0, where no interval is known to have its coverage (the"
        f" even part of its variation is {found:.2g} of the odd one; the limit is {MOST_BENT:g})"
    )


def bend(observed: IntArray, h: Statistic, multiplicities: IntArray) -> float:
    """Return the even part of the variation of h about its totals, in units of the odd part: see rule 4.

    The variations are normal, with the covariance of resampled totals, and the same at each call.
    """
    rows, counts = observed.astype(np.float64), multiplicities.astype(np.float64)
    totals = counts @ rows
    spread = np.sqrt(counts)[:, None] * (rows - totals / counts.sum())
    root = np.linalg.qr(spread, mode="r")
    drawn = np.random.default_rng(0).standard_normal((_VARIATIONS, len(root))) @ root
    middle = values_at(h, totals[None])[0]
    above, below = values_at(h, totals + drawn), values_at(h, totals - drawn)
    even, odd = (above + below) / 2.0 - middle, (above - below) / 2.0
    size = float(np.sqrt(np.mean(odd**2)))
    return float(np.sqrt(np.mean(even**2))) / size if size > 0.0 else math.inf


def swap_effects(
    observed: IntArray, swapped: IntArray, h: Statistic, multiplicities: IntArray
) -> tuple[FloatArray, IntArray]:
    """Return the changes by swapping one example alone, and the number of such examples.

    Rows that a swap does not change are omitted. An undefined change counts as infinite.
    """
    moved = (observed != swapped).any(axis=1)
    changes = (swapped[moved] - observed[moved]).astype(np.float64)
    totals = multiplicities.astype(np.float64) @ observed.astype(np.float64)
    size = max(BLOCK_CELLS // max(observed.shape[1], 1), 1)
    blocks = [changes[first : first + size] for first in range(0, len(changes), size)]
    before = values_at(h, totals[None])[0]
    effects = [np.asarray(values_at(h, totals + block) - before) for block in blocks]
    found = np.concatenate(effects) if effects else np.zeros(0)
    return np.where(np.isfinite(found), found, math.inf), multiplicities[moved]


def effective_number(effects: FloatArray, multiplicities: IntArray) -> float:
    """Return the equivalent number of examples with equal effects, (sum e^2)^2 / sum e^4."""
    largest = float(np.abs(effects).max(initial=0.0))
    if largest == 0.0 or math.isinf(largest):
        return 0.0
    squares = (effects / largest) ** 2
    return float(multiplicities @ squares) ** 2 / float(multiplicities @ squares**2)


def skewness(scores: AdditiveScores) -> float:
    """Return the absolute skewness of the differences from their mean, over sqrt(N)."""
    moves, weights = scores.moves.astype(np.float64), scores.weights.astype(np.float64)
    counts = scores.multiplicities.astype(np.float64)
    rest = moves - float(counts @ moves) / float(counts @ weights) * weights
    squares = float(counts @ rest**2)
    return abs(float(counts @ rest**3)) / squares**1.5 if squares > 0.0 else 0.0


def _scored_limits(z: float) -> tuple[float, float]:
    """Return the smallest effective number, and that of its square over the number of examples."""
    beyond = (max(z, _USUAL) / _USUAL) ** 4
    return FEWEST_SCORED * beyond, SPREAD_OUT * beyond


def _quantile(alpha: float, alternative: Alternative) -> float:
    """Return the normal quantile of the level on either side; 0 if that is above 1/2."""
    return max(float(-ndtri(tail_level(alpha, alternative))), 0.0)


def _too_few(found: float, n: int, needed: float, unit: str, what: str) -> str | None:
    if found >= needed:
        return None
    if n == 0:
        return f"no {unit} differs between the runs, so the size of a difference is unknown"
    takes = f"{what} needs {math.ceil(needed)}"
    if n < needed:
        they = f"{unit} differs" if n == 1 else f"{unit}s differ"
        return f"only {n} {they} between the runs; {takes}"
    return f"the {n} {unit}s that differ between the runs weigh as much as {found:.2g} equal ones; {takes}"
