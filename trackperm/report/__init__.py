"""Rendering of comparisons and leaderboards: text, tables, charts and pages. Computes no p-value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trackperm.report.leaderboard.formats import render as render
    from trackperm.report.page import html as html

__all__ = ["html", "render"]


def __getattr__(name: str) -> Any:
    """Import the public functions when they are first used, because they load templates and charts."""
    if name == "html":
        from trackperm.report.page import html

        return html
    if name == "render":
        from trackperm.report.leaderboard.formats import render

        return render
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
