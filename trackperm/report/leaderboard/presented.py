"""Presenter of leaderboards for ``print``, notebooks and browsers; see :mod:`trackperm.presentation`."""

from __future__ import annotations

from trackperm.leaderboards import Leaderboard
from trackperm.option_names import in_python
from trackperm.report.leaderboard import cells
from trackperm.report.leaderboard import text as lines_of
from trackperm.report.leaderboard.chart_layout import chart_layout
from trackperm.report.leaderboard.formats import render as formatted
from trackperm.report.presented import INKS
from trackperm.report.templating import render


def text(board: Leaderboard) -> str:
    """Return the lines that the command line prints, with options as arguments of Python."""
    return in_python("\n".join(lines_of.lines(board)))


def markdown(board: Leaderboard) -> str:
    """Return the whole leaderboard in Markdown."""
    return lines_of.markdown(board)


def fragment(board: Leaderboard) -> str:
    """Return the page's finding and chart for a notebook, with the numbers folded."""
    return render(
        "notebook_leaderboard.html",
        finding=cells.finding(board),
        lead=cells.lead(board),
        chart=chart_layout(board),
        method=cells.method(board),
        scope=cells.SCOPE,
        table=cells.cells(board),
        verdicts=["reference" if row.pair is None else row.pair.verdict for row in board.rows],
        sentences=[
            *cells.legend(board),
            *map(in_python, cells.notes(board)),
            *(f"incomplete: {name}: {reason}" for name, reason in cells.incomplete(board)),
        ],
        signature=board.signature,
        inks=INKS,
    )


def page(board: Leaderboard) -> str:
    """Return the page."""
    return formatted(board, "html").decode()


def png(board: Leaderboard) -> bytes:
    """Return the chart as PNG."""
    return formatted(board, "png")
