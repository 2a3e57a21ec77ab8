"""Formatting of any text: aligned tables, escapes for Markdown, and long names cut short."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from trackperm.messages import printable

_NAME_LIMIT = 200
_MARKDOWN_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~&#!$])")


def aligned(rows: Sequence[Sequence[str]], right: Collection[int]) -> list[str]:
    """Format a table as lines; the columns in `right` are aligned to the right."""
    from rich.cells import cell_len  # imported late: results of two runs have no such table

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        gaps = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = (
            gap + cell if i in right else cell + gap
            for i, (cell, gap) in enumerate(zip(row, gaps, strict=True))
        )
        lines.append("  ".join(cells).rstrip())
    return lines


def escape_markdown(text: str) -> str:
    """Escape `text` for Markdown, on one line and without control characters."""
    return _MARKDOWN_SPECIAL.sub(r"\\\1", printable(" ".join(text.split())))


def shorten(text: str, limit: int = _NAME_LIMIT) -> str:
    """Cut `text` to at most `limit` characters, with an ellipsis at the end if it was longer."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
