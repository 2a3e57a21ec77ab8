"""Kendall's tau-b: SciPy's number, and what the result says about its p-value."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from support.rank_scores import kendall_tau_b

import trackperm


def frames(labels: Any, both: Any, **more: Any) -> list[pl.DataFrame]:
    n = len(labels)
    return [pl.DataFrame({"id": range(n), "label": labels, "score": own, **more}) for own in both]


def test_without_ties_it_is_exact_and_the_test_of_tau_a() -> None:
    rng = np.random.default_rng(1)
    labels = rng.normal(size=200)
    both = labels + rng.normal(size=(2, 200)) * np.array([[1.0], [2.0]])
    found = trackperm.compare(*frames(labels, both), "kendall_tau_b")
    plain = trackperm.compare(*frames(labels, both), "kendall_tau")
    assert found.pvalue == pytest.approx(plain.pvalue, rel=1e-9)
    assert found.error_bound <= 1e-10
    assert found.candidate_score == pytest.approx(kendall_tau_b(both[1], labels), abs=1e-12)


def test_with_ties_it_is_monte_carlo_and_says_so() -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 4, 60)
    both = np.rint(labels + rng.normal(size=(2, 60)))
    found = trackperm.compare(*frames(labels, both), "kendall_tau_b", n_samples=2_000)
    assert found.method == "monte-carlo"
    assert "Monte Carlo" in str(found)
    assert found.candidate_score == pytest.approx(kendall_tau_b(both[1], labels), abs=1e-12)
    assert found.interval is None
