"""Page of a leaderboard: one HTML file without a script, which needs no network."""

from __future__ import annotations

from trackperm.leaderboards import Leaderboard
from trackperm.report.leaderboard import cells as parts
from trackperm.report.leaderboard.chart_layout import MOST_ROWS, chart_layout
from trackperm.report.leaderboard.pairs import MOST_IN_TABLE, cells_of_pairs, has_pairs, heat_map
from trackperm.report.templating import render


def html(board: Leaderboard, *, stars: bool = False) -> str:
    """Render `board` as a page: the finding, a chart of all runs, all pairs, then the numbers."""
    few = len(board.rows) <= MOST_IN_TABLE
    chart = chart_layout(board)
    return render(
        "leaderboard.html",
        finding=parts.finding(board),
        lead=parts.lead(board),
        summary=parts.summary(board),
        method=parts.method(board),
        scope=parts.SCOPE,
        table=parts.cells(board, stars=stars),
        roles=[parts.role(board, place) for place in range(len(board.rows))],
        chart=chart,
        legend=parts.legend(board, stars=stars),
        notes=parts.notes(board),
        incomplete=parts.incomplete(board),
        hints=parts.incomplete_hints(board),
        pairs=cells_of_pairs(board) if has_pairs(board) and few else None,
        heat=heat_map(board) if has_pairs(board) and not few else None,
        ranks=[row.rank for row in board.rows[:MOST_ROWS]],
        signature=board.signature,
    )
