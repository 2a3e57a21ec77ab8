"""Leaderboard as text: lines for a terminal, and Markdown for trackers and issues."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from trackperm.leaderboards import Leaderboard
from trackperm.report.leaderboard import cells as parts
from trackperm.report.text import escape_markdown, shorten

_NAME = 60
_REASON = 300


def lines(board: Leaderboard, *, stars: bool = False) -> list[str]:
    """Render `board` as lines: a summary, the table, then notes."""
    table = parts.cells(board, stars=stars)
    rows = [table.header, *(tuple(shorten(cell, _NAME) for cell in row) for row in table.rows)]
    widths = [max(_width(row[i]) for row in rows) for i in range(len(table.header))]
    return [
        parts.summary(board),
        parts.method(board),
        "",
        *(_line(row, widths, table.numeric) for row in rows),
        "",
        *parts.legend(board),
        f"scope: {parts.SCOPE}",
        *parts.notes(board),
        *(f"incomplete: {name}: {shorten(reason, _REASON)}" for name, reason in parts.incomplete(board)),
    ]


def markdown(board: Leaderboard, *, stars: bool = False, remarks: Sequence[str] = ()) -> str:
    """Render `board` as Markdown in which names cannot act as markup.

    Every row of the table, and every excluded run, is one line.
    """
    table = parts.cells(board, stars=stars)
    rule = "|".join("--:" if numeric else ":--" for numeric in table.numeric)
    blocks = [
        f"**{escape_markdown(parts.summary(board))}**",
        "\n".join(
            [
                f"| {' | '.join(map(escape_markdown, table.header))} |",
                f"|{rule}|",
                *(f"| {' | '.join(escape_markdown(shorten(cell)) for cell in row)} |" for row in table.rows),
            ]
        ),
        "\n".join(
            f"- {escape_markdown(sentence)}"
            for sentence in (
                parts.method(board),
                *parts.legend(board),
                f"scope: {parts.SCOPE}",
                *parts.notes(board),
                *remarks,
            )
        ),
    ]
    if board.incomplete:
        reasons = (
            f"- {escape_markdown(name)}: {escape_markdown(shorten(reason, _REASON))}"
            for name, reason in parts.incomplete(board)
        )
        blocks.append("\n".join(["Incomplete, and not compared:", "", *reasons]))
    return "\n\n".join([*blocks, f"`{board.signature}`"]) + "\n"


def _line(row: tuple[str, ...], widths: list[int], numeric: tuple[bool, ...]) -> str:
    cells = (
        " " * (width - _width(cell)) + cell if right else cell + " " * (width - _width(cell))
        for cell, width, right in zip(row, widths, numeric, strict=True)
    )
    return "  ".join(cells).rstrip()


def _width(text: str) -> int:
    """Return the number of terminal columns of `text`."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)
