"""Certificates of tails of permuted attempts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import flint
import numpy as np
import pytest
from support.bands import (
    BUDGET,
    COARSE,
    DELTA,
    arb,
    check_band,
    relative,
)
from support.permuted_attempts import by_polynomials

from trackperm.exact.attempts import _PassRates
from trackperm.exact.distributions.characteristic import UNIT
from trackperm.exact.distributions.hypergeometric import HypergeometricSum, ScaledMass
from trackperm.exact.distributions.rounded_sum import RoundedSum
from trackperm.exact.distributions.tilt import TailMass
from trackperm.exact.engines import attempts
from trackperm.exact.engines.attempts import TiltedMass

EXAMPLES = {(2, 5, 1, 3): 12, (1, 2, 2, 4): 14, (2, 3, 1, 4): 9}
"""Passes and attempts of both systems, with their numbers; three steps."""


@cache
def permuted() -> tuple[HypergeometricSum, dict[int, Fraction]]:
    """The law of S, and the probability of each of its values, from integers."""
    rates = _PassRates.of(np.array(list(EXAMPLES)), np.array(list(EXAMPLES.values())))
    value, ways = by_polynomials(EXAMPLES)
    points = [(value(exponent) - rates.origin) / rates.unit for exponent in range(len(ways))]
    return rates.law, {int(s): Fraction(w, sum(ways)) for s, w in zip(points, ways, strict=True) if w}


def permuted_tails(
    way: str, change: Callable[[TiltedMass], TiltedMass] = lambda law: law
) -> list[tuple[float, float]]:
    """Errors and bounds of tails, from cells of a window or from frequencies."""
    law, masses = permuted()
    mean, deviation = float(law.mean), math.sqrt(law.mean_and_variance(0.0)[1])
    pairs = []
    for point in (int(mean + k * deviation) for k in (-1.0, 0.5, 1.0)):
        tilted = change(TiltedMass.of(law, attempts._tilt(law, point)))
        if way == "cells":
            found = attempts.Cells.of(tilted, BUDGET).tail(tilted, point)
        else:
            (found,) = attempts._summed(law, tilted, [point], BUDGET)
        truth = sum(mass for value, mass in masses.items() if value >= point)
        pairs.append(relative(found, Fraction(truth)))
    return pairs


WAYS = pytest.mark.parametrize("way", ["cells", "frequencies", "long counts"])


@pytest.fixture(autouse=True)
def _long_counts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.name.endswith("[long counts]"):
        monkeypatch.setattr(attempts, "SHORT", 1)


@WAYS
def test_masses_of_counts(way: str) -> None:
    def off(law: TiltedMass) -> TiltedMass:
        groups = {
            step: replace(mass, values=mass.values * (1 + DELTA), roundings=DELTA / UNIT)
            for step, mass in law.groups.items()
        }
        return replace(law, groups=groups)

    check_band(permuted_tails(way, off), 1.5 if way == "cells" else 6)


@WAYS
def test_masses_that_are_cut_off(way: str) -> None:
    def cut(law: TiltedMass) -> TiltedMass:
        step = max(law.groups)
        mass = law.groups[step]
        kept = mass.values * (np.arange(mass.values.size) < 0.7 * mass.values.size)
        lost = float((mass.values - kept).sum())
        return replace(law, groups={**law.groups, step: replace(mass, values=kept, lost=lost)})

    check_band(permuted_tails(way, cut), 3)


@WAYS
def test_mass_outside_the_window_of_permuted_attempts(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "LOG_WINDOW", -3.0)
    check_band(permuted_tails(way), 300 if way == "cells" else 3000)


def test_rounding_of_the_transform_of_permuted_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `test_rounding_of_the_transform`; exact masses, and errors in favour of the tail."""
    plain = np.fft.irfft

    def at_worst(values: Any, n: int) -> Any:
        result = plain(values, n)
        return result + 6.7 * math.log2(n) * UNIT * np.linalg.norm(result) / math.sqrt(n)

    def exact(law: TiltedMass) -> TiltedMass:
        groups = {step: replace(mass, roundings=0.0) for step, mass in law.groups.items()}
        return replace(law, groups=groups)

    monkeypatch.setattr(attempts.np.fft, "irfft", at_worst)
    check_band(permuted_tails("cells", exact), 50)


