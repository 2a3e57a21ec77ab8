"""The expression language of specs: tokenizer, Pratt parser and syntax tree.

The language has names, integers, decimals and quoted text; ``+ - * / // % **``, comparisons, ``& | ~``, ``and
or not``; ``abs min max sqrt log exp where`` and counters such as ``token_matches``. Operators bind as in
Python. Expressions that Python reads differently than most people do are refused: ``a == b & c`` without
parentheses, and chains such as ``a < b < c``. Nothing is ever evaluated as Python.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NoReturn

from trackperm.errors import SpecError
from trackperm.messages import did_you_mean, listed
from trackperm.statistic.counters import COUNTERS
from trackperm.statistic.document import MAX_DIGITS, Passage

# Far above any built-in expression; they bound the time of parsing and the depth of recursion.
MAX_LENGTH = 10_000
MAX_NAME = 100
MAX_DEPTH = 100

# Least and greatest number of arguments, by the name of the function.
IRRATIONAL = {"sqrt": (1, 1), "log": (1, 1), "exp": (1, 1)}
FUNCTIONS = {"abs": (1, 1), "min": (2, 64), "max": (2, 64), "where": (3, 3), "total": (1, 1)} | IRRATIONAL
_ARITIES = FUNCTIONS | {name: counter.arity for name, counter in COUNTERS.items()}

Prefixes = Mapping[str, str]
"""The two prefixes of names, with what they stand for."""

RUNS: Prefixes = {"u": "candidate", "v": "baseline"}
EXAMPLES: Prefixes = {"left": "left example of a pair", "right": "right example"}

RESERVED = frozenset({"and", "or", "not"})
COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Node:
    """A part of an expression; `start` and `end` are its position in the text."""

    start: int = field(compare=False, repr=False)
    end: int = field(compare=False, repr=False)


@dataclass(frozen=True)
class Literal(Node):
    """A number, a text or the value of a parameter, with the parameter's name."""

    value: int | Fraction | str | bool
    parameter: str | None = None


@dataclass(frozen=True)
class Name(Node):
    """A name, with its prefix in `scope`: ``u`` or ``v``, in pairs ``left`` or ``right``."""

    name: str
    scope: str = ""

    @property
    def full(self) -> str:
        """The name as it is written."""
        return f"{self.scope}.{self.name}" if self.scope else self.name


@dataclass(frozen=True)
class Unary(Node):
    """``-``, ``+``, ``~`` or ``not`` and its operand."""

    operator: str
    operand: Node


