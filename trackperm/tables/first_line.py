"""Detection of text files without a header, whose first example was read as one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from trackperm.tables.columns.names import IDS, INPUTS, LABELS, PREDICTIONS, SCORES
from trackperm.tables.columns.types import is_number
from trackperm.tables.table import ExampleTable

_DECIMAL = re.compile(r"\s*[+-]?[0-9]*[.][0-9]+([eE][+-]?[0-9]+)?\s*")
_ENDS_SENTENCE = re.compile(r"[.!?…。！？]['\"”’»)]*\s*\Z")
_FEWEST_WORDS = 4
"""Fewest words in a first line for it to be a sentence, and not the names of columns."""
_FEWEST_QUANTILES = 3
"""Fewest rising decimals between 0 and 1 for them to be quantiles: two scores rise in half of all rows."""
_NUMBER = re.compile(r"\s*[+-]?([0-9.]+([eE][+-]?[0-9]+)?|nan|inf(inity)?)\s*", re.IGNORECASE)
_KNOWN = {*IDS, *INPUTS, *LABELS, *PREDICTIONS, *SCORES}


def is_sentence(line: str, n_fields: int) -> bool:
    """Whether a first line of `n_fields` fields is rather a sentence than a header."""
    if n_fields > 1 and not _ENDS_SENTENCE.search(line):
        return False
    return len(line.split()) >= _FEWEST_WORDS or line.rstrip().endswith(("。", "！", "？"))


def example_as_header(tables: Sequence[ExampleTable]) -> str | None:
    """Say that a first line looks like an example, and how to name the columns, without a full stop."""
    for table in tables:
        names = table.columns
        if table.untyped is not True or not names:
            continue
        is_text = len(names) == 1 and is_sentence(names[0], 1)
        if names[0] == "sep=" or is_text or _has_values(names, table):
            if names[0] == "sep=":
                return f"remove the first line of `{table.origin}`, which tells Excel the separator"
            said = f"the first line of `{table.origin}` looks like an example and not like a header"
            if len(names) > 1:
                return f"{said}: write the names of the columns above it, such as `id` and `score`"
            if any(map(str.isdigit, names[0].split()[0])):
                return f"{said}: write a tab after each id, and the names `id` and `prediction` above them"
            return (
                f"{said}: write the name of the column above it, such as `prediction`, and `--by-position`"
                " with `--labels FILE` compares such outputs with references in the same order"
            )
    return None


def _has_values(names: Sequence[str], table: ExampleTable) -> bool:
    """Whether a first line has decimals that are values, and not the quantiles of a forecast."""
    decimals = [name for name in names if _DECIMAL.fullmatch(name)]
    others = [name for name in names if name not in decimals]
    if not decimals or any(name.strip().lower() in _KNOWN for name in others):
        return False
    if any(not _NUMBER.fullmatch(name) and is_number(name, [table]) for name in others):
        return False
    values = [0.0, *map(float, decimals), 1.0]
    return len(decimals) < _FEWEST_QUANTILES or any(low >= high for low, high in pairwise(values))
