"""Page of a comparison: one HTML file that needs no network, for MLflow, W&B, mail or disk."""

from __future__ import annotations

from trackperm.comparison import Comparison
from trackperm.errors import InputTypeError
from trackperm.messages import echoed
from trackperm.report.templating import render
from trackperm.report.view import ComparisonView, changed_rows

CHANGED_BYTES = 40_000
"""HTML of the table of changed examples: with it the page stays below 100 kB."""


def html(comparison: Comparison) -> str:
    """Render a comparison as one page below 100 kB, without scripts, in the reader's light or dark setting.

    It shows as many changed examples as fit; ``trackperm.log`` logs all of them beside it. For lines of text
    use ``str(comparison)``; to write the page to a tracker, :func:`trackperm.log`.

    Parameters
    ----------
    comparison : Comparison
        Result of :func:`trackperm.compare`.

    Examples
    --------
    >>> n_written = Path("report.html").write_text(trackperm.report.html(comparison), encoding="utf-8")
    """
    if not isinstance(comparison, Comparison):
        raise InputTypeError(
            f"`comparison` is {echoed(comparison)}; expected a comparison",
            hint='`trackperm.report.render(board, "html")` is the page of a leaderboard.',
        )
    changed = changed_rows(comparison, CHANGED_BYTES)
    return render("page.html", view=ComparisonView.of(comparison), changed=changed)
