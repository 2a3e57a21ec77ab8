"""Columns of labels that are the verdicts of a judge, which differ between runs as scores do."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import polars as pl

from trackperm.errors import InputError, TrackpermError
from trackperm.pairing.judges import has_judge
from trackperm.statistic.direction import word_of_value
from trackperm.tables.columns.names import ANSWERS
from trackperm.tables.columns.types import typed_columns
from trackperm.tables.table import ExampleTable, shared_columns

_MOST_ROWS = 100_000
"""Most rows that are read of each run."""

_MOST_VERDICTS = 20
"""Most distinct verdicts of a judge."""


def note_on_verdicts(
    tables: Sequence[ExampleTable], label: str, score: str, *, greater_is_better: bool
) -> str | None:
    """Return a note on labels that say in words what the scores say in numbers; None for reference answers.

    Raises
    ------
    InputError
        If the words of the labels say that other scores are better than the statistic takes for better.
    """
    verdicts = _verdicts(tables, label, score)
    if verdicts is None:
        return None
    worst, best = (verdicts[0], verdicts[-1]) if greater_is_better else (verdicts[-1], verdicts[0])
    better = "greater" if greater_is_better else "lower"
    words = word_of_value(worst), word_of_value(best)
    if words[0] == "good" or words[1] == "bad":
        option = f"{label}={worst}" if words[0] == "good" else f"{label}!={best}"
        raise InputError(
            f"{better} values of `{score}` are better, but such examples have the `{label}` {best!r}, and"
            f" others {worst!r}",
            hint=f"`--metric {shlex.quote(option)}` compares the shares of good verdicts.",
        )
    said = f"labels were not compared: `{label}` says in words what `{score}` says in numbers"
    if words[1] == "good" or words[0] == "bad":
        return said
    return f"look: {said}; {best!r} is taken for better than {worst!r}"


def _verdicts(tables: Sequence[ExampleTable], label: str, score: str) -> list[str] | None:
    """Return the labels from the lowest score to the greatest; None if they may be reference answers.

    With a column of a judge, the scores of two labels have to lie apart in both runs together. Without one,
    each label has to have a score of its own, there are no answers, and one label is more frequent in one
    run: a model that always gives the same answer has scores that follow from the reference answers.
    """
    names = shared_columns(tables)
    is_judged = has_judge(tables)
    if not is_judged and any(name.lower() in ANSWERS for name in names):
        return None
    read = [frame for table in tables if (frame := _labels_with_scores(table, label, score)) is not None]
    if len(read) < len(tables):
        return None
    ranges = pl.concat(read).group_by("label").agg(low=pl.min("score"), high=pl.max("score")).sort("low")
    lie_apart = bool((ranges["high"].shift() < ranges["low"]).fill_null(True).all())
    if not lie_apart or not 2 <= len(ranges) <= _MOST_VERDICTS:
        return None
    have_one_score = bool((ranges["low"] == ranges["high"]).all())
    counts = [frame["label"].value_counts().sort("label") for frame in read]
    is_known = is_judged or (have_one_score and any(not each.equals(counts[0]) for each in counts))
    return ranges["label"].to_list() if is_known else None


def _labels_with_scores(table: ExampleTable, label: str, score: str) -> pl.DataFrame | None:
    """Return labels as text and scores of the first rows; None if they cannot be read."""
    try:
        head = table.head(_MOST_ROWS).only((label, score))
        typed, _, _ = typed_columns(head, head, [label, score])
        labels, scores = (typed.frame.get_column(name).to_polars() for name in (label, score))
        found = pl.DataFrame({"label": labels.cast(pl.String), "score": scores.cast(pl.Float64)})
    except (TrackpermError, pl.exceptions.PolarsError):
        return None
    return found.drop_nulls()
