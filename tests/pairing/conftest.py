"""Whatever a test of pairing pairs is paired on each engine, of cases of one test the first."""

from __future__ import annotations

import pytest
from pairing.engines_agree import pair_on_each_engine

ENOUGH = "test_counts_against_plain_python"
"""Of the tests that pair many generated runs, the one whose runs are paired on each engine."""


@pytest.fixture(autouse=True)
def pairs_on_each_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `pair` of a test module be all engines, which have the same result."""
    is_generated = hasattr(request.function, "hypothesis") and request.function.__name__ != ENOUGH
    case = getattr(request.node, "callspec", None)
    if hasattr(request.module, "pair") and not is_generated and not (case and any(case.indices.values())):
        monkeypatch.setattr(request.module, "pair", pair_on_each_engine)
