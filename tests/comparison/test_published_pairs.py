"""Published concordance of survival times, and its standard error."""

from __future__ import annotations

import polars as pl
import pytest

import trackperm
from trackperm.exact.pairwise.influences import GRID

PLACEBO = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]
TREATED = [6, 6, 6, 7, 10, 13, 16, 22, 23]
TREATED_CENSORED = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
"""Weeks of remission of 42 children with leukemia (Freireich et al. 1963, Blood 21:699; Gehan 1965)."""


def test_concordance_of_the_leukemia_data() -> None:
    """The R package survival prints for these data: Concordance= 0.69 (se = 0.041)."""
    time = PLACEBO + TREATED + TREATED_CENSORED
    event = [1] * 30 + [0] * 12
    shared = {"id": range(42), "label": time, "event": event}
    risk = pl.DataFrame({**shared, "score": [1] * 21 + [0] * 21})
    # Equal scores have a concordance of 1/2 whatever the times, so that the difference has the same error.
    constant = pl.DataFrame({**shared, "score": [0] * 42})
    found = trackperm.compare(constant, risk, "concordance_index")
    assert found.baseline_score == pytest.approx(0.5, abs=1e-12)
    assert round(float(found.candidate_score or 0.0), 2) == 0.69
    influences = found.pairing.influences
    # That error is an infinitesimal jackknife, without a factor n / (n - 1) of the variance.
    assert round(GRID * influences.unit / 42**0.5, 3) == 0.041
