r"""The paper's own algorithms, as plain reference functions.

Zmigrod, Vieira and Cotterell (2022) compute the p-value
:math:`P[h(S) \ge h(\sum_n \text{stay}_n)]` of a paired-permutation test from the law of
:math:`S = \sum_n Z_n`, where :math:`Z_n` is :math:`\text{stay}_n = g(u_n, v_n)` or
:math:`\text{swap}_n = g(v_n, u_n)` with equal chance. Nothing here is clever: these functions are for tests,
for benchmarks and for readers who follow the paper; the other modules of :mod:`trackperm.exact` compute the
same numbers faster, with certified bounds.

Two differences from the code that the authors released. That code for F1 drops every cell of a PMF below
1e-6 (1e-8 in other versions); this one drops no mass. Its Monte Carlo p-value may be 0; this one counts the
observed swap, so that it never is.

References
----------
R. Zmigrod, T. Vieira and R. Cotterell (2022), "Exact Paired-Permutation Testing for Structured Test
Statistics", NAACL. Algorithms 1 to 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy import fft

from trackperm.errors import CapacityError, InputError, InputTypeError

Statistic = Callable[[tuple[int, ...]], "float | Fraction"]

MEMORY_BUDGET = 2**30  # bytes
_BYTES_PER_CELL = 64  # at the last convolution of `convolve_fft`: factors, spectra, their product, the result


@dataclass(frozen=True)
class PMF:
    """Law of an integer vector on a box: ``mass[i]`` is the probability of ``origin + i``.

    Parameters
    ----------
    origin : tuple of int
        Lowest corner of the box.
    mass : ndarray of float64
        One axis for each variable.
    domain : ndarray of bool
        Which cells some swap attains. The domain is exact where `mass` has rounding errors, or underflows.
    """

    origin: tuple[int, ...]
    mass: npt.NDArray[np.float64]
    domain: npt.NDArray[np.bool_]

    def items(self) -> Iterator[tuple[tuple[int, ...], float]]:
        """Points of the domain with their mass."""
        for cell in np.argwhere(self.domain).tolist():
            yield tuple(map(sum, zip(self.origin, cell, strict=True))), float(self.mass[tuple(cell)])


def pmf_z(stay: Sequence[int], swap: Sequence[int]) -> PMF:
    """PMF of the effect of one example: `stay` or `swap`, with equal chance (equation 4).

    Parameters
    ----------
    stay, swap : sequence of int, length m
        Local effects of the two outputs as they are, and exchanged.

    Returns
    -------
    PMF
        One or two points.
    """
    origin = tuple(map(min, stay, swap))
    mass = np.zeros([abs(a - b) + 1 for a, b in zip(stay, swap, strict=True)])
    for point in (stay, swap):
        mass[tuple(x - low for x, low in zip(point, origin, strict=True))] += 0.5
    return PMF(origin, mass, mass > 0)


def convolve_dp(pmfs: Sequence[PMF]) -> PMF:
    """N-fold convolution by dynamic programming (Algorithm 3), in O(G N^2) time for one variable.

    All terms are positive, so every mass has a relative error of about N rounding errors.

    Parameters
    ----------
    pmfs : sequence of PMF
        PMFs of the N examples.

    Returns
    -------
    PMF
        Law of their sum, on its full support.

    Raises
    ------
    CapacityError
        If the support does not fit :data:`MEMORY_BUDGET`.
    """
    _check_support([[n - 1 for n in pmf.mass.shape] for pmf in pmfs])
    total = _point_mass(pmfs)
    for pmf in pmfs:
        shape = [n + k - 1 for n, k in zip(total.mass.shape, pmf.mass.shape, strict=True)]
        mass, domain = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
        for cell in np.argwhere(pmf.domain).tolist():
            window = tuple(slice(i, i + n) for i, n in zip(cell, total.mass.shape, strict=True))
            mass[window] += pmf.mass[tuple(cell)] * total.mass
            domain[window] |= total.domain
        total = PMF(_sum_of_origins([total, pmf]), mass, domain)
    return total


def convolve_fft(pmfs: Sequence[PMF]) -> PMF:
    """N-fold convolution by divide and conquer with the FFT (Algorithm 4), in O(G N log(G N) log N) time.

    Every mass has an *absolute* error near 1e-16: masses below that, and p-values below about 1e-14, are
    noise, which may be negative.

    Parameters
    ----------
    pmfs : sequence of PMF
        PMFs of the N examples.

    Returns
    -------
    PMF
        Law of their sum, on its full support.

    Raises
    ------
    CapacityError
        If the support does not fit :data:`MEMORY_BUDGET`.
    """
    _check_support([[n - 1 for n in pmf.mass.shape] for pmf in pmfs])
    return _convolve_halves(pmfs) if pmfs else _point_mass(pmfs)


def exact_perm_test(
    stay: npt.ArrayLike,
    swap: npt.ArrayLike,
    h: Callable[[int], float | Fraction] = abs,
    *,
    convolve: Callable[[Sequence[PMF]], PMF] = convolve_fft,
) -> float:
    """P-value of a statistic of one integer sum (Algorithm 2).

    Parameters
    ----------
    stay, swap : array_like of int, shape (N,)
        Local effects g(u_n, v_n) and g(v_n, u_n).
    h : callable, default abs
        The statistic, of the sum. The test rejects for large values: `abs` is two-sided, the identity
        one-sided.
    convolve : callable, default `convolve_fft`
        Or `convolve_dp`.

    Returns
    -------
    float
        Probability of a statistic at least as large as the observed one, with the error of `convolve`.

    Examples
    --------
    >>> exact_perm_test([1, 1, 1, -1], [-1, -1, -1, 1], convolve=convolve_dp)
    0.625
    """
    stay, swap = np.asarray(stay), np.asarray(swap)
    if stay.ndim != 1:
        raise InputError(f"`stay` has shape {stay.shape}, expected (N,)")
    return exact_perm_test_m(stay[:, None], swap[..., None], lambda point: h(point[0]), convolve=convolve)


def exact_perm_test_m(
    stay: npt.ArrayLike,
    swap: npt.ArrayLike,
    h: Statistic,
    *,
    convolve: Callable[[Sequence[PMF]], PMF] = convolve_fft,
) -> float:
    """P-value of a statistic of m integer sums (Algorithm 5), in O(G^m N^m) space.

    Parameters
    ----------
    stay, swap : array_like of int, shape (N, m)
        Local effects of each example, as it is and exchanged.
    h : callable
        The statistic, of a tuple of m integers; it is called at every point that some swap attains and
        nowhere else. Two values are compared as they come: in floating point, as in the paper, which may
        break ties wrongly, or exactly where `h` returns fractions.
    convolve : callable, default `convolve_fft`
        Or `convolve_dp`.

    Returns
    -------
    float
        Probability of a statistic at least as large as the observed one, with the error of `convolve`.

    Raises
    ------
    CapacityError
        If the support does not fit :data:`MEMORY_BUDGET`.
    """
    stay, swap = _integer_points(stay, swap)
    _check_support(np.abs(stay - swap).tolist())
    observed = h(_sum(stay))
    law = convolve([pmf_z(a, b) for a, b in zip(stay.tolist(), swap.tolist(), strict=True)])
    return math.fsum(mass for point, mass in law.items() if h(point) >= observed)


def monte_carlo(
    stay: npt.ArrayLike,
    swap: npt.ArrayLike,
    h: Statistic,
    *,
    n_resamples: int = 9_999,
    rng: np.random.Generator | int | None = None,
) -> float:
    """Monte Carlo estimate of the p-value (Algorithm 1), in O(n_resamples N) time.

    Parameters
    ----------
    stay, swap : array_like of int, shape (N, m)
        Local effects of each example, as it is and exchanged.
    h : callable
        The statistic, of a tuple of m integers.
    n_resamples : int, default 9999
        Number of random swaps, K in the paper.
    rng : Generator or int, optional
        Source of randomness, or its seed.

    Returns
    -------
    float
        ``(count + 1) / (n_resamples + 1)``, where `count` random swaps were at least as extreme as the
        observed one. Counting the observed swap itself makes the test valid; the paper's count / K may be 0.
    """
    if n_resamples < 1:
        raise InputError(f"`n_resamples` is {n_resamples}, expected at least 1")
    stay, swap = _integer_points(stay, swap)
    observed = h(_sum(stay))
    generator = np.random.default_rng(rng)
    block = max(1, 2**22 // max(1, len(stay)))
    count = 0
    for first in range(0, n_resamples, block):
        size = min(block, n_resamples - first)
        swapped = generator.integers(0, 2, size=(size, len(stay)))
        sums = stay.sum(axis=0) + swapped @ (swap - stay)
        points, times = np.unique(sums, axis=0, return_counts=True)
        for point, n in zip(points.tolist(), times.tolist(), strict=True):
            count += n * (h(tuple(point)) >= observed)
    return (count + 1) / (n_resamples + 1)


def enumerate_swaps(stay: npt.ArrayLike, swap: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Sum every one of the 2^N swaps, the observed one first.

    Parameters
    ----------
    stay, swap : array_like of int, shape (N, m)
        Local effects of each example, as it is and exchanged.

    Returns
    -------
    ndarray of int64, shape (2^N, m)
        One row for each swap; a swap that changes nothing has its row too.

    Raises
    ------
    CapacityError
        If the rows do not fit :data:`MEMORY_BUDGET`.
    """
    stay, swap = _integer_points(stay, swap)
    n, m = stay.shape
    _check_capacity(f"an array of 2^{n} swaps", 2 ** (n + 4) * m)
    sums = np.zeros((1, m), dtype=np.int64)
    for a, b in zip(stay, swap, strict=True):
        sums = np.concatenate([sums + a, sums + b])
    return sums


