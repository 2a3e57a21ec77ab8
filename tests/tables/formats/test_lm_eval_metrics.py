"""Metrics over all samples, for each of which the harness logs label and prediction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.eval_logs import lm_eval_sample, write_lines

from trackperm.tables import read_examples
from trackperm.tables.table import ExampleTable

CHOICES = [["-1.5", "False"], ["-0.5", "True"]]


def table_of(path: Path, *values: dict[str, Any], **more: Any) -> ExampleTable:
    """The table of samples with these metrics."""
    samples = []
    for i, metrics in enumerate(values):
        sample = lm_eval_sample(i, 0.0, metrics=list(metrics), **metrics, **more)
        if "exact_match" not in metrics:
            del sample["exact_match"]
        samples.append(sample)
    write_lines(path, samples)
    return read_examples(path)


def test_translations(tmp_path: Path) -> None:
    pairs = [["ein Haus", "a house"], ["zwei", "two"]]
    found = table_of(tmp_path / "a", *({"bleu": pair, "ter": pair, "chrf": pair} for pair in pairs))
    assert found.whole_log_metrics == {"bleu": "bleu", "ter": "ter", "chrf": "chrf"}
    assert found.metrics == {}
    assert found.frame["label"].to_list() == ["ein Haus", "zwei"]
    assert found.frame["prediction"].to_list() == ["a house", "two"]


def test_one_reference_in_a_list(tmp_path: Path) -> None:
    found = table_of(tmp_path / "a", {"bleu": [["ein Haus"], "a house"]})
    assert found.whole_log_metrics == {"bleu": "bleu"}
    assert found.frame["label"].to_list() == ["ein Haus"]


@pytest.mark.parametrize(
    "metrics",
    [
        {"bleu": [["ein Haus", "Haus"], "a house"]},
        {"bleu": ["ein Haus", "a house"], "ter": ["ein Haus", "house"]},
        {"word_perplexity": [-100.5, 20], "bits_per_byte": [-100.5, 90]},
        {"f1": [2, 1]},
    ],
    ids=["several references", "other texts", "perplexities", "f1 of other classes"],
)
def test_metrics_without_a_built_in_statistic(tmp_path: Path, metrics: dict[str, Any]) -> None:
    assert table_of(tmp_path / "a", metrics).whole_log_metrics == dict.fromkeys(metrics, "")


def test_choices_get_predictions(tmp_path: Path) -> None:
    metrics = [{"acc": float(i == 0), "f1": [0, i], "brier_score": [0, "[0.5 0.5]"]} for i in range(2)]
    found = table_of(tmp_path / "a", *metrics, filtered_resps=CHOICES)
    assert found.metrics == {"acc": "acc"}
    assert found.whole_log_metrics == {"f1": "f1", "brier_score": ""}
    assert (found.frame["label"].to_list(), found.frame["prediction"].to_list()) == ([0, 0], [0, 1])


@pytest.mark.parametrize(("label", "statistic"), [(1, "mcc"), (2, "multiclass_mcc")])
def test_matthews_correlation_of_two_or_more_classes(tmp_path: Path, label: int, statistic: str) -> None:
    found = table_of(tmp_path / "a", {"mcc": [0, 1]}, {"mcc": [label, 1]}, filtered_resps=CHOICES)
    assert found.whole_log_metrics == {"mcc": statistic}


def test_other_members_are_no_metrics(tmp_path: Path) -> None:
    found = table_of(tmp_path / "a", {"exact_match": 1.0}, subject="sums")
    assert (found.metrics, found.whole_log_metrics) == ({"exact_match": "exact_match"}, {})
