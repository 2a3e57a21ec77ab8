r"""The algorithms of Zmigrod, Vieira and Cotterell (2022), written plainly: what benchmarks compare with.

They compute :math:`P[h(S) \ge h(\sum_n \text{stay}_n)]` for :math:`S = \sum_n Z_n`, where :math:`Z_n` is
:math:`\text{stay}_n = g(u_n, v_n)` or :math:`\text{swap}_n = g(v_n, u_n)` with equal chance. Unlike the code
that the authors released, Algorithms 1 to 4 drop no mass here, and a Monte Carlo p-value counts the observed
swap. :func:`trimmed_product_tree` follows the released code: it is what a user of that code waits for.

References
----------
R. Zmigrod, T. Vieira and R. Cotterell (2022), "Exact Paired-Permutation Testing for Structured Test
Statistics", NAACL. Algorithms 1 to 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import fft, signal

Integers = npt.NDArray[np.int64]
Mass = npt.NDArray[np.float64]


def convolve_dp(masses: Sequence[Mass]) -> Mass:
    """N-fold convolution by dynamic programming (Algorithm 3), in O(G N^2) time."""
    total = np.ones(1)
    for mass in masses:
        following = np.zeros(total.size + mass.size - 1)
        for step in np.flatnonzero(mass):
            following[step : step + total.size] += mass[step] * total
        total = following
    return total


def convolve_fft(masses: Sequence[Mass]) -> Mass:
    """N-fold convolution by divide and conquer with the FFT (Algorithm 4), in O(G N log(G N) log N) time."""
    if len(masses) == 1:
        return masses[0]
    half = len(masses) // 2
    parts = convolve_fft(masses[:half]), convolve_fft(masses[half:])
    size = sum(part.size for part in parts) - 1
    padded = fft.next_fast_len(size, real=True)
    spectra = [fft.rfft(part, padded) for part in parts]
    return np.asarray(fft.irfft(spectra[0] * spectra[1], padded)[:size])


def trimmed_product_tree(masses: Sequence[Mass], *, least: float = 1e-8) -> Mass:
    """N-fold convolution by a balanced tree of products; each product drops its ends below `least`.

    The authors' program does so for sums of one count. What is dropped is 0 in the result, so a p-value near
    or below `least` is wrong, or 0.
    """
    level = [(0, mass) for mass in masses if mass.size > 1]
    size = sum(mass.size - 1 for _, mass in level) + 1
    while len(level) > 1:
        paired = [
            _trimmed(first + second, signal.convolve(left, right), least)
            for (first, left), (second, right) in zip(level[::2], level[1::2], strict=False)
        ]
        level = paired + level[2 * len(paired) :]
    law = np.zeros(size)
    for first, mass in level or [(0, np.ones(1))]:
        law[first : first + mass.size] = mass
    return law


def _trimmed(first: int, mass: Mass, least: float) -> tuple[int, Mass]:
    kept = np.flatnonzero(mass >= least)
    return first + int(kept[0]), mass[kept[0] : kept[-1] + 1]


def exact_perm_test(
    observed: Integers,
    swapped: Integers,
    h: Callable[[Integers], npt.NDArray[Any]] = np.abs,
    *,
    convolve: Callable[[Sequence[Mass]], Mass] = convolve_fft,
) -> float:
    """P-value of a statistic of one integer sum (Algorithm 2)."""
    masses = []
    for distance in np.abs(observed - swapped).tolist():
        mass = np.zeros(distance + 1)
        mass[0] += 0.5
        mass[-1] += 0.5
        masses.append(mass)
    law = convolve(masses)
    values = h(np.minimum(observed, swapped).sum() + np.arange(law.size))
    return float(law[values >= h(observed.sum())].sum())


def monte_carlo(
    observed: Integers, swapped: Integers, h: Callable[[Any], Any], *, n_resamples: int = 9_999, rng: int = 0
) -> float:
    """Monte Carlo p-value of a statistic of m sums (Algorithm 1), in O(n_resamples N) time."""
    at, generator, block = h(observed.sum(axis=0)), np.random.default_rng(rng), max(1, 2**22 // len(observed))
    count = 0
    for first in range(0, n_resamples, block):
        chosen = generator.integers(0, 2, size=(min(block, n_resamples - first), len(observed)))
        sums = observed.sum(axis=0) + chosen @ (swapped - observed)
        points, times = np.unique(sums, axis=0, return_counts=True)
        count += sum(n for point, n in zip(points, times, strict=True) if h(tuple(point.tolist())) >= at)
    return float((count + 1) / (n_resamples + 1))
