"""The verdict on a candidate: what its p-value says of the sign, and an interval of the size.

Sign and size are two questions, and both may have an answer: a candidate can be better, and still equivalent
for every practical purpose. The rules, in this order:

1. Sign. The candidate is better, or worse, where p < alpha with the whole interval that is known of p, and in
   every case that missing predictions leave open. Otherwise its sign is undecided; p > alpha never says that
   two runs are the same.
2. Size. It is equivalent within a margin where the interval of level 1 - 2 alpha lies between -margin and
   margin, both ends excluded: the two one-sided tests of |difference| >= margin then have p < alpha
   (Schuirmann 1987). That needs an interval of the statistic itself, each end of which is a one-sided bound
   of level 1 - alpha; what counts as one is said in :mod:`trackperm.comparison.evidence`.
3. One word, where only one is said: that of the sign where it is decided, else ``equivalent`` where that is
   shown, else ``undecided``.

References
----------
D. J. Schuirmann (1987), "A comparison of the two one-sided tests procedure and the power approach for
assessing the equivalence of average bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from trackperm.choices import Alternative
from trackperm.errors import InputError
from trackperm.exact.power.detectable import MinimumDetectableEffect

Sign = Literal["better", "worse", "undecided"]
Word = Literal["better", "worse", "equivalent", "undecided"]

MARKERS: Mapping[Word, str] = {"better": "▲", "worse": "▼", "equivalent": "≡", "undecided": "≈"}


@dataclass(frozen=True)
class Verdict:
    """What a comparison shows.

    Attributes
    ----------
    sign : {'better', 'worse', 'undecided'}
        Of the difference, as it is for the candidate.
    equivalent : bool or None
        Whether the difference is shown to be smaller than `margin`; None where no margin was given, or what
        is known of the size does not count.
    margin : float or None
        In units of the statistic.
    is_open : bool
        Whether the sign depends on what missing predictions would have been.
    detectable : MinimumDetectableEffect or None
        What the comparison could have shown; said where the sign is undecided.
    lack : str or None
        Why nothing counts that could show equivalence.
    """

    sign: Sign
    equivalent: bool | None = None
    margin: float | None = None
    is_open: bool = False
    detectable: MinimumDetectableEffect | None = None
    lack: str | None = None

    @property
    def word(self) -> Word:
        """The verdict in one word: the sign before the size."""
        return "equivalent" if self.sign == "undecided" and self.equivalent else self.sign

    @property
    def marker(self) -> str:
        """One sign for it: ▲ better, ▼ worse, ≡ equivalent, ≈ undecided."""
        return MARKERS[self.word]

    def __str__(self) -> str:
        """Return it as a sentence without a full stop."""
        within = "" if self.margin is None else f"equivalent within {self.margin:g}"
        if self.sign != "undecided":
            parts = [f"{self.sign}, and {within}" if self.equivalent else self.sign]
        elif self.equivalent:
            parts = [f"{within}; the sign is undecided"]
        else:
            parts = ["undecided"]
        if self.is_open:
            parts.append("it depends on the missing predictions")
        if within and not self.equivalent:
            why = "" if self.lack is None else f": {self.lack}"
            parts.append(f"not shown to be {within}{why}")
        if self.sign == "undecided" and self.detectable is not None:
            parts.append(str(self.detectable))
        return "; ".join(parts)


def decide_sign(
    pvalue_upper: float,
    observed: float,
    *,
    alternative: Alternative,
    greater_is_better: bool,
    alpha: float,
) -> Sign:
    """Return whether the candidate is shown to be better or worse.

    Parameters
    ----------
    pvalue_upper : float
        Upper end of what is known of the p-value: certainly, or with 99 % confidence for Monte Carlo.
    observed : float
        The statistic of the runs as they are.
    alternative : {'two-sided', 'less', 'greater'}
        Of the test; a one-sided one fixes the sign that is shown.
    greater_is_better : bool
        Whether a greater value of the statistic is a better candidate.
    alpha : float
        Level of the test.
    """
    if not pvalue_upper < alpha:
        return "undecided"
    rises = observed > 0 if alternative == "two-sided" else alternative == "greater"
    return "better" if rises == greater_is_better else "worse"


def decide(
    pvalue_upper: float,
    observed: float,
    *,
    alternative: Alternative,
    greater_is_better: bool,
    alpha: float,
    is_open: bool = False,
    margin: float | None = None,
    interval: tuple[float, float] | None = None,
    lack: str | None = None,
    detectable: MinimumDetectableEffect | None = None,
) -> Verdict:
    """Return the verdict by the rules of this module.

    Parameters
    ----------
    pvalue_upper, observed, alternative, greater_is_better, alpha
        As in :func:`decide_sign`.
    is_open : bool
        Whether the cases that missing predictions leave open have different signs.
    margin : float, optional
        The smallest difference that matters, in units of the statistic.
    interval : tuple of float, optional
        Interval of the difference at the level :func:`equivalence_level`; over all cases where missing
        predictions leave some open. None where there is none that counts.
    lack : str, optional
        Why there is none that counts.
    detectable : MinimumDetectableEffect, optional
        To be said where the sign is undecided.

    Raises
    ------
    InputError
        If the margin is not a positive number, or alpha leaves no interval.
    """
    require_margin(margin, alpha)
    equivalent = None
    if margin is not None and interval is not None:
        equivalent = -margin < interval[0] and interval[1] < margin
    sign = decide_sign(
        pvalue_upper, observed, alternative=alternative, greater_is_better=greater_is_better, alpha=alpha
    )
    return Verdict(
        sign="undecided" if is_open else sign,
        equivalent=equivalent,
        margin=margin,
        is_open=is_open,
        detectable=detectable,
        lack=None if margin is None else lack,
    )


def require_margin(margin: float | None, alpha: float) -> None:
    """Refuse a margin, if there is one, that is no size, or a level at which nothing shows equivalence.

    Raises
    ------
    InputError
        If the margin is not a positive number, or alpha leaves no interval.
    """
    if margin is None:
        return
    if not 0.0 < margin < math.inf:
        raise InputError(
            f"`margin` is {margin}; expected a positive number",
            hint="it is the smallest difference that matters, such as 0.01 for accuracy.",
        )
    equivalence_level(alpha)


def equivalence_level(alpha: float) -> float:
    """Return the level of the interval that shows equivalence at level alpha: 1 - 2 alpha.

    Raises
    ------
    InputError
        If alpha is not between 0 and 1/2.
    """
    if not 0.0 < alpha < 0.5:
        raise InputError(f"`alpha` is {alpha}; equivalence needs a number between 0 and 0.5, such as 0.05")
    return 1.0 - 2.0 * alpha
