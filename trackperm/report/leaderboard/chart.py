"""Chart of a leaderboard: differences to the baseline or the best run, with their intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from trackperm.leaderboards import Leaderboard
from trackperm.report.charts import LIGHT, require
from trackperm.report.leaderboard import cells as parts
from trackperm.report.text import format_number, shorten

if TYPE_CHECKING:
    import altair as alt

MOST_ROWS = 200
"""Runs that are drawn, at 20 pixels each on four screens; the chart says if there are more."""

STEP = 20
"""Height of a run in pixels: a line of text."""

_COLOURS = {"better": "#009e73", "worse": "#d55e00", "undecided": "#7f8c9b", "reference": "#888888"}


def chart(board: Leaderboard) -> alt.LayerChart:
    """Draw every run at its difference to the baseline or the best run, in order of the scores.

    Raises
    ------
    MissingDependencyError
        If altair is not installed.
    """
    require("altair", "altair")
    import altair as alt

    rows = [_row(board, place) for place in range(min(len(board.rows), MOST_ROWS))]
    other = "the best run" if board.baseline is None else "the baseline"
    data = alt.Chart(alt.InlineData(values=rows))
    y = alt.Y("place:O", title=None, axis=None)
    position = alt.X("difference:Q", title=f"difference in {shorten(board.statistic.name, 40)} to {other}")
    colour = alt.Color(
        "verdict:N",
        scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values())),
        legend=alt.Legend(title=None, orient="top"),
    )
    tooltip = [
        alt.Tooltip(f"{name}:N", title=name) for name in ("run", "score", "interval", "adjusted p", "group")
    ]
    zero = (
        alt.Chart(alt.InlineData(values=[{"difference": 0}]))
        .mark_rule(strokeDash=[4, 3], color="#888888")
        .encode(x="difference:Q")
    )
    intervals = data.mark_rule(strokeWidth=2).encode(y=y, x="low:Q", x2="high:Q", color=colour)
    points = data.mark_point(filled=True, size=60, opacity=1.0).encode(
        y=y, x=position, color=colour, tooltip=tooltip
    )
    names = data.mark_text(align="right", dx=-8, limit=300).encode(
        y=y, x=alt.value(0), text="label:N", color=colour
    )
    letters = data.mark_text(align="left", dx=8).encode(
        y=y, x=alt.value("width"), text="group:N", color=colour
    )
    more = f"; the first {MOST_ROWS} runs" if len(board.rows) > MOST_ROWS else ""
    found: alt.LayerChart = (
        alt.layer(zero, intervals, points, names, letters)
        .properties(
            width=560,
            height=alt.Step(STEP),
            description=parts.summary(board),
            title=alt.TitleParams(
                shorten(parts.summary(board), 120),
                subtitle=f"{_bars(board)}adjusted by {board.correction.title}, level {board.alpha:g}{more}",
                anchor="start",
            ),
        )
        .configure(**LIGHT)
    )
    return found


def _bars(board: Leaderboard) -> str:
    """Return what the bars and the dagger mean."""
    if not any(row.interval is not None for row in board.rows):
        return ""
    decided = f" ({parts.DAGGER} decided, and holds 0)" if any(row.holds_zero for row in board.rows) else ""
    return f"bars: {parts.interval_name(board)}s{decided}; "


def _row(board: Leaderboard, place: int) -> dict[str, Any]:
    row = board.rows[place]
    interval = row.interval
    bounded = interval is not None and math.isfinite(interval.low) and math.isfinite(interval.high)
    return {
        "place": place,
        "run": row.name,
        "label": f"{shorten(row.name, 40)}  {format_number(row.score)}{parts.DAGGER * row.holds_zero}",
        "score": format_number(row.score),
        "difference": 0.0 if row.pair is None else row.pair.difference,
        "low": interval.low if interval is not None and bounded else None,
        "high": interval.high if interval is not None and bounded else None,
        "interval": parts.interval(row),
        "adjusted p": "" if row.pair is None else parts.adjusted(board, row.pair),
        "verdict": "reference" if row.pair is None else row.pair.verdict,
        "group": row.letters or "",
    }
