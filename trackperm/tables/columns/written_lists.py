"""Lists that are written as text, as CSV files have them: ``['cat', 'dog']`` or ``["cat", "dog"]``."""

from __future__ import annotations

import ast

import polars as pl

_BRACKETS = r"^\s*[\[({][\s\S]*[\])}]\s*$"


def written_list(column: pl.Series, *, of_texts: bool = False) -> str | None:
    """Return a text that is a list of Python or JSON, with an item at least; None unless all texts are lists.

    The first text with an item is parsed; with `of_texts`, its items have to be texts.
    """
    texts = column.cast(pl.String, strict=False).drop_nulls()
    if texts.is_empty() or not all(part.str.contains(_BRACKETS).all() for part in (texts.head(1), texts)):
        return None
    with_items = texts.filter(texts.str.contains(r"[^\s\[\](){}]"))
    if with_items.is_empty():
        return None
    try:
        found = ast.literal_eval(with_items[0].strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    is_list = isinstance(found, list | tuple | set) and not (
        of_texts and not all(isinstance(item, str) for item in found)
    )
    return str(with_items[0]) if is_list else None
