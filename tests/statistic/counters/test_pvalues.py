"""Built-in statistics of structured outputs, from tables to p-value, against all swaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.reference_data import _chunks, _exact_match, _token_f1
from support.unit_swaps import example_pvalue

import trackperm
from trackperm.errors import InputError

Pairs = Sequence[tuple[str, str]]
"""Prediction and label of every example, as texts of words separated by spaces."""

TAGS = ["O", "B-X", "I-X", "I-Y"]
ARCS = ["0:a", "1:a", "1:b"]
WORDS = ["x", "y", "z"]


@dataclass(frozen=True)
class Definition:
    """A score in plain Python, what it is a score of, and an answer that is as bad as none."""

    score: Callable[[Pairs], Fraction | None]
    items: list[str]
    worst: Callable[[str], str]
    aligned: bool = True


def ratio(a: int, b: int) -> Fraction | None:
    return Fraction(a, b) if b else None


def share(same: Callable[[str], Any]) -> Callable[[Pairs], Fraction | None]:
    def score(pairs: Pairs) -> Fraction | None:
        tokens = [pair for p, t in pairs for pair in zip(p.split(), t.split(), strict=True)]
        return ratio(sum(same(a) == same(b) for a, b in tokens), len(tokens))

    return score


def pooled(kind: str, parts: Callable[[str], set[Any]]) -> Callable[[Pairs], Fraction | None]:
    def score(pairs: Pairs) -> Fraction | None:
        sets = [(parts(p), parts(t)) for p, t in pairs]
        tp, predicted, actual = (
            sum(map(len, s)) for s in ([a & b for a, b in sets], *zip(*sets, strict=True))
        )
        return {
            "precision": ratio(tp, predicted),
            "recall": ratio(tp, actual),
            "f1": ratio(2 * tp, predicted + actual),
        }[kind]

    return score


def edits(a: Sequence[str], b: Sequence[str]) -> int:
    if not a or not b:
        return len(a) + len(b)
    return min(edits(a[1:], b[1:]) + (a[0] != b[0]), edits(a[1:], b) + 1, edits(a, b[1:]) + 1)


def error_rate(parts: Callable[[str], Sequence[str]]) -> Callable[[Pairs], Fraction | None]:
    return lambda pairs: ratio(
        sum(edits(parts(p), parts(t)) for p, t in pairs), sum(len(parts(t)) for _, t in pairs)
    )


def spans(text: str) -> set[Any]:
    return _chunks(text.split())


def outside(text: str) -> str:
    return " ".join("O" for _ in text.split())


def empty(text: str) -> str:
    return ""


DEFINITIONS = {
    "token_accuracy": Definition(share(str), TAGS, lambda text: " ".join("?" for _ in text.split())),
    "uas": Definition(share(lambda arc: arc[0]), ARCS, lambda text: " ".join("9:a" for _ in text.split())),
    "las": Definition(share(str), ARCS, lambda text: " ".join("9:a" for _ in text.split())),
    "span_precision": Definition(pooled("precision", spans), TAGS, outside),
    "span_recall": Definition(pooled("recall", spans), TAGS, outside),
    "span_f1": Definition(pooled("f1", spans), TAGS, outside),
    "multilabel_f1": Definition(pooled("f1", lambda text: set(text.split())), WORDS, empty, aligned=False),
    "jaccard_multilabel": Definition(
        lambda pairs: ratio(
            sum(len(set(p.split()) & set(t.split())) for p, t in pairs),
            sum(len(set(p.split()) | set(t.split())) for p, t in pairs),
        ),
        WORDS,
        empty,
        aligned=False,
    ),
    "word_error_rate": Definition(error_rate(str.split), WORDS, empty, aligned=False),
    "character_error_rate": Definition(error_rate(str), WORDS, empty, aligned=False),
    "token_f1": Definition(
        lambda pairs: Fraction(sum(_token_f1(p, [t]) for p, t in pairs), len(pairs)),
        WORDS,
        lambda text: "?!" if text.split() else "w",
        aligned=False,
    ),
    "squad_em": Definition(
        lambda pairs: Fraction(sum(_exact_match(p, [t]) for p, t in pairs), len(pairs)),
        WORDS,
        lambda text: "?!" if text.split() else "w",
        aligned=False,
    ),
}


def runs(definition: Definition, seed: int, n: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    rng = np.random.default_rng(seed)

    def texts(lengths: Sequence[int]) -> list[str]:
        return [" ".join(rng.choice(definition.items, length)) for length in lengths]

    lengths = rng.integers(1, 4, n)
    label = texts(lengths)
    predictions = [texts(lengths if definition.aligned else rng.integers(0, 4, n)) for _ in "ab"]
    first, second = (pl.DataFrame({"id": range(n), "prediction": p, "label": label}) for p in predictions)
    return first, second


def pairs(run: pl.DataFrame) -> Pairs:
    return list(zip(run["prediction"], run["label"], strict=True))


def by_enumeration(definition: Definition, baseline: Pairs, candidate: Pairs) -> Fraction:
    def difference(u: Pairs, v: Pairs) -> Fraction:
        return (definition.score(u) or Fraction(0)) - (definition.score(v) or Fraction(0))

    return example_pvalue(baseline, candidate, difference)


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", DEFINITIONS)
def test_against_enumeration(name: str) -> None:
    definition, tested = DEFINITIONS[name], 0
    for seed in range(4):
        baseline, candidate = runs(definition, seed, 4 + seed % 3)
        scores = [definition.score(pairs(run)) for run in (baseline, candidate)]
        try:
            found = trackperm.compare(baseline, candidate, name)
        except InputError:  # 0/0 in both
            assert scores == [None, None]
            continue
        assert [found.baseline_score, found.candidate_score] == pytest.approx(
            [float(score or 0) for score in scores], rel=1e-14
        )
        expected = by_enumeration(definition, pairs(baseline), pairs(candidate))
        assert found.pvalue == pytest.approx(float(expected), rel=1e-12)
        assert found.test.ties == "exact"
        tested += 1
    assert tested >= 3


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_missing_prediction_counts_as_the_worst(name: str) -> None:
    definition = DEFINITIONS[name]
    baseline, candidate = runs(definition, 11, 8)
    label, others = candidate["label"].to_list(), candidate["prediction"].to_list()[4:]
    firsts = {"missing": [None] * 4, "worst": list(map(definition.worst, label[:4])), "right": label[:4]}
    found = {
        kind: trackperm.compare(
            baseline, candidate.with_columns(prediction=pl.Series(first + others)), name, missing="wrong"
        )
        for kind, first in firsts.items()
    }
    assert found["missing"].difference == found["worst"].difference != found["right"].difference
    assert found["missing"].pvalue == found["worst"].pvalue
