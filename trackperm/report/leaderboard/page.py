"""The full page of a leaderboard: a single file that needs no network."""

from __future__ import annotations

from typing import Any

from trackperm.errors import MissingDependencyError
from trackperm.leaderboards import Leaderboard
from trackperm.report import charts
from trackperm.report.leaderboard import cells as parts
from trackperm.report.leaderboard import chart
from trackperm.report.templating import render
from trackperm.report.text import shorten

MOST_IN_MATRIX = 40
"""Runs up to which all pairs are shown as a matrix."""


def html(board: Leaderboard, *, stars: bool = False) -> str:
    """Render `board` as a page; without ``trackperm[plots]`` it has no chart and says so."""
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
        matrix=_matrix(board),
        signature=board.signature,
    )


def _matrix(board: Leaderboard) -> dict[str, Any] | None:
    """Marker and adjusted p of every pair, row against column; None where there are too many, or not all."""
    n = len(board.rows)
    if board.baseline is not None or n > MOST_IN_MATRIX or n < 3:
        return None
    cells: list[list[tuple[str, str, str]]] = [[("", "", "same")] * n for _ in range(n)]
    for pair in board.pairs:
        pvalue = parts.adjusted(board, pair)
        mirrored = {"better": ("▼", "worse"), "worse": ("▲", "better"), "undecided": ("≈", "undecided")}
        cells[pair.candidate][pair.baseline] = (pair.marker, pvalue, pair.verdict)
        cells[pair.baseline][pair.candidate] = (
            mirrored[pair.verdict][0],
            pvalue,
            mirrored[pair.verdict][1],
        )
    return {"names": [shorten(row.name, 30) for row in board.rows], "cells": cells}
