"""Average precision after exchanges of scores.

Average precision is the sum over distinct scores, from the greatest, of the precision at this threshold times
the increase of recall there, as scikit-learn's ``average_precision_score`` computes it: without
interpolation, and with tied examples on one side of the threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.rank_statistics.examples import RankedExamples
from trackperm.exact.rank_statistics.linear import LinearDifference
from trackperm.exact.rank_statistics.order import SwappedOrder
from trackperm.exact.types import IntArray


@dataclass(frozen=True)
class AveragePrecision:
    """Average precisions of two systems after any exchange, for labels of 1 (positive) and 0.

    Attributes
    ----------
    order : SwappedOrder
        The scores, the greatest first.
    positive : ndarray of int64
        The slots of positive examples.
    last : ndarray of int64, shape (G,)
        Index in `positive` of the last slot of each group of scores that contains positive examples.
    ends : ndarray of int64, shape (G,)
        Last slot of each of these groups.
    n_both : ndarray of int64, shape (G,)
        Number of positive scores of both runs together up to each group.
    n_positive : int
        Number of positive examples.
    """

    order: SwappedOrder
    positive: IntArray
    last: IntArray
    ends: IntArray
    n_both: IntArray
    n_positive: int
    linear: LinearDifference | None = None

    @classmethod
    def of(cls, ranked: RankedExamples) -> AveragePrecision:
        """Sort scores."""
        order = SwappedOrder.of(ranked, descending=True)
        (positive,) = np.nonzero(ranked.labels[order.examples])
        groups = np.searchsorted(order.ends, positive)
        (last,) = np.nonzero(np.diff(groups, append=-1))
        shares = np.diff(order.n_both, prepend=0)
        n_both = np.cumsum(shares[positive])[last]
        n_positive = int(np.count_nonzero(ranked.labels))
        return cls(order, positive, last, order.ends[groups[last]], n_both, n_positive)

    def scores(self, states: npt.NDArray[np.int32]) -> tuple[FloatArray, FloatArray]:
        """Return the average precisions of candidate and baseline, shape (B,) each, after exchanges."""
        active = self.order.active(states)
        own, other = self.order.n_up_to(active, self.ends)
        hits = np.take(active, self.positive, axis=1)
        # Every row has as many positive examples.
        running = np.cumsum(hits.ravel(), dtype=np.int32).reshape(hits.shape)
        found = np.take(running, self.last, axis=1)
        found -= (np.arange(len(hits), dtype=np.int32) * self.n_positive)[:, None]
        return self._mean(found, own), self._mean(self.n_both - found, other)

    def _mean(self, hits: npt.NDArray[Any], sizes: npt.NDArray[Any]) -> FloatArray:
        """Return the mean precision at positive examples, from cumulated numbers of hits and of examples."""
        steps = np.diff(hits, axis=1, prepend=0)
        precisions = hits / np.maximum(sizes, 1)
        return np.asarray(np.einsum("bg,bg->b", steps.astype(np.float64), precisions) / self.n_positive)
