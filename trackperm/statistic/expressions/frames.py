"""Counts as data frame expressions with one meaning on polars, pandas, pyarrow, DuckDB and Spark.

Engines wrap small integers, compare text with numbers, round integers to floats and divide by zero each in
their own way. Every column is therefore cast first, arithmetic is 64-bit, and operations that could leave 64
bits or divide by zero are guarded: such a count becomes NaN if counts are decimals, else
:data:`OUT_OF_RANGE`, which no valid count is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from trackperm.errors import SpecError
from trackperm.statistic.counters import COUNTERS
from trackperm.statistic.expressions.functions import NARWHALS, FrameExpression, Functions
from trackperm.statistic.expressions.tree import (
    COMPARISONS,
    Binary,
    Call,
    Expression,
    Literal,
    Name,
    Node,
    Unary,
    written,
)
from trackperm.statistic.expressions.types import constant_integer, literal_type
from trackperm.statistic.expressions.units import in_units
from trackperm.tables.columns.types import ColumnType

OUT_OF_RANGE = 2**62
"""Value of a count whose arithmetic leaves 64 bits, divides by zero or meets NaN."""

MAX_COST = 20_000  # nodes of a guarded expression, which bounds the time that engines need to compile it
_LARGEST_COUNT = 2**32  # bound of a counter, as lists and texts are shorter
_FLOAT_EXACT = 2**53  # up to which every integer is a float
_LARGEST_DIVISOR = 2**51  # up to which division in float64 can be corrected, as shown below
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class _Part:
    """A compiled node: values of one type, and the condition under which they are valid."""

    values: FrameExpression
    type: ColumnType
    bound: int = 0  # of the absolute value, for integers
    valid: FrameExpression | None = None  # None if always valid
    cost: int = 1
    constant: bool = False  # whether it reads no column


def count_expression(
    expression: Expression,
    columns: Mapping[str, str],
    types: Mapping[str, ColumnType],
    located: Callable[[str], str] = str,
    functions: Functions = NARWHALS,
    decimals: Mapping[str, Decimals] | None = None,
) -> FrameExpression:
    """Compile a checked expression to a data frame expression of int64, or of float64 for decimals.

    It is for rows with a value in every column, and reads the values of a counter from the column
    :func:`counter_column` of its call.

    Parameters
    ----------
    columns, types : mapping
        Column of every name, and type of every column.
    located : callable
        Maps the name of a column, or of a counter's column, to the column that is read.
    functions : Functions
        Functions that build the expression.
    decimals : mapping of str to Decimals, optional
        Columns whose values are decimals or integers in both runs. An expression whose decimal columns are
        all among them is computed in integers, and a decimal is rounded at the end, so that rounding errors
        of its parts, as in ``(0.3 - 0.1) ** 2`` and ``0.1 + 0.2 <= 0.3``, do not matter.

    Raises
    ------
    SpecError
        If the expression is too large with all guards.
    """
    compiler = _Compiler(expression, columns, types, located, functions)
    part = compiler.compile(expression.tree)
    values = compiler.integer(part).values
    is_decimal = part.type is ColumnType.DECIMAL
    if part.valid is not None:
        invalid = (
            functions.lit(float("nan"), functions.Float64) if is_decimal else compiler.whole(OUT_OF_RANGE)
        )
        values = functions.when(part.valid).then(values).otherwise(invalid)
    found = _in_integers(expression, columns, types, located, functions, decimals or {})
    if found is None:
        return values
    part, unit = found
    exact = _times_unit(part.values, unit, functions) if is_decimal else part.values
    return exact if part.valid is None else functions.when(part.valid).then(exact).otherwise(values)


def is_computed_in_floats(
    expression: Expression,
    columns: Mapping[str, str],
    types: Mapping[str, ColumnType],
    decimals: Mapping[str, Decimals],
) -> bool:
    """Whether an expression computes with decimal columns, and does so in floats if these are `decimals`."""
    if not decimal_columns(expression, columns, types):
        return False
    return _in_integers(expression, columns, types, str, NARWHALS, decimals) is None


def decimal_columns(
    expression: Expression, columns: Mapping[str, str], types: Mapping[str, ColumnType]
) -> set[str]:
    """Return the decimal columns with which an expression computes or which it compares."""
    if isinstance(expression.tree, Name):
        return set()
    read = {columns[node.full] for node in expression.names}
    return {name for name in read if types.get(name) is ColumnType.DECIMAL}


def may_be_in_integers(expression: Expression) -> bool:
    """Whether an expression of decimals has no part that is not a decimal, such as a quotient."""
    return not any(
        (isinstance(node, Binary) and node.operator == "/")
        or (isinstance(node, Call) and node.function in COUNTERS and COUNTERS[node.function].decimal)
        for node in expression.nodes
    )


def _in_integers(
    expression: Expression,
    columns: Mapping[str, str],
    types: Mapping[str, ColumnType],
    located: Callable[[str], str],
    functions: Functions,
    decimals: Mapping[str, Decimals],
) -> tuple[_Part, Fraction] | None:
    """Compute an expression in integers if all its decimal columns are decimals; return it with its unit.

    It is None if integers might leave 62 bits on some example: the rows of both runs are all computed in
    integers or all in floats, since a row in integers and an equal one in floats would differ.
    """
    read = decimal_columns(expression, columns, types)
    if not read or not read <= decimals.keys() or not may_be_in_integers(expression):
        return None
    scales = {name: decimals[name].scale for name in read}
    whole, unit = in_units(expression, lambda node: Fraction(1, scales.get(columns[node.full], 1)))
    compiler = _Compiler(whole, columns, types, located, functions, decimals)
    try:
        part = compiler.integer(compiler.compile(whole.tree))
    except SpecError:
        return None
    part = compiler.limited(part, OUT_OF_RANGE)
    is_exact = all(int(float(each)) == each for each in (unit.numerator, unit.denominator))
    return None if compiler.has_limits or not is_exact else (part, unit)


def _times_unit(values: FrameExpression, unit: Fraction, functions: Functions) -> FrameExpression:
    """Convert integers to decimals of a unit whose two parts floats hold."""
    values = values.cast(functions.Float64)
    if unit.numerator != 1:
        values = values * functions.lit(float(unit.numerator), functions.Float64)
    if unit.denominator != 1:
        zero, denominator = (functions.lit(x, functions.Float64) for x in (0.0, float(unit.denominator)))
        # By a constant, polars multiplies with the rounded reciprocal, and is off in the last digit.
        values = values / (values * zero + denominator)
    return values


@dataclass(frozen=True)
class Decimals:
    """Values of a column of both runs that are all decimals, or integers.

    Attributes
    ----------
    scale : int
        Power of ten of which all values are multiples of the inverse; 1 for integers.
    largest : int
        Bound on the absolute value, in these multiples.
    """

    scale: int
    largest: int


def counter_column(call: Call) -> str:
    """Return the name of the column from which expressions read the values of a counter."""
    return f"trackperm.{written(call)}"


def _both(*conditions: FrameExpression | None) -> FrameExpression | None:
    found = [condition for condition in conditions if condition is not None]
    if not found:
        return None
    joined = found[0]
    for condition in found[1:]:
        joined = joined & condition
    return joined


def _ordered(parts: list[_Part]) -> list[_Part]:
    """Mark decimals as valid only where they are not NaN, which engines order differently."""
    return [
        replace(part, valid=_both(part.valid, ~part.values.is_nan()), cost=2 * part.cost)
        if part.type is ColumnType.DECIMAL
        else part
        for part in parts
    ]


class _Compiler:
    def __init__(
        self,
        expression: Expression,
        columns: Mapping[str, str],
        types: Mapping[str, ColumnType],
        located: Callable[[str], str],
        functions: Functions,
        decimals: Mapping[str, Decimals] | None = None,
    ) -> None:
        self.decimals = decimals or {}
        self.has_limits = False  # whether values beyond a limit are invalid
        self.located = located
        self.functions = functions
        self.expression = expression
        self.columns = columns
        self.types = types

    def compile(self, node: Node) -> _Part:
        part = self._compile(node)
        if part.cost > MAX_COST:
            hint = "split it into several counts, or compute it before logging."
            raise self.expression.error(node, "an expression that expands too far", hint=hint)
        return part

    def _compile(self, node: Node) -> _Part:
        match node:
            case Literal():
                return self.literal(node)
            case Name():
                return self.column(self.columns[node.full])
            case Unary():
                return self.unary(node)
            case Binary(operator="&" | "|" | "and" | "or"):
                return self.logic(node)
            case Binary():
                sides = [self.compile(node.left), self.compile(node.right)]
                if node.operator in COMPARISONS:
                    return self.comparison(node.operator, sides)
                return self.arithmetic(node, self.numbers(*sides))
            case Call():
                return self.call(node)
        raise TypeError(f"not a part of an expression: {node!r}")

    def literal(self, node: Literal) -> _Part:
        found = literal_type(node.value)
        if found is ColumnType.TEXT:
            return _Part(self.functions.lit(str(node.value), self.functions.String), found, constant=True)
        if found is ColumnType.BOOLEAN:
            return _Part(self.functions.lit(bool(node.value)), found, 1, constant=True)
        if found is ColumnType.DECIMAL:
            return _Part(self.functions.lit(float(node.value), self.functions.Float64), found, constant=True)
        return _Part(self.whole(int(node.value)), found, abs(int(node.value)), constant=True)

    def column(self, name: str) -> _Part:
        found = self.types[name]
        values = self.functions.col(self.located(name))
        if found is ColumnType.TEXT:
            return _Part(values.cast(self.functions.String), found)
        if found is ColumnType.DECIMAL and name in self.decimals:
            decimals = self.decimals[name]
            scaled = values.cast(self.functions.Float64) * self.functions.lit(float(decimals.scale))
            whole = scaled.round(0).cast(self.functions.Int64)
            return _Part(whole, ColumnType.INTEGER, decimals.largest)
        if found is ColumnType.DECIMAL:
            return _Part(values.cast(self.functions.Float64), found)
        whole = values.cast(self.functions.Int64)
        if found is ColumnType.BOOLEAN:
            return _Part(whole != self.whole(0), found, 1)
        return _Part(whole, found, self.decimals[name].largest if name in self.decimals else 2**63)

    def unary(self, node: Unary) -> _Part:
        operand = self.compile(node.operand)
        if node.operator in ("~", "not"):
            return replace(operand, values=~operand.values)
        (operand,) = self.numbers(operand)
        if node.operator == "+":
            return operand
        if operand.type is ColumnType.DECIMAL:
            return replace(operand, values=-operand.values)
        operand = self.limited(operand, OUT_OF_RANGE)
        return replace(operand, values=self.whole(0) - operand.values)

    def logic(self, node: Binary) -> _Part:
        left, right = self.compile(node.left), self.compile(node.right)
        conjunction = node.operator in ("&", "and")
        values = left.values & right.values if conjunction else left.values | right.values
        valid = right.valid
        if node.operator in ("and", "or") and valid is not None:  # the right side may be skipped
            valid = valid | (~left.values if conjunction else left.values)
        part = _joined(values, ColumnType.BOOLEAN, 1, left, right)
        return replace(part, valid=_both(left.valid, valid), cost=part.cost + left.cost)

    def comparison(self, sign: str, sides: list[_Part]) -> _Part:
        if sides[0].type is not ColumnType.TEXT:
            sides = _ordered(self.numbers(*sides))
        left, right = sides
        if left.constant and not right.constant:
            # Polars 2.1 may fail on `literal == when(...)`, depending on the data; the reverse is safe.
            left, right, sign = right, left, _MIRRORED.get(sign, sign)
        values = COMPARISONS[sign](left.values, right.values)
        return _joined(values, ColumnType.BOOLEAN, 1, left, right)

    def arithmetic(self, node: Binary, sides: list[_Part]) -> _Part:
        left, right = sides
        if node.operator == "**":
            return self.power(left, constant_integer(node.right) or 0)
        if node.operator == "*":
            return self.product(left, right)
        if node.operator in ("//", "%"):
            return self.division(node.operator, left, right)
        if node.operator == "/":
            return self.quotient(left, right)
        values = operator.add if node.operator == "+" else operator.sub
        if left.type is ColumnType.DECIMAL:
            return _joined(values(left.values, right.values), left.type, 0, left, right)
        left, right = (self.limited(side, OUT_OF_RANGE // 2) for side in (left, right))
        bound = left.bound + right.bound
        return _joined(values(left.values, right.values), left.type, bound, left, right)

    def power(self, base: _Part, exponent: int) -> _Part:
        if exponent == 0:
            return _joined(self.whole(1), ColumnType.INTEGER, 1, base)
        result = base
        for _ in range(exponent - 1):
            result = self.product(result, base)
        return result

    def quotient(self, left: _Part, right: _Part) -> _Part:
        left, right = self.decimal(left), self.decimal(right)
        zero = right.values == self.functions.lit(0.0, self.functions.Float64)
        one = self.functions.lit(1.0, self.functions.Float64)
        divisor = self.functions.when(zero).then(one).otherwise(right.values)
        part = _joined(left.values / divisor, ColumnType.DECIMAL, 0, left, right)
        return replace(part, valid=_both(part.valid, ~zero))

    def division(self, sign: str, left: _Part, right: _Part) -> _Part:
        left, right = self.limited(left, OUT_OF_RANGE), self.limited(right, _LARGEST_DIVISOR)
        zero = right.values == self.whole(0)
        divisor = self.functions.when(zero).then(self.whole(1)).otherwise(right.values)
        # Spark divides in float64, with an error so small that the remainder is at most |divisor| + 2^11 and
        # is divided exactly: floor(fl(a / b)) = floor(a / b) for |a|, |b| <= 2^52.
        values = self.floored(left.values, divisor)
        cost = 2 * left.cost + 5 * right.cost
        if left.bound > _FLOAT_EXACT // 2:
            values = values + self.floored(left.values - values * divisor, divisor)
            cost *= 2
        bound = left.bound
        if sign == "%":
            values = left.values - values * divisor
            bound = right.bound
        part = _joined(values, ColumnType.INTEGER, bound, left, right)
        return replace(part, valid=_both(part.valid, ~zero), cost=cost)

    def call(self, node: Call) -> _Part:
        if node.function in COUNTERS:
            values = self.functions.col(self.located(counter_column(node)))
            decimal = COUNTERS[node.function].decimal
            return _Part(values, ColumnType.DECIMAL if decimal else ColumnType.INTEGER, _LARGEST_COUNT)
        parts = [self.compile(argument) for argument in node.arguments]
        if node.function == "where":
            return self.where(*parts)
        parts = _ordered(self.numbers(*parts))
        if node.function == "abs":
            part = parts[0] if parts[0].type is ColumnType.DECIMAL else self.limited(parts[0], OUT_OF_RANGE)
            return replace(part, values=part.values.abs())
        extreme = self.functions.min_horizontal if node.function == "min" else self.functions.max_horizontal
        bound = max(part.bound for part in parts)
        return _joined(extreme(*(part.values for part in parts)), parts[0].type, bound, *parts)

    def where(self, condition: _Part, yes: _Part, no: _Part) -> _Part:
        if yes.type is not no.type:
            yes, no = self.numbers(yes, no)
        values = self.functions.when(condition.values).then(yes.values).otherwise(no.values)
        part = _joined(values, yes.type, max(yes.bound, no.bound), condition, yes, no)
        # Only the chosen side has to be valid.
        sides = (
            None if yes.valid is None else yes.valid | ~condition.values,
            None if no.valid is None else no.valid | condition.values,
        )
        return replace(part, valid=_both(condition.valid, *sides), cost=part.cost + 2 * condition.cost)

    def product(self, left: _Part, right: _Part) -> _Part:
        if left.type is ColumnType.DECIMAL:
            return _joined(left.values * right.values, left.type, 0, left, right)
        if left.bound * right.bound > OUT_OF_RANGE:
            small, large = sorted((left, right), key=lambda part: part.bound)
            left = self.limited(small, 2**31)
            right = self.limited(large, OUT_OF_RANGE // left.bound)
        return _joined(left.values * right.values, left.type, left.bound * right.bound, left, right)

    def whole(self, value: int) -> FrameExpression:
        return self.functions.lit(value, self.functions.Int64)

    def floored(self, dividend: FrameExpression, divisor: FrameExpression) -> FrameExpression:
        return (dividend // divisor).cast(self.functions.Int64)

    def integer(self, part: _Part) -> _Part:
        """Count booleans as 1 and 0."""
        if part.type is not ColumnType.BOOLEAN:
            return part
        return replace(part, values=part.values.cast(self.functions.Int64), type=ColumnType.INTEGER, bound=1)

    def limited(self, part: _Part, limit: int) -> _Part:
        """Trust the part only where its absolute value is at most `limit`; it is 0 elsewhere."""
        if part.bound <= limit:
            return part
        self.has_limits = True
        within = part.values.is_between(self.whole(-limit), self.whole(limit))
        values = self.functions.when(within).then(part.values).otherwise(self.whole(0))
        return replace(part, values=values, bound=limit, valid=_both(part.valid, within), cost=3 * part.cost)

    def decimal(self, part: _Part) -> _Part:
        if part.type is ColumnType.DECIMAL:
            return part
        part = self.limited(self.integer(part), _FLOAT_EXACT)
        return replace(part, values=part.values.cast(self.functions.Float64), type=ColumnType.DECIMAL)

    def numbers(self, *parts: _Part) -> list[_Part]:
        """Bring numbers to one type: integers, or decimals where one of them is."""
        if any(part.type is ColumnType.DECIMAL for part in parts):
            return [self.decimal(part) for part in parts]
        return [self.integer(part) for part in parts]


def _joined(values: FrameExpression, found: ColumnType, bound: int, *parts: _Part) -> _Part:
    valid = _both(*(part.valid for part in parts))
    cost = 1 + sum(part.cost for part in parts)
    return _Part(values, found, bound, valid, cost, all(part.constant for part in parts))
