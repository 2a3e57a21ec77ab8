"""Every pair of the 129 systems of TREC adhoc8 on its 50 topics."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from benchmarks.summary import Row
from benchmarks.workloads import scipy_resamples, seconds
from reference_data import ABSENT, DATA, available

from trackperm.exact import difference_test

pytestmark = pytest.mark.skipif(not available(), reason=ABSENT)

RESAMPLED = 20


@pytest.mark.parametrize("scaled", [True, False], ids=["integers", "decimals"])
@pytest.mark.parametrize(
    ("score", "file", "scale", "limit"),
    [("P@10", "adhoc8_p10.csv", 10, 3.0), ("average precision", "adhoc8_ap.csv", 10_000, 10.0)],
)
def test_every_pair(benchmark, table, score: str, file: str, scale: int, limit: float, scaled: bool):
    systems = np.loadtxt(DATA / "reference_pvalues/urbano_trec" / file, delimiter=",", skiprows=1).T.copy()
    if scaled:
        systems = np.rint(scale * systems).astype(np.int64)
    pairs = list(combinations(systems, 2))
    assert len(pairs) == 8_256

    def every_pair():
        return [difference_test(u, v) for u, v in pairs]

    results = benchmark.pedantic(every_pair, rounds=1)
    chosen = pairs[:: len(pairs) // RESAMPLED][:RESAMPLED]
    resampling = seconds(lambda: [scipy_resamples(u, v) for u, v in chosen])
    methods = Counter(result.method for result in results).most_common()
    largest = max(result.error_bound for result in results)
    table.add(
        Row(
            f"{len(pairs):,} pairs of adhoc8, {score} as {'integers' if scaled else 'decimals in floats'}",
            benchmark.stats.stats.median,
            beside="SciPy, 9,999 resamples",
            theirs=resampling * len(pairs) / RESAMPLED,
            limit=limit,
            note=", ".join(f"{name} {n:,}" for name, n in methods)
            + f"; error_bound at most {largest:.1e}; SciPy scaled up from {RESAMPLED} pairs",
        )
    )
