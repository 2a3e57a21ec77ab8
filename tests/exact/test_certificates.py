"""Certificates of linear statistics, held against integer polynomials over 75,000 generated cases.

A chunk is 250 cases of one family: true errors within the bounds, bounds within the target, intervals that
hold the truth, and in the median bounds that are not loose. One chunk of each family runs by default, two
more with every change, and the others at night.
"""

from __future__ import annotations

import pytest
from support import coin_sums, real_scores
from support.certification import Case, check, chunks

from trackperm.choices import Alternative

LAWS = 50
"""Laws that a chunk may take its cases from."""

SIDES: tuple[Alternative, ...] = ("less", "greater")

LONG = {3, 4, 5, 6, 9, 17, 18, 23, 24}
"""Adversarial laws that take longer than a second."""

N_CHUNKS = {"few": 120, "many": 80, "scales": 40, "large": 20, "real": 40}


@pytest.mark.sample(2)
@pytest.mark.parametrize(("family", "number"), chunks(N_CHUNKS))
def test_linear_certificates(family: str, number: int) -> None:
    source = real_scores if family == "real" else coin_sums
    check(source.cases(family, LAWS * number, LAWS * (number + 1)), source.answer)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=[pytest.mark.extended] if number in LONG else [])
        for number in range(len(coin_sums.ADVERSARIAL))
    ],
)
def test_adversarial_certificates(number: int) -> None:
    check(coin_sums.cases("adversarial", number, number + 1), coin_sums.answer)


def asked(
    family: str, number: int, outcome: int, alternative: Alternative, *, mid_p: bool
) -> tuple[float, float]:
    """The p-value and its absolute error, with a rounding of what is done with it."""
    result, _ = coin_sums.answer(Case(family, number, outcome, alternative, "auto", mid_p))
    return result.pvalue, result.pvalue * result.error_bound + 2.0**-52


@pytest.mark.sample(2)
@pytest.mark.parametrize("family", ["few", "many", "scales", "large"])
def test_alternatives_fit_together(family: str) -> None:
    """P-values of both sides add up to 1 and the mass of the ties, their mid-p-values to 1."""
    for number in range(12):
        for outcome in range(len(coin_sums.outcomes(family, number))):
            (less, a), (greater, b) = (asked(family, number, outcome, s, mid_p=False) for s in SIDES)
            (below, c), (above, d) = (asked(family, number, outcome, s, mid_p=True) for s in SIDES)
            assert abs(below + above - 1.0) <= c + d
            ties = 2 * (less - below)
            assert abs(less + greater - 1.0 - ties) <= 3 * a + b + 2 * c
