"""What a result of `trackperm.exact` claims about itself, held against the truth as a Fraction."""

from __future__ import annotations

import math
from fractions import Fraction

import flint

from trackperm.exact import PermutationTest

USEFUL = 1e-6
"""A relative error bound above this is a failure too, unless a test says why."""

SMALLEST_NORMAL = Fraction(1, 2**1022)


def check_pvalue(result: PermutationTest, truth: Fraction, useful: float = USEFUL) -> None:
    """Check that the p-value is within its own error bound of the truth.

    Both `pvalue`, where floats have full precision, and `log10_pvalue`.
    """
    assert result.error_bound <= useful
    if result.error_bound >= 1:  # nothing but an upper bound is known, and that is what is reported
        assert result.pvalue >= truth
        return
    bound = Fraction(result.error_bound)
    if truth >= SMALLEST_NORMAL:
        assert truth * (1 - bound) <= Fraction(result.pvalue) <= truth * (1 + bound)
    assert 0 <= result.pvalue <= 1
    # the logarithm is a float itself: 4 roundings of its own size
    slack = -math.log10(1 - result.error_bound) + 4 * 2.0**-53 * abs(result.log10_pvalue)
    with flint.ctx.workprec(600):
        assert _log10(truth) - slack <= result.log10_pvalue <= _log10(truth) + slack


def _log10(value: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(value.numerator, value.denominator)).log() / flint.arb(10).log()
