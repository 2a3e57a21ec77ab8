"""Rate at which the test of Spearman's correlations rejects equal ones; the table in the documentation.

``python -m exact.rank_statistics.levels`` in the folder of the tests prints it. Labels are normal. The scores
of both systems are the label times a slope plus normal errors, half of whose variance is shared; those of the
second one are exponentiated, so that the two are on different scales. The last column exchanges ranks without
ranking them again: a weighted sum, in which an example does not move the ranks of the others.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from scipy.stats import rankdata

from trackperm.exact import TestOptions
from trackperm.exact.permutation import sum_test_of
from trackperm.exact.rank_statistics import RankedExamples, rank_test_of, scores_by_stratum

SAMPLES = 2000
LEVEL = 0.05


def rates(n: int, correlation: float) -> tuple[float, float]:
    """Return the rates of p <= 0.05 with and without ranking again."""
    rng = np.random.default_rng([n, int(100 * correlation)])
    slope = correlation / np.sqrt(1 - correlation**2)
    rejected = np.zeros(2)
    for _ in range(SAMPLES):
        label, shared, first, second = rng.normal(size=(4, n))
        u, v = (slope * label + (shared + own) / np.sqrt(2) for own in (first, second))
        codes = [rankdata(side).astype(np.int64) for side in (u, np.exp(v), label)]
        ranked = RankedExamples.of(*codes, by_run=True)
        again = rank_test_of(scores_by_stratum("spearman", ranked), ranked, TestOptions(), n_units=n)
        moves = (codes[0] - codes[1]) * (2 * codes[2] - n - 1)
        values, counts = np.unique(moves, return_counts=True)
        fixed = sum_test_of(values, counts.astype(np.int64), Fraction(1), TestOptions())
        rejected += again.pvalue <= LEVEL, fixed.pvalue <= LEVEL
    return float(rejected[0] / SAMPLES), float(rejected[1] / SAMPLES)


def lines() -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| examples | correlation | ranked again | not ranked again |"
    yield "|---|---|---|---|"
    for n in (20, 50, 200):
        for correlation in (0.3, 0.6, 0.9):
            again, fixed = rates(n, correlation)
            yield f"| {n} | {correlation} | {again:.3f} | {fixed:.3f} |"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in lines())
