"""Random expressions that are of the right types, and what exact arithmetic makes of them.

An expression is a tuple: ``("name", "i")``, ``("number", 3)``, ``("text", "a")``, or an operator or a
function and its operands. `Exact` evaluates it with Python's integers and fractions, and shares nothing with
trackperm.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

Tree = tuple[Any, ...]
Number = int | Fraction | float | bool | str

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
INTEGERS = (0, 1, 2, 3, 7, 10, 2**31 - 1, 2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 1)
EXTREME = (
    0,
    1,
    -1,
    2,
    3,
    255,
    -(2**31),
    2**31,
    2**53 + 1,
    -(2**53) - 1,
    2**62,
    -(2**62),
    2**63 - 1,
    -(2**63),
)


class Provider(Protocol):
    """What is taken of atheris' FuzzedDataProvider: it gives the lowest value once the input is used up."""

    def ConsumeIntInRange(self, low: int, high: int) -> int: ...  # noqa: N802


@dataclass(frozen=True)
class Grammar:
    """Random trees from the bytes of an input.

    Attributes
    ----------
    data : Provider
        The input.
    names : sequence of str
        Names of numbers.
    operators : sequence of str
        Of two numbers.
    decimals : sequence of str
        Numbers that are not integers.
    flags, texts : sequence of str
        Names of conditions and of texts.
    conditional : bool
        Whether there are conditions, extremes and absolute values.
    """

    data: Provider
    names: Sequence[str]
    operators: Sequence[str] = ("+", "-", "*", "//", "%")
    decimals: Sequence[str] = ()
    flags: Sequence[str] = ()
    texts: Sequence[str] = ()
    exponents: tuple[int, int] = (0, 4)
    conditional: bool = True

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.data.ConsumeIntInRange(0, len(options) - 1)]

    def number(self, depth: int = 4) -> Tree:
        kinds = ["name", "integer"]
        if self.decimals:
            kinds.append("decimal")
        if depth:
            kinds += ["operator", "operator", "operator", "power", "-"]
            kinds += ["abs", "extreme", "where", "condition"] * self.conditional
        match self.pick(kinds):
            case "name":
                return ("name", self.pick(self.names))
            case "integer":
                return ("number", self.pick(INTEGERS))
            case "decimal":
                return ("number", Fraction(self.pick(self.decimals)))
            case "operator":
                return (self.pick(self.operators), self.number(depth - 1), self.number(depth - 1))
            case "power":
                return ("**", self.number(depth - 1), self.data.ConsumeIntInRange(*self.exponents))
            case "extreme":
                many = [self.number(depth - 1) for _ in range(self.data.ConsumeIntInRange(2, 3))]
                return (self.pick(["min", "max"]), *many)
            case "where":
                return ("where", self.condition(depth - 1), self.number(depth - 1), self.number(depth - 1))
            case "condition":
                return self.condition(depth - 1)
            case function:
                return (function, self.number(depth - 1))

    def condition(self, depth: int) -> Tree:
        kinds = ["compared"]
        if self.flags:
            kinds.append("flag")
        if self.texts:
            kinds.append("text")
        if depth:
            kinds += ["joined", "not", "where"]
        match self.pick(kinds):
            case "flag":
                return ("name", self.pick(self.flags))
            case "text":
                return (self.pick(["==", "!="]), self.text(depth), self.text(depth))
            case "joined":
                sides = self.condition(depth - 1), self.condition(depth - 1)
                return (self.pick(["&", "|", "and", "or"]), *sides)
            case "not":
                return (self.pick(["~", "not"]), self.condition(depth - 1))
            case "where":
                return ("where", *(self.condition(depth - 1) for _ in range(3)))
        below = max(depth - 1, 0)
        return (self.pick(list(COMPARISONS)), self.number(below), self.number(below))

    def text(self, depth: int) -> Tree:
        match self.pick(["name", "text"] + ["where"] * (depth > 0)):
            case "name":
                return ("name", self.pick(self.texts))
            case "text":
                return ("text", self.pick(["", "1", "01", "1.0", "a", "Ä", "it's", "\\", "true", "null"]))
        return ("where", self.condition(depth - 1), self.text(depth - 1), self.text(depth - 1))