def test_products_of_spectra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three roundings of a product for each group, all in one direction, and transforms as if exact."""
    law, _ = permuted()
    tilted = TiltedMass.of(law, 0.0)
    exact = attempts.Cells.of(tilted, BUDGET)
    plain = np.fft.rfft
    monkeypatch.setattr(attempts, "UNIT", COARSE)
    monkeypatch.setattr(attempts, "FFT_ROUNDINGS", 0.0)
    monkeypatch.setattr(attempts.np.fft, "rfft", lambda values: plain(values) * (1 + 3 * COARSE))
    found = attempts.Cells.of(tilted, BUDGET)
    check_band([(float(np.linalg.norm(found.values - exact.values)), found.error_norm)], 1.02)


@pytest.mark.parametrize("variance", [0.0, 1.0, 400.0])
def test_the_radius_of_a_window_solves_bernsteins_inequality(variance: float) -> None:
    """Its bound is 2 exp(-t^2 / 2 / (variance + b t / 3)) if no summand is more than b from its mean."""
    radius = attempts._radius(variance, 7.0, -46.0)
    log_bound = math.log(2.0) - radius * radius / 2.0 / (variance + 7.0 * radius / 3.0)
    assert log_bound == pytest.approx(-46.0, rel=1e-12)


def test_scale_of_permuted_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "UNIT", COARSE)
    monkeypatch.setattr(attempts, "LOG_2", math.log(2.0) * (1 + COARSE))
    law = TiltedMass(0.25, {}, 1.0, -1200, 0, 0, 1, 1)
    found = law.certified(40, 1.0, 0.0)
    check_band([relative(found, arb(2.0) ** -1200 * arb(-10.0).exp())], 10)


def test_products_of_masses() -> None:
    """Roundings of a convolution, and those that its factors have already."""
    rng = np.random.default_rng(11)
    pairs = []
    for _ in range(60):
        one, other = (ScaledMass(0, rng.random(3), 0, 0.0, 0.0) for _ in range(2))
        found = one * other
        truth = np.convolve(*([Fraction(x) for x in each.values.tolist()] for each in (one, other)))
        scaled = [Fraction(x) * Fraction(2) ** found.exponent for x in found.values.tolist()]
        off = max(abs(float(x / exact - 1)) for x, exact in zip(scaled, truth, strict=True))
        pairs.append((off, found.roundings * UNIT))
    check_band(pairs, 4)
    off = 1e-10
    rounded = [
        replace(each, values=each.values * (1 + off), roundings=off / UNIT, lost=0.1) for each in (one, other)
    ]
    product = rounded[0] * rounded[1]
    check_band([(float((product.values / found.values - 1).max()), product.roundings * UNIT)], 1.01)
    assert product.lost >= 0.1 + 0.1 * (1 - 0.1)


@pytest.mark.parametrize("size", [20, 300])
def test_characteristic_function_of_counts(size: int) -> None:
    """By Horner's rule for short counts, by sines and cosines for long ones."""
    rng = np.random.default_rng(7)
    values = rng.random(size)
    mass = ScaledMass(3, values / values.sum(), 0, 0.0, 0.0)
    law = TiltedMass(0.0, {4: mass}, 1.0, 0, 0, 0, 1009, 10**4)
    frequencies, found, bounds = attempts._characteristic(law, 5, np.arange(1, 500, 9))
    pairs = []
    for frequency, value, bound in zip(frequencies.tolist(), found.tolist(), bounds.tolist(), strict=True):
        angle = -2 * flint.arb.pi() * frequency / 1009
        truth = sum(
            (
                arb(p) * flint.acb(0, angle * (4 * (3 + j) - 5)).exp()
                for j, p in enumerate(mass.values.tolist())
            ),
            flint.acb(0),
        )
        pairs.append((float(abs(flint.acb(value.real, value.imag) - truth)), bound))
    check_band(pairs, 300)


def law_of_counts(law: HypergeometricSum) -> dict[int, Fraction]:
    masses = {0: Fraction(1)}
    for ways, step, count in zip(law.ways(), law.steps.tolist(), law.multiplicities.tolist(), strict=True):
        for _ in range(count):
            following: dict[int, Fraction] = {}
            for value, mass in masses.items():
                for j, number in enumerate(ways):
                    moved = value + j * step
                    following[moved] = following.get(moved, Fraction(0)) + mass * Fraction(number, sum(ways))
            masses = following
    return masses


@pytest.mark.parametrize("log_end", [-math.inf, -9.0, -5.0])
def test_a_remainder_beyond_its_reach_is_part_of_both_ends(
    log_end: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the mean, where a remainder exceeds its reach with a probability of at most exp(LOG_FAILURE)."""
    end = attempts.EMPTY if math.isinf(log_end) else TailMass(log_end, 1.0, 0.0)
    monkeypatch.setattr(attempts, "LOG_FAILURE", -7.0)
    monkeypatch.setattr(attempts, "_tails", lambda *_: [end, end])
    law, _ = permuted()
    found = attempts._bracketed(RoundedSum.of(law, 7), math.floor(law.mean), BUDGET)
    high = math.exp(log_end) + math.exp(-7.0)
    low = math.exp(log_end) - math.exp(-7.0)
    assert math.exp(found.log) == pytest.approx(high, rel=1e-3)
    assert found.error == pytest.approx(high / low - 1.0 if low > 0.0 else 1.0, rel=1e-3)


@pytest.mark.parametrize(("log_failure", "end"), [(-0.7, "upper"), (-3.0, "lower")])
def test_mass_omitted_by_rounding_steps_of_counts(
    log_failure: float, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The truth comes near either end: nearer than the probability that a remainder exceeds rho."""
    monkeypatch.setattr(attempts, "LOG_FAILURE", log_failure)
    rng = np.random.default_rng(8)
    closest = math.inf
    for _ in range(150):
        sizes = rng.integers(1, 3, (2, 3))
        passes = rng.integers(1, sizes.sum(axis=0))
        law = HypergeometricSum(*sizes, passes, rng.integers(5, 60, 3), rng.integers(1, 3, 3))
        point, spacing = int(rng.integers(1, law.total + 1)), int(rng.integers(2, 60))
        truth = float(sum(mass for value, mass in law_of_counts(law).items() if value >= point))
        rough = RoundedSum.of(law, spacing)
        if not rough.law.steps.size:
            continue
        found = attempts._bracketed(rough, point, BUDGET)
        high = math.exp(found.log)
        low = high / (1 + found.error) if found.error < 1 else 0.0
        assert low <= truth * (1 + 1e-12)
        assert truth <= high * (1 + 1e-12)
        closest = min(closest, high / truth if end == "upper" else truth / max(low, 1e-300))
    assert closest <= {"upper": 1.2, "lower": 1.2}[end]
