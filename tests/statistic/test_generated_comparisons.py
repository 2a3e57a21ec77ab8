"""Generated comparisons by pairwise, rank, class, regression and ranking statistics, against all swaps."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

import numpy as np
import polars as pl
import pytest
from support import number_scores, pair_scores
from support.budget import cases
from support.builtin_definitions import DEFINITIONS, class_correlation, drawn_runs, kappa
from support.certificates import check_pvalue
from support.comparisons import compared_as_they_are
from support.oracles import ALTERNATIVES
from support.unit_swaps import Row, score_pvalue

from trackperm.errors import InputError
from trackperm.statistic import Statistic, load_statistic, read_statistic
from trackperm.statistic.load import BUILTIN

Rows = Sequence[Row]
Columns = Mapping[str, Sequence[Any]]

WITHOUT_A_VALUE = re.compile(
    r"is undefined|has no pairs|have a weight but no example|no positive|0/0|for any scores"
)
"""What is refused of drawn examples, in all of which no score or only one is possible."""


@dataclass(frozen=True)
class Kind:
    """A statistic as its inventors wrote it, and the values of the columns of examples.

    Attributes
    ----------
    score : callable
        One run's value from its rows; None for 0/0, which counts as 0.
    own, shared : mapping
        Values of the columns of a run, and of those that are the same in both runs.
    keys : tuple of str
        Lines that are added to the built-in spec.
    as_ranks : bool
        Whether scores are exchanged as mid-ranks within their run.
    """

    score: Callable[[Rows], Any]
    own: Columns
    shared: Columns
    keys: tuple[str, ...] = ()
    as_ranks: bool = False


def column(rows: Rows, name: str) -> list[Any]:
    return [row[name] for row in rows]


def over_pairs(score: pair_scores.Score) -> Callable[[Rows], Fraction]:
    names = ("label", "event", "stratum")
    return lambda rows: score(column(rows, "score"), {name: column(rows, name) for name in names})


def over_numbers(score: Callable[[number_scores.Values], Any]) -> Callable[[Rows], Any]:
    def of_rows(rows: Rows) -> Any:
        read = [(Fraction(str(row["prediction"])), Fraction(str(row["label"]))) for row in rows]
        return score(read)

    return of_rows


def correlation(values: Sequence[tuple[Any, Any]]) -> Decimal | None:
    """Pearson's correlation; None where a side is constant."""
    n, (x, y) = len(values), zip(*values, strict=True)
    top = n * sum(a * b for a, b in values) - sum(x) * sum(y)
    squares = math.prod(n * sum(a * a for a in side) - sum(side) ** 2 for side in (x, y))
    if not squares:
        return None
    return Decimal(top.numerator) / top.denominator / number_scores.square_root(Fraction(squares))


def spearman(rows: Rows) -> Decimal | None:
    ranks = (pair_scores.midranks(column(rows, name)) for name in ("score", "label"))
    return correlation(list(zip(*ranks, strict=True)))


def average_precision(rows: Rows) -> Fraction:
    """The sum over thresholds of the rise of recall times precision."""
    n_positive, found, above = sum(column(rows, "label")), Fraction(0), 0
    for threshold in sorted(set(column(rows, "score")), reverse=True):
        chosen = [row["label"] for row in rows if row["score"] >= threshold]
        found += Fraction(sum(chosen) - above, n_positive) * Fraction(sum(chosen), len(chosen))
        above = sum(chosen)
    return found


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
    """The mean of 1 / rank of the first relevant item."""
    ranks = [min(i for i, item in enumerate(row["prediction"], 1) if item in row["label"]) for row in rows]
    return pair_scores.mean([Fraction(1, rank) for rank in ranks])


SCORED: Columns = {"score": (0.0, 0.1, 0.3, 0.5, 0.8)}
BINARY: Columns = {"label": (0, 1), "event": (0, 1), "stratum": ("a", "b")}
GRADED: Columns = {**BINARY, "label": range(4)}
CLASSES: dict[str, Any] = {"own": {"prediction": range(3)}, "shared": {"label": range(3)}}
NUMBERS: dict[str, Any] = {
    "own": {"prediction": [i / 10 for i in range(8)]},
    "shared": {"label": (0.1, 0.2, 0.3, 0.5)},
}
PAIRS: dict[str, tuple[pair_scores.Score, Columns]] = {
    "roc_auc": (pair_scores.roc_auc, BINARY),
    "kendall_tau": (pair_scores.kendall_tau, GRADED),
    "somers_d": (pair_scores.somers_d, GRADED),
    "concordance_index": (pair_scores.concordance_index, GRADED),
}
STRATA = {"a": Fraction(2), "b": Fraction(1)}
ITEMS = "abcd"

