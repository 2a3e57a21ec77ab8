"""Detection of reference answers in a column with the name of a score, such as `correct`."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence

from trackperm.comparison.question.own_scores import measures_answers, names_metric, names_quantity
from trackperm.comparison.question.same_in_runs import are_same, matched_rows
from trackperm.errors import InputError
from trackperm.messages import amount
from trackperm.tables.columns.missing_words import MISSING_WORDS
from trackperm.tables.columns.names import ANSWERS, PASSED, REWARD, SCORE, names_id, words_of
from trackperm.tables.columns.types import is_number
from trackperm.tables.table import ExampleTable, shared_columns

_PREDICTED = frozenset(("prediction", "predictions", "predicted", "predict", "pred", "preds"))
"""Words in names of columns of outputs, also beside those of a metric: `pred_score`."""

# fmt: off
_WRITTEN = frozenset((
    "output", "outputs", "response", "responses", "answer", "answers", "completion", "completions",
    "generation", "generations",
))
# fmt: on
"""Words in names of columns of outputs that are no metrics: `model_answer`, but not `response_quality`."""

_TRUE = frozenset(("1.0", "true", "yes"))
_BINARY = _TRUE | {"0.0", "false", "no"}

_CHANGED = 10
"""Outputs that change, from which on scores of several values hardly stay the same by chance."""

_MOST_CLASSES = 10
"""Most different outputs that are taken for classes or options."""


def require_score_of_outputs(tables: Sequence[ExampleTable], score: str, prediction: str | None) -> None:
    """Refuse an only score that has the values of labels: it is the same in all runs, though outputs differ.

    Equal runs and equal scores of other outputs are accepted: answers in other words are as right as before.
    A score cannot stay the same

    - if it is 0 or 1, and outputs change of which there are only two, or a whole number of at most ten
      becomes another one that is right as well;
    - if it has other values, most of which the outputs have, too;
    - if ten outputs change where it has two values, or three if it is a `score`, a `reward` or `passed`.

    Without columns of outputs, metrics of more than ten values count as such for the last rule.

    Raises
    ------
    InputError
        If the score may hold labels.
    """
    if all(table is tables[0] for table in tables) or not are_same(tables, score):
        return
    names = [name for name in shared_columns(tables) if name != score]
    outputs = [name for name in names if name == prediction or names_output(name)]
    others = outputs or [name for name in names if measures_answers(name, tables)]
    rows = matched_rows(tables, [score, *others]) if others else None
    if rows is None or any(len({run[0] for run in row}) > 1 for row in rows):
        return
    scores = {row[0][0] for row in rows} - MISSING_WORDS
    for place, name in enumerate(others, 1):
        found = [(row[0][0], {run[place] for run in row} - MISSING_WORDS) for row in rows]
        changed = [value for value, texts in found if len(texts) > 1]
        values = {text for _, texts in found for text in texts}
        are_labels = name in outputs and _are_labels(scores, changed, values)
        is_metric_of_classes = name not in outputs and len(values) <= _MOST_CLASSES
        if is_metric_of_classes or (not are_labels and not _stay_by_no_chance(score, scores, changed)):
            continue
        quoted, label = shlex.quote(name), f"`--label {score}`"
        if len(values) > _MOST_CLASSES and is_number(name, tables):
            way = (
                f"`--statistic spearman` with {label} and `--metric {quoted}` compares how `{name}` ranks it"
            )
        elif values.isdisjoint(scores) and len(values) > _MOST_CLASSES:  # texts, which no number labels
            way = "The scores may be those of one run: score the outputs of each"
        else:
            option = "" if name == prediction else f" with `--prediction {quoted}`"
            way = f"{label}{option} compares `{name}` with it by accuracy"
        raise InputError(
            f"`{score}` of `{tables[0].origin}` may hold labels: it is the same in all runs, and `{name}`"
            f" differs in {len(changed):,} of {amount(len(rows), 'row')}",
            hint=f"{way}; `--metric {score}` compares it as a score.",
        )


def names_output(name: str) -> bool:
    """Whether the name of a column means outputs: ``pred_score``, ``modelAnswer``; not ``output_tokens``."""
    words = {*words_of(name)}
    if name.lower() in ANSWERS or names_quantity(name) or names_id(name):
        return name.lower() in ANSWERS
    return bool(words & _PREDICTED) or (bool(words & _WRITTEN) and not names_metric(name))


def _are_labels(scores: Collection[str], changed: Collection[str], outputs: Collection[str]) -> bool:
    """Whether scores that stay the same where outputs change can only be labels, by the values of both.

    An output of two, or of a few whole numbers, is right if it equals its label, and another one is wrong.
    """
    if not changed or len(scores) < 2:
        return False
    if not _BINARY.issuperset(scores):
        n_shared = len({*scores} & {*outputs})
        return n_shared > 1 and 2 * n_shared >= len({*scores} | {*outputs})
    are_classes = len(outputs) <= _MOST_CLASSES and all(map(_is_whole, outputs))
    return len(outputs) == 2 or (are_classes and not _TRUE.isdisjoint(changed))


def _stay_by_no_chance(score: str, scores: Collection[str], changed: Collection[str]) -> bool:
    """Whether a column is the same for so many changed outputs that it cannot be their score."""
    n_values = 3 if score in (SCORE, REWARD, PASSED) else 2
    return not _BINARY.issuperset(scores) and len(changed) >= _CHANGED and len({*changed}) >= n_values


def _is_whole(text: str) -> bool:
    try:
        return float(text).is_integer()
    except ValueError:
        return False
