"""Generated comparisons by pairwise, rank, class, regression and ranking statistics, against all swaps."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from support import builtin_definitions, pair_scores
from support.budget import cases
from support.certificates import check_pvalue
from support.comparisons import compared_as_they_are
from support.oracles import ALTERNATIVES

from trackperm.errors import InputError
from trackperm.statistic import Statistic, load_statistic, read_statistic
from trackperm.statistic.load import BUILTIN

Row = dict[str, Any]
Rows = Sequence[Row]
Column = Callable[[np.random.Generator], Any]

WITHOUT_A_VALUE = re.compile(
    r"is undefined|has no pairs|have a weight but no example|no positive|0/0|for any scores"
)
"""What is refused of drawn examples, in all of which no score or only one is possible."""


@dataclass(frozen=True)
class Kind:
    """A statistic by its definition, and random examples.

    Attributes
    ----------
    score : callable
        One run's value from its rows.
    own, shared : mapping
        Draw the values of the columns of a run, and of those that are the same in both runs.
    keys : tuple of str
        Lines that are added to the built-in spec.
    as_ranks : bool
        Whether scores are exchanged as mid-ranks within their run.
    slack : number
        Differences that are this close are ties, where the definition is irrational.
    """

    score: Callable[[Rows], Any]
    own: Mapping[str, Column]
    shared: Mapping[str, Column]
    keys: tuple[str, ...] = ()
    as_ranks: bool = False
    slack: Any = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)


def one_of(*values: Any) -> Column:
    return lambda rng: values[int(rng.integers(len(values)))]


def column(rows: Rows, name: str) -> list[Any]:
    return [row[name] for row in rows]


def over_pairs(score: pair_scores.Score) -> Callable[[Rows], Fraction]:
    names = ("label", "event", "stratum")
    return lambda rows: score(column(rows, "score"), {name: column(rows, name) for name in names})


def kappa(distance: Callable[[int, int], int]) -> Callable[[Rows], Fraction]:
    """1 - n observed / expected distance; 0 where both are 0 (Cohen 1968)."""

    def score(rows: Rows) -> Fraction:
        sides = column(rows, "prediction"), column(rows, "label")
        observed = sum(map(distance, *sides))
        expected = sum(distance(a, b) for a in sides[0] for b in sides[1])
        return 1 - Fraction(len(rows) * observed, expected) if expected else Fraction(0)

    return score


def root(value: Any) -> Decimal:
    value = Fraction(value)
    return (Decimal(value.numerator) / Decimal(value.denominator)).sqrt()


def correlation(x: Sequence[Any], y: Sequence[Any]) -> Decimal:
    """Pearson's correlation; 0 where a side is constant."""
    x, y = [Fraction(str(a)) for a in x], [Fraction(str(b)) for b in y]
    n, products = len(x), sum(a * b for a, b in zip(x, y, strict=True))
    spreads = [n * sum(a * a for a in side) - sum(side) ** 2 for side in (x, y)]
    if 0 in spreads:
        return Decimal(0)
    top = n * products - sum(x) * sum(y)
    return Decimal(top.numerator) / Decimal(top.denominator) / root(spreads[0] * spreads[1])


def pearson(rows: Rows) -> Decimal:
    return correlation(column(rows, "prediction"), column(rows, "label"))


def multiclass_mcc(rows: Rows) -> Decimal:
    """Correlation of the indicators of classes (Gorodkin 2004)."""
    n, sides = len(rows), (column(rows, "prediction"), column(rows, "label"))
    correct = sum(a == b for a, b in zip(*sides, strict=True))
    counts = [[side.count(value) for value in {*sides[0], *sides[1]}] for side in sides]
    spreads = math.prod(n * n - sum(c * c for c in side) for side in counts)
    top = n * correct - sum(a * b for a, b in zip(*counts, strict=True))
    return Decimal(top) / root(spreads) if spreads else Decimal(0)


def average_precision(rows: Rows) -> Fraction:
    """The sum over thresholds of the rise of recall times precision."""
    n_positive, found, above = sum(column(rows, "label")), Fraction(0), 0
    for threshold in sorted(set(column(rows, "score")), reverse=True):
        chosen = [row["label"] for row in rows if row["score"] >= threshold]
        found += Fraction(sum(chosen) - above, n_positive) * Fraction(sum(chosen), len(chosen))
        above = sum(chosen)
    return found


