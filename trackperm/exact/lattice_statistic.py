"""The statistic as a function of lattice coordinates, and the regions that its values cut out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trackperm.errors import InputError
from trackperm.exact.characteristic import FloatArray
from trackperm.exact.counts import DifferenceHistogram
from trackperm.exact.lattice import Lattice
from trackperm.exact.rational import Polynomial, RationalStatistic
from trackperm.exact.rational_region import RationalRegion
from trackperm.exact.real_region import CallableRegion
from trackperm.exact.region import Region

Alternative = Literal["two-sided", "less", "greater"]
Statistic = RationalStatistic | Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
"""h: an exact rational function, or a NumPy callable from float64 arrays (..., m) to arrays (...)."""


@dataclass(frozen=True)
class LatticeStatistic:
    """h as a function of the lattice coordinates: t(x) = h(origin + basis @ x).

    Attributes
    ----------
    h : RationalStatistic or callable
        The statistic of m integers.
    histogram : DifferenceHistogram
        Gives the origin and the observed point.
    lattice : Lattice
        Gives the basis.
    """

    h: Statistic
    histogram: DifferenceHistogram
    lattice: Lattice

    @property
    def is_exact(self) -> bool:
        """Whether ties are decided exactly."""
        return isinstance(self.h, RationalStatistic)

    @cached_property
    def local(self) -> RationalStatistic | None:
        """The rational function t of the r lattice coordinates; None for a callable."""
        if not isinstance(self.h, RationalStatistic):
            return None
        rank = max(self.lattice.rank, 1)
        coordinates = [RationalStatistic.variable(j, rank) for j in range(self.lattice.rank)]
        arguments = [
            sum(
                (x * step for x, step in zip(coordinates, row, strict=True) if step),
                RationalStatistic.constant(start, rank),
            )
            for start, row in zip(self.histogram.origin, self.lattice.basis, strict=True)
        ]
        return self.h.substitute(arguments).simplified()

    @cached_property
    def observed_point(self) -> tuple[int, ...]:
        """Lattice coordinates of the observed value of S."""
        moves = self.histogram.n_up.astype(object) @ self.lattice.coordinates.astype(object)
        return tuple(int(x) for x in np.atleast_1d(moves)) if self.lattice.rank else ()

    @cached_property
    def observed_exact(self) -> Fraction | None:
        """The observed value of h as a fraction; None for a callable."""
        if not isinstance(self.h, RationalStatistic):
            return None
        try:
            return self.h(self.histogram.stay)
        except ZeroDivisionError as error:
            raise InputError(
                f"the observed value of the statistic is undefined: {error}",
                hint="declare the value of 0/0 with `undefined`.",
            ) from error

    @cached_property
    def observed(self) -> float:
        """The observed value of h.

        Raises
        ------
        InputError
            If it is undefined.
        """
        if self.observed_exact is not None:
            try:
                return float(self.observed_exact)
            except OverflowError as error:
                raise InputError(
                    "the observed value of the statistic is beyond the range of floats"
                ) from error
        value = float(self.values_at_totals(np.array([self.histogram.stay], dtype=np.float64))[0])
        if not np.isfinite(value):
            raise InputError(f"the observed value of the statistic is {value}; expected a finite number")
        return value

    def values_at_totals(self, totals: FloatArray) -> FloatArray:
        """Return h at values of S, shape (..., m), in floating point; NaN where undefined."""
        if isinstance(self.h, RationalStatistic):
            return self.h.values(totals)
        with np.errstate(all="ignore"):
            values = np.asarray(self.h(totals), dtype=np.float64)
        if values.shape != totals.shape[:-1]:
            raise InputError(
                f"the statistic returned shape {values.shape} for input of shape {totals.shape}; "
                f"expected {totals.shape[:-1]}",
                hint="index the counts on the last axis, as in `x[..., 0] - x[..., 1]`.",
            )
        return values

    def values(self, points: Sequence[npt.NDArray[Any]]) -> FloatArray:
        """Return t at lattice points, given as r broadcastable coordinate arrays, in floating point."""
        shape = np.broadcast_shapes(*(axis.shape for axis in points))
        totals = np.empty((*shape, len(self.histogram.origin)))
        for i, (start, row) in enumerate(zip(self.histogram.origin, self.lattice.basis, strict=True)):
            totals[..., i] = start
            for x, step in zip(points, row, strict=True):
                if step:
                    totals[..., i] += x * float(step)
        return self.values_at_totals(totals)

    def affine(self) -> tuple[Fraction, tuple[Fraction, ...]] | None:
        """Return constant and coefficients of t where t is affine on the lattice, else None."""
        local = self.local
        if local is None:
            return None
        numerator, denominator = local.quotient
        if numerator.degree > 1 or denominator.degree > 0 or local.divisors:
            return None
        divisor = denominator.coefficient(*[0] * denominator.n_variables)
        rank = self.lattice.rank
        units = [tuple(int(i == j) for j in range(numerator.n_variables)) for i in range(rank)]
        constant = numerator.coefficient(*[0] * numerator.n_variables)
        return Fraction(constant, divisor), tuple(Fraction(numerator.coefficient(*u), divisor) for u in units)

    def check_antisymmetric(self, total: Sequence[int], rng: np.random.Generator) -> None:
        """Check that exchanging all pairs negates the statistic: t(E - x) = -t(x).

        Exact for a rational h; on 64 random points for a callable.

        Raises
        ------
        InputError
            If it does not.
        """
        local = self.local
        if local is not None:
            n, d = local.quotient
            mirror = [
                Polynomial.affine(e, [-int(i == j) for j in range(n.n_variables)])
                for i, e in enumerate(total)
            ]
            mirrored = not total or not (n * d.compose(mirror) + n.compose(mirror) * d).terms
        else:
            coins = rng.binomial(self.histogram.multiplicities, 0.5, size=(64, len(self.histogram.n_up)))
            points = coins @ self.lattice.coordinates
            there = self.values(list(points.T))
            back = self.values(list(np.array(total)[:, None] - points.T))
            both = np.isfinite(there) & np.isfinite(back)
            scale = max(1e-300, *np.abs(there[both]), abs(self.observed))
            mirrored = bool(np.all(np.abs(there + back)[both] <= 1e-9 * scale))
        if not mirrored:
            raise InputError(
                "the two-sided test needs a statistic that changes sign when the two runs are exchanged, "
                "and this one does not",
                hint="test a difference of scores or the log of their ratio, or use `greater` or `less`.",
            )

    def region(
        self,
        threshold: Fraction | float,
        centre: Sequence[int],
        *,
        upper: bool,
        strict: bool = False,
        mirror: Sequence[int] | None = None,
    ) -> Region:
        """Return the points with t(x) >= threshold (`upper`) or t(x) <= threshold; > or < if `strict`.

        Parameters
        ----------
        threshold : Fraction or float
            A fraction where the statistic is exact.
        centre : sequence of int, length r
            A lattice point near which most questions will be asked; it only affects speed.
        upper : bool
            Which side.
        strict : bool
            Whether ties with the threshold are outside.
        mirror : sequence of int, length r, optional
            E, where t(E - x) = -t(x) is relied upon: declared values of 0/0 are then checked for it.
        """
        if self.local is not None:
            return RationalRegion(self.local, Fraction(threshold), tuple(centre), upper, strict, mirror)
        return CallableRegion(self.values, float(threshold), upper, strict)
