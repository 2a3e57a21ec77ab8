"""Errors of what is put together from tails and masses."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from support.bands import (
    BUDGET,
    COARSE,
    DELTA,
    CoarseMath,
    arb,
    check_band,
    law_of,
    numbers_of_swaps,
)

from trackperm.exact import TestOptions
from trackperm.exact import null_distribution as null_module
from trackperm.exact.distributions.pmf import Window, lattice_pmf
from trackperm.exact.distributions.tilt import (
    EMPTY,
    TailMass,
)
from trackperm.exact.intervals import shifted_tail
from trackperm.exact.null_distribution import null_distribution
from trackperm.exact.outcome import ResultFields, TailResult, computed_result


def test_sides_and_ties_of_a_result() -> None:
    """Both sides of a law, and what is beyond the ties, each as far off as it says."""
    parts = [(0.3, 1e-3), (0.02, 2e-2), (0.1, 1e-2), (0.01, 3e-2)]
    tails_of = [TailMass(-5.0, mass, error) for mass, error in parts]
    found = TailResult(tails_of[0], "lattice", "", tails_of[1], lesser=(tails_of[2], tails_of[3]))
    fields = ResultFields(
        0.1, lambda: "exact", 9, 9, 2, None, None, lambda: pytest.fail("must not be called")
    )
    for mid_p, shares in ((False, (1, 0, 1, 0)), (True, (0.5, 0.5, 0.5, 0.5))):
        result = computed_result(found, TestOptions(mid_p=mid_p), fields)
        ends = [
            math.exp(-5.0)
            * sum(
                share * mass / (1 + sign * error) for share, (mass, error) in zip(shares, parts, strict=True)
            )
            for sign in (1, -1)
        ]
        check_band(((abs(result.pvalue / end - 1), result.error_bound) for end in ends), 1.01)
        assert result.interval == pytest.approx(ends, rel=1e-12)


def test_sides_with_distant_scales() -> None:
    """The exponent between two scales is rounded, by more the farther they are apart."""
    fields = ResultFields(
        0.1, lambda: "exact", 9, 9, 2, None, None, lambda: pytest.fail("must not be called")
    )
    pairs = []
    for i in range(60):
        log_upper, log_lower = -300.0 - 5 * math.pi * i / 3, -math.sqrt(2.0 + i)
        upper = TailMass(log_upper, math.exp(-log_upper - 9.0), 0.0)
        found = TailResult(upper, "lattice", "", lesser=(TailMass(log_lower, 0.1, 0.0), EMPTY))
        truth = arb(log_upper).exp() * arb(upper.scaled) + arb(log_lower).exp() * arb(0.1)
        result = computed_result(found, TestOptions(), fields)
        pairs.append((float(abs(arb(result.pvalue) / truth - 1)), result.error_bound))
    check_band(pairs, 10)


def test_one_side_with_an_upper_bound() -> None:
    fields = ResultFields(
        0.1, lambda: "exact", 9, 9, 2, None, None, lambda: pytest.fail("must not be called")
    )
    found = TailResult(TailMass(0.0, 0.3, 1e-3), "lattice", "", lesser=(TailMass(0.0, 0.01, 1.0), EMPTY))
    result = computed_result(found, TestOptions(), fields)
    ends = [0.3 / 1.001, 0.3 / 0.999 + 0.01]
    check_band(((abs(result.pvalue / end - 1), result.error_bound) for end in ends), 1.01)
    assert result.interval == pytest.approx(ends, rel=1e-12)


def test_null_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mass of a set of values: errors of the norm, wrapped mass, and values that are left out."""
    law, numbers = law_of({1: 40}), numbers_of_swaps({1: 40})

    def largest_error() -> tuple[float, float]:
        found = null_distribution(law, lambda points: points[0].astype(float), BUDGET)
        masses = dict(zip(found.values.tolist(), found.mass.tolist(), strict=True))
        off = [masses.get(float(value), 0.0) - number / 2**40 for value, number in enumerate(numbers)]
        return max(sum(x for x in off if x > 0), -sum(x for x in off if x < 0)), found.mass_error_bound

    def off_by_norm(*arguments: Any) -> Any:
        found = lattice_pmf(*arguments)
        return replace(found, mass=found.mass + DELTA / math.sqrt(found.mass.size), error_norm=DELTA)

    with monkeypatch.context() as patched:
        patched.setattr(null_module, "lattice_pmf", off_by_norm)
        check_band([largest_error()], 2)
    with monkeypatch.context() as patched:
        patched.setattr(null_module, "NOISE", 0.01)
        check_band([largest_error()], 1.01)
    monkeypatch.setattr(null_module, "plan_window", lambda *_, **__: Window((16,), (9,)))
    check_band([largest_error()], 20)


def test_bound_of_a_shifted_pvalue(monkeypatch: pytest.MonkeyPatch) -> None:

    truth = math.exp(-7.0) * 0.3 / (1 - 1e-3)
    monkeypatch.setattr(shifted_tail, "UNIT", COARSE)
    monkeypatch.setattr(shifted_tail, "math", CoarseMath())
    found = shifted_tail._bound(TailMass(-7.0, 0.3, 1e-3 / (1 - 1e-3)), is_rounded=False)
    assert truth <= found.pvalue <= truth * (1 + 100 * COARSE)
