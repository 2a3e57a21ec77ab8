"""Shares of one value of a column of words, by ``--metric COLUMN=VALUE``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import trackperm
from trackperm.errors import InputError, InputTypeError
from trackperm.exact import difference_test
from trackperm.pairing.checks import label_values

OLD = ["CORRECT", "INCORRECT", "NOT ATTEMPTED", "INCORRECT", "INCORRECT", "CORRECT", "INCORRECT", "CORRECT"]
NEW = ["CORRECT", "CORRECT", "CORRECT", "CORRECT", "CORRECT", "CORRECT", "INCORRECT", "NOT ATTEMPTED"]


def runs(old: list[Any] = OLD, new: list[Any] = NEW, column: str = "verdict") -> list[pl.DataFrame]:
    return [pl.DataFrame({"id": range(len(values)), column: values}, strict=False) for values in (old, new)]


@pytest.mark.parametrize(
    ("metric", "counted", "is_better", "says"),
    [
        ("verdict=CORRECT", {"CORRECT"}, True, "`verdict` is `CORRECT`; more are better"),
        ("verdict = CORRECT", {"CORRECT"}, True, "`verdict` is `CORRECT`; more are better"),
        ("verdict=INCORRECT", {"INCORRECT"}, False, "`verdict` is `INCORRECT`; fewer are better"),
        ("verdict!=INCORRECT", {"CORRECT", "NOT ATTEMPTED"}, True, "is not `INCORRECT`; more are better"),
        ("verdict!=CORRECT", {"INCORRECT", "NOT ATTEMPTED"}, False, "is not `CORRECT`; fewer are better"),
    ],
)
def test_counts_and_direction(metric: str, counted: set[str], is_better: bool, says: str) -> None:
    found = trackperm.compare(*runs(), metric=metric)
    old, new = ([value in counted for value in values] for values in (OLD, NEW))
    expected = difference_test(new, old)
    assert (found.baseline_score, found.candidate_score) == (sum(old) / 8, sum(new) / 8)
    assert (found.pvalue, found.difference) == (expected.pvalue, expected.observed)
    assert found.statistic.greater_is_better is is_better
    assert says in "\n".join(found.statistic.found)


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("values", "value"),
    [
        ([True, False, True, True], "true"),
        ([1, 0, 1, 1], "1"),
        (["1", "0", "1", "1"], "1"),
        ([1.0, 0.5, 1.0, 1.0], "1"),
        (["a=b", "c", "a=b", "a=b"], "a=b"),
        (["très bien", "c", "très bien", "très bien"], "très bien"),
    ],
)
@pytest.mark.parametrize("in_file", [False, True])
def test_types_of_values(values: list[Any], value: str, in_file: bool, tmp_path: Path) -> None:
    sources: list[Any] = runs(values, values[::-1])
    if in_file:
        paths = [tmp_path / f"{name}.parquet" for name in "ab"]
        for frame, path in zip(sources, paths, strict=True):
            frame.write_parquet(path)
        sources = paths
    assert trackperm.compare(*sources, metric=f"verdict={value}").baseline_score == 0.75


def test_a_name_with_an_equals_sign_is_a_column() -> None:
    found = trackperm.compare(*runs([1, 2], [2, 3], column="a=1"), metric="a=1")
    assert (found.baseline_score, found.candidate_score) == (1.5, 2.5)
    assert trackperm.compare(*runs(["x", "y"], ["x", "x"], column="a=b"), metric="a=b=x").candidate_score == 1


@pytest.mark.parametrize(("metric", "share"), [("verdict=CORRECT", 0.375), ("verdict!=CORRECT", 0.625)])
def test_examples_without_a_verdict_count_as_bad(metric: str, share: float) -> None:
    without = [None if value == "NOT ATTEMPTED" else value for value in OLD]
    assert trackperm.compare(*runs(without), metric=metric, missing="wrong").baseline_score == share
    cases = trackperm.compare(*runs(without, OLD), metric=metric, missing="bounds").cases
    worst, best = (case.difference for case in cases)
    assert (abs(worst), best) == (0.125, 0.0)


@pytest.mark.parametrize(
    ("frames", "metric", "problem"),
    [
        (
            runs(),
            "verdict=correct",
            r"no run has the value 'correct' in `verdict`: .* has 'INCORRECT' \(4\), ",
        ),
        (runs(), "verdct=CORRECT", "`baseline` has no column `verdct`, of which "),
        ([runs()[0], runs(column="grade")[1]], "verdict=CORRECT", "`candidate` has no column `verdict`, of"),
        (runs(["yes", "Yes", "no"], ["no"] * 3), "verdict=yes", "`'Yes'` in `verdict` would not count"),
        (
            runs(["not done", "not_done", "x"], ["x"] * 3),
            "verdict=not done",
            "`'not_done'` in `verdict` would",
        ),
        (runs(["no", "yes"], ["yes"] * 2), "verdict=no", "leaves open whether more such examples are better"),
        (runs(["not good", "good"], ["good"] * 2), "verdict=not good", "leaves open"),
        (runs(["yes", "no"], ["yes"] * 2), "verdict!=yes", "leaves open"),
        (runs([1, 0], [1, 1]), "verdict=0", "leaves open"),
        (runs([True, False], [True, True]), "verdict!=true", "leaves open"),
        (runs(["yes", "no"], ["yes"] * 2, column="toxic"), "toxic=yes", "leaves open"),
        (runs(["True", "False"], ["True"] * 2, column="refused"), "refused", "leaves open"),
    ],
)
def test_refused(frames: list[pl.DataFrame], metric: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        trackperm.compare(*frames, metric=metric)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["True", "False"], [1, 0]),
        (["pass", "fail"], ["OK", "FAILED"]),
        (["pass", "fail"], ["PASSED"] * 2),
    ],
)
def test_runs_that_write_values_in_different_ways_are_refused(old: list[Any], new: list[Any]) -> None:
    """One of them would have none of the value, and a false star."""
    with pytest.raises(InputError, match="`verdict` in `baseline` occurs in another run"):
        trackperm.compare(*runs(old, new), metric=f"verdict={old[0]}")


def test_runs_without_a_common_value_can_be_accepted() -> None:
    sources = runs(["fail"] * 4, ["pass"] * 4)
    found = trackperm.compare(*sources, metric="verdict=pass", allow_unseen=True)
    assert (found.baseline_score, found.candidate_score) == (0.0, 1.0)


def test_true_of_an_error_is_bad() -> None:
    sources = runs(["True", "False"] * 2, ["False"] * 4, column="is_wrong")
    for metric in ("is_wrong", "is_wrong=True"):
        found = trackperm.compare(*sources, metric=metric)
        assert (found.baseline_score, found.candidate_score) == (0.5, 0.0)
        assert not found.statistic.greater_is_better


def test_spaces_around_names_and_values_may_be_named_or_left_out() -> None:
    sources = runs(["CORRECT ", "WRONG"], ["CORRECT ", "CORRECT "], column=" verdict")
    assert trackperm.compare(*sources, metric=" verdict=CORRECT ").baseline_score == 0.5
    assert trackperm.compare(*runs(), metric=" verdict = CORRECT ").baseline_score == 0.375


def test_grades_that_differ_in_a_sign_alone() -> None:
    assert trackperm.compare(*runs(["A+", "A-"], ["A+", "A+"]), metric="verdict=A+").baseline_score == 0.5


def test_what_is_counted_cannot_be_changed() -> None:
    with pytest.raises(InputError, match="counted"):
        trackperm.compare(*runs(), metric="verdict=CORRECT", parameters={"counted": "INCORRECT"})


def test_values_with_quotes() -> None:
    said = """it's "fine" \\ here"""
    assert trackperm.compare(*runs([said, "x"], [said, said]), metric=f"verdict={said}").baseline_score == 0.5


