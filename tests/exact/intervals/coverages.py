"""Coverage of score intervals by simulation; the table in the documentation.

``python -m exact.intervals.coverages f1 mcc`` in the folder of the tests prints the rows of these statistics;
``--help`` lists how many data sets are drawn. All laws are simulated, and those with the largest errors again
with more and new draws: the least coverage and the greatest errors are those of the second simulation,
because the largest of many errors is too large by chance. An interval that is not shown counts as one that
contains everything.

An interval contains the true difference exactly if the score test does not reject it, which takes one fit
instead of the search for two ends. A data set shows equivalence at a margin if both bounds at 5 % exclude it;
here the margin is the true difference, so that this is an error.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from exact.intervals.many_score_tests import ManyLaws
from exact.intervals.populations import Population, Simulation, n_classes_of, populations
from scipy.special import ndtri

from trackperm.exact.engines.lattice.statistic import Statistic
from trackperm.exact.intervals import why_not_scored
from trackperm.exact.intervals.score import MOST_COMBINED, ConstrainedLaws, possible_outcomes

NAMES = ("f1", "precision", "recall", "mcc", "cohen_kappa", "macro_f1")
AT_ONCE = 500

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


@dataclass
class Outcome:
    """Rates over the data sets of one law.

    Attributes
    ----------
    missed : float
        Share of data sets whose 95 % interval does not contain the true difference.
    low, high : float
        Shares of data sets whose lower or upper bound at 5 % misses it.
    declared : float
        Share of data sets that show equivalence at a margin of the size of the true difference.
    """

    missed: float
    low: float
    high: float
    declared: float

    @property
    def one_sided(self) -> float:
        return max(self.low, self.high)


def tested(table: tuple[Integers, Integers, Statistic, Integers], difference: float) -> float:
    """Return the statistic of the score test of a difference; NaN if no law has it.

    An interval ends where this statistic reaches the quantile.
    """
    observed, swapped, h, multiplicities = table
    laws = ConstrainedLaws(*possible_outcomes(observed, swapped, multiplicities), h)
    side = 1.0 if laws.difference > difference else -1.0
    if not 0.0 < laws.spread < math.inf:
        return math.nan
    if -side * laws.extreme(-side) <= -side * difference:
        return side * math.inf
    found = laws.fitted(difference, laws.masses)
    return math.nan if found is None else (laws.difference - difference) / found[1]


class Laws:
    """Tables of possible outcomes of many data sets: pairs of what two runs can count for an example."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        u, v = simulation.candidate.copy(), simulation.baseline.copy()
        if simulation.looked_up is not None:
            for side, column in ((u, 1), (v, 2)):
                side[:, simulation.looked_up] = simulation.cells[:, column]
        self.counts, inverse = np.unique(np.vstack([u, v]), axis=0, return_inverse=True)
        n, (of_u, of_v) = len(self.counts), inverse.ravel().reshape(2, -1)
        self.first, self.second = np.repeat(np.arange(n), n), np.tile(np.arange(n), n)
        self.outcome_of_cell = np.zeros((len(u), n * n))
        self.outcome_of_cell[np.arange(len(u)), of_u * n + of_v] = 1.0

    def of(self, drawn: Integers) -> ManyLaws:
        """Return the laws of data sets, given as numbers of examples by cell."""
        n = len(self.counts)
        multiplicities = np.rint(drawn @ self.outcome_of_cell).astype(np.int64)
        seen = multiplicities.reshape(-1, n, n) > 0
        one_run = seen.any(axis=1) | seen.any(axis=2)
        many = one_run.sum(axis=1) > MOST_COMBINED
        possible = one_run[:, :, None] & one_run[:, None, :]
        possible[many] = (seen | seen.transpose(0, 2, 1))[many]
        rows, swapped = zip(*map(self._rows, self._looked_up(drawn)), strict=True)
        return ManyLaws(
            self.simulation.statistic.h,
            np.array(rows, dtype=np.float64),
            np.array(swapped, dtype=np.float64),
            multiplicities,
            possible.reshape(-1, n * n),
            ~many,
        )

    def _looked_up(self, drawn: Integers) -> list[Integers]:
        """Return the counts of one run, for each data set if they look up its labels, or else once."""
        column = self.simulation.looked_up
        if column is None:
            return [self.counts]
        found = []
        for each in drawn:
            labels = np.bincount(self.simulation.cells[:, 0], weights=each)
            counts = self.counts.copy()
            counts[:, column] = labels[counts[:, column]]
            found.append(counts)
        return found

    def _rows(self, counts: Integers) -> tuple[Integers, Integers]:
        return self.simulation.statistic.pairs(counts[self.first], counts[self.second])


