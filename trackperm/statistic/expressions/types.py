"""Static types of expressions, checked before any data are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from trackperm.errors import SpecError
from trackperm.messages import did_you_mean, listed
from trackperm.statistic.counters import COUNTERS
from trackperm.statistic.expressions.tree import (
    COMPARISONS,
    IRRATIONAL,
    Binary,
    Call,
    Expression,
    Literal,
    Name,
    Node,
    Unary,
    children,
    walk,
    written,
)
from trackperm.tables.columns.types import LISTS, ColumnType

MAX_DEGREE = 32  # of products and powers: beyond it, expansions have too many terms
MAX_INTEGER = 2**63 - 1
MAX_EXPANSION = 10_000  # parts of a comparison of texts, which is compiled to all pairs of them

_NUMBERS = (ColumnType.INTEGER, ColumnType.DECIMAL, ColumnType.BOOLEAN)


def literal_type(value: object) -> ColumnType:
    """Return the type of a literal's value."""
    types = {bool: ColumnType.BOOLEAN, int: ColumnType.INTEGER, str: ColumnType.TEXT}
    return types.get(type(value), ColumnType.DECIMAL)


def constant_integer(node: Node) -> int | None:
    """Return the value of an integer literal, perhaps with a sign; None for other nodes."""
    if isinstance(node, Unary) and node.operator in ("-", "+"):
        value = constant_integer(node.operand)
        return None if value is None else value if node.operator == "+" else -value
    if isinstance(node, Literal) and literal_type(node.value) is ColumnType.INTEGER:
        return int(node.value)
    return None


def computed_names(expressions: Iterable[Expression]) -> set[str]:
    """Return the names that expressions compute with, and that no comparison or counter reads."""
    nodes = [node for expression in expressions for node in expression.nodes]
    readers = [
        node
        for node in nodes
        if (isinstance(node, Binary) and node.operator in COMPARISONS)
        or (isinstance(node, Call) and node.function in COUNTERS)
    ]
    others = {part.full for node in readers for part in walk(node) if isinstance(part, Name)}
    return {node.full for node in nodes if isinstance(node, Name)} - others


NameType = Callable[[Expression, Name], ColumnType | None]


