"""Where integers or floats end: right to the last digit before, refused beyond."""

from __future__ import annotations

import flint
import numpy as np
import pytest

from trackperm.errors import CapacityError, InputError
from trackperm.exact import RationalStatistic, difference_test, structured_test
from trackperm.exact.plane import _geometric


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("rate", [0.0, 1e-9, 1e-4, 0.3])
def test_geometric_sums_against_ball_arithmetic(rate: float, forward: bool) -> None:
    """1 - q cancels near frequency 0, where a plain difference loses up to six digits."""
    period = 200_003
    along = np.array([0, 1, 2, 17, 1_000, period // 2])
    n_cells = np.array([1, 2, 999, 100_001, period])
    sums, sizes = _geometric(along, n_cells, rate, forward, period)
    sign = 1 if forward else -1
    with flint.ctx.workprec(200):
        for j, frequency in enumerate(along.tolist()):
            angle = sign * 2 * flint.arb.pi() * frequency / period
            exponent = flint.acb(-flint.arb(rate), angle)
            for i, n in enumerate(n_cells.tolist()):
                if frequency == 0 and rate == 0.0:
                    expected = complex(n)
                else:
                    expected = complex(((exponent * n).exp() - 1) / (exponent.exp() - 1))
                assert abs(sums[i, j] - expected) <= 8 * 2.0**-53 * sizes[i, j]
                assert abs(expected) <= sizes[i, j] * (1 + 1e-12)


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([-(2**61) + 1, -(2**61) + 1, -(2**61) - 3, -(2**61) + 2, 2**61, 2], "exceed 2^62"),
        ([2**60] * 8 + [-1], "exceed 2^62"),
        ([10**11 + i * 7919**2 for i in range(60)], "the limit is 2147483648 on an axis"),
    ],
)
def test_integers_that_could_overflow_are_refused(scores: list[int], said: str) -> None:
    with pytest.raises(CapacityError) as refusal:
        difference_test(scores, [0] * len(scores))
    assert said in str(refusal.value)


def test_enumeration_beyond_the_budget_is_refused() -> None:
    with pytest.raises(CapacityError, match="configurations or more"):
        difference_test(list(range(1, 1200)), [0] * 1199, method="enumerate")


def test_a_value_beyond_floats_is_refused() -> None:
    power = RationalStatistic.variable(0, 1) ** 61
    with pytest.raises(InputError, match="range of floats"):
        structured_test([[10**5]] * 30, [[-(10**5)]] * 30, power)


def test_p_values_at_a_rounded_power_of_ten_are_written_whole() -> None:
    result = difference_test([1] * 2000, [0] * 2000)
    assert result.pvalue == 0.0
    assert result.format_pvalue() == "1.74e-602"
    assert result.format_pvalue(1) == "2e-602"
