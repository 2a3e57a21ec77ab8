"""Binomial masses of the number of discordant examples, on a window with all but 1e-16 of the mass."""

from __future__ import annotations

import math

import numpy as np

from trackperm.exact.distributions.characteristic import FloatArray

LOG_OUTSIDE = math.log(2.0) + 16.0 * math.log(10.0)
"""Minus the logarithm of the mass outside the window on each side, 1e-16 / 2."""


def binomial_window(n_examples: int, share: float) -> tuple[int, int]:
    """Return the ends of a window outside which Binomial(n, share) has a probability of at most 1e-16.

    By Bernstein's inequality, P(|X - n p| >= t) <= 2 exp(-t^2 / (2 (n p (1 - p) + t/3))).
    """
    third = LOG_OUTSIDE / 3.0
    reach = third + math.sqrt(third * third + 2.0 * LOG_OUTSIDE * n_examples * share * (1.0 - share))
    mean = n_examples * share
    return max(0, math.floor(mean - reach)), min(n_examples, math.ceil(mean + reach))


def binomial_masses(n_examples: int, share: float, low: int, high: int) -> FloatArray:
    """Return P(Binomial(n, share) = m) for low <= m <= high, a range that contains the window.

    They are products of the ratios P(m + 1)/P(m) = (n - m) share / ((m + 1) (1 - share)), outwards from the
    mode and scaled to 1, without cancellation.
    """
    masses = np.zeros(high - low + 1)
    mode = min(math.floor((n_examples + 1) * share), n_examples)
    masses[mode - low] = 1.0
    top = min(high, n_examples)
    if share < 1.0:
        up = np.arange(mode, top, dtype=np.float64)
        masses[mode - low + 1 : top - low + 1] = np.cumprod(
            (n_examples - up) / (up + 1.0) * (share / (1.0 - share))
        )
        down = np.arange(mode, low, -1, dtype=np.float64)
        masses[: mode - low] = np.cumprod(down / (n_examples - down + 1.0) * ((1.0 - share) / share))[::-1]
    return np.asarray(masses / masses.sum())


def one_more_example(masses: FloatArray, share: float) -> FloatArray:
    """Return the masses of Binomial(n + 1, share) from those of Binomial(n, share) on the same range."""
    following: FloatArray = masses * (1.0 - share)
    following[1:] += share * masses[:-1]
    return following