@dataclass(frozen=True)
class Binary(Node):
    """An operator between two operands."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Call(Node):
    """A function and its arguments."""

    function: str
    arguments: tuple[Node, ...]


def children(node: Node) -> tuple[Node, ...]:
    """Return the operands of a node."""
    match node:
        case Unary():
            return (node.operand,)
        case Binary():
            return (node.left, node.right)
        case Call():
            return node.arguments
    return ()


def walk(node: Node) -> Iterator[Node]:
    """Yield all parts of a tree, in the order of the text."""
    pending = [node]
    while pending:
        part = pending.pop()
        yield part
        pending += reversed(children(part))


def size(node: Node) -> int:
    """Return the number of nodes of a tree."""
    return 1 + sum(map(size, children(node)))


def transform(node: Node, change: Callable[[Node], Node]) -> Node:
    """Rebuild a tree from its leaves upwards with `change` applied to every node."""
    match node:
        case Unary():
            node = replace(node, operand=transform(node.operand, change))
        case Binary():
            node = replace(node, left=transform(node.left, change), right=transform(node.right, change))
        case Call():
            node = replace(node, arguments=tuple(transform(item, change) for item in node.arguments))
    return change(node)


def with_names(node: Node, change: Callable[[Name], Node]) -> Node:
    """Rebuild a tree with `change` applied to every name."""
    return transform(node, lambda part: change(part) if isinstance(part, Name) else part)


@dataclass(frozen=True)
class Expression:
    """A parsed expression and the passage from which it was read."""

    tree: Node
    passage: Passage

    @classmethod
    def parse(cls, passage: Passage, prefixes: Prefixes = RUNS) -> Expression:
        """Parse the text of `passage`; the SpecError of a mistake shows its place."""
        return cls(_Parser(passage, prefixes).parse(), passage)

    def error(self, node: Node, message: str, *, hint: str | None = None) -> SpecError:
        """Return an error that points at `node`."""
        return self.passage.error(message, node.start, node.end, hint=hint)

    @property
    def nodes(self) -> Iterator[Node]:
        """All parts of the expression, in the order of the text."""
        return walk(self.tree)

    @property
    def names(self) -> Iterator[Name]:
        """Names in the expression, in the order of the text."""
        return (node for node in self.nodes if isinstance(node, Name))

    def bind(self, parameters: dict[str, int | float | str | bool]) -> Expression:
        """Replace the names of parameters by their values."""

        def change(name: Name) -> Node:
            if name.scope or name.name not in parameters:
                return name
            value = parameters[name.name]
            exact = Fraction(str(value)) if isinstance(value, float) else value
            return Literal(name.start, name.end, exact, name.name)

        return self.with_names(change)

    def with_names(self, change: Callable[[Name], Node]) -> Expression:
        """Return the expression with `change` applied to every name."""
        return replace(self, tree=with_names(self.tree, change))

    def __str__(self) -> str:
        return written(self.tree)


@dataclass(frozen=True)
class _Token:
    kind: str  # number, name, text, operator or end
    text: str
    start: int
    end: int


_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<number>(?:[0-9]|\.[0-9])(?:[eE][-+](?=[0-9])|[\w.])*)
    |(?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)?)
    |(?P<text>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
    |(?P<operator>\*\*|//|==|!=|<=|>=|&&|\|\||[-+*/%<>&|~(),=!^])""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_FOREIGN = {
    "=": "equality is written `==`.",
    "!": "negation is written `~` or `not`.",
    "^": "powers are written `**`.",
    "&&": "write `&` or `and`.",
    "||": "write `|` or `or`.",
    "[": "indexing is not supported; `is_among(name, 'a,b')` looks for a value in a list.",
    "#": "an expression cannot contain comments; put them on lines of their own outside of it.",
    ".": "the only prefixes of names are `u.` and `v.`, without spaces.",
    "'": "the closing quote is missing.",
    '"': "the closing quote is missing.",
}

# How tightly operators bind, as in Python.
_OR, _AND, _NOT, _COMPARISON, _BIT_OR, _BIT_AND, _SUM, _PRODUCT, _SIGN, _POWER = range(1, 11)
_BINDING = (
    {"or": _OR, "and": _AND, "|": _BIT_OR, "&": _BIT_AND, "+": _SUM, "-": _SUM}
    | dict.fromkeys(("*", "/", "//", "%"), _PRODUCT)
    | dict.fromkeys(COMPARISONS, _COMPARISON)
    | {"**": _POWER}
)
_PREFIX = {"not": _NOT, "-": _SIGN, "+": _SIGN, "~": _SIGN}


class _Parser:
    """Parser for one passage, used once: ``_Parser(passage).parse()``."""

    def __init__(self, passage: Passage, prefixes: Prefixes) -> None:
        self.passage = passage
        self.prefixes = prefixes
        if len(passage.text) > MAX_LENGTH:
            self.fail(f"an expression of more than {MAX_LENGTH} characters", 0, len(passage.text))
        self.tokens = list(self.tokenize(passage.text))
        self.position = 0
        self.nesting = 0
        self.grouped: set[tuple[int, int]] = set()  # positions of nodes in parentheses
        self.depths: dict[tuple[int, int], int] = {}  # depth of the tree at a position

    def fail(self, message: str, start: int, end: int, hint: str | None = None) -> NoReturn:
        raise self.passage.error(message, start, end, hint=hint)

    def unexpected(self, token: _Token, wanted: str) -> NoReturn:
        found = "the end" if token.kind == "end" else f"`{token.text}`"
        hint = _FOREIGN.get(token.text)
        self.fail(f"expected {wanted}, found {found}", token.start, token.end, hint)

    def tokenize(self, text: str) -> Iterator[_Token]:
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                self.fail(f"unexpected character {text[at]!r}", at, at + 1, _FOREIGN.get(text[at]))
            kind = str(match.lastgroup)
            if kind == "name" and match[0] in RESERVED:
                kind = "operator"
            if kind != "space":
                yield _Token(kind, match[0], at, match.end())
            at = match.end()
        end = len(text.rstrip())
        yield _Token("end", "", end, end + 1)

    @property
    def token(self) -> _Token:
        return self.tokens[self.position]

    def advance(self) -> _Token:
        token = self.token
        self.position += 1
        return token

    def accept(self, text: str) -> bool:
        if self.token.kind != "operator" or self.token.text != text:
            return False
        self.position += 1
        return True

    def expect(self, text: str, wanted: str) -> _Token:
        token = self.token
        if not self.accept(text):
            self.unexpected(token, wanted)
        return token

    def built(self, node: Node) -> Node:
        """Record the depth of the tree below `node`, and refuse a tree that is too deep."""
        depth = 1 + max((self.depths[child.start, child.end] for child in children(node)), default=0)
        if depth > MAX_DEPTH:
            hint = "define parts of it as counts, or sum columns before logging."
            self.fail(f"an expression of more than {MAX_DEPTH} levels", node.start, node.end, hint)
        self.depths[node.start, node.end] = depth
        return node

    def parse(self) -> Node:
        if self.token.kind == "end":
            self.fail("an empty expression", 0, 1)
        tree = self.expression(0)
        if self.token.kind != "end":
            self.unexpected(self.token, "an operator")
        return tree

    def expression(self, binding: int) -> Node:
        """Parse an expression whose operators bind more tightly than `binding`."""
        self.nesting += 1
        if self.nesting > MAX_DEPTH:
            self.fail(f"nested more than {MAX_DEPTH} levels deep", self.token.start, self.token.end)
        left = self.operand(binding)
        while self.token.kind == "operator" and _BINDING.get(self.token.text, 0) > binding:
            token = self.advance()
            strength = _BINDING[token.text]
            right = self.expression(_SIGN - 1 if token.text == "**" else strength)
            if strength == _COMPARISON:
                self.refuse_trap(token, left, right)
            left = self.built(Binary(left.start, right.end, token.text, left, right))
            if strength == _COMPARISON and self.token.text in COMPARISONS:
                hint = "write `(a < b) & (b < c)` for `a < b < c`."
                self.fail("comparisons cannot be chained", self.token.start, self.token.end, hint)
        self.nesting -= 1
        return left

    def refuse_trap(self, token: _Token, left: Node, right: Node) -> None:
        """Refuse ``a == b & c``, which Python reads as ``a == (b & c)``."""
        for side in (left, right):
            grouped = (side.start, side.end) in self.grouped
            if isinstance(side, Binary) and side.operator in ("&", "|") and not grouped:
                self.fail(
                    f"`{side.operator}` next to `{token.text}` needs parentheses",
                    side.left.end,
                    side.right.start,
                    f"`{side.operator}` binds more tightly than `{token.text}`: "
                    f"write `(a {token.text} b) {side.operator} (c {token.text} d)`.",
                )

    def operand(self, binding: int) -> Node:
        token = self.advance()
        if token.kind == "number":
            return self.built(self.number(token))
        if token.kind == "text":
            return self.built(Literal(token.start, token.end, self.unquoted(token)))
        if token.kind == "name":
            return self.built(self.call(token) if self.accept("(") else self.name(token))
        if token.kind == "operator" and token.text in _PREFIX:
            if binding > _PREFIX[token.text]:
                hint = f"write `({token.text} a)`."
                self.fail(f"`{token.text}` needs parentheses here", token.start, token.end, hint)
            inner = self.expression(_PREFIX[token.text] - 1)
            return self.built(Unary(token.start, inner.end, token.text, inner))
        if token.kind != "operator" or token.text != "(":
            self.unexpected(token, "a name, a number or `(`")
        inner = self.expression(0)
        closing = self.expect(")", "`)`")
        self.grouped.add((token.start, closing.end))
        return self.built(replace(inner, start=token.start, end=closing.end))

    def name(self, token: _Token) -> Name:
        scope, _, name = token.text.rpartition(".")
        if scope and scope not in self.prefixes:
            (first, of_first), (second, of_second) = self.prefixes.items()
            hint = f"the only prefixes of names are `{first}.` ({of_first}) and `{second}.` ({of_second})."
            self.fail(f"unknown prefix `{scope}.`", token.start, token.start + len(scope) + 1, hint)
        if len(name) > MAX_NAME:
            hint = "`columns:` gives a column another name."
            self.fail(f"a name of more than {MAX_NAME} characters", token.start, token.end, hint)
        return Name(token.start, token.end, name, scope)

    def call(self, token: _Token) -> Call:
        if token.text not in _ARITIES:
            known = f"the functions are {listed(FUNCTIONS)}; counters are {listed(COUNTERS)}."
            hint = known + did_you_mean(token.text, _ARITIES)
            self.fail(f"unknown function `{token.text}`", token.start, token.end, hint)
        arguments = [self.expression(0)]
        while self.accept(","):
            arguments.append(self.expression(0))
        closing = self.expect(")", "`,` or `)`")
        fewest, most = _ARITIES[token.text]
        if not fewest <= len(arguments) <= most:
            wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
            message = f"`{token.text}` takes {wanted} arguments, not {len(arguments)}"
            self.fail(message, token.start, closing.end)
        return Call(token.start, closing.end, token.text, tuple(arguments))

    def number(self, token: _Token) -> Literal:
        text = token.text
        if not _NUMBER.fullmatch(text) or re.match("0[0-9]", text):
            self.fail(f"`{text}` is not a number", token.start, token.end)
        exponent = text.lower().partition("e")[2] or "0"
        if len(text) > MAX_DIGITS or abs(int(exponent)) > MAX_DIGITS:
            self.fail("a number of too many digits", token.start, token.end)
        value = int(text) if text.isdecimal() else Fraction(text)
        if len(_written_value(value)) > MAX_DIGITS:
            self.fail("a number of too many digits", token.start, token.end)
        return Literal(token.start, token.end, value)

    def unquoted(self, token: _Token) -> str:
        def character(match: re.Match[str]) -> str:
            if match[1] not in "'\"\\":
                at = token.start + 1 + match.start()
                self.fail(f"unknown escape `{match[0]}`", at, at + 2, "a backslash is written `\\\\`.")
            return match[1]

        return re.sub(r"\\(.)", character, token.text[1:-1])


def written(node: Node) -> str:
    """Return the canonical text of a tree, which parses to the same tree."""
    return _written(node)[0]


def _written(node: Node) -> tuple[str, int]:
    """Return the text of a node and the binding strength of its outermost operator."""
    match node:
        case Literal():
            return node.parameter or _written_value(node.value), _POWER + 1
        case Name():
            return node.full, _POWER + 1
        case Call():
            return f"{node.function}({', '.join(map(written, node.arguments))})", _POWER + 1
        case Unary():
            strength = _PREFIX[node.operator]
            space = " " if node.operator == "not" else ""
            return f"{node.operator}{space}{_wrapped(node.operand, strength)}", strength
        case Binary():
            strength = _BINDING[node.operator]
            left, right = strength, strength + 1
            if node.operator == "**":
                left, right = _POWER + 1, _SIGN
            elif strength == _COMPARISON:
                left = right = _SUM
            text = f"{_wrapped(node.left, left)} {node.operator} {_wrapped(node.right, right)}"
            return text, strength
    raise TypeError(f"not a part of an expression: {node!r}")


def _wrapped(node: Node, strength: int) -> str:
    text, inner = _written(node)
    return f"({text})" if inner < strength else text


def _written_value(value: int | Fraction | str | bool) -> str:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, Fraction):
        # Every decimal is n / (2**a * 5**b), so a finite number of digits is exact.
        digits = value.denominator.bit_length()
        scaled = str(value * 10**digits).rjust(digits + 1, "0")
        return f"{scaled[:-digits]}.{scaled[-digits:].rstrip('0') or '0'}"
    return str(value)
