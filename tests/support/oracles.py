"""Exact p-values of paired-permutation tests, by methods that share nothing with trackperm.

Every number is an integer or a Fraction: no rounding, so no tolerance. The only exception is
`histogram_pvalue_ends`, for multiplicities too large to count, whose two ends are proved.

Three ways to count the 2**N swaps by their sum check one another in `exact/test_oracles.py`:

- `enumerated_sums`: each swap in turn (N up to 12 or so);
- `sums_by_dictionary`: dynamic programming over a dictionary, for any m;
- `sums_by_polynomial`: coefficients of prod_n (x^stay + x^swap) in python-flint, where m variables become
  one by Kronecker substitution.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, product
from math import isqrt

import flint

Point = tuple[int, ...]
Statistic = Callable[[Point], Fraction | int]

ALTERNATIVES = ("two-sided", "less", "greater")


def rejects(value: Fraction | int, observed: Fraction | int, alternative: str) -> bool:
    """Is this value of the statistic at least as extreme as the observed one?"""
    if alternative == "two-sided":
        return abs(value) >= abs(observed)
    return {"less": operator.le, "greater": operator.ge}[alternative](value, observed)


# --- any statistic of integer sums: stay and swap are N points of m integers ----------------------


def enumerated_sums(observed: Sequence[Point], swapped: Sequence[Point]) -> Counter[Point]:
    """Number of swaps at each sum, one swap at a time."""
    return Counter(_add(*chosen) for chosen in product(*zip(observed, swapped, strict=True)))


def sums_by_dictionary(observed: Sequence[Point], swapped: Sequence[Point]) -> dict[Point, int]:
    """Number of swaps at each sum, example by example."""
    counts: Counter[Point] = Counter({(0,) * len(observed[0]): 1})
    for a, b in zip(observed, swapped, strict=True):
        following: Counter[Point] = Counter()
        for point, count in counts.items():
            following[_add(point, a)] += count
            following[_add(point, b)] += count
        counts = following
    return dict(counts)


def sums_by_polynomial(observed: Sequence[Point], swapped: Sequence[Point]) -> dict[Point, int]:
    """Number of swaps at each sum, from one integer polynomial; examples that cannot change count twice."""
    ends = list(zip(observed, swapped, strict=True))
    origin = _add(*(tuple(map(min, a, b)) for a, b in ends))
    corner = _add(*(tuple(map(max, a, b)) for a, b in ends))
    shape = [high - low + 1 for low, high in zip(origin, corner, strict=True)]
    strides = list(accumulate(shape[:0:-1], operator.mul, initial=1))[::-1]

    def exponent(point: Point) -> int:
        return sum(x * stride for x, stride in zip(point, strides, strict=True))

    # x^i + x^j = x^min(i, j) * (1 + x^|i - j|)
    shift = sum(min(exponent(a), exponent(b)) for a, b in ends) - exponent(origin)
    coefficients = _product_of_pairs(Counter(abs(exponent(a) - exponent(b)) for a, b in ends))
    return {
        tuple(
            x + place // stride % size for x, stride, size in zip(origin, strides, shape, strict=True)
        ): count
        for place, count in enumerate(coefficients, start=shift)
        if count
    }


def structured_pvalues(
    counts: Mapping[Point, int], observed: Sequence[Point], h: Statistic
) -> dict[str, Fraction]:
    """P-values of h by alternative, from the number of swaps at each sum; h sees only sums in `counts`."""
    at = h(_add(*observed))
    extreme = dict.fromkeys(ALTERNATIVES, 0)
    for point, count in counts.items():
        value = h(point)
        for alternative in ALTERNATIVES:
            extreme[alternative] += count * rejects(value, at, alternative)
    n_swaps = sum(counts.values())
    return {alternative: Fraction(n, n_swaps) for alternative, n in extreme.items()}


def _add(*points: Point) -> Point:
    return tuple(map(sum, zip(*points, strict=True)))


def _product_of_pairs(multiplicities: Mapping[int, int]) -> list[int]:
    """Coefficients of prod_e (1 + x^e)^c for differences e >= 0 with multiplicities c."""
    factors = [flint.fmpz_poly([1] + [0] * (e - 1) + [1]) ** c for e, c in multiplicities.items() if e]
    factors.append(flint.fmpz_poly([2]) ** multiplicities.get(0, 0))
    factors.sort(key=lambda factor: factor.degree())
    while len(factors) > 1:
        factors = sorted((*factors[2:], factors[0] * factors[1]), key=lambda factor: factor.degree())
    return [int(coefficient) for coefficient in factors[0].coeffs()]


# --- differences of one integer score per example -------------------------------------------------


def difference_pvalues(differences: Iterable[int]) -> dict[str, Fraction]:
    """P-values by alternative of sum(differences) when each changes sign with probability 1/2."""
    histogram = Counter(differences)
    return histogram_pvalues(histogram, sum(d * c for d, c in histogram.items()))


def histogram_pvalues(histogram: Mapping[int, int], observed: int) -> dict[str, Fraction]:
    """The same from distinct signed differences and their multiplicities, at any value of the sum.

    Few and large differences go through a dictionary, the others through a polynomial of moderate degree,
    so that one difference of 10**6 among 10**4 small ones costs no polynomial of degree 10**6.
    """
    folded = Counter({0: 0})
    for difference, count in histogram.items():
        if difference and count:
            folded[abs(difference)] += count
    small, large = _by_scale(folded)
    coefficients = _product_of_pairs(small)
    at_least = list(accumulate(reversed(coefficients), initial=0))[::-1]
    degree = len(coefficients) - 1

    # sum = 2 * (exponent + large part) - total, for the sum of signed differences
    total = sum(e * c for e, c in folded.items())
    large_sums = Counter({0: 1})
    for e, c in large.items():
        powers = list(enumerate(_product_of_pairs({1: c})))
        following: Counter[int] = Counter()
        for value, count in large_sums.items():
            for used, ways in powers:
                following[value + used * e] += count * ways
        large_sums = following

    def upper(threshold: int) -> int:
        """Number of swaps whose sum is at least `threshold`."""
        exponent = -((-threshold - total) // 2)  # ceil((threshold + total) / 2)
        return sum(
            count * at_least[min(max(exponent - value, 0), degree + 1)] for value, count in large_sums.items()
        )

    extreme = {"less": upper(-observed), "greater": upper(observed)}  # symmetric about 0
    n_swaps = 2 ** sum(folded.values())
    extreme["two-sided"] = n_swaps if observed == 0 else 2 * upper(abs(observed))
    return {alternative: Fraction(n, n_swaps) for alternative, n in extreme.items()}


def _by_scale(folded: Mapping[int, int], max_degree: int = 200_000) -> tuple[dict[int, int], dict[int, int]]:
    """Split: the smallest differences while the polynomial's degree is moderate; the rest one by one."""
    small: dict[int, int] = {}
    large: dict[int, int] = {}
    degree = 0
    for e, c in sorted(folded.items()):
        degree += e * c
        (large if large or degree > max_degree else small)[e] = c
    return small, large


