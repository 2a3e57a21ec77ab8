from __future__ import annotations

import pytest
from support.specs import parse

from trackperm.statistic import builtin_names, load_statistic
from trackperm.statistic.expressions.equality import Equality

CLASSES = {
    "accuracy",
    "balanced_accuracy",
    "cohen_kappa",
    "ece",
    "error_rate",
    "exact_match",
    "f1",
    "f_beta",
    "jaccard",
    "macro_f1",
    "macro_precision",
    "macro_recall",
    "mcc",
    "micro_f1",
    "micro_precision",
    "micro_recall",
    "multiclass_mcc",
    "precision",
    "recall",
    "specificity",
    "weighted_f1",
    "weighted_precision",
    "weighted_recall",
}


def of(name: str, *texts: str) -> Equality:
    return Equality.of(name, [parse(text).bind({"positive": 1, "k": 2}) for text in texts])


@pytest.mark.parametrize(
    ("text", "names", "parameters", "others", "is_all"),
    [
        ("prediction == label", {"label"}, set(), set(), True),
        ("label != prediction", {"label"}, set(), set(), True),
        ("(prediction == positive) & (label == positive)", set(), {"positive"}, set(), True),
        ("(prediction == 'yes') | (prediction != 2)", set(), set(), {"'yes'", "2"}, True),
        ("where(prediction == label, 2, 0)", {"label"}, set(), set(), True),
        ("prediction == label + 1", set(), set(), {"label + 1"}, True),
        ("abs(prediction - label)", set(), set(), set(), False),
        ("(prediction == label) | (abs(prediction - label) < k)", {"label"}, set(), set(), False),
        ("token_matches(prediction, label)", set(), set(), set(), False),
        ("(prediction > 0) == (label > 0)", set(), set(), set(), False),
        ("is_among(prediction, 'a,b') * (prediction == label)", {"label"}, set(), {"'a,b'"}, True),
        ("is_among(prediction)", set(), set(), set(), False),
        ("label == positive", set(), set(), set(), True),
    ],
)
def test_names_and_values_that_predictions_are_compared_with(
    text: str, names: set[str], parameters: set[str], others: set[str], is_all: bool
) -> None:
    expected = Equality(frozenset(names), frozenset(parameters), frozenset(others), frozenset(), is_all)
    assert of("prediction", text) == expected


@pytest.mark.parametrize(("column", "lists"), [("prediction", {"k"}), ("label", {"k"}), ("id", set())])
def test_parameters_with_lists_of_classes(column: str, lists: set[str]) -> None:
    found = of(column, "where(is_among(prediction, k), is_among(label, k), label == positive)")
    assert found.lists == lists


def test_predictions_and_labels_that_share_a_comparison() -> None:
    counts = "(prediction == positive) & (label == positive)", "label == 'x'", "prediction == 'y'"
    assert of("prediction", *counts).shares(of("label", *counts))
    assert not of("prediction", *counts[1:]).shares(of("label", *counts[1:]))


@pytest.mark.parametrize("name", builtin_names())
def test_built_ins(name: str) -> None:
    statistic = load_statistic(name)
    assert statistic.tells_classes == (name in CLASSES)
    assert statistic.has_positive == ("positive" in statistic.parameters)
