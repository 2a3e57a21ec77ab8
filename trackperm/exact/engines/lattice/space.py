r"""Sums over rows of a lattice of rank three, without a transform.

Under a tilt, with the point z = (x, y, v) relative to a reference,

    P_lambda(X = z) = Re sum_{l,m,n} C_lmn exp(i (alpha_l x + beta_m y + gamma_n v)),

and a row's geometric sum over v from a to b, with q_n = exp(-lambda_v + i gamma_n), is

    sum_v q_n^(v-a) exp(i gamma_n a) = (exp(i gamma_n a) - q_n^(b+1-a) exp(i gamma_n a)) / (1 - q_n),

or the same from its other end if lambda_v < 0. So C_lmn / (1 - q_n) is summed over l once for each x, and
over m once for each (x, y); an interval then takes two products with phases of its ends. For n = 0, where
1 - q_n may vanish, the geometric sum is real and comes from expm1.

The mass outside a window narrower than that of the tilt is omitted in rows, and wrapped into them.

The rounding of a row is bounded by the sum of the moduli of all its terms. These bounds are added over rows,
as rows of one layer share roundings of the sums over l, and rows of one column those of phases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from trackperm.errors import CapacityError
from trackperm.exact.distributions.characteristic import (
    UNIT,
    ComplexArray,
    FloatArray,
    SwapDistribution,
    characteristic_function,
)
from trackperm.exact.distributions.frequencies import surviving_frequencies
from trackperm.exact.distributions.narrow_window import narrow_window
from trackperm.exact.distributions.pmf import Window, conjugate_weights
from trackperm.exact.distributions.tilt import Tilted
from trackperm.exact.engines.lattice.rows import RowIntervals
from trackperm.exact.types import IntArray

LOG_SMALL = -32.0
"""Logarithm, relative to the expected mass, of the part that a window leaves out, and of that which omitted
frequencies may change: 1e-14. The number of frequencies grows with the cube of these logarithms.
"""

ROUNDINGS = 24.0
"""Roundings of a row in terms of the sum of the moduli of its terms.