def spearman(rows: Rows) -> Decimal:
    return correlation(*(pair_scores.midranks(column(rows, name)) for name in ("score", "label")))


def errors(power: int) -> Callable[[Rows], Fraction]:
    return lambda rows: pair_scores.mean(
        [abs(Fraction(str(row["prediction"])) - Fraction(str(row["label"]))) ** power for row in rows]
    )


def r2(rows: Rows) -> Fraction | None:
    labels = [Fraction(str(label)) for label in column(rows, "label")]
    spread = sum((y - pair_scores.mean(labels)) ** 2 for y in labels)
    return 1 - errors(2)(rows) * len(rows) / spread if spread else None


def brier(rows: Rows) -> Fraction:
    return pair_scores.mean([(Fraction(row["probability"]) - row["label"]) ** 2 for row in rows])


def ece(rows: Rows) -> Fraction:
    """Ten bins, the first of which contains both of its ends."""
    gaps: dict[int, Fraction] = {}
    for row in rows:
        confidence = Fraction(str(row["confidence"]))
        place = max(math.ceil(confidence * 10) - 1, 0)
        gaps[place] = gaps.get(place, Fraction(0)) + (row["prediction"] == row["label"]) - confidence
    return sum(map(abs, gaps.values()), Fraction(0)) / len(rows)


def reciprocal_rank(rows: Rows) -> Fraction:
    """The mean of 1 / rank of the first relevant item among three."""
    firsts = [
        next((i for i, item in enumerate(row["prediction"][:3], 1) if item in row["label"]), 0)
        for row in rows
    ]
    return pair_scores.mean([Fraction(1, first) if first else Fraction(0) for first in firsts])


def relevant(rng: np.random.Generator) -> list[str]:
    return sorted(rng.choice(list("abcd"), size=int(rng.integers(1, 4)), replace=False).tolist())


def ranking(rng: np.random.Generator) -> list[str]:
    return rng.permutation(list("abcd")).tolist()


SCORED = {"score": one_of(0.0, 0.1, 0.3, 0.5, 0.8)}
PAIRED = {"label": one_of(0, 1, 2, 3), "event": one_of(0, 1), "stratum": one_of("a", "b")}
BINARY = {**PAIRED, "label": one_of(0, 1)}
CLASSES: dict[str, Any] = {"own": {"prediction": one_of(0, 1, 2)}, "shared": {"label": one_of(0, 1, 2)}}
GRADES: dict[str, Any] = {
    "own": {"prediction": one_of(*(i / 10 for i in range(8)))},
    "shared": {"label": one_of(0.1, 0.2, 0.3, 0.5)},
}
PAIRS = {
    "roc_auc": (pair_scores.roc_auc, BINARY),
    "kendall_tau": (pair_scores.kendall_tau, PAIRED),
    "somers_d": (pair_scores.somers_d, PAIRED),
    "concordance_index": (pair_scores.concordance_index, PAIRED),
}
TINY = Decimal("1e-25")

KINDS: dict[str, Kind] = {
    f"{name}, {scale}": Kind(
        over_pairs(score), SCORED, shared, (f"  scale: {scale}",), as_ranks=scale == "ranks"
    )
    for name, (score, shared) in PAIRS.items()
    for scale in ("ranks", "raw")
} | {
    f"{name}, strata": Kind(
        over_pairs(pair_scores.by_stratum(score, {"a": Fraction(2), "b": Fraction(1)})),
        SCORED,
        shared,
        ("  scale: raw", "strata: stratum", "weights: {a: 2, b: 1}"),
    )
    for name, (score, shared) in PAIRS.items()
} | {
    "pairwise_accuracy": Kind(over_pairs(pair_scores.pairwise_accuracy(Fraction(0))), SCORED, PAIRED),
    "spearman": Kind(spearman, SCORED, {"label": one_of(0, 1, 2, 3)}, slack=TINY),
    "average_precision": Kind(average_precision, SCORED, {"label": one_of(0, 1)}),
    "cohen_kappa": Kind(kappa(lambda a, b: int(a != b)), **CLASSES),
    "linear_weighted_kappa": Kind(kappa(lambda a, b: abs(a - b)), **CLASSES),
    "quadratic_weighted_kappa": Kind(kappa(lambda a, b: (a - b) ** 2), **CLASSES),
    "multiclass_mcc": Kind(multiclass_mcc, **CLASSES, slack=TINY),
    "pearson": Kind(pearson, **GRADES, slack=TINY),
    "mse": Kind(errors(2), **GRADES),
    "mae": Kind(errors(1), **GRADES),
    "rmse": Kind(lambda rows: root(errors(2)(rows)), **GRADES, slack=TINY),
    "r2": Kind(r2, **GRADES),
    "brier": Kind(brier, {"probability": one_of(*(i / 8 for i in range(9)))}, {"label": one_of(0, 1)}),
    "ece": Kind(
        ece,
        {"prediction": one_of(0, 1), "confidence": one_of(*(i / 20 for i in range(21)))},
        {"label": one_of(0, 1)},
    ),
    "mrr": Kind(reciprocal_rank, {"prediction": ranking}, {"label": relevant}, parameters={"k": 3}),
} | {
    name: Kind(builtin_definitions.DEFINITIONS[name].score, **CLASSES)
    for name in (
        *("macro_f1", "macro_precision", "macro_recall", "balanced_accuracy", "weighted_f1"),
        *("weighted_precision", "f_beta", "jaccard"),
    )
}  # fmt: skip


