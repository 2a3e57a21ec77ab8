"""Options of a permutation test, checked once and handed down to the engines."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, get_args

import numpy as np

from trackperm.choices import Alternative, IntervalChoice, Method
from trackperm.errors import InputError
from trackperm.messages import did_you_mean, echoed, listed

MEMORY_BUDGET = 2**30
"""Memory budget of a test in bytes, by default: it fits any laptop beside what else runs."""

LEAST_MEMORY = 2**20
"""Smallest memory budget in bytes: below it not even a small test fits."""

_UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

_LEAST_LEVEL = 1e-300  # corrections divide it further, and the result has to be above the smallest float

_ALTERNATIVES, _METHODS, _INTERVALS = map(get_args, (Alternative, Method, IntervalChoice))

N_SAMPLES = 100_000
"""Random swaps of Monte Carlo by default: the 99 % interval of p = 0.05 is then 0.0036 wide."""


def bytes_of(size: int | str) -> int:
    """Return the bytes of a memory budget: a number, or a text such as ``512MB`` or ``2GiB``.

    Raises
    ------
    InputError
        If it is not a size, or below 1 MiB.

    Examples
    --------
    >>> bytes_of("512MB"), bytes_of("2GiB")
    (512000000, 2147483648)
    """
    if not isinstance(size, int | str | np.integer):
        raise InputError(f"`--memory` is {echoed(size)}; expected bytes, or a size such as 512MB or 2GiB")
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([a-zA-Z]*)", str(size).strip())
    if found is None or found[2] not in _UNITS:
        raise InputError(f"`--memory {size}` is not a size; expected bytes, or a size such as 512MB or 2GiB")
    n_bytes = int(Fraction(found[1]) * _UNITS[found[2]])
    if n_bytes < LEAST_MEMORY:
        raise InputError(
            f"`--memory {size}` is too little; expected at least 1MiB, in bytes or as a size such as 512MB"
        )
    return n_bytes


@dataclass(frozen=True, kw_only=True)
class TestOptions:
    """Options of a permutation test.

    Attributes
    ----------
    alternative : {'two-sided', 'less', 'greater'}, optional
        Side on which values are extreme; None takes that of the statistic, which is two-sided by default.
    alpha : float
        Significance level of the verdict, between 0 and 1; it does not enter the p-value.
    mid_p : bool
        Count ties with the observed value half: less conservative, but no longer a valid p-value.
    method : {'auto', 'binomial', 'enumerate', 'dp', 'lattice', 'bracket', 'tilted', 'monte-carlo'}
        Numerical engine.
    n_samples : int, optional
        Number of random swaps of Monte Carlo and of tilted sampling; None takes the default of each.
    seed : int
        Seed of the random swaps.
    exceedances : int, optional
        For Monte Carlo: number of extreme swaps at which drawing stops (Besag and Clifford 1991).
    memory_budget : int
        Bytes that the test may allocate.
    interval : {'auto', 'none', 'score', 'bootstrap'}
        Interval of the difference: the one that agrees with the test if there is one, else the score
        interval; none; or one of these two in any case.

    Raises
    ------
    InputError
        If an option is out of range, or two options are contradictory.
    """

    __test__: ClassVar[bool] = False  # pytest collects classes whose names begin with Test

    alternative: Alternative | None = None
    alpha: float = 0.05
    mid_p: bool = False
    method: Method = "auto"
    n_samples: int | None = None
    seed: int = 0
    exceedances: int | None = None
    memory_budget: int = MEMORY_BUDGET
    interval: IntervalChoice = "auto"

    def __post_init__(self) -> None:
        if self.alternative is not None:
            require_choice("alternative", self.alternative, _ALTERNATIVES)
        require_choice("method", self.method, _METHODS)
        require_choice("interval", self.interval, _INTERVALS)
        if not isinstance(self.mid_p, bool | np.bool_):
            raise InputError(f"`mid_p` is {echoed(self.mid_p)}; expected True or False")
        kept: dict[str, object] = {
            "alpha": checked_level(self.alpha),
            "mid_p": bool(self.mid_p),
            "seed": checked_integer("seed", self.seed, 0),
            "memory_budget": int(self.memory_budget),
        }
        if self.n_samples is not None:
            kept["n_samples"] = checked_integer("samples", self.n_samples, 1)
        if self.exceedances is not None:
            kept["exceedances"] = checked_integer("exceedances", self.exceedances, 1)
        for name, value in kept.items():
            object.__setattr__(self, name, value)
        if self.mid_p and self.method in ("monte-carlo", "tilted"):
            raise InputError("the mid-p-value needs an exact method", hint="omit `--mid-p` or `--method`.")
        if self.exceedances is not None and self.method not in ("auto", "monte-carlo"):
            raise InputError(
                f"`--exceedances` does not apply to `--method {self.method}`, which never stops early",
                hint="use `--method monte-carlo`, or omit `--exceedances`.",
            )

    def draws(self, by_default: int) -> int:
        """Return the number of random swaps, or the default of a method."""
        return by_default if self.n_samples is None else int(self.n_samples)

    @property
    def tested(self) -> Alternative:
        """Alternative of the test, two-sided by default."""
        return self.alternative or "two-sided"

    @property
    def two_sided(self) -> bool:
        """Whether |t| >= |t observed| is extreme."""
        return self.tested == "two-sided"

    def with_default(self, alternative: Alternative) -> TestOptions:
        """Return the options with a default for `alternative`."""
        return self if self.alternative is not None else replace(self, alternative=alternative)


def checked_integer(option: str, value: object, smallest: int) -> int:
    """Return an option's value as a Python integer; refuse all but integers of at least `smallest`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < smallest:
        raise InputError(f"`--{option}` is {echoed(value)}; expected an integer of at least {smallest}")
    return int(value)


def checked_level(alpha: object) -> float:
    """Return a level as a Python number.

    Levels that are not between 0 and 1, or so small that fractions of them underflow, are refused.
    """
    if not isinstance(alpha, int | float | np.number) or not _LEAST_LEVEL <= alpha < 1.0:
        raise InputError(f"`alpha` is {echoed(alpha)}; expected a number between 0 and 1, such as 0.05")
    return plain_number(alpha)


def plain_number(value: Any) -> float:
    """Return a number as Python's int or float, since JSON and `decimal` take no others.

    Floats of NumPy become the float with the same shortest decimal: ``float32(0.05)`` is 0.05.
    """
    if isinstance(value, np.floating):
        return float(str(value))
    if isinstance(value, np.integer):
        return int(value)
    return value if isinstance(value, int | float) else float(value)


def require_choice(option: str, value: object, choices: Collection[str], *, hint: str = "") -> None:
    """Refuse a value of an option that is not one of `choices`, such as ``get_args`` of a `Literal`.

    The InputError suggests the closest choice, after `hint`.
    """
    if not (isinstance(value, str) and value in choices):
        known = list(choices)
        suggestion = did_you_mean(value, known) if isinstance(value, str) else ""
        raise InputError(
            f"`{option}` is {echoed(value)}; expected one of {listed(known)}",
            hint=f"{hint}{suggestion}".strip() or None,
        )
