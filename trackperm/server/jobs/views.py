"""JSON values that the pages of comparisons and leaderboards show: finished text without markup."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from trackperm.comparison import Comparison
from trackperm.leaderboards import Leaderboard, Row
from trackperm.option_names import on_pages
from trackperm.report import phrases
from trackperm.report.changed_examples import n_changed, row_noun
from trackperm.report.leaderboard import cells as leaderboard_cells
from trackperm.report.leaderboard import tables as leaderboard_tables
from trackperm.report.leaderboard import text as leaderboard_text
from trackperm.report.leaderboard.chart_layout import chart_layout
from trackperm.report.leaderboard.pairs import MOST_IN_TABLE, cells_of_pairs, has_pairs, heat_map
from trackperm.report.view import ComparisonView
from trackperm.trackers.publication import Published
from trackperm.trackers.references import TrackedRun


def comparison_view(comparison: Comparison, logged: Published | None = None) -> dict[str, Any]:
    """Return the JSON values of a comparison's page, without the changed examples, which it reads bit by bit.

    Drawings are SVG in which all texts are escaped. `logged` is the run that holds the result, if it was
    logged.
    """
    view = ComparisonView.of(comparison)
    return {
        "kind": "compare",
        "baseline": run_view(comparison.baseline_name, comparison.baseline_run),
        "candidate": run_view(comparison.candidate_name, comparison.candidate_run),
        "statistic": comparison.title,
        "marker": comparison.marker,
        "verdict": comparison.verdict,
        "headline": view.headline,
        "words": view.words,
        "bars": [view.bar, view.narrow_bar],
        "facts": [list(fact) for fact in view.facts],
        "scope": view.scope,
        "notes": list(map(on_pages, view.notes)),
        "null": {
            "drawings": [view.null, view.narrow_null],
            "caption": view.caption,
            "refusal": view.refusal,
        },
        "explanation": view.explanation,
        "pairing": list(map(on_pages, view.pairing)),
        "signature": view.signature,
        "changed": {
            "total": n_changed(comparison),
            "unit": row_noun(comparison),
            "better": comparison.n_better,
            "worse": comparison.n_worse,
            "case": phrases.in_one_case(comparison),
        },
        "comparison": comparison.to_dict(),
        "logged": _logged(logged),
    }


def leaderboard_view(board: Leaderboard, logged: Published | None = None) -> dict[str, Any]:
    """Return the values of a leaderboard's page, as :func:`comparison_view` does."""
    table = leaderboard_cells.cells(board)
    return {
        "kind": "leaderboard",
        "statistic": board.statistic.title,
        "finding": leaderboard_cells.finding(board),
        "lead": leaderboard_cells.lead(board),
        "summary": leaderboard_cells.summary(board),
        "method": leaderboard_cells.method(board),
        "scope": leaderboard_cells.SCOPE,
        "signature": board.signature,
        "legend": leaderboard_cells.legend(board),
        "notes": list(map(on_pages, leaderboard_cells.notes(board))),
        "incomplete": [[name, on_pages(reason)] for name, reason in leaderboard_cells.incomplete(board)],
        "columns": [
            {"name": name, "numeric": numeric}
            for name, numeric in zip(table.header, table.numeric, strict=True)
        ],
        "rows": [
            {
                **run_view(row.name, row.data.run),
                "cells": list(cells),
                "sort": [_order(board, name, row) for name in table.header],
                "verdict": leaderboard_cells.role(board, place),
            }
            for place, (row, cells) in enumerate(zip(board.rows, table.rows, strict=True))
        ],
        "chart": asdict(chart_layout(board)),
        "pairs": _pairs(board),
        "markdown": leaderboard_text.markdown(board),
        "latex": leaderboard_tables.latex(board),
        "board": board.to_dict(),
        "logged": _logged(logged),
    }


def run_view(name: str, run: TrackedRun | None) -> dict[str, Any]:
    """Return name, id, experiment and URL of a run; None where it is not in a tracker."""
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
        **run_view(published.run.name, published.run),
        "created": published.created,
        "look": published.look,
        "remarks": list(published.remarks),
    }


def _pairs(board: Leaderboard) -> dict[str, Any] | None:
    """Return the pairs below the diagonal, and a heat map if they are too many for a table.

    A pair is the verdict on the lower run of the leaderboard, its difference and the adjusted p-value.
    """
    if not has_pairs(board):
        return None
    below = [
        [[cell.verdict, cell.difference, cell.p] for cell in row[:place] if cell is not None]
        for place, row in enumerate(cells_of_pairs(board))
    ]
    return {"below": below, "heat": None if len(board.rows) <= MOST_IN_TABLE else asdict(heat_map(board))}


_NUMBERS: Mapping[str, Callable[[Row], float | None]] = {
    "rank": lambda row: row.rank,
    "difference": lambda row: None if row.pair is None else row.pair.difference,
    "interval": lambda row: None if row.interval is None else row.interval.low,
    "adjusted p": lambda row: None if row.pair is None else row.pair.log10_adjusted,
    "possible ranks": lambda row: None if row.ranks is None else row.ranks[0],
}
"""Numbers by which columns are sorted; other columns are sorted by their text."""


def _order(board: Leaderboard, column: str, row: Row) -> float | None:
    if column == board.statistic.title:
        value: float | None = row.score
    else:
        renamed = {
            leaderboard_cells.interval_name(board): "interval",
            leaderboard_cells.pvalue_name(board): "adjusted p",
        }
        name = renamed.get(column, column)
        value = _NUMBERS[name](row) if name in _NUMBERS else None
    return value if value is not None and math.isfinite(value) else None
