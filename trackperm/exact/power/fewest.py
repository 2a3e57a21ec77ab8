r"""Fewest examples on which a permutation test can reject at all.

A test that exchanges m discordant examples has 2^m equally likely outcomes, and the observed one is as
extreme as itself; a two-sided test counts its mirror image as well. So no p-value is below sides / 2^m, and
p < alpha needs at least the least m with sides / 2^m < alpha, whatever the statistic is. If each example is
discordant with probability s, n examples have M ~ Binomial(n, s) discordant ones, and no power exceeds
P(M >= m).
"""

from __future__ import annotations

from scipy import special

from trackperm.choices import Alternative
from trackperm.exact.power.paired_sign import SignTest


def fewest_discordant(alpha: float, alternative: Alternative) -> int:
    """Return the least number of discordant examples with which some p-value is below alpha."""
    sides = SignTest(alpha, alternative).sides
    n_discordant = 1
    while sides * 2.0**-n_discordant >= alpha:
        n_discordant += 1
    return n_discordant


def can_reach(
    n_examples: int, discordance: float, power: float, alpha: float, alternative: Alternative
) -> bool:
    """Whether so many examples have enough discordant ones for p < alpha with probability `power`."""
    least = fewest_discordant(alpha, alternative)
    return bool(special.bdtrc(least - 1, max(n_examples, least - 1), discordance) >= power)


def fewest_examples(discordance: float, power: float, alpha: float, alternative: Alternative) -> int:
    """Return the least number of examples whose power may be as large as `power`."""
    low, high = 0, fewest_discordant(alpha, alternative)
    while not can_reach(high, discordance, power, alpha, alternative):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if can_reach(middle, discordance, power, alpha, alternative):
            high = middle
        else:
            low = middle
    return high
