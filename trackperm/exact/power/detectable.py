"""Minimum detectable effect, which accompanies every undecided verdict."""

from __future__ import annotations

from dataclasses import dataclass

from trackperm.choices import Alternative


@dataclass(frozen=True)
class MinimumDetectableEffect:
    """Smallest true difference that a test detects with a given power.

    Attributes
    ----------
    effect : float or None
        Effect in units of the statistic, without sign; None if no difference would be detected.
    power, alpha : float
        Probability of p < alpha, and alpha.
    alternative : {'two-sided', 'less', 'greater'}
        Alternative of the test; a one-sided test is on the side of the difference.
    n_examples : int
        Number of examples of the test.
    exact : bool
        Whether the power is exact rather than a normal approximation.
    """

    effect: float | None
    power: float
    alpha: float
    alternative: Alternative
    n_examples: int
    exact: bool

    def __str__(self) -> str:
        at = f"at {100 * self.power:.4g} % power"
        if self.effect is None:
            return f"no difference is detectable {at}"
        effect = f"{float(f'{self.effect:.2g}'):g}"
        if self.exact:
            return f"minimum detectable effect {effect} {at}"
        return f"minimum detectable effect about {effect} {at} (normal approximation)"
