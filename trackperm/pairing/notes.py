"""Notes on clusters, strata, classes, contrasts and missing predictions, for readers of a comparison."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trackperm.choices import Missing
from trackperm.pairing.engines.base import Frame
from trackperm.pairing.joined import IN_TEST, SIDES, JoinedRows
from trackperm.pairing.report import MISSING_PREDICTIONS, OUTCOMES
from trackperm.statistic import Statistic

CREDIT = "look: the baseline lacks"
"""Start of the note that more predictions of the baseline than of the candidate are missing."""

_COUNTED_AS_WRONG = f"{MISSING_PREDICTIONS} counted as wrong"
_OF_RUN = re.compile(r"([\d,]+) of the")


def design(rows: JoinedRows, frame: Frame, statistic: Statistic) -> list[str]:
    """Describe clusters, strata, single rows and the contrast of a comparison.

    Parameters
    ----------
    frame : narwhals.LazyFrame
        The exchangeable units, with their names as ``id``.
    """
    columns, notes = rows.columns, []
    if columns.cluster is not None:
        n_clusters = int(rows.engine.collected(frame.select(rows.functions.col("id").n_unique())).item())
        notes.append(
            f"clusters: the examples of one `{columns.cluster}` are exchanged together, so the test has"
            f" {n_clusters} units"
        )
    if statistic.weights:
        noun, column = ("classes", columns.classes) if statistic.has_classes else ("strata", columns.strata)
        equal = len(set(statistic.weights.values())) == 1
        of_column = "" if column is None else f" (`{column}`)"
        if statistic.adds_classes:
            notes.append(f"classes: the score adds up counts of {len(statistic.weights)} classes{of_column}")
        elif len(statistic.weights) == 1:
            notes.append(
                f"{noun}: the score of the only {'class' if statistic.has_classes else 'stratum'}{of_column}"
            )
        else:
            notes.append(
                f"{noun}: the mean of the scores of {len(statistic.weights)} {noun}{of_column},"
                f" weighted {'equally' if equal else 'as the statistic says'}"
            )
    if statistic.repeats == "rows" and columns.cluster is None:
        notes.append(
            f"look: unit: each row of `{columns.id}` counts as an example, as requested; rows of one"
            " example depend on each other, so p can be far too small"
        )
    if statistic.contrast == "log ratio":
        notes.append("contrast: difference of the logarithms of the scores")
    return notes


def missing_predictions(rows: JoinedRows) -> list[str]:
    """Note how many rows in the test lack a value that the statistic reads, and how they were counted."""
    f = rows.functions
    lacking = {
        side: f.col(IN_TEST) & ~rows.present(side, rows.columns.of_runs) & ~rows.padding(side)
        for side in SIDES
    }
    n, outcomes = rows.counted(**lacking), OUTCOMES[rows.missing]
    if not any(n.values()):
        return []
    of_baseline, of_candidate = (f"{n[side]:,} of the {side}" for side in SIDES)
    if outcomes[0] == outcomes[1]:
        return [f"{_COUNTED_AS_WRONG}: {of_baseline}, {of_candidate}", *_credit(*(n[side] for side in SIDES))]
    return [
        f"{MISSING_PREDICTIONS}: {of_baseline} at their {outcomes[0]}, {of_candidate} at their {outcomes[1]}"
    ]


def _credit(n_baseline: int, n_candidate: int) -> list[str]:
    """Note that the baseline lacks more predictions, which makes the candidate look better."""
    if n_baseline <= n_candidate:
        return []
    return [
        f"{CREDIT} {n_baseline:,} predictions and the candidate {n_candidate:,}:"
        " counted as wrong, they may make the candidate better; `--missing drop` compares the examples that"
        " both runs have"
    ]


def counted_as_wrong(note: str) -> tuple[int, int] | None:
    """Return the numbers of baseline and candidate that such a note states; None for other notes."""
    if not note.startswith(_COUNTED_AS_WRONG):
        return None
    baseline, candidate = (int(n.replace(",", "")) for n in _OF_RUN.findall(note))
    return baseline, candidate


def without_case(notes: Iterable[str], missing: Missing) -> tuple[str, ...]:
    """Return notes of the worst or the best case of missing predictions, as they are true of both cases."""
    baseline, candidate = (f" at their {outcome}" for outcome in OUTCOMES[missing])
    return tuple(
        note.replace(f"{baseline}, ", ", ").removesuffix(candidate)
        if note.startswith(f"{MISSING_PREDICTIONS}: ")
        else note
        for note in notes
    )
