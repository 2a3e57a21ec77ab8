"""Regions of statistics that are not rational: expressions, and callables.

An expression is evaluated in floating point with a bound on its error. If that does not decide on which side
of the threshold a value lies, as at every tie, the two numbers are compared exactly, point by point.

A NumPy callable has no algebra that could decide ties: values within a stated band of the threshold count as
tied, which is conservative, and results say so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from trackperm.errors import InputError, UndefinedError
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.functions.enclosure import ROUNDING, SLACK, UNDERFLOW, Enclosure
from trackperm.exact.functions.real import RealStatistic
from trackperm.exact.functions.real_number import RealNumber
from trackperm.exact.types import INSIDE, OUTSIDE, UNDEFINED, IntArray, Membership

TIE_BAND = 2.0**-40
"""Half-width of the band in which values of a callable count as tied, relative to the callable's scale."""

REMEMBERED = 2**14
"""Largest number of cached values, of about a kilobyte each: 16 MiB."""

CHUNK = 2**15
"""Points per step, which keeps each array of an expression at 256 KiB, within the cache."""


class ExactValues:
    """Cached values of a statistic at single points, compared exactly.

    Attributes
    ----------
    by_digits : bool
        Whether any comparison so far was decided as a tie only because 100 digits agree.
    """

    def __init__(self, h: RealStatistic) -> None:
        self._h = h
        self._known: dict[tuple[int, ...], RealNumber | None] = {}
        self.by_digits = False

    def __getitem__(self, totals: tuple[int, ...]) -> RealNumber | None:
        """Return the value for given values of the variables that occur in h; None if it is undefined."""
        if totals in self._known:
            return self._known[totals]
        point = [0] * self._h.n_variables
        for index, total in zip(self._h.variables, totals, strict=True):
            point[index] = total
        try:
            number = self._h.number(point)
        except UndefinedError:
            number = None
        return self._remember(totals, number)

    def at(self, point: Sequence[int]) -> RealNumber:
        """Return the value at a point of all m variables.

        Raises
        ------
        UndefinedError
            If the statistic is undefined there.
        """
        number = self._h.number(point)
        self._remember(tuple(int(point[index]) for index in self._h.variables), number)
        return number

    def _remember(self, totals: tuple[int, ...], number: RealNumber | None) -> RealNumber | None:
        if len(self._known) < REMEMBERED:
            self._known[totals] = number
        return number

    def order(self, value: RealNumber, other: RealNumber | Fraction | int) -> int:
        """Return the sign of the difference of two numbers, 0 if 100 digits agree."""
        sign, by_digits = value.compare(other)
        self.by_digits |= by_digits
        return sign


