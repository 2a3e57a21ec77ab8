"""Formats of leaderboards, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trackperm.errors import InputError
from trackperm.leaderboards import Leaderboard
from trackperm.messages import listed
from trackperm.report import charts
from trackperm.report.leaderboard import chart, page, tables, text

Renderer = Callable[[Leaderboard, bool], bytes]

FORMATS: Mapping[str, Renderer] = {
    "text": lambda board, stars: ("\n".join(text.lines(board, stars=stars)) + "\n").encode(),
    "markdown": lambda board, stars: text.markdown(board, stars=stars).encode(),
    "html": lambda board, stars: page.html(board, stars=stars).encode(),
    "latex": lambda board, stars: tables.latex(board, stars=stars).encode(),
    "csv": lambda board, _: tables.rows_csv(board).encode(),
    "json": lambda board, _: (board.to_json() + "\n").encode(),
    "png": lambda board, _: charts.png(chart.chart(board)),
}
"""What renders a leaderboard, with or without stars."""


def render(board: Leaderboard, format_: str, *, stars: bool = False) -> bytes:
    """Render `board`; see :func:`trackperm.report.render`."""
    if format_ not in FORMATS:
        raise InputError(f"no format is called `{format_}`; there are {listed(FORMATS)}")
    return FORMATS[format_](board, stars)
