"""Rank statistics by name, and their mean over strata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.rank_statistics.average_precision import AveragePrecision
from trackperm.exact.rank_statistics.examples import RankedExamples
from trackperm.exact.rank_statistics.kendall import KendallTauB
from trackperm.exact.rank_statistics.linear import LinearDifference
from trackperm.exact.rank_statistics.order import SwappedOrder
from trackperm.exact.rank_statistics.spearman import Spearman
from trackperm.exact.rank_statistics.tau_bounds import TauBounds
from trackperm.exact.types import IntArray


class SwappedScores(Protocol):
    """Scores of two systems after any exchange of outputs."""

    @property
    def order(self) -> SwappedOrder:
        """The scores in order."""

    @property
    def linear(self) -> LinearDifference | None:
        """The difference of the scores as a signed sum over coins; None if it is not one."""

    def scores(self, states: npt.NDArray[np.int32]) -> tuple[FloatArray, FloatArray]:
        """Return the scores of candidate and baseline, shape (B,), for :meth:`.RankedExamples.states`."""


@dataclass(frozen=True)
class RankStatistic:
    """Rank statistic.

    Attributes
    ----------
    of : callable
        Prepares the scores of two systems.
    is_binary : bool
        Whether labels are 0 or 1, and not codes of any ordered values.
    """

    of: Callable[[RankedExamples], SwappedScores]
    is_binary: bool


RANK_STATISTICS: Mapping[str, RankStatistic] = {
    "average_precision": RankStatistic(AveragePrecision.of, is_binary=True),
    "kendall_tau_b": RankStatistic(KendallTauB.of, is_binary=False),
    "spearman": RankStatistic(Spearman.of, is_binary=False),
}
"""The rank statistics of the spec language."""


@dataclass(frozen=True)
class MeanOverStrata:
    """Weighted mean of the scores of strata.

    Attributes
    ----------
    parts : tuple of SwappedScores
        The scores of each stratum.
    weights : ndarray of float64
        Their weights, whose sum is 1.
    """

    parts: tuple[SwappedScores, ...]
    weights: FloatArray

    @property
    def linear(self) -> LinearDifference | None:
        """The linear difference of a single stratum; the scales of several have no common unit."""
        return self.parts[0].linear if len(self.parts) == 1 else None

    @property
    def bounds(self) -> TauBounds | None:
        """Bounds of the difference that take less time than the difference; None if none are known."""
        part = self.parts[0]
        return part.bounds if len(self.parts) == 1 and isinstance(part, KendallTauB) else None

    @property
    def n_slots(self) -> int:
        """Number of slots of all strata."""
        return sum(part.order.n_slots for part in self.parts)

    def scores(self, states: npt.NDArray[np.int32]) -> tuple[FloatArray, FloatArray]:
        """Return the scores of candidate and baseline, shape (B,) each."""
        sides = [part.scores(states) for part in self.parts]
        if len(sides) == 1:
            return sides[0]
        candidate, baseline = (np.stack(side, axis=1) @ self.weights for side in zip(*sides, strict=True))
        return candidate, baseline


def scores_by_stratum(
    name: str, ranked: RankedExamples, strata: IntArray | None = None, weights: Sequence[float] = ()
) -> MeanOverStrata:
    """Prepare the scores of every stratum.

    Parameters
    ----------
    name : str
        A name in :data:`RANK_STATISTICS`.
    ranked : RankedExamples
        All examples.
    strata : ndarray of int64, shape (N,), optional
        Stratum of each example, from 0.
    weights : sequence of float
        Weight of each stratum.
    """
    of = RANK_STATISTICS[name].of
    if strata is None:
        return MeanOverStrata((of(ranked),), np.ones(1))
    parts = tuple(of(ranked.part(strata == i)) for i in range(len(weights)))
    shares = np.array(weights, dtype=np.float64)
    return MeanOverStrata(parts, shares / shares.sum())
