"""Certificates held against the errors that they bound: ``error <= bound <= C * error``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from trackperm.exact.distributions.characteristic import SwapDistribution, characteristic_function
from trackperm.exact.distributions.tilt import (
    TailMass,
    scale_factor,
)

BUDGET = 2**30

DELTA = 1e-6
"""Relative error of a component that says so."""

COARSE = 2.0**-30
"""Unit of rounding of a machine on which the roundings of one step are all that matters."""


def check_band(pairs: Iterable[tuple[float, float]], c: float) -> None:
    """No error is above its bound, and the one that comes nearest is within a factor `c` of it."""
    closest = 0.0
    for error, bound in pairs:
        assert error <= bound * (1 + 1e-9)
        closest = max(closest, error / bound if bound else 0.0)
    assert closest * c >= 1.0, f"the bounds are at least {1.0 / closest:.3g} times the errors"


def arb(value: Fraction | float) -> flint.arb:
    return flint.arb(flint.fmpq(*value.as_integer_ratio()))


def relative(found: TailMass, truth: Fraction | flint.arb) -> tuple[float, float]:
    """The error of a tail relative to the truth, and its bound."""
    truth = truth if isinstance(truth, flint.arb) else arb(truth)
    return float(abs(arb(found.log_scale).exp() * found.scaled / truth - 1)), found.error


def law_of(kinds: dict[int, int]) -> SwapDistribution:
    return SwapDistribution(np.array(list(kinds))[:, None], np.array(list(kinds.values())))


def numbers_of_swaps(kinds: dict[int, int]) -> list[int]:
    """How many swaps lead to each value of a sum of coins, by steps with their multiplicities."""
    product = flint.fmpz_poly([1])
    for step, count in kinds.items():
        product *= flint.fmpz_poly([1] + [0] * (step - 1) + [1]) ** count
    return [int(x) for x in product.coeffs()]


def upper_share(kinds: dict[int, int], point: int) -> Fraction:
    return Fraction(sum(numbers_of_swaps(kinds)[point:]), 2 ** sum(kinds.values()))


def off_by_delta(*arguments: Any) -> Any:
    """A scale factor that is off by DELTA."""
    found = scale_factor(*arguments)
    return replace(found, log=found.log + DELTA, error=found.error + DELTA)


def times_delta(*arguments: Any) -> Any:
    """A characteristic function that is off by DELTA, relative to itself."""
    values, errors = characteristic_function(*arguments)
    return values * (1 + DELTA), errors + DELTA * np.abs(values)


class CoarseMath:
    """Functions of `math` on a machine with the unit `COARSE`: an exponential whose argument is rounded."""

    def __getattr__(self, name: str) -> Any:
        return getattr(math, name)

    def exp(self, x: float) -> float:
        return math.exp(x) * (1 - COARSE * (1 + abs(x)))
