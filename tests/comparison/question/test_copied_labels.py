"""Columns with the name of a score that hold reference answers: the same values in all runs."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from support.questions import asked, the_one

from trackperm.errors import InputError

N = 24
OPTIONS = [i * 7 % 4 for i in range(N)]
OTHERS = [each if i % 3 == 0 else (each + 1) % 4 for i, each in enumerate(OPTIONS)]
RATINGS = [i * 7 % 26 / 5 for i in range(N)]
HALVES = [i % 2 for i in range(N)]
FLIPPED = [each if i % 5 else 1 - each for i, each in enumerate(HALVES)]


def runs(first: list[Any], second: list[Any], name: str = "prediction", **columns: Any) -> list[pl.DataFrame]:
    """Return two runs, of which one has its rows in another order."""
    frames = [pl.DataFrame({"id": range(N), name: each, **columns}) for each in (first, second)]
    return [frames[0], frames[1].reverse()]


def words(values: list[Any], *texts: str) -> list[str]:
    return [texts[int(each)] for each in values]


@pytest.mark.parametrize(
    ("frames", "hint"),
    [
        (runs(OPTIONS, OTHERS, correct=OPTIONS), "`--label correct` compares `prediction` with it by acc"),
        (runs(words(OPTIONS, *"ABCD"), words(OTHERS, *"ABCD"), "pred_letter", correct=OPTIONS), None),
        (runs(HALVES, FLIPPED, correct=HALVES), "`--label correct` compares"),
        (runs(words(HALVES, *"NY"), words(FLIPPED, *"NY"), "model_answer", correct=HALVES), "--prediction"),
        (
            runs(
                words(HALVES, "yes", "no"),
                words(FLIPPED, "yes", "no"),
                correct=words(HALVES, "False", "True"),
            ),
            "`--label correct` compares",
        ),
        (
            runs([each + 0.1 for each in RATINGS], RATINGS, "pred_score", score=RATINGS),
            "`--statistic spearman` with `--label score` and `--metric pred_score` compares",
        ),
        (
            runs([each / 9 for each in RATINGS], RATINGS, "cosine_score", score=RATINGS),
            "`--metric cosine_score`",
        ),
        (
            runs(*([f"{word} {i}" for i in range(N)] for word in ("so", "no")), "response", score=RATINGS),
            "The scores may be those of one run: score the outputs of each; ",
        ),
    ],
)
def test_labels_called_like_a_score(frames: list[pl.DataFrame], hint: str | None) -> None:
    """Regression: two runs were identical by their labels, and a gate let a regression pass."""
    with pytest.raises(
        InputError, match=r"may hold labels: it is the same in all runs, and `.* differs in"
    ) as caught:
        asked(*frames)
    score = "score" if "score" in frames[0].columns else "correct"
    assert (hint or "`--label") in str(caught.value.hint)
    assert f"`--metric {score}` compares it as a score" in str(caught.value.hint)
    assert the_one(*frames, metrics=(score,)) is not None
    assert the_one(frames[0], frames[0]) is not None


TEXTS, REWORDED = ([f"{word} {i}" for i in range(N)] for word in ("It is", "That is"))
FEW = [REWORDED[i] if i < 5 else text for i, text in enumerate(TEXTS)]


@pytest.mark.parametrize(
    "frames",
    [
        runs(TEXTS, REWORDED, correct=HALVES),
        runs(TEXTS, REWORDED, correct=words(HALVES, "False", "True")),
        runs(TEXTS, REWORDED, passed=[5] * N),
        runs(TEXTS, REWORDED, score=[4 + each for each in HALVES]),
        runs(TEXTS, FEW, score=RATINGS),
        runs(HALVES, FLIPPED, "latency_ms", score=RATINGS),
        runs(RATINGS, RATINGS[::-1], "response_time", correct=HALVES),
        runs(RATINGS, RATINGS[::-1], "judge_score", score=RATINGS, answer=TEXTS),
        runs(words(OPTIONS, *"ABCD"), words(OTHERS, *"BACD"), correct=[0] * 8 + [1] * 16),
        runs(OPTIONS, [each or 3 for each in OPTIONS], correct=[int(each > 0) for each in OPTIONS]),
    ],
)
def test_runs_that_are_equally_right(frames: list[pl.DataFrame]) -> None:
    """Answers in other words, other latencies and other wrong options are as right as before."""
    assert the_one(*frames).chosen.startswith("the")


def test_rows_that_cannot_be_matched() -> None:
    frames = [frame.with_columns(id=pl.lit(1)) for frame in runs(OPTIONS, OTHERS, correct=OPTIONS)]
    assert the_one(*frames).name == "correct"
    assert the_one(frames[0], frames[1][1:]).name == "correct"
