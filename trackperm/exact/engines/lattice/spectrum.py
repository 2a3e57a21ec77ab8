"""Spectrum of a law on a plane lattice: its characteristic function, as terms of sums over rows.

In a row, the terms of the sum over y have the ratio q = exp(-rate +- i theta), from the end with the greater
weight on. Their sum is (1 - q^n) / (1 - q). The powers are looked up among those of exp(2 pi i / P), and
1 - q, which cancels near the frequency 0, comes from expm1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trackperm.exact.distributions.characteristic import (
    ComplexArray,
    FloatArray,
    SwapDistribution,
    characteristic_function,
)
from trackperm.exact.distributions.pmf import Window, conjugate_weights
from trackperm.exact.engines.lattice.lattice import Flags
from trackperm.exact.types import IntArray


def rate_along(tilt: FloatArray) -> tuple[float, int]:
    """Return the decrease of log weights along a row under a tilt, and the direction of it."""
    slope = float(tilt[1])
    return abs(slope), 1 if slope >= 0.0 else -1


@dataclass(frozen=True)
class Spectrum:
    """Characteristic function at the frequencies of a plane that matter, as terms of the sums over rows.

    Attributes
    ----------
    along : ndarray of int64, shape (A,)
        Distinct frequencies along rows, ascending.
    place, across : ndarray of int64, shape (n,)
        Place of each frequency in `along`, and its other coordinate.
    entries : ndarray of complex128, shape (n,)
        Conjugate values, each over one minus the ratio of the terms of a row.
    norms : ndarray of float64, shape (A,)
        Euclidean norms of the entries with one frequency along rows.
    error_norm : float
        Bound on the Euclidean norm of the errors of the values, and of what was pruned.
    """

    along: IntArray
    place: IntArray
    across: IntArray
    entries: ComplexArray
    norms: FloatArray
    error_norm: float

    @classmethod
    def of(
        cls,
        law: SwapDistribution,
        tilt: FloatArray,
        window: Window,
        frequencies: IntArray,
        log_pruned: float,
    ) -> Spectrum:
        """Evaluate the characteristic function under a tilt at frequencies l, shape (n, 2).

        Those with a modulus below exp(log_pruned) may be left out.
        """
        periods, n_along = window.periods, window.periods[1]
        values, errors = characteristic_function(law, tilt, window.start, periods, frequencies)
        present = np.zeros(n_along // 2 + 1, dtype=np.bool_)
        present[frequencies[:, 1]] = True
        (along,) = present.nonzero()
        place = (np.cumsum(present) - 1)[frequencies[:, 1]]
        rate, sign = rate_along(tilt)
        gaps = -np.expm1(-rate + 1j * sign * _angles(along, n_along))
        gaps[along == 0] = 1.0
        weights = conjugate_weights(along[:, None], periods) / window.size
        entries = (weights / gaps)[place] * values
        norms = np.sqrt(np.bincount(place, weights=entries.real**2 + entries.imag**2))
        error_norm = math.sqrt(float(weights[place] @ errors**2)) + math.exp(log_pruned)
        return cls(along, place, frequencies[:, 0], entries, norms, error_norm)

    def block(self, first: int, n: int, n_across: int) -> ComplexArray:
        """Return the entries of n frequencies along rows, shape (n, n_across)."""
        found = np.zeros((min(n, self.along.size - first), n_across), dtype=np.complex128)
        mine: Flags | slice = slice(None)
        if n < self.along.size:
            mine = (self.place >= first) & (self.place < first + n)
        found[self.place[mine] - first, self.across[mine]] = self.entries[mine]
        return found


def turns_of(period: int) -> ComplexArray:
    """Return all powers of exp(2 pi i / period), in order."""
    angles = _angles(np.arange(period), period)
    return np.asarray(np.cos(angles) + 1j * np.sin(angles))


def powers(turns: ComplexArray, exponents: IntArray, others: IntArray) -> ComplexArray:
    """Return the powers exponents * others of a root of unity, from all its powers in order."""
    places = exponents * others
    places -= places // turns.size * turns.size  # takes less time than a remainder
    return turns.take(places)


def _angles(turns: IntArray, period: int) -> FloatArray:
    """Return 2 pi turns / period, folded to (-pi, pi] before it is rounded."""
    folded = turns % period
    folded = np.where(2 * folded > period, folded - period, folded)
    return np.asarray(folded * (2.0 * math.pi / period))
