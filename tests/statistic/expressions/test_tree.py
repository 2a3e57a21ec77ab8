from __future__ import annotations

import contextlib
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.specs import parse, underlined

from trackperm.errors import SpecError
from trackperm.statistic.expressions.tree import (
    _BINDING,
    FUNCTIONS,
    Binary,
    Call,
    Literal,
    Name,
    Node,
    Unary,
    children,
    written,
)


def refusal(text: str) -> SpecError:
    with pytest.raises(SpecError) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("a+b*c", "a + b * c"),
        ("(a+b)*c", "(a + b) * c"),
        ("a-b-c", "a - b - c"),
        ("a-(b-c)", "a - (b - c)"),
        ("a/b*c", "a / b * c"),
        ("a/(b*c)", "a / (b * c)"),
        ("-a**2", "-a ** 2"),
        ("(-a)**2", "(-a) ** 2"),
        ("a**-2", "a ** -2"),
        ("a**b**c", "a ** b ** c"),
        ("(a**b)**c", "(a ** b) ** c"),
        ("a // b % c", "a // b % c"),
        ("- -a", "--a"),
        ("not a == b and c or d", "not a == b and c or d"),
        ("not (a == b and c)", "not (a == b and c)"),
        ("(a==b)&(c<d)|~(e>=f)", "(a == b) & (c < d) | ~(e >= f)"),
        ("a & b | c & d", "a & b | c & d"),
        ("a & (b | c)", "a & (b | c)"),
        ("(a & b) == (c & d)", "(a & b) == (c & d)"),
        ("(a == b) == (c == d)", "(a == b) == (c == d)"),
        ("a == b and c == d", "a == b and c == d"),
        ("((a))", "a"),
        ("where(a>b,min(a,b,1),abs(-c))", "where(a > b, min(a, b, 1), abs(-c))"),
        ("sqrt(a) + log(b)", "sqrt(a) + log(b)"),
        ("u.tp - v.tp", "u.tp - v.tp"),
        ("'it\\'s' == \"a\\\\b\"", "'it\\'s' == 'a\\\\b'"),
        ("1.50 + .25 + 1e-3 + 2.e2", "1.5 + 0.25 + 0.001 + 200.0"),
        ("a\n  + b", "a + b"),
        ("größe + 数", "größe + 数"),
        ("min + log", "min + log"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    expression = parse(text)
    assert str(expression) == canonical
    assert parse(canonical).tree == expression.tree


def test_tree_and_positions() -> None:
    tree = parse("-a * (u.b + 0.1)").tree
    product = Binary(
        0,
        0,
        "*",
        Unary(0, 0, "-", Name(0, 0, "a")),
        Binary(0, 0, "+", Name(0, 0, "b", "u"), Literal(0, 0, Fraction(1, 10))),
    )
    assert tree == product
    assert (tree.start, tree.end) == (0, 16)
    assert [(part.start, part.end) for part in children(tree)] == [(0, 2), (5, 16)]


def test_names_in_order() -> None:
    names = [name.full for name in parse("b + where(a > u.c, b, -d)").names]
    assert names == ["b", "a", "u.c", "b", "d"]


def test_parameters_become_literals_that_keep_their_names() -> None:
    bound = parse("positive == label + u.positive").bind({"positive": 0.1})
    assert isinstance(bound.tree, Binary)
    assert bound.tree.left == Literal(0, 0, Fraction(1, 10), "positive")
    assert str(bound) == "positive == label + u.positive"


@pytest.mark.parametrize(
    ("text", "message", "at", "hint"),
    [
        ("a == b & c == d", "`&` next to `==` needs parentheses", " & ", "write `(a == b) & (c == d)`"),
        ("a | b < c", "`|` next to `<` needs parentheses", " | ", "binds more tightly"),
        ("a < b < c", "comparisons cannot be chained", "<", "(a < b) & (b < c)"),
        ("a == b != c", "comparisons cannot be chained", "!=", ""),
        ("a = b", "expected an operator, found `=`", "=", "`==`"),
        ("!a", "expected a name, a number or `(`, found `!`", "!", "`~` or `not`"),
        ("a && b", "expected an operator, found `&&`", "&&", "write `&` or `and`"),
        ("a || b", "expected an operator, found `||`", "||", "write `|` or `or`"),
        ("a ^ b", "expected an operator, found `^`", "^", "`**`"),
        ("a +", "expected a name, a number or `(`, found the end", None, ""),
        ("", "an empty expression", None, ""),
        (" ", "an empty expression", None, ""),
        ("(a", "expected `)`, found the end", None, ""),
        ("a)", "expected an operator, found `)`", ")", ""),
        ("a b", "expected an operator, found `b`", "b", ""),
        ("a not b", "expected an operator, found `not`", "not", ""),
        ("a + not b", "`not` needs parentheses here", "not", "(not a)"),
        ("foo(a)", "unknown function `foo`", "foo", "the functions are `abs`"),
        ("mim(a, b)", "unknown function `mim`", "mim", "Did you mean `min`?"),
        ("u.f(a)", "unknown function `u.f`", "u.f", ""),
        ("abs(a, b)", "`abs` takes 1 arguments, not 2", "abs(a, b)", ""),
        ("min(a)", "`min` takes 2 to 64 arguments, not 1", "min(a)", ""),
        ("where(a, b)", "`where` takes 3 arguments, not 2", "where(a, b)", ""),
        ("abs()", "expected a name, a number or `(`, found `)`", ")", ""),
        (
            "x.tp",
            "unknown prefix `x.`",
            "x.",
            "the only prefixes of names are `u.` (candidate) and `v.` (baseline)",
        ),
        ("__class__.__mro__", "unknown prefix `__class__.`", "__class__.", ""),
        ("u . tp", "unexpected character '.'", ".", "without spaces"),
        ("a[0]", "unexpected character '['", "[", "indexing is not supported"),
        ("a # b", "unexpected character '#'", "#", "cannot contain comments"),
        ("'a", 'unexpected character "\'"', "'", "closing quote"),
        ("'a\\n'", "unknown escape `\\n`", "\\n", "backslash"),
        ("1_000", "`1_000` is not a number", "1_000", ""),
        ("012", "`012` is not a number", "012", ""),
        ("1.2.3", "`1.2.3` is not a number", "1.2.3", ""),
        ("2tp", "`2tp` is not a number", "2tp", ""),
        ("0x1f", "`0x1f` is not a number", "0x1f", ""),
        ("1e999999999", "a number of too many digits", "1e999999999", ""),
        ("9" * 200, "a number of too many digits", "9" * 50, ""),
        ("a + " + "n" * 101, "a name of more than 100 characters", "nnn", "`columns:`"),
        ("lambda: a", "unexpected character ':'", ":", ""),
        ("a; b", "unexpected character ';'", ";", ""),
    ],
)
def test_refused_with_a_place(text: str, message: str, at: str | None, hint: str) -> None:
    error = refusal(text)
    assert f": {message} at `$.e`" in error.message
    if at is not None:
        shown = underlined(str(error))
        assert shown.startswith(at) or (shown.startswith('"') and "\\" in text)
    assert hint in (error.hint or "")


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "open('/etc/passwd')",
        "eval('1')",
        "getattr(a, 'b')",
        "().__class__",
        "(a).__class__",
        "''.join",
        "a.__class__.__mro__",
        "u.a.__class__",
        "a[0]",
        "{a: b}",
        "[a for a in b]",
        "a if b else c",
        "lambda: a",
        "a := 1",
        "f'{a}'",
        "`a`",
        "$a",
        "@a",
        "*a",
        "min(*a)",
        "min(a, key=b)",
        "a; b",
        "...",
        "a\\\nb",
        "1j",
        "0b1",
    ],
)
def test_python_is_not_evaluated(text: str) -> None:
    assert refusal(text).message.startswith("test.yaml:1:")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "a" + ")" * 5000,
        "(" * 200 + "a" + ")" * 200,
        "-" * 5000 + "a",
        "not " * 2000 + "a",
        "a" + "+a" * 300,
        "a" + "**a" * 300,
        "abs(" * 300 + "a" + ")" * 300,
        "a " * 6000,
    ],
)
def test_size_is_bounded(text: str) -> None:
    assert "more than" in refusal(text).message


