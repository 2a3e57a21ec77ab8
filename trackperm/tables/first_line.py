"""Detection of text files without a header, whose first example was read as one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trackperm.tables.table import ExampleTable

_DECIMAL = re.compile(r"\s*[+-]?[0-9]*[.][0-9]+([eE][+-]?[0-9]+)?\s*")
_FEWEST_WORDS = 4
"""Fewest words in the first line of a one-column file for it to be a sentence, not a name."""


def example_as_header(tables: Sequence[ExampleTable]) -> str | None:
    """Say that a first line looks like an example, and how to name the columns, without a full stop."""
    for table in tables:
        names = table.columns
        if table.untyped is not True or not names:
            continue
        is_sentence = len(names) == 1 and len(names[0].split()) >= _FEWEST_WORDS
        if names[0] == "sep=" or is_sentence or any(_DECIMAL.fullmatch(name) for name in names):
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
