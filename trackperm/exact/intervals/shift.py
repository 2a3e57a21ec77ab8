r"""Interval of all shifts that the exact paired-permutation test does not reject.

In the model, the candidate's scores are shifted by delta, and outputs are exchangeable without the shift:
x_n - delta w_n has the same distribution as its negative, row by row. With m_n in place of x_n, in units of
the scores, and a random set A of swapped rows, each with probability 1/2,

    p_greater(delta) = P(sum_n +-(m_n - delta w_n) >= sum_n (m_n - delta w_n))
                     = P(sum_A (m_n - delta w_n) <= 0)
                     = P(A is empty, or mean_A <= delta),    mean_A = sum_A m_n / sum_A w_n.

So p_greater is a step function that rises with delta, at the means of subsets (Hartigan 1969's typical
values), and the test of level tau does not reject delta >= the least subset mean v with p_greater(v) >= tau.
Only the empty set remains as delta falls: if 2^-N >= tau nothing is rejected, and the end is -inf. The upper
end is that of -m, negated. The two-sided p-value, of \|t\| >= \|t observed\|, is 2 p_greater at shifts below
the estimate, where t > 0, 2 p_less at shifts above it, and 1 at the estimate: it rises up to the estimate and
falls beyond. So the shifts that it does not reject form an interval, with the ends for tau = alpha / 2. At
delta = 0 this is the test itself.

If most examples tie, the model is wrong, as a shift would have moved those too; the interval is then close to
that of a t test, and as flawed if few examples differ. If none differs, it is infinite, as the model would
claim 0 with certainty from six examples.

The ends are computed as follows. Few configurations are listed and sorted by their means. Otherwise the end
is bracketed by certified p-values at rational shifts, each the tail of one weighted sum of coins
(`shifted_tail`), or the mass of a half-plane (`shifted_plane`). Means of subsets have denominators of at most
W = sum_n w_n, so the end is one of finitely many fractions (`search`). If the certificate does not decide,
the shift counts as not rejected, which lengthens the interval. If the last fractions would take long to
separate, the end is the greatest shift that is known to be rejected, at most a hundred-thousandth of a
standard deviation too far out. If differences have to be rounded to save time, p-values are slightly too
large, and the end is too far out, mostly by less than a thousandth of a standard deviation, never too close.

References
----------
J. A. Hartigan (1969), "Using subsample values as typical values", Journal of the American Statistical
Association 64.
D. Tritchler (1984), "On inverting permutation tests", Journal of the American Statistical Association 79.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.choices import Alternative
from trackperm.errors import InputError
from trackperm.exact.counts import n_configurations
from trackperm.exact.intervals.additive import AdditiveScores
from trackperm.exact.intervals.interval import Interval, tail_level
from trackperm.exact.intervals.search import lower_end
from trackperm.exact.options import MEMORY_BUDGET, TestOptions
from trackperm.exact.sums import sum_test_of

LISTABLE = 2**18
"""Largest number of configurations whose subset means are listed: up to here that is faster."""

FINE_BITS = 26
"""Least number of bits of a standard deviation that rounding leaves: the ends move by 1.5e-8 deviations."""

FITTING_BITS = 60
"""Most bits of a sum of shifted differences, which then fits int64."""

MOST_BITS = 400
"""Largest number of bits of differences for the search: their squares fit floats."""

NOTE = (
    "all constants that can be added to the baseline's scores without the exact test rejecting; it assumes"
    " that the runs differ by a constant"
)
CLOSE_NOTE = f"{NOTE}; its ends are at most a hundred-thousandth of a standard deviation too far out"
ROUNDED_NOTE = f"{NOTE}; differences were rounded, and the ends moved outwards to make up for it"
INFINITE_NOTE = f"{NOTE}; too few examples to reject any shift at this level"
IDENTICAL_NOTE = "no example differs, so the size of a difference is unknown"
TIED_NOTE = "most examples tie, which a shift would have moved: it may be too short"
"""Notes of intervals."""


def shift_interval(
    scores: AdditiveScores,
    *,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    memory_budget: int = MEMORY_BUDGET,
) -> Interval:
    """Return the shifts of additive scores that the exact test does not reject (Tritchler 1984).

    Scores of 0 and 1 are refused: they would not be 0/1 after a shift. One-sided intervals are unbounded on
    the other side.

    Raises
    ------
    InputError
        If the scores are 0/1, or `alpha` is not between 0 and 1.
    CapacityError
        If it does not fit `memory_budget` with any rounding of differences.
    """
    tau = tail_level(alpha, alternative)
    if scores.gap is not None:
        raise InputError(
            "the scores are 0 or 1, which the shift model does not allow",
            hint="the interval for paired proportions matches the exact test of 0/1 scores.",
        )
    kept = scores.weights > 0
    rows = replace(
        scores,
        moves=scores.moves[kept],
        weights=scores.weights[kept],
        multiplicities=scores.multiplicities[kept],
    )
    if not scores.moves.any():
        return Interval(-math.inf, math.inf, alpha, alternative, "shift", "agrees", IDENTICAL_NOTE)
    low, high, notes = -math.inf, math.inf, {NOTE}
    if alternative != "less":
        low, note = _lower_end(rows, tau, memory_budget)
        notes.add(note)
    if alternative != "greater":
        upper, note = _lower_end(replace(rows, moves=-rows.moves), tau, memory_budget)
        high = 0.0 - upper
        notes.add(note)
    if rejects_zero(scores, alpha, alternative):
        # The end is no closer to 0 than the nearest subset mean, but a rounded end may be.
        total = int(rows.weights.astype(object) @ rows.multiplicities.astype(object))
        nearest = float(scores.unit / total)
        low, high = (max(low, nearest), high) if _upwards(scores, alternative) else (low, min(high, -nearest))
    else:
        low, high = min(low, 0.0), max(high, 0.0)
    note = next(kept for kept in (ROUNDED_NOTE, CLOSE_NOTE, NOTE) if kept in notes)
    if math.isinf(low) and math.isinf(high):
        note = INFINITE_NOTE
    elif 2 * (scores.n_up + scores.n_down) < rows.n_rows:
        note = f"{note}; {TIED_NOTE}"
    return Interval(low, high, alpha, alternative, "shift", "agrees", note)


def rejects_zero(scores: AdditiveScores, alpha: float, alternative: Alternative) -> bool:
    """Whether the whole certified interval of the exact p-value is below alpha."""
    largest = max(abs(int(m)) for m in scores.moves)
    options = TestOptions(alternative=alternative)
    test = sum_test_of(scores.moves, scores.multiplicities, Fraction(1, largest), options)
    return max(test.pvalue, test.interval[1]) < alpha


def _upwards(scores: AdditiveScores, alternative: Alternative) -> bool:
    return alternative == "greater" or (alternative == "two-sided" and scores.value > 0)


def _lower_end(rows: AdditiveScores, tau: float, memory_budget: int) -> tuple[float, str]:
    """Return the least shift v with p_greater(v) >= tau, or one below it, and its note."""
    if Fraction(1, 2**rows.n_rows) >= tau:
        return -math.inf, NOTE
    excess = max(int(rows.moves.max()), -int(rows.moves.min())).bit_length() - MOST_BITS
    if excess > 0:
        rows = replace(rows, moves=rows.moves >> excess, unit=rows.unit * 2**excess)
    least, greatest = rows.ratios
    if least == greatest:
        return float(least * rows.unit), NOTE
    # Every kind of row at least doubles the number of configurations.
    if rows.moves.size < LISTABLE.bit_length() and n_configurations(rows.multiplicities) <= LISTABLE:
        return float(_listed_end(rows, tau) * rows.unit), NOTE
    coarse = _coarser(rows)
    end = lower_end(coarse, tau, memory_budget)
    value = float(end.shift * coarse.unit)
    if end.is_exact and coarse is rows:
        return value, NOTE
    # The nearest float may be at or beyond the end.
    return math.nextafter(value, -math.inf), ROUNDED_NOTE if end.is_rounded else CLOSE_NOTE


def _coarser(rows: AdditiveScores) -> AdditiveScores:
    """Return rows whose shifted differences fit int64, if a standard deviation then still has `FINE_BITS`.

    Differences are rounded down, so that means of subsets only fall, and so does the end.
    """
    largest = max(int(rows.moves.max()), -int(rows.moves.min())).bit_length()
    square = int(rows.multiplicities.astype(object) @ rows.moves.astype(object) ** 2) // rows.n_rows
    excess = largest + int(rows.weights.max()).bit_length() + rows.n_rows.bit_length() - FITTING_BITS
    if excess <= 0 or square.bit_length() // 2 - excess < FINE_BITS:
        return rows
    return replace(rows, moves=(rows.moves >> excess).astype(np.int64), unit=rows.unit * 2**excess)


def _listed_end(rows: AdditiveScores, tau: float) -> Fraction:
    """Return the end from all subset means, sorted; those that agree as floats give the same end."""
    moved: npt.NDArray[Any] = np.zeros(1, dtype=object)
    weight: npt.NDArray[Any] = np.zeros(1, dtype=np.int64)
    ways: npt.NDArray[Any] = np.ones(1, dtype=np.int64 if rows.n_rows <= 62 else object)
    if sum(abs(int(m)) * int(c) for m, c in zip(rows.moves, rows.multiplicities, strict=True)) < 2**62:
        moved = moved.astype(np.int64)
    for m, w, c in zip(rows.moves.tolist(), rows.weights.tolist(), rows.multiplicities.tolist(), strict=True):
        chosen = np.arange(c + 1)
        moved = (moved[:, None] + chosen.astype(moved.dtype) * m).ravel()
        weight = (weight[:, None] + chosen * w).ravel()
        binomials = np.array([math.comb(c, j) for j in range(c + 1)], dtype=ways.dtype)
        ways = (ways[:, None] * binomials).ravel()
    means = np.full(moved.size, -math.inf)
    means[1:] = (moved[1:] / weight[1:]).astype(np.float64)
    order = np.argsort(means, kind="stable")
    needed = math.ceil(Fraction(tau) * 2**rows.n_rows)
    first = order[int(np.searchsorted(np.add.accumulate(ways[order]), needed))]
    return Fraction(int(moved[first]), int(weight[first]))
