"""Coverage of score intervals of measured numbers and of documents; a table in the documentation.

``python -m exact.intervals.coverages_of_numbers RMSE`` in the folder of the tests prints rows of a statistic.
Their counts are not combined, as nearly every example has counts of its own, and an interval depends on the
tails that the data show. An interval that is not shown counts as one that contains everything.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from exact.intervals.coverages import Outcome, errors
from exact.intervals.many_score_tests import ManyLaws
from support.cases import F1

from trackperm.exact import RealStatistic
from trackperm.exact.engines.lattice.statistic import Statistic, values_at

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]

AT_ONCE = 100
TRUTH = 2_000_000
"""Examples of which the true difference is that of a law."""


def rmse(n: int) -> RealStatistic:
    """Difference of root mean squares of two columns of squares."""
    candidate, baseline = (RealStatistic.variable(i, 2) for i in range(2))
    return (candidate / n).sqrt() - (baseline / n).sqrt()


def correlation(n: int) -> RealStatistic:
    """Difference of two correlations, from the sums x, xx, xy, y, yy of each run."""
    sums = [RealStatistic.variable(i, 10) for i in range(10)]

    def score(first: int) -> RealStatistic:
        x, xx, xy, y, yy = sums[first : first + 5]
        return (n * xy - x * y) / ((n * xx - x * x) * (n * yy - y * y)).sqrt()

    return score(0) - score(5)


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Errors of both runs that share half of their variance."""
    shared = rng.standard_normal(shape)
    return np.stack([0.7 * shared + 0.7 * rng.standard_normal(shape) for _ in range(2)])


def students(freedom: float) -> Draw:
    return lambda rng, shape: rng.standard_t(freedom, (2, *shape))