def test_a_value_among_more_numbers_than_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(label_values, "MOST_CLASSES", 3)
    paths = [tmp_path / name for name in ("a.parquet", "b.parquet")]
    for frame, path in zip(runs(list(range(9)), [8] * 9), paths, strict=True):
        frame.write_parquet(path)
    assert trackperm.compare(*paths, metric="verdict=8").candidate_score == 1.0


def test_true_as_text_precedes_free_texts_that_are_no_labels(tmp_path: Path) -> None:
    for name in "ab":
        rows = [f"{i},the answer is {'ABCD'[i % 4]},{'ABCD'[i % 4]},{i % 3 > 0}\n" for i in range(40)]
        (tmp_path / name).write_text("id,generation,target,correct\n" + "".join(rows))
    found = trackperm.compare(tmp_path / "a", tmp_path / "b")
    assert found.statistic.chosen == "the only score, `correct`"


def test_lists_are_refused() -> None:
    with pytest.raises(
        InputTypeError, match="`verdict` of `baseline` holds lists; expected words or numbers"
    ):
        trackperm.compare(*runs([["a"]], [["b"]]), metric="verdict=a")


def test_messages_name_the_option() -> None:
    with pytest.raises(InputError, match="values that are not numbers") as caught:
        trackperm.compare(*runs(), metric="verdict")
    assert "`--metric verdict=CORRECT` compares the shares of a good value" in caught.value.hint
    with pytest.raises(InputError, match="is unclear") as caught:
        trackperm.compare(*runs())
    assert "a good value whose share is compared by `--metric verdict=CORRECT`" in caught.value.hint
    free_texts = [f"answer {i}" for i in range(8)]
    with pytest.raises(InputError, match="is unclear") as caught:
        trackperm.compare(*runs(free_texts, free_texts))
    assert "whose share" not in caught.value.hint


