"""A score that may be a model's confidence in its own answer is no score of quality."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from support.questions import asked, the_one

from trackperm.errors import InputError

N = 12
SCORES = [0.5 + i / 40 for i in range(N)]
TEXTS = [f"answer {i}" for i in range(N)]


def frame(**columns: Any) -> pl.DataFrame:
    whole = {name: own if isinstance(own, list) else [own] * N for name, own in columns.items()}
    return pl.DataFrame({"id": [f"q{i}" for i in range(N)], "score": SCORES, **whole})


@pytest.mark.parametrize(
    ("columns", "beside"),
    [
        ({"start": list(range(N)), "end": list(range(N)), "answer": TEXTS}, "start"),
        ({"start": list(range(N)), "end": list(range(N)), "answer": TEXTS, "gold": TEXTS}, "start"),
        ({"question": TEXTS, "answer": TEXTS, "start": list(range(N)), "end": list(range(N))}, "start"),
        ({"category_id": 1, "bbox": [[1.0, 2.0]] * N}, "bbox"),
        ({"prediction": ["cat", "dog"] * 6}, "prediction"),
        ({"query_id": TEXTS, "doc_id": TEXTS, "rank": 1}, "doc_id"),
        ({"query": TEXTS, "docno": TEXTS}, "docno"),
        ({"translation": TEXTS, "score": [-1.0 - i / 7 for i in range(N)]}, "translation"),
        ({"hypothesis": TEXTS}, "hypothesis"),
        ({"source": TEXTS, "translation": TEXTS, "score": [-1.0 - i / 7 for i in range(N)]}, "translation"),
        ({"question": TEXTS, "answer": TEXTS, "logprobs": SCORES}, "logprobs"),
        ({"Answer": TEXTS}, "Answer"),
    ],
)
def test_a_score_beside_an_output(columns: dict[str, Any], beside: str) -> None:
    run = frame(**columns)
    with pytest.raises(InputError, match=f"confidence in its own .* stands beside `{beside}`") as caught:
        asked(run, run)
    assert "`--metric score` compares means of `score`" in str(caught.value.hint)
    assert the_one(run, run, metrics=("score",)).found == ()


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"question": TEXTS},
        {"doc_id": TEXTS},
        {"query_id": TEXTS, "rank": list(range(N))},
        {"category_id": list(range(N)), "class": ["a", "b"] * 6},
        {"answer": TEXTS, "judge": "gpt-4"},
        {"answer": TEXTS, "comment": TEXTS},
        {"answer": TEXTS, "verdict": "good"},
        {"answer": TEXTS, "explanation": TEXTS},
        {"answer": TEXTS, "expected": TEXTS},
        {"answer": TEXTS, "metric": "bleu"},
        {"answer": TEXTS, "score": [i % 5 for i in range(N)]},
        {"answer": TEXTS, "score": [float(i % 2) for i in range(N)]},
        {"start": SCORES, "end": SCORES},
        {"start": list(range(N))},
    ],
)
def test_a_score_of_quality(columns: dict[str, Any]) -> None:
    run = frame(**columns)
    statistic = the_one(run, run)
    assert statistic.chosen == "the only score, `score`"
    assert not [note for note in statistic.found if note.startswith("look: `score`")]


def test_a_score_beside_question_and_answer() -> None:
    """Most such logs hold scores of a judge."""
    run = frame(question=TEXTS, answer=TEXTS)
    statistic = the_one(run, run)
    assert statistic.found[0] == (
        "look: `score` of `run 0` may be a model's confidence in its own output, `answer`; `--metric score`"
        " says that it is a judgement of it"
    )
    grades = run.with_columns(score=pl.Series([i % 5 + 1 for i in range(N)]))
    assert the_one(grades, grades).found == ()
    models = run.with_columns(score=pl.Series([i / 7 - 1 for i in range(N)]))
    assert the_one(models, models).found[0].startswith("look: `score`")
