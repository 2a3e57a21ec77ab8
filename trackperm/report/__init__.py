"""Rendering of comparisons: text, Markdown, charts and pages. Computes no p-value."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trackperm.comparison import Comparison


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