NAMES = st.sampled_from(["a", "b", "u.c", "v.d", "größe"])
NUMBERS = st.integers(0, 10**6).map(lambda n: Literal(0, 0, n)) | st.decimals(
    0, 1000, places=4, allow_nan=False
).map(lambda d: Literal(0, 0, Fraction(d)))
TEXTS = st.text("ab '\"\\", max_size=5).map(lambda s: Literal(0, 0, s))


def name(full: str) -> Name:
    scope, _, bare = full.rpartition(".")
    return Name(0, 0, bare, scope)


TREES = st.recursive(
    NAMES.map(name) | NUMBERS | TEXTS,
    lambda inner: st.one_of(
        st.builds(lambda o, a: Unary(0, 0, o, a), st.sampled_from(["-", "+", "~", "not"]), inner),
        st.builds(
            lambda o, a, b: Binary(0, 0, o, a, b),
            st.sampled_from(sorted(_BINDING)),
            inner,
            inner,
        ),
        st.builds(lambda a, b, c: Call(0, 0, "where", (a, b, c)), inner, inner, inner),
    ),
    max_leaves=12,
)


@given(TREES)
def test_written_trees_parse_to_themselves(tree: Node) -> None:
    assert parse(written(tree)).tree == tree


SIGNS = ["not", "~", "(", ")", ",", "=", "!", "&&", "#", "[", ".", "\\", "'", '"', "\n", "é"]
OPERANDS = ["a", "u.c", "x.y", "1", "2.5", ".5", "1e5", "'q'"]
FRAGMENTS = st.lists(st.sampled_from([*_BINDING, *FUNCTIONS, *SIGNS, *OPERANDS]))


@given(st.text() | FRAGMENTS.map(" ".join) | FRAGMENTS.map("".join))
@example("a.")
@example("u.1")
@example("١")
@example("1²")
@example("ª + ᴬ")
def test_arbitrary_text_is_an_expression_or_one_error(text: str) -> None:
    with contextlib.suppress(SpecError):
        expression = parse(text)
        assert parse(str(expression)).tree == expression.tree


@pytest.mark.parametrize(
    ("opening", "closing", "message"),
    [
        ("(", ")", "nested more than 100 levels deep"),
        ("abs(", ")", "nested more than 100 levels deep"),
        ("", " + a", "an expression of more than 100 levels"),
    ],
)
def test_an_expression_has_at_most_100_levels(opening: str, closing: str, message: str) -> None:
    assert parse(opening * 99 + "a" + closing * 99) is not None
    assert message in refusal(opening * 100 + "a" + closing * 100).message
