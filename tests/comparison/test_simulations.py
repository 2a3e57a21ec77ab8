"""Size of the test under the null hypothesis, by simulation: what is promised holds on data as people have.

Both runs are noisy copies of the same system, so that either has an output with the same chance. The rate at
which p < alpha is held against alpha by the binomial law; `-s` prints the figures.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom
from support.budget import Measured, cases

from trackperm.exact import CountTable, structured_test
from trackperm.statistic import Statistic, load_statistic

pytestmark = [pytest.mark.slow, pytest.mark.generated]

ALPHA = 0.05
Draw = Callable[[np.random.Generator], tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]
"""Draws the counts of both runs, one row for what is exchanged as a whole."""


def accuracy(rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    easy = rng.beta(4, 1, 200)
    u, v = ((rng.random(200) < easy).astype(np.int64) for _ in range(2))
    return np.column_stack([u, np.ones_like(u)]), np.column_stack([v, np.ones_like(v)])


def f1(rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Counts of true positives and of what is incorrect, one label in ten positive."""
    label = rng.random(150) < 0.1
    chance = np.where(label, rng.beta(3, 1, 150), rng.beta(1, 12, 150))

    def counts() -> npt.NDArray[np.int64]:
        predicted = rng.random(150) < chance
        return np.column_stack([predicted & label, predicted != label]).astype(np.int64)

    return counts(), counts()


def clustered(n_clusters: int, size: int) -> Draw:
    """Accuracy where the examples of a cluster go wrong together, in one run and the other apart."""

    def draw(rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        sums = [rng.binomial(size, rng.beta(2, 2, n_clusters)) for _ in range(2)]
        whole = np.full(n_clusters, size)
        return np.column_stack([sums[0], whole]), np.column_stack([sums[1], whole])

    return draw


def rate(draw: Draw, statistic: Statistic, n: int) -> float:
    rng = np.random.default_rng(20)
    rejected = 0
    for _ in range(n):
        table = CountTable.from_counts(statistic.count_names, *draw(rng))
        observed, swapped = statistic.pairs(table.candidate, table.baseline)
        test = structured_test(observed, swapped, statistic.h, multiplicities=table.multiplicities)
        rejected += test.pvalue < ALPHA
    return rejected / n


CASES: dict[str, tuple[Draw, str, int]] = {
    "accuracy": (accuracy, "accuracy", cases(400)),
    "f1": (f1, "f1", cases(200)),
    "clusters of 50 x 10": (clustered(50, 10), "accuracy", cases(400)),
    "clusters of 20 x 20": (clustered(20, 20), "accuracy", cases(400)),
}


@pytest.mark.parametrize("case", CASES)
def test_size_is_at_most_alpha(case: str, measured: Measured) -> None:
    draw, name, n = CASES[case]
    found = rate(draw, load_statistic(name), n)
    measured(f"{case}: p < {ALPHA} in {found:.4f} of {n}")
    assert n * found <= binom.ppf(1 - 1e-4, n, ALPHA)
    assert found > 0.3 * ALPHA, "no test at all would pass as well"


def test_examples_of_clusters_exchanged_one_by_one_are_called_different_too_often() -> None:
    """Why clusters are declared: the same data, as if the examples were independent."""
    together = clustered(20, 20)

    def one_by_one(rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        sides = together(rng)
        flat = [(np.arange(20) < side[:, :1]).ravel().astype(np.int64) for side in sides]
        u, v = (np.column_stack([side, np.ones_like(side)]) for side in flat)
        return u, v

    assert rate(one_by_one, load_statistic("accuracy"), 300) > 4 * ALPHA
