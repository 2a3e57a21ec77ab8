"""Kendall's tau-b after exchanges of scores, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from support.rank_scores import kendall_tau_b as tau_b

from trackperm.exact.rank_statistics import RankedExamples
from trackperm.exact.rank_statistics.kendall import KendallTauB, LabelBit
from trackperm.exact.rank_statistics.order import SwappedOrder


def test_without_ties_the_difference_is_a_signed_sum() -> None:
    rng = np.random.default_rng(1)
    n = 12
    codes = rng.permutation(2 * n)
    u, v, labels = codes[:n], codes[n:], rng.integers(0, 4, n)
    ranked = RankedExamples.of(u, v, labels)
    linear = KendallTauB.of(ranked).linear
    assert linear is not None
    for _ in range(40):
        toss = rng.integers(0, 2, n)
        difference = tau_b(np.where(toss, v, u), labels) - tau_b(np.where(toss, u, v), labels)
        signs = 1 - 2 * toss[ranked.coins]
        assert linear.scale * (signs @ linear.moves[ranked.coins]) == pytest.approx(difference, abs=1e-12)
    assert KendallTauB.of(RankedExamples.of(u // 2, v // 2, labels)).linear is None


def test_a_large_case_has_the_counts_of_scipy() -> None:
    rng = np.random.default_rng(2)
    n = 30_000
    labels = rng.normal(size=n)
    u, v = (np.rint(3 * (labels + rng.normal(size=n))).astype(np.int64) + 40 for _ in range(2))
    ranked = RankedExamples.of(u, v, np.argsort(np.argsort(labels)))
    own, other = KendallTauB.of(ranked).scores(ranked.states(np.zeros((1, ranked.n_coins), dtype=np.uint8)))
    assert float(own[0]) == pytest.approx(tau_b(u, labels), abs=1e-12)
    assert float(other[0]) == pytest.approx(tau_b(v, labels), abs=1e-12)


def test_bits_leave_out_examples_with_equal_bits() -> None:
    ranked = RankedExamples.of(np.array([0, 1, 2]), np.array([3, 4, 5]), np.array([0, 2, 3]))
    order = SwappedOrder.of(ranked)
    labels = ranked.labels[order.examples]
    assert LabelBit.of(order, labels, 1).slots.size == 6
    assert LabelBit.of(order, labels, 0).slots.size == 4
