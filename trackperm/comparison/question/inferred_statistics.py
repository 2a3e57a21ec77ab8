"""Statistics that are inferred from the format or the columns of runs, where the user names none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trackperm.comparison.question.amounts import notes_on_amounts
from trackperm.comparison.question.attacks import require_no_attacks
from trackperm.comparison.question.confidences import notes_on_confidence
from trackperm.comparison.question.copied_labels import require_score_of_outputs
from trackperm.comparison.question.default_statistics import (
    is_name_of_reference,
    require_mean,
    require_scores,
    why_no_accuracy,
)
from trackperm.comparison.question.log_metrics import share_of_true, statistic_of_metric, texts_as_scores
from trackperm.comparison.question.mixed_metrics import require_one_metric
from trackperm.comparison.question.own_scores import OF_CALLS, other_metrics, own_score
from trackperm.comparison.question.ranked_labels import ranked_labels
from trackperm.comparison.question.unclear_statistic import are_predicted_numbers, unclear_statistic
from trackperm.comparison.question.written_names import names_alike
from trackperm.messages import listed
from trackperm.pairing.checks.label_values import require_label_values
from trackperm.statistic import Statistic, load_statistic
from trackperm.tables.columns.decimal_commas import require_decimal_points
from trackperm.tables.columns.names import SCORE, SCORES
from trackperm.tables.columns.truths import are_numbers_or_truths, with_truths
from trackperm.tables.table import ExampleTable, have

_COUNTED = {
    "pooled_f1": ("tp", "incorrect"),
    "bracket_f1": ("matched", "gold", "test"),
    "pooled_error_rate": ("errors", "words"),
}
"""Built-in statistics of columns of counts."""


def statistics_of_columns(
    tables: Sequence[ExampleTable], predictions: str | None, labels: str | None, *, allow_unseen: bool
) -> list[Statistic]:
    """Infer the statistic from the columns; refuse them if no statistic or more than one fits.

    `predictions` and `labels` are the columns of both, None where they are unclear; with `allow_unseen`,
    predictions that no label has are no reason against accuracy.
    """
    shares = {
        name: share for name in SCORES if (share := share_of_true(name, tables, _only(name))) is not None
    }
    scores = [name for name in SCORES if name not in shares and are_numbers_or_truths(name, tables)]
    tables = [with_truths(table, scores) for table in tables]
    refusal = own = None
    if predictions is not None and labels is not None:
        refusal = None if allow_unseen else why_no_accuracy(tables, predictions, labels)
        if refusal is None and not allow_unseen:
            own = own_score(tables, predictions, labels, [*scores, *shares])
        if refusal is None and own is None:
            notes = notes_on_amounts(tables, predictions, labels)
            return [replace(_chosen("accuracy", "by default"), found=notes)]
        if own is not None:
            scores = [name for name in scores if name == own.name]
            shares = {name: share for name, share in shares.items() if name == own.name}
        if not scores and not shares and not are_predicted_numbers(tables, predictions, labels):
            columns = {"prediction": predictions, "label": labels}
            require_label_values(tables, load_statistic("accuracy", columns=columns))
    counted = [name for name, columns in _COUNTED.items() if have(tables, columns)]
    if not scores and counted:
        return [_chosen(counted[0], f"the statistic of the columns {listed(_COUNTED[counted[0]])}")]
    possible = [*scores, *shares]
    others: list[str] = []
    if len(possible) == 1:
        require_no_attacks(tables, possible[0])
        if own is None:
            others = other_metrics(tables, (possible[0], predictions, labels))
        if possible[0] in OF_CALLS:
            possible += others
    if len(possible) == 1:
        if labels is None:
            require_score_of_outputs(tables, possible[0], predictions)
        notes = own.notes if own is not None else ()
        if scores:
            notes += _require_score_of_examples(scores[0], tables, predictions, labels)
            statistic = statistic_of_metric(scores[0], scores[0], tables, _only(scores[0]))
        else:
            statistic = shares[possible[0]]
        if others:
            statistic = replace(statistic, chosen=f"the score called `{possible[0]}`")
            notes += (f"not compared: {listed(others)}",)
        return [replace(statistic, found=(*notes, *statistic.found)) if notes else statistic]
    found = f"each of {listed(possible)} could be the score" if possible else refusal
    require_decimal_points(tables, [predictions, labels, *SCORES], [predictions, labels])
    found = found or texts_as_scores(tables) or names_alike(tables)
    raise unclear_statistic(tables, found, possible, {"prediction": predictions, "label": labels})


def statistics_of_format(tables: Sequence[ExampleTable]) -> list[Statistic]:
    """Return the built-in statistics that the formats of all runs declare."""
    shared = [name for name in tables[0].statistics if all(name in table.statistics for table in tables[1:])]
    return [_chosen(name, "the statistic of this file format") for name in shared]


def _require_score_of_examples(
    score: str, tables: Sequence[ExampleTable], prediction: str | None, label: str | None
) -> tuple[str, ...]:
    """Refuse an only score that is hardly a score of each example; return a note if it may not be one."""
    notes = require_one_metric(tables, score)
    if label is not None and is_name_of_reference(tables, label):
        label = None
    if score == SCORE and (label is None or prediction is None):
        for each in ranked_labels(tables, SCORE, prediction) if label is None else [label]:
            require_mean(tables, SCORE, each)
    if score == SCORE:
        notes += notes_on_confidence(tables, SCORE)
    require_scores(tables, score)
    return notes


def _only(score: str) -> str:
    return f"the only score, `{score}`"


def _chosen(name: str, why: str) -> Statistic:
    return replace(load_statistic(name), chosen=why)
