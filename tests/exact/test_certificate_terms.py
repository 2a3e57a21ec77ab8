"""Every term of the certificates, on inputs where it dominates: ``error <= bound <= C * error``.

Components (a scale factor, a characteristic function, a mass on a window) are held against integers and ball
arithmetic, where the greatest of many errors has to come near its bound. Engines are given components that
err by much more than rounding does and say so: dropping or shrinking a term would leave that error uncovered.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import flint
import numpy as np
import pytest

from trackperm.exact.distributions.characteristic import SwapDistribution
from trackperm.exact.distributions.tilt import TailMass, quantised, scale_factor

BUDGET = 2**30


@pytest.fixture(autouse=True)
def precision() -> Iterable[None]:
    with flint.ctx.workprec(300):
        yield


def check_band(pairs: Iterable[tuple[float, float]], c: float) -> None:
    """No error is above its bound, and the one that comes nearest is within a factor `c` of it."""
    ratios = []
    for error, bound in pairs:
        assert error <= bound * (1 + 1e-9)
        ratios.append(error / bound if bound else 0.0)
    assert max(ratios) >= 1.0 / c, f"the bound is {1.0 / max(ratios):.3g} times the error at least"


def arb(value: Fraction | float) -> flint.arb:
    return (
        flint.arb(flint.fmpq(value.numerator, value.denominator))
        if isinstance(value, Fraction)
        else flint.arb(value)
    )


def relative(tail: TailMass, truth: Fraction | flint.arb) -> tuple[float, float]:
    """The error of a tail relative to the truth, and its bound."""
    truth = truth if isinstance(truth, flint.arb) else arb(truth)
    return float(abs(arb(tail.log_scale).exp() * tail.scaled / truth - 1)), tail.error


def numbers_of_swaps(kinds: dict[int, int]) -> list[int]:
    """How many swaps lead to each value of a sum of coins, by steps with their multiplicities."""
    product = flint.fmpz_poly([1])
    for step, count in kinds.items():
        product *= flint.fmpz_poly([1] + [0] * (step - 1) + [1]) ** count
    return [int(x) for x in product.coeffs()]


def law_of(kinds: dict[int, int]) -> SwapDistribution:
    return SwapDistribution(np.array(list(kinds))[:, None], np.array(list(kinds.values())))


# --- components ------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["mean", "inside", "edge"])
def test_scale_factor(where: str) -> None:
    """K(lambda) - lambda . (x - E/2): its terms cancel next to the edge of the support, and at the mean."""
    rng = np.random.default_rng(0)
    pairs = []
    for _ in range(400):
        n, rank = rng.integers(1, 4), rng.integers(1, 3)
        law = SwapDistribution(rng.integers(1, 9, (n, rank)), np.rint(10 ** rng.uniform(0, 6, n)).astype(int))
        tilt = quantised(rng.normal(size=rank) * 10 ** rng.uniform(-3, 1))
        share = {"mean": 0.0, "inside": rng.uniform(0.5, 1.0), "edge": 1.0}[where]
        mean = law.centred_mean(tilt) + np.array(law.total) / 2
        point = [
            round(x) if where == "mean" else int(share * e) for x, e in zip(mean, law.total, strict=True)
        ]
        truth = arb(0)
        for step, count in zip(law.coordinates.tolist(), law.multiplicities.tolist(), strict=True):
            half = sum((arb(t) * x for t, x in zip(tilt.tolist(), step, strict=True)), arb(0)) / 2
            truth += count * ((half.exp() + (-half).exp()) / 2).log()
        for t, x, e in zip(tilt.tolist(), point, law.total, strict=True):
            truth -= arb(t) * (2 * x - e) / 2
        found = scale_factor(law, tilt, point)
        pairs.append((float(abs(arb(found.log) - truth)), found.error))
    check_band(pairs, 8)