def uniform(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return rng.uniform(-1.7, 1.7, (2, *shape))


def lognormal_sizes(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return np.asarray(normal(rng, shape) * np.exp(0.5 * rng.standard_normal(shape)))


def failing(share: float, size: float) -> Draw:
    """Normal errors, and failures of the candidate."""

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        drawn = normal(rng, shape)
        drawn[0] += (rng.random(shape) < share) * size * rng.standard_normal(shape)
        return drawn

    return draw


ERRORS: dict[str, tuple[Draw, float, float]] = {
    "normal errors, .8 and .8": (normal, 0.8, 0.8),
    "normal errors, .7 and .8": (normal, 0.7, 0.8),
    "normal errors, .5 and .8": (normal, 0.5, 0.8),
    "uniform errors, .5 and .8": (uniform, 0.5, 0.8),
    "t of 5 degrees of freedom": (students(5), 0.5, 0.8),
    "t of 3 degrees of freedom": (students(3), 0.5, 0.8),
    "sizes of errors lognormal": (lognormal_sizes, 0.5, 0.8),
    "5 % failures of size 5": (failing(0.05, 5.0), 0.5, 0.8),
    "10 % failures of size 5": (failing(0.1, 5.0), 0.5, 0.8),
    "5 % failures of size 3": (failing(0.05, 3.0), 0.8, 0.8),
}
"""Errors of both runs, and the factors of the candidate's and of the baseline's."""


def errors_of(law: str, rng: np.random.Generator, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    draw, candidate, baseline = ERRORS[law]
    drawn = draw(rng, shape)
    return candidate * drawn[0], baseline * drawn[1]


def squares(law: str) -> Draw:
    return lambda rng, shape: np.stack([each**2 for each in errors_of(law, rng, shape)], axis=-1)


def moments(law: str, freedom: float | None = None) -> Draw:
    """Sums of a correlation of values, normal or of Student's t, with values that have errors."""

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        y = rng.standard_normal(shape) if freedom is None else rng.standard_t(freedom, shape)
        runs = [y + error for error in errors_of(law, rng, shape)]
        return np.stack([each for x in runs for each in (x, x * x, x * y, y, y * y)], axis=-1)

    return draw


def documents(spread: float, failures: float) -> Draw:
    """Spans that each run finds, and its errors, in documents with a lognormal number of spans."""

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        size = 1 + np.floor(np.exp(1.8 + spread * rng.standard_normal(shape))).astype(int)
        hard, counts = 0.5 * rng.standard_normal(shape), list[npt.NDArray[np.int64]]()
        for share, fails in ((0.8, failures), (0.75, 0.0)):
            odds = np.log(share / (1.0 - share)) + hard + 0.15 * rng.standard_normal(shape)
            chance = 1.0 / (1.0 + np.exp(-odds))
            found, wrong = rng.binomial(size, chance), rng.binomial(size, 1.0 - chance)
            counts += [found, size - found + wrong + 5 * size * (rng.random(shape) < fails)]
        return np.stack(counts, axis=-1).astype(np.float64)

    return draw


LAWS: dict[str, tuple[Callable[[int], Statistic], dict[str, Draw]]] = {
    "RMSE": (rmse, {law: squares(law) for law in ERRORS}),
    "Pearson": (
        correlation,
        {
            **{law: moments(law) for law in ERRORS if not law.startswith("uniform")},
            "values t of 5 degrees of freedom": moments("normal errors, .5 and .8", 5),
            "values t of 3 degrees of freedom": moments("normal errors, .5 and .8", 3),
        },
    ),
    "pooled F1": (
        lambda n: F1,
        {
            "documents of similar sizes": documents(0.5, 0.0),
            "documents of different sizes": documents(1.0, 0.0),
            "similar sizes, 5 % failures": documents(0.5, 0.05),
            "different sizes, 5 % failures": documents(1.0, 0.05),
        },
    ),
}


def score_tests(h: Statistic, rows: Floats, differences: list[float]) -> tuple[Floats, Booleans, Booleans]:
    """Return statistics by data set and difference, which sets have intervals, and which without rule 5."""
    n_sets, n, m = rows.shape
    swapped = np.roll(rows, m // 2, axis=2)
    counts = np.tile(np.repeat([1, 0], n), (n_sets, 1))
    both = np.ones((n_sets, 2 * n), dtype=bool)
    many = ManyLaws(
        h,
        np.concatenate([rows, swapped], axis=1),
        np.concatenate([swapped, rows], axis=1),
        counts,
        both,
        np.zeros(n_sets, dtype=bool),
    )
    with np.errstate(all="ignore"):
        found = np.stack([many.statistics(np.full(n_sets, each)) for each in differences], axis=1)
        shown = many.are_shown()
        many.combined[:] = True
        return found, shown, many.are_shown()


def simulated(name: str, law: str, n: int, n_sets: int, seed: int) -> tuple[Outcome, Outcome, float]:
    """Return the rates over data sets, those without rule 5, and the share that have an interval."""
    (statistic, laws), rng = LAWS[name], np.random.default_rng(0)
    expected = np.mean([laws[law](rng, (1, TRUTH // 10))[0].mean(axis=0) for _ in range(10)], axis=0)
    h, rng = statistic(n), np.random.default_rng([seed, n])
    truth = float(values_at(h, n * expected[None])[0])
    ruled, unruled, n_shown = np.zeros(4), np.zeros(4), 0
    for start in range(0, n_sets, AT_ONCE):
        rows = laws[law](rng, (min(AT_ONCE, n_sets - start), n))
        found, shown, enough = score_tests(h, rows, [truth, -truth])
        ruled += errors(found, shown, truth)
        unruled += errors(found, enough, truth)
        n_shown += int(shown.sum())
    rates = (Outcome(*(each / n_sets).tolist()) for each in (ruled, unruled))
    return *rates, n_shown / n_sets


def row(name: str, law: str, n: int, n_sets: int) -> str:
    """Return a row of the table."""
    ruled, unruled, shown = simulated(name, law, n, n_sets, 1)
    cells = [
        f"{name}, {law}",
        str(n),
        f"{100 * shown:.0f} %",
        f"{100 * (1.0 - ruled.missed):.1f} %",
        f"{100 * ruled.one_sided:.1f} %",
        f"{100 * ruled.declared:.1f} %",
        f"{100 * unruled.one_sided:.1f} %",
    ]
    return "| " + " | ".join(cells) + " |"


HEADER = (
    "| statistic | N | shown | coverage | error of a 5 % bound | of equivalence at the margin | of a bound"
    " without the rule |"
)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print rows of the table of coverages of numbers.")
    parser.add_argument("names", nargs="*", default=list(LAWS))
    parser.add_argument("--sets", type=int, default=2_000, help="data sets of each law")
    parser.add_argument("--sizes", type=int, nargs="*", default=[50, 200], help="numbers of examples")
    asked = parser.parse_args()
    sys.stdout.write(f"{HEADER}\n|---|" + "---:|" * 6 + "\n")
    for name in asked.names:
        for law in LAWS[name][1]:
            for n in asked.sizes:
                sys.stdout.write(f"{row(name, law, n, asked.sets)}\n")
                sys.stdout.flush()
