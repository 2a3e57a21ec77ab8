"""Coverage of score intervals, and power of equivalence, by simulation; the tables in the documentation.

``python -m exact.intervals.coverages f1 mcc`` in the folder of the tests prints the rows of these statistics;
``--help`` lists how many data sets are drawn.
Examples are positive with probability 5, 10 or 30 %; runs have F1 scores from .5 to .99, with precision equal
to recall, and err independently, or mostly alike. For macro-F1 there are three classes instead,
with 60, 30 and 10 % of the examples. All laws are simulated, and those with the largest errors again with
more and new draws: the least coverage and the greatest errors are those of the
second simulation, because the largest of many errors is too large by chance. An interval that is not shown
counts as one that contains everything. A 5 % bound that misses the true difference is also the error of
equivalence at that margin.

The power of equivalence is the share of data sets whose 90 % interval lies within a margin, beside the power
by the true law and the mean of the powers that are printed for the first data sets. Margins are 2.5 and 3.5
standard deviations if the difference is 0, and else twice the difference.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.exact import RationalStatistic
from trackperm.exact.intervals import Interval, score_interval, why_not_scored
from trackperm.exact.power.equivalence import ScoreLaw
from trackperm.pairing.pair import pair
from trackperm.statistic import load_statistic
from trackperm.tables import ExampleTable

N_CONFIRMED = 4
N_PRINTED = 20
MOSTLY = 0.9
"""Share of data sets with an interval from which on powers are compared: others are selected by chance."""

NAMES = ("f1", "precision", "mcc", "cohen_kappa", "macro_f1")
SHARES = {2: ((0.95, 0.05), (0.9, 0.1), (0.7, 0.3)), 3: ((0.6, 0.3, 0.1),)}
SCORES = ((0.5, 0.5), (0.75, 0.65), (0.85, 0.85), (0.95, 0.93), (0.99, 0.9), (0.99, 0.98))
ALIKE = (0.0, 0.7)
SIZES = (20, 50, 200, 1000)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Population:
    """Law of examples: probabilities of the label and both predictions, and how many examples are drawn."""

    title: str
    law: Floats
    n: int


def populations(n_classes: int) -> Iterator[Population]:
    """Laws over all (label, candidate's prediction, baseline's prediction)."""
    cells = list(itertools.product(range(n_classes), repeat=3))
    for labels, scores, alike, n in itertools.product(SHARES[n_classes], SCORES, ALIKE, SIZES):
        # Errors on a class are as many as its share of all examples that are wrongly given to it.
        rare = labels[1] if n_classes == 2 else 1.0 / n_classes
        law = np.zeros(len(cells))
        for k, (label, *predictions) in enumerate(cells):
            rates = []
            for score in scores:
                rate = 1.0 - score
                if n_classes == 2 and label == 0:
                    rate *= rare / (1.0 - rare)
                rates.append(min(rate, 1.0))
            both = rates[0] * rates[1] + alike * (min(rates) - rates[0] * rates[1])
            wrong = [prediction != label for prediction in predictions]
            others = n_classes - 1
            if all(wrong):
                # Errors that are alike are the same wrong class.
                same = predictions[0] == predictions[1]
                chance = both * (alike * same / others + (1.0 - alike) / others**2)
            elif wrong[0]:
                chance = (rates[0] - both) / others
            elif wrong[1]:
                chance = (rates[1] - both) / others
            else:
                chance = 1.0 - sum(rates) + both
            law[k] = labels[label] * chance
        about = f"{100 * labels[1]:.0f} % positive" if n_classes == 2 else "3 classes"
        yield Population(
            f"F1 {scores[0]} and {scores[1]}, {about}, alike {alike}, N = {n}", law / law.sum(), n
        )


class Simulation:
    """Data sets of one statistic, as rows of counts."""

    def __init__(self, name: str, n_classes: int) -> None:
        self.cells = np.array(list(itertools.product(range(n_classes), repeat=3)))
        ids = range(100, 100 + len(self.cells))  # in the same order as numbers and as names
        runs = [
            ExampleTable.from_native(
                pl.DataFrame({"id": ids, "label": self.cells[:, 0], "prediction": self.cells[:, column]}), who
            )
            for column, who in ((2, "baseline"), (1, "candidate"))
        ]
        found = pair(*runs, load_statistic(name))
        self.statistic, counted = found.statistic, found.by_unit()
        self.candidate, self.baseline = counted.candidate[counted.rows], counted.baseline[counted.rows]
        self.looked_up = 1 if name == "cohen_kappa" else None

    def rows(self, drawn: Floats | Integers) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the rows of counts; those that look up the labels depend on the data set."""
        if self.looked_up is not None:
            labels = np.bincount(self.cells[:, 0], weights=drawn)
            for side, column in ((self.candidate, 1), (self.baseline, 2)):
                side[:, self.looked_up] = np.rint(labels[self.cells[:, column]])
        return self.statistic.pairs(self.candidate, self.baseline)

    def truth(self, population: Population) -> float:
        expected = population.law * 1e6
        sums = (expected @ self.rows(expected)[0])[None]
        h = self.statistic.h
        return float(h.values(sums)[0] if isinstance(h, RationalStatistic) else np.asarray(h(sums)).item())


