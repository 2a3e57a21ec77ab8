"""Scores that may be a model's confidence are refused, or compared with a note."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from support.questions import asked, the_one

from trackperm.errors import InputError

N = 12
SCORES = [0.5 + i / 40 for i in range(N)]
TEXTS = [f"answer {i}" for i in range(N)]
PAIRS = [f"q{i // 2}" for i in range(N)]

# fmt: off
JUDGED = [
    "judge_reasoning", "judge_name", "llm_judge", "grader_model", "score_reason", "score_explanation",
    "eval_comment", "criteria_text", "rubric_id", "measure", "measure_name", "score_name", "evaluator_name",
    "scorer_name", "annotation_name",
]
ASKED = [
    "question", "user_message", "user_prompt", "user_query", "question_text", "input_text",
    "problem_statement", "request", "goal", "image", "dialogue", "history", "messages", "model_input",
    "reasoning",
]
# fmt: on


def frame(**columns: Any) -> pl.DataFrame:
    whole = {name: own if isinstance(own, list) else [own] * N for name, own in columns.items()}
    return pl.DataFrame({"id": [f"q{i}" for i in range(N)], "score": SCORES, **whole})


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("columns", "beside"),
    [
        ({"start": list(range(N)), "end": list(range(N)), "answer": TEXTS}, "start"),
        ({"start": list(range(N)), "end": list(range(N)), "answer": TEXTS, "gold": TEXTS}, "start"),
        ({"question": TEXTS, "answer": TEXTS, "start": list(range(N)), "end": list(range(N))}, "start"),
        ({"category_id": 1, "bbox": [[1.0, 2.0]] * N}, "bbox"),
        ({"prediction": ["cat", "dog"] * 6}, "prediction"),
        ({"query_id": TEXTS, "doc_id": TEXTS, "rank": 1}, "doc_id"),
        ({"query": PAIRS, "docno": TEXTS}, "docno"),
        ({"query": PAIRS, "docno": TEXTS, "score": [9.7 + i / 7 for i in range(N)]}, "docno"),
        ({"topic": PAIRS, "docno": TEXTS, "score": [9.7 - i / 7 for i in range(N)]}, "docno"),
        ({"bbox": [[1.0, 2.0]] * N, "score": [90.3 + i for i in range(N)]}, "bbox"),
        ({"entity": "PER", "start": list(range(N)), "end": list(range(N))}, "start"),
        ({"prompt_version": "b", "input_language": "en", "error_message": "none", "answer": TEXTS}, "answer"),
        ({"prompt_tokens": list(range(N)), "prompt_id": TEXTS, "answer": TEXTS}, "answer"),
        ({"reasoning": TEXTS, "answer": TEXTS, "score": [-1.0 - i / 7 for i in range(N)]}, "answer"),
        ({"translation": TEXTS, "score": [-1.0 - i / 7 for i in range(N)]}, "translation"),
        ({"hypothesis": TEXTS}, "hypothesis"),
        ({"source": TEXTS, "translation": TEXTS, "score": [-1.0 - i / 7 for i in range(N)]}, "translation"),
        ({"question": TEXTS, "answer": TEXTS, "logprobs": SCORES}, "logprobs"),
        ({"Answer": TEXTS}, "Answer"),
        ({"image": TEXTS, "text": TEXTS}, "text"),
        ({"audio_path": TEXTS, "sentence": TEXTS}, "sentence"),
        ({"head": PAIRS, "relation": "in", "tail": TEXTS}, "tail"),
        ({"mention": TEXTS, "wikidata_id": TEXTS}, "wikidata_id"),
        ({"start": list(range(N)), "end": list(range(N)), "entity_id": TEXTS}, "entity_id"),
    ],
)
def test_a_score_beside_an_output(columns: dict[str, Any], beside: str) -> None:
    run = frame(**columns)
    with pytest.raises(InputError, match=f"confidence in its own .* has a column `{beside}`") as caught:
        asked(run, run)
    assert "`--metric score` compares means of `score`" in str(caught.value.hint)
    assert the_one(run, run, metrics=("score",)).found == ()


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"question": TEXTS},
        {"doc_id": TEXTS},
        {"query_id": TEXTS, "rank": list(range(N))},
        {"category_id": list(range(N)), "class": ["a", "b"] * 6},
        {"answer": TEXTS, "judge": "gpt-4"},
        {"answer": TEXTS, "verdict": "good"},
        {"answer": TEXTS, "expected": TEXTS},
        {"answer": TEXTS, "metric": "bleu"},
        {"answer": TEXTS, "score": [i % 5 for i in range(N)]},
        {"answer": TEXTS, "score": [float(i % 2) for i in range(N)]},
        {"start": SCORES, "end": SCORES},
        {"start": list(range(N))},
        *({"response": TEXTS, name: "quality"} for name in JUDGED),
        {"answer": TEXTS, "score": [(0.0, 0.5, 1.0)[i % 3] for i in range(N)]},
        {"answer": TEXTS, "score": [3.5 + i % 4 / 2 for i in range(N)]},
        {"answer": TEXTS, "score": [i * 9.1 for i in range(N)], "logprobs": SCORES},
        {"query": TEXTS, "doc_id": TEXTS},
        {"doc_id": TEXTS, "topic": ["sport", "art"] * 6},
        {"start": [1_700_000_000 + i for i in range(N)], "end": [1_700_000_009 + i for i in range(N)]},
        {"answer": TEXTS, "judge": "x", "start": [1_700_000_000] * N, "end": [1_700_000_000] * N},
        {"start": list(range(N)), "end": list(range(N))},
        {"text": TEXTS},
        {"prompt": TEXTS, "text": TEXTS, "label": TEXTS},
    ],
)
def test_a_score_of_quality(columns: dict[str, Any]) -> None:
    run = frame(**columns)
    statistic = the_one(run, run)
    assert statistic.chosen == "the only score, `score`"
    assert not [note for note in statistic.found if note.startswith("look: `score`")]


@pytest.mark.parametrize("name", ["comment", "explanation"])
@pytest.mark.parametrize("outputs", [{"answer": TEXTS}, {"image": TEXTS, "text": TEXTS}])
def test_comments_of_a_judge_differ_between_runs(name: str, outputs: dict[str, Any]) -> None:
    """Regression: a column of comments that were classified was taken for those of a judge."""
    first, second = (frame(**outputs, **{name: [f"{run} {text}" for text in TEXTS]}) for run in "ab")
    statistic = the_one(first, second)
    assert statistic.chosen == "the only score, `score`"
    assert not [note for note in statistic.found if note.startswith("look: `score`")]
    with pytest.raises(InputError, match=r"confidence in its own .* no column of a judge"):
        asked(first, first.with_columns(score=pl.Series(SCORES[::-1])))
    written = frame(**outputs, **{name: ["right", "wrong"] * (N // 2)})
    assert the_one(written, written).chosen == "the only score, `score`"


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", ASKED)
def test_a_score_beside_question_and_answer(name: str) -> None:
    """Most such logs hold scores of a judge."""
    run = frame(**{name: TEXTS, "answer": TEXTS})
    statistic = the_one(run, run)
    assert statistic.found[0] == (
        "look: `score` of `run 0` may be a model's confidence in its own output, `answer`; `--metric score`"
        " says that it is a judgement of it"
    )
    grades = run.with_columns(score=pl.Series([i % 5 + 1 for i in range(N)]))
    assert the_one(grades, grades).found == ()
    models = run.with_columns(score=pl.Series([i / 7 - 1 for i in range(N)]))
    assert the_one(models, models).found[0].startswith("look: `score`")


def test_texts_of_a_model() -> None:
    """A sentence of one run lacks in the other where an example does; outputs lack in both."""
    texts = frame(text=TEXTS)
    assert the_one(texts, texts.tail(N - 1), columns={"id": "id"}).found == ()
    for changed in (1, N):
        other = frame(text=[*(f"other {i}" for i in range(changed)), *TEXTS[changed:]])
        with pytest.raises(InputError, match=r"confidence in its own .* has a column `text`"):
            asked(texts, other)
        runs = [run.with_columns(prompt=pl.Series(PAIRS)) for run in (texts, other)]
        assert the_one(*runs).found[0].startswith("look: `score` of `run 0` may be a model's confidence")
