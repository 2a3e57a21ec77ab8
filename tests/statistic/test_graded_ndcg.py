"""Discounted cumulative gain of relevance grades, against scikit-learn, trec_eval and all swaps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
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
from trackperm.statistic.counters.rankings import ndcg

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


@pytest.mark.sample(4)
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


def _ranking(ranks: Sequence[int], items: Sequence[str]) -> list[str]:
    """A ranking of ten with these items at these ranks."""
    placed = dict(zip(ranks, items, strict=True))
    return [placed.get(rank, f"other {rank}") for rank in range(1, 11)]


def _of_items(rankings: Sequence[list[str]], n_relevant: int = 3) -> pl.DataFrame:
    labels = [list("abc"[:n_relevant])] * len(rankings)
    return pl.DataFrame({"id": range(len(rankings)), "prediction": rankings, "label": labels})


@pytest.mark.parametrize("items", list(permutations("abc")))
def test_items_of_equal_relevance_are_exchangeable(items: tuple[str, ...]) -> None:
    """Regression: sums in the order of items differed in the last bit, which broke ties: p = 0.0156."""
    perfect, missed = _ranking((1, 2, 3), "abc"), _ranking((1, 2, 8), "abc")
    old = [missed] * 7 + [perfect] * 21
    new = [perfect] * 7 + [_ranking((1, 2, 8), items)] + [perfect] * 20
    assert trackperm.compare(_of_items(old), _of_items(new), "ndcg").pvalue == pytest.approx(18 / 2**8)


@pytest.mark.parametrize("opposite", range(8))
def test_the_same_change_beside_other_items_is_the_same_difference(opposite: int) -> None:
    """Regression: 1 / log2(4) - 1 / log2(5) was another number beside an item at another rank."""
    places = [1, 2, 5, 6, 7, 8, 9, 10]
    sides = [
        [_ranking((place, 4 if (i == opposite) == is_new else 3), "ab") for i, place in enumerate(places)]
        for is_new in (False, True)
    ]
    same = [_ranking((1, 2), "ab")] * 20
    old, new = (_of_items([*side, *same], 2) for side in sides)
    assert trackperm.compare(old, new, "ndcg").pvalue == pytest.approx(18 / 2**8)


@pytest.mark.parametrize("n", range(1, 9))
def test_shares_of_the_best_ranking_add_up_to_one(n: int) -> None:
    """So an item that is lost is as much as an item that is alone, and a perfect ranking is 1."""
    items = [f"i{i}" for i in range(n)]
    label = pl.Series("label", [items] * 3)
    rankings = [items, items[:-1], ["x"] * (n - 1) + items[-1:]]
    perfect, without, alone = ndcg(pl.Series("prediction", rankings), label, 10, "linear")
    assert perfect == 1.0
    assert without + alone == 1.0


@pytest.mark.parametrize("name", ["ndcg", "mrr"])
def test_grades_are_of_items_of_text(name: str) -> None:
    run = pl.DataFrame({"id": [1, 2], "prediction": [[2, 5], [5, 2]], "label": ['{"2": 3}'] * 2})
    with pytest.raises(trackperm.TrackpermError) as caught:
        trackperm.compare(run, run, name)
    assert 'write integers as text, as the names in `{"2": 3}` are.' in str(caught.value)
