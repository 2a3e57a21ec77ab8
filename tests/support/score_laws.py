"""Statistics of several counts of two runs, by number: generated examples, and p-values from all swaps.

The counts of the candidate move on a lattice of one to three dimensions; what it has not, the baseline has.
Numbers of swaps come from an integer polynomial. Values are compared in float64, and where they are within
10^-9 of the largest one in rational numbers, or in 600 bits for roots and logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import compress
from typing import Any

import flint
import numpy as np

from support import oracles
from support.certification import Case, Share
from support.oracles import ALTERNATIVES
from trackperm.choices import Method
from trackperm.exact import PermutationTest, RationalStatistic, RealStatistic, structured_test

Score = Callable[..., Any]
Counts = tuple[int, ...]


def f1(over: Any, _: Any, tp: Any, incorrect: Any) -> Any:
    return over(2 * tp, 2 * tp + incorrect)


def precision(over: Any, _: Any, tp: Any, fp: Any) -> Any:
    return over(tp, tp + fp)


def odds(over: Any, _: Any, x: Any, y: Any) -> Any:
    return over(2 * x, 2 * y + 1)


def product(_: Any, __: Any, x: Any, y: Any) -> Any:
    return x * y


def ellipse(_: Any, __: Any, x: Any, y: Any) -> Any:
    return x * x + 3 * y * y


def cubic(_: Any, __: Any, x: Any, y: Any) -> Any:
    return x * x * x - 3 * x * y


def mcc(over: Any, f: Any, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    return over(tp * tn - fp * fn, f.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


def geometric_mean(over: Any, f: Any, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    return f.sqrt(over(tp, tp + fn) * over(tn, tn + fp))


def norm(_: Any, f: Any, x: Any, y: Any) -> Any:
    return f.sqrt(x * x + y * y + 1)


def log_ratio(_: Any, f: Any, x: Any, y: Any) -> Any:
    return f.log(x + 1) - f.log(y + 1)


def f1_of_three(over: Any, _: Any, tp: Any, fp: Any, fn: Any) -> Any:
    return over(2 * tp, 2 * tp + fp + fn)


def mean_of_precision_and_recall(over: Any, _: Any, tp: Any, fp: Any, fn: Any) -> Any:
    return over(tp, tp + fp) + over(tp, tp + fn)


def volume(_: Any, __: Any, x: Any, y: Any, z: Any) -> Any:
    return x * y * z + x


def weighted_norm(_: Any, f: Any, x: Any, y: Any, z: Any) -> Any:
    return f.sqrt(x * x + 2 * y * y + 3 * z * z + 1)


def fowlkes_mallows(over: Any, f: Any, tp: Any, fp: Any, fn: Any) -> Any:
    return over(tp, f.sqrt((tp + fp) * (tp + fn)))


PLANE: tuple[Score, ...] = (f1, precision, odds, product, cubic, ellipse)
IRRATIONAL: tuple[Score, ...] = (mcc, geometric_mean, norm, log_ratio)
SPACE: tuple[Score, ...] = (
    f1_of_three, mean_of_precision_and_recall, volume, weighted_norm, fowlkes_mallows,
)  # fmt: skip
ROOTS = {mcc, geometric_mean, norm, log_ratio, weighted_norm, fowlkes_mallows}
OF_DIFFERENCES = {ellipse}
"""Scores of the differences u - v, which exchanging the runs does not negate."""
TABLES = {mcc, geometric_mean}
"""Scores of a confusion matrix whose labels are the same in both runs: two of its four counts are free."""


def _over_floats(a: Any, b: Any) -> Any:
    return np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=np.asarray(b) != 0)


def _over_exactly(a: Any, b: Any) -> Any:
    return a / b if b != 0 else 0 * a


@dataclass(frozen=True)
class ScoreLaw:
    """score(u) - score(v) on pairs of counts, one row an example."""

    score: Score
    u: tuple[Counts, ...]
    v: tuple[Counts, ...]

    @cached_property
    def h(self) -> RationalStatistic | RealStatistic:
        p = len(self.u[0])
        kind = RealStatistic if self.score in ROOTS else RationalStatistic
        x = [kind.variable(i, 2 * p) for i in range(2 * p)]
        return self._of(x[:p], x[p:], lambda a, b: a.divide(b, 0), RealStatistic)

    def _of(self, u: Sequence[Any], v: Sequence[Any], over: Callable[[Any, Any], Any], functions: Any) -> Any:
        if self.score in OF_DIFFERENCES:
            return self.score(over, functions, *(a - b for a, b in zip(u, v, strict=True)))
        return self.score(over, functions, *u) - self.score(over, functions, *v)

    @cached_property
    def _swaps(self) -> tuple[Any, list[int], int]:
        """Values of u's counts after all swaps, shape (n, p), and how many swaps lead to each."""
        free = slice(0, 2) if self.score in TABLES else slice(None)
        counts = oracles.sums_by_polynomial([x[free] for x in self.u], [x[free] for x in self.v])
        points = np.array(list(counts), dtype=np.int64)
        if self.score in TABLES:
            positive, negative = (sum(x[i] + x[j] for x in self.u) for i, j in ((0, 2), (1, 3)))
            points = np.column_stack([points, positive - points[:, 0], negative - points[:, 1]])
        return points, list(counts.values()), sum(counts.values()).bit_length() - 1

    @cached_property
    def _total(self) -> Any:
        return np.array(self.u).sum(axis=0) + np.array(self.v).sum(axis=0)

    @cached_property
    def _floats(self) -> tuple[Any, float]:
        """Values after all swaps, and a band that is wide beside their errors."""
        points = self._swaps[0].astype(float)
        there = self._total - points
        values = self._of(points.T, there.T, _over_floats, np)
        size = np.abs(self.score(_over_floats, np, *np.maximum(points, there).T)).max(initial=1.0)
        return np.broadcast_to(values, len(points)), 1e-9 * float(size)

    def _exact(self, point: Sequence[int]) -> Any:
        number = flint.arb if self.score in ROOTS else flint.fmpq
        here = [number(int(x)) for x in point]
        there = [number(int(t)) - x for t, x in zip(self._total, here, strict=True)]
        return self._of(here, there, _over_exactly, flint.arb)

    def _sign(self, value: Any) -> int:
        if isinstance(value, flint.arb):
            return 0 if value.contains(0) else (1 if value > 0 else -1)
        return (value > 0) - (value < 0)

    def shares(self, observed: Sequence[int]) -> dict[str, tuple[Share, Share]]:
        """P-values at the observed counts of the candidate, by alternative, and the mass without ties."""
        points, ways, bits = self._swaps
        values, band = self._floats
        with flint.ctx.workprec(600):
            exact = self._exact(observed)
            at = float(exact)
            sides = np.sign(values - at).astype(int)
            opposite = np.sign(values + at).astype(int)
            for signs, offset, other in ((sides, values - at, exact), (opposite, values + at, -exact)):
                for i in np.flatnonzero(np.abs(offset) <= band).tolist():
                    signs[i] = self._sign(self._exact(points[i].tolist()) - other)
        if at < 0:
            sides, opposite = -sides, -opposite

        def share(chosen: Any) -> Share:
            return Share.of(sum(compress(ways, chosen.tolist())), bits)

        # `sides` looks from the observed value outwards, `opposite` from its mirror image.
        out = (share(sides >= 0), share(sides > 0))
        back = (share(sides <= 0), share(sides < 0))
        both = (share((sides >= 0) | (opposite <= 0)), share((sides > 0) | (opposite < 0)))
        greater, less = (out, back) if at >= 0 else (back, out)
        return {"two-sided": both, "less": less, "greater": greater}


