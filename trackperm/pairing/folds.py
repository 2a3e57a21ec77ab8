"""Folds and resamples of one data set, which are no independent examples."""

from __future__ import annotations

import re
from collections.abc import Collection

_FOLDS = r"(?:k|cv)?[ _.-]?(?:folds?|splits?|resamples?|resampling)"
_NAME = re.compile(
    rf"(?:.*[ _.-])?(?:{_FOLDS}|cv|cross[ _-]?validation)(?:[ _.-]?(?:id|index|idx|no|nr|number))?:?"
)
_VALUE = re.compile(rf"{_FOLDS}[ _.-]?[0-9]+")
MOST_FOLDS = 1000
"""What is numbered higher than any cross-validation is something else."""


def are_folds(column: str, units: Collection[object]) -> bool:
    """Whether what two runs exchange is called a fold: by its column's name or by every value.

    Examples
    --------
    >>> are_folds("cv_fold", range(10))
    True
    >>> are_folds("id", ["fold-1", "fold-2"])
    True
    >>> are_folds("question", range(10))
    False
    """
    if len(units) > MOST_FOLDS:
        return False
    return bool(_NAME.fullmatch(column.lower())) or all(
        isinstance(unit, str) and _VALUE.fullmatch(unit.lower()) for unit in units
    )


def fold_warning(column: str) -> str:
    """Say why a p-value of folds is not what it seems.

    References
    ----------
    Dietterich (1998), Approximate Statistical Tests for Comparing Supervised Classification Learning
    Algorithms. Bengio and Grandvalet (2004), No Unbiased Estimator of the Variance of K-Fold
    Cross-Validation.
    """
    return (
        "folds: the training sets of folds or resamples overlap, so that their scores are not independent and"
        f" p can be far too small; predictions by example are sounder than scores by `{column}`"
    )
