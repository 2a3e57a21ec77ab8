"""What can be said of the test of a statistic before there are data: its rank and the engines for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from trackperm.exact import DifferenceHistogram, RationalStatistic
from trackperm.exact.lattice.basis import MOST_REDUCED, reduce_rank
from trackperm.exact.lattice.statistic import LatticeStatistic
from trackperm.statistic.arrays import integers
from trackperm.statistic.definition import Statistic

_PAIRS = 60
_LARGEST = 9  # of the random counts


@dataclass(frozen=True)
class Outlook:
    """The kind of test that a statistic leads to.

    Attributes
    ----------
    kind : {'linear', 'rational', 'irrational'}
        Whether, counts that are the same in both runs being constants, h is a sum, a quotient of polynomials,
        or neither.
    rank : int
        How many counts vary independently of each other, at most; data may have fewer.
    strata : str or None
        The column of groups, each of which has counts of that rank of its own, as long as they are not known.
    """

    kind: Literal["linear", "rational", "irrational"]
    rank: int
    strata: str | None = None

    @property
    def engine(self) -> str:
        """Which engines there are for such a test, in a sentence."""
        if self.kind == "linear":
            return (
                "linear, rank 1: exact at any number of examples; the cheapest of binomial, enumerate, dp,"
                " lattice and bracket is taken"
            )
        rank = f"{self.kind}, rank {self.rank}" + (f" for each `{self.strata}`" if self.strata else "")
        if self.strata or self.rank > MOST_REDUCED:
            return f"{rank}: exact (enumerate or lattice) where few examples differ, else Monte Carlo"
        if self.rank > 2:
            return f"{rank}: exact (enumerate or lattice) where it fits the memory, else Monte Carlo"
        return f"{rank}: exact (enumerate or lattice), whichever is cheaper"


def outlook(statistic: Statistic) -> Outlook:
    """Find rank and kind of a statistic by reducing it on counts drawn at random.

    Counts that read nothing but the label are the same in both runs, as they are in data; all others are
    drawn independently of each other, so that the rank is the largest that data can have.
    """
    rng = np.random.default_rng(0)
    shape = (_PAIRS, len(statistic.total_names))
    candidate, baseline = (rng.integers(0, _LARGEST, size=shape, endpoint=True) for _ in range(2))
    for i in range(shape[1]):
        name = statistic.count_names[i % len(statistic.count_names)]
        expression, missing = statistic._counts[name], statistic._missing.get(name)
        reads = {node.full for node in expression.names}
        if not reads:
            candidate[:, i] = integers(expression, {}, 1)[0]
        if reads <= {"id", "label"} and (missing is None or missing.tree == expression.tree):
            baseline[:, i] = candidate[:, i]
    histogram = DifferenceHistogram.from_pairs(*statistic.pairs(candidate, baseline))
    lattice = reduce_rank(histogram)
    rank = int(np.linalg.matrix_rank(lattice.coordinates))
    strata = None if statistic.weights else statistic.strata
    if not isinstance(statistic.h, RationalStatistic):
        return Outlook("irrational", rank, strata)
    if LatticeStatistic(statistic.h, histogram, lattice).affine() is not None:
        return Outlook("linear", 1)
    return Outlook("rational", rank, strata)
