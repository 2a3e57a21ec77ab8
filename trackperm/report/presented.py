"""Presenter of comparisons for ``print``, notebooks and browsers; see :mod:`trackperm.presentation`."""

from __future__ import annotations

from dataclasses import replace

from trackperm.comparison import Comparison
from trackperm.option_names import in_python
from trackperm.report import description
from trackperm.report import text as lines_of
from trackperm.report.drawings.picture import png
from trackperm.report.page import html as page
from trackperm.report.templating import render
from trackperm.report.view import ComparisonView, changed_rows

__all__ = ["fragment", "markdown", "page", "png", "text"]

CHANGED_BYTES = 8_000
"""HTML of the table of changed examples: a notebook is stored with all of its outputs."""

INKS = (
    "--text: currentColor; --soft: color-mix(in srgb, currentColor 72%, transparent);"
    " --line: color-mix(in srgb, currentColor 18%, transparent);"
    " --card: color-mix(in srgb, currentColor 4%, transparent);"
    " --better: #0f8a63; --worse: #cc5f14; --undecided: #71808f; --usual: #7f9fbf; --extreme: #d9651a;"
)
"""Inks that can be read on a light and on a dark ground: no page can ask for the theme of a notebook."""


def text(comparison: Comparison) -> str:
    """Return the lines that the command line prints, with options as arguments of Python."""
    return in_python("\n".join(lines_of.lines(comparison)))


def markdown(comparison: Comparison) -> str:
    """Return the description in Markdown."""
    return description.markdown(comparison)


def fragment(comparison: Comparison) -> str:
    """Return the page's content for a notebook, with details folded."""
    changed = changed_rows(comparison, CHANGED_BYTES)
    view = ComparisonView.of(comparison)
    view = replace(view, notes=list(map(in_python, view.notes)), pairing=list(map(in_python, view.pairing)))
    return render("notebook.html", view=view, changed=changed, inks=INKS)
