"""Power of equivalence by the formula, and by simulation; a table in the documentation.

``python -m exact.intervals.powers f1 mcc`` in the folder of the tests prints the rows of these statistics;
``--help`` lists how many data sets are drawn. Laws for which the formula is furthest off are simulated again
with more and new draws, because the largest of many errors is too large by chance.

The power is the share of data sets whose 90 % interval lies within a margin, beside the power by the true law
and the mean of the powers that are printed for the first data sets. Margins are 2.5 and 3.5 standard
deviations if the difference is 0, and else twice the difference.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import numpy as np
from exact.intervals.populations import Population, Simulation, n_classes_of, populations

from trackperm.exact.intervals import Interval, score_interval, why_not_scored
from trackperm.exact.power.equivalence import ScoreLaw

N_CONFIRMED = 4
N_PRINTED = 20
MOSTLY = 0.9
"""Share of data sets with an interval from which on powers are compared: others are selected by chance."""

NAMES = ("f1", "precision", "mcc", "cohen_kappa", "macro_f1")


@dataclass
class Outcome:
    """Powers over the data sets of one law."""

    population: Population
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
    rng, shown = np.random.default_rng([seed, population.n]), 0
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
        narrow = score_interval(*table, alpha=0.1)
        if not isinstance(narrow, Interval):
            continue
        shown += 1
        within += [narrow.within(margin) for margin in margins]
        if len(printed) < N_PRINTED:
            found = ScoreLaw.of(*table)
            if found is not None:
                printed.append([found.power(m, truth, 0.05, population.n) for m in margins])
    means = np.mean(printed, axis=0) if printed else np.full(margins.size, np.nan)
    ideal = [0.0 if law is None else law.power(m, truth, 0.05, population.n) for m in margins]
    powers = list(zip((within / n_sets).tolist(), ideal, means.tolist(), strict=True))
    return Outcome(population, shown / n_sets, powers)


def row(name: str, screened: int, confirmed: int, every: int) -> str:
    """Return a row of the table."""
    simulation, laws = Simulation(name), list(populations(n_classes_of(name)))[::every]
    found = [simulated(simulation, law, screened, 1) for law in laws]
    gaps = np.array([each.gap if each.shown >= MOSTLY else 0.0 for each in found])
    again = [simulated(simulation, laws[k], confirmed, 2) for k in np.argsort(-gaps)[:N_CONFIRMED]]
    cells = [
        name,
        str(len(laws)),
        f"{100 * np.mean([each.gap for each in found if each.shown >= MOSTLY]):.1f}",
        f"{100 * max(each.gap for each in again if each.shown >= MOSTLY):.1f}",
        f"{100 * max(each.printed_gap for each in again if each.shown >= MOSTLY):.1f}",
    ]
    return "| " + " | ".join(cells) + " |"


HEADER = "| statistic | laws | mean error of the power (points) | greatest | greatest, as printed |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print the table of errors of the power of equivalence.")
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--screened", type=int, default=150, help="data sets of each law")
    parser.add_argument(
        "--confirmed", type=int, default=2_000, help="data sets of laws that are simulated again"
    )
    parser.add_argument("--every", type=int, default=1, help="take every k-th law")
    asked = parser.parse_args()
    sys.stdout.write(f"{HEADER}\n|---|" + "---:|" * 4 + "\n")
    for name in asked.names:
        sys.stdout.write(f"{row(name, asked.screened, asked.confirmed, asked.every)}\n")
        sys.stdout.flush()
