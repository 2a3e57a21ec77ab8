"""Scores with enough digits to tell unequal ones apart and to agree with their difference."""

from __future__ import annotations

import math

import polars as pl
import pytest

import trackperm
from trackperm.report import phrases
from trackperm.report.leaderboard import cells, chart_layout, pairs
from trackperm.report.numbers import extra_digits, format_difference, format_number


def run(n_wrong: int, n: int = 100_000, *, right: int = 0) -> pl.DataFrame:
    """Return a run with its wrong predictions behind the first `right` ones."""
    wrong = pl.int_range(n, eager=True).is_between(right, right + n_wrong - 1)
    frame = pl.DataFrame({"id": range(n), "label": "yes"})
    return frame.with_columns(prediction=wrong.replace_strict({True: "no", False: "yes"}))


class TestOneScore:
    """Regression: 0.99996 was printed as 1.0000."""

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            (0.99996, "0.99996"),
            (-0.99996, "-0.99996"),
            (0.9999999, "0.9999999"),
            (1 - 1e-11, "0.9999999999"),
            (-1 + 1e-11, "-0.9999999999"),
            (math.nextafter(1, 0), "1.0000"),
            (1.00001, "1.0000"),
            (0.00001, "1e-05"),
        ],
    )
    def test_only_1_is_shown_as_1(self, value, shown):
        assert format_number(value) == shown

    def test_more_digits_in_each_range(self):
        values = (0.12345678, 12345.678901, 1.23456789e9, 0.000123456789)
        assert [format_number(value, extra=2) for value in values] == [
            "0.123457",
            "12345.6789",
            "1.23457e+09",
            "0.000123457",
        ]
        assert [format_difference(value, extra=2) for value in values[::3]] == ["+0.123457", "+0.0001235"]


class TestSeveralScores:
    @pytest.mark.parametrize(
        ("values", "extra"),
        [
            ([0.8, 0.9], 0),
            ([0.5, 0.5], 0),
            ([0.5, math.nextafter(0.5, 1)], 0),
            ([math.nan, math.inf, 0.5], 0),
            ([0.89941, 0.89943], 1),
            ([0.5, 0.5 + 1e-9], 5),
            ([0.5, 0.5 + 1e-12], 0),
        ],
    )
    def test_unequal_scores_look_unequal_up_to_ten_digits(self, values, extra):
        assert extra_digits(values) == extra

    def test_the_difference_of_printed_scores_is_about_that_of_the_scores(self):
        assert extra_digits([0.89944, 0.89951]) == 0
        assert extra_digits([0.89944, 0.89951], [(0.89944, 0.89951)]) == 1


def test_scores_of_a_comparison_agree_with_their_difference():
    """Regression: 0.9999, 1.0000 and +8e-05 were those of 0.99988 and 0.99996."""
    comparison = trackperm.compare(run(12), run(4))
    assert phrases.scores(comparison) == [
        ("baseline", "0.99988"),
        ("candidate", "0.99996"),
        ("difference", "+8e-05"),
    ]


def test_the_difference_has_the_digits_of_the_scores():
    comparison = trackperm.compare(run(400), run(4))
    assert phrases.scores(comparison) == [
        ("baseline", "0.99600"),
        ("candidate", "0.99996"),
        ("difference", "+0.00396"),
    ]


def test_scores_of_a_leaderboard_have_one_number_of_digits():
    """Regression: ranks 1 and 2 had 1.0000."""
    board = trackperm.leaderboard({"four": run(4), "none": run(0), "twelve": run(12)})
    table = cells.cells(board)
    scores, differences = (
        [row[table.header.index(name)] for row in table.rows] for name in ("accuracy", "difference")
    )
    assert scores == ["1.00000", "0.99996", "0.99988"]
    assert differences == ["", "-4e-05", "-0.00012"]
    assert [each.score for each in chart_layout.chart_layout(board).runs] == scores
    assert cells.lead(board).startswith("the best accuracy is 1.00000, of none")
    assert pairs.cells_of_pairs(board)[2][0].difference == "-0.00012"
