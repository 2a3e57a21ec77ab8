"""Micro averages against scikit-learn and all swaps, of all classes and of some."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn import metrics
from support.budget import cases
from support.unit_swaps import example_pvalue

import trackperm
from trackperm.errors import InputError, InputTypeError
from trackperm.statistic import load_statistic

NAMES = {
    "micro_precision": metrics.precision_score,
    "micro_recall": metrics.recall_score,
    "micro_f1": metrics.f1_score,
}
CLASSES = ["bird", "cat", "dog"]
RESTRICTED: dict[str, tuple[dict[str, str], list[str]]] = {
    "all": ({}, CLASSES),
    "two": ({"labels": "cat, dog"}, ["cat", "dog"]),
    "all but one": ({"excluded": "bird"}, ["cat", "dog"]),
    "two but one": ({"labels": "cat,bird", "excluded": "bird"}, ["cat"]),
    "one that never occurs": ({"labels": "cat,fish"}, ["cat", "fish"]),
}


def oracle(name: str, label: Any, prediction: Any, labels: Sequence[str | int]) -> float:
    return float(NAMES[name](label, prediction, labels=labels, average="micro", zero_division=0))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", RESTRICTED.values(), ids=RESTRICTED)
def test_against_all_swaps_and_scikit_learn(name: str, case: tuple[dict[str, str], list[str]]) -> None:
    parameters, labels = case
    rng = np.random.default_rng(sorted(NAMES).index(name))
    score = cache(partial(oracle, name, labels=labels))  # once for each distinct table of answers
    for _ in range(cases(4)):
        label, first, second = map(tuple, rng.choice(CLASSES, size=(3, int(rng.integers(2, 8)))).tolist())
        found = trackperm.compare(
            label, first, second, statistic=name, parameters=parameters, allow_unseen=True
        )
        assert found.baseline_score == pytest.approx(oracle(name, label, first, labels), abs=1e-14)
        assert found.candidate_score == pytest.approx(oracle(name, label, second, labels), abs=1e-14)

        def difference(u: Any, v: Any) -> float:
            return float(np.subtract(*(score(*zip(*sorted(side), strict=True)) for side in (u, v))))

        sides = [list(zip(label, side, strict=True)) for side in (first, second)]
        expected = example_pvalue(*sides, difference, slack=1e-12)
        assert found.pvalue == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_of_all_classes_they_are_the_accuracy(name: str) -> None:
    label, first, second = np.random.default_rng(5).choice(CLASSES, size=(3, 300)).tolist()
    found, accuracy = (trackperm.compare(label, first, second, statistic=each) for each in (name, "accuracy"))
    assert found.pvalue == pytest.approx(accuracy.pvalue, rel=1e-12)
    assert (found.baseline_score, found.candidate_score) == pytest.approx(
        (accuracy.baseline_score, accuracy.candidate_score)
    )


@pytest.mark.parametrize("name", NAMES)
def test_of_some_classes_they_are_exact_for_many_examples(name: str) -> None:
    label, first, second = np.random.default_rng(6).choice(CLASSES, size=(3, 20_000)).tolist()
    found = trackperm.compare(label, first, second, statistic=name, parameters={"excluded": "bird"})
    assert found.test.error_bound <= 1e-10


def test_integers_and_booleans_are_classes() -> None:
    label, first, second = [1, 0, 1, 2], [1, 1, 0, 2], [1, 0, 1, 0]
    found = trackperm.compare(label, first, second, statistic="micro_f1", parameters={"labels": "1,2"})
    assert found.baseline_score == oracle("micro_f1", label, first, [1, 2])
    both = [[bool(x) for x in side] for side in (label, first, second)]
    found = trackperm.compare(*both, statistic="micro_recall", parameters={"labels": "true"})
    assert found.candidate_score == metrics.recall_score(both[0], both[2])
    with pytest.raises(InputTypeError, match="the parameter `labels` of `micro_f1` is 1, of type integer"):
        load_statistic("micro_f1", parameters={"labels": 1})


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_prediction_is_of_no_class(name: str) -> None:
    label = ["cat", "dog", "bird"]
    frames = [
        pl.DataFrame({"id": [1, 2, 3], "label": label, "prediction": side})
        for side in (["cat", None, "bird"], ["cat", "dog", "cat"])
    ]
    found = trackperm.compare(*frames, name, missing="wrong")
    expected = {"micro_precision": 1.0, "micro_recall": 2 / 3, "micro_f1": 4 / 5}
    assert found.baseline_score == pytest.approx(expected[name])
    worst = trackperm.compare(*frames, name, missing="worst")
    assert worst.baseline_score == 1.0  # the baseline's missing prediction is the best possible one


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("parameters", [{"labels": "cat,dgo"}, {"excluded": "dgo"}], ids=str)
def test_a_listed_class_that_never_occurs_is_refused(name: str, parameters: dict[str, str]) -> None:
    runs = (["cat", "dog", "dog"], ["cat", "dog", "cat"], ["cat", "fish", "dog"])
    with pytest.raises(InputError, match="lists the class 'dgo', which is neither a label") as caught:
        trackperm.compare(*runs, statistic=name, parameters=parameters)
    assert "Did you mean `dog`?" in str(caught.value.hint)
    (parameter,) = parameters
    trackperm.compare(*runs, statistic=name, parameters={parameter: "cat,fish"})  # a run predicts it
    trackperm.compare(*runs, statistic=name, parameters=parameters, allow_unseen=True)


def test_leaderboards_refuse_a_listed_class_that_never_occurs() -> None:
    label = ["cat", "dog", "dog"]
    runs = {
        f"run {i}": pl.DataFrame({"id": [1, 2, 3], "label": label, "prediction": side})
        for i, side in enumerate((["cat", "dog", "cat"], ["cat", "fish", "dog"]))
    }
    for wrong, listed in ((True, "cat,dgo"), (False, "cat,fish")):
        with pytest.raises(InputError, match="'dgo'") if wrong else nullcontext():
            trackperm.leaderboard(runs, "micro_f1", parameters={"labels": listed})
