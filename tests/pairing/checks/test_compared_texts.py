"""Texts with which a spec compares a column, and that no run has."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import trackperm
from trackperm.errors import InputError
from trackperm.statistic import read_statistic

VERDICTS = ["CORRECT", "INCORRECT", "NOT_ATTEMPTED"] * 6


def run(verdicts: list[Any], **more: list[Any]) -> pl.DataFrame:
    return pl.DataFrame({"id": range(len(verdicts)), "verdict": verdicts, **more})


def compared(spec: str, *runs: pl.DataFrame, **options: Any) -> trackperm.Comparison:
    return trackperm.compare(*runs, read_statistic(f"name: own\n{spec}", "own"), **options)


def share(of: str) -> str:
    return f"counts: {{matches: {of}, n: 1}}\nscore: matches / n\n"


@pytest.mark.parametrize(
    ("of", "said"),
    [
        ("verdict == 'GOOD'", "'GOOD' in `verdict`: `verdict` of `baseline` has 'CORRECT' (6), 'INCORRECT'"),
        ("verdict != 'NOT ATTEMPTED'", "'NOT ATTEMPTED' in `verdict`"),
        ("(verdict == 'CORRECT') | (verdict == 'Not-attempted')", "'Not-attempted' in `verdict`"),
    ],
)
def test_misspelt_texts_are_refused(of: str, said: str) -> None:
    runs = run(VERDICTS), run(VERDICTS[::-1])
    with pytest.raises(InputError, match="`own` counts a value that never occurs: no run has the") as caught:
        compared(share(of), *runs)
    assert said in caught.value.message
    assert compared(share(of), *runs, allow_unseen=True).n_examples == 18


def test_a_text_that_may_be_absent_is_noted() -> None:
    found = compared(share("(verdict == 'CORRECT') | (verdict == 'PARTLY')"), run(VERDICTS), run(VERDICTS))
    assert found.statistic.found[0].startswith(
        "look: no run has the value 'PARTLY' in `verdict`: `verdict` of"
    )


@pytest.mark.parametrize(
    ("verdicts", "other"), [(["CORRECT"] * 4, ["WRONG"] * 4), (["CORRECT", None] * 2, ["WRONG"] * 4)]
)
def test_a_text_of_one_run_suffices(verdicts: list[Any], other: list[Any]) -> None:
    found = compared(share("verdict == 'CORRECT'"), run(other), run(verdicts), missing="drop")
    assert found.statistic.found == ()


def test_a_label_that_is_never_predicted_is_no_misspelling() -> None:
    spec = share("(prediction == 'yes') & (label == 'yes')")
    runs = run(["a"] * 4, prediction=["no"] * 4, label=["yes", "no"] * 2)
    assert compared(spec, runs, runs).baseline_score == 0.0


def test_win_rate_needs_wins() -> None:
    runs = [run(won).rename({"verdict": "outcome"}) for won in (["model", "tie"] * 4, ["model", "other"] * 4)]
    with pytest.raises(InputError, match="`win_rate` counts a value that never occurs") as caught:
        trackperm.compare(*runs, "win_rate")
    assert "`--set win=VALUE` names the value" in str(caught.value.hint)
    found = trackperm.compare(*runs, "win_rate", parameters={"win": "model"})
    assert (found.baseline_score, found.candidate_score) == (0.75, 0.5)


@pytest.mark.parametrize(
    ("spec", "options"),
    [(None, {"metric": "winner=model_a"}), ("win_rate", {"parameters": {"win": "model_a"}})],
)
def test_the_name_of_a_column_that_varies_is_no_verdict(spec: str | None, options: dict[str, Any]) -> None:
    """`model_a` is the run itself in one row and its opponent in the next."""
    mine: dict[str, Any] = {
        "id": range(4),
        "model_a": ["mine", "other"] * 2,
        "model_b": ["other", "mine"] * 2,
        "winner": ["model_a", "model_b"] * 2,
    }
    frames = [pl.DataFrame(mine), pl.DataFrame({**mine, "winner": ["model_b", "model_a"] * 2})]
    if spec is not None:
        options = {**options, "columns": {"outcome": "winner"}}
    with pytest.raises(InputError, match="'model_a' in `winner` means something else from row to row"):
        trackperm.compare(*frames, spec, **options)
    found = trackperm.compare(*frames, spec, **options, allow_unseen=True)
    assert found.baseline_score == 0.5
    for other in ({"model_a": ["mine"] * 4}, {"model_b": ["x", "y"] * 2}):
        same = [
            frame.with_columns(**{name: pl.Series(values) for name, values in other.items()})
            for frame in frames
        ]
        assert trackperm.compare(*same, spec, **options).baseline_score == 0.5


BY_CLASS = """classes: [{}]
counts:
  tp: (prediction == class) & (label == class)
  size: where(prediction == class, 1, 0) + where(label == class, 1, 0)
  n: 1
score: 2 * tp / size
undefined: 0
"""


@pytest.mark.parametrize("classes", ["cat, dogg", "cow, zebra"])
def test_listed_classes_that_are_misspelt_or_all_absent_are_refused(classes: str) -> None:
    """Regression: `n: 1` kept the misspelt class, which halved the score, without a word."""
    labels = ["cat", "dog"] * 6
    runs = [run(labels, prediction=["cat"] * n + labels[n:], label=labels) for n in (8, 4)]
    with pytest.raises(InputError, match="`own` counts a value that never occurs: no run has the value"):
        compared(BY_CLASS.format(classes), *runs)


def test_a_listed_class_that_a_small_test_set_lacks_is_noted_once() -> None:
    labels = ["cat", "dog"] * 6
    runs = [run(labels, prediction=["cat"] * n + labels[n:], label=labels) for n in (8, 4)]
    found = compared(BY_CLASS.format("cat, dog, zebra"), *runs).statistic.found
    assert found == (
        "look: no run has the value 'zebra' in `label`: `label` of `baseline` has 'cat' (6), 'dog' (6)",
    )
    assert compared(BY_CLASS.format("cat, dog"), *runs).statistic.found == ()
