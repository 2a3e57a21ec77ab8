"""Detection of text files without a header, whose first example was read as one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

import polars as pl

from trackperm.tables.columns.names import (
    IDS,
    INPUTS,
    LABELS,
    PREDICTIONS,
    SCORES,
    names_individuals,
    names_input,
)
from trackperm.tables.columns.types import FIRST_ROWS, is_number
from trackperm.tables.program_output import way_to_table
from trackperm.tables.table import ExampleTable

_DECIMAL = re.compile(r"\s*[+-]?[0-9]*[.][0-9]+([eE][+-]?[0-9]+)?\s*")
_ENDS_SENTENCE = re.compile(r"[.!?…。！？]['\"”’»)]*\s*\Z")
_FEWEST_WORDS = 4
"""Fewest words in a first line for it to be a sentence, and not the names of columns."""
_FEWEST_QUANTILES = 3
"""Fewest rising decimals between 0 and 1 for them to be quantiles: two scores rise in half of all rows."""
_GAP = re.compile(r"(?<=\S)(?<![.!?…。！？])(?<![.!?…。！？][\"'”’»)])[ ]{2,}(?=\S)")
_FEWEST_GAPS = 2
"""Fewest gaps between the names of columns that stand below each other; sentences have one by mistake.

Blanks between two sentences are none.
"""
_NUMBER = re.compile(r"\s*[+-]?([0-9.]+([eE][+-]?[0-9]+)?|nan|inf(inity)?)\s*", re.IGNORECASE)
_KNOWN = {*IDS, *INPUTS, *LABELS, *PREDICTIONS, *SCORES}


def is_sentence(line: str, n_fields: int) -> bool:
    """Whether a first line of `n_fields` fields is rather a sentence than a header."""
    if n_fields > 1 and not _ENDS_SENTENCE.search(line):
        return False
    return len(line.split()) >= _FEWEST_WORDS or line.rstrip().endswith(("。", "！", "？"))


def example_as_header(tables: Sequence[ExampleTable], names: str | None = None) -> str | None:
    """Say that a first line looks like an example, and how to name the columns, without a full stop.

    `names` are examples of names; by default, those that suit predictions or scores.
    """
    for table in tables:
        header = table.columns
        if table.untyped is not True or not header:
            continue
        if header[0] == "sep=":
            return f"remove the first line of `{table.origin}`, which tells Excel the separator"
        if len(header) == 1 and (way := way_to_table(table.origin, header[0])) is not None:
            return way
        if not _has_name_of_column(header) and _has_names_as_row(table):
            return f"remove the lines above the names of the columns of `{table.origin}`"
        if len(header) == 1 and len(_GAP.findall(header[0])) >= _FEWEST_GAPS:
            return f"write a tab in place of the blanks between the columns of `{table.origin}`"
        if (len(header) == 1 and is_sentence(header[0], 1)) or has_values_as_header(table, tables):
            has_scores = any(map(_DECIMAL.fullmatch, (part for name in header for part in name.split())))
            usual = names or f"`id` and `{'score' if has_scores else 'prediction'}`"
            return f"{look_of_example(table)}: {_way_to_name(header, usual, has_scores=has_scores)}"
    return None


def look_of_example(table: ExampleTable) -> str:
    """Say that the first line of a file looks like an example."""
    return f"the first line of `{table.origin}` looks like an example and not like a header"


def has_values_as_header(table: ExampleTable, others: Sequence[ExampleTable] = ()) -> bool:
    """Whether a first line has values: decimals, or what all columns also hold, itself or with other digits.

    A line with a usual name of a column or the name of an id is a header, and so is one of names that differ
    in their digits alone. Sentences and numbers prove nothing. The columns at the same places in the first
    two of `others` are searched, too.
    """
    names = table.columns
    if table.untyped is not True or _has_name_of_column(names):
        return False
    if _has_decimals(names, table):
        return True
    texts = {
        place: name
        for place, name in enumerate(names)
        if name.strip() and not _NUMBER.fullmatch(name) and not is_sentence(name, 1)
    }
    if len({*map(_without_digits, texts.values())}) < len(texts):
        return False
    alike = [
        each for each in (table, *others[:2]) if each.untyped is True and len(each.columns) == len(names)
    ]
    found = [
        _place_among(name, [each.columns[place] for each in alike], alike) for place, name in texts.items()
    ]
    return "some" in found and "none" not in found


def _has_name_of_column(names: Sequence[str]) -> bool:
    """Whether a line has a usual name of a column, or the name of an id or input."""
    return bool(_KNOWN.intersection(_plain(names))) or any(
        names_individuals(name) or names_input(name) for name in names
    )


def _has_names_as_row(table: ExampleTable) -> bool:
    """Whether the first row has different texts, two of which are usual names of columns."""
    values = [value for row in table.head(1).frame.iter_rows() for value in row]
    if None in values:
        return False
    texts = _plain(map(str, values))
    return (
        len({*texts}) == len(texts)
        and not any(map(_NUMBER.fullmatch, texts))
        and len(_KNOWN.intersection(texts)) > 1
    )


def _plain(names: Iterable[str]) -> list[str]:
    return [name.strip().lower() for name in names]


def _without_digits(value: str) -> str:
    return re.sub(r"\d+", "0", value)


def _way_to_name(header: Sequence[str], names: str, *, has_scores: bool) -> str:
    if len(header) > 1:
        return f"write the names of the columns above it, such as {names}"
    words = header[0].split()
    if has_scores and len(words) > 1:
        return f"write a tab between the columns, and their names above them, such as {names}"
    if any(map(str.isdigit, words[0])):
        return "write a tab after each id, and the names `id` and `prediction` above them"
    return (
        "write the name of the column above it, such as `prediction`, and `--by-position` with `--labels"
        " FILE` compares such outputs with references in the same order"
    )


def _has_decimals(names: Sequence[str], table: ExampleTable) -> bool:
    """Whether a first line has decimals that are values, and not the quantiles of a forecast."""
    decimals = [name for name in names if _DECIMAL.fullmatch(name)]
    others = [name for name in names if name not in decimals]
    if not decimals:
        return False
    if any(not _NUMBER.fullmatch(name) and is_number(name, [table]) for name in others):
        return False
    values = [0.0, *map(float, decimals), 1.0]
    return len(decimals) < _FEWEST_QUANTILES or any(low >= high for low, high in pairwise(values))


def _place_among(
    value: str, names: Sequence[str], tables: Sequence[ExampleTable]
) -> Literal["none", "some", "all"]:
    """Say how many values of a column in the first rows are a value, or one of letters with other digits."""
    columns = [
        table.head(FIRST_ROWS).only((name,)).polars_column(name)
        for name, table in zip(names, tables, strict=True)
    ]
    texts = pl.concat([each.cast(pl.String).alias("text") for each in columns]).drop_nulls()
    is_numbered = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    if is_numbered:
        texts, value = texts.str.replace_all(r"\d+", "0"), _without_digits(value)
    if not (texts == value).any():
        return "none"
    return "some" if is_numbered or (texts != value).any() else "all"
