"""Choice of the confidence interval for the difference that corresponds to a test."""

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
    """Return the interval for the statistic that corresponds to :func:`~trackperm.exact.structured_test`.

    ``auto`` chooses an interval that agrees with the exact test if there is one: for 0/1 scores with one
    example a row, the interval for paired proportions; for the mean of other scores, all shifts that the test
    does not reject. Rows with several examples (clusters, sentences) are weighted by their size and shifted
    as a whole. All else gets an approximate interval from resampled rows, within strata: ratios such as F1,
    statistics that are not antisymmetric, 0/1 scores of strata or of clusters of different sizes, and means
    whose shifts do not fit the memory.

    Parameters
    ----------
    observed, swapped : array_like of int, shape (N, m)
        g(u_n, v_n) and g(v_n, u_n), as for the test.
    h : RationalStatistic, RealStatistic or callable
        The statistic as a function of all totals, including those that no swap changes.
    multiplicities : array_like of int, shape (N,), optional
        Number of examples, or clusters, of each row.
    alpha : float
        Level of the test; 2 a for equivalence at level a by two one-sided tests.
    alternative : {'two-sided', 'less', 'greater'}
        Alternative of the test; one-sided intervals are bounded on one side only.
    method : {'auto', 'paired-proportions', 'shift', 'bootstrap'}
        Kind of interval.
    n_resamples, seed : int
        Number of resamples and their seed, for ``bootstrap``.
    memory_budget : int
        Bytes that may be allocated, for ``shift``.

    Raises
    ------
    InputTypeError
        If counts are not integers.
    InputError
        If an option is out of range, shapes differ, or the named method does not apply to the scores.
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
            f"the statistic is not a mean of scores, which `{method}` requires",
            hint="`bootstrap` accepts any statistic.",
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
            f"`{method}` requires 0/1 scores and one example a row",
            hint="`shift` accepts other scores and clusters.",
        )
    interval = paired_proportions_interval(
        scores.n_up, scores.n_down, scores.n_rows, alpha=alpha, alternative=alternative
    )
    gap = float(scores.gap)
    return replace(interval, low=interval.low * gap, high=interval.high * gap)


def suited(scores: AdditiveScores | None) -> Choice:
    """Return the method that ``auto`` chooses for scores; None for a statistic that is not a mean."""
    if scores is None or (scores.gap is not None and not scores.equally_weighted):
        return "bootstrap"
    return "paired-proportions" if scores.gap is not None else "shift"
