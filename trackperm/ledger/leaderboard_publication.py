"""Publication of a leaderboard: metrics, tables, files, tags and a description for a tracker."""

from __future__ import annotations

import math

import polars as pl

from trackperm.errors import InputError
from trackperm.leaderboards import Leaderboard
from trackperm.ledger.comparison_publication import parquet
from trackperm.ledger.run_texts import leaderboard_cell
from trackperm.report.formatting import shorten
from trackperm.report.leaderboard.rendered import MAX_ROWS, render_leaderboard
from trackperm.statistic.written_spec import written_spec
from trackperm.trackers.markdown_limit import truncate_leaderboard
from trackperm.trackers.publication import (
    KIND_TAG,
    LEADERBOARD,
    PAIRS_TAG,
    TEST_SET_TAG,
    Publication,
    RunTags,
    score_tag,
)
from trackperm.trackers.references import TrackedRun

MAX_DESCRIPTION = 8000
"""Characters of a description: MLflow cuts longer tags without notice."""

PAIRS_FILE = "trackperm/pairs.parquet"
"""All pairs with their p-values, which the ledger reads."""

LOG10_COLUMN = "log10_p_upper"
"""Column of :data:`PAIRS_FILE` with the values that are corrected."""


def leaderboard_publication(board: Leaderboard, sentence: str | None = None) -> Publication:
    """Build the publication of a leaderboard; `sentence` has the places of its pairs in the ledger.

    Equal leaderboards give byte-identical publications, with the same versions of the libraries.
    """
    rendered = render_leaderboard(board)
    remarks = [] if sentence is None else [sentence]
    if len(board.rows) > MAX_ROWS:
        remarks.append(f"table of runs: the first {MAX_ROWS}; all are in leaderboard.csv")
    if len(board.pairs) > MAX_ROWS:
        remarks.append(f"table of pairs: the {MAX_ROWS} with the smallest p; all are in {PAIRS_FILE}")
    whole = "the artifact `leaderboard.md`"
    description = truncate_leaderboard(rendered.markdown(remarks), MAX_DESCRIPTION, whole)
    differing = sum(pair.verdict != "undecided" for pair in board.pairs)
    return Publication(
        key=board.key,
        name=rendered.name,
        metrics=_metrics(board, differing),
        tables=rendered.tables,
        files={
            **rendered.files,
            "trackperm/statistic.yaml": written_spec(board.statistic).encode(),
            PAIRS_FILE: parquet(_pairs(board)),
        },
        tags={
            KIND_TAG: LEADERBOARD,
            PAIRS_TAG: str(len(board.pairs)),
            TEST_SET_TAG: board.test_set,
            "trackperm.statistic": board.statistic.name,
            "trackperm.verdict": f"{differing} of {len(board.pairs)} pairs differ",
            "trackperm.n_runs": str(len(board.rows)),
            "trackperm.signature": board.signature,
            **({} if board.baseline is None else {"trackperm.baseline": board.rows[board.baseline].origin}),
        },
        description=description or f"{rendered.summary}: {whole} shows it.",
        kind=LEADERBOARD,
        entrants=_entrants(board),
    )


def require_taggable(board: Leaderboard) -> None:
    """Refuse to tag the runs of a leaderboard without a baseline, or runs that are not in a tracker."""
    if board.baseline is None:
        raise InputError(
            "`--tag-runs` needs a baseline, because tags have the verdict against it",
            hint="add `--baseline RUN`.",
        )
    stray = next((row for row in board.rows if row.pair is not None and row.data.run is None), None)
    if stray is not None:
        raise InputError(
            f"`--tag-runs` needs runs in a tracker, but `{stray.name}` is not in one",
            hint="leave `--tag-runs` out; the leaderboard itself has all verdicts.",
        )


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


def _pairs(board: Leaderboard) -> pl.DataFrame:
    """Return all pairs in the order of the leaderboard."""
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


def _entrants(board: Leaderboard) -> list[tuple[TrackedRun, RunTags]]:
    """Return the runs in trackers, with tags if all were compared with a baseline."""
    name, entrants = board.statistic.name, []
    for row in board.rows:
        tags: RunTags = {}
        if board.baseline is not None:
            tags = score_tag(name, row.score)
            if row.pair is not None:
                against = shorten(board.rows[board.baseline].name)
                tags = {
                    f"sig.{name}": leaderboard_cell(board, row.score, row.pair),
                    f"sig.{name}.vs": against,
                    **tags,
                }
        if row.data.run is not None:
            entrants.append((row.data.run, tags))
    return entrants
