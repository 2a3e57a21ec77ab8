"""Discounted cumulative gain of relevance grades, against scikit-learn, trec_eval and all swaps."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import polars as pl
import pytest
from sklearn import metrics
from support.unit_swaps import example_pvalue

import trackperm
from trackperm.errors import InputError, SpecError

ITEMS = [f"d{i}" for i in range(7)]


def queries(seed: int, n: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return grades of the items for each query, and scores without ties of two systems."""
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 5, size=(n, len(ITEMS))) * (rng.random((n, len(ITEMS))) < 0.6)
    return grades, [rng.permuted(np.tile(np.arange(7.0), (n, 1)), axis=1) for _ in range(2)]


def frames(grades: np.ndarray, both: list[np.ndarray]) -> list[pl.DataFrame]:
    label = [json.dumps(dict(zip(ITEMS, row, strict=True))) for row in grades.tolist()]
    return [
        pl.DataFrame(
            {
                "id": [f"q{i}" for i in range(len(grades))],
                "label": label,
                "prediction": [[ITEMS[j] for j in np.argsort(-row)] for row in scores],
            }
        )
        for scores in both
    ]


@pytest.mark.parametrize("k", [0, 1, 3, 10])
@pytest.mark.parametrize("gain", ["linear", "exponential"])
def test_against_scikit_learn(k: int, gain: str) -> None:
    grades, both = queries(k, 40)
    gains = grades if gain == "linear" else 2.0**grades - 1
    found = trackperm.compare(*frames(grades, both), "ndcg", parameters={"k": k, "gain": gain})
    expected = [metrics.ndcg_score(gains, scores, k=k or None) for scores in both]
    assert [found.baseline_score, found.candidate_score] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("k", [2, 5])
def test_against_trec_eval(k: int) -> None:
    grades, both = queries(10 + k, 30)
    measure = ir_measures.nDCG @ k
    judged = {f"q{i}": dict(zip(ITEMS, map(int, row), strict=True)) for i, row in enumerate(grades.tolist())}
    found = trackperm.compare(*frames(grades, both), "ndcg", parameters={"k": k})
    run = {f"q{i}": dict(zip(ITEMS, row, strict=True)) for i, row in enumerate(both[1].tolist())}
    assert found.candidate_score == pytest.approx(
        ir_measures.calc_aggregate([measure], judged, run)[measure], rel=1e-12
    )


@pytest.mark.parametrize("seed", range(4))
def test_against_all_swaps(seed: int) -> None:
    grades, both = queries(20 + seed, 8)
    grades[0] = 0  # a query without relevant items
    found = trackperm.compare(*frames(grades, both), "ndcg", parameters={"k": 3})
    values = [
        [metrics.ndcg_score(row[None], own[None], k=3) for row, own in zip(grades, scores, strict=True)]
        for scores in both
    ]
    expected = example_pvalue(*values, lambda u, v: sum(u) - sum(v), slack=1e-12)
    assert found.pvalue == pytest.approx(float(expected), rel=1e-9)
    assert found.test.error_bound <= 1e-10


def test_grades_of_1_are_relevance_alone() -> None:
    label = [["d1", "d3"], ["d2"]]
    plain = [
        pl.DataFrame({"id": [1, 2], "label": label, "prediction": side})
        for side in ([["d1", "d2"], ["d2"]], [["d3", "d1"], ["d1", "d2"]])
    ]
    graded = [
        each.with_columns(
            label=pl.Series([json.dumps(dict.fromkeys(items, 1) | {"d9": 0}) for items in label])
        )
        for each in plain
    ]
    for name, parameters in (("ndcg", {"gain": "linear"}), ("ndcg", {"gain": "exponential"}), ("mrr", {})):
        found = [trackperm.compare(*each, name, parameters=parameters) for each in (plain, graded)]
        assert found[0].candidate_score == found[1].candidate_score
        assert found[0].pvalue == found[1].pvalue


def test_objects_of_json_lines(tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.jsonl" for i in range(2)]
    for path, first in zip(paths, ("d1", "d2"), strict=True):
        rows = [{"id": 1, "prediction": [first, "d3"], "label": {"d1": 3, "d2": 1}}]
        path.write_text("\n".join(map(json.dumps, rows)))
    found = trackperm.compare(*map(str, paths), "ndcg")
    best = 3 + 1 / np.log2(3)
    assert (found.baseline_score, found.candidate_score) == pytest.approx((3 / best, 1 / best))


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "an unknown gain": ('{"d1": 1}', {"gain": "squared"}, "does not know text parameter `gain`"),
    "text as a grade": ('{"d1": "high"}', {}, "expected relevant items and their grades"),
    "not JSON": ('{"d1": ', {}, "expected relevant items and their grades"),
    "a huge grade": ('{"d1": 61}', {"gain": "exponential"}, "has a grade above 60"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused(case: tuple[Any, dict[str, Any], str]) -> None:
    label, parameters, said = case
    frame = pl.DataFrame({"id": [1], "label": [label], "prediction": [["d1"]]})
    with pytest.raises((InputError, SpecError), match=said):
        trackperm.compare(frame, frame, "ndcg", parameters=parameters)


def test_huge_grades_are_linear_gains() -> None:
    frame = pl.DataFrame({"id": [1], "label": ['{"d1": 61}'], "prediction": [["d1"]]})
    assert trackperm.compare(frame, frame, "ndcg").candidate_score == Fraction(1)
