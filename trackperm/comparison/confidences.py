"""Scores that may be a model's confidence in its own answer, and do not say how good the answer is."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from trackperm.errors import InputError, TrackpermError
from trackperm.tables.column_names import CONTEXTS, DOCUMENTS, INPUTS, LABELS, PREDICTIONS, QUERIES
from trackperm.tables.column_types import FIRST_ROWS, ColumnType, are_integers, typed_columns
from trackperm.tables.row_meaning import why_no_examples
from trackperm.tables.table import ExampleTable, shared_columns

# fmt: off
_ANSWERS = frozenset((
    *PREDICTIONS, "answer", "answers", "translation", "hypothesis", "hyp", "mt", "summary", "completion",
    "transcript", "transcription", "generated_text", "prediction_text", "predicted_class",
))
"""Usual names of columns of what a model says."""

_QUESTIONS = frozenset((
    *INPUTS, *CONTEXTS, "user_input", "source", "src", "source_text", "messages", "conversation", "task",
)) - _ANSWERS
"""Usual names of columns of what a model is asked, which judges of answers log as well."""

_OF_MODELS = frozenset((
    "bbox", "boxes", "bounding_box", "segmentation", "keypoints", "entity_group", "token_str",
))
"""Usual names of columns that models write beside their own scores."""

_LOGARITHMS = frozenset(("logprob", "logprobs", "log_prob", "log_probs", "logit", "logits"))
"""Usual names of columns of what models compute for their answers, which other scores may stand beside."""

_SPAN = frozenset(("start", "end"))
"""Columns of integers that say where an answer stands in a text."""

_OF_JUDGES = frozenset((
    "judge", "judge_model", "judgement", "judgment", "verdict", "comment", "comments", "explanation",
    "feedback", "critique", "rubric", "grade", "grader", "evaluator", "evaluation", "scorer", "annotator",
    "rater", "reason", "rationale", "justification", "metric", "metric_name", "criterion", "criteria",
    "higher_is_better", "greater_is_better", "lower_is_better",
))
"""Usual names of columns that say how an answer was judged."""
# fmt: on


def notes_on_confidence(tables: Sequence[ExampleTable], score: str) -> tuple[str, ...]:
    """Return a note if a score may be a model's confidence; refuse it if it hardly is anything else.

    Models compute decimals: a score of integers is accepted, and so is one beside a column that says how
    answers were judged, or beside labels without other outputs of models.

    Raises
    ------
    InputError
        If the score stands beside other outputs of models, such as boxes or ranks; or beside answers, and
        there is no column of a question, or no score is above 0, as logarithms of probabilities are.
    """
    known = {name.lower(): name for name in shared_columns(tables)}
    if known.keys() & _OF_JUDGES or not any(_has_decimals(table, score) for table in tables):
        return ()
    has_labels = not known.keys().isdisjoint(LABELS)
    documents = () if known.keys().isdisjoint(QUERIES) else DOCUMENTS
    answer = None if has_labels else _first(_ANSWERS.union(documents), known)
    other = _first(_OF_MODELS if has_labels else _OF_MODELS | _LOGARITHMS, known)
    if other is None and known.keys() >= _SPAN and all(are_integers(known[name], tables) for name in _SPAN):
        other = known["start"]
    if answer is None and other is None:
        return ()
    if answer in (known.get(name) for name in documents):
        other = answer
    said = f"`{score}` of `{tables[0].origin}` may be a model's confidence in its own output"
    if other is not None or not known.keys() & _QUESTIONS or _are_logarithms(tables, score):
        ways = (
            f"`--metric {score}` compares means of `{score}`, if greater values are better; `--prediction"
            " COLUMN` with `--label COLUMN` or `--labels FILE` compares outputs with labels"
        )
        raise InputError(
            f"{said}, which does not say how good it is: it stands beside `{other or answer}`, and no column"
            " says how the output was judged",
            hint=f"{why_no_examples(tables) or ways}.",
        )
    return (f"look: {said}, `{answer}`; `--metric {score}` says that it is a judgement of it",)


def _first(usual: Collection[str], known: dict[str, str]) -> str | None:
    return next((name for lower, name in known.items() if lower in usual), None)


def _has_decimals(table: ExampleTable, score: str) -> bool:
    """Whether a score has values that are not integers in the first rows."""
    values = _values(table, score)
    return values is not None and bool((values != values.floor()).any())


def _are_logarithms(tables: Sequence[ExampleTable], score: str) -> bool:
    """Whether no score of the first rows is above 0."""
    found = [_values(table, score) for table in tables]
    return all(each is not None and not (each > 0.0).any() for each in found)


def _values(table: ExampleTable, score: str) -> pl.Series | None:
    """Return the scores of the first rows; None if they are not decimals."""
    try:
        head = table.head(FIRST_ROWS).only((score,))
        typed, _, types = typed_columns(head, head, [score])
    except TrackpermError:
        return None  # the pairing reports the error
    if types[score] is not ColumnType.DECIMAL:
        return None
    return typed.frame.get_column(score).to_polars().cast(pl.Float64).drop_nulls()
