r"""Normal approximations, for the start of an exact search, and for statistics without an exact power.

Let s^2 be n times the variance of the statistic's null distribution on n examples; for paired proportions
that is the discordance, for a mean of differences d the mean of d^2. If the candidate truly differs by t, the
null distribution stays the same and the statistic has mean t and variance (s^2 - t^2)/n. With z the standard
normal quantiles of 1 - level and of the required power, the test reaches that power if

    t sqrt(n) = z_level s + z_power sqrt(s^2 - t^2)

(Connor 1987, for paired proportions), which is solved for n, or for t.

References
----------
R. J. Connor (1987), "Sample size for testing differences in proportions for the paired-sample design",
Biometrics 43.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from trackperm.choices import Alternative
from trackperm.errors import InputError, UndefinedStatisticError
from trackperm.exact.counts import DifferenceHistogram
from trackperm.exact.engines.lattice.statistic import Statistic, values_at
from trackperm.exact.power.detectable import MinimumDetectableEffect
from trackperm.exact.power.paired_sign import SignTest

STEP = 1e-3
"""Half the distance of a difference quotient, in standard deviations of a total: errors are about 1e-6."""


def require_power(power: float, alpha: float) -> None:
    """Refuse a power that is not between alpha and 1: a test has power alpha without any difference."""
    if not alpha < power < 1.0:
        raise InputError(f"`power` is {power}; expected a number between alpha, {alpha}, and 1, such as 0.8")


_ROUNDING = 1e-9
"""Relative rounding of the mean and the root mean square of equal differences."""

_LARGEST_ROOT = 1e9  # largest root of a number of examples: beyond, squares exceed 2^63


def approximate_examples_needed(
    difference: float,
    null_sd: float,
    n_pilot: int,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    critical_sd: float | None = None,
) -> int:
    """Estimate the number of examples needed to detect a difference, by the normal approximation.

    Parameters
    ----------
    difference : float
        Difference t, not 0, in units of the statistic; its sign does not matter.
    null_sd, n_pilot : float and int
        Standard deviation of the null distribution on the examples of a pilot comparison, as from
        :func:`null_standard_deviation`, and their number.
    power, alpha, alternative
        Required probability of p < alpha; a one-sided test is taken to be on the side of the difference.
    critical_sd : float, optional
        Standard deviation of the null distribution of a test that does not swap whole examples, such as one
        of attempts within them, on the examples of the pilot; by default `null_sd`.

    Raises
    ------
    InputError
        If an argument is out of range, or no outcome of these examples has such a difference.
    """
    z_level, z_power = _quantiles(power, SignTest(alpha, alternative))
    _require_pilot(null_sd, n_pilot)
    share = abs(difference) / (null_sd * math.sqrt(n_pilot))
    if not 0.0 < share <= 1.0 + _ROUNDING:
        raise InputError(
            f"`difference` is {difference}; expected a number other than 0, and at most"
            f" {null_sd * math.sqrt(n_pilot):.3g}, the root mean square of the pilot's differences"
        )
    share = min(share, 1.0)
    wider = 1.0 if critical_sd is None else critical_sd / null_sd
    root = (z_level * wider + z_power * math.sqrt(1.0 - share * share)) / share
    if root > _LARGEST_ROOT:
        raise InputError(
            f"`--difference {difference}` is too small for any number of examples to show",
            hint="the smallest difference that matters is 0.01, for example.",
        )
    return math.ceil(root * root)


def approximate_minimum_detectable_effect(
    n_examples: int,
    null_sd: float,
    n_pilot: int,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> MinimumDetectableEffect:
    """Estimate the smallest difference that `n_examples` examples detect, by the normal approximation.

    Other arguments and errors are those of :func:`approximate_examples_needed`.
    """
    z_level, z_power = _quantiles(power, SignTest(alpha, alternative))
    _require_pilot(null_sd, n_pilot)
    if n_examples < 1:
        raise InputError(f"`n_examples` is {n_examples}; expected at least 1")
    # Squaring x sqrt(n) - z_level = z_power sqrt(1 - x^2), with x = t/s, adds a root of the other sign.
    squares = n_examples + z_power * z_power
    under_root = squares - z_level * z_level
    effect = None
    if under_root >= 0.0 and n_examples >= z_level * z_level:
        share = (z_level * math.sqrt(n_examples) + z_power * math.sqrt(under_root)) / squares
        effect = share * null_sd * math.sqrt(n_pilot)
    return MinimumDetectableEffect(effect, power, alpha, alternative, n_examples, exact=False)


def null_standard_deviation(
    observed: npt.ArrayLike, swapped: npt.ArrayLike, h: Statistic, multiplicities: npt.ArrayLike | None = None
) -> float:
    r"""Return the standard deviation of h(S) under fair swaps, to first order about the mean of S.

    A swap of row k moves S by :math:`a_k - b_k`, so with the slopes v of h at the mean of S the variance is
    :math:`\sum_k c_k (v \cdot (a_k - b_k) / 2)^2`, which is exact if h is affine. Arguments are those of
    :func:`~trackperm.exact.structured_test`. It raises UndefinedStatisticError if h is undefined near that
    mean.
    """
    histogram = DifferenceHistogram.from_pairs(observed, swapped, multiplicities)
    moves = histogram.differences.astype(np.float64)
    counts = histogram.multiplicities.astype(np.float64)
    mean = (
        np.array(histogram.observed, dtype=np.float64) + np.array(histogram.swapped, dtype=np.float64)
    ) / 2.0
    sds = np.sqrt(counts @ moves**2) / 2.0
    moved = np.flatnonzero(sds > 0.0)
    if moved.size == 0:
        return 0.0
    steps = np.zeros((moved.size, mean.size))
    steps[np.arange(moved.size), moved] = STEP * sds[moved]
    slopes = (values_at(h, mean + steps) - values_at(h, mean - steps)) / (2.0 * STEP * sds[moved])
    if not np.isfinite(slopes).all():
        raise UndefinedStatisticError(
            "the statistic, and so its standard deviation, is undefined at the mean of its null distribution"
        )
    return float(np.sqrt(counts @ (moves[:, moved] @ slopes) ** 2) / 2.0)


def _quantiles(power: float, test: SignTest) -> tuple[float, float]:
    """Return the standard normal quantiles of 1 - level and of the power."""
    from scipy import special

    require_power(power, test.alpha)
    return -float(special.ndtri(test.level)), float(special.ndtri(power))


def _require_pilot(null_sd: float, n_pilot: int) -> None:
    if not 0.0 < null_sd < math.inf or n_pilot < 1:
        raise InputError(
            f"`null_sd` is {null_sd} and `n_pilot` {n_pilot}; expected a positive number and at least 1",
            hint="use a pilot with discordant examples.",
        )
