from __future__ import annotations

import pytest
from support.specs import parse, underlined

from trackperm.errors import SpecError
from trackperm.statistic import ColumnType
from trackperm.statistic.expressions.types import Checker

COLUMNS = {
    "i": ColumnType.INTEGER,
    "d": ColumnType.DECIMAL,
    "flag": ColumnType.BOOLEAN,
    "s": ColumnType.TEXT,
    "t": ColumnType.TEXT,
}


def check(text: str, *, integers: bool = True) -> ColumnType | None:
    columns = {"s": "answer"}
    checker = Checker(
        integers, lambda _, node: COLUMNS.get(node.full), "column", lambda name: columns.get(name, name)
    )
    return checker.result(parse(text).bind({"positive": 1, "word": "yes", "rate": 0.1}), "the count `c`")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("i + 1", ColumnType.INTEGER),
        ("flag", ColumnType.BOOLEAN),
        ("flag + flag", ColumnType.INTEGER),
        ("-flag", ColumnType.INTEGER),
        ("flag == i", ColumnType.BOOLEAN),
        ("d > i", ColumnType.BOOLEAN),
        ("s == t", ColumnType.BOOLEAN),
        ("s == word", ColumnType.BOOLEAN),
        ("where(flag, 1, i)", ColumnType.INTEGER),
        ("where(flag, flag, i > 0)", ColumnType.BOOLEAN),
        ("where(flag, s, t) == 'a'", ColumnType.BOOLEAN),
        ("min(flag, i)", ColumnType.INTEGER),
        ("i ** 3", ColumnType.INTEGER),
        ("i // 2 % 3", ColumnType.INTEGER),
        ("i == positive and not flag", ColumnType.BOOLEAN),
        ("unknown", None),
        ("unknown + 1", None),
        ("(unknown == 1) & unknown", ColumnType.BOOLEAN),
        ("where(unknown, 1, unknown)", None),
    ],
)
def test_types_of_counts(text: str, found: ColumnType | None) -> None:
    assert check(text) is found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("i / 2", ColumnType.DECIMAL),
        ("sqrt(i) + log(i)", ColumnType.DECIMAL),
        ("exp(i)", ColumnType.DECIMAL),
        ("0.5", ColumnType.DECIMAL),
        ("i ** -2", ColumnType.INTEGER),
        ("where(i > 0.5, i, 0.5)", ColumnType.DECIMAL),
    ],
)
def test_types_of_scores(text: str, found: ColumnType) -> None:
    assert check(text, integers=False) is found


@pytest.mark.parametrize(
    ("text", "message", "at", "hint"),
    [
        (
            "i + (s == positive)",
            "text column `answer` (`s`) is compared with integer parameter `positive` (1)",
            "(s == positive)",
            "set the parameter `positive` to a text: `--set positive=yes`, for example.",
        ),
        (
            "s == rate",
            "text column `answer` (`s`) is compared with decimal parameter `rate` (0.1)",
            "s ==",
            None,
        ),
        (
            "word != i",
            "text parameter `word` ('yes') is compared with integer column `i`",
            "word != i",
            "set the parameter `word` to a number: `--set word=1`, for example.",
        ),
        ("t == 1", "text column `t` is compared with integer `1`", "t == 1", "write a text, in quotes."),
        (
            "i == '1'",
            "integer column `i` is compared with text `'1'`",
            "i == '1'",
            "write a number, without quotes.",
        ),
        (
            "t == flag",
            "text column `t` is compared with boolean column `flag`",
            "t == flag",
            "both sides must be text",
        ),
        (
            "t == d + 1",
            "text column `t` is compared with decimal `d + 1`",
            "t == d + 1",
            "both sides must be text",
        ),
        ("s < t", "text has no order: `<` takes numbers", "s < t", None),
        ("t", "the count `c` is text, not a number", "t", "write a comparison, such as `t == 'True'`"),
        ("d", "the count `c` is a decimal, not an integer", "d", "compare it, as in `score > 0.5`"),
        ("i + 0.5", "the count `c` is a decimal, not an integer", "i + 0.5", None),
        ("where(flag, i, d)", "the count `c` is a decimal, not an integer", "where(flag, i, d)", None),
        ("i + t", "`+` takes numbers, not text column `t`", "t", None),
        ("-t", "`-` takes numbers, not text column `t`", "t", None),
        ("min(i, t)", "`min` takes numbers, not text column `t`", "t", None),
        ("i & flag", "`&` takes conditions, not integer column `i`", "i", "such as `(tp > 0)`"),
        ("flag | (i + 1)", "`|` takes conditions, not integer `i + 1`", "(i + 1)", None),
        ("~i", "`~` takes conditions, not integer column `i`", "i", None),
        ("not t", "`not` takes conditions, not text column `t`", "t", None),
        ("where(i, 1, 2)", "`where` takes conditions, not integer column `i`", "i", None),
        (
            "where(flag, 1, t)",
            "`where` chooses between integer `1` and text column `t`",
            "where(flag, 1, t)",
            None,
        ),
        ("i / 2", "`/` does not give integers", "i / 2", "`//` divides and rounds down"),
        ("sqrt(i)", "`sqrt` does not give integers", "sqrt(i)", "use `sqrt` in `score` or `h`"),
        ("1 + exp(i)", "`exp` does not give integers", "exp(i)", "use `exp` in `score` or `h`"),
        ("d // 2 == 1", "`//` is for integers", "d // 2", None),
        ("i % 0", "a division by zero", "i % 0", None),
        ("i // -0", "a division by zero", "i // -0", None),
        ("i ** i", "an exponent must be a constant integer", "i", None),
        ("i ** -1", "a negative exponent does not give integers", "-1", None),
        ("i ** 33", "products and powers of degree 33; the limit is 32", "i ** 33", None),
        ("(i ** 8) ** 8", "products and powers of degree 64", "(i ** 8) ** 8", None),
        ("i == 9223372036854775808", "an integer of more than 64 bits", "9223372036854775808", None),
        (
            "(i + i + i + i + i + i + i + i + i + i + i + i) == t",
            "integer `i + i + i + i + i + i + i + i + i + i...` is compared",
            "(i + i",
            None,
        ),
    ],
)
def test_refused_in_counts(text: str, message: str, at: str, hint: str | None) -> None:
    with pytest.raises(SpecError) as caught:
        check(text)
    assert f": {message}" in caught.value.message
    assert underlined(str(caught.value)).startswith(at)
    if hint is not None:
        assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i // 2", "`//` is for integers, in counts and `g`"),
        ("i % 2", "`%` is for integers, in counts and `g`"),
        ("i / 0", "a division by zero"),
        ("0 ** -1", "a division by zero"),
        ("i ** 0.5", "an exponent must be a constant integer"),
        ("'a'", "the count `c` is text, not a number"),
    ],
)
def test_refused_in_scores(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        check(text, integers=False)
    assert f": {message}" in caught.value.message


def texts(levels: int) -> str:
    """A text that is chosen of 2 ** `levels`."""
    return "'x'" if levels == 0 else f"where(i > {levels}, {texts(levels - 1)}, {texts(levels - 1)})"


def test_comparisons_of_texts_are_bounded() -> None:
    assert check(f"{texts(3)} == {texts(3)}", integers=False) is ColumnType.BOOLEAN
    nested = "i > 1"
    for _ in range(5):
        nested = f"{texts(3)} == where({nested}, 'x', 'y')"
    for text in (f"{texts(7)} == {texts(7)}", nested):
        with pytest.raises(SpecError, match="a comparison of texts that expands too far"):
            check(text, integers=False)
