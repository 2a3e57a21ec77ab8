"""Refusals of `trackperm.log`; its writing is tested in the contracts of trackers."""

from __future__ import annotations

from typing import Any

import pytest
from support.comparisons import answers

import trackperm
from trackperm.errors import InputError, InputTypeError


def test_files_have_no_place_to_log_to():
    comparison = trackperm.compare(answers([True, False]), answers([True, True]))
    for result in (comparison, [comparison]):
        with pytest.raises(InputError, match="the candidate `candidate` is not in a tracker") as caught:
            trackperm.log(result)
        assert "trackperm.open_tracker" in str(caught.value)


def test_a_leaderboard_has_no_alert():
    board = trackperm.leaderboard({"a": answers([True, False]), "b": answers([True, True])})
    with pytest.raises(InputError, match="`alert` is not supported for a leaderboard"):
        trackperm.log(board, alert=True)


def test_a_place_is_a_tracker():
    comparison = trackperm.compare(answers([True, False]), answers([True, True]))
    place: Any = "mlflow:churn"
    with pytest.raises(InputTypeError, match="`tracker` is 'mlflow:churn'; expected a tracker") as caught:
        trackperm.log(comparison, place)
    assert "trackperm.open_tracker('mlflow', uri)" in str(caught.value.hint)


@pytest.mark.parametrize("result", ["a.parquet", None, {"a": 1}, ["a"]])
def test_only_results_are_logged(result: Any):
    with pytest.raises(InputTypeError, match="expected a comparison, several, or a leaderboard"):
        trackperm.log(result)
