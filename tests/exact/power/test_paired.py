"""Power for paired proportions: against every outcome, random ones, and numbers found before."""

from __future__ import annotations

from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from scipy import stats

from trackperm.choices import Alternative
from trackperm.errors import CapacityError, InputError
from trackperm.exact import difference_test
from trackperm.exact.engines.monte_carlo import exact_interval
from trackperm.exact.power import (
    MinimumDetectableEffect,
    examples_needed,
    minimum_detectable_effect,
    needed,
    paired_power,
)
from trackperm.exact.power.paired_sign import SignTest

ALTERNATIVES: list[Alternative] = ["two-sided", "less", "greater"]


def rejects(better: int, worse: int, n: int, alpha: float, alternative: Alternative) -> bool:
    """The package's own test of two runs with so many discordant examples."""
    candidate = np.arange(n) < better
    baseline = (better <= np.arange(n)) & (np.arange(n) < better + worse)
    found = difference_test(candidate, baseline, alternative=alternative)
    return max(found.pvalue, found.interval[1]) < alpha


def power_by_enumeration(
    n: int, difference: Fraction, discordance: Fraction, alpha: float, alternative: Alternative
) -> Fraction:
    """Sum of the probabilities of all outcomes (better, worse, concordant) that the test rejects."""
    up, down = (discordance + difference) / 2, (discordance - difference) / 2
    total = Fraction(0)
    for b in range(n + 1):
        for w in range(n + 1 - b):
            if rejects(b, w, n, alpha, alternative):
                ways = factorial(n) // (factorial(b) * factorial(w) * factorial(n - b - w))
                total += ways * up**b * down**w * (1 - discordance) ** (n - b - w)
    return total


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("alpha", [0.05, 1 / 16, 0.3])
@pytest.mark.parametrize(
    ("difference", "discordance"), [("1/4", "1/2"), ("-3/8", "3/8"), ("1/2", "1"), ("0", "3/4")]
)
def test_power_against_enumeration(difference: str, discordance: str, alpha: float, alternative: Alternative):
    for n in (1, 5, 9):
        t, d = Fraction(difference), Fraction(discordance)
        found = paired_power(n, float(t), float(d), alpha=alpha, alternative=alternative)
        assert found == pytest.approx(
            float(power_by_enumeration(n, t, d, alpha, alternative)), rel=1e-12, abs=1e-14
        )


@pytest.mark.parametrize(
    ("n", "difference", "discordance", "alternative"),
    [(100, 0.1, 0.2, "two-sided"), (463, 0.03, 0.05, "two-sided"), (60, -0.3, 0.9, "less")],
)
def test_power_against_monte_carlo(n: int, difference: float, discordance: float, alternative: Alternative):
    generator = np.random.default_rng(7)
    shares = [(discordance + difference) / 2, (discordance - difference) / 2, 1 - discordance]
    outcomes, counts = np.unique(generator.multinomial(n, shares, 200_000)[:, :2], axis=0, return_counts=True)
    rejected = sum(
        int(count)
        for (b, w), count in zip(outcomes.tolist(), counts.tolist(), strict=True)
        if rejects(b, w, n, 0.05, alternative)
    )
    low, high = exact_interval(rejected, 200_000, stopped=False)
    assert low <= paired_power(n, difference, discordance, alternative=alternative) <= high


@pytest.mark.parametrize(("discordance", "first"), [(0.05, 463), (0.10, 920), (0.15, 1362), (0.25, 2238)])
def test_three_points_at_80_percent(discordance: float, first: int):
    """Numbers stated when this was planned; the power stays from there on, as every later n confirms."""
    found = examples_needed(0.03, discordance)
    assert (found.first, found.stays) == (first, first)
    assert found.power_at_first == pytest.approx(paired_power(first, 0.03, discordance), rel=1e-12)
    assert paired_power(first - 1, 0.03, discordance) < 0.8
    assert min(paired_power(n, 0.03, discordance) for n in range(first, first + 500)) >= 0.8