IN_TURN = ["cat", "dog"] * 6
OFTEN = ["cat"] * 8 + ["dog"] * 4


@pytest.mark.parametrize(
    ("columns", "option"),
    [
        ({"model_1": (["a"] * 12, ["b"] * 12), "winner": (IN_TURN, OFTEN)}, "winner=VALUE"),
        ({"example_answer": (IN_TURN, IN_TURN), "winner": (IN_TURN, OFTEN)}, "winner=VALUE"),
        ({"pred_answer": (IN_TURN, OFTEN), "winner": (IN_TURN, OFTEN)}, "winner=VALUE"),
        ({"same": (IN_TURN, IN_TURN), "winner": (IN_TURN, OFTEN)}, "winner=VALUE"),
        ({"winner": (IN_TURN, OFTEN), "match": (["True", "False"] * 6, ["True"] * 12)}, "match=True"),
        ({"winner": (IN_TURN, OFTEN), "refused": (["True", "False"] * 6, ["True"] * 12)}, "winner=VALUE"),
        ({"model_1": (["a"] * 12, ["b"] * 12), "category": (IN_TURN, IN_TURN)}, None),
        ({"model_1": (["a"] * 12, ["b"] * 12), "rater": (IN_TURN, IN_TURN)}, None),
    ],
)
def test_the_column_that_is_suggested(columns: dict[str, Any], option: str | None) -> None:
    """Neither a name of the run nor a category or reference answer, which all runs have equally often."""
    frames = [
        pl.DataFrame({"id": range(12), **{name: values[place] for name, values in columns.items()}})
        for place in (0, 1)
    ]
    with pytest.raises(InputError, match="is unclear") as caught:
        trackperm.compare(*frames)
    found = re.search("whose share is compared by `--metric ([^`]*)`", str(caught.value.hint))
    assert (found and found[1]) == option


