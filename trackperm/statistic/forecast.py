"""What can be said of the test of a statistic before there are data: its rank and the engines for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from trackperm.errors import CapacityError
from trackperm.exact import DifferenceHistogram, RationalStatistic
from trackperm.exact.engines.lattice.basis import MOST_REDUCED, reduce_rank
from trackperm.exact.engines.lattice.statistic import LatticeStatistic
from trackperm.statistic.definition import CLASS, Statistic
from trackperm.statistic.expressions.arrays import integers

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
    each : str or None
        What has counts of that rank of its own, as long as it is not known how many there are of it: the
        column of strata, or ``class``.
    """

    kind: Literal["linear", "rational", "irrational"]
    rank: int
    each: str | None = None

    @property
    def engine(self) -> str:
        """Which engines there are for such a test, in a sentence."""
        if self.kind == "linear":
            return (
                "linear, rank 1: exact at any number of examples; the cheapest of binomial, enumerate, dp,"
                " lattice and bracket is taken"
            )
        rank = f"{self.kind}, rank {self.rank}" + (f" for each `{self.each}`" if self.each else "")
        if self.each or self.rank > MOST_REDUCED:
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
    n_counts = len(statistic.total_names)
    shape = (max(_PAIRS, n_counts), n_counts)
    candidate, baseline = (rng.integers(0, _LARGEST, size=shape, endpoint=True) for _ in range(2))
    for i in range(shape[1]):
        name = statistic.count_names[i % len(statistic.count_names)]
        expression = statistic._counts[name]
        substitutes = [
            counts.get(name, expression) for counts in (statistic._missing, statistic._worst, statistic._best)
        ]
        reads = {node.full for node in expression.names}
        constant = not reads
        if statistic.has_classes:
            reads.discard(CLASS)
        if constant:
            candidate[:, i] = integers(expression, {}, 1)[0]
        if reads <= {"id", "label"} and all(other.tree == expression.tree for other in substitutes):
            baseline[:, i] = candidate[:, i]
    observed, swapped = statistic.pairs(candidate, baseline)
    histogram = DifferenceHistogram.from_pairs(observed, swapped)
    lattice = reduce_rank(histogram)
    rank = int(np.linalg.matrix_rank(lattice.coordinates))
    each = None
    if not statistic.weights and (statistic.has_classes or statistic.strata):
        each = CLASS if statistic.has_classes else statistic.strata
    h = statistic.tested(observed, swapped, np.ones(len(observed), dtype=np.int64))
    if not isinstance(h, RationalStatistic):
        return Outlook("irrational", rank, each)
    try:
        is_linear = LatticeStatistic(h, histogram, lattice).affine() is not None
    except CapacityError:  # a sum would not be too long to multiply out
        is_linear = False
    return Outlook("linear", 1) if is_linear else Outlook("rational", rank, each)