def spec_of(name: str, kind: Kind) -> str | Statistic:
    builtin = name.split(",")[0]
    if not kind.keys and builtin not in ("spearman", "average_precision"):
        return load_statistic(builtin, parameters=kind.parameters or builtin_parameters(builtin))
    text = (BUILTIN / f"{builtin}.yaml").read_text(encoding="utf-8").replace("scale: ranks", "scale: raw")
    return read_statistic("\n".join([text.rstrip(), *kind.keys]), f"{builtin}.yaml", builtin)


def builtin_parameters(name: str) -> Mapping[str, Any]:
    definition = builtin_definitions.DEFINITIONS.get(name)
    return definition.parameters if definition else {}


def pvalue_by_swaps(
    kind: Kind, shared: Rows, baseline: Rows, candidate: Rows, alternative: str, *, mid_p: bool
) -> Fraction:
    differing = [i for i, sides in enumerate(zip(baseline, candidate, strict=True)) if sides[0] != sides[1]]
    side = {"two-sided": abs, "greater": lambda value: value, "less": lambda value: -value}[alternative]
    values = []
    for swaps in product((False, True), repeat=len(differing)):
        u, v = list(candidate), list(baseline)
        for i, swapped in zip(differing, swaps, strict=True):
            if swapped:
                u[i], v[i] = v[i], u[i]
        scores = [kind.score([{**a, **b} for a, b in zip(shared, own, strict=True)]) for own in (u, v)]
        values.append(side((scores[0] or 0) - (scores[1] or 0)))
    extreme = sum(value >= values[0] - kind.slack for value in values)
    tied = sum(abs(value - values[0]) <= kind.slack for value in values)
    return Fraction(2 * extreme - (tied if mid_p else 0), 2 * len(values))


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_against_all_swaps(name: str) -> None:
    kind, rng, tested = KINDS[name], np.random.default_rng(list(name.encode())), 0
    spec = spec_of(name, kind)
    while tested < cases(30):
        n = int(rng.integers(4, 9))
        shared, baseline, candidate = (
            [{key: draw(rng) for key, draw in columns.items()} for _ in range(n)]
            for columns in (kind.shared, kind.own, kind.own)
        )
        for i in np.flatnonzero(rng.random(n) < rng.choice([0.0, 0.3, 0.8])):
            candidate[i] = dict(baseline[i])
        alternative, mid_p = ALTERNATIVES[tested % 3], bool(rng.integers(2))
        frames = [
            pl.DataFrame([{"id": i, **a, **b} for i, (a, b) in enumerate(zip(shared, own, strict=True))])
            for own in (baseline, candidate)
        ]
        try:
            found = compared_as_they_are(*frames, spec, alternative=alternative, mid_p=mid_p)
        except InputError as error:
            if not WITHOUT_A_VALUE.search(error.message):
                raise
            continue
        if kind.as_ranks:
            for own in (baseline, candidate):
                ranks = pair_scores.midranks(column(own, "score"))
                own[:] = [{"score": rank} for rank in ranks]
        with localcontext() as context:
            context.prec = 50
            truth = pvalue_by_swaps(kind, shared, baseline, candidate, alternative, mid_p=mid_p)
        check_pvalue(found.test, truth, useful=1e-10)
        tested += 1
