"""A difference in F1 from four counts, for which the paper's algorithm has no memory beyond N = 200."""

from __future__ import annotations

import pytest
from benchmarks.summary import Row
from benchmarks.workloads import binary_labels, entities, f1_test, long_texts, scipy_f1_resamples, seconds

LIMITS = {10**2: 0.002, 10**3: 0.002, 10**4: 0.012, 10**6: 0.05}


@pytest.mark.parametrize("exponent", [2, 3, 4, 5, 6])
def test_f1(benchmark, table, exponent: int):
    n_examples = 10**exponent
    observed, swapped = entities(n_examples)
    # Single calls of two milliseconds differ by a fifth.
    rounds = 200 if n_examples <= 1_000 else 7
    result = benchmark.pedantic(f1_test, args=(observed, swapped), rounds=rounds, warmup_rounds=1)
    resampled = exponent <= 4
    table.add(
        Row(
            f"F1, N = {f'{n_examples:,}' if resampled else f'10^{exponent}'}",
            benchmark.stats.stats.median,
            beside="SciPy, 9,999 resamples" if resampled else "",
            theirs=seconds(scipy_f1_resamples, observed) if resampled else None,
            limit=LIMITS.get(n_examples),
            series="F1",
            n_examples=n_examples,
            note=f"log10 p = {result.log10_pvalue:.6g}, error_bound {result.error_bound:.1e}; "
            "the statistic is read once",
        )
    )
    assert result.error_bound < 1e-8


OTHERS = {
    "F1 of binary labels, N = 1,000": (binary_labels(1_000), 0.002, 1e-12),
    "F1, N = 10,000, 10 entities in each": (long_texts(10_000), None, 1e-8),
}


@pytest.mark.parametrize("work", OTHERS)
def test_f1_of_other_examples(benchmark, table, work: str):
    problem, limit, largest_error = OTHERS[work]
    result = benchmark.pedantic(f1_test, args=problem, rounds=7, warmup_rounds=1)
    note = f"log10 p = {result.log10_pvalue:.6g}, error_bound {result.error_bound:.1e}"
    table.add(Row(work, benchmark.stats.stats.median, limit=limit, note=note, summary=limit is None))
    assert result.error_bound < largest_error