@dataclass(frozen=True)
class Checker:
    """Rules for the types of one kind of expression.

    Attributes
    ----------
    integers : bool
        Whether only operations that integers also have are allowed (counts and g), or any real function
        (score and h).
    name_type : callable
        Returns the type of a name; None where only the data determine it, which then matches every type.
        Raises SpecError for an unknown name.
    noun : str
        Noun for a name in messages: ``column`` or ``count``.
    column : callable
        Returns the column of a name, where it differs from the name.
    decimals : bool
        Whether the result may be a decimal although `integers` is set.
    totals : bool
        Whether `total`, the sum over classes, may be used.
    """

    integers: bool
    name_type: NameType
    noun: str = "count"
    column: Callable[[str], str] = str
    decimals: bool = False
    totals: bool = False

    def result(self, expression: Expression, what: str) -> ColumnType | None:
        """Check a whole expression and return its type.

        It refuses types that do not match, a degree that is too high, and a result that is not a number, or
        not an integer where it has to be one.
        """
        found = self._type(expression, expression.tree)
        self._degree(expression, expression.tree)
        tree = expression.tree
        if found is ColumnType.TEXT:
            name = tree.full if isinstance(tree, Name) else "passed"
            hint = f"write a comparison, such as `{name} == 'True'`: it counts 1 for each row where it holds."
            raise expression.error(tree, f"{what} is {_a(found)}, not a number", hint=hint)
        if self.integers and not self.decimals and found is ColumnType.DECIMAL:
            hint = "compare it, as in `score > 0.5`, or log an integer in a smaller unit."
            raise expression.error(tree, f"{what} is {_a(found)}, not an integer", hint=hint)
        return found

    def describe(self, expression: Expression, node: Node) -> str:
        """Return a phrase for a node, such as ``text column `prediction```."""
        found = self._type(expression, node)
        kind = f"{found.value} " if found is not None else ""
        match node:
            case Name():
                return self._named(node, found)
            case Literal(parameter=str(name)):
                value = float(node.value) if isinstance(node.value, Fraction) else node.value
                return f"{kind}parameter `{name}` ({value!r})"
            case Literal():
                return f"{kind}`{written(node)}`"
        text = written(node)
        return f"{kind}`{text if len(text) <= 40 else text[:37] + '...'}`"

    def _type(self, expression: Expression, node: Node) -> ColumnType | None:
        match node:
            case Literal():
                if isinstance(node.value, int) and self.integers and abs(node.value) > MAX_INTEGER:
                    raise expression.error(node, "an integer of more than 64 bits")
                return literal_type(node.value)
            case Name():
                return self._scalar(expression, node)
            case Unary(operator="-" | "+"):
                return self._number(expression, node, (node.operand,))
            case Unary():
                return self._condition(expression, node, (node.operand,))
            case Binary(operator="&" | "|" | "and" | "or"):
                return self._condition(expression, node, (node.left, node.right))
            case Binary():
                if node.operator in COMPARISONS:
                    return self._comparison(expression, node)
                return self._arithmetic(expression, node)
            case Call(function="where"):
                return self._where(expression, node)
            case Call() if node.function in COUNTERS:
                return self._counter(expression, node)
            case Call(function="total") if not self.totals:
                hint = "it adds up the values of all classes, as in `score: total(tp) / n`."
                raise expression.error(node, "`total` can only be used in `score`, with `classes`", hint=hint)
            case Call(function="total"):
                for inner in children(node.arguments[0]):
                    if any(isinstance(part, Call) and part.function == "total" for part in walk(inner)):
                        raise expression.error(node, "`total` cannot be used within `total`")
                return self._number(expression, node, node.arguments)
            case Call():
                if self.integers and node.function in IRRATIONAL:
                    hint = f"use `{node.function}` in `score` or `h`."
                    raise expression.error(node, f"`{node.function}` does not give integers", hint=hint)
                found = self._number(expression, node, node.arguments)
                return ColumnType.DECIMAL if node.function in IRRATIONAL else found
        raise TypeError(f"not a part of an expression: {node!r}")

    def _scalar(self, expression: Expression, node: Name) -> ColumnType | None:
        found = self.name_type(expression, node)
        if found in LISTS:
            column = self._named(node, found)
            hint = "`token_matches(prediction, label)` is one."
            raise expression.error(node, f"{column} can only be read by a counter", hint=hint)
        return found

    def _counter(self, expression: Expression, node: Call) -> ColumnType:
        if self.noun != "column":
            hint = "define a count with it, and use the count here."
            raise expression.error(node, f"`{node.function}` can only be used in `counts`", hint=hint)
        counter = COUNTERS[node.function]
        types = []
        for argument, allowed in zip(node.arguments, counter.columns, strict=False):
            if not isinstance(argument, Name):
                text = self.describe(expression, argument)
                raise expression.error(argument, f"`{node.function}` takes a column, not {text}")
            found = self.name_type(expression, argument)
            if found is not None and found not in allowed:
                wanted = " or ".join(sorted(type_.value for type_ in allowed))
                message = f"`{node.function}` takes {wanted}, not {self._named(argument, found)}"
                raise expression.error(argument, message)
            types.append(found)
        if counter.looks_up and getattr(node.arguments[len(types) - 1], "full", "") != "label":
            hint = "labels are the same in both runs, so that swaps keep their numbers."
            message = f"`{node.function}` looks up values in `label` alone"
            raise expression.error(node.arguments[len(types) - 1], message, hint=hint)
        are_items = all(ColumnType.INTEGER_LIST in allowed for allowed in counter.columns)
        mixed = (are_items and ColumnType.INTEGER_LIST in types) or counter.looks_up
        if mixed and len(set(types) - {None}) > 1:
            sides = [
                self._named(argument, found)
                for argument, found in zip(node.arguments, types, strict=False)
                if isinstance(argument, Name)
            ]
            hint = "both need the same type."
            if are_items:
                hint = 'both need the same type: write integers as text, as the names in `{"2": 3}` are.'
            raise expression.error(node, " is counted with ".join(sides), hint=hint)
        for i, choice in enumerate(node.arguments[len(counter.columns) :]):
            value = choice.value if isinstance(choice, Literal) else None
            if counter.free is not None and i == 0:
                if value is not None and literal_type(value) is counter.free:
                    continue
                wanted = "text" if counter.free is ColumnType.TEXT else "an integer"
                other = self.describe(expression, choice)
                raise expression.error(choice, f"`{node.function}` takes {wanted} here, not {other}")
            if (type(value), value) not in [(type(known), known) for known in counter.choices]:
                hint = f"it takes {listed([repr(known) for known in counter.choices])}."
                if isinstance(value, str):
                    hint += did_you_mean(value, map(str, counter.choices))
                message = f"`{node.function}` does not know {self.describe(expression, choice)}"
                raise expression.error(choice, message, hint=hint)
        return ColumnType.DECIMAL if counter.decimal else ColumnType.INTEGER

    def _named(self, node: Name, found: ColumnType | None) -> str:
        column = self.column(node.full)
        note = "" if column == node.full else f" (`{node.full}`)"
        kind = f"{found.value} " if found is not None else ""
        return f"{kind}{self.noun} `{column}`{note}"

    def _operator(self, node: Node) -> str:
        return f"`{node.function if isinstance(node, Call) else getattr(node, 'operator', '')}`"

    def _number(self, expression: Expression, node: Node, operands: tuple[Node, ...]) -> ColumnType | None:
        types = [self._type(expression, operand) for operand in operands]
        for operand, found in zip(operands, types, strict=True):
            if found is ColumnType.TEXT:
                message = f"{self._operator(node)} takes numbers, not {self.describe(expression, operand)}"
                raise expression.error(operand, message)
        if ColumnType.DECIMAL in types:
            return ColumnType.DECIMAL
        return None if None in types else ColumnType.INTEGER

    def _condition(self, expression: Expression, node: Node, operands: tuple[Node, ...]) -> ColumnType:
        for operand in operands:
            if self._type(expression, operand) not in (ColumnType.BOOLEAN, None):
                message = f"{self._operator(node)} takes conditions, not {self.describe(expression, operand)}"
                hint = "a condition is a comparison in parentheses, such as `(tp > 0)`."
                raise expression.error(operand, message, hint=hint)
        return ColumnType.BOOLEAN

    def _comparison(self, expression: Expression, node: Binary) -> ColumnType:
        left, right = (self._type(expression, side) for side in (node.left, node.right))
        texts = (left, right).count(ColumnType.TEXT)
        if texts == 1 and left is not None and right is not None:
            sides = [self.describe(expression, side) for side in (node.left, node.right)]
            message = f"{sides[0]} is compared with {sides[1]}"
            raise expression.error(node, message, hint=_comparison_hint(node, left is ColumnType.TEXT))
        if texts and node.operator not in ("==", "!="):
            raise expression.error(node, f"text has no order: `{node.operator}` takes numbers")
        if texts and not self.integers and _expansion(node) > MAX_EXPANSION:
            hint = "choose numbers in place of texts: `where(a > b, 1, 2) == 1`."
            raise expression.error(node, "a comparison of texts that expands too far", hint=hint)
        return ColumnType.BOOLEAN

    def _arithmetic(self, expression: Expression, node: Binary) -> ColumnType | None:
        found = self._number(expression, node, (node.left, node.right))
        operator = node.operator
        if operator == "/":
            if self.integers:
                hint = "divide in `score` or `h`; `//` divides and rounds down."
                raise expression.error(node, "`/` does not give integers", hint=hint)
            if isinstance(node.right, Literal) and node.right.value == 0:
                raise expression.error(node, "a division by zero")
            return ColumnType.DECIMAL
        if operator in ("//", "%"):
            if not self.integers or found is ColumnType.DECIMAL:
                raise expression.error(node, f"`{operator}` is for integers, in counts and `g`")
            if constant_integer(node.right) == 0:
                raise expression.error(node, "a division by zero")
        if operator == "**":
            self._power(expression, node)
        return found

    def _power(self, expression: Expression, node: Binary) -> None:
        exponent = constant_integer(node.right)
        if exponent is None:
            raise expression.error(node.right, "an exponent must be a constant integer")
        if exponent < 0 and self.integers:
            raise expression.error(node.right, "a negative exponent does not give integers")
        if isinstance(node.left, Literal) and node.left.value == 0 and exponent < 0:
            raise expression.error(node, "a division by zero")

    def _where(self, expression: Expression, node: Call) -> ColumnType | None:
        condition, *choices = node.arguments
        self._condition(expression, node, (condition,))
        types = [self._type(expression, choice) for choice in choices]
        if None in types:
            return None
        if types[0] is types[1]:
            return types[0]
        if ColumnType.TEXT in types:
            sides = " and ".join(self.describe(expression, choice) for choice in choices)
            raise expression.error(node, f"`where` chooses between {sides}, which are of different types")
        return ColumnType.DECIMAL if ColumnType.DECIMAL in types else ColumnType.INTEGER

    def _degree(self, expression: Expression, node: Node) -> int:
        """Bound the degree to which products and powers expand."""
        degrees = [self._degree(expression, child) for child in children(node)] or [1]
        if isinstance(node, Binary) and node.operator == "**":
            degree = degrees[0] * max(1, abs(constant_integer(node.right) or 0))
        elif isinstance(node, Binary) and node.operator in ("*", "/"):
            degree = sum(degrees)
        else:
            degree = max(degrees)
        if degree > MAX_DEGREE:
            raise expression.error(node, f"products and powers of degree {degree}; the limit is {MAX_DEGREE}")
        return degree


