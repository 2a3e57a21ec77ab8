"""Proof, from its written form, that a real function rises or falls strictly along a line.

Each part of the function is enclosed in an interval over the line, and gets a direction by the rules of
calculus: sums of parts that rise, products of positive ones, roots, logarithms and exponentials rise. The
proof may fail for a monotone function, but never succeeds for another, and it covers that the function is
defined everywhere on the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from trackperm.exact.functions.operations import OperationTree

Line = tuple[int, int]
"""Start and step of a variable: start + step * x at the point x."""

EXPONENT = 100
"""Largest size of an exponent in a proof: floats hold the exponential, with room for further operations."""


@dataclass(frozen=True)
class _Part:
    """Direction of a part, 0 for a constant, and an interval of its values; None is unbounded."""

    direction: int
    low: Fraction | None
    high: Fraction | None

    @property
    def sign(self) -> int | None:
        """Sign of all values, where the interval proves one."""
        if self.low is not None and self.low > 0:
            return 1
        if self.high is not None and self.high < 0:
            return -1
        return 0 if self.low == self.high == 0 else None

    def negated(self) -> _Part:
        low, high = self.low, self.high
        return _Part(-self.direction, None if high is None else -high, None if low is None else -low)


def direction_along(h: OperationTree, lines: Sequence[Line], low: int, high: int) -> int | None:
    """Return 1 if h rises strictly for x from `low` to `high`, -1 if it falls; None without a proof.

    Parameters
    ----------
    h : OperationTree
        A function of m variables.
    lines : sequence of m (int, int)
        Start and step of every variable: at x it is start + step * x.
    low, high : int
        Ends of the line.
    """
    part = _enclosed(h, lines, low, high)
    return None if part is None else part.direction or None


def _enclosed(h: OperationTree, lines: Sequence[Line], low: int, high: int) -> _Part | None:
    """Return direction and interval of a function; None where nothing is proved."""
    if h.operation == "variable":
        start, step = lines[h.index]
        ends = sorted((Fraction(start + step * low), Fraction(start + step * high)))
        return _Part((step > 0) - (step < 0), ends[0], ends[1])
    if h.operation == "constant":
        return _Part(0, h.value, h.value)
    parts = []
    for operand in h.operands:
        part = _enclosed(operand, lines, low, high)
        if part is None:
            return None
        parts.append(part)
    match h.operation, parts:
        case "+", [first, second]:
            return _sum(first, second)
        case "*", [first, second]:
            return _product(first, second)
        case "/", [first, second]:
            inverse = _inverse(second)
            return None if inverse is None else _product(first, inverse)
        case "**", [first]:
            return _power(first, h.index)
        case (("sqrt" | "log" | "exp"), [first]):
            return _transcendental(h.operation, first)
    return None


def _sum(first: _Part, second: _Part) -> _Part | None:
    if first.direction * second.direction < 0:
        return None
    low = None if first.low is None or second.low is None else first.low + second.low
    high = None if first.high is None or second.high is None else first.high + second.high
    return _Part(first.direction or second.direction, low, high)


def _product(first: _Part, second: _Part) -> _Part | None:
    signs = first.sign, second.sign
    if 0 in signs:
        return _Part(0, Fraction(0), Fraction(0))
    for sign, part, other in ((signs[0], first, second), (signs[1], second, first)):
        if part.direction == 0 and sign is not None and part.low == part.high and part.low is not None:
            scaled = other if sign > 0 else other.negated()
            size = abs(part.low)
            ends = [None if end is None else end * size for end in (scaled.low, scaled.high)]
            return _Part(scaled.direction, *ends)
    if None in signs:
        return None
    here, there = (part if part.sign == 1 else part.negated() for part in (first, second))
    if here.direction * there.direction < 0:
        return None
    low = None if here.low is None or there.low is None else here.low * there.low
    high = None if here.high is None or there.high is None else here.high * there.high
    found = _Part(here.direction or there.direction, low, high)
    return found if signs[0] == signs[1] else found.negated()


def _inverse(part: _Part) -> _Part | None:
    """Return 1 / part, where no value is 0."""
    if part.sign not in (1, -1):
        return None
    low = Fraction(0) if part.high is None else 1 / part.high
    high = Fraction(0) if part.low is None else 1 / part.low
    return _Part(-part.direction, low, high)


def _power(part: _Part, exponent: int) -> _Part | None:
    """Return the power by an integer of at least 2: odd ones rise, even ones rise above 0."""
    if exponent % 2 == 0 and part.high is not None and part.high <= 0:
        part = part.negated()
    if exponent % 2 == 0 and (part.low is None or part.low < 0):
        return None
    ends = [None if end is None else end**exponent for end in (part.low, part.high)]
    return _Part(part.direction, *ends)


def _transcendental(operation: str, part: _Part) -> _Part | None:
    """Return a root, logarithm or exponential, in an interval that is wide but has the right sign."""
    zero, one = Fraction(0), Fraction(1)
    if operation == "exp":
        bounded = part.low is not None and part.high is not None and max(-part.low, part.high) <= EXPONENT
        return _Part(part.direction, zero, None) if bounded else None
    if operation == "sqrt":
        if part.low is None or part.low < 0:
            return None
        return _Part(part.direction, min(part.low, one), None if part.high is None else max(part.high, one))
    if part.low is None or part.low <= 0:
        return None
    above, below = part.low >= 1, part.high is not None and part.high <= 1
    return _Part(part.direction, zero if above else None, zero if below else None)
