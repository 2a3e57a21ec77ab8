"""Leaderboard as text: lines for a terminal, and Markdown for trackers and issues."""

from __future__ import annotations

from collections.abc import Sequence

from trackperm.leaderboards import Leaderboard
from trackperm.messages import printable
from trackperm.report.formatting import aligned, escape_markdown, shorten
from trackperm.report.leaderboard import cells as parts
from trackperm.report.leaderboard.names import short_names

_NAME = 40
"""Characters of a name in a table for a terminal, whose other columns take some 90."""

_REASON = 300


def lines(board: Leaderboard, *, stars: bool = False) -> list[str]:
    """Render `board` as lines: the finding, a summary, the table, then notes.

    Control characters of names are escaped, so that no name can begin a line or move the cursor.
    """
    names = short_names([row.name for row in board.rows])
    shown = names.on_one_line(_NAME)
    table = parts.cells(board, stars=stars, names=shown)
    rows = [[printable(cell) for cell in row] for row in (table.header, *table.rows)]
    found = [
        parts.finding(board),
        parts.summary(board),
        parts.method(board),
        "",
        *aligned(rows, right={i for i, numeric in enumerate(table.numeric) if numeric}),
        "",
        *(
            f"{short} is `{name}`"
            for short, name in zip(shown, (" ".join(row.name.split()) for row in board.rows), strict=True)
            if short not in name
        ),
        *([] if names.sentence is None else [names.sentence]),
        *parts.legend(board, stars=stars),
        f"scope: {parts.SCOPE}",
        *parts.notes(board),
        *(
            f"incomplete: {name}: {shorten(reason, _REASON)}"
            for name, reason in parts.incomplete_groups(board)
        ),
    ]
    return [printable(line) for line in found]


def markdown(board: Leaderboard, *, stars: bool = False, remarks: Sequence[str] = ()) -> str:
    """Render `board` as Markdown in which names cannot act as markup.

    Every row of the table, and every excluded run, is one line.
    """
    names = short_names([row.name for row in board.rows])
    table = parts.cells(board, stars=stars, names=names.names)
    rule = "|".join("--:" if numeric else ":--" for numeric in table.numeric)
    blocks = [
        f"**{escape_markdown(parts.finding(board))}**",
        escape_markdown(parts.summary(board)),
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
                *([] if names.sentence is None else [names.sentence]),
                *parts.legend(board, stars=stars),
                f"scope: {parts.SCOPE}",
                *parts.notes(board),
                *remarks,
            )
        ),
    ]
    if board.incomplete:
        reasons = (
            f"- {escape_markdown(name)}: {escape_markdown(shorten(reason, _REASON))}"
            for name, reason in parts.incomplete_groups(board)
        )
        blocks.append("\n".join(["Incomplete, and not compared:", "", *reasons]))
    return "\n\n".join([*blocks, f"`{board.signature}`"]) + "\n"
