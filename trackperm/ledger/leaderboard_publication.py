"""A leaderboard made ready for a tracker: metrics, tables, files, tags and a description."""

from __future__ import annotations

import math
from collections.abc import Mapping

import polars as pl

from trackperm.errors import InputError
from trackperm.leaderboards import Leaderboard, Pair, Row
from trackperm.ledger.comparison_publication import parquet
from trackperm.report import text
from trackperm.report.leaderboard import cells as parts
from trackperm.report.leaderboard import text as leaderboard_text
from trackperm.report.leaderboard.formats import render
from trackperm.trackers.markdown_limit import truncate_leaderboard
from trackperm.trackers.publication import KIND_TAG, LEADERBOARD, PAIRS_TAG, TEST_SET_TAG, Publication, Table
from trackperm.trackers.references import TrackedRun

MAX_ROWS = 1000
"""Most rows of a table that trackers' pages show."""

MAX_DESCRIPTION = 8000
"""Most characters of the description of a run: what MLflow keeps of a tag."""

PAIRS_FILE = "trackperm/pairs.parquet"
"""All pairs with their p-values, which the ledger reads."""

LOG10_COLUMN = "log10_p_upper"
"""Column of :data:`PAIRS_FILE` that enters corrections."""

FILES: Mapping[str, str] = {
    "leaderboard.md": "markdown",
    "trackperm_leaderboard.html": "html",
    "leaderboard.csv": "csv",
    "leaderboard.json": "json",
    "leaderboard.png": "png",
}
"""Formats by artifact path."""


def leaderboard_publication(board: Leaderboard, sentence: str | None = None) -> Publication:
    """Turn `board` into what a tracker adapter writes.

    Parameters
    ----------
    board : Leaderboard
        What :func:`trackperm.leaderboard` returned.
    sentence : str, optional
        Which of the logged comparisons on its test set its pairs are.

    Returns
    -------
    Publication
        Equal leaderboards give equal publications, byte for byte, on the same versions of the libraries.

    Raises
    ------
    MissingDependencyError
        If the libraries of ``trackperm[plots]`` are not installed.
    """
    statistic = board.statistic.name
    remarks = [] if sentence is None else [sentence]
    if len(board.rows) > MAX_ROWS:
        remarks.append(f"table of runs: the first {MAX_ROWS}; all are in leaderboard.csv")
    if len(board.pairs) > MAX_ROWS:
        remarks.append(f"table of pairs: the {MAX_ROWS} with the smallest p; all are in {PAIRS_FILE}")
    whole = "the artifact `leaderboard.md`"
    description = truncate_leaderboard(
        leaderboard_text.markdown(board, remarks=remarks), MAX_DESCRIPTION, whole
    )
    differing = sum(pair.verdict != "undecided" for pair in board.pairs)
    return Publication(
        key=board.key,
        name=_name(board),
        metrics=_metrics(board, differing),
        tables={"board": _board(board), "pairs": _smallest_pairs(board)},
        files={
            **{path: render(board, format_) for path, format_ in FILES.items()},
            "trackperm/statistic.yaml": board.statistic.document().encode(),
            PAIRS_FILE: parquet(_pairs(board)),
        },
        tags={
            KIND_TAG: LEADERBOARD,
            PAIRS_TAG: str(len(board.pairs)),
            TEST_SET_TAG: board.test_set,
            "trackperm.statistic": statistic,
            "trackperm.verdict": f"{differing} of {len(board.pairs)} pairs differ",
            "trackperm.n_runs": str(len(board.rows)),
            "trackperm.signature": board.signature,
            **({} if board.baseline is None else {"trackperm.baseline": board.rows[board.baseline].origin}),
        },
        description=description or f"{parts.summary(board)}: {whole} shows it.",
        kind=LEADERBOARD,
        entrants=[(run, _run_tags(board, row)) for row, run in _tracked(board)],
    )


def require_taggable(board: Leaderboard) -> None:
    """Refuse to tag runs of a leaderboard that has no verdict for each of them, or runs in no tracker.

    Raises
    ------
    InputError
        If there is no baseline, or a run is in no tracker.
    """
    if board.baseline is None:
        raise InputError(
            "`--tag-runs` writes the verdict against a baseline, and all pairs were compared",
            hint="`--baseline RUN` compares with one run.",
        )
    stray = next((row for row in board.rows if row.pair is not None and row.data.run is None), None)
    if stray is not None:
        raise InputError(
            f"`--tag-runs` tags all runs, but `{stray.name}` is in no tracker",
            hint="leave it out; the leaderboard itself says everything.",
        )


