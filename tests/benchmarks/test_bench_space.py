"""Statistics of three independent counts, whose rows are summed without a grid."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.summary import Row
from benchmarks.workloads import class_predictions, multiclass_mcc_of, share_and_count

from trackperm.exact import structured_test

CASES: dict[str, tuple[Any, float]] = {
    "precision of one half and accuracy of the other, N = 1,000": (lambda: share_and_count(1_000), 0.2),
    "precision of one half and accuracy of the other, N = 10,000": (lambda: share_and_count(10_000), 1.5),
    "MCC of 3 classes, N = 1,000": (
        lambda: multiclass_mcc_of(class_predictions(1_000, 3, 0.7, 0.8)),
        0.3,
    ),
    "MCC of 3 classes, N = 5,000": (
        lambda: multiclass_mcc_of(class_predictions(5_000, 3, 0.7, 0.8)),
        1.5,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_three_counts(benchmark, table, name: str):
    problem, limit = CASES[name]
    observed, swapped, h, multiplicities = problem()
    result = benchmark.pedantic(
        structured_test,
        args=(observed, swapped, h),
        kwargs={"multiplicities": multiplicities},
        rounds=3,
        warmup_rounds=1,
    )
    assert (result.method, result.rank) == ("lattice", 3)
    note = f"p = {result.format_pvalue()}, certified to {result.error_bound:.0e}"
    table.add(Row(name, benchmark.stats.stats.median, limit=limit, note=note))
