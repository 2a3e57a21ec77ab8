"""Sums of hypergeometric counts: masses, tilts and bounds against SciPy and exact integers."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
import scipy.stats

from trackperm.exact.distributions.characteristic import UNIT, characteristic_function
from trackperm.exact.distributions.hypergeometric import HypergeometricSum, ScaledMass
from trackperm.exact.distributions.pmf import LOG_WINDOW
from trackperm.exact.engines.attempts import TiltedMass

ROWS = [(3, 5, 4), (5, 3, 1), (1, 10, 9), (40, 60, 31), (7, 7, 13), (2, 10**6, 999_000), (300, 200, 250)]


def law_of(rows: list[tuple[int, int, int]], steps: list[int], counts: list[int]) -> HypergeometricSum:
    first, second, passes = np.array(rows).T
    return HypergeometricSum(first, second, passes, np.array(steps), np.array(counts))


def probabilities(a: int, b: int, m: int) -> list[Fraction]:
    if min(a, b, m, a + b - m) == a and a + b > 1000:  # the same law, drawn the other way round
        m, a, b = a, m, a + b - m
    low, high = max(0, m - b), min(a, m)
    return [
        Fraction(math.comb(a, x) * math.comb(b, m - x), math.comb(a + b, m)) for x in range(low, high + 1)
    ]


def held(mass: ScaledMass, truth: list[flint.arb]) -> flint.arb:
    """Masses are at most their roundings above the truth; return what they lack beyond these."""
    lacking = flint.arb(0)
    for value, true in zip(mass.values.tolist(), truth, strict=True):
        if value < 2.0**-1000:  # where floats end
            lacking += true * flint.arb(2) ** -mass.exponent
            continue
        off = flint.arb(value) * flint.arb(2) ** mass.exponent / true - 1
        assert off <= mass.roundings * UNIT
        if not off >= -mass.roundings * UNIT:
            lacking -= off * true * flint.arb(2) ** -mass.exponent
    return lacking


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("tilt", [0.0, 0.25, -1.5, 6.5, 40.0])
def test_tilted_masses_of_a_row_against_integers(row: tuple[int, int, int], tilt: float) -> None:
    (mass,), (point,) = law_of([row], [3], [1]).rows(tilt)
    with flint.ctx.workprec(300):
        truth = [
            flint.arb(flint.fmpq(p.numerator, p.denominator)) * (flint.arb(tilt) * 3 * (j - point)).exp()
            for j, p in enumerate(probabilities(*row))
        ]
        assert held(mass, truth) <= mass.lost


def test_convolutions_against_integers() -> None:
    mass = law_of([(3, 5, 4)], [1], [1]).rows(0.0)[0][0]
    for count in (2, 7, 90):
        numbers = flint.fmpz_poly([math.comb(3, x) * math.comb(5, 4 - x) for x in range(4)]) ** count
        total = math.comb(8, 4) ** count
        found = mass**count
        with flint.ctx.workprec(300):
            truth = [flint.arb(flint.fmpq(n, total)) for n in numbers.coeffs()]
            end = found.start + found.values.size
            lacking = held(found, truth[found.start : end])
            cut_off = sum(truth[: found.start]) + sum(truth[end:])
            assert lacking * flint.arb(2) ** found.exponent + cut_off <= found.lost
    assert found.values.size < 3 * 90


@pytest.mark.parametrize("row", [row for row in ROWS if sum(row) < 2_000])
def test_moments_against_scipy(row: tuple[int, int, int]) -> None:
    a, b, m = row
    law = law_of([row], [4], [6])
    mean, variance = law.mean_and_variance(0.0)
    true = scipy.stats.hypergeom(a + b, m, a)
    assert mean == pytest.approx(6 * 4 * (true.mean() - max(0, m - b)), rel=1e-12)
    assert variance == pytest.approx(6 * 16 * true.var(), rel=1e-12)
    assert float(law.mean) == pytest.approx(mean, rel=1e-12)
    assert law.total == 6 * 4 * min(a, b, m, a + b - m)


def test_the_tilt_puts_the_mean_where_it_should() -> None:
    law = law_of(ROWS[:5], [5, 1, 12, 3, 7], [10, 4, 8, 2, 30])
    for share in (0.51, 0.7, 0.95, 0.9999):
        start, deviation = law.mean_and_variance(0.0)
        target = start + share * (law.total - start)
        mean, variance = law.mean_and_variance(law.tilt_for(target))
        assert abs(mean - target) <= 0.01 * math.sqrt(variance)
        assert deviation > 0


@pytest.mark.parametrize("tilt", [0.0, 0.02, 0.3])
def test_coins_bound_the_characteristic_function_and_windows_hold_the_mass(tilt: float) -> None:
    law = law_of(ROWS[:5], [5, 1, 12, 3, 7], [3, 4, 2, 1, 5])
    masses = np.ones(1)
    for mass, step, count in zip(law.rows(tilt)[0], law.steps.tolist(), law.multiplicities, strict=True):
        spread = np.zeros(step * (mass.values.size - 1) + 1)
        spread[::step] = mass.values / mass.values.sum()
        for _ in range(count):
            masses = np.convolve(masses, spread)
    assert masses.size == law.total + 1
    period = 1024
    frequencies = np.arange(period // 2 + 1)
    moduli = np.abs(np.exp(-2j * np.pi * np.outer(frequencies, np.arange(masses.size)) / period) @ masses)
    coins, biases = law.coins(tilt)
    bounds = np.ones(frequencies.size)
    for step, count, bias in zip(coins.coordinates[:, 0], coins.multiplicities, biases, strict=True):
        sine = np.sin(np.pi * frequencies * step / period)
        bounds *= (1.0 - sine**2 / np.cosh(bias) ** 2) ** (count / 2)
    assert (moduli <= bounds + 1e-13).all()
    assert (moduli > bounds - 1.0).any()
    # For single coins the bound is what it bounds.
    coin = law_of([(1, 1, 1)], [2], [9])
    fair, _ = coin.coins(0.0)
    values, _ = characteristic_function(fair, np.zeros(1), [0], [64], np.arange(33)[:, None])
    assert np.abs(values) == pytest.approx(np.abs(np.cos(2 * np.pi * np.arange(33) / 64)) ** 9, abs=1e-12)

    tilted = TiltedMass.of(law, tilt)
    inside = masses[tilted.start : tilted.start + tilted.period].sum()
    assert 1.0 - inside <= math.exp(LOG_WINDOW) + 1e-12


def test_windows_are_in_proportion_to_the_deviation() -> None:
    law = law_of([(3, 5, 4), (3, 5, 3)], [1, 1], [20_000, 30_000])
    for tilt in (0.0, 1.0, 4.0):
        tilted = TiltedMass.of(law, tilt)
        deviation = math.sqrt(law.mean_and_variance(tilt)[1])
        assert tilted.period <= 30.0 * deviation + 60.0
        assert tilted.groups[1].values.size <= 30.0 * deviation + 60.0
