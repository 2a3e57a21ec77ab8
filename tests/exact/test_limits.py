"""Where integers or floats end: right to the last digit before, refused beyond."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import pytest
from support import oracles
from support.certificates import check_pvalue

from trackperm.errors import CapacityError, InputError
from trackperm.exact import RationalStatistic, difference_test, structured_test
from trackperm.exact.distributions.tilt import TailMass
from trackperm.exact.options import TestOptions
from trackperm.exact.outcome import ResultFields, TailResult, computed_result


@pytest.mark.parametrize(
    "scores",
    [
        [-(2**61) + 1, -(2**61) + 1, -(2**61) - 3, -(2**61) + 2, 2**61, 2],
        [2**60] * 8 + [-1],
        [(-1) ** i * (2**61 + i * 7919**2) for i in range(11)],
    ],
)
def test_integers_whose_sums_exceed_machine_words_are_counted(scores: list[int]) -> None:
    swaps = Counter(sum(s) for s in itertools.product(*((d, -d) for d in scores)))
    for alternative in oracles.ALTERNATIVES:
        result = difference_test(scores, [0] * len(scores), alternative=alternative)
        extreme = sum(n for value, n in swaps.items() if oracles.rejects(value, sum(scores), alternative))
        check_pvalue(result, Fraction(extreme, 2 ** len(scores)))


def test_problems_that_do_not_fit_are_refused() -> None:
    scores = [(-1) ** i * (10**11 + i * 7919**2) for i in range(60)]
    with pytest.raises(CapacityError, match=r"the search for frequencies needs .* factors"):
        difference_test(scores, [0] * 60, method="lattice")


def test_a_value_beyond_floats_is_refused() -> None:
    power = RationalStatistic.variable(0, 1) ** 61
    with pytest.raises(InputError, match="range of floats"):
        structured_test([[10**5]] * 30, [[-(10**5)]] * 30, power)


def test_p_values_at_a_rounded_power_of_ten_are_written_whole() -> None:
    result = difference_test([1] * 2000, [0] * 2000)
    assert result.pvalue == 0.0
    assert result.format_pvalue() == "1.74e-602"
    assert result.format_pvalue(1) == "2e-602"


def test_slopes_beyond_machine_words_of_constant_counts() -> None:
    x, y = (RationalStatistic.variable(i, 2) for i in range(2))
    observed, swapped = [[1, 5], [2, 5]], [[-1, 5], [-2, 5]]
    assert structured_test(observed, swapped, x + 2**80 * y, alternative="greater").pvalue == 0.25


@pytest.mark.parametrize("log_scale", [5.0, 800.0, 1e7])
def test_a_bound_above_one_is_useless(log_scale: float) -> None:
    options = TestOptions(alternative="less", method="lattice", n_samples=1)
    fields = ResultFields(
        0.0, lambda: "exact", 3, 3, 2, None, None, lambda: pytest.fail("must not be called")
    )
    result = computed_result(TailResult(TailMass(log_scale, 1.0, 1.0), "lattice", ""), options, fields)
    assert (result.pvalue, result.log10_pvalue, result.error_bound) == (1.0, 0.0, 1.0)
    assert result.interval == (0.0, 1.0)
