r"""The interval of all shifts that the exact paired-permutation test does not reject.

The model: the candidate's scores are shifted by delta, so that without the shift a swap of outputs would
change nothing: x_n - delta w_n has the law of its negative, row by row. With m_n in place of x_n, in units
of the scores, and a random set A of rows that are swapped, each with probability 1/2,

    p_greater(delta) = P(sum_n +-(m_n - delta w_n) >= sum_n (m_n - delta w_n))
                     = P(sum_A (m_n - delta w_n) <= 0)
                     = P(A is empty, or mean_A <= delta),    mean_A = sum_A m_n / sum_A w_n.

So p_greater is a step function that rises with delta, at the means of subsets (Hartigan 1969's typical
values), and what is not rejected at level tau is delta >= the least subset mean v with p_greater(v) >= tau.
Only the empty set stays as delta falls: where 2^-N >= tau nothing is rejected, and the end is -inf. The
upper end is that of -m, negated. The two-sided p-value, of \|t\| >= \|t observed\|, is 2 p_greater below the
estimate, where t > 0, 2 p_less above it, and 1 at it: it rises up to the estimate and falls beyond. What it
does not reject is therefore an interval, no hull has to be taken, and its ends are those for tau = alpha / 2.
At delta = 0 this is the test itself.

Where most examples tie, the model is wrong, as a shift would have moved those too; the interval is then close
to that of a t test, with the same flaw where few examples differ. Where none differs it is infinite: the
model would say 0 for sure, on the strength of six examples.

How the ends are found. All shifts at once: the law of (sum_A m, sum_A w) on a plane lattice does not depend
on delta, and p_greater(delta) is its mass in a half-plane, decided in integers. Few configurations are listed
and sorted by their means. Otherwise the end is bracketed by certified p-values at rational shifts. Means of
subsets have denominators of at most W = sum_n w_n, so that two of them are at least 1/W^2 apart: a bracket
shorter than that holds one, the fraction of the smallest denominator in it. Where the certificate does not
decide, the shift counts as not rejected, which makes the interval longer.

Too many distinct differences are rounded, m = g q + r, and large weights, which the test does not depend on.
Then sum_A m = g sum_A q + sum_A r, and by Hoeffding's inequality sum_A r >= sum r / 2 - rho but for
exp(-2 rho^2 / sum r^2), which is added to p. Such ends are a little too far out, never too close.

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

from trackperm.errors import CapacityError, InputError
from trackperm.exact.enumeration import n_configurations
from trackperm.exact.functions.rational import RationalStatistic
from trackperm.exact.intervals.additive import AdditiveScores
from trackperm.exact.intervals.half_planes import HalfPlanes, JointTable
from trackperm.exact.intervals.interval import Interval, tail_level
from trackperm.exact.intervals.search import PValue, bracket, simplest_fraction, spread
from trackperm.exact.lattice.statistic import Alternative
from trackperm.exact.linear.tails import EXACT_IN_FLOATS
from trackperm.exact.outcome import MEMORY_BUDGET
from trackperm.exact.permutation import structured_test

LISTABLE = 2**18
"""Configurations up to which subset means are listed."""

MOST_DISTINCT = 1_000
"""Distinct differences beyond which they are rounded, to about as many."""

FINE = 400
COARSE = 50
"""Steps between the least and the greatest difference: enough for a table, and the fewest for one."""

MOST_WEIGHT = 50
"""Weight beyond which weights are rounded, where the end is not found from the exact ones by a table."""

FAILURE = 1e-3
"""What rounding may add to a p-value, relative to the level."""

PRECISION = 1e-5
"""Length of a bracket, in standard deviations, at which the search for a rounded end is over."""

MOST_BITS = 512
"""Bits of differences that ends are computed from; far more than the floats that they are returned as."""

LOG2_BASE = 50
"""Bits of a digit of integers that are too large for one."""

NOTE = (
    "all shifts of the scores that the exact test does not reject, in a model where a shift is all there is"
)
ROUNDED_NOTE = f"{NOTE}; differences were rounded, and the ends moved outwards to make up for it"
INFINITE_NOTE = f"{NOTE}; too few examples to reject any shift at this level"
IDENTICAL_NOTE = "no example differs, which says nothing of how much one would"
TIED_NOTE = "most examples tie, which a shift would not leave as they are: it may be too short"
"""Notes of intervals."""


def shift_interval(
    scores: AdditiveScores,
    *,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    memory_budget: int = MEMORY_BUDGET,
) -> Interval:
    """Return the shifts of additive scores that the exact paired-permutation test does not reject.

    Parameters
    ----------
    scores : AdditiveScores
        The differences of the scores, not those of 0/1 scores, which a shift does not leave 0/1.
    alpha : float
        Level of the test.
    alternative : {'two-sided', 'less', 'greater'}
        Of the test; one-sided intervals reach to infinity on the other side.
    memory_budget : int
        Bytes that may be allocated.

    Raises
    ------
    InputError
        If the scores are 0/1, or `alpha` is not between 0 and 1.
    CapacityError
        If it does not fit `memory_budget` however differences are rounded.

    References
    ----------
    Tritchler (1984).
    """
    tau = tail_level(alpha, alternative)
    if scores.gap is not None:
        raise InputError(
            "the scores are 0 or 1, and shifted ones would not be: the shift model does not fit them",
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
    low, high, is_rounded = -math.inf, math.inf, False
    if alternative != "less":
        low, is_rounded = _lower_end(rows, tau, memory_budget)
    if alternative != "greater":
        upper, also_rounded = _lower_end(replace(rows, moves=-rows.moves), tau, memory_budget)
        high, is_rounded = 0.0 - upper, is_rounded or also_rounded
    if rejects_zero(scores, alpha, alternative):
        # The nearest subset mean to 0 that is not 0; rounded ends may lie beyond it.
        total = int(rows.weights.astype(object) @ rows.multiplicities.astype(object))
        nearest = float(scores.unit / total)
        low, high = (max(low, nearest), high) if _upwards(scores, alternative) else (low, min(high, -nearest))
    else:
        low, high = min(low, 0.0), max(high, 0.0)
    note = ROUNDED_NOTE if is_rounded else NOTE
    if math.isinf(low) and math.isinf(high):
        note = INFINITE_NOTE
    elif 2 * (scores.n_up + scores.n_down) < rows.n_rows:
        note = f"{note}; {TIED_NOTE}"
    return Interval(low, high, alpha, alternative, "shift", "agrees", note)


def rejects_zero(scores: AdditiveScores, alpha: float, alternative: Alternative) -> bool:
    """Whether the exact test has p < alpha, with the whole of its certified interval."""
    moves = [int(m) for m in scores.moves]
    # Integers beyond 64 bits are given by their digits, m = sum_i BASE^i m_i with m_i of the sign of m.
    n_digits = max(-(-max(map(abs, moves)).bit_length() // LOG2_BASE), 1)
    digits = np.array(
        [
            [((abs(m) >> LOG2_BASE * i) % 2**LOG2_BASE) * (1 if m > 0 else -1) for i in range(n_digits)]
            for m in moves
        ],
        dtype=np.int64,
    )
    h = RationalStatistic.constant(0, n_digits)
    for i in range(n_digits):
        h = h + Fraction(1, 2 ** (LOG2_BASE * (n_digits - i))) * RationalStatistic.variable(i, n_digits)
    test = structured_test(digits, -digits, h, multiplicities=scores.multiplicities, alternative=alternative)
    return max(test.pvalue, test.interval[1]) < alpha


def _upwards(scores: AdditiveScores, alternative: Alternative) -> bool:
    return alternative == "greater" or (alternative == "two-sided" and scores.value > 0)


def _lower_end(rows: AdditiveScores, tau: float, memory_budget: int) -> tuple[float, bool]:
    """Return the least shift v with p_greater(v) >= tau, and whether differences were rounded."""
    if Fraction(1, 2**rows.n_rows) >= tau:
        return -math.inf, False
    excess = max(int(m).bit_length() for m in rows.moves) - MOST_BITS
    if excess > 0:
        rows = replace(rows, moves=rows.moves >> excess, unit=rows.unit * 2**excess)
    ratios = {Fraction(int(m), int(w)) for m, w in zip(rows.moves, rows.weights, strict=True)}
    if len(ratios) == 1:
        return float(ratios.pop() * rows.unit), False
    if n_configurations(rows.multiplicities) <= LISTABLE:
        return float(_listed_end(rows, tau) * rows.unit), False
    table = JointTable.of(rows, memory_budget)
    if table is not None:
        return float(_located_end(rows, table.pvalue, tau) * rows.unit), False
    size = max(max(map(abs, rows.moves.tolist())), int(rows.weights.max()))
    small = size * rows.n_rows <= EXACT_IN_FLOATS and int(rows.weights.max()) <= MOST_WEIGHT
    if small and rows.moves.size <= MOST_DISTINCT:
        try:
            law = HalfPlanes.of(rows, memory_budget)
            return float(_located_end(rows, law.pvalue, tau) * rows.unit), False
        except CapacityError:
            pass
    return _rounded_end(rows, tau, memory_budget), True


def _rounded_end(rows: AdditiveScores, tau: float, memory_budget: int) -> float:
    """Return a shift below the end, from rounded differences and weights."""
    rows = _with_small_weights(rows)
    span = int(rows.moves.max()) - int(rows.moves.min())
    finest = JointTable.finest_spacing(rows)
    if finest * FINE > span:
        try:
            rounded, offset = _rounded(rows, max(span // MOST_DISTINCT, 1), tau)
            return _below_end(rounded, HalfPlanes.of(rounded, memory_budget), offset, tau)
        except CapacityError:
            if finest * COARSE > span:
                raise
    rounded, offset = _rounded(rows, finest, tau)
    table = JointTable.of(rounded, memory_budget)
    return _below_end(rounded, table or HalfPlanes.of(rounded, memory_budget), offset, tau)


def _below_end(rounded: AdditiveScores, law: JointTable | HalfPlanes, offset: int, tau: float) -> float:
    """Return a shift below the end, from the law of rounded rows."""
    more = FAILURE * tau
    end = _bracketed_end(rounded, lambda shift: law.pvalue(shift, offset) + more, tau)
    return float(end * rounded.unit)


def _with_small_weights(rows: AdditiveScores) -> AdditiveScores:
    """Return rows with weights of at most MOST_WEIGHT: a shift that is spread a little less evenly."""
    largest = int(rows.weights.max())
    if largest <= MOST_WEIGHT:
        return rows
    weights = np.maximum((2 * rows.weights * MOST_WEIGHT + largest) // (2 * largest), 1)
    before, after = (int(w @ rows.multiplicities) for w in (rows.weights, weights))
    return replace(rows, weights=weights, unit=rows.unit * Fraction(after, before))


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


def _located_end(rows: AdditiveScores, pvalue: PValue, tau: float) -> Fraction:
    """Return the end exactly."""
    total = int(rows.weights @ rows.multiplicities)
    below, above = bracket(rows, pvalue, tau, Fraction(1, total * total))
    found = simplest_fraction(below, above)
    # A greater denominator is no subset mean: the certificate did not decide, and the safe end is below.
    return found if found.denominator <= total else below


def _bracketed_end(rows: AdditiveScores, pvalue: PValue, tau: float) -> Fraction:
    """Return a shift just below the end."""
    return bracket(rows, pvalue, tau, Fraction(PRECISION * spread(rows)[1]))[0]


def _rounded(rows: AdditiveScores, spacing: int, tau: float) -> tuple[AdditiveScores, int]:
    """Return differences rounded to multiples of `spacing`, and the offset that makes up for it.

    P(sum_A m - shift sum_A w <= 0) <= P(g sum_A q - shift sum_A w <= rho - sum r / 2) + FAILURE tau.
    """
    quotients = [round(Fraction(int(m), spacing)) for m in rows.moves]
    left = [int(m) - spacing * q for m, q in zip(rows.moves, quotients, strict=True)]
    counts = rows.multiplicities.tolist()
    squares = sum(c * r * r for c, r in zip(counts, left, strict=True))
    rest = sum(c * r for c, r in zip(counts, left, strict=True))
    rho = math.isqrt(math.ceil(squares * -math.log(FAILURE * tau) / 2.0)) + int(squares > 0)
    pairs = np.stack([np.array(quotients, dtype=np.int64), rows.weights], axis=1)
    distinct, inverse = np.unique(pairs, axis=0, return_inverse=True)
    totals = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(totals, inverse.ravel(), rows.multiplicities)
    offset = math.ceil(Fraction(2 * rho - rest, 2 * spacing))
    rounded = replace(
        rows,
        moves=distinct[:, 0],
        weights=distinct[:, 1],
        multiplicities=totals,
        unit=rows.unit * spacing,
    )
    return rounded, offset