KINDS: dict[str, Kind] = {
    f"{name}, {scale}": Kind(
        over_pairs(score), SCORED, shared, (f"  scale: {scale}",), as_ranks=scale == "ranks"
    )
    for name, (score, shared) in PAIRS.items()
    for scale in ("ranks", "raw")
} | {
    f"{name}, strata": Kind(
        over_pairs(pair_scores.by_stratum(score, STRATA)),
        SCORED,
        shared,
        ("  scale: raw", "strata: stratum", "weights: {a: 2, b: 1}"),
    )
    for name, (score, shared) in PAIRS.items()
} | {
    "pairwise_accuracy": Kind(over_pairs(pair_scores.pairwise_accuracy(Fraction(0))), SCORED, GRADED),
    "spearman": Kind(spearman, SCORED, {"label": range(4)}),
    "average_precision": Kind(average_precision, SCORED, {"label": (0, 1)}),
    "cohen_kappa": Kind(kappa(lambda a, b: int(a != b)), **CLASSES),
    "linear_weighted_kappa": Kind(kappa(lambda a, b: abs(a - b)), **CLASSES),
    "quadratic_weighted_kappa": Kind(kappa(lambda a, b: (a - b) ** 2), **CLASSES),
    "multiclass_mcc": Kind(class_correlation, **CLASSES),
    "pearson": Kind(over_numbers(correlation), **NUMBERS),
    "mse": Kind(over_numbers(number_scores.mean(number_scores.squared)), **NUMBERS),
    "mae": Kind(over_numbers(number_scores.mean(lambda x, y: abs(x - y))), **NUMBERS),
    "rmse": Kind(over_numbers(number_scores.root), **NUMBERS),
    "r2": Kind(over_numbers(number_scores.r2), **NUMBERS),
    "brier": Kind(brier, {"probability": [i / 8 for i in range(9)]}, {"label": (0, 1)}),
    "ece": Kind(
        ece, {"prediction": (0, 1), "confidence": [i / 20 for i in range(21)]}, {"label": (0, 1)}
    ),
    "mrr": Kind(
        reciprocal_rank,
        {"prediction": [list(order) for order in permutations(ITEMS)]},
        {"label": [list(some) for k in (1, 2, 3) for some in combinations(ITEMS, k)]},
    ),
} | {
    name: Kind(DEFINITIONS[name].score, **CLASSES)
    for name in (
        *("macro_f1", "macro_precision", "macro_recall", "balanced_accuracy", "weighted_f1"),
        *("weighted_precision", "f_beta", "jaccard"),
    )
}  # fmt: skip


def spec_of(name: str, kind: Kind) -> Statistic:
    builtin = name.split(",")[0]
    if not kind.keys and builtin not in ("spearman", "average_precision"):
        parameters = DEFINITIONS[builtin].parameters if builtin in DEFINITIONS else {}
        return load_statistic(builtin, parameters=parameters)
    text = (BUILTIN / f"{builtin}.yaml").read_text(encoding="utf-8").replace("scale: ranks", "scale: raw")
    return read_statistic("\n".join([text.rstrip(), *kind.keys]), f"{builtin}.yaml", builtin)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_against_all_swaps(name: str) -> None:
    kind, rng, tested = KINDS[name], np.random.default_rng(list(name.encode())), 0
    spec = spec_of(name, kind)
    while tested < cases(30):
        n = int(rng.integers(4, 9))
        baseline, candidate = drawn_runs(kind.own, kind.shared, rng, n)
        for i in np.flatnonzero(rng.random(n) < rng.choice([0.0, 0.3, 0.8])):
            candidate[i] = baseline[i]
        alternative, mid_p = ALTERNATIVES[tested % 3], bool(rng.integers(2))
        frames = [pl.DataFrame(rows) for rows in (baseline, candidate)]
        try:
            found = compared_as_they_are(*frames, spec, alternative=alternative, mid_p=mid_p)
        except InputError as error:
            if not WITHOUT_A_VALUE.search(error.message):
                raise
            continue
        if kind.as_ranks:
            baseline, candidate = (
                [
                    {**row, "score": rank}
                    for row, rank in zip(rows, pair_scores.midranks(column(rows, "score")), strict=True)
                ]
                for rows in (baseline, candidate)
            )
        truth = score_pvalue(baseline, candidate, kind.score, alternative, mid_p=mid_p)
        check_pvalue(found.test, truth, useful=1e-10)
        tested += 1