def histogram_pvalue_ends(
    histogram: Mapping[int, int], observed: int, bits: int = 256
) -> dict[str, tuple[Fraction, Fraction]]:
    """Two ends that enclose each p-value, for multiplicities of a million and more.

    The count of one sign in a row is binomial. Its probabilities within 60 standard deviations are rounded
    down to multiples of 2**-bits, and so is every product: the sum over a region is then a lower end, and
    what the whole distribution lacks to 1 is the width.
    """
    folded: Counter[int] = Counter()
    for difference, count in histogram.items():
        if difference:
            folded[abs(difference)] += count
    origin = -sum(e * c for e, c in folded.items())  # sum = origin + 2 * exponent
    masses = flint.fmpz_poly([1 << bits])
    for e, c in folded.items():
        first, row = _binomial_floor(c, bits)
        origin += 2 * e * first
        spread = [0] * (e * (len(row) - 1) + 1)
        spread[::e] = row
        masses = flint.fmpz_poly([int(mass) >> bits for mass in (masses * flint.fmpz_poly(spread)).coeffs()])
    law = {origin + 2 * exponent: int(mass) for exponent, mass in enumerate(masses.coeffs())}
    lacking = (1 << bits) - sum(law.values())
    ends = {}
    for alternative in ALTERNATIVES:
        low = sum(mass for value, mass in law.items() if rejects(value, observed, alternative))
        ends[alternative] = (Fraction(low, 1 << bits), Fraction(low + lacking, 1 << bits))
    return ends


def _binomial_floor(n: int, bits: int) -> tuple[int, list[int]]:
    """(first, masses): 2**bits * P(Binomial(n, 1/2) = first + i), rounded down, within 60 deviations."""
    mode, reach = n // 2, 30 * (isqrt(n) + 1)
    with flint.ctx.workprec(bits + 128):
        ball = flint.arb.bin_uiui(n, mode) * flint.arb(2) ** (bits - n)
        masses = {mode: int(ball.lower().floor().unique_fmpz())}
    for j in range(mode, min(mode + reach, n)):
        masses[j + 1] = masses[j] * (n - j) // (j + 1)
    for j in range(mode, max(mode - reach, 0), -1):
        masses[j - 1] = masses[j] * j // (n - j + 1)
    first = min(masses)
    return first, [masses[first + i] for i in range(len(masses))]
