"""Errors of predicted numbers by their definitions, exact where they are rational."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

Values = list[tuple[Fraction, Fraction]]
"""Predictions with their labels."""


def mean(loss: Callable[[Fraction, Fraction], Fraction]) -> Callable[[Values], Any]:
    return lambda values: sum(loss(x, y) for x, y in values) / len(values)


def squared(x: Fraction, y: Fraction) -> Fraction:
    return (x - y) ** 2


def square_root(value: Fraction) -> Decimal:
    """Return 60 digits."""
    with localcontext() as context:
        context.prec = 60
        return (Decimal(value.numerator) / value.denominator).sqrt()


def root(values: Values) -> Decimal:
    return square_root(mean(squared)(values))


def r2(values: Values) -> Fraction:
    labels = [y for _, y in values]
    middle = sum(labels) / len(labels)
    return 1 - sum(squared(*pair) for pair in values) / sum((y - middle) ** 2 for y in labels)
