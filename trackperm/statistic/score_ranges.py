"""Ranges of the scores of built-in statistics, which say what the largest difference is."""

from __future__ import annotations

from trackperm.errors import InputError
from trackperm.statistic.definition import Statistic
from trackperm.statistic.load import builtin_names

_UNBOUNDED = {
    "character_error_rate",
    "log_loss",
    "mae",
    "mean",
    "mse",
    "multiclass_log_loss",
    "r2",
    "rmse",
    "ter",
    "word_error_rate",
}
_PERCENT = {"bleu", "chrf"}
_FROM_MINUS_ONE = {
    "cohen_kappa",
    "kendall_tau",
    "kendall_tau_b",
    "linear_weighted_kappa",
    "mcc",
    "multiclass_mcc",
    "pearson",
    "quadratic_weighted_kappa",
    "somers_d",
    "spearman",
}


def largest_difference(statistic: Statistic) -> int | None:
    """Return the largest difference of two scores by a built-in statistic; None for other ones."""
    return range_width(statistic) if statistic.contrast == "difference" else None


def range_width(statistic: Statistic) -> int | None:
    """Return the width of the range of a built-in statistic's score; None for other ones."""
    name = statistic.name
    if name not in builtin_names() or name in _UNBOUNDED:
        return None
    if name in _PERCENT:
        return 100
    return 2 if name in _FROM_MINUS_ONE or name == "multiclass_brier" else 1


def require_margin_within(statistic: Statistic, margin: float) -> None:
    """Refuse a margin that no two scores differ by, such as 3 for 3 % of accuracy."""
    largest = largest_difference(statistic)
    if largest is not None and margin >= largest:
        raise InputError(
            f"`margin` is {margin:g}, and no two scores by `{statistic.name}` differ by more than {largest}",
            hint=f"a margin of {margin:g} % is {margin / 100:g}." if largest < 100 else None,
        )