def _name(board: Leaderboard) -> str:
    against = ""
    if board.baseline is not None:
        against = f" vs {text.shorten(board.rows[board.baseline].name, 40)}"
    return f"{board.statistic.name}: leaderboard of {len(board.rows)} runs{against}"


def _metrics(board: Leaderboard, differing: int) -> dict[str, float]:
    found = {
        "n_runs": len(board.rows),
        "n_incomplete": len(board.incomplete),
        "n_examples": board.n_examples,
        "n_pairs": len(board.pairs),
        "n_significant": differing,
        "best_score": board.rows[0].score,
        "log10_smallest_p": min(pair.test.log10_pvalue for pair in board.pairs),
    }
    name = board.statistic.name
    return {f"{name}/{key}": float(value) for key, value in found.items() if math.isfinite(value)}


def _board(board: Leaderboard) -> Table:
    """One row for each run, then the incomplete ones with the reason."""
    columns = ("rank", "run", "score", "difference", "interval", "verdict", "adjusted_p", "group", "ranks")
    rows: list[tuple[str | int | float | bool | None, ...]] = [
        (
            row.rank,
            row.name,
            row.score,
            None if row.pair is None else row.pair.difference,
            parts.interval(row),
            parts.verdict(board, place),
            None if row.pair is None else parts.adjusted(board, row.pair),
            row.letters,
            parts.ranks(row),
            None,
        )
        for place, row in enumerate(board.rows)
    ]
    rows += [(None, name, *[None] * 7, reason) for name, reason in parts.incomplete(board)]
    return Table((*columns, "incomplete"), rows[:MAX_ROWS])


def _smallest_pairs(board: Leaderboard) -> Table:
    """Pairs by their p-values, these as text, which no viewer rounds to 0."""
    columns = ("candidate", "baseline", "difference", "p", "adjusted_p", "verdict", "n_discordant", "method")
    chosen = sorted(board.pairs, key=lambda pair: pair.log10_upper)[:MAX_ROWS]
    return Table(
        columns,
        [
            (
                board.rows[pair.candidate].name,
                board.rows[pair.baseline].name,
                pair.difference,
                f"{'≈' * (pair.test.method == 'monte-carlo')}{pair.test.format_pvalue(3)}",
                parts.adjusted(board, pair),
                f"{pair.marker} {pair.verdict}",
                pair.test.n_discordant,
                pair.test.method,
            )
            for pair in chosen
        ],
    )


def _pairs(board: Leaderboard) -> pl.DataFrame:
    """All pairs in the order of the leaderboard; `log10_p_upper` is what enters a correction."""
    rows, pairs = board.rows, board.pairs
    return pl.DataFrame(
        {
            "candidate": [rows[pair.candidate].name for pair in pairs],
            "baseline": [rows[pair.baseline].name for pair in pairs],
            "candidate_run": [rows[pair.candidate].origin for pair in pairs],
            "baseline_run": [rows[pair.baseline].origin for pair in pairs],
            "difference": [pair.difference for pair in pairs],
            "log10_p": [pair.test.log10_pvalue for pair in pairs],
            LOG10_COLUMN: [pair.log10_upper for pair in pairs],
            "log10_adjusted_p": [pair.log10_adjusted for pair in pairs],
            "verdict": [pair.verdict for pair in pairs],
            "method": [pair.test.method for pair in pairs],
            "error_bound": [pair.test.error_bound for pair in pairs],
            "n_discordant": [pair.test.n_discordant for pair in pairs],
        }
    )


def _tracked(board: Leaderboard) -> list[tuple[Row, TrackedRun]]:
    return [(row, row.data.run) for row in board.rows if row.data.run is not None]


def _run_tags(board: Leaderboard, row: Row) -> dict[str, str]:
    """Short tags with the adjusted p-value, of a run that was compared with a baseline."""
    if board.baseline is None or row.pair is None:
        return {}
    name = board.statistic.name
    return {
        f"sig.{name}": _short_verdict(board, row.pair),
        f"sig.{name}.vs": text.shorten(board.rows[board.baseline].name),
    }


def _short_verdict(board: Leaderboard, pair: Pair) -> str:
    adjusted = parts.adjusted(board, pair, 2)
    return f"{pair.marker} adj. p{adjusted if adjusted.startswith('≈') else f'={adjusted}'}"
