"""The formats that a leaderboard can be written in, by name and by the suffix of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from trackperm.documents import listed
from trackperm.errors import InputError
from trackperm.leaderboards import Leaderboard
from trackperm.report import (
    charts,
    leaderboard_chart,
    leaderboard_page,
    leaderboard_tables,
    leaderboard_text,
)

Renderer = Callable[[Leaderboard, bool], bytes]

FORMATS: Mapping[str, Renderer] = {
    "text": lambda board, stars: ("\n".join(leaderboard_text.lines(board, stars=stars)) + "\n").encode(),
    "markdown": lambda board, stars: leaderboard_text.markdown(board, stars=stars).encode(),
    "html": lambda board, stars: leaderboard_page.html(board, stars=stars).encode(),
    "latex": lambda board, stars: leaderboard_tables.latex(board, stars=stars).encode(),
    "csv": lambda board, _: leaderboard_tables.rows_csv(board).encode(),
    "json": lambda board, _: (board.to_json() + "\n").encode(),
    "png": lambda board, _: charts.png(leaderboard_chart.chart(board)),
}
"""What renders a leaderboard, with or without stars."""

SUFFIXES: Mapping[str, str] = {
    ".txt": "text",
    ".md": "markdown",
    ".html": "html",
    ".tex": "latex",
    ".csv": "csv",
    ".json": "json",
    ".png": "png",
}


def render(board: Leaderboard, format_: str, *, stars: bool = False) -> bytes:
    """Render `board`; see :func:`trackperm.report.render`."""
    if format_ not in FORMATS:
        raise InputError(f"no format is called `{format_}`; there are {listed(FORMATS)}")
    return FORMATS[format_](board, stars)


def format_of(path: str | Path) -> str:
    """Name the format of a file by its suffix.

    Raises
    ------
    InputError
        If it has none of the known ones.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(
            f"`{path}` does not say its format", hint=f"its name ends in one of {listed(SUFFIXES)}."
        )
    return SUFFIXES[suffix]
