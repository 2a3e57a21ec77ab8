"""The search for an end: fractions in their order, and p-values of shifted scores."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from trackperm.exact import RationalStatistic, structured_test
from trackperm.exact.engines.linear.tails import exact_tails
from trackperm.exact.intervals import AdditiveScores, shifted_tail
from trackperm.exact.intervals.farey import (
    floor_fraction,
    next_fraction,
    previous_fraction,
    simplest_fraction,
)
from trackperm.exact.intervals.search import lower_end, spread
from trackperm.exact.intervals.shifted_plane import ShiftedPlane
from trackperm.exact.intervals.shifted_tail import Bound, ShiftedTail


def rows_of(seed: int, n: int, scale: int, most: int = 3) -> AdditiveScores:
    rng = np.random.default_rng(seed)
    moves = np.rint(rng.normal(0.3, 1.0, n) * scale).astype(np.int64)
    return AdditiveScores(moves, rng.integers(1, most + 1, n), np.ones(n, dtype=np.int64), Fraction(1))


@given(st.fractions(max_denominator=500), st.fractions(min_value=Fraction(1, 10**6), max_value=2))
def test_simplest_fraction(below: Fraction, length: Fraction) -> None:
    found = simplest_fraction(below, below + length)
    assert below < found <= below + length
    for denominator in range(1, min(found.denominator, 20)):
        assert math.floor((below + length) * denominator) <= below * denominator


@pytest.mark.parametrize("order", [1, 2, 7, 12])
def test_neighbours_against_sorted_fractions(order: int) -> None:
    every = sorted({Fraction(a, b) for b in range(1, order + 1) for a in range(-2 * b, 2 * b + 1)})
    for here, there in itertools.pairwise(every):
        assert next_fraction(here, order) == there
        assert previous_fraction(there, order) == here
        for between in (here, (3 * here + there) / 4, (here + 3 * there) / 4):
            assert floor_fraction(between, order) == here


@pytest.mark.parametrize("shift", [Fraction(-2), Fraction(3, 17), Fraction(61, 7)])
def test_against_the_test_of_shifted_scores(shift: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without rounding the p-value of the structured test; with it no less, and little more."""
    rows = rows_of(0, 70, 40)
    moves = (rows.moves * shift.denominator - rows.weights * shift.numerator)[:, None]
    truth = structured_test(moves, -moves, RationalStatistic.variable(0, 1), alternative="greater").pvalue
    tail = ShiftedTail(rows, math.log(0.025), 2**30)
    found = tail.bound(shift)
    assert found.pvalue == pytest.approx(truth, rel=1e-10)
    assert found.score == pytest.approx(float(ndtri(truth)), abs=1e-9)
    assert math.isfinite(tail.seconds(shift))
    monkeypatch.setattr(shifted_tail, "QUICK", 1e-5)
    monkeypatch.setattr(shifted_tail, "QUICK_ROUNDED", 1e-3)
    rounded = tail.bound(shift)
    assert math.isinf(tail.seconds(shift))
    assert rounded.is_rounded
    assert truth < rounded.pvalue < 1.1 * truth


@pytest.mark.parametrize(
    ("n", "scale", "most"), [(30, 2, 1), (300, 1, 1), (300, 20, 1), (150, 12, 3), (2_000, 3, 2)]
)
def test_half_planes_against_one_weighted_sum(n: int, scale: int, most: int) -> None:
    """Within the certificates, at simple fractions and others, from far below the end to beyond the mean."""
    rows = rows_of(2, n, scale, most)
    kinds, counts = np.unique(np.stack([rows.moves, rows.weights]), axis=1, return_counts=True)
    rows = dataclasses.replace(rows, moves=3 * kinds[0], weights=kinds[1], multiplicities=counts)
    plane = ShiftedPlane.of(rows, math.log(0.025), 2**30)
    assert plane is not None
    tail = ShiftedTail(rows, math.log(0.025), 2**30)
    mean, deviation = spread(rows)
    for z, most_in_denominator in itertools.product((-3.0, -2.0, 0.5), (1, 97)):
        shift = (mean + Fraction(z * deviation)).limit_denominator(most_in_denominator)
        law, limit = tail._law(shift)
        (expected,) = exact_tails(law, [limit], 2**30)
        found = plane.tail(shift)
        assert found.error < 1e-6
        assert math.exp(found.log - expected.log) == pytest.approx(1.0, rel=found.error + expected.error)
    wide = Fraction(2 * 10**17 + 1, 10**16)
    assert plane.tail(Fraction(10**6) + wide).scaled == pytest.approx(1.0, rel=1e-9)
    assert plane.tail(-(10**6) - wide).scaled < 1e-9


def test_no_half_planes_where_they_would_take_long() -> None:
    rows = rows_of(2, 300, 20)
    for log_level, memory_budget in ((-20.0, 2**30), (-4.0, 2**12)):
        assert ShiftedPlane.of(rows, log_level, memory_budget) is None
    assert ShiftedPlane.of(rows_of(2, 30, 10**6), -4.0, 2**30) is None
    assert ShiftedPlane.of(rows_of(2, 2_000, 10**6), -4.0, 2**30) is None
    assert ShiftedPlane.of(rows_of(2, 30, 10**15), -4.0, 2**30) is None


@pytest.mark.parametrize(
    ("n", "scale", "most"), [(25, 10**6, 1), (112, 10**3, 1), (112, 300, 3), (2000, 100, 1)]
)
def test_few_pvalues_lead_to_an_end(n: int, scale: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bisection would take more than thirty."""
    shifts = []
    original = ShiftedTail.bound

    def counted(self: ShiftedTail, shift: Fraction) -> Bound:
        shifts.append(shift)
        return original(self, shift)

    monkeypatch.setattr(ShiftedTail, "bound", counted)
    rows = rows_of(1, n, scale, most)
    end = lower_end(rows, 0.025, 2**30)
    assert len(shifts) <= 14
    order = int(rows.weights.sum())
    tail = ShiftedTail(rows, math.log(0.025), 2**30)
    monkeypatch.setattr(shifted_tail, "QUICK", 10.0)
    # All below the end is rejected; what is not exact may be below it itself.
    beside = [original(tail, shift).pvalue for shift in (previous_fraction(end.shift, order), end.shift)]
    assert min(beside) < 0.025
    assert not end.is_exact or beside[0] < 0.025 <= beside[1]
