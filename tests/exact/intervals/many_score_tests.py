"""Score tests of many data sets at once, with the laws of ``ConstrainedLaws``, a data set per row of arrays.

A simulation of coverage needs one fit of each data set, at the true difference, and not both ends of its
interval. The fits of a thousand data sets take as long as thirty fits one by one. Steps are full ones, and
then half ones, which do not always converge: such fits are done one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trackperm.exact.engines.lattice.statistic import Statistic, values_at
from trackperm.exact.functions.operations import OperationTree
from trackperm.exact.functions.slopes import values_and_slopes
from trackperm.exact.intervals.coverage import FEWEST_SCORED, SPREAD_OUT
from trackperm.exact.intervals.score import CONVERGED, MOST_STEPS, PSEUDO_COUNT

DAMPED_AFTER = 12
"""Steps after which fits move by half a step only."""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


@dataclass
class ManyLaws:
    """Possible outcomes of data sets, with the most likely laws under a given difference.

    Attributes
    ----------
    h : RationalStatistic or RealStatistic
        Statistic of sums of counts.
    outcomes : ndarray of float64, shape (B, K, m) or (1, K, m)
        Outcomes, of each data set or of all.
    swapped : ndarray of float64
        The same with the runs exchanged.
    counts : ndarray of int64, shape (B, K)
        Number of examples of each outcome.
    possible : ndarray of bool, shape (B, K)
        Whether an outcome is possible in a data set; the others have no mass.
    combined : ndarray of bool, shape (B,)
        Whether all pairs of counts of single runs are possible in a data set.
    """

    h: Statistic
    outcomes: Floats
    swapped: Floats
    counts: Integers
    possible: Booleans
    combined: Booleans

    def __post_init__(self) -> None:
        self.n = float(self.counts[0].sum())
        share = np.minimum(PSEUDO_COUNT, 1.0 / self.possible.sum(axis=1))
        masses = np.where(self.possible, self.counts + share[:, None], 0.0)
        self.masses = masses / masses.sum(axis=1)[:, None]
        self.totals = _means(self.counts.astype(float), self.outcomes)
        self.differences = values_at(self.h, self.totals)
        self.influences = self._at(self.masses, np.arange(len(self.counts)))[1]
        self.spreads = self._deviations(self.masses, self.influences)

    def are_shown(self) -> Booleans:
        """Whether data sets have an interval at 95 %, as ``why_not_scored`` decides."""
        changed = values_at(self.h, self.totals[:, None, :] + (self.swapped - self.outcomes))
        moved = self.counts * (self.swapped != self.outcomes).any(axis=2)
        effective = _effective(changed - self.differences[:, None], moved)
        influential = np.minimum(effective, _effective(self.influences, self.counts))
        spread_out = influential**2 >= SPREAD_OUT * moved.sum(axis=1)
        enough = np.where(self.combined, effective, influential) >= FEWEST_SCORED
        return np.asarray(enough & (self.combined | spread_out))

    def statistics(self, differences: Floats) -> Floats:
        """Return observed minus given difference, in standard deviations of the fitted law.

        NaN if the fit does not converge, as if no law has that difference.
        """
        found = np.full(len(differences), np.nan)
        active = np.flatnonzero(np.isfinite(self.spreads) & (self.spreads > 0.0))
        laws = self.masses[active]
        for step in range(MOST_STEPS):
            if not active.size:
                break
            values, influences = self._at(laws, active)
            error = differences[active] - values
            kept = np.isfinite(influences).all(axis=1)
            done = kept & (np.abs(error) <= CONVERGED * self.spreads[active]) & (step > 0)
            deviations = self._deviations(laws[done], influences[done])
            found[active[done]] = (self.differences - differences)[active[done]] / deviations
            kept &= ~done
            following = self._reweighted(influences[kept] - error[kept, None], active[kept])
            laws = following if step < DAMPED_AFTER else (laws[kept] + following) / 2.0
            active = active[kept]
        return found

    def _at(self, laws: Floats, sets: Integers) -> tuple[Floats, Floats]:
        assert isinstance(self.h, OperationTree)
        outcomes = self.outcomes if len(self.outcomes) == 1 else self.outcomes[sets]
        means = _means(laws, outcomes)
        values, slopes = values_and_slopes(self.h, self.n * means)
        along = (outcomes * slopes[:, None, :]).sum(axis=2) - (means * slopes).sum(axis=1)[:, None]
        return values, self.n * along

    def _deviations(self, laws: Floats, influences: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.sqrt((laws * influences**2).sum(axis=1) / self.n)

    def _reweighted(self, constraints: Floats, sets: Integers) -> Floats:
        masses, possible = self.masses[sets], self.possible[sets]
        low = np.where(possible, constraints, np.inf).min(axis=1)
        high = np.where(possible, constraints, -np.inf).max(axis=1)
        outside = (low >= 0.0) | (high <= 0.0)
        nearest = np.where(possible, np.abs(constraints), np.inf).argmin(axis=1)
        towards = np.zeros_like(masses)
        towards[np.arange(len(masses)), nearest] = 1.0
        laws = (masses + towards) / 2.0
        inside = np.flatnonzero(~outside)
        m, h = masses[inside], constraints[inside]
        ends = np.stack([-1.0 / high[inside], -1.0 / low[inside]])
        factor = np.zeros(inside.size)
        width = ends[1] - ends[0]
        for _ in range(MOST_STEPS):
            with np.errstate(divide="ignore", invalid="ignore"):
                parts = np.where(m > 0.0, h / (1.0 + factor[:, None] * h), 0.0)
            rise = (m * parts).sum(axis=1)
            ends[0] = np.where(rise >= 0.0, factor, ends[0])
            ends[1] = np.where(rise < 0.0, factor, ends[1])
            proposed = factor + rise / (m * parts**2).sum(axis=1)
            within = (ends[0] < proposed) & (proposed < ends[1])
            proposed = np.where(within, proposed, (factor + np.where(rise > 0.0, ends[1], ends[0])) / 2.0)
            if (np.abs(proposed - factor) <= 1e-14 * width).all():
                break
            factor = proposed
        with np.errstate(divide="ignore", invalid="ignore"):
            fitted = np.where(m > 0.0, m / (1.0 + factor[:, None] * h), 0.0)
        laws[inside] = fitted / fitted.sum(axis=1)[:, None]
        return laws


def _means(laws: Floats, outcomes: Floats) -> Floats:
    if len(outcomes) == 1:
        return np.asarray(laws @ outcomes[0])
    return np.asarray(np.einsum("bk,bkm->bm", laws, outcomes))


def _effective(effects: Floats, counts: Integers) -> Floats:
    """Return the effective numbers of examples of each data set."""
    squares = np.where(counts > 0, effects, 0.0) ** 2
    fourth = (counts * squares**2).sum(axis=1)
    return np.asarray(
        np.where(fourth > 0.0, (counts * squares).sum(axis=1) ** 2 / np.maximum(fourth, 1e-300), 0.0)
    )
