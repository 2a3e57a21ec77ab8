"""Kendall's tau-b: SciPy's number, all exchanges, and what the result says about its p-value."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import kendalltau
from support.budget import cases

import trackperm
from trackperm.statistic import read_statistic


def tau_b(scores: Any, labels: Any) -> float:
    """Return SciPy's coefficient; 0 where it has none."""
    return float(np.nan_to_num(kendalltau(scores, labels, variant="b").statistic))


def spec(keys: str = "") -> Any:
    text = "rank_statistic: {function: kendall_tau_b, label: label, scale: raw}\n"
    return read_statistic(text + keys, "x.yaml", "kendall_tau_b")


def frames(labels: Any, both: Any, **more: Any) -> list[pl.DataFrame]:
    n = len(labels)
    return [pl.DataFrame({"id": range(n), "label": labels, "score": own, **more}) for own in both]


@pytest.mark.parametrize("keys", ["", "cluster: unit\n", "strata: part\nweights: {a: 3, b: 1}\n"])
def test_against_all_exchanges(keys: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(cases(6)):
        n = 9
        labels, both = rng.integers(0, 4, n), rng.integers(0, 5, (2, n)).astype(float)
        labels[[0, 1, 5, 6]] = 0, 1, 0, 1
        part = np.array(["a"] * 5 + ["b"] * 4)
        unit = rng.integers(0, 5, n) if "cluster" in keys else np.arange(n)
        rows = frames(labels, both, unit=unit, part=part)
        found = trackperm.compare(*rows, spec(keys))

        def score(scores: Any, labels: Any = labels, part: Any = part) -> float:
            if "strata" not in keys:
                return tau_b(scores, labels)
            own = [tau_b(scores[part == name], labels[part == name]) for name in "ab"]
            return (3 * own[0] + own[1]) / 4

        assert found.baseline_score == pytest.approx(score(both[0]), abs=1e-12)
        assert found.candidate_score == pytest.approx(score(both[1]), abs=1e-12)
        observed = abs(score(both[1]) - score(both[0]))
        extreme = total = 0
        for toss in product((0, 1), repeat=int(unit.max()) + 1):
            is_exchanged = np.array(toss)[unit] == 1
            sides = (np.where(is_exchanged, both[i], both[1 - i]) for i in (0, 1))
            first, second = map(score, sides)
            extreme += abs(first - second) >= observed - 1e-12
            total += 1
        assert found.pvalue == pytest.approx(extreme / total, rel=1e-12)


def test_without_ties_it_is_exact_and_the_test_of_tau_a() -> None:
    rng = np.random.default_rng(1)
    labels = rng.normal(size=200)
    both = labels + rng.normal(size=(2, 200)) * np.array([[1.0], [2.0]])
    found = trackperm.compare(*frames(labels, both), "kendall_tau_b")
    plain = trackperm.compare(*frames(labels, both), "kendall_tau")
    assert found.pvalue == pytest.approx(plain.pvalue, rel=1e-9)
    assert found.error_bound <= 1e-10
    assert found.candidate_score == pytest.approx(tau_b(both[1], labels), abs=1e-12)


def test_with_ties_it_is_monte_carlo_and_says_so() -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 4, 60)
    both = np.rint(labels + rng.normal(size=(2, 60)))
    found = trackperm.compare(*frames(labels, both), "kendall_tau_b", n_samples=2_000)
    assert found.method == "monte-carlo"
    assert "Monte Carlo" in str(found)
    assert found.candidate_score == pytest.approx(tau_b(both[1], labels), abs=1e-12)
    assert found.interval is None