def _convolve_halves(pmfs: Sequence[PMF]) -> PMF:
    if len(pmfs) == 1:
        return pmfs[0]
    half = len(pmfs) // 2
    left, right = _convolve_halves(pmfs[:half]), _convolve_halves(pmfs[half:])
    # in how many ways a cell is the sum of two attained cells: an integer, up to rounding
    ways = _convolve(left.domain.astype(np.float64), right.domain.astype(np.float64))
    domain = ways > 0.5
    mass = np.where(domain, _convolve(left.mass, right.mass), 0.0)
    return PMF(_sum_of_origins([left, right]), mass, domain)


def _convolve(left: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    shape = [n + k - 1 for n, k in zip(left.shape, right.shape, strict=True)]
    padded = [fft.next_fast_len(n, real=True) for n in shape]
    product = fft.irfftn(fft.rfftn(left, padded) * fft.rfftn(right, padded), padded)
    return np.asarray(product[tuple(slice(n) for n in shape)])


def _point_mass(pmfs: Sequence[PMF]) -> PMF:
    m = pmfs[0].mass.ndim if pmfs else 1
    return PMF((0,) * m, np.ones((1,) * m), np.ones((1,) * m, dtype=np.bool_))


def _sum_of_origins(pmfs: Sequence[PMF]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*(pmf.origin for pmf in pmfs), strict=True)))


