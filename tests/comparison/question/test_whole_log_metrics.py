"""Logs with metrics that are computed over all samples together: no other question is put in their place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.eval_logs import lm_eval_sample, write_lines
from support.questions import asked, the_one

import trackperm
from trackperm.errors import InputError

LABEL = "the quick brown fox number {} jumps over the lazy dog"
CHOICES = [["-1.5", "False"], ["-0.5", "True"]]


def log(path: Path, *metrics: dict[str, Any], **more: Any) -> Path:
    samples = []
    for i, values in enumerate(metrics):
        sample = lm_eval_sample(i, 0.0, metrics=list(values), **values, **more)
        del sample["exact_match"]
        samples.append(sample)
    write_lines(path, samples)
    return path


def translations(path: Path, n_equal: int, other: str) -> Path:
    """A log of 20 translations: some are their references, and the rest is another text."""
    pairs = [
        [LABEL.format(i), LABEL.format(i) if i < n_equal else other.format(LABEL.format(i))]
        for i in range(20)
    ]
    return log(path, *({"bleu": pair, "ter": pair, "chrf": pair} for pair in pairs))


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """The candidate has no exact match any more, and is much better by each of its metrics."""
    return translations(tmp_path / "old", 8, "cats"), translations(tmp_path / "new", 0, "{} today")


def test_accuracy_is_not_put_in_their_place(runs: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match=r"no metric of `.*old` has a number for each sample") as caught:
        trackperm.compare(*runs)
    assert "`bleu`, `ter`, `chrf` are computed over all samples together" in caught.value.message
    assert caught.value.hint == (
        "`--statistic bleu --statistic ter --statistic chrf` computes this from predictions and labels."
    )


@pytest.mark.parametrize("statistic", ["bleu", "ter", "chrf"])
def test_the_statistics_of_the_hint_work(runs: tuple[Path, Path], statistic: str) -> None:
    assert str(trackperm.compare(*runs, statistic).verdict) == "better"


def test_one_that_is_named_as_a_metric(runs: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match="the metric `ter` is computed over all samples together") as caught:
        asked(*runs, metrics=("ter",))
    assert caught.value.hint == "`--statistic ter` computes this from predictions and labels."


@pytest.mark.parametrize("options", [{}, {"metrics": ("word_perplexity",)}])
def test_one_that_no_statistic_computes(tmp_path: Path, options: dict[str, Any]) -> None:
    run = log(tmp_path / "a", *({"word_perplexity": [-100.0 - i, 20]} for i in range(5)))
    with pytest.raises(InputError, match="`word_perplexity` is computed over all samples together") as caught:
        asked(run, run, **options)
    assert caught.value.hint == "no built-in statistic computes `word_perplexity` from such a log."


def test_choices_are_compared_by_the_statistic_of_the_hint(tmp_path: Path) -> None:
    old, new = (
        log(
            tmp_path / name,
            *({"mcc": [i % 2, i % 2 if i < n else 1 - i % 2]} for i in range(20)),
            filtered_resps=CHOICES,
        )
        for name, n in (("old", 8), ("new", 18))
    )
    with pytest.raises(InputError) as caught:
        trackperm.compare(old, new)
    assert caught.value.hint == "`--statistic mcc` computes this from predictions and labels."
    found = trackperm.compare(old, new, "mcc")
    assert (found.baseline_score, found.candidate_score) == (pytest.approx(-0.2), pytest.approx(0.8))


def test_what_is_left_out_beside_other_metrics_is_said(tmp_path: Path) -> None:
    values = [{"acc": 1.0, "brier_score": [0, "[0.5 0.5]"]} for _ in range(3)]
    run = log(tmp_path / "a", *values)
    assert the_one(run, run).found == (
        "look: not compared: `brier_score`, which is computed over all samples together",
    )
    run = log(tmp_path / "b", *({**value, "f1": [i % 2, 1]} for i, value in enumerate(values)))
    assert the_one(run, run).found == (
        "look: not compared: `brier_score`, `f1`, which are computed over all samples together;"
        " `--statistic f1` compares predictions with labels by it",
    )
