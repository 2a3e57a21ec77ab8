"""Labels that are the verdicts of a judge may differ between the runs; reference answers may not."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import trackperm
from trackperm.errors import InputError, PairingError

N = 12
RIGHT = [[i % 3 > 0 for i in range(N)], [i % 4 > 0 for i in range(N)]]
DIFFERS = "`label` differs between the runs on 5 of 12 examples"


def runs(words: tuple[str, str], **columns: Any) -> list[pl.DataFrame]:
    """Two runs in which right examples have the second label and the score 1."""
    return [
        pl.DataFrame({"id": range(N), "label": [words[i] for i in right], "score": [*map(int, right)]})
        .with_columns(**{name: pl.lit(value) for name, value in columns.items()})
        for right in RIGHT
    ]  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"label": "label"}])
def test_the_column_that_is_tested_is_not_checked(options: dict[str, str]) -> None:
    pair = runs(("bad", "good"), output="x")
    found = trackperm.compare(*pair, metric="label=good", columns=options)
    assert found.n_discordant == 5
    assert "labels were not compared: `label` is the column that is tested" in found.pairing.notes


@pytest.mark.parametrize(
    "words", [("wrong", "correct"), ("hallucinated", "factual"), ("irrelevant", "relevant")]
)
@pytest.mark.parametrize("columns", [{}, {"explanation": "x"}])
def test_verdicts_in_words_and_numbers(words: tuple[str, str], columns: dict[str, str]) -> None:
    found = trackperm.compare(*runs(words, **columns))
    assert found.n_discordant == 5
    assert (
        "labels were not compared: `label` says in words what `score` says in numbers" in found.pairing.notes
    )


def test_verdicts_that_do_not_say_which_is_better() -> None:
    notes = trackperm.compare(*runs(("A", "B"))).pairing.notes
    said = "`label` says in words what `score` says in numbers; 'B' is taken for better than 'A'"
    assert f"look: labels were not compared: {said}" in notes


@pytest.mark.parametrize(
    ("words", "option"),
    [(("factual", "hallucinated"), "label!=hallucinated"), (("good", "other"), "label=good")],
)
def test_verdicts_that_contradict_the_scores(words: tuple[str, str], option: str) -> None:
    """Phoenix writes 1 for an answer that is hallucinated."""
    pair = runs(words, explanation="x")
    with pytest.raises(InputError, match=f"but such examples have the `label` '{words[1]}'") as caught:
        trackperm.compare(*pair)
    assert option in str(caught.value.hint)
    assert trackperm.compare(*pair, metric=option).difference < 0


def test_grades_below_a_verdict() -> None:
    pair = [run.with_columns(score=pl.col("score") / 2 + pl.col("id") / 30) for run in runs(("bad", "good"))]
    judged = [run.with_columns(explanation=pl.lit("x")) for run in pair]
    assert trackperm.compare(*judged, metric="score").n_discordant == 5
    with pytest.raises(PairingError, match=DIFFERS):
        trackperm.compare(*pair, metric="score")


def test_reference_answers_stay_refused() -> None:
    """A model that always says the same is right where the reference answer is that."""
    always = runs(("wrong", "right"))
    reversed_ = [always[0], always[0].with_columns(pl.col("label", "score").reverse())]
    overlapping = [run.with_columns(score=pl.Series([0, 1] * 6), judge=pl.lit("x")) for run in always]
    answered = runs(("wrong", "right"), output="x")
    for why, pair in {"reversed": reversed_, "overlapping": overlapping, "answered": answered}.items():
        with pytest.raises(PairingError, match="`label` differs between the runs") as caught:
            trackperm.compare(*pair, metric="score")
        assert "Verdicts of a judge are compared by `--metric label=VALUE`." in str(caught.value.hint), why
