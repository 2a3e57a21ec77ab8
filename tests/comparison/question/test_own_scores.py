"""Free text and its own scores: accuracy is not asked where the log has another question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.questions import PLAIN, asked, the_one

import trackperm
from trackperm.comparison.question.own_scores import names_metric
from trackperm.errors import InputError

CITIES = ["Rome", "Oslo", "Lima"] * 8
BRIEF = pl.DataFrame(
    {
        "id": range(24),
        "question": [f"capital of country {i}?" for i in range(24)],
        "response": [city if i < 9 else f"The answer is {city}." for i, city in enumerate(CITIES)],
        "reference": CITIES,
    }
)
VERBOSE = BRIEF.with_columns(
    response=pl.Series([city if i < 2 else f"The answer is {city}." for i, city in enumerate(CITIES)])
)
FEW = [i % 4 > 0 for i in range(24)]
QUALITY = [i / 24 for i in range(24)]


def both(**columns: Any) -> list[pl.DataFrame]:
    return [
        frame.with_columns(**{name: pl.Series(own) for name, own in columns.items()})
        for frame in (VERBOSE, BRIEF)
    ]


def judged(**columns: Any) -> list[pl.DataFrame]:
    """Return the runs with scores that differ between them."""
    verbose, brief = both(**columns)
    return [verbose, brief.with_columns(pl.col(*columns).reverse())]


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", ["correct", "is_correct", "score", "reward"])
@pytest.mark.parametrize("kind", [pl.Boolean, pl.Int64, pl.Float64, pl.String])
def test_the_score_of_the_log_comes_before_accuracy(name: str, kind: Any) -> None:
    """Regression: the terser of two runs with equal scores was better by accuracy, p = 6e-05."""
    values = pl.Series(["True" if own else "False" for own in FEW]) if kind == pl.String else pl.Series(FEW)
    frames = both(**{name: values if kind == pl.String else values.cast(kind)})
    statistic = the_one(*frames)
    assert name in (statistic.columns.get("score"), statistic.columns.get("value"))
    assert statistic.chosen == f"the only score, `{name}`"
    assert trackperm.compare(*frames).baseline_score == 0.75
    assert the_one(*frames, statistics=("accuracy",)).name == "accuracy"
    assert the_one(*frames, allow_unseen=True).name == "accuracy"


@pytest.mark.parametrize(
    ("passed", "failed_answer", "said"),
    [
        ([i != 20 for i in range(24)], "?", "nearly every answer that is not its `reference`"),
        (FEW, "", "every answer, whatever its `reference`"),
        (FEW, "?", None),
    ],
)
def test_calls_that_went_through_may_be_no_score(passed: list[bool], failed_answer: str, said: str | None):
    """Regression: `passed` was compared without a word."""
    frames = [
        frame.with_columns(response=pl.when("passed").then("response").otherwise(pl.lit(failed_answer)))
        for frame in both(passed=passed)
    ]
    statistic = the_one(*frames)
    assert statistic.chosen == "the only score, `passed`"
    assert [note for note in statistic.found if note.startswith("look: `passed`")] == (
        [f"look: `passed` is true for {said}: it may say that calls went through; `--statistic exact_match`"
         " compares answers with `reference`, `--metric passed` says that it is the score"]
        if said else []
    )  # fmt: skip
    assert the_one(*frames, metrics=("passed",)).found == ()


@pytest.mark.parametrize(
    ("columns", "listed"),
    [
        ({"answer_correctness": QUALITY}, "`answer_correctness`"),
        ({"wer": QUALITY}, "`wer`"),
        ({"correctness.score": QUALITY}, "`correctness.score`"),
        (
            {"faithfulness": QUALITY, "answer_correctness": QUALITY[::-1]},
            "`faithfulness`, `answer_correctness`",
        ),
        ({"correct": FEW, "faithfulness": QUALITY}, "`faithfulness`, `correct`"),
        ({"score": QUALITY}, "`score`"),
    ],
)
def test_scores_that_may_not_be_the_question(columns: dict[str, Any], listed: str) -> None:
    """Refused: two scores, an unusual name, and decimals called `score`, which may be a confidence."""
    frames = judged(**columns)
    with pytest.raises(InputError, match=r"are free text, such as 'The answer is Lima\.' and") as caught:
        asked(*frames)
    assert (
        str(caught.value)
        .partition("scores of its own: ")[2]
        .startswith(
            ", ".join(sorted(listed.split(", "), key=lambda name: list(columns).index(name.strip("`"))))
        )
    )
    first = next(iter(columns))
    assert f"`--metric {first}` compares a score of the log" in str(caught.value.hint)
    assert "`--statistic exact_match`" in str(caught.value.hint)
    assert the_one(*frames, metrics=(first,)).columns["score"] == first
    assert the_one(*frames, statistics=("exact_match",)).columns["prediction"] == "response"


def test_scores_in_objects() -> None:
    frames = judged(scores=[{"Factuality": value, "Levenshtein": value} for value in QUALITY])
    with pytest.raises(InputError, match="scores of its own: `scores`") as caught:
        asked(*frames)
    assert '`frame.unnest("scores")` of polars makes columns of them; `--statistic exact' in str(
        caught.value.hint
    )
    metrics = judged(metrics=[{"duration": value, "tokens": 5} for value in QUALITY])
    assert the_one(*metrics).name == "accuracy"


@pytest.mark.parametrize("name", ["latency_ms", "confidence", "n_correct", "tokens", "logprob", "word_count"])
def test_other_numbers_beside_free_text(name: str) -> None:
    assert the_one(*judged(**{name: QUALITY})).name == "accuracy"


def test_a_score_that_says_the_same() -> None:
    frames = [frame.with_columns(correct=pl.col("response") == pl.col("reference")) for frame in both()]
    assert the_one(*frames).name == "accuracy"
    values = (QUALITY, QUALITY[::-1])
    other = [
        frame.with_columns(judge_score=pl.Series(own)) for frame, own in zip(frames, values, strict=True)
    ]
    with pytest.raises(InputError, match="scores of its own: `judge_score`"):
        asked(*other)


def test_classes_are_compared_by_accuracy() -> None:
    for extra in ({"score": QUALITY[:20]}, {"faithfulness": QUALITY[:20]}, {"correct": [None] * 20}):
        frame = PLAIN.with_columns(**{name: pl.Series(own) for name, own in extra.items()})
        assert the_one(frame, frame).name == "accuracy"
    plain = PLAIN.with_columns(score=pl.Series(QUALITY[:20]))
    upper = plain.with_columns(pl.col("prediction").str.to_uppercase())
    assert the_one(plain, upper[:15].vstack(plain[15:])).name == "accuracy"


@pytest.mark.parametrize("name", ["correct", "exact_match", "score"])
def test_classes_whose_score_is_not_their_equality(name: str) -> None:
    right = PLAIN.with_columns((pl.col("prediction") == pl.col("label")).alias(name))
    assert the_one(right, right).name == "accuracy"
    flipped = right.with_columns(pl.when(pl.col("id") == 9).then(~pl.col(name)).otherwise(name).alias(name))
    for frames in ([right, flipped], [flipped, right]):
        said = f"`{name}` of `run .` is (true|false) where .*: in 1 row it is not whether"
        with pytest.raises(InputError, match=said) as caught:
            asked(*frames)
        assert f"`--metric {name}` compares the scores of the log, `--statistic accuracy`" in str(
            caught.value.hint
        )
        assert the_one(*frames, metrics=(name,)).columns["score"] == name
        assert the_one(*frames, statistics=("accuracy",)).name == "accuracy"


def test_answers_that_are_numbers() -> None:
    frame = pl.DataFrame({"id": range(6), "prediction": range(6), "label": [0, 1, 2, 3, 9, 9]})
    assert the_one(frame.with_columns(wer=0.5), frame.with_columns(wer=0.5)).name == "accuracy"
    judged = frame.with_columns(correct=pl.Series([1, 1, 0, 1, 1, 0]))
    with pytest.raises(
        InputError, match="`correct` of `run 0` is false where `prediction` is 2 and `label` 2"
    ):
        asked(judged, judged)


def test_files(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.csv", "b.csv")]
    for path, frame in zip(paths, both(correct=FEW), strict=True):
        frame.write_csv(path)
    assert trackperm.compare(*paths).baseline_score == 0.75


def test_names_of_metrics() -> None:
    for name in ("wer", "rougeL", "rouge1", "chrF", "bert_score", "f1", "EM", "answer_relevancy", "edit_sim"):
        assert names_metric(name), name
    for name in ("macroF1", "f_beta", "fbeta", "F-score", "token_f1"):
        assert names_metric(name), name
    for name in (
        "f",
        "F",
        "x_f",
        "bf16",
        "difficulty",
        "latency",
        "id",
        "log_prob_score",
        "confidence_score",
        "n_matches",
        "length",
        "x",
    ):
        assert not names_metric(name), name
