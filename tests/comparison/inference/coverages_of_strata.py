"""Errors of bounds of means over strata and classes, by simulation; the table in the documentation.

``python -m comparison.inference.coverages_of_strata`` in the folder of the tests prints it. Labels have the
given numbers, and each run is right on an example of a class with the given probability; a wrong prediction
is the first other class. Bounds of 5 % are those of the score interval of 90 %, with and without the rule
on unseen differences (:mod:`trackperm.exact.intervals.unseen`). An interval that is not shown counts as
containing everything, and equivalence is declared at a margin as large as the true difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from comparison.inference.coverage_rows import print_rows

from trackperm.comparison.inference.evidence import size_bounds
from trackperm.exact import CountTable
from trackperm.exact.functions.rational import RationalStatistic
from trackperm.exact.intervals import Interval, score_interval, why_not_scored
from trackperm.statistic import Statistic, load_statistic

LEVEL = 0.05
SHARED = 0.7
"""Share of examples on which both runs have the same luck."""


@dataclass(frozen=True)
class Law:
    """Sizes of classes, and the probability of being right in each, of both runs."""

    statistic: str
    sizes: tuple[int, ...]
    candidate: tuple[float, ...]
    baseline: tuple[float, ...]

    def outcomes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the labels of cells, whether the runs are right, and their probability within a class."""
        rows, masses = [], []
        for k, (p, q) in enumerate(zip(self.candidate, self.baseline, strict=True)):
            both = SHARED * min(p, q) + (1.0 - SHARED) * p * q
            for cell, mass in (
                ((1, 1), both),
                ((1, 0), p - both),
                ((0, 1), q - both),
                ((0, 0), 1 - p - q + both),
            ):
                rows.append((k, *cell))
                masses.append(mass)
        cells = np.array(rows)
        return cells[:, 0], cells[:, 1:], np.array(masses)


LAWS = (
    Law("balanced_accuracy", (150, 46, 4), (0.9, 0.85, 0.7), (0.9, 0.9, 0.95)),
    Law("balanced_accuracy", (190, 10), (0.9, 0.95), (0.85, 0.85)),
    Law("balanced_accuracy", (160, 30, 10), (0.9, 0.9, 0.99), (0.9, 0.85, 0.85)),
    Law("balanced_accuracy", (980, 20), (0.95, 0.9), (0.95, 0.98)),
    Law("balanced_accuracy", (4900, 100), (0.95, 0.97), (0.95, 0.98)),
    Law("balanced_accuracy", (140, 100, 60), (0.9, 0.85, 0.8), (0.9, 0.8, 0.75)),
    Law("balanced_accuracy", (60, 40) * 5, (0.9,) * 10, (0.87,) * 10),
    Law("balanced_accuracy", (180, 20), (0.9, 0.8), (0.9, 0.7)),
    Law("macro_f1", (150, 46, 4), (0.9, 0.85, 0.7), (0.9, 0.9, 0.95)),
    Law("macro_f1", (160, 30, 10), (0.9, 0.9, 0.99), (0.9, 0.85, 0.85)),
    Law("macro_f1", (140, 100, 60), (0.9, 0.85, 0.8), (0.9, 0.8, 0.75)),
)


def loaded(name: str, n_classes: int) -> Statistic:
    names = [str(k) for k in range(n_classes)]
    if name == "macro_f1":
        return load_statistic(name, classes=names)
    return load_statistic(name, strata=names)


def counts_of(law: Law, side: int, labels: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the counts of one run for each cell: (correct, n), or (tp, predicted, actual), by class."""
    k = np.arange(len(law.sizes))
    actual = labels[:, None] == k
    others = np.where(labels == 0, 1, 0)
    predicted = np.where(right[:, side] == 1, labels, others)[:, None] == k
    parts = (
        [actual & predicted, predicted, actual]
        if law.statistic == "macro_f1"
        else [actual & predicted, actual]
    )
    return np.stack(parts, axis=2).reshape(len(labels), -1).astype(np.int64)


def simulated(law: Law, n_sets: int, seed: int) -> np.ndarray:
    """Return shares of data sets, without and with the rule: shown, bound missed, equivalence declared."""
    statistic = loaded(law.statistic, len(law.sizes))
    labels, right, masses = law.outcomes()
    u, v = (counts_of(law, side, labels, right) for side in (0, 1))
    expected = masses * np.repeat(law.sizes, 4)
    score = statistic.score
    assert isinstance(score, RationalStatistic)
    scores = [float(score.values((expected @ side)[None])[0]) for side in (u, v)]
    truth = scores[0] - scores[1]
    rng, found = np.random.default_rng(seed), np.zeros((n_sets, 2, 4))
    for i in range(n_sets):
        drawn = np.concatenate(
            [rng.multinomial(n, masses[4 * k : 4 * k + 4]) for k, n in enumerate(law.sizes)]
        )
        there = drawn > 0
        table = CountTable(statistic.total_names, u[there], v[there], drawn[there])
        observed, swapped = statistic.pairs(table.candidate, table.baseline)
        rows = observed, swapped, statistic.h, table.multiplicities
        if why_not_scored(*rows, alpha=2 * LEVEL) is not None:
            continue
        whole = score_interval(*rows, alpha=2 * LEVEL)
        if not isinstance(whole, Interval):
            continue
        found[i, 0] = 1, whole.low > truth, whole.high < truth, whole.within(abs(truth))
        size = size_bounds(statistic, table, LEVEL)
        if not isinstance(size.basis, str):
            declared = size.lack(abs(truth)) is None and size.basis.within(abs(truth))
            found[i, 1] = 1, size.low > truth, size.high < truth, declared
    shares = found.mean(axis=0)
    return np.stack([shares[:, 0], shares[:, 1:3].max(axis=1), shares[:, 3]], axis=1)


if __name__ == "__main__":
    print_rows(__doc__, LAWS, simulated, lambda law: [law.statistic, str(law.sizes).strip("()")])
