"""A confidence interval, with what it means and how it relates to the test beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, get_args

from trackperm.choices import Alternative, require_choice, require_level

IntervalMethod = Literal["paired proportions", "shift", "bootstrap BCa", "Clopper-Pearson"]

Relation = Literal["agrees", "may disagree"]


@dataclass(frozen=True)
class Interval:
    """A confidence interval; closed, with infinite ends where nothing bounds it.

    Attributes
    ----------
    low, high : float
        Ends, in units of what is estimated.
    alpha : float
        Level of the test that it goes with: the probability of missing is at most, or about, alpha.
    alternative : {'two-sided', 'less', 'greater'}
        Of the test that it goes with. ``greater`` bounds from below alone, ``less`` from above alone.
    method : str
        How it was computed.
    relation : {'agrees', 'may disagree'}
        ``agrees``: it excludes the value of no difference exactly when the exact test has p < alpha.
    note : str
        What it assumes, in one sentence for people.
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
        """1 - alpha, in decimals: 0.93 for 0.07."""
        return float(1 - Decimal(repr(self.alpha)))

    @property
    def approximate(self) -> bool:
        """Whether the stated confidence is not claimed for finite numbers of examples."""
        return self.method == "bootstrap BCa"

    @property
    def bounded(self) -> bool:
        """Whether both ends are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def within(self, margin: float) -> bool:
        """Whether all of it lies strictly between -margin and margin, as equivalence asks for."""
        return -margin < self.low and self.high < margin


def tail_level(alpha: float, alternative: Alternative) -> float:
    """Return the probability of missing that each bounded side may have.

    Raises
    ------
    InputError
        If `alpha` is not between 0 and 1, or there is no such alternative.
    """
    require_level(alpha)
    require_choice("alternative", alternative, get_args(Alternative))
    return alpha / 2.0 if alternative == "two-sided" else alpha
