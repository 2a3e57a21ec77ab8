"""Type I error by what is exchanged: rows or examples, rows or clusters, means or attempts.

Both runs are equally good in every case: each has examples, or documents, that it happens to do well on, and
which run has which is chance. The share of p < .05 is held against .05 by the binomial law; `-s` prints it.
What is too high is a test of too small a unit, and is here to show why the unit matters.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import expit
from scipy.stats import binom
from support.budget import Measured, cases

from trackperm.exact import RationalStatistic, attempts_test, difference_test, structured_test

pytestmark = [pytest.mark.slow, pytest.mark.generated]

ALPHA = 0.05
A, B, C, D = (RationalStatistic.variable(i, 4) for i in range(4))
F1_DIFFERENCE = (2 * A).divide(2 * A + B, undefined=0) - (2 * C).divide(2 * C + D, undefined=0)
Ints = npt.NDArray[np.int64]
Draw = Callable[[np.random.Generator], float]
"""Draws two runs and returns the p-value of their difference."""


def rate(draw: Draw, n: int) -> float:
    rng = np.random.default_rng(17)
    return sum(draw(rng) < ALPHA for _ in range(n)) / n


def epochs(rng: np.random.Generator, n_examples: int = 100, n_epochs: int = 5) -> tuple[Ints, Ints]:
    """Passes of two runs, by example and epoch; in a run, most examples nearly always pass or never do."""
    chances = rng.beta(0.3, 0.3, (2, n_examples, 1))
    passed = (rng.random((2, n_examples, n_epochs)) < chances).astype(np.int64)
    return passed[0], passed[1]


def rows_of_epochs(rng: np.random.Generator) -> float:
    u, v = epochs(rng)
    return difference_test(u.ravel(), v.ravel()).pvalue


def bundles_of_epochs(rng: np.random.Generator) -> float:
    u, v = epochs(rng)
    return difference_test(u.sum(axis=1), v.sum(axis=1)).pvalue


def documents(rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """Passes of two runs, and the first row of each of 40 documents of 3 to 15 questions.

    Questions have a difficulty of their own, and either run understands some documents better than others.
    """
    sizes = rng.integers(3, 16, 40)
    of = np.repeat(np.arange(40), sizes)
    difficulty = rng.normal(0.0, 1.0, of.size)
    understood = rng.normal(0.0, 1.3, (2, 40))
    u, v = (rng.random(of.size) < expit(difficulty + each[of]) for each in understood)
    return u.astype(np.int64), v.astype(np.int64), np.cumsum(sizes) - sizes


def questions(rng: np.random.Generator) -> float:
    u, v, _ = documents(rng)
    return difference_test(u, v).pvalue


def whole_documents(rng: np.random.Generator) -> float:
    u, v, firsts = documents(rng)
    return difference_test(np.add.reduceat(u, firsts), np.add.reduceat(v, firsts)).pvalue


def f1_of_examples(rng: np.random.Generator) -> float:
    """F1 of two noisy copies of one system, with one label in ten positive."""
    label = rng.random(150) < 0.1
    chance = np.where(label, rng.beta(3, 1, 150), rng.beta(1, 12, 150))
    predicted = rng.random((2, 150)) < chance
    u, v = (np.column_stack([run & label, run != label]).astype(np.int64) for run in predicted)
    return structured_test(np.hstack([u, v]), np.hstack([v, u]), F1_DIFFERENCE).pvalue


def attempts(chances: Callable[[np.random.Generator], npt.NDArray[np.float64]], a: int, b: int) -> Draw:
    """Permute attempts of examples that either run attempts with the same chance, a and b times."""

    def draw(rng: np.random.Generator) -> float:
        chance = chances(rng)
        n = np.ones(chance.size, dtype=np.int64)
        return attempts_test(rng.binomial(a, chance), a * n, rng.binomial(b, chance), b * n).pvalue

    return draw


def mixed_attempts(rng: np.random.Generator) -> float:
    """One to five attempts by either run, as if some had got lost."""
    chance = rng.beta(1, 1, 60)
    a, b = rng.integers(1, 6, (2, 60))
    return attempts_test(rng.binomial(a, chance), a, rng.binomial(b, chance), b).pvalue


def means(rng: np.random.Generator) -> float:
    """Swap the mean of one attempt with that of ten, on 30 hard examples."""
    passed_u, passed_v = rng.binomial(1, 0.03, 30), rng.binomial(10, 0.03, 30)
    return difference_test(10 * passed_u, passed_v).pvalue


VALID: dict[str, tuple[Draw, int]] = {
    "F1, by example": (f1_of_examples, cases(200)),
    "epochs, by example": (bundles_of_epochs, cases(2_000)),
    "questions, by document": (whole_documents, cases(2_000)),
    "3 attempts against 5": (attempts(lambda rng: rng.beta(1, 1, 100), 3, 5), cases(2_000)),
    "1 to 5 attempts": (mixed_attempts, cases(1_000)),
    "1 attempt against 10, hard examples": (attempts(lambda _: np.full(30, 0.03), 1, 10), cases(2_000)),
}

TOO_HIGH: dict[str, tuple[Draw, float, float]] = {
    "epochs, by row": (rows_of_epochs, 0.18, 0.33),
    "questions, by row": (questions, 0.20, 0.30),
    "1 attempt against 10, means swapped": (means, 0.30, 0.42),
}


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.nightly] * (VALID[case][0] is mixed_attempts)) for case in VALID],
)
def test_size_is_at_most_alpha(case: str, measured: Measured) -> None:
    draw, n = VALID[case]
    found = rate(draw, n)
    measured(f"{case}: p < {ALPHA} in {found:.4f} of {n}")
    assert n * found <= binom.ppf(1 - 1e-4, n, ALPHA)
    assert found > 0.25 * ALPHA, "no test at all would pass as well"


@pytest.mark.parametrize("case", TOO_HIGH)
def test_too_small_a_unit_is_called_different_too_often(case: str, measured: Measured) -> None:
    draw, low, high = TOO_HIGH[case]
    n = cases(1_000)
    found = rate(draw, n)
    measured(f"{case}: p < {ALPHA} in {found:.4f} of {n}")
    assert low <= found <= high
