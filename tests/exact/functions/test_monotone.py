"""Proofs that functions rise or fall, against their values at every point of the line."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.budget import cases

from trackperm.exact.functions.monotone import direction_along
from trackperm.exact.functions.real import RealStatistic

X, Y = (RealStatistic.variable(i, 2) for i in range(2))


@pytest.mark.parametrize(
    ("h", "expected"),
    [
        (X.sqrt() - Y.sqrt(), 1),
        (Y.sqrt() - X.sqrt(), -1),
        ((X / 7 + 1).log(), 1),
        (1 / (X + 1), -1),
        ((X * -1 / 100).exp(), -1),
        (X**2, 1),
        ((Y + 1) ** 3 / (X + 2), -1),
        (X.sqrt() + Y.sqrt(), None),
        (X * Y, None),
        (X.log(), None),
        ((X - 3) ** 2, None),
        ((X - 3).sqrt(), None),
        (abs(X), None),
        (X.maximum(3), None),
        (X * 0, None),
        (X / Y, None),
        ((X + 1) / (Y + 1), 1),
    ],
)
def test_directions(h: RealStatistic, expected: int | None) -> None:
    """X goes from 0 to 10, and Y back."""
    assert direction_along(h, [(0, 1), (10, -1)], 0, 10) == expected


def functions() -> st.SearchStrategy[RealStatistic]:
    numbers = st.fractions(-3, 3, max_denominator=3).map(lambda value: RealStatistic.constant(value, 2))
    return st.recursive(
        st.one_of(st.sampled_from([X, Y]), numbers),
        lambda part: st.one_of(
            st.tuples(part, part).map(lambda pair: pair[0] + pair[1]),
            st.tuples(part, part).map(lambda pair: pair[0] * pair[1]),
            st.tuples(part, part).map(
                lambda pair: pair[0] if pair[1].operation == "constant" else pair[0] / pair[1]
            ),
            st.tuples(part, st.integers(2, 3)).map(lambda pair: pair[0] ** pair[1]),
            part.map(RealStatistic.sqrt),
            part.map(RealStatistic.log),
            part.map(RealStatistic.exp),
        ),
        max_leaves=5,
    )


@settings(max_examples=cases(300), deadline=None)
@given(functions(), st.integers(-3, 6), st.sampled_from([-2, -1, 1, 3]), st.integers(0, 12))
def test_a_proof_is_right(h: RealStatistic, start: int, step: int, other: int) -> None:
    """Rising and falling functions are defined everywhere, and their exact values are in order."""
    direction = direction_along(h, [(start, step), (other, -1)], 0, 6)
    if direction is None:
        return
    points = [(start + step * x, other - x) for x in range(7)]
    values = [h.number(point) for point in points]
    for before, after in itertools.pairwise(values):
        assert after.compare(before)[0] == direction
