"""Laws of labels and predictions of two runs, for simulations of intervals.

Examples are positive with probability 5, 10 or 30 %; runs have F1 scores from .5 to .99, with precision equal
to recall, and err independently, or mostly alike. For macro-F1 there are three classes instead, with 60, 30
and 10 % of the examples.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.exact import RationalStatistic
from trackperm.pairing.pair import pair
from trackperm.statistic import load_statistic
from trackperm.tables import ExampleTable

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


def n_classes_of(name: str) -> int:
    """Return the number of classes of the laws of a statistic."""
    return 3 if name == "macro_f1" else 2


class Simulation:
    """Data sets of one statistic, as rows of counts."""

    def __init__(self, name: str) -> None:
        n_classes = n_classes_of(name)
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

    def rows(self, drawn: Floats | Integers) -> tuple[Integers, Integers]:
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
        truth = float(h.values(sums)[0] if isinstance(h, RationalStatistic) else np.asarray(h(sums)).item())
        return truth if abs(truth) > 1e-9 else 0.0
