"""Scores whose direction is stated in another column of the log."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from support.comparisons import numbered
from support.questions import the_one

import trackperm
from trackperm.errors import InputError
from trackperm.report import text

OLD, NEW = ([start + i % 7 / 100 for i in range(40)] for start in (0.5, 0.1))


def frames(*values: Any, column: str = "metric", score: str = "score") -> list[pl.DataFrame]:
    """Two runs, the second with lower scores, with a column of one value each."""
    both = values if len(values) == 2 else values * 2
    return [
        numbered(**{score: scores}).with_columns(pl.lit(value).alias(column))
        for scores, value in zip((OLD, NEW), both, strict=True)
    ]


@pytest.mark.sample(14)
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("metric", "wer"),
        ("metric", "val_loss"),
        ("metric_name", "meanSquaredError"),
        ("higher_is_better", False),
        ("higher_is_better", "False"),
        ("greater_is_better", 0),
        ("lower_is_better", True),
        ("metric", "wil"),
        ("measure", "wer"),
        ("evaluator", "noise_sensitivity"),
        ("scorer", "WER"),
        ("name", "error_rate"),
        ("measure_name", "wer"),
        ("metrics", "wer, cer"),
        ("score_name", "wer"),
        ("metric_id", "wer"),
        ("evaluator_name", "wer"),
        ("scorer_name", "wer"),
        ("annotation_name", "wer"),
        ("criterion", "wer"),
        ("criteria", "wer"),
        ("Metric", "wer"),
        ("Higher_Is_Better", False),
        ("is_lower_better", True),
        ("higherIsBetter", False),
        ("Higher is better", "no"),
        ("smaller_is_better", True),
        ("maximize", False),
        ("direction", "minimize"),
        ("metric_direction", "MIN"),
        ("mode", "min"),
        ("optimization_goal", "minimise"),
        ("objective", "Lower is better"),
        ("better", "smaller"),
    ],
)
@pytest.mark.parametrize("score", ["score", "reward", "success"])
@pytest.mark.parametrize("is_named", [False, True])
def test_lower_is_better(column: str, value: Any, score: str, is_named: bool) -> None:
    found = trackperm.compare(*frames(value, column=column, score=score), metric=score if is_named else None)
    assert (found.verdict, found.n_better, found.n_worse) == ("better", 40, 0)
    shown = "\n".join(text.lines(found))
    assert f"lower is better: `{column}` is `{value}` in every row\n" in shown
    assert f"{score} (lower is better)" in shown


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("metric", ["accuracy"]),
        ("metric", ["Accuracy", "accuracy"]),
        ("metric_name", ["bleu"]),
        ("higher_is_better", [True]),
        ("lower_is_better", [False]),
        ("higher_is_better", ["by hand"]),
        ("metric", [None]),
        ("note", ["wer"]),
        ("direction", ["maximize"]),
        ("mode", ["local"]),
        ("goal", ["min-max"]),
        ("better", [True]),
        ("min_score", [True]),
    ],
)
def test_greater_is_better(column: str, values: list[Any]) -> None:
    found = the_one(*frames(*values, column=column))
    assert (found.greater_is_better, found.found) == (True, ())


def test_a_metric_that_is_not_the_same_in_all_rows() -> None:
    both = [
        frame.with_columns(pl.when(pl.col("id") < 3).then(pl.lit("bleu")).otherwise("metric").alias("metric"))
        for frame in frames("wer")
    ]
    assert the_one(*both, metrics=("score",)).greater_is_better


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("lower_is_better", [True, False], "`False`, `True`"),
        ("isLowerBetter", [True, None], "`True` or missing"),
        ("higher_is_better", ["no", "yes"], "`no`, `yes`"),
        ("mode", ["min", "max"], "`max`, `min`"),
    ],
)
@pytest.mark.parametrize("said_by_user", [{}, {"metric": "score"}])
def test_rows_of_opposite_direction(
    column: str, values: list[Any], said: str, said_by_user: dict[str, str]
) -> None:
    both = [frame.with_columns(pl.Series(column, values * 20)) for frame in frames("x", column="note")]
    with pytest.raises(InputError, match=f"values of different directions: `{column}` is {said}") as caught:
        trackperm.compare(*both, **said_by_user)
    assert f'filter(pl.col("{column}") == ' in str(caught.value.hint)
    assert f"if `{column}` is not the direction of `score`, write a spec: " in str(caught.value.hint)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("higher_is_better", [True, None]),
        ("mode", ["min", "local"]),
        ("goal", ["max", "min", "buy tea", "?"]),
    ],
)
def test_rows_that_state_no_direction(column: str, values: list[Any]) -> None:
    rows = pl.Series(column, (values * 40)[:40])
    assert the_one(*(frame.with_columns(rows) for frame in frames("x", column="note"))).greater_is_better


@pytest.mark.parametrize(
    ("column", "value"), [("measure", 1.0), ("name", "loss of contract"), ("name", "wer2vec")]
)
def test_values_that_name_no_error(column: str, value: Any) -> None:
    assert the_one(*frames(value, column=column)).greater_is_better


def test_names_of_runs() -> None:
    assert the_one(*frames("loss", "accuracy", column="name")).greater_is_better
    with pytest.raises(InputError, match="`scorer` is `wer` in every row of `run 0` and `bleu` in every row"):
        the_one(*frames("wer", "bleu", column="scorer"))


@pytest.mark.parametrize("said", [{}, {"metric": "score"}, {"statistic": "mean"}])
@pytest.mark.parametrize("column", ["metric", "lower_is_better"])
def test_a_contradiction(said: dict[str, str], column: str) -> None:
    value = "wer" if column == "metric" else True
    both = [frame.with_columns(higher_is_better=True) for frame in frames(value, column=column)]
    with pytest.raises(InputError, match=r"so lower values .* but `higher_is_better` is `True`") as caught:
        trackperm.compare(*both, **said)
    assert "leave out the column that is wrong, or write a spec" in str(caught.value.hint)


@pytest.mark.parametrize("said", [{}, {"metric": "score"}])
def test_runs_of_opposite_direction(said: dict[str, str]) -> None:
    with pytest.raises(InputError, match="`higher_is_better` is `True` in every row of `baseline` and `F"):
        trackperm.compare(*frames(True, False, column="higher_is_better"), **said)
    assert not the_one(*frames("no", "0", column="higher_is_better")).greater_is_better


def test_a_truth_precedes_the_name_of_a_metric() -> None:
    lower = [frame.with_columns(higher_is_better=False) for frame in frames("accuracy")]
    assert not the_one(*lower).greater_is_better
    for is_higher in (True, False):
        both = [frame.with_columns(higher_is_better=is_higher) for frame in frames("toxicity")]
        assert the_one(*both).greater_is_better is is_higher


@pytest.mark.parametrize("value", ["toxicity", "neg_log_loss", "time", "bleu,wer"])
def test_an_open_direction(value: str) -> None:
    with pytest.raises(
        InputError, match=f"`metric` is `{value}` in every row, which does not show"
    ) as caught:
        trackperm.compare(*frames(value))
    assert "`greater_is_better: false`" in str(caught.value.hint)
    named = trackperm.compare(*frames(value), metric="score")
    assert named.verdict == "worse"
    assert named.statistic.found == (
        f"look: `metric` is `{value}` in every row, which does not show whether greater values of `score` are"
        " better",
    )


def test_two_metrics() -> None:
    first, second = frames("wer", "bleu")
    with pytest.raises(InputError, match="`wer` in every row of `baseline` and `bleu` in every row of `cand"):
        trackperm.compare(first, second.rename({"metric": "Metric"}))
    with pytest.raises(InputError, match="`wer` in every row of `baseline` and `bleu` in every row of `cand"):
        trackperm.compare(*frames("wer", "bleu"))
    named = trackperm.compare(*frames("wer", "bleu"), metric="score")
    assert named.verdict == "worse"
    assert "look: `metric` is `wer` in every row of `baseline`, which does not" in named.statistic.found[0]
    assert trackperm.compare(*frames("wer", "cer"), metric="score").verdict == "better"


def test_one_run_states_it() -> None:
    first, second = frames("wer")
    found = trackperm.compare(first, second.drop("metric"))
    assert found.verdict == "better"
    assert "lower is better: `metric` is `wer` in every row of `baseline`" in found.pairing.notes


@pytest.mark.parametrize("statistic", ["mean", "pass_at_1"])
@pytest.mark.parametrize("score", ["score", "reward", "acc"])
def test_a_statistic_of_which_more_is_better(statistic: str, score: str) -> None:
    message = f"greater values of `{statistic}` are better, but `metric` is `wer` in every row"
    for ask in (trackperm.compare, trackperm.power):
        with pytest.raises(InputError, match=message) as caught:
            ask(*frames("wer", score=score), statistic=statistic)
        assert f'`metric="{score}"`' in str(caught.value)
    with pytest.raises(InputError, match=message):
        trackperm.leaderboard(dict(zip(("a", "b"), frames("wer", score=score), strict=True)), statistic)


@pytest.mark.parametrize(
    ("column", "values", "score"),
    [
        ("mode", ("min",), "correct"),
        ("goal", ("minimize",), "accuracy"),
        ("mode", ("minimal",), "score"),
        ("mode", ("lower",), "score"),
        ("goal", ("less",), "score"),
        ("mode", ("min", "full"), "score"),
        ("direction", ("lower", "left"), "score"),
    ],
)
def test_settings_state_no_direction(column: str, values: tuple[str, ...], score: str) -> None:
    """Regression: fewer correct answers in a mode called min were better."""
    assert trackperm.compare(*frames(*values, column=column, score=score)).verdict == "worse"


def test_attempts_that_should_not_pass() -> None:
    both = [numbered(passed=[i < n for i in range(20)]).with_columns(lower_is_better=True) for n in (15, 3)]
    assert trackperm.compare(*both, metric="passed").verdict == "better"
    with pytest.raises(InputError, match="greater values of `pass_at_1` are better, but `lower_is_better`"):
        trackperm.compare(*both, "pass_at_1")


def test_shares_of_what_is_true() -> None:
    both = [
        numbered(correct=[str(i < n) for i in range(20)]).with_columns(higher_is_better=False)
        for n in (15, 3)
    ]
    assert not the_one(*both).greater_is_better
    assert not the_one(*both, metrics=("correct",)).greater_is_better


def test_another_column_than_the_score() -> None:
    assert trackperm.compare(*frames("wer", score="bleu"), metric="bleu").verdict == "worse"
    beside = [frame.with_columns(reward=pl.col("score")) for frame in frames("wer")]
    assert trackperm.compare(*beside, metric="reward").verdict == "worse"
    assert trackperm.compare(*beside, metric="score").verdict == "better"


def test_a_column_of_any_name() -> None:
    """A truth is about the column that is named, unless another one has the name of a score."""
    both = frames(False, column="higher_is_better", score="quality")
    assert trackperm.compare(*both, metric="quality").verdict == "better"
    beside = [frame.with_columns(score=pl.col("quality")) for frame in both]
    assert trackperm.compare(*beside, metric="quality").verdict == "worse"
    latencies = frames(True, column="higher_is_better", score="latency")
    assert trackperm.compare(*latencies, metric="latency").verdict == "better"


def test_values_of_the_metric() -> None:
    both = [frame.with_columns(correct=pl.col("value")) for frame in frames("wer", score="value")]
    assert trackperm.compare(*both, metric="value").verdict == "better"
    assert trackperm.compare(*both, metric="correct").verdict == "worse"


def test_two_columns_that_could_be_the_score() -> None:
    both = [frame.with_columns(correct=pl.col("acc")) for frame in frames("wer", score="acc")]
    with pytest.raises(InputError, match="each of `correct`, `acc` could be its score"):
        trackperm.compare(*both, metric="acc")
    same = [frame.with_columns(metric=pl.lit("bleu")) for frame in both]
    assert trackperm.compare(*same, metric="acc").verdict == "worse"


def test_a_leaderboard() -> None:
    board = trackperm.leaderboard(dict(zip(("old", "new"), frames("wer"), strict=True)))
    assert [row.name for row in board.rows] == ["new", "old"]
