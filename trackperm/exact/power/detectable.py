"""Minimum detectable effect, which accompanies every undecided verdict."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING

from trackperm.choices import Alternative
from trackperm.exact.result import rounded


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
    n_tests : int
        Number of tests for which `alpha` is corrected, this one included.
    """

    effect: float | None
    power: float
    alpha: float
    alternative: Alternative
    n_examples: int
    exact: bool
    n_tests: int = 1

    def __str__(self) -> str:
        """Return the power and the effect, which is rounded up: its own power is at least the stated one."""
        about = "" if self.exact else "about "
        found = "no difference is detectable"
        if self.effect is not None:
            least = float(rounded(self.effect * (1.0 - 1e-9), 2, ROUND_CEILING))  # found within 1e-9
            found = f"minimum detectable effect {about}{least:g}"
        remarks = ["normal approximation"] if about else []
        if self.n_tests > 1:
            remarks.append(f"level {self.alpha:.2g}, corrected for {self.n_tests:,} tests")
        return f"{found} at {100 * self.power:.4g} % power" + (f" ({'; '.join(remarks)})" if remarks else "")
