"""Units of scores as text: ``0.001``, ``1/3`` or ``2**-52``."""

from __future__ import annotations

import numbers
import re
from decimal import Decimal
from fractions import Fraction

from trackperm.errors import InputError, InputTypeError

Resolution = str | int | float | Fraction | Decimal

_FORM = re.compile(
    r"(?P<number>(?:\d{1,60}(?:\.\d{0,60})?|\.\d{1,60})(?:e[-+]?\d{1,3})?|\d{1,400}/0*[1-9]\d{0,400})"
    r"|2\*\*(?P<power>-?\d{1,4})",
    re.ASCII | re.IGNORECASE,
)
_MOST_DIGITS = 60
_LARGEST_DENOMINATOR = 2**13  # a larger power of two is written as such


def read_resolution(resolution: Resolution) -> Fraction:
    """Return a resolution as an exact number; a float has its printed value, so 0.001 is a thousandth.

    Raises
    ------
    InputError
        If it is not a positive and finite number.
    InputTypeError
        If it is neither a number nor text.
    """
    if isinstance(resolution, bool) or not isinstance(resolution, str | numbers.Real | Decimal):
        raise InputTypeError(f"`resolution` is a `{type(resolution).__name__}`; expected a number or text")
    if isinstance(resolution, numbers.Rational) and resolution > 0:
        return Fraction(resolution)
    hint = "such as 0.001, 1e-3, 1/3 or 2**-20."
    text = str(resolution).strip()
    match = _FORM.fullmatch(text.removeprefix("-"))
    if match is None:
        raise InputError(f"`resolution` is {text!r}; expected a finite number", hint=hint)
    value = Fraction(2) ** int(match["power"]) if match["power"] else Fraction(match["number"])
    if text.startswith("-") or not value:
        raise InputError(f"`resolution` is {text}; expected a number above 0", hint=hint)
    return value


def format_unit(unit: Fraction) -> str:
    """Return the text of a unit that :func:`read_resolution` reads back."""
    p, q = unit.numerator, unit.denominator
    if p == 1 and q > _LARGEST_DENOMINATOR and q & (q - 1) == 0:
        return f"2**-{q.bit_length() - 1}"
    if q == 1 and p > _LARGEST_DENOMINATOR and p & (p - 1) == 0:
        return f"2**{p.bit_length() - 1}"
    digits = next((d for d in range(_MOST_DIGITS + 1) if 10**d % q == 0), 0)
    if not digits:
        return str(unit)
    whole, part = divmod(p * 10**digits // q, 10**digits)
    return f"{whole}.{part:0{digits}d}"
