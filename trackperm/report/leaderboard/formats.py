"""Formats of leaderboards by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trackperm.errors import InputError
from trackperm.leaderboards import Leaderboard
from trackperm.messages import listed
from trackperm.report.leaderboard import page, picture, tables, text

Renderer = Callable[[Leaderboard, bool], bytes]

FORMATS: Mapping[str, Renderer] = {
    "text": lambda board, stars: ("\n".join(text.lines(board, stars=stars)) + "\n").encode(),
    "markdown": lambda board, stars: text.markdown(board, stars=stars).encode(),
    "html": lambda board, stars: page.html(board, stars=stars).encode(),
    "latex": lambda board, stars: tables.latex(board, stars=stars).encode(),
    "csv": lambda board, _: tables.rows_csv(board).encode(),
    "json": lambda board, _: (board.to_json() + "\n").encode(),
    "svg": lambda board, _: picture.svg(board).encode(),
    "png": lambda board, _: picture.png(board),
}
"""Renderers by format; the second argument adds stars."""


def render(board: Leaderboard, format_: str, *, stars: bool = False) -> bytes:
    """Render a leaderboard as the content of a file.

    The command line prints the format ``text``. To write a leaderboard to a tracker, use
    :func:`trackperm.log`.

    Parameters
    ----------
    board : Leaderboard
        Result of :func:`trackperm.leaderboard`.
    format_ : {'text', 'markdown', 'html', 'latex', 'csv', 'json', 'svg', 'png'}
        Format; all but PNG are text in UTF-8.
    stars : bool
        Whether adjusted p-values have stars: one below 0.05, two below 0.01, three below 0.001.

    Raises
    ------
    InputError
        If the format is unknown.
    MissingDependencyError
        If the format is PNG and ``trackperm[plots]`` is not installed.

    Examples
    --------
    >>> board = trackperm.leaderboard(["baseline.parquet", "candidate.parquet"], "accuracy")
    >>> trackperm.report.render(board, "csv").decode().splitlines()[1].startswith("1,candidate")
    True
    """
    if format_ not in FORMATS:
        raise InputError(f"no format is called `{format_}`; expected one of {listed(FORMATS)}")
    return FORMATS[format_](board, stars)
