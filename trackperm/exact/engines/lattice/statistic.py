"""Statistic as a function of lattice coordinates, and regions of its values."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trackperm.errors import InputError, UndefinedError
from trackperm.exact.counts import LARGEST, DifferenceHistogram, exact_column_sums
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.engines.lattice.lattice import Lattice
from trackperm.exact.engines.lattice.rational_region import RationalRegion
from trackperm.exact.engines.lattice.real_region import CallableRegion, ExactValues, RealRegion
from trackperm.exact.functions.degrees import degrees_along
from trackperm.exact.functions.operations import OperationTree, are_alike
from trackperm.exact.functions.rational import Polynomial, Quotient, RationalStatistic
from trackperm.exact.functions.real import RealStatistic
from trackperm.exact.functions.real_number import RealNumber
from trackperm.exact.types import IntArray, Region

Statistic = RationalStatistic | RealStatistic | Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
"""h: an exact rational or real function, or a NumPy callable from float64 arrays (..., m) to arrays (...)."""

Ties = Literal["exact", "100 digits", "approximate"]

SAMPLES = 64
"""Random swaps that check antisymmetry, and measure the scale, of a callable: few, as a failure is
generic."""

SAMPLED_COINS = 2**17
"""Largest number of random numbers for these samples: some milliseconds."""


def not_antisymmetric() -> InputError:
    """Return the error for a two-sided test of a statistic that is not antisymmetric."""
    return InputError(
        "the two-sided test needs a statistic that changes sign when the two runs are exchanged, "
        "and this one does not",
        hint="use a difference of scores or the log of their ratio, or test `greater` or `less`.",
    )


def values_at(h: Statistic, totals: FloatArray) -> FloatArray:
    """Return h at totals, shape (..., m), in floating point; NaN where undefined."""
    with np.errstate(all="ignore"):
        if isinstance(h, RationalStatistic):
            return np.broadcast_to(h.values(totals), totals.shape[:-1])
        values = np.asarray(h(totals), dtype=np.float64)
    if values.shape != totals.shape[:-1]:
        raise InputError(
            f"the statistic returned shape {values.shape} for input of shape {totals.shape}; "
            f"expected {totals.shape[:-1]}",
            hint="index the counts on the last axis, as in `x[..., 0] - x[..., 1]`.",
        )
    return values


@dataclass(frozen=True)
class LatticeStatistic:
    """Statistic as a function of lattice coordinates: t(x) = h(origin + basis @ x).

    Attributes
    ----------
    h : RationalStatistic, RealStatistic or callable
        The statistic of m integers.
    histogram : DifferenceHistogram
        Source of the origin and the observed point.
    lattice : Lattice
        Source of the basis.
    """

    h: Statistic
    histogram: DifferenceHistogram
    lattice: Lattice

    @property
    def ties(self) -> Ties:
        """Method that has decided ties with the observed value so far; read it after all regions.

        Ties of a RealStatistic are also exact, unless 100 digits agreed for values that are neither rational
        nor made of square roots or one logarithm.
        """
        if isinstance(self.observed_exact, RealNumber):
            by_digits = self._exact_values.by_digits or self.observed_exact.compare(0)[1]
            return "100 digits" if by_digits else "exact"
        return "exact" if isinstance(self.h, RationalStatistic) else "approximate"

    @cached_property
    def _exact_values(self) -> ExactValues:
        if not isinstance(self.h, RealStatistic):
            raise TypeError("only a RealStatistic has exact values")
        return ExactValues(self.h)

    @cached_property
    def centre(self) -> tuple[int, ...]:
        """Lattice point next to the mean E/2 of the null distribution."""
        total = exact_column_sums(self.lattice.coordinates, self.histogram.multiplicities)
        return tuple(x // 2 for x in total)

    @cached_property
    def local(self) -> Quotient | None:
        """Quotient t of polynomials in the offsets from the `centre`; None if h is not rational.

        It is the same for all configurations of the pairs, as the number of its terms decides about engines.

        Raises
        ------
        CapacityError
            If a polynomial has more than 20,000 terms.
        """
        if not isinstance(self.h, RationalStatistic):
            return None
        lines = zip(self.histogram.origin, self.lattice.basis, strict=True)
        forms = {
            i: Polynomial.affine(start + sum(map(operator.mul, row, self.centre)), row or [0])
            for i, (start, row) in enumerate(lines)
        }
        return self.h.of(forms, max(self.lattice.rank, 1))

    @cached_property
    def observed_point(self) -> tuple[int, ...]:
        """Lattice coordinates of the observed value of S."""
        return exact_column_sums(self.lattice.coordinates, self.histogram.n_up)

    @cached_property
    def observed_exact(self) -> Fraction | RealNumber | None:
        """Observed value of h as a number that compares exactly; None for a callable."""
        try:
            if isinstance(self.h, RationalStatistic):
                return self.h(self.histogram.observed)
            if isinstance(self.h, RealStatistic):
                return self._exact_values.at(self.histogram.observed)
        except (ZeroDivisionError, UndefinedError) as error:
            raise InputError(
                f"the observed value of the statistic is undefined: {error}",
                hint="declare the value of 0/0 with `undefined`, or another value with `where`.",
            ) from error
        return None

    @cached_property
    def observed(self) -> float:
        """Observed value of h.

        Raises
        ------
        InputError
            If it is undefined.
        """
        if self.observed_exact is None:
            value = float(values_at(self.h, np.array([self.histogram.observed], dtype=np.float64))[0])
        else:
            try:
                value = float(self.observed_exact)
            except OverflowError:
                value = math.inf
            if math.isinf(value):
                raise InputError(
                    "the observed value of the statistic is beyond the range of floats",
                    hint="use smaller arguments of `exp` and powers, or test the log ratio of the scores.",
                )
        if not math.isfinite(value):
            raise InputError(f"the observed value of the statistic is {value}; expected a finite number")
        return value

    @cached_property
    def _steps(self) -> list[list[tuple[int, int]]]:
        """Axes on which each count depends, with its steps: entries of the basis that are not 0."""
        return [[(axis, step) for axis, step in enumerate(row) if step] for row in self.lattice.basis]

    def values(self, points: Sequence[npt.NDArray[Any]]) -> FloatArray:
        """Return t at lattice points, given as r broadcastable coordinate arrays, in floating point."""
        shape = np.broadcast_shapes(*(axis.shape for axis in points))
        totals = np.empty((*shape, len(self.histogram.origin)))
        for i, (start, steps) in enumerate(zip(self.histogram.origin, self._steps, strict=True)):
            totals[..., i] = start
            for axis, step in steps:
                totals[..., i] += points[axis] * float(step)
        return values_at(self.h, totals)

    def totals(self, points: Sequence[IntArray]) -> list[npt.NDArray[Any]]:
        """Return the m entries of S at lattice points, exactly: int64, or Python integers beyond 2^62."""
        reach = [int(np.abs(axis).max(initial=0)) for axis in points]
        shape = np.broadcast_shapes(*(axis.shape for axis in points))
        found = []
        for start, steps in zip(self.histogram.origin, self._steps, strict=True):
            size = abs(start) + sum(abs(step) * reach[axis] for axis, step in steps)
            total = np.full(shape, start, dtype=np.int64 if size <= LARGEST else object)
            for axis, step in steps:
                x = points[axis]
                total += x * step if total.dtype == np.int64 else x.astype(object) * step
            found.append(total)
        return found

    def sample(self, rng: np.random.Generator) -> IntArray:
        """Return some lattice points that swaps reach, shape (n, r): both ends, the observed, random ones."""
        coordinates, counts = self.lattice.coordinates, self.histogram.multiplicities
        rows = rng.permutation(counts.size)[: SAMPLED_COINS // SAMPLES]
        half = counts // 2
        coins = rng.binomial(counts[rows], 0.5, size=(SAMPLES, rows.size)) - half[rows]
        ends = np.array([np.zeros_like(half), half, self.histogram.n_up, counts]) @ coordinates
        return np.vstack([ends, ends[1] + coins @ coordinates[rows]])

    @cached_property
    def _scale(self) -> float:
        """Greatest finite absolute value of a callable on a fixed sample of points."""
        values = np.abs(self.values(list(self.sample(np.random.default_rng(0)).T)))
        return float(values[np.isfinite(values)].max(initial=abs(self.observed)))

    def slopes(self) -> tuple[Fraction, ...] | None:
        """Return the slopes of t if t is affine on the lattice, else None."""
        local = self.local
        if local is None or local.numerator.degree > 1 or local.denominator.degree > 0 or local.divisors:
            return None
        _, slopes = local.numerator.affine_form
        divisor, _ = local.denominator.affine_form
        return tuple(Fraction(slope, divisor) for slope in slopes[: self.lattice.rank])

    @cached_property
    def is_closed_in_rows(self) -> bool:
        """Whether regions in rows are known in closed form; a row is a line along the last basis vector."""
        if self.local is not None:
            parts = self.local.numerator, self.local.denominator
            return all(exponents[-1] <= 2 for part in parts for exponents in part.terms)
        return self.is_closed_along([int(j == self.lattice.rank - 1) for j in range(self.lattice.rank)])

    def is_closed_along(self, direction: Sequence[int]) -> bool:
        """Whether the written form of h proves closed forms of regions in lines of a direction.

        A rational function must be a quotient of polynomials of degree at most 2 there, and any other must
        be affine.
        """
        if not isinstance(self.h, OperationTree):
            return False
        steps = [sum(b * d for b, d in zip(row, direction, strict=True)) for row in self.lattice.basis]
        degrees = degrees_along(self.h, steps)
        if degrees is None:
            return False
        return max(degrees) <= 2 if self.local is not None else degrees[0] <= 1 and degrees[1] == 0

    def check_antisymmetric(self, total: Sequence[int]) -> None:
        """Refuse a statistic that exchanging all pairs does not negate: t(E - x) = -t(x).

        A difference of the same score of both runs is recognised by its form, and another rational h is
        checked by algebra; any other h is checked at random points.
        """
        h = self.h
        if isinstance(h, RationalStatistic | RealStatistic) and self._is_difference_of_runs(h, total):
            return
        local = self.local
        if local is not None:
            n, d = local.numerator, local.denominator
            # The offset E - 2 c - o is that of the point after exchanging all pairs.
            mirror = [
                Polynomial.affine(e - 2 * c, [-int(i == j) for j in range(n.n_variables)])
                for i, (e, c) in enumerate(zip(total, self.centre, strict=True))
            ]
            mirrored = not total or not (n * d.compose(mirror) + n.compose(mirror) * d).terms
        else:
            points = self.sample(np.random.default_rng(0))
            there, back = (self.values(list(axes)) for axes in (points.T, (np.array(total) - points).T))
            both = np.isfinite(there) & np.isfinite(back)
            scale = max(1e-300, *np.abs(there[both]), abs(self.observed))
            mirrored = bool(np.all(np.abs(there + back)[both] <= 1e-9 * scale))
        if not mirrored:
            raise not_antisymmetric()

    def _is_difference_of_runs(self, h: RationalStatistic | RealStatistic, total: Sequence[int]) -> bool:
        """Whether h has the form f(S) - f(S'), with S' the sums S after exchanging all pairs."""
        match h:
            case OperationTree("+", _, (score, OperationTree("*", _, (other, factor)))):
                if factor.operation != "constant" or factor.value != -1:
                    return False
            case _:
                return False
        here = list(zip(self.histogram.origin, self.lattice.basis, strict=True))
        there = [
            (start + sum(map(operator.mul, row, total)), tuple(-step for step in row)) for start, row in here
        ]
        # Variables with equal values on the whole lattice are identified.
        first = [here.index(line) for line in here]
        if any(there[i] not in here for i in score.variables):
            return False
        partner = [here.index(line) if line in here else i for i, line in enumerate(there)]
        return are_alike(score, other, partner, first)

    def exact_value(self, point: Sequence[int]) -> Fraction:
        """Return t at a lattice point for a rational h; ZeroDivisionError where it is undefined."""
        if not isinstance(self.h, RationalStatistic):
            raise TypeError("only a RationalStatistic has values that are fractions")
        return self.h(
            [
                start + sum(step * point[axis] for axis, step in steps)
                for start, steps in zip(self.histogram.origin, self._steps, strict=True)
            ]
        )

    def region(
        self,
        threshold: Fraction | RealNumber | float,
        *,
        upper: bool,
        strict: bool = False,
        mirror: Sequence[int] | None = None,
    ) -> Region:
        """Return the points with t(x) >= threshold (`upper`) or t(x) <= threshold; > or < if `strict`.

        `threshold` is a float for a callable only. `mirror` is E if the test relies on t(E - x) = -t(x),
        which is then checked where 0/0 has a declared value.
        """
        if self.local is not None and not isinstance(threshold, RealNumber):
            centre = self.centre or (0,)
            bound = Fraction(threshold)
            return RationalRegion(self.local, centre, self.exact_value, bound, upper, strict, mirror)
        if isinstance(self.h, RealStatistic):
            if not isinstance(threshold, RealNumber):
                threshold = Fraction(threshold)
            if mirror is not None and self._is_difference_of_runs(self.h, mirror):
                mirror = None
            return RealRegion(
                self.h,
                self.totals,
                self._exact_values,
                threshold,
                upper,
                strict,
                mirror,
                affine_in_rows=self.lattice.rank > 0 and self.is_closed_in_rows,
            )
        return CallableRegion(self.values, float(threshold), self._scale, upper, strict)
