"""Rendering of comparisons and leaderboards: text, tables, charts and pages. Computes no p-value."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trackperm.comparison import Comparison
    from trackperm.leaderboards import Leaderboard


def html(comparison: Comparison) -> str:
    """Render a comparison as one self-contained page.

    Parameters
    ----------
    comparison : Comparison
        What :func:`trackperm.compare` returned.

    Returns
    -------
    str
        A page that loads nothing from anywhere and follows the reader's light or dark setting.

    Raises
    ------
    MissingDependencyError
        If the libraries of ``trackperm[plots]`` are not installed.

    Examples
    --------
    >>> n_written = Path("report.html").write_text(trackperm.report.html(comparison), encoding="utf-8")
    """
    from trackperm.report import page

    return page.html(comparison)


def render(board: Leaderboard, format_: str, *, stars: bool = False) -> bytes:
    """Render a leaderboard as a file.

    Parameters
    ----------
    board : Leaderboard
        What :func:`trackperm.leaderboard` returned.
    format_ : {'text', 'markdown', 'html', 'latex', 'csv', 'json', 'png'}
        All but PNG are text in UTF-8.
    stars : bool
        Whether stars stand beside adjusted p-values: one below 0.05, two below 0.01, three below 0.001.

    Returns
    -------
    bytes
        What a file of that format holds.

    Raises
    ------
    InputError
        If there is no such format.
    MissingDependencyError
        If PNG is asked for and ``trackperm[plots]`` is not installed.
    """
    from trackperm.report.leaderboard import formats as leaderboard_formats

    return leaderboard_formats.render(board, format_, stars=stars)
