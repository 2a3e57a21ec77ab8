"""The interval for the difference that goes with a test: the choice among those that there are."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from trackperm.choices import Alternative, require_choice
from trackperm.errors import CapacityError, InputError
from trackperm.exact.counts import checked_multiplicities, paired_matrices
from trackperm.exact.engines.lattice.statistic import Statistic
from trackperm.exact.intervals.additive import AdditiveScores, additive_scores, strata_of_rows
from trackperm.exact.intervals.bootstrap import N_RESAMPLES, bootstrap_interval
from trackperm.exact.intervals.interval import Interval, tail_level
from trackperm.exact.intervals.paired_proportions import paired_proportions_interval
from trackperm.exact.intervals.shift import shift_interval
from trackperm.exact.options import MEMORY_BUDGET

Choice = Literal["auto", "paired-proportions", "shift", "bootstrap"]


def difference_interval(
    observed: npt.ArrayLike,
    swapped: npt.ArrayLike,
    h: Statistic,
    *,
    multiplicities: npt.ArrayLike | None = None,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    method: Choice = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    memory_budget: int = MEMORY_BUDGET,
) -> Interval:
    """Return the interval for the statistic that goes with :func:`~trackperm.exact.structured_test`.

    ``auto`` takes the one that agrees with the exact test where there is one: for 0/1 scores with one example
    a row, that for paired proportions; for other scores of which the statistic is a mean, all shifts that the
    test does not reject; rows that stand for several examples (clusters, sentences) are weighted by their
    size, and shifted as a whole. Ratios such as F1, statistics that do not change sign with the runs, and
    strata or clusters of different sizes whose scores are 0 or 1, are resampled row by row, strata each by
    itself: approximate. So is a mean whose shifts do not fit the memory.

    Parameters
    ----------
    observed, swapped : array_like of int, shape (N, m)
        g(u_n, v_n) and g(v_n, u_n), as for the test.
    h : RationalStatistic, RealStatistic or callable
        The statistic as a function of all totals, those that no swap changes among them.
    multiplicities : array_like of int, shape (N,), optional
        Number of examples, or clusters, of each row.
    alpha : float
        Level of the test. For equivalence at level a by two one-sided tests, 2 a.
    alternative : {'two-sided', 'less', 'greater'}
        Of the test; one-sided intervals are bounded on one side.
    method : {'auto', 'paired-proportions', 'shift', 'bootstrap'}
        Which interval.
    n_resamples, seed : int
        For ``bootstrap``.
    memory_budget : int
        Bytes that may be allocated, for ``shift``.

    Raises
    ------
    InputTypeError
        If counts are not integers.
    InputError
        If an option is out of range, shapes differ, or the method that was asked for does not fit the scores.
    UndefinedStatisticError
        If the statistic is undefined for resampled examples.
    CapacityError
        If it does not fit `memory_budget`.

    Examples
    --------
    >>> from trackperm.exact import RationalStatistic
    >>> observed, swapped = np.array([[1, 0], [0, 1], [1, 1]]), np.array([[0, 1], [1, 0], [1, 1]])
    >>> u, v = (RationalStatistic.variable(i, 2) for i in range(2))
    >>> interval = difference_interval(observed, swapped, (u - v) / 50, multiplicities=[12, 2, 36])
    >>> interval.method, interval.relation, round(interval.low, 4), round(interval.high, 4)
    ('paired proportions', 'agrees', 0.0361, 0.355)
    """
    tail_level(alpha, alternative)
    require_choice("method", method, get_args(Choice))
    here, there = (g.astype(np.int64) for g in paired_matrices(observed, swapped))
    counts = checked_multiplicities(multiplicities, len(here))
    scores = None if method == "bootstrap" else additive_scores(here, there, h, counts)
    is_free = method == "auto"
    if is_free:
        method = suited(scores)

    def resampled() -> Interval:
        return bootstrap_interval(
            here,
            h,
            multiplicities=counts,
            strata=strata_of_rows(h, here),
            alpha=alpha,
            alternative=alternative,
            n_resamples=n_resamples,
            seed=seed,
        )

    if method == "bootstrap":
        return resampled()
    if scores is None:
        raise InputError(
            f"the statistic is no mean of scores, for which alone there is an interval by `{method}`",
            hint="`bootstrap` takes any statistic.",
        )
    if method == "shift":
        try:
            return shift_interval(scores, alpha=alpha, alternative=alternative, memory_budget=memory_budget)
        except CapacityError:
            if is_free:
                return resampled()
            raise
    if scores.gap is None or not scores.equally_weighted:
        raise InputError(
            f"an interval by `{method}` needs 0/1 scores and one example a row",
            hint="`shift` takes other scores and clusters.",
        )
    interval = paired_proportions_interval(
        scores.n_up, scores.n_down, scores.n_rows, alpha=alpha, alternative=alternative
    )
    gap = float(scores.gap)
    return replace(interval, low=interval.low * gap, high=interval.high * gap)


def suited(scores: AdditiveScores | None) -> Choice:
    """Return the method that ``auto`` takes for such scores; None are those of no mean."""
    if scores is None or (scores.gap is not None and not scores.equally_weighted):
        return "bootstrap"
    return "paired-proportions" if scores.gap is not None else "shift"