FAMILIES = ("plane", "irrational", "space")
SCORES = dict(zip(FAMILIES, (PLANE, IRRATIONAL, SPACE), strict=True))
MOST_EXAMPLES = {"plane": 90, "irrational": 70, "space": 26}


@lru_cache(maxsize=2)
def score_law(family: str, number: int) -> ScoreLaw:
    """Return the law of that number, always the same one: some have few examples, or identical ones."""
    rng = np.random.default_rng([FAMILIES.index(family), number, 3])
    score = SCORES[family][number % len(SCORES[family])]
    n = int(rng.integers(1, 6 if number % 7 == 0 else MOST_EXAMPLES[family]))
    if score in TABLES:
        label = rng.random(n) < 0.5
        runs = [np.where(rng.random(n) < share, label, ~label) for share in rng.uniform(0.4, 0.95, 2)]
        u, v = (np.column_stack([r & label, r & ~label, ~r & label, ~r & ~label]).astype(int) for r in runs)
    else:
        high = int(rng.choice([1, 2, 4] if n < 40 and family != "space" else [1, 2]))
        u, v = rng.integers(0, high + 1, (2, n, 3 if family == "space" else 2))
    identical = rng.random((n, 1)) < {0: 1.0, 1: 0.5, 2: 0.5}.get(number % 11, 0.0)
    v = np.where(identical, u, v)
    if number % 11 == 5:  # the observed value is 0
        u, v = np.vstack([u, v])[:n], np.vstack([v, u])[:n]
    return ScoreLaw(score, *(tuple(map(tuple, table.tolist())) for table in (u, v)))


def exchanged(family: str, number: int) -> list[Any]:
    """Return which examples are exchanged, outcome by outcome: in the bulk of the law, and in its tails."""
    rng = np.random.default_rng([FAMILIES.index(family), number, 4])
    u, v = (np.array(table) for table in (score_law(family, number).u, score_law(family, number).v))
    n, behind = len(u), u[:, 0] < v[:, 0]
    masks = [rng.random(n) < share for share in (0.0, 0.5, rng.random())]
    return [*masks, behind ^ (rng.random(n) < 0.05), ~behind ^ (rng.random(n) < 0.1)]


def cases(family: str, first: int, end: int) -> Iterator[Case]:
    """Cases of the laws from number `first` on, before `end`."""
    for number in range(first, end):
        law = score_law(family, number)
        rng = np.random.default_rng([FAMILIES.index(family), number, 5])
        n_moving = sum(u != v for u, v in zip(law.u, law.v, strict=True))
        methods: list[Method] = ["auto", "lattice", *(["enumerate"] if n_moving <= 9 else [])]
        for outcome in range(5):
            for alternative in ALTERNATIVES[law.score in OF_DIFFERENCES :]:
                for method in methods:
                    yield Case(family, number, outcome, alternative, method, mid_p=bool(rng.random() < 0.1))


def answer(case: Case) -> tuple[PermutationTest, Share]:
    """Return the result of a case and its truth."""
    law, mask = (
        score_law(case.family, case.number),
        exchanged(case.family, case.number)[case.outcome][:, None],
    )
    u, v = np.where(mask, law.v, law.u), np.where(mask, law.u, law.v)
    result = structured_test(
        np.hstack([u, v]),
        np.hstack([v, u]),
        law.h,
        alternative=case.alternative,
        method=case.method,
        mid_p=case.mid_p,
    )
    ties, strict = law.shares(tuple(u.sum(axis=0).tolist()))[case.alternative]
    return result, ties.middle(strict) if case.mid_p else ties
