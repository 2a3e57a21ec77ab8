r"""Unconditional power of the exact conditional test of paired proportions.

Each of n examples is discordant with probability delta, and then better with probability
q = (1 + difference / delta) / 2. The number M of discordant examples is Binomial(n, delta), and

    power(n) = E R(M) = sum_m P(M = m) R(m),

with R(m) of :mod:`~trackperm.exact.power.paired_sign`. Both factors are positive and the sum runs over a
window outside which M has a probability of 1e-16, so the power is accurate to about 1e-10, the accuracy of
the incomplete beta function.
"""

from __future__ import annotations

import numpy as np

from trackperm.choices import Alternative
from trackperm.errors import CapacityError, InputError
from trackperm.exact.power.binomial_law import binomial_masses, binomial_window
from trackperm.exact.power.detectable import MinimumDetectableEffect
from trackperm.exact.power.normal import require_power
from trackperm.exact.power.paired_sign import SignTest
from trackperm.exact.root import bracketed_root

MOST_EXAMPLES = 10**7
"""Largest number of examples for an exact power: a window then has 10^5 values, which take some seconds."""


def paired_power(
    n_examples: int,
    difference: float,
    discordance: float,
    *,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> float:
    """Return the probability of p < alpha for 0/1 scores of two runs on `n_examples` examples.

    Parameters
    ----------
    n_examples : int
        Number of examples n, at most 10^7.
    difference : float
        Expected score of the candidate minus that of the baseline.
    discordance : float
        Probability that exactly one of the two runs is right on an example.
    alpha : float
        Level of the test.
    alternative : {'two-sided', 'less', 'greater'}
        Alternative of the test. The two-sided power counts p < alpha on both sides.

    Raises
    ------
    InputError
        If an argument is out of range, or the difference larger than the discordance.
    CapacityError
        If there are more than 10^7 examples.
    """
    test = SignTest(alpha, alternative)
    share_better = share_better_of(difference, discordance)
    _require_examples(n_examples)
    low, high = binomial_window(n_examples, discordance)
    m = np.arange(low, high + 1)
    chance = test.rejection(m, test.least_rejected(m), share_better)
    return float(binomial_masses(n_examples, discordance, low, high) @ chance)


def minimum_detectable_effect(
    n_examples: int,
    discordance: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> MinimumDetectableEffect:
    """Return the smallest difference of 0/1 scores that `n_examples` examples detect.

    At a given discordance the power rises with the difference, because R(m) rises as q leaves 1/2. The
    difference is rounded up by at most 1e-9 of the discordance. Arguments and errors are those of
    :func:`paired_power`; `power` is between alpha and 1, and a one-sided test is on the side of the
    difference.
    """
    require_power(power, alpha)
    test = SignTest(alpha, "two-sided" if alternative == "two-sided" else "greater")
    share_better_of(0.0, discordance)
    _require_examples(n_examples)
    low, high = binomial_window(n_examples, discordance)
    m = np.arange(low, high + 1)
    least, masses = test.least_rejected(m), binomial_masses(n_examples, discordance, low, high)

    def excess(lean: float) -> float:
        return float(masses @ test.rejection(m, least, (1.0 + lean) / 2.0)) - power

    effect = None
    if excess(1.0) >= 0.0:
        tolerance = 2.5e-10
        lean = bracketed_root(excess, 0.0, 1.0, xtol=tolerance)
        effect = discordance * min(lean + 2.0 * tolerance, 1.0)
    return MinimumDetectableEffect(effect, power, alpha, alternative, n_examples, exact=True)


def share_better_of(difference: float, discordance: float) -> float:
    """Return q, the probability that a discordant example is better."""
    if not 0.0 < discordance <= 1.0:
        raise InputError(
            f"`discordance` is {discordance}; expected the share of examples, above 0 and at most 1,"
            " on which exactly one of the runs is right"
        )
    if not abs(difference) <= discordance:
        raise InputError(
            f"`difference` is {difference} and `discordance` {discordance}; scores of 0 and 1 cannot differ"
            " by more than the share of examples on which exactly one of the runs is right"
        )
    return (1.0 + difference / discordance) / 2.0


def _require_examples(n_examples: int) -> None:
    if n_examples < 1:
        raise InputError(f"`n_examples` is {n_examples}; expected at least 1")
    if n_examples > MOST_EXAMPLES:
        raise CapacityError(
            f"`n_examples` is {n_examples:,}; the exact power is computed up to {MOST_EXAMPLES:,}",
            hint=f"use `--examples {MOST_EXAMPLES:,}` or less.",
        )
