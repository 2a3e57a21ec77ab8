"""Rate at which the test of Spearman's correlations rejects equal ones; the table in the documentation.

``python -m exact.rank_statistics.levels`` in the folder of the tests prints it. Labels are normal. The scores
of both systems are the label times a slope plus normal errors, half of whose variance is shared; those of the
second one are exponentiated, so that the two are on different scales. The last column exchanges ranks without
ranking them again: a weighted sum, in which an example does not move the ranks of the others. Signed sums of
more than 20 examples are taken as normal, which is close enough at a level of 5 %.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.stats import norm, rankdata

from trackperm.exact import TestOptions
from trackperm.exact.rank_statistics import RankedExamples, scores_by_stratum
from trackperm.exact.sums import sum_test_of

SIZES = (20, 50, 200)
CORRELATIONS = (0.3, 0.6, 0.9)
SAMPLES = 6000
LEVEL = 0.05
FEW = 20


def is_rejected(moves: npt.NDArray[np.int64]) -> bool:
    """Whether the sum of the moves is extreme among their signed sums."""
    if moves.size <= FEW:
        values, counts = np.unique(moves, return_counts=True)
        return sum_test_of(values, counts.astype(np.int64), Fraction(1), TestOptions()).pvalue <= LEVEL
    real = moves.astype(np.float64)
    return bool(2 * norm.sf(abs(real.sum()) / np.sqrt(real @ real)) <= LEVEL)


def rates(n: int, correlation: float) -> tuple[float, float]:
    """Return the rates of p <= 5 % with and without ranking again."""
    rng = np.random.default_rng([n, int(100 * correlation)])
    slope = correlation / np.sqrt(1 - correlation**2)
    rejected = np.zeros(2)
    for _ in range(SAMPLES):
        label, shared, first, second = rng.normal(size=(4, n))
        u, v = (slope * label + (shared + own) / np.sqrt(2) for own in (first, second))
        ranks = [rankdata(side).astype(np.int64) for side in (u, np.exp(v), label)]
        again = scores_by_stratum("spearman", RankedExamples.of(*ranks, by_run=True)).linear
        assert again is not None
        fixed = (ranks[0] - ranks[1]) * (2 * ranks[2] - n - 1)
        rejected += is_rejected(again.moves), is_rejected(fixed)
    return float(rejected[0] / SAMPLES), float(rejected[1] / SAMPLES)


def lines() -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| examples | correlation | ranked again | not ranked again |"
    yield "|---|---|---|---|"
    for n in SIZES:
        for correlation in CORRELATIONS:
            again, fixed = rates(n, correlation)
            yield f"| {n} | {correlation} | {again:.3f} | {fixed:.3f} |"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in lines())
