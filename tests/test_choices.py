"""Names of choices agree with what they choose from."""

from __future__ import annotations

from typing import get_args

import pytest

from trackperm import choices
from trackperm.comparison import CORRECTIONS
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
