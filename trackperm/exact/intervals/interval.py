"""Confidence interval, its assumptions, and its relation to the corresponding test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, get_args

from trackperm.choices import Alternative
from trackperm.exact.options import checked_level, require_choice

IntervalMethod = Literal["paired proportions", "shift", "score", "bootstrap BCa", "Clopper-Pearson"]

Relation = Literal["agrees", "may disagree"]


@dataclass(frozen=True)
class Interval:
    """Closed confidence interval, with an infinite end on an unbounded side.

    Attributes
    ----------
    low, high : float
        Ends, in units of the estimated quantity.
    alpha : float
        Level of the corresponding test; it bounds the probability of missing, perhaps approximately.
    alternative : {'two-sided', 'less', 'greater'}
        Alternative of that test. ``greater`` bounds from below only, ``less`` from above only.
    method : str
        Name of the method.
    relation : {'agrees', 'may disagree'}
        ``agrees``: it excludes the value of no difference exactly when the exact test has p < alpha.
    note : str
        Assumptions, in one sentence for people.
    """

    low: float
    high: float
    alpha: float
    alternative: Alternative
    method: IntervalMethod
    relation: Relation
    note: str

    @property
    def confidence(self) -> float:
        """Confidence 1 - alpha, exact in decimals: 0.93 for 0.07."""
        return float(1 - Decimal(repr(self.alpha)))

    @property
    def approximate(self) -> bool:
        """Whether the confidence is asymptotic only."""
        return self.method in ("score", "bootstrap BCa")

    @property
    def bounded(self) -> bool:
        """Whether both ends are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def within(self, margin: float) -> bool:
        """Whether the interval lies strictly between -margin and margin, as equivalence requires."""
        return -margin < self.low and self.high < margin


def tail_level(alpha: float, alternative: Alternative) -> float:
    """Return the largest probability of missing on each bounded side.

    Raises
    ------
    InputError
        If `alpha` is not between 0 and 1, or `alternative` is unknown.
    """
    checked_level(alpha)
    require_choice("alternative", alternative, get_args(Alternative))
    return alpha / 2.0 if alternative == "two-sided" else alpha
