r"""Sample size: first number of examples with the required power, and first from which on it is kept.

The probability R(m) to reject, given m discordant examples, is saw-toothed in m, and so is the power in n.
(If only some of the examples are discordant, M varies over many teeth, and the power can rise throughout.)
Let U(m) be the greatest R up to m, and L(m) the least from m on. Both rise with m, and M is stochastically
increasing in n, so the bounds

    E L(M) <= power(n) = E R(M) <= E U(M)

both rise with n. Hence the required power is never reached below the first n with E U(M) >= required, and
always from the first n with E L(M) >= required on; the power in between is computed for every n. If R is too
long for a list, U and L use its bounds on stretches instead, and Hoeffding's inequality beyond: that leaves
more powers to compute, but the result is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from trackperm.choices import Alternative
from trackperm.errors import CapacityError, InputError
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.power.binomial_law import binomial_masses, binomial_window, one_more_example
from trackperm.exact.power.normal import approximate_examples_needed, require_power
from trackperm.exact.power.paired import MOST_EXAMPLES, share_better_of
from trackperm.exact.power.paired_sign import SignTest
from trackperm.exact.types import IntArray

LISTED = 4096
"""Largest number of discordant examples for which R is listed from 0 on: it takes a millisecond."""

STRETCH = 0.25
"""Longest stretch in roots of m: k(m) varies by an eighth of that; stretches near the list are shorter."""


@dataclass(frozen=True)
class ExamplesNeeded:
    """Number of examples needed to detect a difference.

    Attributes
    ----------
    first : int
        Smallest number of examples with the required power.
    stays : int
        Number from which on the power is always reached: never below `first`.
    power_at_first, power_at_stays : float
        Exact power at these numbers.
    difference, discordance, power, alpha : float
        Arguments of :func:`examples_needed`.
    alternative : {'two-sided', 'less', 'greater'}
        Alternative of the test.
    """

    first: int
    stays: int
    power_at_first: float
    power_at_stays: float
    difference: float
    discordance: float
    power: float
    alpha: float
    alternative: Alternative


def examples_needed(
    difference: float,
    discordance: float,
    power: float = 0.8,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> ExamplesNeeded:
    """Return the number of examples needed to detect a difference of 0/1 scores.

    Parameters
    ----------
    difference : float
        Expected score of the candidate minus that of the baseline, not 0.
    discordance : float
        Probability that exactly one of the two runs is right on an example; at least the difference.
    power, alpha : float
        Required probability of p < alpha, and alpha.
    alternative : {'two-sided', 'less', 'greater'}
        Alternative of the test.

    Raises
    ------
    InputError
        If an argument is out of range, the difference is larger than the discordance, or a one-sided test is
        on the other side.
    CapacityError
        If more than 10^7 examples are needed; the message gives an estimate.

    Examples
    --------
    >>> found = examples_needed(0.03, 0.10)
    >>> found.first, round(found.power_at_first, 4)
    (920, 0.8003)
    """
    share_better = share_better_of(difference, discordance)
    require_power(power, alpha)
    test = SignTest(alpha, alternative)
    require_sought(difference, alternative)
    about = approximate_examples_needed(
        difference, math.sqrt(discordance), 1, power=power, alpha=alpha, alternative=alternative
    )
    if about > MOST_EXAMPLES:
        raise CapacityError(
            f"the difference needs about {about:,} examples by the normal approximation;"
            f" the exact power is computed up to {MOST_EXAMPLES:,}"
        )
    reach = math.ceil(4.0 * math.sqrt(about / discordance)) + 50
    lowest, highest = max(1, about - reach), about + reach
    while True:
        envelope = _Envelope.of(test, share_better, discordance, (lowest, highest), (1.0 + power) / 2.0)
        if envelope.least_power(highest) < power:
            highest += highest - lowest
        elif lowest > 1 and envelope.greatest_power(lowest) >= power:
            lowest = max(1, lowest - (highest - lowest))
        else:
            break
    earliest = _first(lambda n: envelope.greatest_power(n) >= power, lowest, highest)
    latest = _first(lambda n: envelope.least_power(n) >= power, earliest, highest)
    powers = np.fromiter(envelope.powers(earliest, latest), dtype=np.float64)
    reached = powers >= power
    first = int(reached.argmax())
    stays = int(np.flatnonzero(~reached)[-1]) + 1 if not reached.all() else 0
    return ExamplesNeeded(
        first=earliest + first,
        stays=earliest + stays,
        power_at_first=float(powers[first]),
        power_at_stays=float(powers[stays]),
        difference=difference,
        discordance=discordance,
        power=power,
        alpha=alpha,
        alternative=alternative,
    )


@dataclass(frozen=True)
class _Envelope:
    """R on a range of m, with its least value from each m on and its greatest up to each m."""

    discordance: float
    low: int
    chance: FloatArray
    least: FloatArray
    greatest: FloatArray

    @classmethod
    def of(
        cls,
        test: SignTest,
        share_better: float,
        discordance: float,
        examples: tuple[int, int],
        enough: float,
    ) -> _Envelope:
        """Compute R, L and U on the windows of M for these numbers of examples; L is limited to `enough`."""
        high = binomial_window(examples[1], discordance)[1]
        low = binomial_window(examples[0], discordance)[0] if high > LISTED else 0
        m = np.arange(low, high + 1)
        chance = test.rejection(m, test.least_rejected(m), share_better)
        floor, ceiling = enough, 0.0
        end = test.certain_from(share_better, enough)
        if end > high:
            near, far = _stretches(high + 1, end, examples[0] * discordance)
            floor = min(floor, float(test.rejection(near, test.least_rejected(far), share_better).min()))
        if low > 0:
            near, far = _stretches(low - 1, 0, examples[1] * discordance)
            ceiling = float(test.rejection(near, test.least_rejected(far), share_better).max())
        least = np.minimum.accumulate(np.minimum(chance, floor)[::-1])[::-1]
        greatest = np.maximum.accumulate(np.maximum(chance, ceiling))
        return cls(discordance, low, chance, least, greatest)

    def least_power(self, n_examples: int) -> float:
        """Return E L(M)."""
        return float(self._masses(n_examples) @ self.least)

    def greatest_power(self, n_examples: int) -> float:
        """Return E U(M)."""
        return float(self._masses(n_examples) @ self.greatest)

    def powers(self, first: int, last: int) -> Iterator[float]:
        """Yield the power at each number of examples from `first` to `last`."""
        low, high = binomial_window(first, self.discordance)[0], binomial_window(last, self.discordance)[1]
        masses = binomial_masses(first, self.discordance, low, high)
        chance = self.chance[low - self.low : high - self.low + 1]
        for n in range(first, last + 1):
            yield float(masses @ chance)
            if n < last:
                masses = one_more_example(masses, self.discordance)

    def _masses(self, n_examples: int) -> FloatArray:
        return binomial_masses(n_examples, self.discordance, self.low, self.low + self.chance.size - 1)


def _stretches(start: int, end: int, centre: float) -> tuple[IntArray, IntArray]:
    """Split the integers from `start` to `end`, away from `centre`, into stretches.

    Returns
    -------
    near, far : ndarray of int64, shape (J,)
        Ends of the stretches, nearer to the centre and farther from it.
    """
    step = 1 if end >= start else -1
    near, far, m = [], [], start
    while step * m <= step * end:
        length = STRETCH * min(abs(m - centre) / math.sqrt(centre), math.sqrt(m))
        near.append(m)
        m += step * max(1, math.floor(length))
        far.append(m - step)
    far[-1] = end
    return np.array(near, dtype=np.int64), np.array(far, dtype=np.int64)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first integer in low..high from which on a condition holds; it holds at high."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def require_sought(difference: float, alternative: Alternative) -> None:
    """Refuse a difference of 0, or one whose sign is not in the alternative of a test."""
    if difference == 0.0 or (alternative != "two-sided" and (difference > 0.0) != (alternative == "greater")):
        raise InputError(
            f"`difference` is {difference}, which is not in the alternative {alternative!r}",
            hint="the test rejects with a probability of at most alpha there.",
        )