def _expansion(node: Node) -> int:
    """Bound the number of parts of a real function that compares texts in all pairs."""
    sizes = [_expansion(child) for child in children(node)]
    texts = isinstance(node, Binary) and node.operator in ("==", "!=")
    return math.prod(sizes) if texts else 1 + sum(sizes)


def _a(found: ColumnType) -> str:
    return "text" if found is ColumnType.TEXT else f"a {found.value}"


def _comparison_hint(node: Binary, text_on_left: bool) -> str:
    sides = (node.left, node.right) if text_on_left else (node.right, node.left)
    for side, wanted, value in zip(sides, ("a number", "a text"), ("1", "yes"), strict=True):
        if isinstance(side, Literal) and side.parameter:
            name = side.parameter
            hint = f"set the parameter `{name}` to {wanted}: `--set {name}={value}`, for example."
            return f"{hint} All values that it is compared with need one type."
        if isinstance(side, Literal):
            quotes = "without" if wanted == "a number" else "in"
            return f"write {wanted}, {quotes} quotes."
    return "both sides must be text, or both numbers; spaces and words such as `N/A` turn a column into text."


def no_column(expression: Expression, node: Name, column: str, columns: Iterable[str]) -> SpecError:
    """Return the error that an expression reads a column which is not among those of the data."""
    known = list(columns)
    hint = f"the columns are {listed(known)}.{did_you_mean(column, known)}"
    return expression.error(node, f"the data has no column `{column}`", hint=hint)


def of_columns(
    columns: Mapping[str, str], types: Mapping[str, ColumnType]
) -> tuple[NameType, Callable[[str], str]]:
    """Return functions that find the type and the column of a name, which may have the scope of a side.

    The first raises SpecError if the data lack the column.
    """

    def column_type(expression: Expression, node: Name) -> ColumnType:
        column = columns[node.name]
        if column not in types:
            raise no_column(expression, node, column, types)
        return types[column]

    return column_type, lambda name: columns.get(name.rpartition(".")[2], name)
