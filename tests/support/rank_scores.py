"""Rank statistics by their libraries, and p-values from every swap."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from scipy import stats
from sklearn import metrics

Score = Callable[[Any, Any], float]


def spearman(scores: Any, label: Any) -> float:
    """SciPy's correlation; 0 where it is undefined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = float(stats.spearmanr(scores, label).statistic)
    return 0.0 if np.isnan(value) else value


def kendall_tau_b(scores: Any, label: Any) -> float:
    """SciPy's coefficient; 0 where it is undefined."""
    value = float(stats.kendalltau(scores, label, variant="b").statistic)
    return 0.0 if np.isnan(value) else value


def average_precision(scores: Any, label: Any) -> float:
    return float(metrics.average_precision_score(label, scores))


def midranks(scores: Any) -> Any:
    return stats.rankdata(scores)


def exact_pvalue(
    difference: Callable[[Any, Any], float], candidate: Any, baseline: Any, units: Sequence[Any]
) -> float:
    """Share of all exchanges of whole units whose difference is at least as large as the observed one."""
    candidate, baseline = np.asarray(candidate), np.asarray(baseline)
    distinct = sorted(set(units))
    places = np.array([distinct.index(unit) for unit in units])
    observed, n_extreme = abs(difference(candidate, baseline)), 0
    for signs in product([False, True], repeat=len(distinct)):
        swapped = np.array(signs)[places]
        value = difference(np.where(swapped, baseline, candidate), np.where(swapped, candidate, baseline))
        n_extreme += abs(value) >= observed - 1e-11
    return n_extreme / 2 ** len(distinct)
