"""Errors that floats and balls keep beside their values."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import flint
import numpy as np
import pytest
from support.bands import (
    arb,
    check_band,
)

from trackperm.exact.functions.ball import Ball
from trackperm.exact.functions.enclosure import Enclosure

ENCLOSED: dict[str, tuple[Callable[..., Enclosure], Callable[..., flint.arb], float]] = {
    "sum": (lambda x, y: x.add(y, integral=False), lambda x, y: x + y, 3),
    "product": (lambda x, y: x.multiply(y, integral=False), lambda x, y: x * y, 3),
    "quotient": (lambda x, y: x.divide(y, None), lambda x, y: x / y, 3),
    "root": (lambda x, _: x.sqrt(), lambda x, _: x.sqrt(), 3),
    "logarithm": (lambda x, _: x.log(), lambda x, _: x.log(), 40),
    "exponential": (lambda x, _: x.exp(), lambda x, _: x.exp(), 80),
}


@pytest.mark.parametrize("error", [0.0, 1e-6])
@pytest.mark.parametrize("name", ENCLOSED)
def test_floats_with_bounds(name: str, error: float) -> None:
    """Roundings of one operation, and what the errors of its operands make of its result."""
    ours, exact, c = ENCLOSED[name]
    rng = np.random.default_rng(9)
    x, y = rng.uniform(0.5, 9.0, (2, 400))
    no = np.zeros(400, dtype=bool)
    found = ours(*(Enclosure(each, np.full(400, error), no) for each in (x, y)))
    assert np.isfinite(found.bound).all()
    pairs = []
    for value, bound, a, b in zip(found.value, found.bound, x, y, strict=True):
        ends = [exact(arb(a + i * error), arb(b + j * error)) for i in (-1, 1) for j in (-1, 1)]
        pairs.append((max(float(abs(arb(value) - end)) for end in ends), float(bound)))
    check_band(pairs, c if error == 0.0 else 2.01 if name == "root" else 1.1)


@pytest.mark.parametrize(
    ("name", "y"), [("product", 1e-200), ("quotient", 1e200)], ids=["product", "quotient"]
)
def test_results_below_the_range_of_floats(name: str, y: float) -> None:
    """They become 0, but are not taken for 0."""
    ours, exact, _ = ENCLOSED[name]
    found = ours(*(Enclosure.of_constant(Fraction(each)) for each in (1e-200, y)))
    assert found.value == 0.0
    assert not found.is_zero
    assert exact(arb(1e-200), arb(y)) <= arb(float(found.bound))


def test_balls() -> None:
    rng = np.random.default_rng(10)
    operations: list[tuple[Callable[[Ball, Ball], Ball], Callable[[flint.arb, flint.arb], flint.arb]]] = [
        (lambda x, y: x + y, lambda x, y: x + y),
        (lambda x, y: x * y, lambda x, y: x * y),
        (lambda x, y: x / y, lambda x, y: x / y),
        (lambda x, _: x.sqrt(), lambda x, _: x.sqrt()),
        (lambda x, _: x.log(), lambda x, _: x.log()),
        (lambda x, _: x.exp(), lambda x, _: x.exp()),
    ]
    for ours, exact in operations:
        pairs = []
        for a, b in rng.integers(1, 999, (60, 2)).tolist():
            found = ours(Ball.of(Fraction(a, 97), 8), Ball.of(Fraction(b, 89), 8))
            truth = exact(arb(Fraction(a, 97)), arb(Fraction(b, 89)))
            off = abs(arb(Fraction(found.middle)) - truth)
            pairs.append((float(off), float(found.radius)))
        check_band(pairs, 8)
