"""Result of a permutation test: the p-value and its error bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from functools import cached_property
from typing import Literal

from trackperm.choices import Alternative, MethodOfResult
from trackperm.errors import InputError
from trackperm.exact.engines.lattice.statistic import Ties
from trackperm.exact.null_distribution import NullDistribution
from trackperm.messages import echoed

Relation = Literal["=", "≤", "≈"]
"""Sign between p and its number: ``=`` is computed, ``≈`` by Monte Carlo. ``≤`` is a certified upper end, of
bounds or of an exact engine whose relative error may be 1, or valid and from tilted random swaps."""

_MOST_DIGITS = 17
"""Most digits of a p-value: a float has no more."""

EXACT_WITHIN = 1e-6
"""Largest relative error of a p-value that is called exact: a thousandth of its last printed digit."""


def adjusted_relations(own: Sequence[Relation], adjusted: Sequence[tuple[float, float]]) -> list[Relation]:
    """Return the signs of adjusted p-values, which are given with their decimal logarithms.

    A step of a correction can take the value of another test, and then depends on its method.
    """
    signs: list[Relation] = list(own)
    drawn: tuple[Relation, ...] = ("≤", "≈")
    for sign in drawn:
        taken = {log for (_, log), each in zip(adjusted, own, strict=True) if each == sign}
        for i, (pvalue, log) in enumerate(adjusted):
            if own[i] != "≈" and log in taken and pvalue < 1.0:
                signs[i] = sign
    return signs


@dataclass(frozen=True)
class PValueEstimate:
    """Estimate of the exact p-value by importance sampling; it is no valid p-value.

    Attributes
    ----------
    log10 : float
        Decimal logarithm of the estimate.
    relative_error : float
        Standard error of the estimate, relative to it.
    effective_samples : float
        Effective number of draws that are as extreme as the observed one, (sum w)^2 / sum w^2.
    """

    log10: float
    relative_error: float
    effective_samples: float

    def __str__(self) -> str:
        return f"about {format_log10_pvalue(self.log10, 2)} ±{100.0 * self.relative_error:.2g} %"


@dataclass(frozen=True)
class PermutationTest:
    """Result of a paired-permutation test.

    Attributes
    ----------
    alternative : {'two-sided', 'less', 'greater'}
        Extreme values: |t| >= |t observed|, t <= t observed or t >= t observed.
    observed : float
        Observed statistic.
    pvalue : float
        Probability, under independent fair swaps, or permutations of attempts, of a value at least as
        extreme; with ``mid_p`` values equal to the observed one count half. It is 0.0 only below the range of
        floats. For ``bracket`` it is a certified upper bound, and for ``monte-carlo`` (extreme + 1) / (drawn
        + 1). For ``tilted`` it is a valid p-value: under the null hypothesis, the probability that it is at
        most a is at most a, for every a. It is at least the upper end of the estimate's 99 % interval.
    log10_pvalue : float
        Decimal logarithm of the p-value, always finite.
    error_bound : float
        Certified bound on the relative error of the p-value. 1 means that `pvalue` is an upper bound only;
        infinity means that random swaps certify nothing, or that a bracket has no lower end.
    interval : tuple of float
        Interval that contains the exact p-value: certainly, or with 99 % confidence for Monte Carlo. For
        ``tilted`` it is (0, `pvalue`) and contains the exact p-value often, but not certainly: verdicts go by
        the valid p-value.
    method : str
        Engine: ``binomial``, ``enumerate``, ``dp``, ``lattice``, ``bracket``, ``tilted`` or ``monte-carlo``;
        ``attempts`` for attempts permuted within examples (`attempts_test`).
    why : str
        Reason for this engine.
    ties : {'exact', '100 digits', 'approximate'}
        Method that decided ties with the observed value: exact; 100 digits, which count as a tie if they
        agree, for irrational values other than square roots and logarithms; or approximate, within a
        rounding band, for callables.
    mid_p : bool
        Whether ties count half.
    n_examples, n_discordant : int
        Numbers of all examples, and of those that a swap changes (for attempts, with passes and failures).
    rank : int
        Dimension of the lattice of the null distribution.
    n_better, n_worse : int or None
        Numbers of discordant examples that raise and that lower a linear statistic; None for others.
    n_samples : int or None
        Number of random swaps of Monte Carlo, or of the valid p-value of tilted sampling; None for exact
        engines.
    estimate : PValueEstimate or None
        For ``tilted``, an estimate of the exact p-value; None for other methods, and if too few draws are as
        extreme as the observed one.
    """

    alternative: Alternative
    observed: float
    pvalue: float
    log10_pvalue: float
    error_bound: float
    interval: tuple[float, float]
    method: MethodOfResult
    why: str
    ties: Ties
    mid_p: bool
    n_examples: int
    n_discordant: int
    rank: int
    n_better: int | None
    n_worse: int | None
    n_samples: int | None
    _distribution: Callable[[], NullDistribution] = field(repr=False, compare=False)
    _log10_smallest: float | None = field(default=None, repr=False)
    estimate: PValueEstimate | None = None

    @property
    def relation(self) -> Relation:
        """Sign between p and its number, see :data:`Relation`."""
        if self.method == "monte-carlo":
            return "≈"
        is_end = self.method in ("tilted", "bracket") and self.error_bound > EXACT_WITHIN
        return "≤" if is_end or self.error_bound >= 1.0 else "="

    @property
    def is_drawn(self) -> bool:
        """Whether the p-value is from random swaps."""
        return self.method in ("monte-carlo", "tilted")

    def format_pvalue(self, digits: int = 3, level: float = 1.0) -> str:
        """Write the p-value with `digits` significant digits; below 1e-300 from its logarithm, never as 0.

        An upper end is rounded up. More digits are written if fewer would put it on the other side of
        `level`.
        """
        return format_pvalue(self.pvalue, self.log10_pvalue, digits, level, self.relation)

    @property
    def log10_smallest_pvalue(self) -> float:
        """Decimal logarithm of the smallest p-value that these discordant examples allow.

        One swap of n discordant examples has probability 2^-n, and a two-sided test counts its mirror image
        as well. A linear statistic attains it if every discordant example points the same way; for others it
        is a lower bound.
        """
        if self._log10_smallest is not None:
            return self._log10_smallest
        swaps = max(self.n_discordant - (self.alternative == "two-sided"), 0)
        return -(swaps + int(self.mid_p)) * math.log10(2.0)

    @cached_property
    def null_distribution(self) -> NullDistribution:
        """Law of the statistic under the null hypothesis, computed at the first access.

        Raises
        ------
        CapacityError
            If it does not fit the memory budget of the test.
        """
        return self._distribution()


def format_pvalue(
    pvalue: float, log10_pvalue: float, digits: int = 3, level: float = 1.0, relation: Relation = "="
) -> str:
    """Write a p-value that may be below the range of floats; see :meth:`PermutationTest.format_pvalue`."""
    if isinstance(digits, bool) or digits not in range(1, _MOST_DIGITS + 1):
        raise InputError(f"`digits` is {echoed(digits)}; expected an integer from 1 to {_MOST_DIGITS}")
    rounding = ROUND_CEILING if relation == "≤" else ROUND_HALF_EVEN
    if pvalue >= 1e-300:
        while digits < _MOST_DIGITS and (float(rounded(pvalue, digits, rounding)) < level) != (
            pvalue < level
        ):
            digits += 1
        return rounded(pvalue, digits, rounding)
    return format_log10_pvalue(log10_pvalue, digits, rounding)


def format_log10_pvalue(log10_pvalue: float, digits: int = 3, rounding: str = ROUND_HALF_EVEN) -> str:
    """Write the p-value with this decimal logarithm with `digits` significant digits; never as 0."""
    if log10_pvalue >= -300.0:
        return rounded(10.0**log10_pvalue, digits, rounding)
    exponent = math.floor(log10_pvalue)
    mantissa = rounded(10 ** (log10_pvalue - exponent), digits, rounding)
    return f"1e{exponent + 1}" if float(mantissa) >= 10.0 else f"{mantissa}e{exponent}"


def rounded(value: float, digits: int = 3, rounding: str = ROUND_HALF_EVEN) -> str:
    """Write a number with `digits` significant digits, rounded in a way that :mod:`decimal` names."""
    exact = Decimal(value)
    unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{float(exact.quantize(unit, rounding)):.{digits}g}" if exact else "0"
