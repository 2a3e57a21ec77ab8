"""Whatever a test of pairing pairs is paired in buckets too."""

from __future__ import annotations

import pytest
from pairing.both_ways import pair_both_ways

ENOUGH = "test_counts_against_plain_python"
"""Of the tests that pair many generated runs, the one whose runs are paired both ways."""


@pytest.fixture(autouse=True)
def pairs_both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `pair` of a test module be both ways of pairing, which come to the same."""
    is_generated = hasattr(request.function, "hypothesis") and request.function.__name__ != ENOUGH
    if hasattr(request.module, "pair") and not is_generated:
        monkeypatch.setattr(request.module, "pair", pair_both_ways)
