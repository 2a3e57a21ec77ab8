"""Weighted sums of fair coins, by number: laws of very different shapes, counted exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from math import gcd, isqrt, prod

import flint
import numpy as np

from support.certification import Case, Share
from support.oracles import ALTERNATIVES
from trackperm.choices import Method
from trackperm.exact import PermutationTest, RationalStatistic, structured_test

BITS = 640
"""Fraction bits of a probability where there are too many swaps to count them."""

COUNTED = 10_000
"""Coins of one kind up to which swaps are counted."""

LISTED = 1_000
"""Sums of the kinds that are listed one by one, at the most."""

DEAR = 20
"""Coefficients of the polynomial that are about as dear as a value that is listed."""

DEGREE = 4_000
"""Degree of a polynomial above which kinds are listed."""

EDGE = 1_000
"""Values up to which swaps are counted in any case."""

Law = Mapping[int, int]

# Section 9 of the design notes: sizes of differences with their multiplicities.
ADVERSARIAL: tuple[Law, ...] = (
    {2: 3},
    {2: 2, 4: 1, 6: 1},
    {2: 100},
    {2: 10_000, 1: 1},
    {60: 10_000, 1: 1},
    {1: 4_000, 2: 3_000, 3: 3_000, 10**6: 1},
    {1: 100, 2: 100, 3: 100, 100_000: 30},
    {1: 4},
    {1: 10**6},
    {1: 10**7, 2: 3},
    {1: 1_000},
    {1: 1_000, 1_000: 1},
    {1: 1},
    {1: 1, 3: 1},
    {1: 1, 3: 1, 4: 1},
    {1: 1, 3: 1, 4: 2},
    {5: 5},
    {1: 200, 1_000: 200},
    {5: 1, 29_532: 2},
    {9_973: 60, 9_967: 60},
    {2**i: 1 for i in range(12)},
    {1: 1_000, 10**6: 1},
    {999_983: 60, 999_979: 60},
    {2: 10**7, 1: 1},
    {1: 10**9},
)


@dataclass(frozen=True)
class CoinSum:
    """X = sum_k d_k B_k with B_k ~ Binomial(c_k, 1/2), for sizes d_k with multiplicities c_k.

    Some kinds are listed. The others make up a polynomial in x^g, where g divides their sizes: of integers
    if they can be counted, else of multiples of 2**-BITS that are rounded down.
    """

    kinds: Law

    @property
    def total(self) -> int:
        return sum(d * c for d, c in self.kinds.items())

    @property
    def n_coins(self) -> int:
        return sum(self.kinds.values())

    def up_to(self, value: int) -> Share:
        """P(X <= value)."""
        if value < 0:
            return Share.of(0, 0)
        if value <= EDGE:
            return Share.of(self._edge[value], self.n_coins)
        listed, divisor, first, cumulated, bits = self._parts
        last = len(cumulated) - 1
        low = 0
        for start, ways in listed.items():
            place = (value - start) // divisor - first
            if place >= 0:
                low += ways * cumulated[min(place, last)]
        n_listed = sum(listed.values())
        lacking = n_listed * ((1 << bits) - cumulated[-1])
        return Share(low, low + lacking, bits + n_listed.bit_length() - 1)

    def pvalue(self, observed: int, alternative: str, *, mid_p: bool = False) -> Share:
        """P-value where X = `observed`; both tails have the same law."""
        if alternative == "two-sided":
            tail = min(observed, self.total - observed)
        else:
            tail = observed if alternative == "less" else self.total - observed
        ends = [self.up_to(tail), self.up_to(tail - 1)]
        if alternative == "two-sided":
            ends = [end.doubled() for end in ends]
            if 2 * observed == self.total:
                ends[0] = Share.of(1, 0)
        return ends[0].middle(ends[1]) if mid_p else ends[0]

    @cached_property
    def _edge(self) -> list[int]:
        """Numbers of swaps with X up to each value of at most EDGE."""
        product = flint.fmpz_poly([1])
        for d, c in self.kinds.items():
            row = [0] * (min(d * c, EDGE) + 1)
            ways = 1
            for j in range(min(c, EDGE // d) + 1):
                row[d * j] = ways
                ways = ways * (c - j) // (j + 1)
            product = flint.fmpz_poly((product * flint.fmpz_poly(row)).coeffs()[: EDGE + 1])
        counts = [int(x) for x in product.coeffs()]
        return list(accumulate(counts + [0] * (EDGE + 1 - len(counts))))

    @cached_property
    def _parts(self) -> tuple[Counter[int], int, int, list[int], int]:
        dense = dict(sorted(self.kinds.items()))
        listed = Counter({0: 1})
        while True:
            divisor = gcd(*dense)
            degree = sum(d // divisor * min(c, 60 * isqrt(c)) for d, c in dense.items())
            most = max(LISTED, degree // DEAR)
            few = [d for d, c in dense.items() if (c + 1) * len(listed) <= most]
            if degree <= DEGREE or len(dense) == 1 or not few:
                break
            size = max(few)
            c = dense.pop(size)
            following, row = Counter[int](), _binomials(c)
            for value, ways in listed.items():
                for j, chosen in enumerate(row):
                    following[value + size * j] += ways * chosen
            listed = following
        rounded = max(dense.values()) > COUNTED
        first, product = 0, flint.fmpz_poly([1 << BITS if rounded else 1])
        for d, c in dense.items():
            start, row = _floored(c) if rounded else (0, _binomials(c))
            spread = [0] * (d // divisor * (len(row) - 1) + 1)
            spread[:: d // divisor] = row
            product = product * flint.fmpz_poly(spread)
            if rounded:
                product = flint.fmpz_poly([int(x) >> BITS for x in product.coeffs()])
            first += d // divisor * start
        cumulated = list(accumulate(map(int, product.coeffs())))
        return listed, divisor, first, cumulated, BITS if rounded else sum(dense.values())


def _binomials(n: int) -> list[int]:
    return [*map(int, (flint.fmpz_poly([1, 1]) ** n).coeffs())]


def _floored(n: int) -> tuple[int, list[int]]:
    """(first, masses): 2**BITS * P(Binomial(n, 1/2) = first + i), rounded down, within 60 deviations."""
    mode, reach = n // 2, 30 * isqrt(n) + 30
    with flint.ctx.workprec(BITS + 128):
        ball = flint.arb.bin_uiui(n, mode) * flint.arb(2) ** (BITS - n)
        up = [int(ball.lower().floor().unique_fmpz())]
    down = up[:]
    for j in range(mode, min(mode + reach, n)):
        up.append(up[-1] * (n - j) // (j + 1))
    for j in range(mode, max(mode - reach, 0), -1):
        down.append(down[-1] * j // (n - j + 1))
    return mode - len(down) + 1, down[:0:-1] + up


FAMILIES = ("few", "many", "scales", "large", "adversarial")

SHARES = (1.0, 0.98, 0.9, 0.51, 0.5, 0.1)
"""Shares of all kinds that show 1, for the adversarial laws."""


@lru_cache(maxsize=4)
def coin_sum(family: str, number: int) -> CoinSum:
    """Return the law of that number, always the same one."""
    rng = np.random.default_rng([FAMILIES.index(family), number])
    if family == "adversarial":
        return CoinSum(ADVERSARIAL[number])
    n_kinds = int(rng.integers(1, 9))
    if family == "few":
        sizes = rng.integers(1, rng.choice([4, 13, 71]), n_kinds)
        counts = rng.integers(1, rng.choice([3, 10]), n_kinds)
    elif family == "many":
        sizes = rng.integers(1, rng.choice([4, 13, 41]), n_kinds)
        counts = rng.integers(1, rng.choice([12, 60, 250]), n_kinds)
    elif family == "scales":
        sizes = np.rint(10.0 ** rng.uniform(0.0, rng.choice([3.0, 4.0, 7.0]), n_kinds)).astype(int)
        counts = np.rint(10.0 ** rng.uniform(0.0, rng.choice([0.5, 1.2, 2.0]), n_kinds)).astype(int)
    else:
        sizes = np.append(np.rint(10.0 ** rng.uniform(0.0, 3.3, n_kinds % 4)).astype(int), [1, 3])
        counts = np.append(
            rng.integers(1, 7, n_kinds % 4), np.rint(10.0 ** rng.uniform(3.3, 6.0, 2)).astype(int)
        )
        sizes, counts = (sizes[:-1], counts[:-1]) if number % 2 else (sizes, counts)
    return CoinSum(dict(zip(sizes.tolist(), counts.tolist(), strict=True)))


@lru_cache(maxsize=4)
def outcomes(family: str, number: int) -> list[dict[int, int]]:
    """How many coins of each kind show 1: from the centre of the law to its very edge."""
    rng = np.random.default_rng([FAMILIES.index(family), number, 1])
    coins = coin_sum(family, number)
    kinds = coins.kinds
    found = [
        {d: c // 2 for d, c in kinds.items()},
        dict(kinds),
        {d: c - (d == min(kinds)) for d, c in kinds.items()},
    ]
    if family == "adversarial":
        found += [{d: round(share * c) for d, c in kinds.items()} for share in SHARES]
    else:
        found = [found[number % 3]]
    deviation = sum(d * d * c for d, c in kinds.items()) ** 0.5 / 2
    for _ in range(7):
        style = rng.integers(0, 5)
        if style == 0:  # each kind by itself
            ups = {d: int(rng.integers(0, c + 1)) for d, c in kinds.items()}
        elif style == 1:  # as it happens
            ups = {d: int(rng.binomial(c, 0.5)) for d, c in kinds.items()}
        elif style == 2:  # a common share
            share = rng.uniform(0.5, 1.0)
            ups = {d: round(share * c) for d, c in kinds.items()}
        elif style == 3:  # near the edge
            smallest = min(kinds)
            left = int((EDGE // smallest) ** rng.uniform(0.3, 1.0))
            ups = {d: max(c - left, 0) if d == smallest else c for d, c in kinds.items()}
        else:  # some deviations out
            share = 0.5 + rng.choice([-1, 1]) * 2.0 ** rng.uniform(-3.0, 4.5) * deviation / coins.total
            ups = {d: min(max(round(share * c), 0), c) for d, c in kinds.items()}
        found.append(ups)
    return found


def methods(coins: CoinSum) -> Iterator[Method]:
    """Engines that take the law in milliseconds, or in no time."""
    kinds = coins.kinds
    yield "auto"
    if len(kinds) == 1:
        yield "binomial"
    if prod(c + 1 for c in kinds.values()) <= 10**5 and max(kinds.values()) <= COUNTED:
        yield "enumerate"
    if coins.n_coins <= 1_000 and coins.total * coins.n_coins <= 10**7:
        yield "dp"
    if max(kinds) <= 2_000 or coins.total <= 10**5:
        yield "lattice"
    yield "bracket"


def cases(family: str, first: int, end: int) -> Iterator[Case]:
    """Cases of the laws from number `first` on, before `end`."""
    for number in range(first, end):
        rng = np.random.default_rng([FAMILIES.index(family), number, 2])
        for outcome in range(len(outcomes(family, number))):
            for method in methods(coin_sum(family, number)):
                for alternative in ALTERNATIVES:
                    yield Case(family, number, outcome, alternative, method, mid_p=bool(rng.random() < 0.15))


def answer(case: Case) -> tuple[PermutationTest, Share]:
    """Return the result of a case and its truth."""
    coins, ups = coin_sum(case.family, case.number), outcomes(case.family, case.number)[case.outcome]
    differences = np.array([*ups, *(-d for d in ups)])
    counts = np.array([*ups.values(), *(coins.kinds[d] - up for d, up in ups.items())])
    present = counts > 0
    result = structured_test(
        differences[present],
        -differences[present],
        RationalStatistic.variable(0, 1),
        multiplicities=counts[present],
        alternative=case.alternative,
        method=case.method,
        mid_p=case.mid_p,
    )
    return result, coins.pvalue(sum(d * up for d, up in ups.items()), case.alternative, mid_p=case.mid_p)
