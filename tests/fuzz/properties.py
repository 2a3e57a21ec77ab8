"""What holds for any text: an expression, a spec, or one error that says what is wrong."""

from __future__ import annotations

from dataclasses import replace

from trackperm.errors import InputError, SpecError, TrackpermError
from trackperm.statistic import ColumnType
from trackperm.statistic.compiler.compile import compile_statistic
from trackperm.statistic.compiler.entries import Entries, collected
from trackperm.statistic.count_expressions import count_expressions
from trackperm.statistic.document import Document
from trackperm.statistic.expressions.tree import MAX_LENGTH, Expression
from trackperm.statistic.schema import form
from trackperm.statistic.written_spec import written_spec


def expression_or_one_error(text: str) -> None:
    """A text is refused with its place, or written canonically it is the same expression."""
    passage = Document.parse("e: x\n", "f.yaml").passage(("e",))
    try:
        expression = Expression.parse(replace(passage, text=text, _offsets=None))
    except SpecError as error:
        assert error.message.startswith("f.yaml:1:")
        return
    canonical = str(expression)
    if len(canonical) <= MAX_LENGTH:
        again = Expression.parse(replace(passage, text=canonical, _offsets=None))
        assert again.tree == expression.tree
        assert str(again) == canonical


def spec_or_one_error(content: bytes) -> None:
    """A file is refused, or compiles to a statistic whose document gives the same one."""
    try:
        document = Document.parse(content, "f.yaml")
    except SpecError as error:
        assert error.message.startswith("f.yaml:")
        return
    all_of_them = list_of_errors(document)
    try:
        statistic = compile_statistic(Entries(document, {}, {}), "f")
    except InputError as error:
        assert str(error)
        return
    assert not all_of_them
    text = written_spec(statistic)
    again = compile_statistic(Entries(Document.parse(text, "again.yaml"), {}, {}), "f")
    assert written_spec(again) == text
    for types in (ColumnType.INTEGER, ColumnType.TEXT, ColumnType.DECIMAL, ColumnType.BOOLEAN):
        try:
            count_expressions(statistic, dict.fromkeys(statistic.used_columns, types))
        except SpecError as error:
            assert error.message.startswith("f.yaml:")


def list_of_errors(document: Document) -> list[Exception]:
    """All errors of a document, as `trackperm statistic check` finds them."""
    errors: list[TrackpermError] = []
    with collected(errors):
        errors.extend(document.misfits(form(document)))
    if not errors:
        with collected(errors):
            compile_statistic(Entries(document, {}, {}, errors=errors), "f")
    return list(errors)
