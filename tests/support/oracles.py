"""Exact p-values of paired-permutation tests, by methods that share nothing with trackperm.

Every number is an integer or a Fraction: no rounding, so no tolerance. Where multiplicities are too large to
count, `coin_sums` has two ends.

Three ways to count the 2**N swaps by their sum check one another in `exact/test_oracles.py`:

- `enumerated_sums`: each swap in turn (N up to 12 or so);
- `sums_by_dictionary`: dynamic programming over a dictionary, for any m;
- `sums_by_polynomial`: coefficients of prod_n (x^stay + x^swap) in python-flint, where m variables become
  one by Kronecker substitution.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, product

import flint

Point = tuple[int, ...]
Statistic = Callable[[Point], Fraction | int]

MOST_COEFFICIENTS = 10**6

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


def difference_pvalues(differences: Sequence[int]) -> dict[str, Fraction]:
    """P-values by alternative of sum(differences) when each changes sign with probability 1/2."""
    points, mirrored = [(d,) for d in differences], [(-d,) for d in differences]
    # A polynomial has a coefficient for each integer up to the largest sum.
    count = sums_by_polynomial if sum(map(abs, differences)) <= MOST_COEFFICIENTS else sums_by_dictionary
    return structured_pvalues(count(points, mirrored), points, lambda point: point[0])
