"""All pairs of a leaderboard: a table of a few runs, a heat map of many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

from trackperm.comparison.inference.verdict import MARKERS, Sign
from trackperm.leaderboards import Leaderboard
from trackperm.report.leaderboard import cells
from trackperm.report.leaderboard.chart_layout import MOST_ROWS, labelled_places
from trackperm.report.numbers import format_difference

MOST_IN_TABLE = 10
"""Runs of a table with words and numbers in every cell, which still fits 1,280 pixels."""

_LABELS = 12
"""Ranks along a side of the heat map, 25 pixels apart on a phone."""

_CELL, _SIDE = 22, 860
"""Pixels of a cell and of the whole heat map at most: it fits a screen of 1,280 by 900 pixels."""

OPPOSITE: Mapping[Sign, Sign] = {"better": "worse", "worse": "better", "undecided": "undecided"}


@dataclass(frozen=True)
class Cell:
    """Comparison of the run of a row with that of a column.

    Attributes
    ----------
    marker, verdict : str
        Verdict on the run of the row.
    p, difference : str
        Adjusted p-value, and score of the run of the row minus that of the other.
    """

    marker: str
    verdict: Sign
    p: str
    difference: str


@dataclass(frozen=True)
class HeatMap:
    """Square of all pairs, the run of a row against that of a column, in units of a cell.

    Attributes
    ----------
    n : int
        Runs along a side, in the order of the leaderboard.
    paths : dict of str to str
        Path of the cells of each verdict, as SVG path data.
    side : int
        Pixels of a side on a wide screen.
    ticks : list of (float, str)
        Positions in percent of a side, and the rank of the run there.
    label : str
        What the heat map shows, in words.
    """

    n: int
    paths: dict[str, str]
    side: int
    ticks: list[tuple[float, str]]
    label: str


def has_pairs(board: Leaderboard) -> bool:
    """Whether all pairs of at least three runs were compared."""
    return board.baseline is None and len(board.rows) >= 3


def cells_of_pairs(board: Leaderboard) -> list[list[Cell | None]]:
    """Return a cell for each two of the first :data:`MOST_ROWS` runs; None for a run and itself."""
    n, extra = min(len(board.rows), MOST_ROWS), cells.score_digits(board)
    found: list[list[Cell | None]] = [[None] * n for _ in range(n)]
    for pair in board.pairs:
        i, j = pair.candidate, pair.baseline
        if max(i, j) < n:
            p, size = cells.adjusted(board, pair), pair.difference
            for row, column, verdict, difference in (
                (i, j, pair.verdict, size),
                (j, i, OPPOSITE[pair.verdict], 0.0 - size),
            ):
                found[row][column] = Cell(
                    MARKERS[verdict], verdict, p, format_difference(difference, extra=extra)
                )
    return found


def heat_map(board: Leaderboard) -> HeatMap:
    """Draw the verdicts on all pairs of the first :data:`MOST_ROWS` runs."""
    n = min(len(board.rows), MOST_ROWS)
    verdicts: list[list[Sign | None]] = [[None] * n for _ in range(n)]
    for pair in board.pairs:
        i, j = pair.candidate, pair.baseline
        if max(i, j) < n:
            verdicts[i][j], verdicts[j][i] = pair.verdict, OPPOSITE[pair.verdict]
    paths: dict[str, str] = dict.fromkeys(OPPOSITE, "")
    for i, row in enumerate(verdicts):
        column = 0
        for verdict, group in groupby(row):
            length = len(list(group))
            if verdict is not None:
                paths[verdict] += f"M{column} {i}h{length}v1h-{length}z"
            column += length
    decided = sum(pair.verdict != "undecided" for pair in board.pairs)
    shown = f"; the first {n} of {len(board.rows):,} runs are shown" if n < len(board.rows) else ""
    return HeatMap(
        n=n,
        paths=paths,
        side=min(_CELL * n, _SIDE),
        ticks=[
            (round(100 * (place + 0.5) / n, 2), f"{board.rows[place].rank}")
            for place in labelled_places(n, _LABELS)
        ],
        label=f"{decided:,} of {len(board.pairs):,} pairs are shown to differ,"
        f" {len(board.pairs) - decided:,} are"
        f" undecided{shown}",
    )
