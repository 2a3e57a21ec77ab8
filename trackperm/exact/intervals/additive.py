"""Contribution of each row of counts to a linear statistic: its difference and its weight.

A linear antisymmetric statistic is T = sum_n x_n, and a swap turns x_n into -x_n. A shift of all scores by
delta moves x_n by delta w_n, with w_n the share of row n in the denominators: 1/N for the mean of N examples,
its share of all tokens for a row of tokens, and W_s / n_s for an example of stratum s in a mean over strata
with weights W_s. The shares are read from the written form of the statistic, a sum of quotients. The test, at
shift 0, does not depend on them, so they may be rounded: that spreads a shift slightly less evenly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.exact.counts import LARGEST, exact_column_sums, group_rows
from trackperm.exact.differences import changes_by_swap, linear_sums
from trackperm.exact.engines.lattice.statistic import Statistic
from trackperm.exact.functions.rational import RationalStatistic
from trackperm.exact.types import IntArray

LARGEST_WEIGHT = 1000
"""Largest integer weight; larger ones are rounded, which changes a share by 0.05 % of the largest."""


@dataclass(frozen=True)
class AdditiveScores:
    """Linear statistic by rows: unit * sum_k c_k m_k / sum_k c_k w_k.

    Attributes
    ----------
    moves : ndarray of int64 or of Python integers, shape (K,)
        Differences m_k; a swap turns m_k into -m_k, and pairs (m_k, w_k) are distinct.
    weights : ndarray of int64, shape (K,)
        Positive weights w_k.
    multiplicities : ndarray of int64, shape (K,)
        Numbers of rows c_k.
    unit : Fraction
        Value of a mean difference of 1 per unit of weight; positive.
    gap : Fraction or None
        For scores of which 0 and one other value were seen, such as 0/1 scores: the statistic if all rows had
        the same weight and rose from the lower value to the higher. None for other scores. If only
        differences are known, differences of a single size count as two values.
    """

    moves: npt.NDArray[Any]
    weights: IntArray
    multiplicities: IntArray
    unit: Fraction
    gap: Fraction | None = None

    @property
    def equally_weighted(self) -> bool:
        """Whether all rows have the same weight."""
        return bool((self.weights == self.weights[0]).all())

    @property
    def ratios(self) -> tuple[Fraction, Fraction]:
        """The least and the greatest m_k / w_k."""
        moves, weights = self.moves.tolist(), self.weights.tolist()
        if self.equally_weighted:
            return Fraction(min(moves), weights[0]), Fraction(max(moves), weights[0])
        ratios = [Fraction(m, w) for m, w in zip(moves, weights, strict=True)]
        return min(ratios), max(ratios)

    @property
    def n_rows(self) -> int:
        """Number of rows, counted with multiplicity."""
        return int(self.multiplicities.sum())

    @property
    def n_up(self) -> int:
        """Number of rows that raise the statistic."""
        return int(self.multiplicities[self.moves > 0].sum())

    @property
    def n_down(self) -> int:
        """Number of rows that lower the statistic."""
        return int(self.multiplicities[self.moves < 0].sum())

    @property
    def value(self) -> Fraction:
        """Value of the statistic."""
        moved = sum(m * c for m, c in zip(self.moves.tolist(), self.multiplicities.tolist(), strict=True))
        (weight,) = exact_column_sums(self.weights[:, None], self.multiplicities)
        return self.unit * Fraction(moved, weight)


def additive_scores(
    observed: IntArray, swapped: IntArray, h: Statistic, multiplicities: IntArray
) -> AdditiveScores | None:
    """Return the contributions of rows to h; None if h is not linear, not antisymmetric, or not a mean.

    Rows are those of :func:`~trackperm.exact.structured_test`.
    """
    linear = changes_by_swap(h, observed, swapped, multiplicities)
    if linear is None or not isinstance(h, RationalStatistic):
        return None
    changes, denominator = linear
    counts = multiplicities.astype(object)
    terms = _quotients(h)
    weights = None if terms is None else _weights(terms, observed, swapped, counts)
    if weights is None:
        weights = np.ones(len(observed), dtype=np.int64)
    elif bool(((weights == 0) & (changes != 0)).any()):
        return None  # such as errors in a sentence without words, which no shift of its score explains
    # Rows without a weight are omitted, such as negatives in recall.
    takes_part = weights > 0
    observed, swapped, changes = observed[takes_part], swapped[takes_part], changes[takes_part]
    weights, multiplicities, counts = weights[takes_part], multiplicities[takes_part], counts[takes_part]
    # x_k = unit m_k / total is half of the change by a swap.
    divisor = math.gcd(*changes.tolist()) or 1
    moves = changes // divisor
    unit = Fraction(divisor * int(weights.astype(object) @ counts), 2 * denominator)
    if int(np.abs(moves).max()) < LARGEST:
        moves = moves.astype(np.int64)
    found = AdditiveScores(*_grouped(moves, weights, multiplicities), unit)
    levels = None if terms is None else _levels(terms, observed)
    if levels is None:
        sizes = set(np.abs(moves).tolist()) - {0}
        if found.equally_weighted and len(sizes) == 1:
            return replace(found, gap=unit * sizes.pop() / int(found.weights[0]))
    elif levels <= {0, 1} or (len(levels) == 2 and 0 in levels):
        factor = sum((term.factor for term in terms or () if term.factor > 0), Fraction(0))
        return replace(found, gap=factor * (max(levels) - min(levels) or 1))
    return found


def strata_of_rows(h: Statistic, observed: IntArray) -> IntArray | None:
    """Return the index of each row's quotient in a sum of quotients, such as its stratum.

    It is None if a row belongs to several or to none, as in means over classes, or if there is only one
    quotient.
    """
    terms = _quotients(h) if isinstance(h, RationalStatistic) else None
    divisors = [term.denominator for term in terms or () if term.factor > 0]
    if len(divisors) < 2:
        return None
    found = np.empty(len(observed), dtype=np.int64)
    for k, row in enumerate(observed.tolist()):
        own = [i for i, divisor in enumerate(divisors) if divisor(row) != 0]
        if len(own) != 1:
            return None
        found[k] = own[0]
    return found


@dataclass(frozen=True)
class _Quotient:
    """Quotient factor * numerator / denominator."""

    factor: Fraction
    numerator: RationalStatistic
    denominator: RationalStatistic


def _quotients(h: RationalStatistic) -> list[_Quotient] | None:
    """Return h as the sum of quotients that it is written as; None if it has other terms."""
    if h.operation == "/" and h.operands[1].affine is not None and h.operands[1].affine[1]:
        return [_Quotient(Fraction(1), *h.operands)]
    if h.operation in ("+", "*", "/"):
        left, right = h.operands
        if h.operation == "+":
            first, second = _quotients(left), _quotients(right)
            return None if first is None or second is None else first + second
        if h.operation == "*" and left.operation == "constant":
            left, right = right, left
        terms = _quotients(left)
        if terms is not None and right.operation == "constant" and right.value != 0:
            factor = right.value if h.operation == "*" else 1 / right.value
            return [_Quotient(factor * t.factor, t.numerator, t.denominator) for t in terms]
    return None


def _weights(
    terms: list[_Quotient], observed: IntArray, swapped: IntArray, counts: npt.NDArray[Any]
) -> IntArray | None:
    """Return integers in proportion to the rows' shares in the denominators of the candidate's score.

    It is None if a swap changes them. Integers above `LARGEST_WEIGHT` are scaled and rounded, to 1 at least.
    """
    parts: list[tuple[Fraction, npt.NDArray[Any]]] = []
    for term in terms:
        affine = term.denominator.affine
        if affine is None or affine[0] != 0:
            return None
        slopes = [affine[1].get(i, Fraction(0)) for i in range(observed.shape[1])]
        (here, there), _ = linear_sums(slopes, observed, swapped)
        total = int(here @ counts)
        if total <= 0 or bool((here != there).any() or (here < 0).any()):
            return None
        if term.factor > 0:
            parts.append((term.factor / total, here))
    if not parts:
        return None
    common = math.lcm(*(factor.denominator for factor, _ in parts))
    weights = sum(
        (int(factor * common) * here for factor, here in parts), np.zeros(len(observed), dtype=object)
    )
    weights = weights // math.gcd(*weights.tolist())
    largest = int(weights.max())
    if largest > LARGEST_WEIGHT:
        near = (weights * LARGEST_WEIGHT * 2 + largest) // (2 * largest)
        weights = np.maximum(near, (weights > 0).astype(object))
    return weights.astype(np.int64)


def _grouped(
    moves: npt.NDArray[Any], weights: IntArray, multiplicities: IntArray
) -> tuple[npt.NDArray[Any], IntArray, IntArray]:
    """Return the distinct pairs of moves and weights, with their multiplicities."""
    if moves.dtype != object:
        pairs, counts = group_rows(np.stack([moves, weights], axis=1), multiplicities)
        return pairs[:, 0], pairs[:, 1], counts
    totals: dict[tuple[int, int], int] = {}
    for move, weight, count in zip(moves.tolist(), weights.tolist(), multiplicities.tolist(), strict=True):
        totals[move, weight] = totals.get((move, weight), 0) + count
    firsts, seconds = zip(*totals, strict=True)
    return (
        np.array(firsts, dtype=object),
        np.array(seconds, dtype=np.int64),
        np.array(list(totals.values()), dtype=np.int64),
    )


def _levels(terms: list[_Quotient], observed: IntArray) -> set[Fraction] | None:
    """Return the distinct scores of rows in both runs, stopping beyond two.

    It is None unless h is a difference of scores, or of weighted scores of strata.
    """
    signs = [term.factor > 0 for term in terms]
    if signs.count(True) != signs.count(False):
        return None
    values: set[Fraction] = set()
    for row in observed.tolist():
        for term in terms:
            divisor = term.denominator(row)
            if divisor != 0:
                values.add(term.numerator(row) / divisor)
        if len(values) > 2:
            break
    return values or None
