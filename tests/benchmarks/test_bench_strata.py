"""The mean over 100 strata of the differences in accuracy: a statistic with a denominator of 400 bits."""

from __future__ import annotations

import numpy as np
from benchmarks.summary import Row
from benchmarks.workloads import scipy_resamples, seconds, strata

from trackperm.exact import difference_test

RESAMPLED = 399


def test_macro_average(benchmark, table):
    u, v, stratum = strata(100_000, n_strata=100)
    result = benchmark.pedantic(
        difference_test, args=(u, v), kwargs={"strata": stratum}, rounds=7, warmup_rounds=1
    )
    weights = (1 / np.bincount(stratum))[stratum]
    resampling = seconds(scipy_resamples, weights * u, weights * v, n_resamples=RESAMPLED, batch=40)
    table.add(
        Row(
            "macro-average of 100 strata, N = 10^5",
            benchmark.stats.stats.median,
            beside="SciPy, 9,999 resamples",
            theirs=resampling * 9_999 / RESAMPLED,
            limit=0.05,
            note=f"{result.method}, p = {result.format_pvalue()}; SciPy scaled up from {RESAMPLED}",
        )
    )
    low, high = result.interval
    table.add(Row("macro-average of 100 strata, N = 10^5: p_high / p_low", high / low, unit="", limit=1.02))
