"""P-values of permuted attempts, by methods that share nothing with trackperm."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import flint

Example = tuple[int, int, int, int]
"""Passes and attempts of the candidate, passes and attempts of the baseline."""

Alternative = Literal["two-sided", "less", "greater"]
ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "less", "greater")


def statistic(examples: Sequence[Example]) -> Fraction:
    """Mean difference in pass rate."""
    return sum((Fraction(x, a) - Fraction(y, b) for x, a, y, b in examples), Fraction(0)) / len(examples)


def permuted(examples: Sequence[Example]) -> dict[Fraction, Fraction]:
    """Law of the statistic, by listing which attempts of each example are called the candidate's."""
    law = {Fraction(0): Fraction(1)}
    for x, a, y, b in examples:
        results = [1] * (x + y) + [0] * (a + b - x - y)
        chosen = list(itertools.combinations(results, a))
        moves = Counter(statistic([(sum(each), a, x + y - sum(each), b)]) / len(examples) for each in chosen)
        following: dict[Fraction, Fraction] = {}
        for value, mass in law.items():
            for move, ways in moves.items():
                to = value + move
                following[to] = following.get(to, Fraction(0)) + mass * Fraction(ways, len(chosen))
        law = following
    return law


def by_polynomials(counted: Mapping[Example, int]) -> tuple[Callable[[int], Fraction], list[int]]:
    """Value of the statistic at each exponent, and ways to permute attempts so, for examples with numbers."""
    n = sum(counted.values())
    weights = {row: Fraction(row[1] + row[3], row[1] * row[3]) for row in counted}
    unit = Fraction(1, math.lcm(*(weight.denominator for weight in weights.values())))
    polynomial: Any = flint.fmpz_poly
    product, origin = polynomial([1]), Fraction(0)
    for row, count in counted.items():
        x, a, y, b = row
        step, passes = int(weights[row] / unit), x + y
        coefficients = [0] * (step * a + 1)
        for passed in range(max(0, passes - b), min(a, passes) + 1):
            coefficients[step * passed] = math.comb(a, passed) * math.comb(b, passes - passed)
        product *= polynomial(coefficients) ** count
        origin -= count * Fraction(passes, b)
    return lambda exponent: (origin + unit * exponent) / n, [int(ways) for ways in product.coeffs()]


def pvalue(law: Mapping[Fraction, Fraction], observed: Fraction, alternative: str, *, mid: bool) -> Fraction:
    """Mass of what is as extreme as the observed value; ties count half if `mid`."""
    sizes: dict[str, Callable[[Fraction], Fraction]] = {
        "two-sided": lambda t: abs(t) - abs(observed),
        "less": lambda t: observed - t,
        "greater": lambda t: t - observed,
    }
    beyond = sizes[alternative]
    above = sum((mass for t, mass in law.items() if beyond(t) > 0), Fraction(0))
    ties = sum((mass for t, mass in law.items() if beyond(t) == 0), Fraction(0))
    return above + (ties / 2 if mid else ties)


def pvalues_by_polynomials(counted: Mapping[Example, int]) -> dict[str, Fraction]:
    """P-values by alternative, from polynomials, in integers alone."""
    value, ways = by_polynomials(counted)
    observed = statistic([row for row, count in counted.items() for _ in range(count)])
    # The value is linear in the exponent: compare exponents.
    at, mirrored = ((t - value(0)) / (value(1) - value(0)) for t in (observed, -observed))
    below = {end: sum(ways[: max(math.floor(end) + 1, 0)]) for end in (at, mirrored)}
    above = {end: sum(ways[max(math.ceil(end), 0) :]) for end in (at, mirrored)}
    low, high = min(at, mirrored), max(at, mirrored)
    extreme = {"less": below[at], "greater": above[at], "two-sided": below[low] + above[high]}
    if observed == 0:
        extreme["two-sided"] = sum(ways)
    return {alternative: Fraction(number, sum(ways)) for alternative, number in extreme.items()}
