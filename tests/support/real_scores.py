"""Real scores of two runs on the same examples, by number, and the law of their difference in mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import Any

import numpy as np

from support.certification import Case, Share
from support.coin_sums import CoinSum, methods
from support.oracles import ALTERNATIVES
from trackperm.exact import PermutationTest, difference_test

KINDS = ("tenths", "hundredths", "thirds and sevenths", "reals", "eighths")


@dataclass(frozen=True)
class RealScores:
    """Scores as floats, the numbers that they stand for, and the groups of the examples, if any."""

    floats: Any
    exact: list[tuple[Fraction, Fraction]]
    strata: Any

    @property
    def weights(self) -> list[Fraction]:
        """Weight of each example in a mean over groups, which are as large as they are."""
        sizes = Counter(self.strata or [])
        return [Fraction(1, sizes[group]) if sizes else Fraction(1) for group in self.strata or self.exact]

    def differences(self) -> list[int]:
        """What each example adds to the statistic, in integer multiples of some unit."""
        parts = [(u - v) * w for (u, v), w in zip(self.exact, self.weights, strict=True)]
        unit = lcm(*(part.denominator for part in parts))
        return [int(part * unit) for part in parts]


@lru_cache(maxsize=2)
def real_scores(number: int) -> RealScores:
    """Return the scores of that number, always the same ones."""
    rng = np.random.default_rng([number, 6])
    kind = KINDS[number % len(KINDS)]
    grouped = rng.random() < 0.5
    n = int(rng.integers(1, 10 if kind == "reals" or rng.random() < 0.2 else 40 if grouped else 90))
    if kind == "reals":
        floats = rng.random((n, 2))
        exact = [[Fraction(x) for x in row] for row in floats.tolist()]
    else:
        q = np.array({"tenths": [10], "hundredths": [100], "eighths": [8]}.get(kind, [3, 7]))
        denominators = rng.choice(q, (n, 2))
        numerators = rng.integers(0, denominators + 1)
        floats = numerators / denominators
        exact = [
            [Fraction(a, b) for a, b in zip(*row, strict=True)]
            for row in zip(numerators.tolist(), denominators.tolist(), strict=True)
        ]
    strata = rng.integers(0, rng.integers(2, 5), n).tolist() if grouped else None
    return RealScores(floats, [(u, v) for u, v in exact], strata)


@lru_cache(maxsize=2)
def coins_of(number: int) -> CoinSum:
    folded = Counter(abs(d) for d in real_scores(number).differences() if d)
    return CoinSum(folded or {1: 0})


def cases(_: str, first: int, end: int) -> Iterator[Case]:
    """Cases of the scores from number `first` on, before `end`."""
    for number in range(first, end):
        rng = np.random.default_rng([number, 7])
        for outcome in range(5):
            for method in methods(coins_of(number)):
                if method == "binomial":
                    continue
                for alternative in ALTERNATIVES:
                    yield Case("real", number, outcome, alternative, method, mid_p=bool(rng.random() < 0.15))


def answer(case: Case) -> tuple[PermutationTest, Share]:
    """Return the result of a case and its truth."""
    scores, differences = (
        real_scores(case.number),
        np.array(real_scores(case.number).differences(), dtype=object),
    )
    rng = np.random.default_rng([case.number, case.outcome, 8])
    up = differences > 0
    wanted = rng.random(up.size) < (1.0, 0.5, 0.6, 0.95, rng.random())[case.outcome]
    exchanged = up != wanted
    values = np.array(scores.floats)
    if scores.strata:
        values = np.array(scores.exact, dtype=object) * np.array(scores.weights, dtype=object)[:, None]
    values = np.where(exchanged[:, None], values[:, ::-1], values)
    result = difference_test(
        values[:, 0],
        values[:, 1],
        alternative=case.alternative,
        method=case.method,
        mid_p=case.mid_p,
    )
    observed = sum(abs(d) for d in differences[wanted])
    return result, coins_of(case.number).pvalue(observed, case.alternative, mid_p=case.mid_p)