def written(tree: Tree) -> str:
    """Write a tree in the language, every part in parentheses."""
    match tree:
        case ("name", name):
            return str(name)
        case ("number", Fraction() as value):
            return (
                f"({value.numerator} / {value.denominator})" if 10**9 % value.denominator else _decimal(value)
            )
        case ("number", value):
            return str(value)
        case ("text", text):
            return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case ("**", base, exponent):
            return f"({written(base)} ** {exponent})"
        case (("-" | "~" | "not") as sign, operand):
            return f"({sign} {written(operand)})"
        case (("abs" | "min" | "max" | "where") as function, *operands):
            return f"{function}({', '.join(map(written, operands))})"
        case (sign, left, right):
            return f"({written(left)} {sign} {written(right)})"
    raise TypeError(tree)


def _decimal(value: Fraction) -> str:
    digits = f"{value.numerator * 10**9 // value.denominator:010d}"
    return f"{digits[:-9]}.{digits[-9:]}"


class NoValueError(Exception):
    """There is no value."""


@dataclass
class Exact:
    """Evaluation at one point.

    Attributes
    ----------
    values : mapping
        Of names.
    zero_over_zero : Fraction or None
        What 0/0 is.
    real : bool
        Whether the 0th power is 1 of what has no value, too, as in scores and h.
    peak : Fraction
        The largest absolute value of any part that was evaluated.
    singular : bool
        Whether something was divided by zero.
    """

    values: Mapping[str, Number]
    zero_over_zero: Fraction | None = None
    real: bool = False
    peak: Any = 0
    singular: bool = False

    def __call__(self, tree: Tree) -> Any:
        value = self.evaluated(tree)
        if not isinstance(value, str):
            self.peak = max(self.peak, abs(value))
        return value

    def evaluated(self, tree: Tree) -> Any:
        match tree:
            case ("name", name):
                return self.values[name]
            case ("number" | "text", value):
                return value
            case ("**", _, 0) if self.real:
                return 1
            case ("**", base, exponent):
                return self.power(self(base), exponent)
            case ("-", operand):
                return -self(operand)
            case ("~" | "not", operand):
                return not self(operand)
            case ("abs", operand):
                return abs(self(operand))
            case (("min" | "max") as function, *operands):
                return (min if function == "min" else max)([self(operand) for operand in operands])
            case ("where", condition, yes, no):
                return self(yes) if self(condition) else self(no)
            case ("and", left, right):
                return bool(self(left)) and bool(self(right))
            case ("or", left, right):
                return bool(self(left)) or bool(self(right))
        sign, left, right = tree[0], self(tree[1]), self(tree[2])
        if sign in COMPARISONS:
            return COMPARISONS[sign](left, right)
        match sign:
            case "&":
                return left and right
            case "|":
                return left or right
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
        if right == 0:
            self.singular = True
            if sign == "/" and left == 0 and self.zero_over_zero is not None:
                return self.zero_over_zero
            raise NoValueError
        if sign == "/":
            return Fraction(left) / Fraction(right)
        return left // right if sign == "//" else left % right

    def power(self, base: Any, exponent: int) -> Any:
        if exponent >= 0:
            return base**exponent
        if base == 0:
            self.singular = True
            raise NoValueError
        return Fraction(base) ** exponent


def value(
    tree: Tree, values: Mapping[str, Number], zero_over_zero: Fraction | None = None, *, real: bool = False
) -> Any:
    """Return the value of a tree, or None where there is none."""
    try:
        return Exact(values, zero_over_zero, real)(tree)
    except NoValueError:
        return None
