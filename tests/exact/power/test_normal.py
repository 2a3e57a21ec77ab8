"""Normal approximations: near the exact numbers, and inverses of each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.cases import F1

from trackperm.choices import Alternative
from trackperm.errors import InputError
from trackperm.exact import RationalStatistic, RealStatistic, structured_test
from trackperm.exact.power import (
    approximate_examples_needed,
    approximate_minimum_detectable_effect,
    examples_needed,
    minimum_detectable_effect,
    null_standard_deviation,
)


@pytest.mark.parametrize("discordance", [0.05, 0.15, 0.6])
def test_near_the_exact_number_for_paired_proportions(discordance: float):
    about = approximate_examples_needed(0.03, math.sqrt(discordance), 1)
    assert about == pytest.approx(examples_needed(0.03, discordance).first, rel=0.1)
    exact = minimum_detectable_effect(2000, discordance)
    effect = approximate_minimum_detectable_effect(2000, math.sqrt(discordance), 1)
    assert not effect.exact
    assert effect.effect == pytest.approx(exact.effect, rel=0.05)


def test_published_sample_size():
    """Connor (1987) for discordance 0.25, difference 0.15: z's of 1.96 and 1.2816, 90 % power."""
    expected = ((1.959964 * 0.5 + 1.281552 * math.sqrt(0.25 - 0.0225)) / 0.15) ** 2
    found = approximate_examples_needed(0.15, 0.5, 1, power=0.9)
    assert found == math.ceil(expected) == 113


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
@pytest.mark.parametrize("power", [0.3, 0.8, 0.95])
def test_inverse_of_each_other(power: float, alternative: Alternative):
    for n in (20, 300, 10**7):
        found = approximate_minimum_detectable_effect(n, 0.02, 500, power=power, alternative=alternative)
        assert found.effect is not None
        again = approximate_examples_needed(found.effect, 0.02, 500, power=power, alternative=alternative)
        assert again in (n, n + 1)


def test_a_larger_pilot_of_the_same_kind_changes_nothing():
    assert approximate_examples_needed(0.01, 0.02, 500) == approximate_examples_needed(0.01, 0.01, 2000)


def test_nothing_is_detectable_on_few_examples():
    assert approximate_minimum_detectable_effect(3, 0.1, 100).effect is None


def test_null_standard_deviation_of_a_mean_is_exact():
    generator = np.random.default_rng(0)
    u, v = generator.integers(0, 50, (2, 40))
    n = RationalStatistic.constant(40, 2)
    mean = (RationalStatistic.variable(0, 2) - RationalStatistic.variable(1, 2)) / n
    observed, swapped = np.stack([u, v], 1), np.stack([v, u], 1)
    found = null_standard_deviation(observed, swapped, mean)
    assert found == pytest.approx(math.sqrt(((u - v) ** 2).sum()) / 40, rel=1e-9)
    twice = null_standard_deviation(observed, swapped, mean, np.full(40, 2))
    assert twice == pytest.approx(math.sqrt(2) * found, rel=1e-9)


def test_null_standard_deviation_against_the_null_distribution():
    generator = np.random.default_rng(1)
    u, v = generator.multinomial(1, [0.3, 0.15, 0.55], (2, 400))[:, :, :2]
    observed, swapped = np.hstack([u, v]), np.hstack([v, u])
    law = structured_test(observed, swapped, F1).null_distribution
    sd = math.sqrt(law.mass @ law.values**2)
    assert null_standard_deviation(observed, swapped, F1) == pytest.approx(sd, rel=0.01)
    real = RealStatistic.from_rational(F1)
    assert null_standard_deviation(observed, swapped, real) == pytest.approx(sd, rel=0.01)


def test_without_discordant_examples_there_is_no_deviation():
    observed = np.ones((5, 4), dtype=int)
    assert null_standard_deviation(observed, observed, F1) == 0.0


def test_refusals():
    with pytest.raises(InputError, match=r"`null_sd` is 0\.0 and `n_pilot` 10"):
        approximate_examples_needed(0.1, 0.0, 10)
    with pytest.raises(InputError, match="root mean square of the pilot's differences"):
        approximate_examples_needed(0.5, 0.01, 100)
    with pytest.raises(InputError, match="other than 0"):
        approximate_examples_needed(0.0, 0.01, 100)
    with pytest.raises(InputError, match="`n_examples` is 0"):
        approximate_minimum_detectable_effect(0, 0.01, 100)
    with pytest.raises(InputError, match=r"`power` is 1\.0"):
        approximate_minimum_detectable_effect(10, 0.01, 100, power=1.0)
    observed = np.array([[0, 0], [2, 2]])
    x, y = (RationalStatistic.variable(i, 2) for i in range(2))
    with pytest.raises(InputError, match="undefined at the mean"):
        null_standard_deviation([[1, 0]], [[0, 1]], (x - y).divide(observed[0][0] * x, undefined=0))


def test_an_undetectable_difference_is_refused():
    with pytest.raises(InputError, match="`difference=1e-300` is too small") as caught:
        approximate_examples_needed(1e-300, 0.4, 1)
    assert "`--difference 1e-300` is too small" in caught.value.on_command_line()
