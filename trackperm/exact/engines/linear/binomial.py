r"""Binomial tail with probability 1/2, for discordant examples that all count the same.

For n coins and j <= n/2,

    P(X <= j) = P(X = j) sum_{i <= j} prod_{l < i} (j - l) / (n - j + 1 + l),

a sum of positive terms. With e = (n - 2j)/n and the remainder s of Stirling's series for log n!,

    P(X = j) = sqrt(n / (2 pi j (n - j))) exp(s(n) - s(j) - s(n - j) - n/2 (log(1 - e^2) + 2 e atanh e)),

without cancellation (Loader 2000, Fast and accurate computation of binomial probabilities, in this form).
Near the edge, where 1 - e^2 loses digits, the last term is j log(2j/n) + (n - j) log(2(n - j)/n).
The certificate adds up the exponent's roundings, and two roundings for each factor of a term. The term t_i of
j - i has i factors, which fall, so that t_{i + k} <= t_i t_k, and with the sum S of all terms, from t_0 = 1,

    sum_i i t_i = sum_{i >= 1} sum_{k >= 0} t_{i + k} <= sum_{i >= 1} t_i S = (S - 1) S,

and the roundings of S are at most 2 (S - 1) of its size.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from trackperm.exact.distributions.characteristic import UNIT
from trackperm.exact.distributions.tilt import CERTAIN, TailMass, share_of_swaps

COUNTED = 64
"""Number of terms up to which integers are faster; Stirling's series then has n - j of at least 64."""

MOST_COINS = 2**32
"""Largest number of coins: their 7 sqrt(n) terms are 3.7 MB."""

STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
"""Coefficients of 1/n, 1/n^3, ... in log n! - log(sqrt(2 pi n) (n/e)^n) (Abramowitz and Stegun 6.1.41)."""


def binomial_tail(n_coins: int, greatest: int) -> TailMass:
    """Return P(X <= greatest) for X ~ Binomial(n_coins, 1/2), with 1 <= n_coins <= 2^32."""
    if greatest >= n_coins:
        return CERTAIN
    if greatest < COUNTED:
        return share_of_swaps(_coefficients(n_coins, greatest), n_coins)
    if 2 * greatest > n_coins and n_coins <= 2 * COUNTED:
        return share_of_swaps(2**n_coins - _coefficients(n_coins, n_coins - greatest - 1), n_coins)
    if 2 * greatest > n_coins:
        rest = binomial_tail(n_coins, n_coins - greatest - 1)
        share = math.exp(rest.log)
        off = share * (rest.error + 4.0 * UNIT * (1.0 + abs(rest.log)))
        return TailMass(0.0, 1.0 - share, off / (1.0 - share) + 2.0 * UNIT)
    n, j = n_coins, greatest
    e = (n - 2 * j) / n
    if e <= 0.5:
        terms_of_exponent = n / 2 * math.log1p(-e * e), n * e * math.atanh(e)
        lost = 0.0
    else:
        terms_of_exponent = j * math.log(2 * j / n), (n - j) * math.log(2 * (n - j) / n)
        # The arguments of the logarithms are rounded, which counts j and n - j times.
        lost = float(n)
    divergence = sum(terms_of_exponent)
    log = _stirling(n) - _stirling(j) - _stirling(n - j) - divergence
    # After 7 sqrt(n) terms the rest is below exp(-98) of the first.
    size = min(j, 7 * math.isqrt(n) + 64)
    factors = np.arange(j, j - size, -1, dtype=np.float64)
    factors /= np.arange(n - j + 1, n - j + 1 + size, dtype=np.float64)
    total = 1.0 + float(np.add.reduce(np.multiply.accumulate(factors)))
    roundings = 2.0 * (total - 1.0) + math.log2(size + 1) + 8.0
    exponent_roundings = lost + 8.0 * sum(map(abs, terms_of_exponent)) + 4.0 * abs(log) + 32.0
    error = UNIT * (roundings + exponent_roundings) + math.exp(-90.0)
    return TailMass(log, total * math.sqrt(n / (2.0 * math.pi * j * (n - j))), error)


def _coefficients(n_coins: int, greatest: int) -> int:
    """Return sum_{i <= greatest} C(n, i)."""
    total, term = 0, 1
    for i in range(greatest + 1):
        total += term
        term = term * (n_coins - i) // (i + 1)
    return total


@lru_cache(maxsize=4096)
def _stirling(n: int) -> float:
    """Return log n! - log(sqrt(2 pi n) (n/e)^n) for n >= 64, to the precision of floats."""
    return math.fsum(coefficient / n ** (2 * k + 1) for k, coefficient in enumerate(STIRLING))