def _sum(points: npt.NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(points.sum(axis=0).tolist())


def _integer_points(
    stay: npt.ArrayLike, swap: npt.ArrayLike
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Both arrays as int64 of one shape (N, m), with sums that fit."""
    arrays = np.asarray(stay), np.asarray(swap)
    for name, array in zip(("stay", "swap"), arrays, strict=True):
        if array.dtype.kind not in "iub":
            raise InputTypeError(f"`{name}` has type {array.dtype}, expected integers")
        if array.ndim != 2 or 0 in array.shape:
            raise InputError(f"`{name}` has shape {array.shape}, expected (N, m) with N and m at least 1")
    if arrays[0].shape != arrays[1].shape:
        raise InputError(
            f"`stay` has shape {arrays[0].shape} and `swap` {arrays[1].shape}, expected one shape"
        )
    largest = max(abs(int(extreme)) for array in arrays for extreme in (array.min(), array.max()))
    if largest * len(arrays[0]) >= 2**62:
        raise InputError(f"sums of {len(arrays[0])} integers as large as {largest} do not fit 64 bits")
    return arrays[0].astype(np.int64), arrays[1].astype(np.int64)


def _check_support(spans: Iterable[Sequence[int]]) -> None:
    """Refuse a support that is too large, from how far each example moves the sum along each axis."""
    shape = [1 + sum(axis) for axis in zip(*spans, strict=True)]
    _check_capacity(
        f"the support of {' x '.join(map(str, shape))} points", math.prod(shape) * _BYTES_PER_CELL
    )


def _check_capacity(what: str, n_bytes: int) -> None:
    if n_bytes > MEMORY_BUDGET:
        raise CapacityError(
            f"{what} takes more than {MEMORY_BUDGET / 2**30:.3g} GiB",
            hint="`trackperm.exact.structured_test` needs far less, `monte_carlo` next to nothing.",
        )
