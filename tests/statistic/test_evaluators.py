"""Statistics of texts, rankings, correlation and calibration, against libraries over all swaps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import polars as pl
import pytest
import sacrebleu
from scipy.stats import pearsonr
from sklearn.calibration import calibration_curve
from sklearn.metrics import ndcg_score
from support.comparisons import compared_as_they_are, numbered
from support.engines import each_with_engines
from support.unit_swaps import example_pvalue

import trackperm
from trackperm import report
from trackperm.errors import InputError, SpecError
from trackperm.ledger.comparison_publication import evidence
from trackperm.statistic import load_statistic, read_statistic
from trackperm.statistic.count_expressions import with_counters_of

Example = dict[str, Any]
WORDS = ["the", "cat", "sat", "on", "a", "mat", "Éa", "日本", "x"]
ITEMS = [f"d{i}" for i in range(6)]


@dataclass(frozen=True)
class Case:
    """A statistic with its library, and random examples.

    Attributes
    ----------
    oracle : callable
        Value of a run by the library.
    label, own : callable
        Draw the label, and the columns of one run given the label.
    missing : mapping or None
        Columns of an answer that counts as a missing one.
    parameters : mapping
        Parameters that are not the defaults.
    """

    oracle: Callable[[Sequence[Example]], float]
    label: Callable[[np.random.Generator], Any]
    own: Callable[[np.random.Generator, Any], Example]
    missing: Example | None = None
    parameters: dict[str, Any] = field(default_factory=dict)


def column(rows: Sequence[Example], name: str) -> list[Any]:
    return [row[name] for row in rows]


def sentence(rng: np.random.Generator) -> str:
    return " ".join(rng.choice(WORDS, size=rng.integers(1, 6)))


def edited(rng: np.random.Generator, label: str) -> Example:
    words = label.split()
    if rng.random() < 0.5:
        words = words[::-1]
    return {"prediction": " ".join(word for word in words if rng.random() < 0.7)}


def of_sacrebleu(metric: Callable[..., Any]) -> Callable[[Sequence[Example]], float]:
    return lambda rows: metric(column(rows, "prediction"), [column(rows, "label")]).score / 100


def correlation(rows: Sequence[Example]) -> float:
    sides = column(rows, "prediction"), column(rows, "label")
    if any(len(set(side)) == 1 for side in sides):
        return 0.0
    return float(pearsonr(*sides).statistic)


def relevant(rng: np.random.Generator) -> list[str]:
    return rng.choice(ITEMS, size=rng.integers(1, 4), replace=False).tolist()


def ranking(rng: np.random.Generator, label: list[str]) -> Example:
    return {"prediction": rng.permutation(ITEMS).tolist()}


def ndcg_of(rows: Sequence[Example]) -> float:
    truth = np.array([[float(item in row["label"]) for item in ITEMS] for row in rows])
    scores = [
        [-row["prediction"].index(item) if item in row["prediction"] else -9.0 for item in ITEMS]
        for row in rows
    ]
    ranked = np.array([bool(row["prediction"]) for row in rows])
    return float(ndcg_score(truth[ranked], np.array(scores)[ranked], k=3) * ranked.mean())


def mrr_of(rows: Sequence[Example]) -> float:
    qrels = {str(i): dict.fromkeys(row["label"], 1) for i, row in enumerate(rows)}
    run = {
        str(i): {item: -float(rank) for rank, item in enumerate(row["prediction"])}
        for i, row in enumerate(rows)
    }
    return float(ir_measures.calc_aggregate([ir_measures.RR @ 3], qrels, run)[ir_measures.RR @ 3])


def calibration(rows: Sequence[Example]) -> float:
    correct = [int(row["prediction"] == row["label"]) for row in rows]
    confidence = np.array(column(rows, "confidence"))
    rates, means = calibration_curve(correct, confidence, n_bins=10)
    sizes = np.bincount(np.searchsorted(np.linspace(0.0, 1.0, 11)[1:-1], confidence))
    return float((sizes[sizes > 0] * np.abs(rates - means)).sum() / len(rows))


CASES = {
    "chrf": Case(of_sacrebleu(sacrebleu.corpus_chrf), sentence, edited, {"prediction": ""}),
    "ter": Case(of_sacrebleu(sacrebleu.corpus_ter), sentence, edited, {"prediction": ""}),
    "pearson": Case(
        correlation,
        lambda rng: int(rng.integers(0, 3)) / 10,
        lambda rng, label: {"prediction": int(rng.integers(0, 4)) / 100},
    ),
    "ndcg": Case(ndcg_of, relevant, ranking, {"prediction": []}, {"k": 3}),
    "mrr": Case(mrr_of, relevant, ranking, {"prediction": []}, {"k": 3}),
    "ece": Case(
        calibration,
        lambda rng: int(rng.integers(0, 2)),
        lambda rng, label: {
            "prediction": int(rng.integers(0, 2)),
            "confidence": int(rng.integers(0, 21)) / 20,
        },
    ),
}


def drawn(case: Case, rng: np.random.Generator, n: int) -> tuple[list[Example], list[Example]]:
    labels = [case.label(rng) for _ in range(n)]
    first, second = ([{"label": label, **case.own(rng, label)} for label in labels] for _ in range(2))
    return first, second


def frame(rows: Sequence[Example]) -> pl.DataFrame:
    return pl.DataFrame([{"id": i, **row} for i, row in enumerate(rows)])


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CASES)
def test_against_the_library_over_all_swaps(name: str, seed: int) -> None:
    case = CASES[name]
    baseline, candidate = drawn(case, np.random.default_rng([seed, 1]), (4, 6, 8)[seed])
    found = compared_as_they_are(frame(baseline), frame(candidate), name, parameters=case.parameters)
    assert found.baseline_score == pytest.approx(case.oracle(baseline), abs=1e-12)
    assert found.candidate_score == pytest.approx(case.oracle(candidate), abs=1e-12)
    expected = example_pvalue(
        baseline, candidate, lambda u, v: case.oracle(list(u)) - case.oracle(list(v)), 1e-12
    )
    assert found.pvalue == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_a_missing_answer(name: str) -> None:
    case = CASES[name]
    baseline, candidate = drawn(case, np.random.default_rng(5), 12)
    part = frame(candidate[:-1])
    if case.missing is None:
        with pytest.raises(InputError, match="does not define the counts of a missing prediction"):
            compared_as_they_are(frame(baseline), part, name, missing="wrong")
        return
    found = compared_as_they_are(
        frame(baseline), part, name, missing="wrong", parameters=case.parameters, n_samples=100
    )
    assert found.candidate_score == pytest.approx(
        case.oracle([*candidate[:-1], {**candidate[-1], **case.missing}]), abs=1e-12
    )


@pytest.mark.extended
@each_with_engines(CASES, "duckdb")
def test_every_engine_counts_the_same(name: str, engine: Any) -> None:
    case = CASES[name]
    frames = [frame(rows) for rows in drawn(case, np.random.default_rng(6), 30)]
    options: dict[str, Any] = {"parameters": case.parameters, "n_samples": 10, "allow_unseen": True}
    found, expected = (
        trackperm.compare(*frames, name, engine=each, **options) for each in (engine, "polars")
    )
    assert (found.count_table.candidate == expected.count_table.candidate).all()
    assert (found.count_table.multiplicities == expected.count_table.multiplicities).all()


LOGGED = ["rmse", "r2", "cohen_kappa", "quadratic_weighted_kappa", "weighted_f1", "multiclass_mcc", "ece"]


@pytest.mark.extended
@pytest.mark.parametrize("name", LOGGED)
def test_logged_results_are_verified(name: str, tmp_path: Path) -> None:
    """The counts and the document of the statistic are enough to compute the result again."""
    rng = np.random.default_rng(2)
    label = rng.integers(3, size=12)
    frames = [
        numbered(
            prediction=np.where(rng.random(12) < rate, label, rng.integers(4, size=12)),
            confidence=rng.integers(0, 101, size=12) / 100,
            label=label,
        )
        for rate in (0.5, 0.7)
    ]
    found = compared_as_they_are(*frames, name)
    for path, content in evidence(found).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    assert trackperm.verify(tmp_path).matches
    report.html(found)


def values(text: str, prediction: list[Any], label: list[Any]) -> list[float]:
    """A counter on one example after the other."""
    spec = read_statistic(f"counts: {{a: '{text}'}}\nscore: a", "spec")
    data = pl.DataFrame({"prediction": prediction, "label": label})
    return with_counters_of(data, spec)[:, -1].to_list()


def test_ranking_counters() -> None:
    lists = [["a", "b", "a"], ["c"], [], ["b", "b", "a"]], [["a", "b"], ["a"], ["a"], ["a", "a"]]
    assert values("reciprocal_rank(prediction, label)", *lists) == [1.0, 0.0, 0.0, 1 / 3]
    assert values("reciprocal_rank(prediction, label, 2)", *lists) == [1.0, 0.0, 0.0, 0.0]
    assert values("ndcg(prediction, label)", *lists) == pytest.approx([1.0, 0.0, 0.0, 0.5])
    assert values("ndcg(prediction, label, 1)", *lists) == [1.0, 0.0, 0.0, 0.0]
    assert values("ndcg(prediction, label)", ["x y", "y"], ["y", ""]) == pytest.approx([1 / np.log2(3), 0.0])
    assert values("ndcg(prediction, label)", [[1, 2]], [[2, 1]]) == pytest.approx([1.0])
    with pytest.raises(SpecError, match="`ndcg` takes an integer here, not text `'a'`"):
        read_statistic("counts: {a: \"ndcg(p, label, 'a')\"}\nscore: a", "spec")


def test_a_negative_cutoff_is_refused() -> None:
    baseline, candidate = drawn(CASES["ndcg"], np.random.default_rng(1), 4)
    with pytest.raises(InputError, match="the cutoff `k` is -1; expected at least 1, or 0 for all"):
        compared_as_they_are(frame(baseline), frame(candidate), "ndcg", parameters={"k": -1})


def test_ter_needs_sacrebleu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.ter", None)
    baseline, candidate = drawn(CASES["ter"], np.random.default_rng(1), 4)
    with pytest.raises(InputError, match="`sacrebleu`, which is not installed") as caught:
        compared_as_they_are(frame(baseline), frame(candidate), "ter")
    assert "pip install sacrebleu" in str(caught.value.hint)


def test_confidence_at_the_ends_of_bins() -> None:
    """A bin contains its upper end, and the first one 0, also where tenths are inexact in floats."""
    rows = [{"label": 1, "prediction": 1, "confidence": tenth / 10} for tenth in range(11)]
    found = compared_as_they_are(frame(rows), frame(rows), "ece")
    assert found.baseline_score == pytest.approx(0.5)
    assert found.candidate_score == pytest.approx(calibration(rows))
    with pytest.raises(InputError, match="`ece` needs numbers from 0 to 1"):
        compared_as_they_are(frame([{**row, "confidence": 1.5} for row in rows]), frame(rows), "ece")


def test_probabilities_of_bins_are_counted_in_units() -> None:
    statistic = load_statistic("ece")
    assert statistic.classes == tuple(range(10))
    assert statistic.adds_classes
    assert not statistic.greater_is_better