def score_tests(laws: Laws, drawn: Integers, differences: list[float]) -> tuple[Floats, Booleans]:
    """Return the statistic of each data set and difference, and which data sets have an interval."""
    with np.errstate(all="ignore"):
        many = laws.of(drawn)
        shown = many.are_shown()
        found = np.stack([many.statistics(np.full(len(drawn), each)) for each in differences], axis=1)
    # Where labels are as many, different outcomes have the same counts; where fits did not converge, another
    # search may.
    simulation = laws.simulation
    labels = drawn @ (simulation.cells[:, :1] == np.arange(simulation.cells.max() + 1))
    looks_up = simulation.looked_up is not None
    ambiguous = np.array([looks_up and len(set(each)) < len(each) for each in labels.tolist()])
    for k in np.flatnonzero(ambiguous | (shown & np.isnan(found).any(axis=1))):
        observed, swapped = simulation.rows(drawn[k])
        there = drawn[k] > 0
        table = observed[there], swapped[there], simulation.statistic.h, drawn[k][there]
        shown[k] = why_not_scored(*table) is None
        if shown[k]:
            found[k] = [tested(table, each) for each in differences]
    return found, shown


def simulated(laws: Laws, population: Population, n_sets: int, seed: int) -> Outcome:
    truth = laws.simulation.truth(population)
    rng = np.random.default_rng([seed, population.n])
    rates = np.zeros(4)
    for start in range(0, n_sets, AT_ONCE):
        drawn = rng.multinomial(population.n, population.law, min(AT_ONCE, n_sets - start))
        found, shown = score_tests(laws, drawn, [truth, -truth] if truth else [truth])
        rates += errors(found, shown, truth)
    return Outcome(*(rates / n_sets).tolist())


def errors(found: Floats, shown: Booleans, truth: float) -> Floats:
    """Return how many data sets have each error of an `Outcome`, by tests of the truth and its negative."""
    both, one = (float(-ndtri(level)) for level in (0.025, 0.05))
    z, mirrored = found[:, 0], np.sign(truth) * found[:, -1]
    declared = (np.sign(truth) * z < -one) & (mirrored > one)
    return np.array([(shown & event).sum() for event in (np.abs(z) > both, z > one, z < -one, declared)])


def row(name: str, screened: int, confirmed: int, n_confirmed: int, every: int) -> str:
    """Return a row of the table."""
    laws, drawn_from = Laws(Simulation(name)), list(populations(n_classes_of(name)))[::every]
    found = [simulated(laws, each, screened, 1) for each in drawn_from]
    picked = dict.fromkeys(
        [
            *np.argsort([-each.one_sided for each in found])[:n_confirmed],
            *np.argsort([-each.missed for each in found])[: n_confirmed // 2],
        ]
    )
    again = [simulated(laws, drawn_from[k], confirmed, 2) for k in picked]
    cells = [
        name,
        str(len(found)),
        f"{100 * (1.0 - np.mean([each.missed for each in found])):.1f} %",
        f"{100 * (1.0 - max(each.missed for each in again)):.1f} %",
        f"{100 * max(each.one_sided for each in again):.1f} %",
        f"{100 * max(each.declared for each in again):.1f} %",
    ]
    return "| " + " | ".join(cells) + " |"


HEADER = (
    "| statistic | laws | mean coverage | least coverage | greatest error of a 5 % bound |"
    " of equivalence at the margin |"
)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print rows of the table of coverages.")
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--screened", type=int, default=2_000, help="data sets of each law")
    parser.add_argument(
        "--confirmed", type=int, default=20_000, help="data sets of laws that are simulated again"
    )
    parser.add_argument("--again", type=int, default=10, help="number of laws that are simulated again")
    parser.add_argument("--every", type=int, default=1, help="take every k-th law")
    asked = parser.parse_args()
    sys.stdout.write(f"{HEADER}\n|---|" + "---:|" * 5 + "\n")
    for name in asked.names:
        sys.stdout.write(f"{row(name, asked.screened, asked.confirmed, asked.again, asked.every)}\n")
        sys.stdout.flush()
