"""Comparisons and leaderboards as the plain values that pages show: text ready to be read, nothing of markup.

Every value is one that JSON can hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from trackperm.comparison import Comparison
from trackperm.comparison.verdict import MARKERS, Sign
from trackperm.errors import CapacityError, MissingDependencyError
from trackperm.leaderboards import Leaderboard, Pair, Row
from trackperm.report import charts, description, page, text
from trackperm.report.changed_examples import flips
from trackperm.report.leaderboard import cells as leaderboard_cells
from trackperm.report.leaderboard import chart as leaderboard_chart
from trackperm.report.leaderboard import page as leaderboard_page
from trackperm.report.leaderboard import tables as leaderboard_tables
from trackperm.report.leaderboard import text as leaderboard_text
from trackperm.report.text import format_number
from trackperm.trackers.publication import Published
from trackperm.trackers.references import TrackedRun

__all__ = ["comparison_view", "flips", "leaderboard_view"]

_OPPOSITE: Mapping[Sign, Sign] = {"better": "worse", "worse": "better", "undecided": "undecided"}


def comparison_view(comparison: Comparison, logged: Published | None = None) -> dict[str, Any]:
    """Return what the page of a comparison shows.

    Parameters
    ----------
    comparison : Comparison
        The result to show.
    logged : Published, optional
        What became of its publication, if it was logged.

    Returns
    -------
    dict
        Of plain values; the examples that changed are not among them, see :func:`flips`.
    """
    return {
        "kind": "compare",
        "baseline": _run(comparison.baseline_name, comparison.baseline_run),
        "candidate": _run(comparison.candidate_name, comparison.candidate_run),
        "statistic": comparison.title,
        "marker": comparison.marker,
        "verdict": comparison.verdict,
        "headline": text.headline(comparison),
        "facts": [list(fact) for fact in page.facts(comparison)],
        "scope": text.scope(comparison),
        "notes": text.notes(comparison),
        "chart": _pmf(comparison),
        "explanation": description.explanation(comparison),
        "pairing": list(comparison.pairing.lines()),
        "signature": comparison.signature,
        "flips": {
            "total": comparison.n_discordant,
            "better": comparison.n_better,
            "worse": comparison.n_worse,
        },
        "comparison": comparison.to_dict(),
        "logged": _logged(logged),
    }


def leaderboard_view(board: Leaderboard, logged: Published | None = None) -> dict[str, Any]:
    """Return what the page of a leaderboard shows.

    Parameters
    ----------
    board : Leaderboard
        The result to show.
    logged : Published, optional
        What became of its publication, if it was logged.

    Returns
    -------
    dict
        Of plain values.
    """
    table = leaderboard_cells.cells(board)
    return {
        "kind": "leaderboard",
        "statistic": board.statistic.name,
        "summary": leaderboard_cells.summary(board),
        "method": leaderboard_cells.method(board),
        "scope": leaderboard_cells.SCOPE,
        "signature": board.signature,
        "legend": leaderboard_cells.legend(board),
        "notes": leaderboard_cells.notes(board),
        "incomplete": [list(run) for run in leaderboard_cells.incomplete(board)],
        "columns": [
            {"name": name, "numeric": numeric}
            for name, numeric in zip(table.header, table.numeric, strict=True)
        ],
        "rows": [
            {
                **_run(row.name, row.data.run),
                "cells": list(cells),
                "sort": [_order(board, name, row) for name in table.header],
                "verdict": "reference" if row.pair is None else row.pair.verdict,
            }
            for row, cells in zip(board.rows, table.rows, strict=True)
        ],
        "matrix": _matrix(board),
        "chart": _differences(board),
        "markdown": leaderboard_text.markdown(board),
        "latex": leaderboard_tables.latex(board),
        "board": board.to_dict(),
        "logged": _logged(logged),
    }


def _run(name: str, run: TrackedRun | None) -> dict[str, Any]:
    return {
        "name": name,
        "id": None if run is None else run.reference.locator,
        "experiment_id": None if run is None else run.container,
        "url": None if run is None else run.url,
    }


def _logged(published: Published | None) -> dict[str, Any] | None:
    if published is None:
        return None
    return {
        "run_id": published.run.reference.locator,
        **_run(published.run.name, published.run),
        "created": published.created,
        "look": published.look,
        "remarks": list(published.remarks),
    }


def _pmf(comparison: Comparison) -> dict[str, Any]:
    """Describe the null distribution, or say why it is not drawn; the page has its own headline."""
    try:
        drawn = charts.described(charts.pmf_chart(comparison))
    except (CapacityError, MissingDependencyError) as error:
        return {"refusal": error.message}
    del drawn["spec"]["title"]
    return {**drawn, "caption": page.caption(comparison)}


def _differences(board: Leaderboard) -> dict[str, Any]:
    try:
        drawn = charts.described(leaderboard_chart.chart(board))
    except MissingDependencyError as error:
        return {"refusal": error.message}
    del drawn["spec"]["title"]
    drawn["spec"]["height"] = leaderboard_chart.STEP * min(len(board.rows), leaderboard_chart.MOST_ROWS)
    other = "the best run" if board.baseline is None else "the baseline"
    bars = f"its {leaderboard_cells.interval_name(board)}"
    return {**drawn, "caption": f"The difference of every run to {other}, with {bars}."}


_NUMBERS: Mapping[str, Callable[[Row], float | None]] = {
    "rank": lambda row: row.rank,
    "difference": lambda row: None if row.pair is None else row.pair.difference,
    "interval": lambda row: None if row.interval is None else row.interval.low,
    "adjusted p": lambda row: None if row.pair is None else row.pair.log10_adjusted,
    "possible ranks": lambda row: None if row.ranks is None else row.ranks[0],
}
"""What a column is sorted by, where that is not its text."""


def _order(board: Leaderboard, column: str, row: Row) -> float | None:
    if column == board.statistic.name:
        value: float | None = row.score
    else:
        name = "interval" if column == leaderboard_cells.interval_name(board) else column
        value = _NUMBERS[name](row) if name in _NUMBERS else None
    return value if value is not None and math.isfinite(value) else None


def _matrix(board: Leaderboard) -> dict[str, Any] | None:
    """Describe every pair, the run of the row against that of the column; None where there are too many."""
    n = len(board.rows)
    if board.baseline is not None or not 3 <= n <= leaderboard_page.MOST_IN_MATRIX:
        return None
    cells: list[list[dict[str, str] | None]] = [[None] * n for _ in range(n)]
    for pair in board.pairs:
        cells[pair.candidate][pair.baseline] = _pair(board, pair, pair.verdict, pair.difference)
        cells[pair.baseline][pair.candidate] = _pair(
            board, pair, _OPPOSITE[pair.verdict], 0.0 - pair.difference
        )
    return {"names": [row.name for row in board.rows], "cells": cells}


def _pair(board: Leaderboard, pair: Pair, verdict: Sign, difference: float) -> dict[str, str]:
    return {
        "marker": MARKERS[verdict],
        "verdict": verdict,
        "p": leaderboard_cells.adjusted(board, pair),
        "difference": format_number(difference, sign=True),
    }
