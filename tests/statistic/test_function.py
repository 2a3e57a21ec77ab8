"""Statistics whose score is a Python function: they agree with specs, and say their limits."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import trackperm
from trackperm.errors import InputError, InputTypeError, SpecError
from trackperm.statistic import Statistic, from_function, load_statistic
from trackperm.statistic.function import ScoreFunction

COUNTS = {"tp": "(prediction == 1) & (label == 1)", "incorrect": "prediction != label"}
RNG = np.random.default_rng(3)
Y_TRUE = RNG.integers(0, 2, 300)
OLD = np.where(RNG.random(300) < 0.7, Y_TRUE, 1 - Y_TRUE)
NEW = np.where(RNG.random(300) < 0.8, Y_TRUE, 1 - Y_TRUE)


def of_arrays(tp: Any, incorrect: Any) -> Any:
    return tp / (tp + incorrect / 2)


def of_numbers(tp: float, incorrect: float) -> float:
    return tp / (tp + incorrect / 2) if tp else 0.0


def mixing(tp: Any, incorrect: Any) -> Any:
    """Of an array, each value depends on the others; of one point it is F1."""
    return (
        of_arrays(tp, incorrect) * (1 + np.arange(np.size(tp)) % 7)
        if np.ndim(tp)
        else of_numbers(tp, incorrect)
    )


@pytest.mark.parametrize("function", [of_arrays, of_numbers, mixing])
def test_agrees_with_the_spec_of_the_same_score(function: Any):
    found = trackperm.compare(Y_TRUE, OLD, NEW, statistic=from_function(function, COUNTS))
    expected = trackperm.compare(Y_TRUE, OLD, NEW, statistic="f1")
    assert found.pvalue == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.baseline_score == pytest.approx(expected.baseline_score, rel=1e-12)
    assert found.verdict == expected.verdict == "better"
    assert (found.test.ties, expected.test.ties) == ("approximate", "exact")


@pytest.mark.parametrize("method", ["enumerate", "lattice", "monte-carlo"])
def test_every_engine_agrees(method: Any):
    n = 14
    given = Y_TRUE[:n], OLD[:n], NEW[:n]
    found = trackperm.compare(*given, statistic=from_function(of_numbers, COUNTS), method=method)
    expected = trackperm.compare(*given, statistic="f1", method="enumerate").pvalue
    low, high = found.test.interval
    assert low * (1 - 1e-9) <= expected <= high * (1 + 1e-9)


def test_a_function_survives_other_columns_and_decimals():
    statistic = from_function(lambda total: total / 300, {"total": "score"}, name="average")
    scores = [RNG.integers(0, 100, 300) / 100 for _ in range(2)]
    frames = [pl.DataFrame({"id": range(300), "points": column}) for column in scores]
    found = trackperm.compare(*frames, statistic, columns={"score": "points"})
    assert found.difference == pytest.approx(np.mean(scores[1]) - np.mean(scores[0]), rel=1e-12)
    assert found.pvalue == pytest.approx(trackperm.compare(*scores, statistic="mean").pvalue, rel=1e-9)


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (lambda tp, incorrect: tp / 0, math.nan),
        (lambda tp, incorrect: math.log(-tp), math.nan),
        (lambda tp, incorrect: tp * 1e308 * 10, math.nan),
        (lambda tp, incorrect: tp - incorrect, 2.0),
    ],
)
def test_values_that_do_not_exist(function: Any, value: float):
    points = np.array([[5.0, 3.0]] * 100)
    for rows in (points[:1], points):
        found = ScoreFunction(function, ("tp", "incorrect"), (1.0, 1.0))(rows)
        np.testing.assert_array_equal(found, np.full(len(rows), value))
        known = ScoreFunction(function, ("tp", "incorrect"), (1.0, 1.0), undefined=0.5)(rows)
        np.testing.assert_array_equal(known, np.full(len(rows), 0.5 if math.isnan(value) else value))


def test_without_positives_the_score_needs_a_value():
    zeros = np.zeros(20, dtype=int)
    one = np.arange(20) == 0
    with pytest.raises(InputError, match="expected a finite number"):
        trackperm.compare(zeros, zeros, zeros, statistic=from_function(of_arrays, COUNTS), allow_unseen=True)
    found = trackperm.compare(
        zeros, zeros, one * 1, statistic=from_function(of_arrays, COUNTS, undefined=1.0)
    )
    assert found.difference == -1.0


NO_FUNCTION: Any = "f1"
NO_SPEC: Any = of_arrays


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: from_function(NO_FUNCTION, COUNTS), InputTypeError, "`function` is a str"),
        (lambda: from_function(of_arrays, {}), InputError, "`counts` is empty"),
        (lambda: from_function(of_arrays, {"tp": "label"}), InputTypeError, "the counts are `tp`"),
        (lambda: from_function(of_arrays, COUNTS | {"tp": "label +"}), SpecError, "tp"),
        (lambda: from_function(lambda n: n, {"n": "1"}, name="errors"), SpecError, "greater_is_better"),
        (lambda: load_statistic(NO_SPEC), InputTypeError, "from_function"),
        (lambda: compared(lambda tp, incorrect: tp.missing), InputError, "failed at tp = .*AttributeError"),
        (lambda: compared(lambda tp, incorrect: "high"), InputError, "returned a str|expected a number"),
        (lambda: with_attempts(from_function(of_arrays, COUNTS)), InputError, "is a Python function"),
    ],
)  # fmt: skip
def test_refusals(call: Any, error: type[Exception], said: str):
    with pytest.raises((error, InputTypeError), match=said):
        call()


def with_attempts(statistic: Statistic) -> trackperm.Comparison:
    frame = pl.DataFrame({"id": [1, 1, 2, 2], "prediction": [0, 1, 0, 1], "label": [1, 1, 1, 1]})
    return trackperm.compare(frame, frame, statistic, unit="attempt")


def compared(function: Any, **options: Any) -> trackperm.Comparison:
    return trackperm.compare(Y_TRUE, OLD, NEW, statistic=from_function(function, COUNTS), **options)


def statistic_of(factor: int) -> Statistic:
    if factor == 1:
        return from_function(lambda tp, incorrect: tp - incorrect, COUNTS, name="balance")
    return from_function(lambda tp, incorrect: tp - 2 * incorrect, COUNTS, name="balance")


def test_other_source_is_another_comparison():
    keys = {trackperm.compare(Y_TRUE, OLD, NEW, statistic=statistic_of(factor)).key for factor in (1, 1, 2)}
    assert len(keys) == 2


def test_the_result_and_verification_say_what_is_not_logged(tmp_path: Path):
    from trackperm.ledger.comparison_publication import evidence
    from trackperm.report import text

    comparison = compared(of_arrays).with_second_opinions().with_studentized()
    said = "\n".join(text.lines(comparison))
    assert "Python function: logs do not contain `of_arrays(tp, incorrect)`" in said
    assert "ties approximate" in said
    for path, content in evidence(comparison).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    with pytest.raises(InputError, match=r"Python function `of_arrays\(tp, incorrect\)`, which logs do not"):
        trackperm.verify(str(tmp_path))


def test_leaderboards_take_functions():
    runs = {
        name: pl.DataFrame({"id": range(300), "prediction": values, "label": Y_TRUE})
        for name, values in (("old", OLD), ("new", NEW))
    }
    found = trackperm.leaderboard(runs, statistic=from_function(of_arrays, COUNTS))
    expected = trackperm.leaderboard(runs, statistic="f1")
    assert [row.name for row in found.rows] == [row.name for row in expected.rows]
    assert [row.score for row in found.rows] == pytest.approx([row.score for row in expected.rows])
