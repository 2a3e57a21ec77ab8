"""Macro-F1 of twenty classes by tilted sampling, and the estimated time of exact engines."""

from __future__ import annotations

import time
from typing import Any
from unittest import mock

import numpy as np
import pytest
from benchmarks.summary import Row
from benchmarks.workloads import class_predictions, class_test, macro_f1_of, strata_of_f1

from trackperm.exact import permutation, structured_test

LIMITS = {20_000: (2.0, 0.03), 200_000: (15.0, 0.01)}
"""Seconds on one core and relative standard error of the estimate, by the number of draws."""


@pytest.mark.parametrize("draws", LIMITS)
@pytest.mark.parametrize(("candidate", "power"), [(0.613, -10), (0.632, -50)])
def test_macro_f1_of_twenty_classes(benchmark, table, draws: int, candidate: float, power: int):
    problem = class_predictions(100_000, 20, 0.6, candidate)
    options = {"method": "tilted", "n_samples": draws}
    with mock.patch("os.cpu_count", return_value=1):
        result = benchmark.pedantic(class_test, args=(problem,), kwargs=options, rounds=3, warmup_rounds=1)
    seconds, error = LIMITS[draws]
    estimate = result.estimate
    name = f"macro-F1, 20 classes, N = 10^5, p near 1e{power}, {draws:,} draws"
    note = (
        f"log10 p = {result.log10_pvalue:.4g}, {estimate}, {estimate.effective_samples:.0f} effective draws"
    )
    table.add(Row(name, benchmark.stats.stats.median, limit=seconds, note=note, summary=True))
    table.add(Row(f"{name}: standard error", estimate.relative_error, unit="", limit=error))


CASES: dict[str, Any] = {
    "F1 of 2 strata, N = 60": lambda: strata_of_f1(60, 2),
    "F1 of 3 strata, N = 50": lambda: strata_of_f1(50, 3),
    "F1 of 3 strata, N = 30": lambda: strata_of_f1(30, 3),
    "macro-F1 of 3 classes, N = 200": lambda: macro_f1_of(class_predictions(200, 3, 0.7, 0.75)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_estimated_time_is_within_a_factor_of_three(table, name: str):
    observed, swapped, h, multiplicities = CASES[name]()
    planned: list[Any] = []
    engines = permutation._engines

    def spied(*arguments: Any) -> Any:
        planned.extend(engines(*arguments))
        return planned

    with mock.patch.object(permutation, "_engines", spied):
        start = time.process_time()
        structured_test(observed, swapped, h, method="lattice", multiplicities=multiplicities)
        taken = time.process_time() - start
    (estimated,) = (engine.seconds for engine in planned if engine.name == "lattice")
    ratio = max(estimated / taken, taken / estimated)
    table.add(Row(f"{name}: estimated against taken", ratio, unit="", limit=3.0, note=f"{taken:.2g} s"))
    assert np.isfinite(ratio)
