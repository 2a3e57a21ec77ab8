r"""Sum of hypergeometric counts with steps rounded to multiples of a spacing; bound of the remainder.

With s_k = r q_k + e_k and R = sum e_k (w_k - E w_k), by Hoeffding's inequality

    P(R >= rho) <= exp(-2 rho^2 / sum_k c_k (e_k width_k)^2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from trackperm.exact.distributions.hypergeometric import HypergeometricSum


@dataclass(frozen=True)
class RoundedSum:
    """Rounded sum Q and remainder R: S - E S = spacing (Q - E Q) + R.

    Attributes
    ----------
    law : HypergeometricSum
        The law of Q.
    spacing : int
        r.
    means : tuple of Fraction
        E S and E Q.
    squares : int
        Bound of sum_k c_k (e_k width_k)^2.
    """

    law: HypergeometricSum
    spacing: int
    means: tuple[Fraction, Fraction]
    squares: int

    @classmethod
    def of(cls, law: HypergeometricSum, spacing: int) -> RoundedSum:
        """Round steps to multiples of `spacing`."""
        steps = law.steps.astype(object)
        quotients = (2 * steps + spacing) // (2 * spacing)
        extents = (steps - quotients * spacing) * law.widths
        kept = quotients > 0
        rough = HypergeometricSum(
            law.first[kept],
            law.second[kept],
            law.passes[kept],
            quotients[kept].astype(np.int64),
            law.multiplicities[kept],
        )
        squares = int(law.multiplicities.astype(object) @ (extents * extents))
        return cls(rough, spacing, (law.mean, rough.mean), squares)

    def reach(self, log_probability: float) -> int:
        """Return rho with P(R >= rho) <= exp(log_probability)."""
        return math.isqrt(self.squares * math.ceil(-32.0 * log_probability) // 64) + 1

    def point(self, value: Fraction) -> int:
        """Return the least Q with spacing (Q - E Q) + E S >= value."""
        return math.ceil((value - self.means[0]) / self.spacing + self.means[1])
