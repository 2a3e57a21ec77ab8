"""Counters against the programs whose numbers people trust, and against published data."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn import metrics
from sklearn.preprocessing import MultiLabelBinarizer
from support import reference_data
from support.certificates import check_pvalue

import trackperm

TAGS = ["O", "O", "O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in ("PER", "LOC"))]
WORDS = ["the", "The", "cat", "sat", "on", "mat", ".", "é", "cats"]


def score(statistic: str, prediction: list[Any], label: list[Any], **options: Any) -> float:
    """Scores of one run by trackperm."""
    run = pl.DataFrame({"id": range(len(label)), "prediction": prediction, "label": label})
    found = trackperm.compare(run, run, statistic, **options).candidate_score
    assert found is not None
    return found


def sentences(items: list[str], n: int = 200, seed: int = 3) -> tuple[list[list[str]], list[list[str]]]:
    """Random sentences, and what they become when one token of three is replaced."""
    rng = np.random.default_rng(seed)
    label = [rng.choice(items, rng.integers(1, 12)).tolist() for _ in range(n)]
    prediction = [[rng.choice(items) if rng.random() < 0.3 else item for item in row] for row in label]
    return [list(map(str, row)) for row in prediction], label


@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
@pytest.mark.parametrize("prefixes", ["BI", "BIES"])
def test_spans_against_seqeval(name: str, prefixes: str) -> None:
    seqeval = pytest.importorskip("seqeval.metrics")
    tags = [tag for tag in TAGS if tag[0] in prefixes + "O"]
    prediction, label = sentences(tags)
    expected = getattr(seqeval, f"{name}_score")(label, prediction)
    assert score(f"span_{name}", prediction, label) == pytest.approx(expected, rel=1e-14)
    if name == "f1":
        found = score("token_accuracy", prediction, label)
        assert found == pytest.approx(seqeval.accuracy_score(label, prediction), rel=1e-14)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
@pytest.mark.parametrize(("scheme", "of_seqeval"), [("BIO", "IOB2"), ("IOBES", "IOBES")])
def test_strict_spans_against_seqeval(name: str, scheme: str, of_seqeval: str) -> None:
    seqeval = pytest.importorskip("seqeval.metrics")
    schemes = pytest.importorskip("seqeval.scheme")
    prediction, label = sentences([tag for tag in TAGS if tag[0] in {"BIO": "BIO", "IOBES": "BIESO"}[scheme]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a type without a span in the label
        expected = getattr(seqeval, f"{name}_score")(
            label, prediction, mode="strict", scheme=getattr(schemes, of_seqeval)
        )
    found = score(f"span_{name}", prediction, label, parameters={"scheme": scheme})
    assert found == pytest.approx(expected, rel=1e-14)
    assert found != score(f"span_{name}", prediction, label)


def test_error_rates_against_jiwer() -> None:
    jiwer = pytest.importorskip("jiwer")
    rng = np.random.default_rng(4)
    label = [" ".join(rng.choice(WORDS, rng.integers(1, 15))) for _ in range(300)]
    prediction = [" ".join(rng.choice(WORDS, rng.integers(0, 15))) for _ in range(300)]
    prediction[:100] = label[:100]
    expected = jiwer.wer(label, prediction)
    assert score("word_error_rate", prediction, label) == pytest.approx(expected, rel=1e-14)
    lists = [text.split() for text in prediction], [text.split() for text in label]
    assert score("word_error_rate", *lists) == pytest.approx(expected, rel=1e-14)
    expected = jiwer.cer(label, prediction)
    assert score("character_error_rate", prediction, label) == pytest.approx(expected, rel=1e-14)


def test_sets_of_labels_against_scikit_learn() -> None:
    rng = np.random.default_rng(5)
    prediction, label = ([rng.permutation(6)[: rng.integers(0, 6)].tolist() for _ in range(80)] for _ in "ab")
    binary = MultiLabelBinarizer().fit([range(6)])
    expected = metrics.f1_score(binary.transform(label), binary.transform(prediction), average="micro")
    assert score("multilabel_f1", prediction, label) == pytest.approx(expected, rel=1e-14)
    expected = metrics.jaccard_score(binary.transform(label), binary.transform(prediction), average="micro")
    assert score("jaccard_multilabel", prediction, label) == pytest.approx(expected, rel=1e-14)


def wnut17(system: str) -> pl.DataFrame:
    gold = reference_data._tags("emerging.test.annotated")
    (path,) = (reference_data.DATA / "structured_counts/wnut17/submissions").glob(f"{system}*")
    predicted = reference_data._tags(f"submissions/{path.name}")
    return pl.DataFrame({"id": range(len(gold)), "prediction": predicted, "label": gold})


STATISTICS = {
    "F1": "span_f1",
    "precision": "span_precision",
    "recall": "span_recall",
    "token_accuracy": "token_accuracy",
}
WNUT17 = [name for name in reference_data.ids() if name.startswith("wnut17/")]


@reference_data.needs_data
@pytest.mark.extended
@pytest.mark.parametrize("identifier", WNUT17)
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_published_taggers_against_reference_pvalues(identifier: str, alternative: Any) -> None:
    reference = reference_data.reference(identifier)
    _, kind, systems = identifier.split("/")
    candidate, _, baseline = systems.partition("__vs__")
    found = trackperm.compare(wnut17(baseline), wnut17(candidate), STATISTICS[kind], alternative=alternative)
    check_pvalue(found.test, reference.pvalue(alternative), useful=1e-10)
    assert found.n_discordant == reference.n_discordant
    if kind in ("F1", "precision"):
        assert found.difference == float(reference.observed)


@reference_data.needs_data
def test_all_kinds_of_published_taggers_are_there() -> None:
    assert {name.split("/")[1] for name in WNUT17} == set(STATISTICS)


@reference_data.needs_data
def test_published_answers_against_reference_pvalue() -> None:
    (identifier,) = (name for name in reference_data.ids() if name.startswith("squad2/tokenF1_small/"))
    reference = reference_data.reference(identifier)
    candidate, _, baseline = identifier.split("/")[-1].partition("__vs__")
    answers, ids = reference_data._squad_answers(), reference.entry["ids"]
    runs = [
        pl.DataFrame({"id": ids, "prediction": [answer[i] for i in ids], "label": [answers[i] for i in ids]})
        for answer in map(reference_data._squad_predictions, (baseline, candidate))
    ]
    found = trackperm.compare(runs[0], runs[1], "token_f1")
    check_pvalue(found.test, reference.pvalue("two-sided"), useful=1e-10)
    assert found.difference == pytest.approx(
        float(reference.observed / reference.entry["scale"] / reference.n_examples), rel=1e-14
    )
    assert "fractions" in json.dumps(found.pairing.to_dict())
