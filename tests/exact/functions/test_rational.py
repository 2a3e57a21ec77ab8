"""Rational statistics as trees of operations: when they are alike, and how long their symbolic work takes."""

import itertools
import time

import pytest

from trackperm.exact import RationalStatistic
from trackperm.exact.functions.operations import are_alike


def test_statistics_of_hundreds_of_counts_are_simplified_within_seconds() -> None:
    """A macro-average over 200 classes takes 10 ms, where each division is over two counts of 400."""
    x = [RationalStatistic.variable(i, 400) for i in range(400)]
    shares = (x[i].divide(x[i] + x[i + 1], undefined=0) for i in range(0, 400, 2))
    h = sum(shares, RationalStatistic.constant(0, 400))
    start = time.process_time()
    assert h.linear is None
    assert time.process_time() - start < 5


X = [RationalStatistic.variable(i, 3) for i in range(3)]
TREES = [
    X[0].divide(X[0] + X[1], undefined=0),
    X[0].divide(X[0] + X[1], undefined=1),
    X[0] / (X[0] + X[1]),
    X[1].divide(X[1] + X[2], undefined=0),
    X[0] + 2,
    X[0] * 2,
    X[0] + 3,
    X[0],
    X[2],
]


@pytest.mark.parametrize("one", TREES)
def test_trees_are_alike_if_they_are_equal_after_renaming(one: RationalStatistic) -> None:
    names = [[0, 1, 2], [1, 2, 0], [2, 1, 0], [0, 0, 2]]
    found = {
        are_alike(one, other, mine, theirs) == (one.renamed(mine) == other.renamed(theirs))
        for other, mine, theirs in itertools.product(TREES, names, names)
    }
    assert found == {True}
