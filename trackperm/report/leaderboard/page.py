"""Page of a leaderboard: one HTML file that needs no network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trackperm.comparison.verdict import MARKERS, Sign
from trackperm.errors import MissingDependencyError
from trackperm.leaderboards import Leaderboard, Pair
from trackperm.report import charts
from trackperm.report.leaderboard import cells as parts
from trackperm.report.leaderboard import chart
from trackperm.report.templating import render
from trackperm.report.text import format_number

MOST_IN_MATRIX = 40
"""Runs of the largest matrix of pairs, which still fits a screen."""


_OPPOSITE: Mapping[Sign, Sign] = {"better": "worse", "worse": "better", "undecided": "undecided"}


def html(board: Leaderboard, *, stars: bool = False) -> str:
    """Render `board` as a page; without ``trackperm[plots]`` it has a note instead of a chart."""
    try:
        drawn: dict[str, Any] = charts.embedded(chart.chart(board))
        del drawn["spec"]["title"]  # the page has its own headline
    except MissingDependencyError as error:
        drawn = {"refusal": error.message}
    table = parts.cells(board, stars=stars)
    return render(
        "leaderboard.html",
        summary=parts.summary(board),
        method=parts.method(board),
        scope=parts.SCOPE,
        table=table,
        verdicts=["reference" if row.pair is None else row.pair.verdict for row in board.rows],
        chart=drawn,
        legend=parts.legend(board),
        notes=parts.notes(board),
        incomplete=parts.incomplete(board),
        matrix=matrix(board),
        signature=board.signature,
    )


def matrix(board: Leaderboard) -> dict[str, Any] | None:
    """Return names and cells of all pairs, the run of a row against the run of a column.

    A cell has ``marker``, ``verdict``, ``p`` and ``difference``; a run against itself is None. Return None if
    there are more than :data:`MOST_IN_MATRIX` runs, fewer than three, or a baseline.
    """
    n = len(board.rows)
    if board.baseline is not None or not 3 <= n <= MOST_IN_MATRIX:
        return None
    cells: list[list[dict[str, str] | None]] = [[None] * n for _ in range(n)]
    for pair in board.pairs:
        i, j = pair.candidate, pair.baseline
        cells[i][j] = _cell(board, pair, pair.verdict, pair.difference)
        cells[j][i] = _cell(board, pair, _OPPOSITE[pair.verdict], 0.0 - pair.difference)
    return {"names": [row.name for row in board.rows], "cells": cells}


def _cell(board: Leaderboard, pair: Pair, verdict: Sign, difference: float) -> dict[str, str]:
    return {
        "marker": MARKERS[verdict],
        "verdict": verdict,
        "p": parts.adjusted(board, pair),
        "difference": format_number(difference, sign=True),
    }
