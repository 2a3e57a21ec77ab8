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
from trackperm.tables.column_types import ColumnType

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
        Columns whose values are decimals. A decimal expression of such columns alone is computed in integers
        and rounded once, so that rounding errors of its parts, as in ``(0.3 - 0.1) ** 2``, do not matter.

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
    if not is_decimal or not decimals or isinstance(expression.tree, Name):
        return values
    return _rounded_once(expression, columns, types, located, functions, decimals, values)


def _rounded_once(
    expression: Expression,
    columns: Mapping[str, str],
    types: Mapping[str, ColumnType],
    located: Callable[[str], str],
    functions: Functions,
    decimals: Mapping[str, Decimals],
    in_floats: FrameExpression,
) -> FrameExpression:
    """Compute a decimal expression in integers, where all its decimal columns are decimals.

    It is `in_floats` where integers leave 53 bits, and everywhere if a column is not of decimals.
    """
    read = {columns[node.full] for node in expression.names}
    lacking = {name for name in read if types[name] is ColumnType.DECIMAL} - decimals.keys()
    if lacking or any(isinstance(node, Call) and node.function in COUNTERS for node in expression.nodes):
        return in_floats
    scales = {name: decimals[name].scale for name in read & decimals.keys()}
    whole, unit = in_units(expression, lambda node: Fraction(1, scales.get(columns[node.full], 1)))
    compiler = _Compiler(whole, columns, types, located, functions, decimals)
    part = compiler.limited(compiler.integer(compiler.compile(whole.tree)), _FLOAT_EXACT)
    if part.type is not ColumnType.INTEGER or max(unit.numerator, unit.denominator) > _FLOAT_EXACT:
        return in_floats
    values = part.values.cast(functions.Float64)
    if unit.numerator != 1:
        values = values * functions.lit(float(unit.numerator), functions.Float64)
    if unit.denominator != 1:
        values = values / functions.lit(float(unit.denominator), functions.Float64)
    return values if part.valid is None else functions.when(part.valid).then(values).otherwise(in_floats)


@dataclass(frozen=True)
class Decimals:
    """Values of a column that are all decimals.

    Attributes
    ----------
    scale : int
        Power of ten of which all values are multiples of the inverse.
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
        return _Part(whole, found, 2**63)

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
