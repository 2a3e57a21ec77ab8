"""Macro-F1 of many classes by tilted sampling and by certified ends, and estimated times of exact engines."""

from __future__ import annotations

import statistics
import time
from typing import Any
from unittest import mock

import numpy as np
import pytest
from benchmarks.summary import Row
from benchmarks.workloads import class_predictions, class_test, macro_f1_of, strata_of_f1

from trackperm.exact import PermutationTest, permutation, structured_test

LIMITS = {20_000: (2.0, 0.03), 200_000: (15.0, 0.01)}
"""Seconds on one core and relative standard error of the estimate, by the number of draws."""


def cpu_seconds(problem: Any, **options: Any) -> tuple[float, PermutationTest]:
    """Time on one core, the median of three runs, and the result."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        result = class_test(problem, **options)
        taken.append(time.process_time() - start)
    return statistics.median(taken), result


@pytest.mark.parametrize("draws", LIMITS)
@pytest.mark.parametrize(("candidate", "power"), [(0.613, -10), (0.632, -50)])
def test_macro_f1_of_twenty_classes(table, draws: int, candidate: float, power: int):
    problem = class_predictions(100_000, 20, 0.6, candidate)
    options = {"method": "tilted", "n_samples": draws}
    with mock.patch("os.cpu_count", return_value=1):
        taken, result = cpu_seconds(problem, **options)
    seconds, error = LIMITS[draws]
    estimate = result.estimate
    name = f"macro-F1, 20 classes, N = 10^5, p near 1e{power}, {draws:,} draws"
    note = (
        f"log10 p = {result.log10_pvalue:.4g}, {estimate}, {estimate.effective_samples:.0f} effective draws"
    )
    table.add(Row(name, taken, limit=seconds, note=note, summary=True))
    table.add(Row(f"{name}: standard error", estimate.relative_error, unit="", limit=error))


ENDS = {
    "3 classes, N = 10^4": (10_000, 3, 0.7, 0.7005),
    "20 classes, N = 10^5": (100_000, 20, 0.6, 0.613),
    "50 classes, N = 5 * 10^4": (50_000, 50, 0.6, 0.61),
}


@pytest.mark.parametrize("name", ENDS)
def test_certified_ends(table, name: str):
    problem = class_predictions(*ENDS[name])
    taken, result = cpu_seconds(problem, method="bracket")
    low, high = result.interval
    note = f"{low:.3g} to {high:.3g}; {result.why}"
    table.add(Row(f"macro-F1, {name}: certified ends", taken, limit=1.0, note=note, summary=True))
    table.add(Row(f"macro-F1, {name}: ratio of the ends", high / low, unit="", limit=1.1))


CASES: dict[str, Any] = {
    "F1 of 2 strata, N = 60": lambda: (*strata_of_f1(60, 2), None),
    "F1 of 3 strata, N = 50": lambda: (*strata_of_f1(50, 3), None),
    "F1 of 3 strata, N = 30": lambda: (*strata_of_f1(30, 3), None),
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
