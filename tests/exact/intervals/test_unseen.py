"""Largest change of a score by differences that no example showed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import ndtri

from trackperm.exact.intervals import HeaviestPart, UnseenDifferences


def unseen(weights: list[float], numbers: list[int], moved: list[int]) -> UnseenDifferences:
    shares = np.array(weights) / np.array(numbers)
    k = int(np.argmax(shares))
    return UnseenDifferences(
        shares, np.array(numbers), np.array(moved), 1.0, HeaviestPart("rare", numbers[k], moved[k])
    )


@pytest.mark.parametrize("n", [1, 20, 1000])
def test_equal_shares_are_those_of_one_sample(n: int) -> None:
    """The share that may differ if none of N examples does is 1 - tau^(1/N)."""
    found = unseen([0.25, 0.75], [n, 3 * n], [0, 0])
    assert found.largest(0.05) == pytest.approx(1.0 - 0.05 ** (1.0 / (4 * n)))
    assert found.largest(0.05, 2.0) == pytest.approx(1.0 - 0.05 ** (1.0 / (8 * n)))


@pytest.mark.parametrize("numbers", [[150, 46, 4], [20, 1, 1], [30, 20, 10], [3, 3, 2]])
def test_it_is_the_largest_change_that_no_difference_rejects(numbers: list[int]) -> None:
    weights = np.array([0.5, 0.3, 0.2])
    found = unseen(weights.tolist(), numbers, [0, 0, 0])
    n = np.array(numbers)
    changed = found.changed(0.05)
    assert n @ np.log1p(-changed) == pytest.approx(np.log(0.05))
    best = max(
        -minimize(
            lambda a: -(weights @ -np.expm1(-a / n)),
            start,
            bounds=[(0.0, None)] * 3,
            constraints={"type": "ineq", "fun": lambda a: -np.log(0.05) - a.sum()},
        ).fun
        for start in np.eye(3) + 0.3
    )
    assert found.largest(0.05) == pytest.approx(best, rel=1e-5)


def test_an_interval_is_at_least_as_wide_as_what_is_unseen() -> None:
    """Of 4 examples that weigh as much as 100 others each, none differs."""
    hidden = unseen([0.5, 0.5], [400, 4], [40, 0])
    assert hidden.why_hidden(0.05, "two-sided", "example") == (
        "0 of 4 examples of `rare`, which weigh most, differ between the runs; unseen differences there may"
        " be larger than an interval would be wide"
    )
    assert unseen([0.5, 0.5], [400, 400], [4, 0]).why_hidden(0.05, "two-sided", "example") is None
    for level in (0.1, 0.05, 0.025, 0.005):
        four = unseen([0.5, 0.5], [10**6, 100], [0, 4])
        assert (four.fewest(level) <= 4) == (level >= 0.025)
        n = four.fewest(level)
        half = float(-ndtri(level)) * np.sqrt(n) * 0.5 / 100
        assert half == pytest.approx(four.largest(level), rel=1e-3)
    # of twice as many examples, the share that may differ unseen is half, as is that of each
    more = unseen([0.5, 0.5], [800, 8], [80, 0])
    assert hidden.fewest(0.05, 2.0) == pytest.approx(more.fewest(0.05))
