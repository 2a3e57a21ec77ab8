"""Words for missing values, such as `None`, in columns whose other values are numbers, or true and false."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from trackperm.tables.columns.truths import TRUTHS
from trackperm.tables.columns.types import NUMBER_TEXT
from trackperm.tables.polars_code import rewriting, text_of, without_ending
from trackperm.tables.table import ExampleTable, have

MISSING_WORDS = frozenset(("", "none", "null", "na", "n/a", "#n/a", "nan", "-"))
"""Words for a missing value in lower case, as programs write it into files of text."""

_BLOCK = 100_000
"""Number of first rows that are read of each run."""

_MOST_RUNS = 3
"""Most runs that a message names."""


def is_missing_word(value: object) -> bool:
    """Whether a value is a word for a missing value, such as ``None``, ``N/A`` or ``-``."""
    return isinstance(value, str) and value.strip().casefold() in MISSING_WORDS


class MissingWords(NamedTuple):
    """Error about words for missing values in a column of numbers or truths."""

    message: str
    hint: str

    @classmethod
    def of(cls, tables: Sequence[ExampleTable], column: str) -> MissingWords | None:
        """Find such words among the first rows; None without them, or if other values are texts as well."""
        if not have(tables, [column]):
            return None
        values = [_values(table, column) for table in tables]
        present = [each for own in values for each in own if each is not None]
        if not all(isinstance(each, str | int | float) for each in present):
            return None
        others = {each for each in present if not is_missing_word(each)}
        are_numbers = all(map(_is_number, others))
        if not others or not (are_numbers or _are_truths(others)):
            return None
        rows = [Counter(filter(is_missing_word, own)) for own in values]
        found = {table.origin: (table, own) for table, own in zip(tables, rows, strict=True) if own}
        if not found:
            return None
        words = [*dict.fromkeys(word for _, own in found.values() for word in own)]
        places = [_place(table, own.total()) for table, own in found.values()]
        more = [f"rows of {len(places) - _MOST_RUNS} more runs"] if len(places) > _MOST_RUNS else []
        table = max(found.values(), key=lambda each: each[1].total())[0]
        share = next((each for each in others if str(each).casefold() in ("true", "yes")), None)
        option = shlex.quote(f"{column}={share}")
        what = "not a number" if are_numbers else "neither true nor false"
        return cls(
            f"`{column}` is {', '.join(map(repr, words))} in"
            f" {' and in '.join([*places[:_MOST_RUNS], *more])}, which is {what}",
            f"leave missing values empty{_emptied(table, column, words)}, and `--missing` says"
            " how such examples count"
            + ("." if share is None else f"; `--metric {option}` counts them as not {str(share).lower()}."),
        )


def _place(table: ExampleTable, n: int) -> str:
    n_rows = len(table)
    return f"{n:,} of {'the first ' * (n_rows > _BLOCK)}{min(n_rows, _BLOCK):,} rows of `{table.origin}`"


def _emptied(table: ExampleTable, column: str, words: Sequence[str]) -> str:
    """Return the clause with code that replaces words by empty values; none for values of several types."""
    if column in table.unusable:
        return ""
    texts = ", ".join(map(text_of, words))
    change = f"with_columns(pl.col({text_of(column)}).replace([{texts}], None))"
    name = f"{without_ending(table.origin)}-empty"
    return f", as `{rewriting(table.origin, change, name)}` of polars does"


def _values(table: ExampleTable, column: str) -> list[Any]:
    return table.head(_BLOCK).only([column]).frame.get_column(column).to_list()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) or (
        isinstance(value, str) and re.match(NUMBER_TEXT, value) is not None
    )


def _are_truths(values: set[Any]) -> bool:
    words = {str(value).strip().casefold() for value in values}
    return any(words <= pair for pair in TRUTHS)
