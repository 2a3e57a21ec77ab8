"""Names of choices agree with what they choose from."""

from __future__ import annotations

from typing import Any, get_args

import polars as pl
import pytest

import trackperm
from trackperm import choices
from trackperm.comparison import CORRECTIONS
from trackperm.errors import InputError
from trackperm.exact.multiplicity import ADJUSTMENTS
from trackperm.pairing.report import OUTCOMES


def test_corrections():
    assert set(get_args(choices.CorrectionName)) == {*CORRECTIONS, "none"}
    assert set(get_args(choices.CorrectionOfLogged)) == set(ADJUSTMENTS)
    under_any = {name for name, rule in ADJUSTMENTS.items() if rule.valid_under == "any dependence"}
    assert set(get_args(choices.CorrectionOfPairs)) == under_any


def test_missing_predictions():
    assert set(get_args(choices.Missing)) == {"error", "drop", *OUTCOMES}
    assert set(get_args(choices.MissingRule)) == {*get_args(choices.Missing), "bounds"}
    assert set(get_args(choices.MissingOfMany)) < set(get_args(choices.Missing))


@pytest.mark.parametrize("name", ["Alternative", "Method", "CorrectionName", "MissingRule", "Compat"])
def test_names_are_said_once(name: str):
    members = get_args(getattr(choices, name))
    assert len(members) == len(set(members)) > 1


BY_NAME: list[tuple[str, str, str]] = [
    ("alternative", "two sided", "two-sided"),
    ("correction", "holms", "holm"),
    ("method", "monte carlo", "monte-carlo"),
    ("missing", "dorp", "drop"),
    ("repeats", "means", "mean"),
    ("unit", "rows", "row"),
]


@pytest.mark.parametrize(("option", "value", "meant"), BY_NAME)
def test_every_argument_with_choices_says_which_is_meant(option: str, value: str, meant: str):
    """Regression: another `unit` was taken for the default, and another `repeats` was a fault."""
    table = pl.DataFrame({"id": [1, 2], "prediction": ["a", "b"], "label": ["a", "a"]})
    options: Any = {option: value}
    for ask in (
        lambda: trackperm.compare(table, table, "accuracy", **options),
        lambda: trackperm.leaderboard([table, table], "accuracy", **options),
    ):
        with pytest.raises(InputError, match=rf"`{option}` is '{value}'[\s\S]*Did you mean `{meant}`\?"):
            ask()
