"""Scores that a log has beside its predictions and labels, and that accuracy would disregard."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import polars as pl

from trackperm.errors import InputError, TrackpermError
from trackperm.messages import amount, listed
from trackperm.pairing.checks.differences import shown
from trackperm.tables.column_names import ATTEMPT, IDS, SCORE, names_id
from trackperm.tables.column_types import ColumnType, is_number, typed_columns
from trackperm.tables.nested_fields import fields_of, named_fields
from trackperm.tables.table import ExampleTable, have, shared_columns

_BLOCK = 100_000
"""Rows of a run in which predictions, labels and scores are compared with each other."""

_CLASSES = 0.8
"""Share of predictions that are labels of the run, from which predictions count as classes."""

_TRUE, _FALSE = ("true", "yes"), ("false", "no")

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

# fmt: off
_METRICS = frozenset((
    "score", "scores", "accuracy", "acc", "correct", "correctness", "incorrect", "match", "matches", "em",
    "passed", "success", "solved", "rating", "ratings", "quality", "judge", "judgement", "judgment",
    "verdict", "faithfulness", "factuality", "relevance", "relevancy", "groundedness", "helpfulness",
    "coherence", "fluency", "completeness", "conciseness", "harmlessness", "toxicity", "hallucination",
    "similarity",
    "bleu", "sacrebleu", "gleu", "chr", "chrf", "rouge", "meteor", "ter", "hter", "comet", "bleurt",
    "bertscore", "moverscore", "wer", "cer", "mer", "wil", "wip", "levenshtein", "edit", "f", "precision",
    "recall",
))
"""Words in names of metrics of answers."""

_NOT_METRICS = frozenset((
    "confidence", "prob", "probs", "probability", "logprob", "logprobs", "logit", "logits", "log", "latency",
    "time", "duration", "cost", "tokens", "token", "length", "len", "count", "n", "num", "number", "rank",
    "index", "idx", "option", "choice", "position", "label",
))
"""Words in names of columns of numbers that say nothing of how good an answer is."""
# fmt: on


class _Answers(NamedTuple):
    """First rows of a run with prediction and label; `equal` is whether they are equal, null without both."""

    table: ExampleTable
    texts: pl.DataFrame
    equal: pl.Series
    is_free: bool


def names_metric(name: str) -> bool:
    """Whether the name of a column means a metric of answers: ``wer``, ``answer_correctness``, ``rougeL``."""
    words = {word.lower() for word in _WORD.findall(name)}
    return bool(words & _METRICS) and not words & _NOT_METRICS


def own_score(
    tables: Sequence[ExampleTable], prediction: str, label: str, usual: Collection[str]
) -> str | None:
    """Return the column of scores that is compared in place of accuracy; None for accuracy.

    Predictions are classes if most are labels of the run and labels repeat; else they are free text. Scores
    that are 1 where the prediction equals its label, and 0 elsewhere, say the same as accuracy.

    Parameters
    ----------
    tables : sequence of ExampleTable
        The runs.
    prediction, label : str
        Columns of predictions and labels, some of which are equal.
    usual : collection of str
        Columns with usual names of scores.

    Raises
    ------
    InputError
        If classes have a score of 0 and 1 that says otherwise, or free text has a score that may not be the
        question, or several.
    """
    if prediction == label or not have(tables, [prediction, label]):
        return None  # the pairing reports the error
    known = [name for name in shared_columns(tables) if name not in (prediction, label, *IDS)]
    scores = [name for name in known if name in usual or _is_metric(name, tables)]
    read = [_answers(table, prediction, label, scores) for table in tables]
    answers = [each for each in read if each is not None]
    if len(answers) < len(read):
        return None
    is_free = any(each.is_free for each in answers)
    found = [name for name in scores if is_free or name in usual]
    outcomes = {name: [_outcomes(each, name) for each in answers] for name in found}
    binary = [name for name in found if all(each is not None for each in outcomes[name])]
    others = [name for name in found if name not in binary]
    for name in binary:
        differing = (_differing(each, own) for each, own in zip(answers, outcomes[name], strict=True))
        first = next((each for each in differing if each is not None), None)
        if first is None:
            continue
        if not is_free:
            raise _contradicted(name, prediction, label, *first)
        others.append(name)
    nested = [name for name in known if is_free and _has_metrics(tables[0], name)]
    if not is_free or not (others or nested):
        return None
    is_only = len(found) == 1 and not nested and found[0] in usual
    if is_only and (found[0] != SCORE or found[0] in binary):
        return found[0]
    free = next(each for each in answers if each.is_free)
    fields = named_fields(tables[0], nested)
    raise _beside_free_text(free, (prediction, label), [*sorted(others, key=found.index), *nested], fields)


def _is_metric(name: str, tables: Sequence[ExampleTable]) -> bool:
    is_id = names_id(name) or ATTEMPT.fullmatch(name) is not None
    return names_metric(name) and not is_id and is_number(name, tables)


def _has_metrics(table: ExampleTable, column: str) -> bool:
    """Whether a column of objects holds metrics: by its own name, or by those of its fields."""
    fields = fields_of(table, column)
    return bool(fields) and (names_metric(column) or any(map(names_metric, fields)))


def _answers(table: ExampleTable, prediction: str, label: str, scores: Sequence[str]) -> _Answers | None:
    """Read predictions, labels and scores of the same first rows; None if they cannot be compared."""
    try:
        head = table.head(_BLOCK).only((prediction, label, *scores))
        both = head.only((prediction, label))
        typed, _, types = typed_columns(both, both, [prediction, label])
    except TrackpermError:
        return None
    first, second = (typed.frame.get_column(name).to_polars() for name in (prediction, label))
    is_text = ColumnType.TEXT in (types[prediction], types[label])
    if is_text:
        first, second = first.cast(pl.String, strict=False), second.cast(pl.String, strict=False)
    texts = pl.DataFrame({"prediction": first, "label": second})
    equal = (first == second).alias("equal")
    if not is_text:
        return _Answers(head, texts, equal, False)
    plain = texts.drop_nulls().select(pl.all().str.strip_chars().str.to_lowercase())
    labels = plain["label"].unique()
    share = plain["prediction"].is_in(labels.implode()).mean()
    are_classes = share is None or (float(str(share)) >= _CLASSES and 2 * len(labels) <= len(plain))
    return _Answers(head, texts, equal, not are_classes)


def _outcomes(answers: _Answers, name: str) -> pl.Series | None:
    """Return a score that is 0 or 1, true or false, as booleans; None for other columns."""
    try:
        head = answers.table.only((name,))
        typed, _, types = typed_columns(head, head, [name])
    except TrackpermError:
        return None
    values = typed.frame.get_column(name).to_polars()
    if types[name] is ColumnType.TEXT:
        values = values.str.strip_chars().str.to_lowercase()
        return values.is_in(_TRUE) if values.drop_nulls().is_in((*_TRUE, *_FALSE)).all() else None
    if types[name] not in (ColumnType.INTEGER, ColumnType.DECIMAL, ColumnType.BOOLEAN):
        return None
    values = values.cast(pl.Float64)
    return values == 1.0 if values.drop_nulls().is_in([0.0, 1.0]).all() else None


def _differing(answers: _Answers, outcomes: pl.Series | None) -> tuple[_Answers, pl.DataFrame] | None:
    """Return the rows in which a score of 0 and 1 is not the equality of prediction and label."""
    if outcomes is None:
        return None
    rows = answers.texts.with_columns(equal=answers.equal, outcome=outcomes)
    rows = rows.filter(pl.col("equal") != pl.col("outcome"))
    return (answers, rows) if len(rows) else None


def _contradicted(
    name: str, prediction: str, label: str, answers: _Answers, rows: pl.DataFrame
) -> InputError:
    said, meant, equal = rows.row(0)[:3]
    return InputError(
        f"`{name}` of `{answers.table.origin}` is {'false' if equal else 'true'} where `{prediction}` is"
        f" {shown(said)} and `{label}` {shown(meant)}: in {amount(len(rows), 'row')} it is not whether these"
        " are equal, which accuracy tests",
        hint=f"`--metric {name}` compares the scores of the log, `--statistic accuracy` the shares of"
        f" predictions that equal `{label}`.",
    )


def _beside_free_text(
    answers: _Answers, columns: tuple[str, str], scores: Sequence[str], fields: str | None
) -> InputError:
    """Describe free text; `fields` says how the last of the scores, which are objects, become columns."""
    texts = answers.texts.drop_nulls()
    differing = texts.filter(pl.col("prediction") != pl.col("label"))
    example = " and ".join(map(shown, (differing if len(differing) else texts).row(0)))
    prediction, label = columns
    metric = f"`--metric {scores[0]}` compares a score of the log" if fields is None else fields
    return InputError(
        f"`{prediction}` and `{label}` of `{answers.table.origin}` are free text, such as {example}, and the"
        f" log has scores of its own: {listed(scores)}",
        hint=f"{metric}; `--statistic exact_match` compares the shares of answers that are identical to"
        f" `{label}`.",
    )
