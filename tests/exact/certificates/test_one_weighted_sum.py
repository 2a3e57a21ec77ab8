"""Certificates of tails of one weighted sum, from components with stated errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.bands import (
    BUDGET,
    COARSE,
    DELTA,
    CoarseMath,
    check_band,
    law_of,
    numbers_of_swaps,
    off_by_delta,
    relative,
    times_delta,
    upper_share,
)

from trackperm.exact.distributions.line import LineLaw
from trackperm.exact.distributions.tilt import (
    TailMass,
)
from trackperm.exact.engines.linear import bracket, tails
from trackperm.exact.engines.linear import lattice as line

KINDS = {1: 40, 2: 30, 5: 20}
POINTS = (105, 130, 150, 180, 199)


@pytest.mark.parametrize(
    ("name", "component", "c"),
    [("scale_factor", off_by_delta, 1.1), ("characteristic_function", times_delta, 3)],
)
def test_components_of_a_line(
    name: str, component: Callable[..., Any], c: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, name, component)
    for point in POINTS:
        (found,) = line.upper_tails(law_of(KINDS), [point])
        check_band([relative(found, upper_share(KINDS, point))], c * (8 if point == 105 else 1))


def test_mass_outside_the_window_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that ends with the support: all that lies below it comes back within the tail."""
    n, start, point = 100, 46, 52
    outside = float(1 - upper_share({1: n}, start))
    monkeypatch.setattr(line, "line_window", lambda *_: (start, n - start + 1, math.log(outside)))
    (found,) = line.upper_tails(law_of({1: n}), [point])
    check_band([relative(found, upper_share({1: n}, point))], 3)
    # From below the window on, all but that mass is in the tail.
    (found,) = line.upper_tails(law_of({1: n}), [start])
    check_band([(outside, found.error)], 3)


@pytest.mark.parametrize("log_lost", [-6.0, -9.0, -18.0])
def test_masses_that_a_tail_may_lose(log_lost: float) -> None:
    """By pruned frequencies and a narrow window: something is lost, and less than the bound."""
    errors = []
    for point in range(100, 200):
        (found,) = line.upper_tails(law_of(KINDS), [point], log_lost)
        error, bound = relative(found, upper_share(KINDS, point))
        assert error <= bound <= 30.0 * math.exp(log_lost) + 1e-12
        errors.append(error / bound)
    assert max(errors) > 1e-4


def test_mass_omitted_by_rounding_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remainders that exceed rho with a probability of 0.4: they may make up all of the upper end."""
    monkeypatch.setattr(bracket, "LOG_FAILURE", -0.7)
    rng = np.random.default_rng(6)
    above, below, gap = 0, 0, math.inf
    for _ in range(600):
        steps = np.unique(rng.integers(1, 60, int(rng.integers(2, 6))))
        law = LineLaw(steps, rng.integers(1, 3, steps.size))
        limit, spacing = int(rng.integers(0, law.total)), int(rng.integers(2, 60))
        numbers = numbers_of_swaps(dict(zip(steps.tolist(), law.multiplicities.tolist(), strict=True)))
        truth = sum(numbers[: limit + 1]) / 2**law.n_coins
        found = bracket.bracket_tail(
            law, limit, spacing, math.log(truth), lambda rough, ends: tails.exact_tails(rough, ends, BUDGET)
        )
        high = math.exp(found.log)
        low = high / (1.0 + found.error)
        assert low <= truth * (1 + 1e-12)
        assert truth <= high
        failure = math.exp(math.log(truth) - 0.7)
        above += truth > high - failure
        below += 2.0**-law.n_coins < low < truth < low + failure
        gap = min(gap, high / truth)
    assert min(above, below) >= 1
    assert gap <= 1.6


@pytest.mark.parametrize("sign", [1, -1])
def test_tails_of_rounded_steps(sign: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that are multiples of the spacing, so that nothing is rounded off."""
    monkeypatch.setattr(bracket, "LOG_FAILURE", -60.0)
    law = LineLaw(np.array([5, 10]), np.array([30, 20]))
    numbers = numbers_of_swaps({1: 30, 2: 20})
    truth = sum(numbers[: 162 // 5 + 1]) / 2**50

    def off(rough: LineLaw, ends: list[int]) -> list[TailMass]:
        exact = tails.exact_tails(rough, ends, BUDGET)
        return [each._replace(scaled=each.scaled * (1 + sign * DELTA), error=1.01 * DELTA) for each in exact]

    found = bracket.bracket_tail(law, 162, 5, math.log(truth), off)
    assert truth <= math.exp(found.log) <= truth * (1 + 2.1 * DELTA)
    assert truth * (1 - 2.1 * DELTA) <= math.exp(found.log) / (1 + found.error) <= truth


def test_roundings_of_a_bracket(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exponentials whose argument is off by a unit of the coarse machine."""

    law = LineLaw(np.array([5, 10]), np.array([30, 20]))
    truth = sum(numbers_of_swaps({1: 30, 2: 20})[: 162 // 5 + 1]) / 2**50
    monkeypatch.setattr(bracket, "LOG_FAILURE", -60.0)
    monkeypatch.setattr(bracket, "UNIT", COARSE)
    monkeypatch.setattr(bracket, "math", CoarseMath())
    found = bracket.bracket_tail(
        law, 162, 5, -9.0, lambda rough, ends: tails.exact_tails(rough, ends, BUDGET)
    )
    high = math.exp(found.log)
    assert truth <= high <= truth * (1 + 1000 * COARSE)
    assert truth * (1 - 1000 * COARSE) <= high / (1 + found.error) <= truth


def test_coins_that_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tail below a limit is that of the coins with smaller steps, times a power of 2."""
    monkeypatch.setattr(tails, "UNIT", COARSE)
    (found,) = (tails._scaled(TailMass(-800.0, 1.0, 0.0), n) for n in [1201])
    # The machine's logarithm of 2^-1201, off by a unit.
    check_band([(1201 * math.log(2.0) * COARSE, found.error)], 8)


def test_tilts_times_steps_are_exact() -> None:
    """So that phases and weights have no further roundings, however large one of the steps is."""
    law = law_of({1: 40, 3: 7, 2**43 + 1: 5})
    for point in (3 * 2**43, 4 * 2**43 + 30, 5 * 2**43 + 40):
        (tilt,) = line.upper_tilt(law, point)
        assert tilt > 0.0
        for step in law.coordinates[:, 0].tolist():
            assert Fraction(float(tilt) * step) == Fraction(float(tilt)) * step
