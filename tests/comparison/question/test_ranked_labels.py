"""Labels and gold values beside a score that a model computed for them, and ordinary columns of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from support.questions import asked, the_one

from trackperm.errors import InputError

N = 60
RNG = np.random.default_rng(3)
POSITIVE = RNG.random(N) < 0.4
NOISE = RNG.normal(0, 1, (2, N))


def runs(distance: float, **columns: Any) -> list[pl.DataFrame]:
    """Return scores of two runs that are greater by `distance` standard deviations for positive examples."""
    found = [
        pl.DataFrame({"id": range(N), **columns, "score": 0.5 + 0.1 * (distance * POSITIVE + noise)})
        for noise in NOISE
    ]
    return [found[0], found[1].reverse()]


def words(first: str, second: str) -> list[str]:
    return [second if each else first for each in POSITIVE]


@pytest.mark.parametrize(
    ("distance", "columns"),
    [
        (2, {"is_fraud": words("False", "True")}),
        (2, {"is_anomaly": words("FALSE", "TRUE")}),
        (2, {"fraud_label": POSITIVE.astype(int)}),
        (4, {"class": words("legit", "fraud")}),
        (4, {"diagnosis": words("benign", "malignant")}),
        (4, {"anomaly": np.where(POSITIVE, -1, 1)}),
        (-4, {"is_normal": POSITIVE}),
        (4, {"weather": words("dry", "wet"), "split": "test"}),
        (4, {"class_name": words("legit", "fraud")}),
        (4, {"class": words("legit", "fraud"), "answer": [f"because {i}" for i in range(N)]}),
    ],
)
def test_labels_of_two_classes(distance: float, columns: dict[str, Any]) -> None:
    """Regression: a detector was better if it was more confident, beside labels that are text."""
    with pytest.raises(InputError, match=f"what a model computed for the label in `{next(iter(columns))}`"):
        asked(*runs(distance, **columns))
    assert the_one(*runs(distance, **columns), metrics=("score",)).name == "score"


@pytest.mark.parametrize(
    ("distance", "columns"),
    [
        (1.2, {"is_long": POSITIVE}),
        (-1.2, {"has_image": words("False", "True")}),
        (-1.2, {"is_hard": POSITIVE.astype(int), "prompt": [f"why {i}" for i in range(N)]}),
        (1.2, {"tone": words("formal", "informal")}),
        (4, {"split": words("test", "dev")}),
        (4, {"difficulty": words("hard", "easy")}),
        (4, {"question_type": words("open", "closed")}),
        (4, {"judge_id": words("a", "b")}),
        (4, {"variant": words("original", "perturbed"), "cached": POSITIVE}),
        (-1.2, {"needs_math": POSITIVE, "multi_hop": POSITIVE, "is_noisy": POSITIVE}),
        (4, {"model_name": words("small", "large"), "key": words("a", "b")}),
        (0.3, {"class": words("physics", "maths")}),
        (0.3, {"is_fraud": POSITIVE}),
    ],
)
def test_properties_of_examples(distance: float, columns: dict[str, Any]) -> None:
    """Scores of answers depend a little on what is asked."""
    assert the_one(*runs(distance, **columns)).chosen.startswith("the")


@pytest.mark.parametrize("words_of_answers", [("ok", "ok"), ("yes", "no")])
def test_a_property_beside_answers(words_of_answers: tuple[str, str]) -> None:
    """Answers that differ between the runs are what is scored."""
    frames = [
        frame.with_columns(answer=pl.format("{} {}", pl.lit(word), "id"), question=pl.format("{}?", "id"))
        for frame, word in zip(runs(3, flagged=POSITIVE), words_of_answers, strict=True)
    ]
    if words_of_answers[0] == words_of_answers[1]:
        with pytest.raises(InputError, match="the label in `flagged`"):
            asked(*frames)
    else:
        assert the_one(*frames).name == "score"


def test_few_rows_are_ranked_by_chance() -> None:
    frames = [frame.head(5) for frame in runs(9, is_ranked=POSITIVE)]
    assert the_one(frames[0], frames[0]).name == "score"


ASKED = [f"why {i}?" for i in range(N)]
GOLD = RNG.integers(0, 26, N) / 5


def graded(noise: float, name: str = "gold_score", **columns: Any) -> list[pl.DataFrame]:
    return [
        pl.DataFrame({"id": range(N), name: GOLD, **columns, "score": GOLD / 5 + noise * each})
        for each in NOISE
    ]


@pytest.mark.parametrize(
    ("noise", "name", "columns"),
    [
        (0.1, "gold_score", {}),
        (0.4, "gold_score", {}),
        (0.1, "human_rating", {}),
        (0.1, "score_expected", {"text_a": "a"}),
        (0.4, "human_rating", {"response": [f"r {i}" for i in range(N)], "rationale": "x"}),
    ],
)
def test_gold_values(noise: float, name: str, columns: dict[str, Any]) -> None:
    """Regression: similarities of texts, and a judge's grades, were better the greater they were."""
    with pytest.raises(InputError, match=f"what a model computed for the label in `{name}`") as caught:
        asked(*graded(noise, name, **columns))
    assert f"`--statistic spearman` with `--label {name}` compares" in str(caught.value.hint)
    grades = [frame.with_columns((5 * pl.col("score")).round().cast(pl.Int64)) for frame in graded(0.1, name)]
    with pytest.raises(InputError, match=f"the label in `{name}`"):
        asked(*grades)


def test_scores_of_people_beside_scores_of_answers() -> None:
    """Hard questions are hard for people and models; answers that differ are judged, whatever their gold."""
    assert the_one(*graded(0.4, "human_accuracy")).name == "score"
    assert the_one(*graded(0.1, "expected_tokens")).name == "score"
    assert the_one(*graded(0.1, "human_minutes")).name == "score"
    answers = [
        frame.with_columns(response=pl.format(f"{i} {{}}", "id"))
        for i, frame in enumerate(graded(0.1, question=ASKED))
    ]
    assert the_one(*answers).name == "score"
    right = [frame.with_columns(score=(pl.col("score") > 0.5).cast(pl.Int64)) for frame in graded(0.1)]
    assert the_one(*right).name == "score"
    same = graded(0.1, question=ASKED, response=[f"r {i}" for i in range(N)])[0]
    assert the_one(same, same.reverse()).name == "score"
