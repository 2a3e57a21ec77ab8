r"""Exact conditional test of paired proportions, as critical values for each number of discordant examples.

Of m discordant examples b are better. Given m, b ~ Binomial(m, 1/2) under fair swaps, and the test (McNemar's
exact, or sign, test) rejects if b >= k(m); a two-sided test also if m - b >= k(m), with half the level on
each side. k(m) is the least number with P(Binomial(m, 1/2) >= k) below the level of its side.

Let q be the probability that a discordant example is better. The probability to reject is

    R(m) = P(Binomial(m, q) >= k(m)) [+ P(Binomial(m, 1 - q) >= k(m))].

It is saw-toothed in m, but bounded on a stretch. One more coin raises k(m) by 0 or 1, because

    P(B_{m+1} >= k) >= P(B_m >= k) >= P(B_{m+1} >= k + 1),

and B_m is stochastically increasing in m. Therefore, for a <= m <= b,

    P(B_a >= k(b)) <= P(B_m >= k(m)) <= P(B_b >= k(a)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from trackperm.choices import Alternative
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.engines.linear.binomial import binomial_tail
from trackperm.exact.options import checked_level, require_choice
from trackperm.exact.types import IntArray

NEAR = 1e-8
"""Relative distance from the level within which a certified tail decides: far above errors of `betainc`."""


@dataclass(frozen=True)
class SignTest:
    """Sign test at a level.

    Attributes
    ----------
    alpha : float
        Level: the test rejects if p < alpha.
    alternative : {'two-sided', 'less', 'greater'}
        ``greater``: more of the discordant examples are better.

    Raises
    ------
    InputError
        If `alternative` is unknown, or `alpha` is not between 0 and 1.
    """

    alpha: float
    alternative: Alternative

    def __post_init__(self) -> None:
        require_choice("alternative", self.alternative, get_args(Alternative))
        checked_level(self.alpha)

    @property
    def sides(self) -> int:
        """Number of extreme tails."""
        return 2 if self.alternative == "two-sided" else 1

    @property
    def level(self) -> float:
        """Level of one side."""
        return self.alpha / self.sides

    def least_rejected(self, n_discordant: npt.ArrayLike) -> IntArray:
        """Return k(m), the least rejected number on one side, for m discordant examples, up to 2^32 of them.

        It is m + 1 if the test never rejects.
        """
        from scipy import special  # importing it takes as long as the rest of NumPy

        m = np.asarray(n_discordant, dtype=np.int64)
        middle = (m + 1 - special.ndtri(self.level) * np.sqrt(m)) / 2.0
        k = np.clip(np.ceil(middle).astype(np.int64), 0, m + 1)
        while (short := ~self._is_below(m, k)).any():
            k[short] += 1
        while (long := (k > 0) & self._is_below(m, k - 1)).any():
            k[long] -= 1
        return np.asarray(k, dtype=np.int64)

    def _is_below(self, m: IntArray, k: IntArray) -> npt.NDArray[np.bool_]:
        """Whether P(Binomial(m, 1/2) >= k) is below the level, by the certified tail of the test."""
        tail = upper_tail(m, k, 0.5)
        below = tail < self.level
        for i in np.flatnonzero((np.abs(tail - self.level) <= NEAR * self.level) & (k > 0) & (k <= m)):
            found = binomial_tail(int(m[i]), int(m[i] - k[i]))
            below[i] = (
                self.sides * math.exp(found.log_scale) * found.scaled * (1.0 + found.error) < self.alpha
            )
        return np.asarray(below)

    def rejection(self, n_discordant: IntArray, least: IntArray, share_better: float) -> FloatArray:
        """Return P(B_m >= k), on both sides of a two-sided test: R(m) for k = `least_rejected(m)`.

        `share_better` is the probability q that a discordant example is better.
        """
        towards = 1.0 - share_better if self.alternative == "less" else share_better
        chance = upper_tail(n_discordant, least, towards)
        return chance + upper_tail(n_discordant, least, 1.0 - towards) if self.sides == 2 else chance

    def certain_from(self, share_better: float, chance: float) -> int:
        r"""Return an m from which on R is at least `chance`, for q on the side of the test.

        By Hoeffding k(m) <= m/2 + sqrt(m log(1/level) / 2) + 1, and therefore

            1 - R(m) <= exp(-2 (sqrt(m) (q - 1/2) - sqrt(log(1/level) / 2) - 1/sqrt(m))^2).
        """
        lean = abs(share_better - 0.5)
        needed = math.sqrt(-math.log(self.level) / 2.0) + math.sqrt(-math.log1p(-chance) / 2.0)
        # The root solves sqrt(m) lean - 1/sqrt(m) = needed.
        root = (needed + math.sqrt(needed * needed + 4.0 * lean)) / (2.0 * lean)
        return math.ceil(root * root) + 1


def upper_tail(n_coins: npt.NDArray[Any], least: npt.NDArray[Any], chance: float) -> FloatArray:
    """Return P(Binomial(n, q) >= k) = I_q(k, n - k + 1), for 0 <= k <= n + 1."""
    from scipy import special

    inside = (least > 0) & (least <= n_coins)
    k = np.where(inside, least, 1)
    tail = special.betainc(k, np.where(inside, n_coins - k + 1, 1), chance)
    return np.asarray(np.where(inside, tail, least <= 0), dtype=np.float64)