@pytest.mark.parametrize(("true", "false"), [("True", "False"), ("TRUE", "FALSE"), ("yes", "No")])
def test_true_and_false_as_text_are_a_score(true: str, false: str, tmp_path: Path) -> None:
    """As pandas and R write them into CSV files."""
    paths = [tmp_path / name for name in "ab"]
    for path, correct in zip(paths, ([1, 0, 1, 1], [1, 1, 1, 1]), strict=True):
        rows = [f"{i},{true if right else false},\n" for i, right in enumerate(correct)]
        path.write_text("id,correct,note\n" + "".join(rows))
    found = trackperm.compare(*paths)
    assert (found.baseline_score, found.candidate_score) == (0.75, 1.0)
    assert found.statistic.chosen == "the only score, `correct`"
    assert trackperm.compare(*paths, metric="correct").pvalue == found.pvalue


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["True", "False"], ["true", "false"]),
        (["yes", "no"], ["True", "False"]),
        (["False", "False"], ["False", "False"]),
        ([True, False], ["True", "False"]),
        (["True", "False"], [1, 0]),
    ],
)
@pytest.mark.parametrize("metric", [None, "correct"])
def test_runs_that_write_true_in_two_ways(old: list[Any], new: list[Any], metric: str | None) -> None:
    found = trackperm.compare(*runs(old, new, column="correct"), metric=metric)
    score = 0.0 if old[0] == "False" else 0.5
    assert (found.baseline_score, found.candidate_score, found.pvalue) == (score, score, 1.0)


def test_other_texts_are_no_score() -> None:
    with pytest.raises(InputError, match="`correct` of `baseline` holds text, such as"):
        trackperm.compare(*runs(["True", "maybe"], ["True", "False"], column="correct"))


def test_true_as_text_beside_another_score_is_unclear() -> None:
    frames = [
        frame.with_columns(reward=pl.lit(0.5)) for frame in runs(["True"] * 2, ["False"] * 2, "correct")
    ]
    with pytest.raises(InputError, match="each of `reward`, `correct` could be the score"):
        trackperm.compare(*frames)


@pytest.mark.parametrize("metric", [None, "correct"])
@pytest.mark.parametrize("numbers", [[True, False, True], [1, 0, 1]])
def test_other_text_in_one_run_and_numbers_in_the_other(numbers: list[Any], metric: str | None) -> None:
    frames = runs(numbers, ["good", "bad", "good"], column="correct")
    for old, new in (frames, frames[::-1]):
        with pytest.raises(InputError, match=r"is text, 'good' \(2\), 'bad' \(1\), and") as caught:
            trackperm.compare(old, new, metric=metric)
        assert "in the same way in all runs, such as 1 and 0" in str(caught.value)


def test_the_share_of_true_is_called_as_the_column(tmp_path: Path) -> None:
    """As in formats with a type for booleans, whose mean it is."""
    for i, correct in enumerate(([True, False, False, True], [True, True, True, False])):
        frame = pl.DataFrame({"id": range(4), "correct": correct})
        frame.write_csv(tmp_path / f"{i}.csv")
        frame.write_parquet(tmp_path / f"{i}.parquet")
    for endings in (("csv", "csv"), ("csv", "parquet"), ("parquet", "parquet")):
        found = trackperm.compare(*(tmp_path / f"{i}.{ending}" for i, ending in enumerate(endings)))
        assert (found.title, found.difference) == ("correct", 0.25)


@pytest.mark.parametrize("place", [0, 1])
def test_the_text_that_is_too_large_is_quoted(place: int):
    """Regression: the error quoted a number of the other run, with code that fails for this one."""
    frames = [pl.DataFrame({"id": list("abc"), "score": ["1", value, "3"]}) for value in ("1e400", "2")]
    frames = frames if place == 0 else frames[::-1]
    role = ("baseline", "candidate")[place]
    with pytest.raises(InputError, match=f"not numbers, such as '1e400' in `{role}`") as caught:
        trackperm.compare(*frames, metric="score")
    assert "cast" not in str(caught.value.hint)
