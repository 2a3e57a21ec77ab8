"""Scale factors, characteristic functions and masses against integers and ball arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from support.bands import (
    BUDGET,
    DELTA,
    arb,
    check_band,
    law_of,
    numbers_of_swaps,
    relative,
)

from trackperm.errors import CapacityError
from trackperm.exact.distributions import pmf
from trackperm.exact.distributions.characteristic import UNIT, SwapDistribution, characteristic_function
from trackperm.exact.distributions.line import LineLaw
from trackperm.exact.distributions.pmf import Window, lattice_pmf
from trackperm.exact.distributions.tilt import (
    TailMass,
    quantised,
    scale_factor,
    share_of_swaps,
)
from trackperm.exact.engines.linear import binomial, dynamic
from trackperm.exact.engines.linear import lattice as line
from trackperm.exact.engines.linear.binomial import binomial_tail
from trackperm.exact.engines.linear.dynamic import dynamic_tails


@pytest.mark.parametrize("where", ["mean", "inside", "edge"])
def test_scale_factor(where: str) -> None:
    """K(lambda) - lambda . (x - E/2): its terms cancel at the mean, and next to the edge of the support."""
    rng = np.random.default_rng(0)
    pairs = []
    for _ in range(400):
        n, rank = rng.integers(1, 4), rng.integers(1, 3)
        law = SwapDistribution(rng.integers(1, 9, (n, rank)), np.rint(10 ** rng.uniform(0, 6, n)).astype(int))
        tilt = quantised(rng.normal(size=rank) * 10 ** rng.uniform(-3, 1))
        share = 1.0 if where == "edge" else rng.uniform(0.5, 1.0)
        point = [int(share * total) for total in law.total]
        if where == "mean":
            point = [round(x + total / 2) for x, total in zip(law.centred_mean(tilt), law.total, strict=True)]
        truth = arb(0)
        for step, count in zip(law.coordinates.tolist(), law.multiplicities.tolist(), strict=True):
            half = sum((arb(t) * x for t, x in zip(tilt.tolist(), step, strict=True)), arb(0)) / 2
            truth += count * half.cosh().log()
        for t, x, total in zip(tilt.tolist(), point, law.total, strict=True):
            truth -= arb(t) * (2 * x - total) / 2
        found = scale_factor(law, tilt, point)
        pairs.append((float(abs(arb(found.log) - truth)), found.error))
    check_band(pairs, 8)


def test_scale_factor_of_coordinates_that_oppose_each_other() -> None:
    """Both coordinates move by 10^15 and nearly cancel, so the roundings of each are more than the rest."""
    rng = np.random.default_rng(12)
    pairs = []
    for _ in range(50):
        law = SwapDistribution(np.array([[1, -1]]), np.array([2**51]))
        tilt = quantised(np.array([0.75, 0.75 + 2.0**-18]) * rng.uniform(0.5, 1.0))
        x = 2**50 + int(rng.integers(2**48, 2**49))
        a = arb(tilt[0]) - arb(tilt[1])
        truth = 2**51 * (a / 2).cosh().log() - a * (2 * x - 2**51) / 2
        found = scale_factor(law, tilt, (x, -x))
        pairs.append((float(abs(arb(found.log) - truth)), found.error))
    check_band(pairs, 40)


CHARACTERISTICS: dict[str, Callable[[np.random.Generator], tuple[dict[int, int], float, int]]] = {
    "one coin": lambda rng: ({1: 1}, rng.choice([0.0, rng.normal()]), int(rng.integers(30, 4000))),
    "log modulus": lambda rng: ({1: (c := int(10 ** rng.uniform(3, 12)))}, 0.0, int(8 * math.sqrt(c))),
    "angle": lambda rng: ({1: (c := int(10 ** rng.uniform(3, 9)))}, rng.uniform(0.5, 3), int(8 * c**0.5)),
    "rows": lambda rng: (dict.fromkeys(range(1, int(rng.integers(200, 800))), 2), 0.0, 40_009),
}


@pytest.mark.parametrize(
    ("name", "c"), [("one coin", 4.0), ("log modulus", 5.0), ("angle", 8.0), ("rows", 120.0)]
)
def test_characteristic_function(name: str, c: float) -> None:
    """Roundings of a factor, of logarithms times multiplicities, of angles, and of sums over rows."""
    rng = np.random.default_rng(1)
    pairs = []
    for _ in range(4 if name == "rows" else 200):
        kinds, tilt, period = CHARACTERISTICS[name](rng)
        start = -int(rng.integers(0, period))
        frequencies = rng.integers(1, {"one coin": period // 2, "log modulus": 60}.get(name, 12), 5)
        values, errors = characteristic_function(
            law_of(kinds), np.array([tilt]), (start,), (period,), frequencies[:, None]
        )
        for value, error, frequency in zip(values, errors, frequencies.tolist(), strict=True):
            angle = -flint.arb.pi() * frequency / period
            truth = flint.acb(0, angle * (law_of(kinds).total[0] - 2 * start)).exp()
            for step, count in kinds.items():
                half = arb(tilt) * step / 2
                truth *= (flint.acb(half, angle * step).cosh() / half.cosh()) ** count
            pairs.append((float(abs(flint.acb(value.real, value.imag) - truth)), float(error)))
    check_band(pairs, c)


@pytest.mark.parametrize("tilt", [(0.0, 0.0), (0.25, -0.125)])
def test_phases_that_many_frequencies_share(tilt: tuple[float, float]) -> None:
    """Logarithms and angles of all phases are looked up where there are fewer of them than frequencies."""
    rng = np.random.default_rng(2)
    periods = (24, 36)
    law = SwapDistribution(rng.integers(-5, 6, (7, 2)), rng.integers(1, 40, 7))
    frequencies = np.stack(np.meshgrid(np.arange(24), np.arange(19), indexing="ij"), axis=-1).reshape(-1, 2)
    values, errors = characteristic_function(law, np.array(tilt), (3, -8), periods, frequencies)
    for value, error, frequency in zip(values, errors, frequencies, strict=True):
        (alone,), (own,) = characteristic_function(law, np.array(tilt), (3, -8), periods, frequency[None])
        assert abs(value - alone) <= error + own
    assert np.abs(values).max() == 1.0
    assert errors.max() < 1e-13


def norm_of_errors(kinds: dict[int, int], window: Window) -> tuple[float, float]:
    """Euclidean norm of the errors of the mass on a window, and its bound."""
    found, numbers = lattice_pmf(law_of(kinds), np.zeros(1), window, BUDGET), numbers_of_swaps(kinds)
    numbers += [0] * window.size
    n_coins = sum(kinds.values())
    off = [
        Fraction(mass) - Fraction(numbers[window.start[0] + j], 2**n_coins)
        for j, mass in enumerate(found.mass.tolist())
    ]
    return math.sqrt(float(sum(each * each for each in off))), found.error_norm


def test_mass_on_a_window() -> None:
    check_band((norm_of_errors({1: n, 3: n // 2}, Window((0,), (3 * n,))) for n in (8, 20, 60, 150)), 30)


def test_rounding_of_the_transform(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may err by 6.7 log2(P) u of its result (Higham, Theorem 24.2, with accurate twiddle factors)."""
    plain = np.fft.irfftn

    def at_worst(values: Any, s: Any, axes: Any) -> Any:
        result = plain(values, s=s, axes=axes)
        off = np.random.default_rng(2).normal(size=result.shape)
        allowed = 6.7 * math.log2(result.size) * UNIT * np.linalg.norm(result)
        return result + off * allowed / np.linalg.norm(off)

    def as_if_exact(*arguments: Any) -> Any:
        values, errors = characteristic_function(*arguments)
        return values, 0.0 * errors

    monkeypatch.setattr(pmf.np.fft, "irfftn", at_worst)
    monkeypatch.setattr(pmf, "characteristic_function", as_if_exact)
    check_band((norm_of_errors({1: n}, Window((0,), (2 * n,))) for n in (500, 2000)), 1.5)