SETTINGS = [
    (0.5, 1.0, 0.8, 0.05, "two-sided"),
    (0.2, 1.0, 0.9, 0.05, "two-sided"),
    (0.2, 0.9, 0.5, 0.01, "greater"),
    (-0.25, 0.25, 0.8, 0.05, "less"),
    (-0.3, 0.5, 0.95, 0.1, "two-sided"),
    (1.0, 1.0, 0.99, 0.05, "two-sided"),
    (0.6, 0.7, 0.2, 0.19, "greater"),
    (0.12, 1.0, 0.8, 0.05, "two-sided"),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize("listed", [needed.LISTED, 0], ids=["listed", "in-stretches"])
@pytest.mark.parametrize(("difference", "discordance", "power", "alpha", "alternative"), SETTINGS)
def test_examples_needed_against_every_number(
    difference: float,
    discordance: float,
    power: float,
    alpha: float,
    alternative: Alternative,
    listed: int,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(needed, "LISTED", listed)
    found = examples_needed(difference, discordance, power, alpha, alternative)
    powers = [
        paired_power(n, difference, discordance, alpha=alpha, alternative=alternative)
        for n in range(1, 3 * found.stays + 100)
    ]
    reached = [n for n, value in enumerate(powers, start=1) if value >= power]
    missed = [n for n, value in enumerate(powers, start=1) if value < power]
    assert found.first == reached[0]
    assert found.stays == max(missed, default=0) + 1
    assert found.power_at_first == pytest.approx(powers[found.first - 1], rel=1e-12)
    assert found.power_at_stays == pytest.approx(powers[found.stays - 1], rel=1e-12)


def test_the_power_of_a_sign_test_is_saw_toothed():
    found = examples_needed(0.5, 1.0)
    assert found.first < found.stays
    assert paired_power(found.stays - 1, 0.5, 1.0) < 0.8


@pytest.mark.parametrize(("difference", "discordance"), [(0.001, 0.1), (0.0015, 0.25), (0.0001, 0.001)])
def test_large_numbers_against_scipy(difference: float, discordance: float):
    found = examples_needed(difference, discordance)
    assert found.first > 500_000

    def power(n: int) -> float:
        centre, reach = n * discordance, 9 * (n * discordance) ** 0.5
        m = np.arange(int(centre - reach), int(centre + reach))
        k = stats.binom.isf(0.025, m, 0.5).astype(int) + 1
        q = (1 + difference / discordance) / 2
        chance = stats.binom.sf(k - 1, m, q) + stats.binom.sf(k - 1, m, 1 - q)
        return float(stats.binom.pmf(m, n, discordance) @ chance)

    assert power(found.first - 1) < 0.8 <= power(found.first)
    assert power(found.first) == pytest.approx(found.power_at_first, abs=1e-9)


def test_sides_mirror_each_other():
    up = examples_needed(0.1, 0.3, alternative="greater")
    down = examples_needed(-0.1, 0.3, alternative="less")
    assert (up.first, up.stays) == (down.first, down.stays)
    assert up.first < examples_needed(0.1, 0.3).first == examples_needed(-0.1, 0.3).first


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize(("n", "discordance"), [(30, 0.6), (1319, 0.135), (100_000, 0.02), (12, 1.0)])
def test_minimum_detectable_effect_is_the_least(n: int, discordance: float, alternative: Alternative):
    found = minimum_detectable_effect(n, discordance, alternative=alternative)
    assert found.effect is not None
    assert found.exact
    sign = -1 if alternative == "less" else 1

    def power(effect: float) -> float:
        return paired_power(n, sign * effect, discordance, alternative=alternative)

    assert power(found.effect * (1 - 1e-6)) < 0.8 <= power(found.effect)


def test_no_detectable_difference():
    found = minimum_detectable_effect(10, 0.5)
    assert found.effect is None
    assert paired_power(10, 0.5, 0.5) < 0.8
    assert str(found) == "no difference is detectable at 80 % power"


def test_description():
    assert str(minimum_detectable_effect(1319, 0.135)) == "minimum detectable effect 0.029 at 80 % power"
    found = minimum_detectable_effect(200, 0.11)  # with 0.067, the power is 79.4 %
    assert (round(found.effect, 4), str(found)) == (0.0674, "minimum detectable effect 0.068 at 80 % power")
    about = MinimumDetectableEffect(1214.0, 0.9, 0.05, "two-sided", 1000, exact=False)
    assert str(about) == "minimum detectable effect about 1300 at 90 % power (normal approximation)"


def test_refusals():
    with pytest.raises(InputError, match="cannot differ by more than the share"):
        paired_power(10, 0.3, 0.2)
    with pytest.raises(InputError, match=r"`discordance` is 0\.0; expected the share"):
        minimum_detectable_effect(10, 0.0)
    with pytest.raises(InputError, match="`n_examples` is 0; expected at least 1"):
        paired_power(0, 0.1, 0.2)
    with pytest.raises(InputError, match=r"`power` is 0\.05; expected a number between alpha"):
        examples_needed(0.1, 0.2, power=0.05)
    with pytest.raises(InputError, match="is not in the alternative"):
        examples_needed(0.1, 0.2, alternative="less")
    with pytest.raises(InputError, match="is not in the alternative"):
        examples_needed(0.0, 0.2)
    with pytest.raises(InputError, match="cannot differ"):
        examples_needed(float("nan"), 0.2)
    with pytest.raises(CapacityError, match="about 78,488,795 examples by the normal approximation"):
        examples_needed(0.0001, 0.1)
    with pytest.raises(CapacityError, match="computed up to 10,000,000"):
        paired_power(10**7 + 1, 0.1, 0.2)


@pytest.mark.parametrize("share_better", [0.55, 0.75])
@pytest.mark.parametrize("examples", [(1, 5), (40, 60), (300, 330), (900, 901)])
@pytest.mark.parametrize("stretch", [needed.STRETCH, 5.0])
def test_bounds_on_the_chance_to_reject_hold_for_every_number(
    examples: tuple[int, int], share_better: float, stretch: float, monkeypatch: pytest.MonkeyPatch
):
    """At discordance 1 the windows are the numbers themselves, and all else is bounded on stretches."""
    monkeypatch.setattr(needed, "LISTED", 0)
    monkeypatch.setattr(needed, "STRETCH", stretch)
    test = SignTest(0.05, "two-sided")
    found = needed._Envelope.of(test, share_better, 1.0, examples, 0.9)
    m = np.arange(test.certain_from(share_better, 0.9))
    chance = test.rejection(m, test.least_rejected(m), share_better)
    for i in range(found.chance.size):
        assert found.least[i] <= chance[found.low + i :].min(initial=0.9)
        assert found.greatest[i] >= chance[: found.low + i + 1].max()
    if stretch < 1.0:  # and no further off than a tooth or two
        assert found.least[-1] >= 0.5 * chance[examples[1] :].min(initial=0.9)
        assert found.greatest[0] <= chance[: examples[0] + 1].max() + 0.35


@pytest.mark.parametrize(("start", "end"), [(101, 5000), (99, 0), (7, 7), (0, 0)])
def test_stretches_hold_every_number_once(start: int, end: int):
    near, far = needed._stretches(start, end, 100.0)
    held = [
        m for a, b in zip(near.tolist(), far.tolist(), strict=True) for m in range(min(a, b), max(a, b) + 1)
    ]
    assert sorted(held) == list(range(min(start, end), max(start, end) + 1))
