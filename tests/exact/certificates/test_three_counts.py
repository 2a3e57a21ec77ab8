"""Certificates of tails of three counts, by rows."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from support import oracles
from support.bands import BUDGET, check_band, off_by_delta, relative, times_delta

from trackperm.errors import CapacityError
from trackperm.exact import DifferenceHistogram, RationalStatistic
from trackperm.exact.distributions import tilt
from trackperm.exact.distributions.characteristic import SwapDistribution
from trackperm.exact.distributions.pmf import Window, plan_window
from trackperm.exact.distributions.tilt import TailMass
from trackperm.exact.engines.lattice import plane, space, tail
from trackperm.exact.engines.lattice.lattice import reduce_rank
from trackperm.exact.engines.lattice.row_direction import in_short_rows
from trackperm.exact.engines.lattice.statistic import LatticeStatistic


def score(x: Any) -> Any:
    return x[0] / (x[0] + x[1] + 1) + x[2] / Fraction(40)


class Problem:
    """A share and a count of generated examples, one-sided, with the p-value from integers."""

    def __init__(self, seed: int, n: int, lift: float) -> None:
        rng = np.random.default_rng(seed)
        v = rng.integers(0, 3, (n, 3))
        lifted = (rng.random(n) < lift)[:, None] * [1, -1, 1]
        u = np.where(rng.random((n, 1)) < 0.3, rng.integers(0, 3, (n, 3)), np.clip(v + lifted, 0, 3))
        x = [RationalStatistic.variable(i, 6) for i in range(6)]
        h = score(x[:3]) - score(x[3:])
        histogram = DifferenceHistogram.from_pairs(np.hstack([u, v]), np.hstack([v, u]))
        self.statistic = in_short_rows(LatticeStatistic(h, histogram, reduce_rank(histogram)))
        self.law = SwapDistribution(self.statistic.lattice.coordinates, histogram.multiplicities)
        total = (u + v).sum(axis=0).tolist()
        points = [list(map(tuple, counts.tolist())) for counts in (u, v)]
        self.truth = oracles.structured_pvalues(
            oracles.sums_by_polynomial(*points),
            points[0],
            lambda x: (
                score([Fraction(c) for c in x])
                - score([Fraction(t - c) for t, c in zip(total, x, strict=True)])
            ),
        )["greater"]

    def tail(self) -> TailMass:
        observed = self.statistic.observed_exact
        region = self.statistic.region(observed, upper=True)
        return tail.region_tail(
            self.law, self.statistic, float(observed), region, upper=True, memory_budget=BUDGET
        )


@cache
def problems() -> list[Problem]:
    kinds = [(20, 0.1), (30, 0.3), (30, 0.0), (40, 0.2), (40, 0.6), (50, 0.1)]
    return [Problem(seed, n, lift) for seed, (n, lift) in enumerate(kinds)]


@pytest.fixture(autouse=True)
def first_tails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows alone, satisfied with their first tail."""

    def refuse(*_: Any) -> TailMass:
        raise CapacityError("not this one")

    monkeypatch.setattr(tail, "WANTED", math.inf)
    monkeypatch.setattr(tail, "grid_tail", refuse)


def check_tails(c: float) -> None:
    found = [relative(problem.tail(), problem.truth) for problem in problems()]
    check_band([pair for pair in found if pair[1] < 1.0], c)


def test_roundings_of_three_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "LOG_SMALL", -40.0)
    check_tails(3000)


def test_scale_factor_of_three_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tilt, "scale_factor", off_by_delta)
    check_tails(1.1)


def test_spectrum_of_three_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "characteristic_function", times_delta)
    check_tails(5)


def test_frequencies_and_windows_of_three_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "LOG_SMALL", -4.0)
    check_tails(400)


def test_rows_that_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plane, "LOG_IGNORED", -2.0)
    check_tails(20_000)


def test_points_beyond_the_null_window(monkeypatch: pytest.MonkeyPatch) -> None:
    def narrow(law: SwapDistribution, tilt: Any, log_mass: float, *, fast: bool) -> Window:
        return plan_window(law, tilt, -2.0, fast=fast)

    monkeypatch.setattr(plane, "plan_window", narrow)
    check_tails(400)
