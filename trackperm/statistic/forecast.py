"""Forecast, before there are data, of the rank of a statistic and the engines that can test it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from trackperm.errors import CapacityError
from trackperm.exact import DifferenceHistogram, RationalStatistic, RealStatistic
from trackperm.exact.engines.lattice.forms import in_fewer_forms
from trackperm.exact.engines.lattice.lattice import MOST_REDUCED, reduce_rank
from trackperm.exact.engines.lattice.statistic import LatticeStatistic
from trackperm.statistic.definition import Statistic
from trackperm.statistic.expressions.arrays import integers
from trackperm.statistic.expressions.parts import CLASS

_PAIRS = 60  # random pairs, more than any statistic without classes has counts
_OTHERWISE = "certified ends or tilted sampling"
_LARGEST = 9  # random count: small ones meet zeros and ties, and keep the reduction of integers fast


@dataclass(frozen=True)
class EngineForecast:
    """Kind of test to which a statistic leads.

    Attributes
    ----------
    kind : {'linear', 'rational', 'irrational', 'ranks'}
        Whether h is a sum, a quotient of polynomials, or neither, if counts that are the same in both runs
        are constants; or whether the score is a rank statistic.
    rank : int
        Largest number of counts that vary independently of each other; data may have fewer. 0 for rank
        statistics.
    each : str or None
        Column of strata, or ``class``, if the number of parts is unknown: each part has counts of that rank.
    """

    kind: Literal["linear", "rational", "irrational", "ranks"]
    rank: int
    each: str | None = None

    @property
    def engine(self) -> str:
        """Sentence with the engines that can test the statistic."""
        if self.kind == "linear":
            return (
                "linear, rank 1: exact at any number of examples; the cheapest of binomial, enumerate, dp,"
                " lattice and bracket is taken"
            )
        if self.kind == "ranks":
            return (
                "rank statistic, computed again after every exchange: exact (enumerate) where at most 16"
                " examples differ, and for `spearman` without ties, else Monte Carlo"
            )
        rank = f"{self.kind}, rank {self.rank}" + (f" for each `{self.each}`" if self.each else "")
        if self.each or self.rank > MOST_REDUCED:
            return f"{rank}: exact (enumerate or lattice) where few examples differ, else {_OTHERWISE}"
        if self.rank > 2:
            return f"{rank}: exact (enumerate or lattice) within two seconds, else {_OTHERWISE}"
        return f"{rank}: exact (enumerate or lattice), whichever is cheaper"


def forecast_engine(statistic: Statistic) -> EngineForecast:
    """Forecast rank and kind of a statistic by reducing it on random counts.

    Counts that read nothing but the label are the same in both runs, as in data. All others are drawn
    independently, so that the rank is the largest that data can have.

    Examples
    --------
    >>> from trackperm.statistic import load_statistic
    >>> from trackperm.statistic.forecast import forecast_engine
    >>> forecast_engine(load_statistic("f1"))
    EngineForecast(kind='rational', rank=2, each=None)
    """
    if statistic.rank_score is not None:
        return EngineForecast("ranks", 0)
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
    h = statistic.tested(observed, swapped, np.ones(len(observed), dtype=np.int64))
    if isinstance(h, RationalStatistic | RealStatistic) and lattice.rank <= MOST_REDUCED:
        fewer = in_fewer_forms(h, histogram, lattice)
        if fewer is not None:
            h, histogram = fewer
            lattice = reduce_rank(histogram)
    rank = int(np.linalg.matrix_rank(lattice.coordinates))
    each = None
    if not statistic.weights and (statistic.has_classes or statistic.strata):
        each = CLASS if statistic.has_classes else statistic.strata
    if not isinstance(h, RationalStatistic):
        return EngineForecast("irrational", rank, each)
    try:
        is_linear = LatticeStatistic(h, histogram, lattice).slopes() is not None
    except CapacityError:  # only quotients are too long to multiply out
        is_linear = False
    return EngineForecast("linear", 1) if is_linear else EngineForecast("rational", rank, each)