@dataclass
class Outcome:
    """Rates over the data sets of one law."""

    population: Population
    truth: float
    missed: float
    low: float
    high: float
    shown: float
    powers: list[tuple[float, float, float]]
    """For each margin: simulated power, that by the law itself, and the mean of the printed ones."""

    @property
    def gap(self) -> float:
        """Greatest distance of the law's power from the simulated one."""
        return max(abs(ideal - power) for power, ideal, _ in self.powers)

    @property
    def printed_gap(self) -> float:
        """Greatest distance of the mean printed power from the simulated one."""
        return max(abs(printed - power) for power, _, printed in self.powers)


def simulated(simulation: Simulation, population: Population, n_sets: int, seed: int) -> Outcome:
    truth, h = simulation.truth(population), simulation.statistic.h
    if abs(truth) < 1e-9:
        truth = 0.0
    rng, missed, shown = np.random.default_rng([seed, population.n]), np.zeros(3), 0
    large = rng.multinomial(10**6, population.law)
    observed, swapped = simulation.rows(large)
    there = large > 0
    law = ScoreLaw.of(observed[there], swapped[there], h, large[there])
    spread = 0.0 if law is None else law.laws.spread * np.sqrt(1e6 / population.n)
    margins = np.array([2.0 * abs(truth)] if truth else [2.5 * spread, 3.5 * spread])
    within, printed = np.zeros(margins.size), []
    for drawn in rng.multinomial(population.n, population.law, n_sets):
        there = drawn > 0
        observed, swapped = simulation.rows(drawn)
        table = observed[there], swapped[there], h, drawn[there]
        if why_not_scored(*table) is not None:
            continue
        ends = [score_interval(*table, alpha=alpha) for alpha in (0.05, 0.1)]
        if not all(isinstance(end, Interval) for end in ends):
            continue
        shown += 1
        wide, narrow = ends
        missed += [truth not in wide, narrow.low > truth + 1e-12, narrow.high < truth - 1e-12]
        within += [narrow.within(margin) for margin in margins]
        if len(printed) < N_PRINTED:
            found = ScoreLaw.of(*table)
            if found is not None:
                printed.append([found.power(m, truth, 0.05, population.n) for m in margins])
    means = np.mean(printed, axis=0) if printed else np.full(margins.size, np.nan)
    ideal = [0.0 if law is None else law.power(m, truth, 0.05, population.n) for m in margins]
    powers = list(zip((within / n_sets).tolist(), ideal, means.tolist(), strict=True))
    return Outcome(population, truth, *(missed / n_sets).tolist(), shown / n_sets, powers)


def row(name: str, screened: int, confirmed: int, every: int, notes: Callable[[str], object]) -> str:
    """Return a row of the table; `notes` is called with a line for each law that is simulated again."""
    n_classes = 3 if name == "macro_f1" else 2
    simulation, laws = Simulation(name, n_classes), list(populations(n_classes))[::every]
    found = [simulated(simulation, law, screened, 1) for law in laws]
    errors = np.array([max(each.missed, each.low, each.high) for each in found])
    gaps = np.array([each.gap if each.shown >= MOSTLY else 0.0 for each in found])
    again = []
    for k in dict.fromkeys([*np.argsort(-errors)[:N_CONFIRMED], *np.argsort(-gaps)[:N_CONFIRMED]]):
        each = simulated(simulation, laws[k], confirmed, 2)
        powers = "; ".join(f"power {power:.3f}, of the law {ideal:.3f}, printed {printed:.3f}"
                           for power, ideal, printed in each.powers)  # fmt: skip
        notes(
            f"{name}, {each.population.title}: covers {1.0 - each.missed:.4f}, errors {each.low:.4f}"
            f" {each.high:.4f}, shown {each.shown:.2f}; {powers}"
        )
        again.append(each)
    cells = [
        name,
        str(len(laws)),
        f"{100 * (1.0 - np.mean([each.missed for each in found])):.1f} %",
        f"{100 * (1.0 - max(each.missed for each in again)):.1f} %",
        f"{100 * max(max(each.low, each.high) for each in again):.1f} %",
        f"{100 * np.mean([each.gap for each in found if each.shown >= MOSTLY]):.1f}",
        f"{100 * max(each.gap for each in again if each.shown >= MOSTLY):.1f}",
        f"{100 * max(each.printed_gap for each in again if each.shown >= MOSTLY):.1f}",
    ]
    return "| " + " | ".join(cells) + " |"


HEADER = (
    "| statistic | laws | mean coverage | least coverage | greatest error of a 5 % bound |"
    " power: mean error (points) | greatest | greatest, as printed |"
)


def show(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print rows of the table of coverages.")
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--screened", type=int, default=150, help="data sets of each law")
    parser.add_argument(
        "--confirmed", type=int, default=2_000, help="data sets of laws that are simulated again"
    )
    parser.add_argument("--every", type=int, default=1, help="take every k-th law")
    asked = parser.parse_args()
    show(f"{HEADER}\n|---|" + "---:|" * 7)
    for name in asked.names:
        notes = [asked.screened, asked.confirmed, asked.every]
        show(row(name, *notes, lambda line: sys.stderr.write(f"{line}\n")))
