"""Branch and bound over frequencies, against the whole grid."""

from __future__ import annotations

import math

import flint
import numpy as np
import pytest

from trackperm.errors import CapacityError
from trackperm.exact.distributions.characteristic import SwapDistribution, characteristic_function, remainders
from trackperm.exact.distributions.frequencies import FrequencySearch, surviving_frequencies
from trackperm.exact.engines.linear.lattice import line_window

LAWS = {
    "one step": SwapDistribution(np.array([[1]]), np.array([200])),
    "one odd among many even": SwapDistribution(np.array([[1], [2]]), np.array([1, 500])),
    "two scales": SwapDistribution(np.array([[1], [100]]), np.array([50, 40])),
    "a step that is an eighth of the period": SwapDistribution(np.array([[1], [64]]), np.array([2, 3])),
    "consecutive steps": SwapDistribution(np.arange(1, 301)[:, None], np.ones(300, dtype=np.int64)),
    "steps in progression": SwapDistribution(1 + 50 * np.arange(150)[:, None], np.ones(150, dtype=np.int64)),
    "steps of nearly the same size": SwapDistribution(200 + np.arange(120)[:, None], np.arange(120) % 3 + 1),
    "hundreds of steps in the plane": SwapDistribution(
        np.stack([np.arange(200) % 15, np.arange(200) // 15], axis=1)[1:], np.ones(199, dtype=np.int64)
    ),
    "plane": SwapDistribution(np.array([[1, 0], [0, 1], [1, -2]]), np.array([60, 40, 9])),
    "space": SwapDistribution(
        np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 2, 1]]), np.array([30, 20, 25, 1])
    ),
}


