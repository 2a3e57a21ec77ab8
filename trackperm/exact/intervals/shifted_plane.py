r"""P-values of the test of shifted scores as probabilities of half-planes.

With (W, S) = (sum_A w, sum_A m), the p-value P(S - shift W <= 0) is the probability of a half-plane under one
law on a plane lattice, whatever the shift is. In each row x of the lattice the half-plane is an interval from
f_x up to, but without, l_x. With the frequencies theta along rows, and phi(x, theta) the transform of the
characteristic function across rows,

    P(S - shift W <= 0) = sum_x sum_theta phi(x, theta) (q^f_x - q^l_x) / (1 - q),    q = exp(i theta).

The transform is computed once. Then a p-value has a term for each row and frequency along it, whatever the
denominator of the shift is. Windows and frequencies are chosen for the size of relevant p-values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.errors import CapacityError
from trackperm.exact.counts import LARGEST, DifferenceHistogram
from trackperm.exact.distributions.characteristic import (
    UNIT,
    ComplexArray,
    FloatArray,
    SwapDistribution,
)
from trackperm.exact.distributions.frequencies import FrequencySearch, n_expected
from trackperm.exact.distributions.pmf import (
    FEW,
    FFT_ROUNDINGS,
    Window,
    log_outside,
    plan_window,
    smooth_length,
)
from trackperm.exact.distributions.tilt import TailMass, certified
from trackperm.exact.engines.lattice.lattice import reduce_rank
from trackperm.exact.engines.lattice.spectrum import Spectrum, powers, turns_of
from trackperm.exact.engines.linear.tails import EXACT_IN_FLOATS
from trackperm.exact.intervals.additive import AdditiveScores
from trackperm.exact.types import IntArray

LOG_LOST = -24.0
"""Logarithm of the mass that windows and frequencies may lose, relative to a relevant p-value: 4e-11."""

LOG_LEAST = -12.0
"""Least logarithm of relevant p-values: without a tilt, errors are not small beside smaller ones."""

MOST_KINDS = 400
"""Largest number of distinct rows; with more of them, rounded steps are quicker, and lose less."""

QUICK_TRANSFORM = 0.02
"""Largest estimated seconds of the transform: a few p-values with rounded steps."""

SECONDS_PER_FACTOR, SECONDS_PER_BOUND = 3.5e-8, 5e-9
SECONDS_PER_TERM = 3e-8
"""Time of a factor of the characteristic function, of a bound of one in the search for the frequencies that
matter, and of a term of a p-value; measured on one core."""

BYTES_PER_TERM = 96
"""Memory of a term of a p-value: its transform, its power, and their product."""


@dataclass(frozen=True)
class ShiftedPlane:
    """Law of (W, S), of which each p-value is the probability of a half-plane.

    Attributes
    ----------
    basis, origin : tuple
        (W, S) = origin + basis @ (x, y), with lattice coordinates x and y.
    window : Window
        Lattice points that matter.
    along : ndarray of int64, shape (K,)
        Frequencies along rows that matter, ascending.
    at_rows : ndarray of complex128, shape (K, R)
        phi(x, theta) / (1 - q), without the divisor for the frequency 0.
    turns : ndarray of complex128, shape (P,)
        All powers of exp(2 pi i / P), with P the length of a row.
    sizes : ndarray of float64, shape (R,)
        Sums of the moduli of `at_rows` over the other frequencies.
    norms : ndarray of float64, shape (K,)
        Euclidean norms of what was transformed to `at_rows`.
    error_norm : float
        Bound of the Euclidean norm of its errors, and of the frequencies that were omitted.
    mass_outside : float
        Bound of the mass outside the window.
    """

    basis: tuple[tuple[int, ...], ...]
    origin: tuple[int, ...]
    window: Window
    along: IntArray
    at_rows: ComplexArray
    turns: ComplexArray
    sizes: FloatArray
    norms: FloatArray
    error_norm: float
    mass_outside: float

    @classmethod
    def of(cls, rows: AdditiveScores, log_level: float, memory_budget: int) -> ShiftedPlane | None:
        """Compute the transform for rows with several ratios m / w; None if that would take long."""
        counts = rows.multiplicities.astype(object)
        largest = max(int(counts @ abs(each.astype(object))) for each in (rows.moves, rows.weights))
        if rows.moves.size > MOST_KINDS or largest > EXACT_IN_FLOATS or log_level < LOG_LEAST:
            return None
        kinds = np.stack([rows.weights, rows.moves.astype(np.int64)], axis=1)
        histogram = DifferenceHistogram.from_pairs(np.zeros_like(kinds), kinds, rows.multiplicities)
        lattice = reduce_rank(histogram)
        law = SwapDistribution(lattice.coordinates, histogram.multiplicities)
        none, log_lost = np.zeros(law.rank), LOG_LOST + log_level
        window = plan_window(law, none, log_lost, fast=False)
        across, along = smooth_length(window.periods[0]), window.periods[1]
        window = Window(window.start, (across, along))
        threshold = log_lost - 0.5 * math.log(window.size)
        n_frequencies = min(sum(n_expected(law, window.periods, threshold)), window.size / 2.0)
        n_terms = across * min(n_frequencies, along / 2.0 + 1.0)
        if n_frequencies > FEW or BYTES_PER_TERM * max(n_terms, along) > memory_budget:
            return None
        search = FrequencySearch(law, none, window.periods, threshold)
        seconds = SECONDS_PER_FACTOR * law.multiplicities.size * n_frequencies
        if seconds + SECONDS_PER_BOUND * search.least_factors > QUICK_TRANSFORM:
            return None
        try:
            frequencies = search.survivors(FEW)
        except CapacityError:
            return None
        spectrum = Spectrum.of(law, none, window, frequencies, threshold)
        if BYTES_PER_TERM * across * spectrum.along.size > memory_budget:
            return None
        at_rows = np.fft.ifft(spectrum.block(0, spectrum.along.size, across), norm="forward")
        return cls(
            basis=lattice.basis,
            origin=tuple(histogram.origin),
            window=window,
            along=spectrum.along,
            at_rows=at_rows,
            turns=turns_of(along),
            sizes=np.abs(at_rows[1:]).sum(axis=0),
            norms=spectrum.norms,
            error_norm=spectrum.error_norm,
            mass_outside=math.exp(log_outside(law, none, window)),
        )

    @property
    def seconds(self) -> float:
        """Estimated time of a p-value."""
        return 2e-4 + SECONDS_PER_TERM * self.at_rows.size

    def tail(self, shift: Fraction) -> TailMass:
        """Return P(S - shift W <= 0)."""
        first, last = self._half_plane(shift)
        n_across = self.window.periods[0]
        lengths = (last - first).astype(np.float64)
        along = self.along[:, None]
        terms = powers(self.turns, along, first) - powers(self.turns, along, last)
        terms[0] = lengths  # the frequency 0 always matters
        largest = 2.0 * float(self.sizes.sum()) + float(np.abs(self.at_rows[0]) @ lengths)
        transformed = float(self.norms @ np.sqrt((terms.real**2 + terms.imag**2).sum(axis=1)))
        total = float((self.at_rows * terms).real.sum())
        # Powers, gaps and products have a few roundings each, and the sum is pairwise.
        error = UNIT * (40.0 + math.log2(terms.size)) * largest
        error += math.sqrt(float(lengths.sum())) * self.error_norm
        error += FFT_ROUNDINGS * UNIT * (math.log2(n_across) + 1.0) * math.sqrt(n_across) * transformed
        # Mass outside the window is wrapped into it, and may be missing.
        return certified(0.0, total, error + 2.0 * self.mass_outside)

    def _half_plane(self, shift: Fraction) -> tuple[IntArray, IntArray]:
        """Return where the half-plane begins in each row of the window, and where it ends, exclusively.

        Both count from the start of the window.
        """
        a, b = shift.numerator, shift.denominator
        (x0, y0), (n_across, n_along) = self.window.start, self.window.periods
        # a W - b S = fixed + across x + along y is to be at least 0.
        (weight, moved), rows = self.origin, self.basis
        fixed = a * weight - b * moved
        across, along = (a * w - b * m for w, m in zip(*rows, strict=True))
        fits = (abs(across) + abs(along)) * (abs(x0) + n_across + abs(y0) + n_along) + abs(fixed) < LARGEST
        x: npt.NDArray[Any] = np.arange(x0, x0 + n_across, dtype=np.int64 if fits else object)
        at_start = fixed + across * x + along * y0
        first = np.zeros(n_across, dtype=np.int64)
        last = np.full(n_across, n_along, dtype=np.int64)
        if along > 0:
            first = np.clip(-(at_start // along), 0, n_along).astype(np.int64)
        elif along < 0:
            last = np.clip(at_start // -along + 1, 0, n_along).astype(np.int64)
        else:
            last = np.where(at_start >= 0, n_along, 0).astype(np.int64)
        return first, last
