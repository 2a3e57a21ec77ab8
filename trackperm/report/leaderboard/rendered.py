"""Leaderboard rendered for a tracker: one value with everything that the tracker's pages show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trackperm.leaderboards import Leaderboard
from trackperm.report.formatting import shorten
from trackperm.report.leaderboard import cells, text
from trackperm.report.leaderboard.formats import render
from trackperm.trackers.publication import Table

MAX_ROWS = 1000
"""Rows that the tables of trackers' pages show."""

FILES: Mapping[str, str] = {
    "leaderboard.md": "markdown",
    "trackperm_leaderboard.html": "html",
    "leaderboard.csv": "csv",
    "leaderboard.json": "json",
    "leaderboard.png": "png",
}
"""Formats by artifact path."""


@dataclass(frozen=True)
class RenderedLeaderboard:
    """Texts, tables and files of a leaderboard.

    Attributes
    ----------
    board : Leaderboard
        The leaderboard.
    name, summary : str
        Title of its run, and a sentence about what was compared.
    tables : mapping of str to Table
        Tables of runs and pairs by name, cut to :data:`MAX_ROWS` rows.
    files : mapping of str to bytes
        Files by artifact path.
    """

    board: Leaderboard
    name: str
    summary: str
    tables: Mapping[str, Table]
    files: Mapping[str, bytes]

    def markdown(self, remarks: Sequence[str]) -> str:
        """Return the whole leaderboard in Markdown, with remarks."""
        return text.markdown(self.board, remarks=remarks)


def render_leaderboard(board: Leaderboard) -> RenderedLeaderboard:
    """Render a leaderboard for a tracker.

    Raises
    ------
    MissingDependencyError
        If the libraries of ``trackperm[plots]`` are not installed.
    """
    statistic = shorten(board.statistic.title, 64)
    against = "" if board.baseline is None else f" vs {shorten(board.rows[board.baseline].name, 40)}"
    of_all = f" of {len(board.rows) + len(board.incomplete)}" if board.incomplete else ""
    return RenderedLeaderboard(
        board,
        name=f"{statistic}: leaderboard of {len(board.rows)}{of_all} runs{against}",
        summary=cells.summary(board),
        tables={"board": _board(board), "pairs": _smallest_pairs(board)},
        files={path: render(board, format_) for path, format_ in FILES.items()},
    )


def _board(board: Leaderboard) -> Table:
    """Return one row per run, and one per excluded run with the reason."""
    columns = ("rank", "run", "score", "difference", "interval", "verdict", "adjusted_p", "group", "ranks")
    rows: list[tuple[str | int | float | bool | None, ...]] = [
        (
            row.rank,
            row.name,
            row.score,
            None if row.pair is None else row.pair.difference,
            cells.interval(row),
            cells.verdict(board, place),
            None if row.pair is None else cells.adjusted(board, row.pair),
            row.letters,
            cells.ranks(row),
            None,
        )
        for place, row in enumerate(board.rows)
    ]
    rows += [(None, name, *[None] * 7, reason) for name, reason in cells.incomplete(board)]
    return Table((*columns, "incomplete"), rows[:MAX_ROWS])


def _smallest_pairs(board: Leaderboard) -> Table:
    """Return the pairs with the smallest p-values; these are text, which no viewer rounds to 0."""
    columns = ("candidate", "baseline", "difference", "p", "adjusted_p", "verdict", "n_discordant", "method")
    chosen = sorted(board.pairs, key=lambda pair: pair.log10_upper)[:MAX_ROWS]
    return Table(
        columns,
        [
            (
                board.rows[pair.candidate].name,
                board.rows[pair.baseline].name,
                pair.difference,
                f"{pair.test.relation.strip('=')}{pair.test.format_pvalue(3)}",
                cells.adjusted(board, pair),
                f"{pair.marker} {pair.verdict}",
                pair.test.n_discordant,
                pair.test.method,
            )
            for pair in chosen
        ],
    )
