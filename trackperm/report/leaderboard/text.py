"""Leaderboard as text: lines for a terminal, and Markdown for trackers and issues."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from trackperm.leaderboards import Leaderboard
from trackperm.messages import printable
from trackperm.report.formatting import aligned, escape_markdown, shorten
from trackperm.report.leaderboard import cells as parts
from trackperm.report.leaderboard.names import ShortNames, short_names

_NAME = 40
"""Characters of a name in a table, whose other columns take some 90."""

_SHORTER_NAME = 24
"""Columns to which names are cut before a table is split; names of runs and hyperparameters are longer."""

_SHORTEST_NAME = 12
"""Columns of a name that are shown in any case."""

_REASON = 300


def lines(board: Leaderboard, *, stars: bool = False, width: int | None = None) -> list[str]:
    """Render `board` as lines: the finding, a summary, the table, then notes.

    A table that is wider than `width` has its header in several lines and shorter names, or else the
    differences in a table of their own. Control characters of names are escaped, so that no name can begin a
    line or move the cursor.
    """
    names = short_names([row.name for row in board.rows])
    shown, tables = _fitting(board, names, stars=stars, width=width)
    found = [
        parts.finding(board),
        parts.summary(board),
        parts.method(board),
        "",
        *(line for table in tables for line in (*table, "")),
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
        *(f"hint: {hint}" for hint in parts.incomplete_hints(board)),
    ]
    return [printable(line) for line in found]


def _fitting(
    board: Leaderboard, names: ShortNames, *, stars: bool, width: int | None
) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return the names as they are shown, and the lines of one table, or of two that fit the width."""
    shown = names.on_one_line(_NAME)
    whole = _table(parts.cells(board, stars=stars, names=shown))
    if width is None or _width(whole) <= width:
        return shown, [whole]
    differences = ("difference", parts.interval_name(board))
    for least, apart in ((_SHORTER_NAME, ()), (_SHORTEST_NAME, differences)):
        shown = names.on_one_line(_NAME)
        tables = _split(parts.cells(board, stars=stars, names=shown), apart)
        excess = max(map(_width, tables)) - width
        if excess > 0:
            shown = _cut(names, max(least, _width(shown) - excess))
            tables = _split(parts.cells(board, stars=stars, names=shown), apart)
        if max(map(_width, tables)) <= width:
            break
    return shown, tables


def _cut(names: ShortNames, room: int) -> tuple[str, ...]:
    """Cut names to the most characters that take at most `room` columns; wide characters take two."""
    cuts = map(names.on_one_line, range(min(room, _NAME), room // 2, -1))
    return next((cut for cut in cuts if _width(cut) <= room), names.on_one_line(room // 2))


def _split(table: parts.Cells, apart: Sequence[str]) -> list[list[str]]:
    """Return the lines of a table, with the columns `apart` in one of their own."""
    split = [table.without(apart), table.only(("rank", "run", *apart))] if apart else [table]
    return [_table(part, wraps=True) for part in split]


def _table(table: parts.Cells, *, wraps: bool = False) -> list[str]:
    """Return the aligned lines of a table; with `wraps`, its header is no wider than needed."""
    rows = [[printable(cell) for cell in row] for row in table.rows]
    header = [printable(name) for name in table.header]
    headers = _wrapped(header, rows) if wraps else [header]
    return aligned([*headers, *rows], right={i for i, numeric in enumerate(table.numeric) if numeric})


def _wrapped(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Break names of columns at spaces where they are wider than the cells; they end in the last line."""
    broken = []
    for name, *cells in zip(header, *rows, strict=True):
        least = max(map(len, (*cells, *name.split())))
        broken.append(textwrap.wrap(name, least, break_on_hyphens=False))
    height = max(map(len, broken))
    return [list(row) for row in zip(*([""] * (height - len(own)) + own for own in broken), strict=True)]


def _width(texts: Sequence[str]) -> int:
    """Return how many columns of a terminal the widest text takes."""
    from rich.cells import cell_len  # imported late: results of two runs have no such table

    return max(map(cell_len, texts))


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
        hints = (f"Hint: {escape_markdown(hint)}" for hint in parts.incomplete_hints(board))
        blocks.append("\n".join(["Incomplete, and not compared:", "", *reasons]))
        blocks += hints
    return "\n\n".join([*blocks, f"`{board.signature}`"]) + "\n"
