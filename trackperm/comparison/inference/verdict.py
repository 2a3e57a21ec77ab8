"""Verdict on a candidate: the sign of the difference by a p-value, and its size by an interval.

Sign and size are separate questions, and both can be decided: a candidate can be significantly better and
still equivalent within a margin. The rules are, in this order:

1. Sign. The candidate is better or worse if p < alpha, with the whole interval of p and in every case of
   missing predictions. Otherwise the sign is undecided; p > alpha does not show that two runs are equal.
2. Size. The candidate is equivalent within a margin if the interval of confidence 1 - 2 alpha lies strictly
   between -margin and margin: then both one-sided tests of |difference| >= margin have p < alpha (Schuirmann
   1987). Each end of the interval has to be a one-sided bound of confidence 1 - alpha for the statistic; see
   :mod:`trackperm.comparison.inference.evidence`.
3. Summary. One word summarises the verdict: the sign if it is decided, else ``equivalent`` if that is shown,
   else ``undecided``.

References
----------
D. J. Schuirmann (1987), "A comparison of the two one-sided tests procedure and the power approach for
assessing the equivalence of average bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

from trackperm.choices import Alternative
from trackperm.errors import InputError
from trackperm.exact.options import plain_number
from trackperm.messages import echoed

Sign = Literal["better", "worse", "undecided"]
Conclusion = Literal["better", "worse", "equivalent", "undecided"]

MARKERS: Mapping[Conclusion, str] = {"better": "▲", "worse": "▼", "equivalent": "≡", "undecided": "≈"}


@dataclass(frozen=True)
class Verdict:
    """Conclusion of a comparison on the sign and the size of its difference.

    Attributes
    ----------
    sign : {'better', 'worse', 'undecided'}
        Sign of the difference, for the candidate.
    equivalent : bool or None
        Whether the difference is shown to be smaller than `margin`; None without a margin, or if there are no
        valid bounds of the difference.
    margin : float or None
        The smallest difference that matters, in units of the statistic.
    depends_on_missing : bool
        Whether the sign depends on the missing predictions.
    lack : str or None
        Reason why there are no valid bounds to show equivalence.
    """

    sign: Sign
    equivalent: bool | None = None
    margin: float | None = None
    depends_on_missing: bool = False
    lack: str | None = None

    @property
    def word(self) -> Conclusion:
        """Verdict in one word: the sign if it is decided, else the size."""
        return "equivalent" if self.sign == "undecided" and self.equivalent else self.sign

    @property
    def marker(self) -> str:
        """Symbol of the verdict: ▲ better, ▼ worse, ≡ equivalent, ≈ undecided."""
        return MARKERS[self.word]

    def __str__(self) -> str:
        """Return the verdict as a sentence without a full stop."""
        return self.sentence()

    def sentence(self, equivalence: str = "") -> str:
        """Return the verdict as a sentence without a full stop, with a p-value of the equivalence."""
        within = "" if self.margin is None else f"equivalent within {self.margin:g}"
        if self.equivalent and equivalence:
            within += f" ({equivalence})"
        if self.sign != "undecided":
            parts = [f"{self.sign}, and {within}" if self.equivalent else self.sign]
        elif self.equivalent:
            parts = [f"{within}; the sign is undecided"]
        else:
            parts = ["undecided"]
        if self.depends_on_missing:
            parts.append("it depends on the missing predictions")
        if within and not self.equivalent:
            why = "" if self.lack is None else f": {self.lack}"
            parts.append(f"not shown to be {within}{why}")
        return "; ".join(parts)


def decide_sign(
    pvalue_upper: float,
    observed: float,
    *,
    alternative: Alternative,
    greater_is_better: bool,
    alpha: float,
) -> Sign:
    """Decide whether the candidate is better or worse; a one-sided alternative determines the sign.

    `pvalue_upper` is the upper end of the p-value's interval: certified, or with 99 % confidence for Monte
    Carlo.
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
    depends_on_missing: bool = False,
    margin: float | None = None,
    interval: tuple[float, float] | None = None,
    lack: str | None = None,
) -> Verdict:
    """Decide the verdict by the rules of this module; see :class:`Verdict` and :func:`decide_sign`.

    `interval` contains the difference with confidence 1 - 2 alpha, in both cases of missing predictions; None
    if there are no valid bounds.
    """
    equivalent = None
    if margin is not None:
        checked_margin(margin, alpha)
    if margin is not None and interval is not None:
        equivalent = -margin < interval[0] and interval[1] < margin
    sign = decide_sign(
        pvalue_upper, observed, alternative=alternative, greater_is_better=greater_is_better, alpha=alpha
    )
    return Verdict(
        sign="undecided" if depends_on_missing else sign,
        equivalent=equivalent,
        margin=margin,
        depends_on_missing=depends_on_missing,
        lack=None if margin is None else lack,
    )


def checked_margin(margin: Any, alpha: float) -> float:
    """Return a margin as a Python number.

    A margin that is not positive is refused, and so is a level at which equivalence cannot be shown.

    Raises
    ------
    InputError
        If the margin is not a positive number, or alpha is not below 1/2.
    """
    if not isinstance(margin, Real) or not 0.0 < float(margin) < math.inf:
        raise InputError(
            f"`margin` is {echoed(margin)}; expected a positive number",
            hint="it is the smallest difference that matters, such as 0.01 for accuracy.",
        )
    if not 0.0 < alpha < 0.5:
        raise InputError(f"`alpha` is {alpha}; equivalence needs a number between 0 and 0.5, such as 0.05")
    return plain_number(margin)
