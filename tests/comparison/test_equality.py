"""Equality and hashes of results."""

from __future__ import annotations

import copy

from support.yes_no_runs import NEW, OLD, run

import trackperm


def test_comparisons() -> None:
    """Regression: equal comparisons were unequal, and had no hash."""
    first, again, other = (trackperm.compare(OLD, each) for each in (NEW, NEW, OLD))
    assert first == again
    assert hash(first) == hash(again)
    assert first != other
    assert {first, again, other} == {again, other}
    assert again in [other, first]
    assert copy.deepcopy(first) == first
    assert first != trackperm.compare(OLD, NEW, alpha=0.01)
    assert first != first.with_second_opinions()
    assert first != "a comparison"


def test_leaderboards() -> None:
    """Regression: the hash of a leaderboard raised an exception."""
    runs = {"a": OLD, "b": NEW, "c": run(range(3))}
    board, again = (trackperm.leaderboard(runs) for _ in range(2))
    assert board == again
    assert len({board, again, trackperm.leaderboard(runs, alpha=0.01)}) == 2
    assert board != trackperm.compare(OLD, NEW)