class RealRegion:
    """Points where a real statistic is at least, or at most, a threshold; ties are decided exactly.

    Parameters
    ----------
    h, values : RealStatistic and ExactValues
        The statistic of m integers, and its values at single points.
    totals : callable
        Function of lattice points that returns these integers.
    threshold, upper, strict
        Boundary of the region; whether it is above the boundary; whether ties are excluded.
    mirror : sequence of int, length r, or None
        E, if t(E - x) = -t(x) must hold at each point.
    affine_in_rows : bool
        Whether t is affine in the last coordinate wherever both ends of a piece of a row have a value.
    """

    def __init__(
        self,
        h: RealStatistic,
        totals: Callable[[Sequence[IntArray]], list[IntArray]],
        values: ExactValues,
        threshold: RealNumber | Fraction,
        upper: bool,
        strict: bool,
        mirror: Sequence[int] | None,
        *,
        affine_in_rows: bool = False,
    ) -> None:
        self.affine_in_rows = affine_in_rows
        self._h, self._totals, self._values = h, totals, values
        self._threshold, self._near = threshold, float(threshold)
        self._upper, self._strict, self._mirror = upper, strict, mirror

    def membership(self, points: Sequence[IntArray]) -> Membership:
        """Classify points, given as r broadcastable coordinate arrays: inside, outside or undefined."""
        return self.classified(points)[0]

    def classified(self, points: Sequence[IntArray]) -> tuple[Membership, FloatArray]:
        """Return the membership of points, and roughly how far their values are beyond the threshold."""
        axes = np.broadcast_arrays(*points)
        flat = [axis.ravel() for axis in axes]
        found = np.empty(flat[0].size, dtype=np.int8)
        beyond = np.empty(flat[0].size)
        for first in range(0, found.size, CHUNK):
            part = slice(first, first + CHUNK)
            found[part], beyond[part] = self._classify([axis[part] for axis in flat])
        return found.reshape(axes[0].shape), beyond.reshape(axes[0].shape)

    def _classify(self, points: Sequence[IntArray]) -> tuple[Membership, FloatArray]:
        totals = self._totals(points)
        there = self._h.enclosed(totals)
        if self._mirror is not None:
            back = self._totals([e - x for e, x in zip(self._mirror, points, strict=True)])
            self._check_mirrored(totals, there, back)
        with np.errstate(invalid="ignore"):
            beyond = there.value - self._near if self._upper else self._near - there.value
            margin = (there.error + (abs(self._near) + np.abs(beyond)) * ROUNDING + UNDERFLOW) * SLACK
            inside, outside = beyond > margin, beyond < -margin
        shape = points[0].shape
        found = np.broadcast_to(np.where(inside, INSIDE, OUTSIDE).astype(np.int8), shape).copy()
        found[np.broadcast_to(there.undefined, shape)] = UNDEFINED
        (near,) = np.nonzero(np.broadcast_to(~(inside | outside | there.undefined), shape))
        if near.size:
            rows = self._rows(totals, near)
            decided = {row: self._decide(row) for row in set(rows)}
            found[near] = [decided[row] for row in rows]
        return found, np.broadcast_to(beyond, shape)

    def _rows(self, totals: Sequence[IntArray], chosen: IntArray) -> list[tuple[int, ...]]:
        """Return the variables that occur in h at some of the points."""
        columns = [totals[index][chosen].tolist() for index in self._h.variables]
        return list(zip(*columns, strict=True)) if columns else [()] * chosen.size

    def _decide(self, totals: tuple[int, ...]) -> int:
        value = self._values[totals]
        if value is None:
            return UNDEFINED
        order = self._values.order(value, self._threshold)
        beyond = order if self._upper else -order
        return INSIDE if (beyond > 0 if self._strict else beyond >= 0) else OUTSIDE

    def _check_mirrored(self, totals: list[IntArray], there: Enclosure, mirrored: list[IntArray]) -> None:
        """Refuse points where t(E - x) = -t(x) fails by more than rounding, or only one side is undefined."""
        back = self._h.enclosed(mirrored)
        with np.errstate(invalid="ignore"):
            opposite = np.abs(there.value + back.value) <= (there.error + back.error) * SLACK
        settled = np.isfinite(there.error) & np.isfinite(back.error)
        fine = (settled & opposite & ~there.undefined & ~back.undefined) | (there.undefined & back.undefined)
        (doubtful,) = np.nonzero(~np.broadcast_to(fine, totals[0].shape))
        rows = zip(self._rows(totals, doubtful), self._rows(mirrored, doubtful), strict=True)
        for one, other in rows:
            value, opposite_value = self._values[one], self._values[other]
            if value is None and opposite_value is None:
                continue
            if value is None or opposite_value is None or self._values.order(value, -opposite_value):
                found = [
                    "undefined" if number is None else f"{float(number)}"
                    for number in (value, opposite_value)
                ]
                raise InputError(
                    f"the statistic is {found[0]} after some swaps and {found[1]} after the opposite swaps; "
                    "the two-sided test needs opposite numbers",
                    hint="let conditions and values of 0/0 keep the symmetry, or use `greater` or `less`.",
                )


class CallableRegion:
    """Points where a callable is at least, or at most, a threshold, with ties within a band.

    The band has the half-width :data:`TIE_BAND` times `scale`.
    """

    def __init__(
        self,
        values: Callable[[Sequence[IntArray]], FloatArray],
        threshold: float,
        scale: float,
        upper: bool,
        strict: bool,
    ) -> None:
        self._values, self._threshold, self._band = values, threshold, TIE_BAND * scale
        self._upper, self._strict = upper, strict

    def membership(self, points: Sequence[IntArray]) -> Membership:
        """Classify points, given as r broadcastable coordinate arrays: inside, outside or undefined."""
        values = self._values(points)
        with np.errstate(invalid="ignore"):
            beyond = (values - self._threshold) if self._upper else (self._threshold - values)
            extreme = beyond > self._band if self._strict else beyond >= -self._band
        inside = np.where(extreme, INSIDE, OUTSIDE).astype(np.int8)
        inside[np.isnan(values)] = UNDEFINED
        return inside
