"""The mean over 100 strata of the differences in accuracy: a statistic with a denominator of 400 bits."""

from __future__ import annotations

import numpy as np
import polars as pl
from benchmarks.summary import Row
from benchmarks.workloads import scipy_resamples, seconds, strata

from trackperm.comparison.single import count_table_test
from trackperm.exact.options import TestOptions
from trackperm.pairing.pair import pair_in_memory
from trackperm.statistic import read_statistic
from trackperm.tables.table import ExampleTable

SPEC = "counts: {correct: prediction, n: 1}\nscore: correct / n\nstrata: stratum\n"
RESAMPLED = 399


def test_macro_average(benchmark, table):
    u, v, stratum = strata(100_000, n_strata=100)
    tables = [
        ExampleTable.from_native(
            pl.DataFrame({"id": np.arange(u.size), "stratum": stratum, "prediction": each}), name
        )
        for name, each in (("baseline", v), ("candidate", u))
    ]
    paired = pair_in_memory(*tables, read_statistic(SPEC, "macro.yaml"))
    result = benchmark.pedantic(
        count_table_test,
        args=(paired.statistic, paired.count_table, TestOptions()),
        rounds=7,
        warmup_rounds=1,
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
