"""Errors of bounds of means over units that have more scores than were seen; a table in the documentation.

``python -m comparison.inference.coverages_of_units`` in the folder of the tests prints it. Units are tasks of
several attempts, documents of several examples, or ratings. On a share of them the candidate has the worst
score, and on others one run differs by little. Bounds of 5 % are the ends of the interval of 90 %. Without
the rule they are those for paired proportions where all differences have one size, and no margin is refused.
An interval that is not shown counts as containing everything, and equivalence is declared at a margin as
large as the true difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from comparison.inference.coverage_rows import print_rows

from trackperm.comparison.inference.evidence import size_bounds
from trackperm.exact import CountTable
from trackperm.exact.intervals import (
    Interval,
    additive_scores,
    paired_proportions_interval,
    shift_interval,
    why_not_shifted,
)
from trackperm.statistic import load_statistic

LEVEL = 0.05


@dataclass(frozen=True)
class Law:
    """Units of one size, and their scores.

    Attributes
    ----------
    title, statistic : str
        What the table says, and the name of the statistic.
    n_units, n_rows : int
        Number of units, and of the rows of each.
    usual, worst : int
        Count of a unit if nothing happens, and if the candidate fails.
    failures : float
        Share of units on which it does.
    differing, steps : float, int
        Share of units on which one run differs, by 1 to so many counts, towards `worst`.
    """

    title: str
    statistic: str
    n_units: int
    n_rows: int
    usual: int
    worst: int
    failures: float
    differing: float
    steps: int

    @property
    def truth(self) -> float:
        """The true difference."""
        return self.failures * (self.worst - self.usual - self._towards * self._mean_step) / self.n_rows

    @property
    def _towards(self) -> float:
        return float(np.sign(self.worst - self.usual))

    @property
    def _mean_step(self) -> float:
        """Mean number of counts by which a run that does not fail differs from the usual one."""
        return self.differing / 2.0 * (1 + self.steps) / 2.0

    def table(self, rng: np.random.Generator) -> CountTable:
        n, towards = self.n_units, int(self._towards)
        runs = np.full((2, n), self.usual)
        which = rng.integers(0, 2, n)
        differs = rng.random(n) < self.differing
        runs[which[differs], np.flatnonzero(differs)] += towards * rng.integers(
            1, self.steps + 1, int(differs.sum())
        )
        runs[0, rng.random(n) < self.failures] = self.worst
        u, v = (np.stack([run, np.full(n, self.n_rows)], axis=1) for run in runs)
        names = load_statistic(self.statistic).total_names
        return CountTable.from_counts(names, u, v)


TASKS = "pass@1, 200 tasks of 10 attempts"
LAWS = (
    Law(f"{TASKS}, 0.5 % fail", "pass_at_1", 200, 10, 10, 0, 0.005, 0.06, 1),
    Law(f"{TASKS}, hard ones, 0.5 % always solved", "pass_at_1", 200, 10, 0, 10, 0.005, 0.06, 1),
    Law("pass@1, 100 tasks of 10 attempts, 1 % fail", "pass_at_1", 100, 10, 10, 0, 0.01, 0.3, 2),
    Law("error rate, 60 documents of 20 examples, 2 % fail", "error_rate", 60, 20, 0, 20, 0.02, 0.35, 2),
    Law("mean of 200 ratings of 4 and 5, 1 % are 1", "mean", 200, 1, 5, 1, 0.01, 0.02, 1),
    Law("mean of 400 ratings of 4 and 5, 0.5 % are 1", "mean", 400, 1, 5, 1, 0.005, 0.02, 1),
    Law("accuracy, 200 examples", "accuracy", 200, 1, 1, 0, 0.02, 0.06, 1),
)


def without_rule(law: Law, table: CountTable) -> Interval | None:
    """Return the interval for paired proportions if all differences have one size, else that by shifts."""
    statistic = load_statistic(law.statistic)
    scores = additive_scores(
        *statistic.pairs(table.candidate, table.baseline), statistic.h, table.multiplicities
    )
    assert scores is not None
    sizes = set(np.abs(scores.moves).tolist()) - {0}
    if len(sizes) <= 1:
        one = float(scores.unit) * max(sizes, default=1) / float(scores.weights[0])
        found = paired_proportions_interval(scores.n_up, scores.n_down, scores.n_rows, alpha=2 * LEVEL)
        return Interval(found.low * one, found.high * one, 2 * LEVEL, "two-sided", found.method, "agrees", "")
    return None if why_not_shifted(scores, alpha=2 * LEVEL) else shift_interval(scores, alpha=2 * LEVEL)


def simulated(law: Law, n_sets: int, seed: int) -> np.ndarray:
    """Return shares of data sets, without and with the rule: shown, bound missed, equivalence declared."""
    rng, found, truth = np.random.default_rng(seed), np.zeros((n_sets, 2, 4)), law.truth
    statistic = load_statistic(law.statistic, cluster="unit" if law.statistic == "error_rate" else None)
    for i in range(n_sets):
        table = law.table(rng)
        whole = without_rule(law, table)
        if whole is not None:
            found[i, 0] = 1, whole.low > truth, whole.high < truth, whole.within(abs(truth))
        size = size_bounds(statistic, table, LEVEL)
        declared = size.lack(abs(truth)) is None and max(-size.low, size.high) < abs(truth)
        found[i, 1, 3] = declared
        if not isinstance(size.basis, str):
            found[i, 1, :3] = 1, size.low > truth, size.high < truth
    shares = found.mean(axis=0)
    return np.stack([shares[:, 0], shares[:, 1:3].max(axis=1), shares[:, 3]], axis=1)


if __name__ == "__main__":
    print_rows(__doc__, LAWS, simulated, lambda law: [law.title])
