"""Metrics of lm-evaluation-harness: those with a number for each sample, and those over all samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trackperm.tables.json_values import is_score

_OF_TEXTS = ("bleu", "chrf", "ter")
_OF_CLASSES = ("f1", "mcc")
"""Metrics that are built-in statistics of the same name, and for which samples hold label and prediction."""

_PERPLEXITY = "perplexity"
"""Metric for which the harness logs the log-likelihood of each target, and not a perplexity."""


@dataclass(frozen=True)
class Metrics:
    """Metrics of samples.

    Attributes
    ----------
    of_samples : list of str
        Metrics with a number for each sample, which may be missing.
    of_log : mapping of str to str
        Metrics that are computed over all samples together, each with the built-in statistic that computes
        it from predictions and labels, or an empty text.
    labels, predictions : list or None
        Labels and predictions of the metrics over all samples; None if samples hold others.
    """

    of_samples: list[str]
    of_log: Mapping[str, str]
    labels: list[Any] | None = None
    predictions: list[Any] | None = None

    @classmethod
    def of(cls, samples: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Metrics:
        """Sort the members of samples that may be metrics, and find pairs of label and prediction."""
        of_samples = [name for name in names if all(is_score(sample.get(name)) for sample in samples)]
        lists = [sample.get("metrics") for sample in samples]
        named = {str(name) for each in lists if isinstance(each, list) for name in each}
        of_log = [name for name in names if name not in of_samples and (name in named or not named)]
        pairs = [_pair(sample, of_log) for sample in samples]
        found = [pair for pair in pairs if pair is not None]
        if len(found) < len(pairs) or len({type(value) for pair in found for value in pair}) != 1:
            return cls(of_samples, dict.fromkeys(of_log, ""))
        labels, predictions = ([pair[i] for pair in found] for i in (0, 1))
        statistics = {name: _statistic(name, {*labels, *predictions}) for name in of_log}
        return cls(of_samples, statistics, labels, predictions)


def holds_log_likelihoods(name: str, samples: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a metric is called perplexity and holds log-likelihoods: a perplexity is at least 1."""
    values = [sample[name] for sample in samples if sample.get(name) is not None]
    return name == _PERPLEXITY and bool(values) and all(value <= 0 for value in values)


def _pair(sample: Mapping[str, Any], metrics: Sequence[str]) -> tuple[Any, Any] | None:
    """Return label and prediction of a sample; None if its metrics have none, or others each."""
    found = {name: sample[name] for name in (*_OF_TEXTS, *_OF_CLASSES) if name in metrics and name in sample}
    pairs = list(map(_label_and_prediction, found.values()))
    return pairs[0] if pairs and all(pair == pairs[0] for pair in pairs) else None


def _label_and_prediction(value: object) -> tuple[Any, Any] | None:
    if not isinstance(value, list) or len(value) != 2:
        return None
    label, prediction = value
    if isinstance(label, list) and len(label) == 1:
        label = label[0]
    is_pair = type(label) is type(prediction) and type(label) in (str, int)
    return (label, prediction) if is_pair else None


def _statistic(name: str, values: set[Any]) -> str:
    """Return the built-in statistic of a metric, given all labels and predictions; empty if there is none."""
    if name in _OF_TEXTS and all(isinstance(value, str) for value in values):
        return name
    if name in _OF_CLASSES and values <= {0, 1}:
        return name
    return "multiclass_mcc" if name == "mcc" and all(isinstance(value, int) for value in values) else ""