@pytest.mark.parametrize("log_threshold", [-2.0, -20.0])
@pytest.mark.parametrize("tilt_size", [0.0, 1e-8, 0.05, 2.0])
@pytest.mark.parametrize("name", LAWS)
def test_no_frequency_above_the_threshold_is_lost(name: str, tilt_size: float, log_threshold: float) -> None:
    law = LAWS[name]
    periods = (512,) if law.rank == 1 else (48, 40) if law.rank == 2 else (16, 12, 18)
    tilt = tilt_size * np.ones(law.rank)
    found = surviving_frequencies(law, tilt, periods, log_threshold, 10**6)
    half = (*periods[:-1], periods[-1] // 2 + 1)
    everything = np.stack(np.unravel_index(np.arange(math.prod(half)), half), axis=1)
    values, _ = characteristic_function(law, tilt, [0] * law.rank, periods, everything)
    above = {tuple(row) for row in everything[np.abs(values) > math.exp(log_threshold)]}
    listed = [tuple(row) for row in found]
    assert above <= set(listed)
    assert len(set(listed)) == len(listed)
    assert set(listed) <= {tuple(row) for row in everything}


@pytest.mark.parametrize("tilt_size", [0.0, 0.05, 2.0])
@pytest.mark.parametrize("name", LAWS)
def test_bounds_near_frequency_0_are_upper_bounds(name: str, tilt_size: float) -> None:
    law = LAWS[name]
    periods = (512,) if law.rank == 1 else (48, 40) if law.rank == 2 else (16, 12, 18)
    tilt = tilt_size * np.ones(law.rank)
    half = (*periods[:-1], periods[-1] // 2 + 1)
    everything = np.stack(np.unravel_index(np.arange(math.prod(half)), half), axis=1)
    phases = everything / np.array(periods) @ law.coordinates.T
    factors = (
        1.0 - np.sin(np.pi * phases) ** 2 / np.cosh(np.minimum(law.coordinates @ tilt / 2.0, 300.0)) ** 2
    )
    logs = np.log(np.maximum(factors, 1e-300)) @ law.multiplicities / 2.0
    bounds = FrequencySearch(law, tilt, periods, -20.0)._near_bounds(everything.T)
    assert (logs <= bounds + 1e-9).all()
    longest = np.abs(law.coordinates / np.array(periods)).max(axis=0)
    assert (bounds[(everything @ longest <= 0.5) & everything.any(axis=1)] < 0.0).all()


def test_phases_of_long_steps_lose_no_frequency() -> None:
    """At these frequencies all coins are in phase, which roundings of a phase of 10^12 turns hide."""
    period, (along, across) = 2**44 - 17, (10_872_664_213_301, 7_286_977_268_806)
    law = SwapDistribution(np.array([[along, across]]), np.array([10**12]))
    inverse, corners = pow(across, -1, period), []
    for first in np.random.default_rng(5).integers(0, period, 200).tolist():
        second = -first * along * inverse % period
        if 2 * second <= period:
            corners.append([first, second])
    search = FrequencySearch(law, np.zeros(2), (period, period), -2.0)
    kept, _ = search._level(len(search._sizes) - 1).survivors(np.array(corners).T, -2.0)
    assert kept.T.tolist() == corners


def test_rows_by_the_thousand_leave_the_main_peak_alone() -> None:
    """Any choice of rows is a bound; one of rows that agree with each other would leave more peaks."""
    steps = np.arange(1, 20_001)
    law = SwapDistribution(steps[:, None], np.ones(steps.size, dtype=np.int64))
    _, period, _ = line_window(law, np.zeros(1))
    search = FrequencySearch(law, np.zeros(1), (period,), -50.0)
    found = np.sort(search.survivors(2**18)[:, 0])
    deviation = math.sqrt(float((steps.astype(float) ** 2).sum())) / 2
    assert found.tolist() == list(range(found.size))
    assert found.size == pytest.approx(period * 10.0 / (2.0 * math.pi * deviation), abs=2.0)
    assert search.least_factors < 10**5


def test_a_search_that_takes_too_long_is_refused_at_once() -> None:
    law = SwapDistribution(10**9 + np.arange(1_000)[:, None], np.ones(1_000, dtype=np.int64))
    with pytest.raises(CapacityError, match=r"the search for frequencies needs .* factors"):
        surviving_frequencies(law, np.zeros(1), (10**12,), -50.0, 2**18)


@pytest.mark.parametrize("modulus", [2**31, 2**31 + 11, 2**40 + 15, 2**45 - 1])
def test_remainders_against_integers(modulus: int) -> None:
    rng = np.random.default_rng(0)
    factors = np.append(rng.integers(0, modulus, 500), [0, modulus - 1, modulus // 2])
    others = np.append(rng.integers(0, modulus, 500), [modulus - 1, modulus - 1, 2])
    expected = [a * b % modulus for a, b in zip(factors.tolist(), others.tolist(), strict=True)]
    assert remainders(factors, others, modulus).tolist() == expected


@pytest.mark.parametrize("tilt", [0.0, 2.0**-33, -(2.0**-30)])
def test_characteristic_function_on_a_long_grid_against_ball_arithmetic(tilt: float) -> None:
    rng = np.random.default_rng(1)
    steps, period, start = rng.integers(1, 2**33, 700), 2**44 - 17, 12_345_678_901
    law = SwapDistribution(steps[:, None], rng.integers(1, 4, 700))
    frequencies = np.array([0, 1, 2, 7, 31, 60, 100])
    values, errors = characteristic_function(law, np.array([tilt]), (start,), (period,), frequencies[:, None])
    with flint.ctx.workprec(200):
        for value, error, frequency in zip(values, errors, frequencies.tolist(), strict=True):
            theta = 2 * flint.arb.pi() * frequency / period
            truth = flint.acb(0, theta * start).exp()
            for step, count in zip(steps.tolist(), law.multiplicities.tolist(), strict=True):
                half = flint.arb(tilt) * step / 2
                factor = flint.acb(-half, theta * step / 2).exp() + flint.acb(half, -theta * step / 2).exp()
                truth *= (flint.acb(0, -theta * step / 2).exp() * factor / (2 * half.cosh())) ** count
            assert abs(flint.acb(value.real, value.imag) - truth) <= error
            assert error <= 1e-9


@pytest.mark.parametrize("tilt", [0.0, 0.01, 0.1, 1.0, 4.0])
def test_mass_omitted_by_a_window_against_the_whole_law(tilt: float) -> None:
    steps = np.arange(1, 301)
    law = SwapDistribution(steps[:, None], np.ones(steps.size, dtype=np.int64))
    start, length, log_outside = line_window(law, np.array([tilt]))
    mass = np.ones(1)
    for step in steps.tolist():
        up = 1.0 / (1.0 + math.exp(-tilt * step))
        spread = np.zeros(mass.size + step)
        spread[: mass.size] = mass * math.exp(-tilt * step) * up
        spread[step:] += mass * up
        mass = spread
    outside = float(mass[:start].sum() + mass[start + length :].sum())
    assert outside <= math.exp(log_outside)
    deviation = math.sqrt(float(law.covariance(np.array([tilt]))[0, 0]))
    assert length <= min(mass.size, 40.0 * deviation + 80.0)


def test_too_many_frequencies_are_refused() -> None:
    law = SwapDistribution(np.array([[1]]), np.array([1]))
    with pytest.raises(CapacityError, match="frequencies matter"):
        surviving_frequencies(law, np.zeros(1), (10_000,), -50.0, 100)