def test_wrapped_mass() -> None:
    """A window of one or two deviations: the mass beyond comes back at the other side."""
    pairs = []
    for n, reach in ((20, 2), (100, 5), (100, 10), (400, 20)):
        window = Window((n // 2 - reach,), (2 * reach + 1,))
        found = lattice_pmf(law_of({1: n}), np.zeros(1), window, BUDGET)
        held = numbers_of_swaps({1: n})[window.start[0] : window.start[0] + window.size]
        off = sum(
            abs(Fraction(m) - Fraction(w, 2**n)) for m, w in zip(found.mass.tolist(), held, strict=True)
        )
        pairs.append((float(off), math.exp(found.log_wrapped)))
    check_band(pairs, 8)


def test_pruned_frequencies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two coins on three points: cos^2(pi / 3) = 1/4 is all but the mean, and left out."""
    monkeypatch.setattr(pmf, "LOG_PRUNED", math.log(0.26))
    check_band([norm_of_errors({1: 2}, Window((0,), (3,)))], 2)
    spectrum = [(np.array([0]), np.ones(1) + 0j, np.zeros(1))]
    ((total, bound),) = line.tail_sums(spectrum, 0.0, 0, 3, [2], math.log(0.26))
    check_band([(abs(total - 0.25), bound)], 4)


def test_roundings_of_geometric_sums() -> None:
    """Of any spectrum, as if its values were exact."""
    rng = np.random.default_rng(3)
    pairs = []
    for _ in range(60):
        period = int(rng.integers(5, 200))
        n, rate = int(rng.integers(1, period)), float(rng.choice([0.0, 10 ** rng.uniform(-9, 1)]))
        frequencies = np.arange(period // 2 + 1)
        both = (frequencies == 0) | (2 * frequencies == period)
        values = rng.normal(size=both.size) + 1j * np.where(both, 0.0, rng.normal(size=both.size))
        spectrum = [(frequencies, values, np.zeros(both.size))]
        ((total, bound),) = line.tail_sums(spectrum, rate, 7, period, [7 + period - n], -200.0)
        truth = arb(0)
        for frequency, value, is_alone in zip(frequencies.tolist(), values.tolist(), both, strict=True):
            q = flint.acb(-arb(rate), 2 * flint.arb.pi() * frequency / period)
            geometric = sum(((q * j).exp() for j in range(n)), flint.acb(0))
            truth += (1 if is_alone else 2) * (flint.acb(value.real, value.imag) * geometric).real / period
        pairs.append((float(abs(arb(total) - truth)), bound))
    check_band(pairs, 40)


def test_share_of_swaps() -> None:
    rng = np.random.default_rng(4)
    for exponents in ((0, 900), (1100, 3000)):
        pairs = []
        for _ in range(100):
            count = int(rng.integers(2**60, 2**62)) * int(rng.integers(2**60, 2**62))
            n_coins = count.bit_length() + int(rng.integers(*exponents))
            pairs.append(relative(share_of_swaps(count, n_coins), Fraction(count, 2**n_coins)))
        check_band(pairs, 4)


@pytest.mark.parametrize(
    ("shares", "c"), [((0.05, 0.24), 8), ((0.26, 0.48), 8), ((0.502, 0.51), 30), ((0.52, 0.56), 8)]
)
def test_binomial_tail(shares: tuple[float, float], c: float) -> None:
    """By the form of the exponent for the edge, by that for the middle, and by the other tail."""
    rng = np.random.default_rng(5)
    pairs = []
    for _ in range(40):
        n = int(10 ** rng.uniform(2.8, 3.8))
        limit = int(rng.uniform(*shares) * n)
        truth = Fraction(sum(numbers_of_swaps({1: n})[: limit + 1]), 2**n)
        pairs.append(relative(binomial_tail(n, limit), truth))
    check_band(pairs, c)


def test_the_other_tail_of_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other tail is 0.6, so a relative error of a tail of 0.4 counts two thirds."""
    tail, rest = binomial.binomial_tail, TailMass(math.log(0.4), 1.0, DELTA)
    monkeypatch.setattr(binomial, "binomial_tail", lambda *_: rest)
    check_band([(DELTA * 0.4 / 0.6, tail(10_000, 6_000).error)], 1.01)


def test_dynamic_programming() -> None:
    pairs = []
    for kinds in ({1: 54}, {1: 60}, {2: 40, 3: 30}, {3: 200, 5: 80}):
        numbers, n_coins = numbers_of_swaps(kinds), sum(kinds.values())
        law = LineLaw(np.array(list(kinds)), np.array(list(kinds.values())))
        for limit in range(len(numbers) // 4, len(numbers) // 2, 3):
            truth = Fraction(sum(numbers[: limit + 1]), 2**n_coins)
            pairs.append(relative(dynamic_tails(law, [limit])[0], truth))
    check_band(pairs, 80)
    numbers = numbers_of_swaps({1: 1500})
    edge = LineLaw(np.array([1]), np.array([1500]))
    truths = ((limit, Fraction(sum(numbers[: limit + 1]), 2**1500)) for limit in range(3, 40))
    check_band((relative(dynamic_tails(edge, [limit])[0], truth) for limit, truth in truths), 12)


def test_counts_below_the_range_of_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if floats ended at a larger power of 2: counts that are scaled down below it are lost."""
    plain = np.ldexp
    monkeypatch.setattr(dynamic, "COINS_BETWEEN_SCALES", 20)
    monkeypatch.setattr(dynamic, "LOG2_LARGE", 10)
    kinds = {1: 40, 30: 40}
    numbers, law = numbers_of_swaps(kinds), LineLaw(np.array(list(kinds)), np.array(list(kinds.values())))
    n_worse = 0
    for log2_tiny in range(-110, -50):

        def flushed(values: Any, exponent: Any, least: float = 2.0**log2_tiny) -> Any:
            found = np.asarray(plain(values, exponent))
            return np.where(found < least, 0.0, found)

        monkeypatch.setattr(dynamic, "LOG2_TINY", log2_tiny)
        monkeypatch.setattr(dynamic.np, "ldexp", flushed)
        for limit in (100, 200, 300, 400, 500):
            try:
                (found,) = dynamic_tails(law, [limit])
            except CapacityError:
                continue
            error, bound = relative(found, Fraction(sum(numbers[: limit + 1]), 2**80))
            assert error <= bound
            n_worse += bound > 1e-13  # six times what roundings may come to
    assert n_worse >= 1
