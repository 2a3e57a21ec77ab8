"""Algorithms 1 to 4 of Zmigrod, Vieira and Cotterell (NAACL 2022), which benchmarks measure beside ours.

They compute the law of the sum of N variables, each one of two integers with equal chance, by convolution, or
estimate a p-value by Monte Carlo.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import fft

Integers = npt.NDArray[np.int64]


class PMF(NamedTuple):
    """``mass[i]`` is the probability of ``origin + i``, where some swap attains it, which `domain` says."""

    origin: int
    mass: npt.NDArray[np.float64]
    domain: npt.NDArray[np.bool_]


def pmf_z(stay: int, swap: int) -> PMF:
    """PMF of the effect of one example (equation 4)."""
    origin = min(stay, swap)
    mass = np.zeros(abs(stay - swap) + 1)
    for value in (stay, swap):
        mass[value - origin] += 0.5
    return PMF(origin, mass, mass > 0)


def convolve_dp(pmfs: Sequence[PMF]) -> PMF:
    """N-fold convolution by dynamic programming (Algorithm 3), in O(G N^2) time."""
    total = PMF(0, np.ones(1), np.ones(1, dtype=np.bool_))
    for pmf in pmfs:
        n = total.mass.size
        mass, domain = (np.zeros(n + pmf.mass.size - 1, dtype) for dtype in (np.float64, np.bool_))
        for cell in np.flatnonzero(pmf.domain).tolist():
            mass[cell : cell + n] += pmf.mass[cell] * total.mass
            domain[cell : cell + n] |= total.domain
        total = PMF(total.origin + pmf.origin, mass, domain)
    return total


def convolve_fft(pmfs: Sequence[PMF]) -> PMF:
    """N-fold convolution by halves with the FFT (Algorithm 4), in O(G N log(G N) log N) time."""
    if len(pmfs) == 1:
        return pmfs[0]
    half = len(pmfs) // 2
    left, right = convolve_fft(pmfs[:half]), convolve_fft(pmfs[half:])
    # in how many ways a cell is the sum of two attained cells: an integer, up to rounding
    domain = _convolve(left.domain.astype(np.float64), right.domain.astype(np.float64)) > 0.5
    return PMF(left.origin + right.origin, np.where(domain, _convolve(left.mass, right.mass), 0.0), domain)


def _convolve(left: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    n = left.size + right.size - 1
    padded = fft.next_fast_len(n, real=True)
    return np.asarray(fft.irfft(fft.rfft(left, padded) * fft.rfft(right, padded), padded)[:n])


def exact_perm_test(stay: Integers, swap: Integers, convolve: Callable[[Sequence[PMF]], PMF]) -> float:
    """Two-sided p-value of the sum of one integer for each example (Algorithm 2)."""
    observed = abs(int(stay.sum()))
    law = convolve([pmf_z(a, b) for a, b in zip(stay.tolist(), swap.tolist(), strict=True)])
    attained = np.flatnonzero(law.domain).tolist()
    return math.fsum(float(law.mass[i]) for i in attained if abs(law.origin + i) >= observed)


def monte_carlo(
    stay: Integers, swap: Integers, h: Callable[[tuple[int, ...]], float], n_resamples: int = 9_999
) -> float:
    """P-value of a statistic of sums of m counts, from random swaps and the observed one (Algorithm 1)."""
    observed = h(tuple(stay.sum(axis=0).tolist()))
    rng = np.random.default_rng(0)
    block = max(1, 2**22 // len(stay))
    count = 0
    for first in range(0, n_resamples, block):
        swapped = rng.integers(0, 2, size=(min(block, n_resamples - first), len(stay)))
        points, times = np.unique(stay.sum(axis=0) + swapped @ (swap - stay), axis=0, return_counts=True)
        for point, n in zip(points.tolist(), times.tolist(), strict=True):
            count += n * (h(tuple(point)) >= observed)
    return (count + 1) / (n_resamples + 1)
