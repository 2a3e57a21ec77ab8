"""Corpus BLEU: scores against sacrebleu, p-values against all swaps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.unit_swaps import example_pvalue

import trackperm

Pairs = Sequence[tuple[str, str]]
"""Prediction and label of every example."""

NOTHING = Decimal("1e-40")


def ngrams(text: str, n: int) -> Counter[tuple[str, ...]]:
    tokens = text.split()
    return Counter(zip(*(tokens[i:] for i in range(n)), strict=False))


def bleu(pairs: Pairs) -> Decimal:
    """Papineni et al. (2002), section 2.3, to 60 digits, with one reference."""
    with localcontext() as context:
        context.prec = 60
        c, r = (sum(len(text.split()) for text in side) for side in zip(*pairs, strict=True))
        logarithm = min(Decimal(0), 1 - Decimal(r) / c) if c else Decimal(0)
        for n in range(1, 5):
            matches = sum(sum((ngrams(a, n) & ngrams(b, n)).values()) for a, b in pairs)
            if not matches:
                return Decimal(0)
            logarithm += (Decimal(matches) / sum(sum(ngrams(a, n).values()) for a, _ in pairs)).ln() / 4
        return logarithm.exp()


def corpus(
    rng: np.random.Generator, n: int, *, words: int = 50, longest: int = 15
) -> tuple[list[str], list[str], list[str]]:
    """Labels, and two systems that leave out or replace tokens, sometimes all."""

    def drawn(size: int) -> list[str]:
        return [f"w{int(x)}" for x in rng.geometric(3 / words, size)]

    def noisy(text: str, rate: float) -> str:
        kept = [token for token in text.split() if rng.random() > rate / 3]
        return " ".join(rng.choice([token, *drawn(1)], p=[1 - rate, rate]) for token in kept)

    label = [" ".join(drawn(int(size))) for size in rng.integers(0, longest, n)]
    systems = [
        [noisy(text, rate) if rng.random() < 0.95 else "" for text in label]
        for rate in rng.uniform(0, 0.5, 2)
    ]
    return label, systems[0], systems[1]


def run(prediction: Sequence[Any], label: Sequence[Any]) -> pl.DataFrame:
    return pl.DataFrame({"id": range(len(label)), "prediction": prediction, "label": label})


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(6))
def test_scores_against_sacrebleu(seed: int) -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    rng = np.random.default_rng(seed)
    label, *systems = corpus(rng, int(rng.integers(1, 300)), longest=[4, 8, 30][seed % 3])
    systems[1] = systems[1] if seed else [""] * len(label)
    found = trackperm.compare(
        *(run(system, label) for system in systems), "bleu", method="monte-carlo", n_samples=1
    )
    expected = [
        sacrebleu.corpus_bleu(system, [label], tokenize="none", smooth_method="none", force=True).score / 100
        for system in systems
    ]
    assert [found.baseline_score, found.candidate_score] == pytest.approx(expected, rel=1e-13)
    assert [float(bleu(list(zip(system, label, strict=True)))) for system in systems] == pytest.approx(
        expected, rel=1e-13
    )


@pytest.mark.parametrize("n", [1, 3, 8])
def test_against_enumeration(n: int) -> None:
    positive = 0
    for seed in range(3):
        label, *systems = corpus(np.random.default_rng([seed, n]), n, words=6, longest=9)
        found = trackperm.compare(*(run(system, label) for system in systems), "bleu")
        baseline, candidate = (list(zip(system, label, strict=True)) for system in systems)
        assert found.difference == pytest.approx(float(bleu(candidate) - bleu(baseline)), abs=1e-15)
        assert found.pvalue == float(
            example_pvalue(baseline, candidate, lambda u, v: bleu(u) - bleu(v), NOTHING)
        )
        assert found.test.ties == "exact"
        assert found.method == "enumerate" or found.n_discordant == 0
        positive += found.difference != 0
    assert positive >= (3 if n == 8 else 0)


@pytest.mark.extended
def test_thousand_sentences_by_tilted_sampling() -> None:
    label, *systems = corpus(np.random.default_rng(1), 1000, longest=30)
    found = trackperm.compare(*(run(system, label) for system in systems), "bleu")
    assert found.method == "tilted"
    assert math.isinf(found.test.error_bound)
    assert found.test.estimate is not None
    assert 10.0**found.test.estimate.log10 < found.pvalue
    assert "no exact engine fits" in found.test.why


def test_monte_carlo_agrees_with_enumeration() -> None:
    label, *systems = corpus(np.random.default_rng(8), 12, words=20)
    runs = [run(system, label) for system in systems]
    exact, sampled, tilted = (
        trackperm.compare(*runs, "bleu", method=m) for m in ("enumerate", "monte-carlo", "tilted")
    )
    low, high = sampled.test.interval
    assert low <= exact.pvalue <= high
    assert exact.pvalue <= tilted.pvalue <= 1.2 * exact.pvalue
    assert 0.01 < exact.pvalue < 0.99


def test_lists_and_texts_are_the_same() -> None:
    label, *systems = corpus(np.random.default_rng(4), 20)
    texts = trackperm.compare(*(run(system, label) for system in systems), "bleu")
    columns = [[text.split() for text in column] for column in (label, *systems)]
    lists = trackperm.compare(*(run(system, columns[0]) for system in columns[1:]), "bleu")
    assert lists.pvalue == texts.pvalue
    assert lists.candidate_score == texts.candidate_score


def test_a_missing_prediction_counts_as_an_empty_one() -> None:
    label, baseline, candidate = corpus(np.random.default_rng(3), 14)
    missing, empty = (
        trackperm.compare(
            run(baseline, label), run([*answers, *candidate[3:]], label), "bleu", missing="wrong"
        )
        for answers in ([None] * 3, [""] * 3)
    )
    assert missing.difference == empty.difference
    assert missing.pvalue == empty.pvalue


def test_the_logarithm_of_a_bleu_of_0_is_refused() -> None:
    """`where` reads no logarithm of 0."""
    label, baseline = ["a b c d e"] * 3, ["a b c x d"] * 3
    found = trackperm.compare(run(baseline, label), run(label, label), "bleu")
    assert (found.baseline_score, found.candidate_score, found.pvalue) == (0, 1, 1 / 4)
