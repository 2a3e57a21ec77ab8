"""Power of equivalence: against sums over all data sets, and against simulated data sets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from exact.pairwise.coverage import Sample, area, tau
from exact.pairwise.powers import power
from scipy.stats import binom, multinomial, norm
from support.budget import Measured, cases
from support.cases import F1, mean_scores

from trackperm.errors import CapacityError, InputError
from trackperm.exact.intervals import (
    Interval,
    UnseenDifferences,
    paired_proportions_interval,
    score_interval,
    shift_interval,
    why_not_scored,
    why_not_shifted,
)
from trackperm.exact.pairwise import Influences
from trackperm.exact.power.equivalence import (
    PairedLaw,
    PairsLaw,
    ScoreLaw,
    ShiftLaw,
    equivalence_power,
    examples_for_equivalence,
    percent,
)

ALPHA = 0.05


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("n", "discordance", "difference", "margin", "alpha"),
    [
        (30, 0.3, 0.0, 0.3, ALPHA),
        (40, 0.15, 0.0, 0.2, ALPHA),
        (40, 0.15, 0.08, 0.2, ALPHA),
        (25, 1.0, 0.0, 0.6, ALPHA),
        (60, 0.02, 0.0, 0.1, ALPHA),
        (49, 0.075, 0.075, 0.15, ALPHA),
        (31, 0.047, 0.0, 0.2, 0.01),
        (58, 0.0085, 0.0, 0.05, ALPHA),
        (80, 0.03, 0.02, 0.09, 0.02),
        (200, 0.01, 0.0, 0.03, 0.01),
    ],
)
def test_of_paired_proportions_it_is_a_sum_over_all_outcomes(
    n: int, discordance: float, difference: float, margin: float, alpha: float
) -> None:
    law = [(discordance + difference) / 2, (discordance - difference) / 2, 1 - discordance]
    power = 0.0
    for better in range(n + 1):
        for worse in range(n + 1 - better):
            mass = float(multinomial.pmf([better, worse, n - better - worse], n, law))
            if mass > 1e-7:
                interval = paired_proportions_interval(better, worse, n, alpha=2 * alpha)
                power += mass * interval.within(margin)
    found = PairedLaw(discordance, n).power(margin, difference, alpha, n)
    assert power < 0.999
    assert found == pytest.approx(power, abs=1e-4)


def test_the_scale_of_two_scores_does_not_matter() -> None:
    whole, halves = PairedLaw(0.2, 100), PairedLaw(0.2, 100, gap=0.5)
    assert halves.power(0.075, 0.02, ALPHA, 100) == pytest.approx(whole.power(0.15, 0.04, ALPHA, 100))


def test_without_discordant_examples_half_an_example_is() -> None:
    scores = mean_scores([0, 1], [19, 1])
    assert PairedLaw.of(scores).discordance == 1.5 / 21


@pytest.mark.extended
@pytest.mark.parametrize(("n", "margin_in_deviations", "share"), [(60, 3.0, 0.0), (100, 4.0, 0.5)])
def test_of_shifts_it_is_that_of_simulated_data(
    n: int, margin_in_deviations: float, share: float, measured: Measured
) -> None:
    rng, n_sets = np.random.default_rng(n), cases(60)
    margin = margin_in_deviations * 10 / math.sqrt(n)
    true, shown, found, printed = share * margin, 0, 0, []
    for _ in range(n_sets):
        values, counts = np.unique(np.rint(rng.normal(true, 10, n)).astype(np.int64), return_counts=True)
        scores = mean_scores(values.tolist(), counts.tolist())
        if why_not_shifted(scores) is not None:
            continue
        shown += 1
        found += shift_interval(scores, alpha=2 * ALPHA).within(margin)
        printed.append(ShiftLaw.of(scores).power(margin, true, ALPHA, n))
    power = float(np.mean(printed))
    measured(f"shifts, N = {n}: {found / shown:.3f} of {shown}, printed {power:.3f}")
    assert binom.ppf(1e-3, shown, power - 0.05) <= found <= binom.ppf(1 - 1e-3, shown, power + 0.05)


def f1_population() -> tuple[np.ndarray, np.ndarray]:
    """Counts of both runs for 9 kinds of examples, and a law under which both have the same F1."""
    kinds = np.array([(1, 0), (0, 1), (0, 0)])
    pairs = np.array([[*kinds[i], *kinds[j]] for i in range(3) for j in range(3)])
    law = np.array([0.2, 0.04, 0.0, 0.04, 0.02, 0.03, 0.0, 0.03, 0.64])
    return pairs, law


@pytest.mark.extended
@pytest.mark.parametrize(("n", "margin"), [(150, 0.12), (1000, 0.05)])
def test_of_f1_it_is_that_of_simulated_data(n: int, margin: float, measured: Measured) -> None:
    rng, n_sets = np.random.default_rng(n), cases(60)
    rows, law = f1_population()
    found, printed = 0, []
    for drawn in rng.multinomial(n, law, n_sets):
        there = drawn > 0
        table = rows[there], np.roll(rows[there], 2, axis=1), F1, drawn[there]
        interval = score_interval(*table, alpha=2 * ALPHA)
        found += why_not_scored(*table) is None and isinstance(interval, Interval) and interval.within(margin)
        if len(printed) < 30:
            score_law = ScoreLaw.of(*table)
            assert score_law is not None
            printed.append(score_law.power(margin, 0.0, ALPHA, n))
    power = float(np.mean(printed))
    measured(f"F1, N = {n}: {found / n_sets:.3f}, printed {power:.3f}")
    assert 0.1 < power < 0.95
    assert binom.ppf(1e-3, n_sets, power - 0.05) <= found <= binom.ppf(1 - 1e-3, n_sets, power + 0.05)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("sample", "truth", "margin"),
    [
        pytest.param(area(200, 0.5, (0.9, 0.9), 0.0), 0.0, 0.08, marks=pytest.mark.extended),
        (area(200, 0.5, (0.83, 0.8), 0.8), 0.03, 0.06),
        pytest.param(area(60, 0.5, (0.9, 0.9), 0.8), 0.0, 0.08, marks=pytest.mark.extended),
        (tau(200, (0.5, 0.5), 1.0), 0.0, 0.12),
    ],
)
def test_of_pairs_it_is_that_of_simulated_data(
    sample: Sample, truth: float, margin: float, measured: Measured
) -> None:
    found = power(sample, truth, margin, cases(250), 0)
    measured(f"simulated {found.simulated:.3f}, printed {found.printed:.3f}")
    assert 0.2 < found.simulated < 0.8
    # The standard error of the simulated power is 0.03.
    assert found.printed == pytest.approx(found.simulated, abs=0.12)


@pytest.mark.parametrize("true", [0.0, 0.05])
def test_of_two_influences_it_is_a_closed_form(true: float) -> None:
    """The most likely law with a difference d gives the influence 3 the mass p = (1 + d - D) / 4."""
    n, observed, margin = 400, 0.5, 0.25

    def deviation(difference: float) -> float:
        p = (1.0 + difference - observed) / 4.0
        return 4.0 * math.sqrt(p * (1.0 - p) / n)

    z = float(norm.isf(ALPHA))
    low, high = -margin + z * deviation(-margin), margin - z * deviation(margin)
    expected = norm.cdf(high, true, deviation(true)) - norm.cdf(low, true, deviation(true))
    law = PairsLaw.of(Influences(observed, 1.0, (-1, 3), (300, 100), None))
    assert law is not None
    assert 0.2 < expected < 0.97
    assert law.power(margin, true, ALPHA, n) == pytest.approx(expected, abs=1e-6)


def test_of_pairs_it_does_not_depend_on_the_observed_difference() -> None:
    own = np.random.default_rng(0).normal(size=400)
    own -= own.mean()
    laws = [PairsLaw.of(Influences.of(difference, own, -own, None)) for difference in (0.0, 0.05)]
    assert laws[0] is not None
    assert laws[1] is not None
    for difference in (0.0, 0.06, -0.06):
        one, other = (law.power(0.12, difference, ALPHA, 400) for law in laws)
        assert 0.1 < one < 0.9
        assert other == pytest.approx(one, abs=0.01)
    twice = laws[0].power(0.12, 0.0, ALPHA, 800)
    assert twice > laws[0].power(0.12, 0.0, ALPHA, 400) + 0.2
    assert laws[0].power(0.12, 0.0, ALPHA, 5) == 0.0
    assert PairsLaw.of(Influences.of(0.0, np.zeros(9), np.zeros(9), None)) is None


def test_it_does_not_depend_on_the_observed_difference() -> None:
    """Exchanging the runs on some examples turns a difference into none, and leaves the disagreement."""
    apart, even = (mean_scores([-1, 0, 1], counts) for counts in ([2, 80, 18], [10, 80, 10]))
    assert PairedLaw.of(apart) == PairedLaw.of(even)
    rows, _ = f1_population()
    there = np.array([0, 1, 3, 8])
    table = rows[there], np.roll(rows[there], 2, axis=1), F1
    powers = []
    for counts in ([40, 24, 6, 100], [40, 15, 15, 100]):
        law = ScoreLaw.of(*table, np.array(counts))
        assert law is not None
        powers.append(law.power(0.2, 0.0, ALPHA, 170))
    assert powers[0] == pytest.approx(powers[1], abs=0.03)


def test_power_rises_with_the_margin_and_falls_with_the_difference() -> None:
    rows, law = f1_population()
    counts = np.rint(500 * law).astype(np.int64)
    there = counts > 0
    score = ScoreLaw.of(rows[there], np.roll(rows[there], 2, axis=1), F1, counts[there])
    assert score is not None
    for each in (PairedLaw(0.2, 500), ShiftLaw(0.4, 1.0, 500), score):
        by_margin = [each.power(margin, 0.0, ALPHA, 500) for margin in (0.01, 0.04, 0.06, 0.1)]
        assert by_margin == sorted(by_margin)
        assert by_margin[0] < 0.05 < 0.8 < by_margin[-1]
        found = equivalence_power(each, 0.06, ALPHA)
        assert found.at_half < found.at_zero
        at_margin = max(each.power(0.06, side * 0.06, ALPHA, 500) for side in (1, -1))
        assert at_margin < ALPHA + 0.02


def test_a_margin_that_unseen_differences_exceed_has_no_power() -> None:
    """With n examples, a share of 1 - alpha^(1/n) of others may differ by the whole range."""
    n = 100
    unseen = (1 - ALPHA ** (1 / n)) * 2.0
    law = ShiftLaw(0.01, 1.0, n, UnseenDifferences(np.array([1 / n]), np.array([n]), np.array([20]), 2.0))
    assert law.power(0.99 * unseen, 0.0, ALPHA, n) == 0.0
    assert law.power(1.01 * unseen, 0.0, ALPHA, n) == pytest.approx(1.0)


def test_power_is_that_of_data_in_which_heavy_examples_differ() -> None:
    """Half of the weight is with 4 examples, of which none differs: no such data show an interval."""
    rows, law = f1_population()
    counts = np.rint(400 * law).astype(np.int64)
    there = counts > 0
    table = rows[there], np.roll(rows[there], 2, axis=1), F1, counts[there]
    shares, numbers = np.array([0.5 / 396, 0.5 / 4]), np.array([396, 4])
    powers = []
    for moved in ([80, 0], [76, 4]):
        found = ScoreLaw.of(*table, UnseenDifferences(shares, numbers, np.array(moved), 1.0))
        assert found is not None
        assert found.power(0.26, 0.0, ALPHA, 400) == 0.0, "0.5 (1 - 0.05^(1/4)) is 0.264"
        powers.append(found.power(0.27, 0.0, ALPHA, 400))
    assert powers == [0.0, pytest.approx(1.0, abs=1e-3)]


@pytest.mark.parametrize("difference", [0.0, 0.01])
def test_examples_for_equivalence(difference: float) -> None:
    law = PairedLaw(0.1, 0)
    n = examples_for_equivalence(law, 0.04, difference, power=0.8, alpha=ALPHA)
    powers = [law.power(0.04, difference, ALPHA, each) for each in (n - 1, n)]
    assert powers[0] < 0.8 <= powers[1]
    # Chow, Shao and Wang: (z_alpha + z_(beta / 2))^2 s / m^2 for a difference of 0.
    if difference == 0.0:
        assert n == pytest.approx((1.645 + 1.282) ** 2 * 0.1 / 0.04**2, rel=0.15)


def test_differences_outside_the_margin_are_refused() -> None:
    with pytest.raises(InputError, match="within the margin"):
        examples_for_equivalence(PairedLaw(0.1, 0), 0.02, 0.02, power=0.8, alpha=ALPHA)
    with pytest.raises(CapacityError, match="more than 10,000,000"):
        examples_for_equivalence(PairedLaw(0.5, 0), 1e-5, 0.0, power=0.8, alpha=ALPHA)


@pytest.mark.parametrize(("power", "shown"), [(0.0, "below 1 %"), (0.123, "12 %"), (0.9999, "above 99 %")])
def test_no_power_is_printed_as_certain(power: float, shown: str) -> None:
    assert percent(power) == shown