A phase errs by at most four, and phases of the fifty or more frequencies of an axis err independently: six
standard deviations of their sum are four roundings for each axis, twelve for three. Other errors of terms
are independent between thousands of them, and the last sum adds eight.
"""

LOG_USUAL = -40.0
"""Usual logarithm of the modulus below which a frequency is omitted."""

MOST_FREQUENCIES = 2**19
"""Largest number of frequencies: a second for twenty distinct differences."""

BYTES_PER_FREQUENCY = 64
"""Memory of a frequency of the box that contains those that matter."""

LARGEST_GRID = 2**60
"""Largest least common multiple of the periods: phases are integers modulo twice as much."""

LAYERS = 64
"""Layers whose sums over the first frequencies are formed together."""

COLUMNS = 64
"""Rows of a layer in one matrix product, which is then too small to be split between threads."""

LONGEST_TABLE = 2**15
"""Largest number of ends whose phases are computed beforehand: 16 MiB with 32 frequencies."""


def space_sums(
    law: SwapDistribution,
    tilt: Tilted,
    rows: RowIntervals,
    shift: float,
    log_total: float,
    memory_budget: int,
) -> tuple[float, float]:
    """Return the mass of rows under one tilt, and a bound of its absolute error; weights times exp(shift).

    `log_total` is the expected logarithm of the mass under all tilts, in the same unit.

    Raises
    ------
    CapacityError
        If the frequencies that matter are too many for `memory_budget` bytes.
    """
    slope = float(tilt.tilt[-1])
    rate, forward = abs(slope), slope >= 0.0
    log_largest = float(tilt.log_weight([*rows.heads, _near(rows, forward)]).max()) + shift
    log_outside = min(LOG_SMALL + log_total - log_largest, LOG_SMALL)
    window = narrow_window(law, tilt.tilt, log_outside)
    beyond = 2.0 * math.exp(log_largest + log_outside)
    rows = _within(rows.chosen(np.lexsort(rows.heads[::-1])), window)
    if rows.n == 0:
        return 0.0, beyond
    n_cells = rows.sizes
    near, far = _near(rows, forward), rows.last + 1 if forward else rows.first - 1
    exponents = tilt.log_weight([*rows.heads, near]) + shift
    weights = np.exp(exponents)
    decay = np.exp(-rate * n_cells)
    plain = n_cells.astype(np.float64) if rate == 0.0 else np.expm1(-rate * n_cells) / np.expm1(-rate)
    squares = np.minimum(n_cells, 1.0 / -np.expm1(-2.0 * rate) if rate > 0.0 else np.inf)
    norm = max(math.sqrt(float(weights**2 @ squares)), 1e-300)
    log_pruned = min(LOG_SMALL + log_total - math.log(norm), LOG_SMALL)
    terms = _Terms(law, tilt, window, log_pruned, memory_budget)
    total: list[float] = []
    for layer, part in terms.layers(rows):
        ends = terms.phases(near[part]) - decay[part, None] * terms.phases(far[part])
        ends[:, 0] = plain[part]
        # Re(t d) is the sum of products of the real and imaginary parts of conj(t) and d.
        mass = np.einsum("ij,ij->i", layer.view(np.float64), ends.view(np.float64))
        total.append(float(weights[part] @ mass))
    steps = ROUNDINGS + (np.abs(exponents) if shift else 0.0)
    roundings = UNIT * float((weights * steps) @ (terms.size + plain * terms.size_at_zero))
    return math.fsum(total), norm * terms.error_norm + roundings + beyond


def _near(rows: RowIntervals, forward: bool) -> IntArray:
    """Return, for each interval, the end with the greater weight."""
    return rows.first if forward else rows.last


def _within(rows: RowIntervals, window: Window) -> RowIntervals:
    """Return the parts of rows in a window."""
    start, period = window.start[-1], window.periods[-1]
    first, last = np.maximum(rows.first, start), np.minimum(rows.last, start + period - 1)
    kept = first <= last
    for x, least, size in zip(rows.heads, window.start, window.periods, strict=False):
        kept &= (x >= least) & (x < least + size)
    return RowIntervals(rows.heads, first, last).chosen(kept)


class _Terms:
    """Conjugates of C_lmn / (1 - q_n), and of C_lm0, at the frequencies that matter.

    Attributes
    ----------
    size, size_at_zero : float
        Bounds of sum |C_lmn| |exp(i gamma_n a) - ...| / |1 - q_n| over n > 0, and of sum |C_lm0|.
    error_norm : float
        Bound of the Euclidean norm, over the window, of errors of the mass by errors of C.
    """

    def __init__(
        self, law: SwapDistribution, tilt: Tilted, window: Window, log_pruned: float, memory_budget: int
    ) -> None:
        periods, self._reference = window.periods, tilt.reference
        if math.lcm(*periods) > LARGEST_GRID:
            raise CapacityError(
                f"a grid of {' x '.join(map(str, periods))} points is too fine for its phases"
            )
        frequencies = surviving_frequencies(law, tilt.tilt, periods, log_pruned, MOST_FREQUENCIES)
        values, errors = characteristic_function(law, tilt.tilt, self._reference, periods, frequencies)
        weights = conjugate_weights(frequencies, periods) / window.size
        axes, places = zip(*(np.unique(axis, return_inverse=True) for axis in frequencies.T), strict=True)
        shape = tuple(axis.size for axis in axes)
        if BYTES_PER_FREQUENCY * math.prod(shape) > memory_budget:
            raise CapacityError(f"{' x '.join(map(str, shape))} frequencies do not fit the memory budget")
        self._periods, self._axes = periods, axes
        slope = float(tilt.tilt[-1])
        along = axes[-1] if slope >= 0.0 else -axes[-1]
        # The least frequency is 0, where the characteristic function is 1.
        steps = -np.expm1(-abs(slope) - 1j * _angles(along, periods[-1]))
        steps[0] = 1.0
        self._conjugates = np.zeros(shape, dtype=np.complex128)
        self._conjugates[places] = weights * values.conj() / steps[places[-1]]
        sizes = np.abs(self._conjugates).sum(axis=(0, 1))
        self.size, self.size_at_zero = 2.0 * float(sizes[1:].sum()), float(sizes[0])
        self.error_norm = math.sqrt(float(weights @ errors**2)) + math.exp(log_pruned)
        self._table: ComplexArray | None = None
        if periods[-1] < LONGEST_TABLE:
            self._start = window.start[-1] - 1
            self._table = self._turns(2, self._start + np.arange(periods[-1] + 2))

    def phases(self, ends: IntArray) -> ComplexArray:
        """Return exp(i gamma_n v) at last coordinates v, shape (rows, frequencies)."""
        return self._turns(2, ends) if self._table is None else self._table[ends - self._start]

    def layers(self, rows: RowIntervals) -> Iterator[tuple[ComplexArray, slice]]:
        """Yield sums over the first two frequencies for the rows of each layer, which are sorted.

        They are the conjugates, shape (rows, frequencies), with the rows' places.
        """
        x, y = rows.heads
        layers, first = np.unique(x, return_index=True)
        ends = np.append(first[1:], x.size)
        low = int(y.min())
        n_blocks = -(-(int(y.max()) + 1 - low) // COLUMNS)
        columns = low + np.arange(n_blocks * COLUMNS).reshape(n_blocks, COLUMNS)
        turns = self._turns(1, columns).conj()
        across, *shape = self._conjugates.shape
        for start in range(0, layers.size, LAYERS):
            together = slice(start, start + LAYERS)
            sums = self._turns(0, layers[together]).conj() @ self._conjugates.reshape(across, -1)
            for matrix, begin, end in zip(
                sums.reshape(-1, *shape), first[together].tolist(), ends[together].tolist(), strict=True
            ):
                part = slice(begin, end)
                block, last_block = (int(y[at] - low) // COLUMNS for at in (begin, end - 1))
                by_column = turns[block : last_block + 1] @ matrix
                yield by_column.reshape(-1, shape[-1])[y[part] - low - block * COLUMNS], part

    def _turns(self, axis: int, points: IntArray) -> ComplexArray:
        """Return exp(i theta x) for the frequencies of one axis, shape (..., frequencies)."""
        offsets = points[..., None] - self._reference[axis]
        turns = offsets * self._axes[axis]
        return np.asarray(np.exp(1j * _angles(turns, self._periods[axis])))


def _angles(turns: IntArray, period: int) -> FloatArray:
    """Return 2 pi turns / period, folded to (-pi, pi] before it is rounded."""
    folded = turns % period
    folded = np.where(2 * folded > period, folded - period, folded)
    return np.asarray(folded * (2.0 * math.pi / period))
