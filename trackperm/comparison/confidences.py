"""Scores that may be a model's confidence in its own answer, and do not say how good the answer is."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from trackperm.errors import InputError, TrackpermError
from trackperm.tables.column_names import (
    ANSWERS,
    BOXES,
    CONTEXTS,
    EVALUATORS,
    INPUTS,
    LABELS,
    METRICS,
    names_id,
    words_of,
)
from trackperm.tables.column_types import FIRST_ROWS, ColumnType, are_integers, is_number, typed_columns
from trackperm.tables.row_meaning import retrieved_documents, why_no_examples
from trackperm.tables.table import ExampleTable, shared_columns

# fmt: off
_QUESTIONS = frozenset((*INPUTS, *CONTEXTS, "source", "source_text", "src", "conversation", "task")) - ANSWERS
"""Usual names of columns of what a model is asked, which judges of answers log as well."""

_OF_QUESTIONS = frozenset((
    "question", "questions", "prompt", "query", "input", "inputs", "instruction", "instructions", "message",
    "messages", "request", "problem", "goal", "dialog", "dialogue", "history", "image",
))
"""Words in other names of such columns."""

_OF_NO_QUESTION = frozenset((
    "output", "outputs", "response", "answer", "prediction", "predicted", "generated", "assistant",
    "completion", "error", "template", "hash", "name", "size", "version", "language", "lang", "type",
    "category", "length",
))
"""Words in names of columns that hold an answer, or something else about a question."""

_OF_MODELS = frozenset((*BOXES, "segmentation", "keypoints", "entity_group", "token_str"))
"""Usual names of columns that models write beside their own scores."""

_LOGARITHMS = frozenset(("logprob", "logprobs", "log_prob", "log_probs", "logit", "logits"))
"""Usual names of columns of what models compute for their answers, which other scores may stand beside."""

_SPAN = frozenset(("start", "end"))
"""Columns of integers that say where an answer stands in a text."""

_OF_SPANS = ANSWERS | {"word", "entity"}
"""Usual names of columns of what stands there."""

_LONGEST = 10**7
"""Greater integers are no places in a text, but times."""

_OF_JUDGES = frozenset((
    *METRICS, *EVALUATORS, "comment", "comments", "explanation", "grade", "evaluation", "reason", "rationale",
    "justification", "higher_is_better", "greater_is_better", "lower_is_better",
))
"""Usual names of columns that say how an answer was judged."""

_JUDGES = frozenset((
    "judge", "judges", "judgement", "judgment", "grader", "rater", "annotator", "evaluator", "scorer",
    "rubric", "criterion", "criteria", "verdict", "critique", "feedback",
))
"""Words in other names of such columns."""

_JUDGED = frozenset((
    "score", "scores", "eval", "evaluation", "grade", "grading", "rating", "metric", "judging",
))
_REASONS = frozenset((
    "reason", "reasons", "reasoning", "comment", "comments", "explanation", "rationale", "justification",
))
"""Words of which one of each group is in the name of such a column: `eval_comment`."""
# fmt: on

_REASONING = "reasoning"
"""Column of why a judge gave a score, or of how a model came to its answer."""


def notes_on_confidence(tables: Sequence[ExampleTable], score: str) -> tuple[str, ...]:
    """Return a note if a score may be a model's confidence; refuse it if it hardly is anything else.

    Models compute decimals: a score of integers or halves is accepted, and so is one beside a column that
    says how answers were judged, or beside labels without other outputs of models. Beside an answer alone so
    is one above 1, as of grades, of which none is negative.

    Raises
    ------
    InputError
        If the score stands beside other outputs of models, such as boxes or ranks; or beside answers, and
        there is no column of a question, or no score is above 0, as logarithms of probabilities are.
    """
    known = {name.lower(): name for name in shared_columns(tables)}
    if any(map(_names_judgement, known.values())) or not any(_has_decimals(table, score) for table in tables):
        return ()
    has_labels = not known.keys().isdisjoint(LABELS)
    retrieved = None if has_labels else retrieved_documents(tables)
    are_grades = _are_grades(tables, score)
    answer = None if has_labels or are_grades else _first(ANSWERS, known)
    other = _first(_OF_MODELS if has_labels or are_grades else _OF_MODELS | _LOGARITHMS, known)
    if other is None and known.keys() >= _SPAN and known.keys() & _OF_SPANS:
        other = known["start"] if all(_are_places(tables, known[name]) for name in _SPAN) else None
    if other is None and retrieved is not None:
        other = retrieved[0]
    if answer is None and other is None:
        return ()
    said = f"`{score}` of `{tables[0].origin}` may be a model's confidence in its own output"
    is_asked = _REASONING in known or any(_holds_questions(tables, name) for name in known.values())
    if other is not None or not is_asked or _are_logarithms(tables, score):
        reason = why_no_examples(tables)
        way = f"`--metric {score}` compares means of `{score}`, if greater values are better"
        labelled = (
            "`--prediction COLUMN` with `--label COLUMN` or `--labels FILE` compares outputs with labels"
        )
        raise InputError(
            f"{said}, which does not say how good it is: it stands beside `{other or answer}`, and no column"
            " says how the output was judged",
            hint=f"{way}; {labelled}." if reason is None else f"{reason}; {way}.",
        )
    return (f"look: {said}, `{answer}`; `--metric {score}` says that it is a judgement of it",)


def _names_judgement(name: str) -> bool:
    """Whether the name of a column says that it holds what judges an answer, or its reasons."""
    words = {*words_of(name)}
    are_reasons = bool(words & _JUDGED and words & _REASONS)
    return name.lower() in _OF_JUDGES or bool(words & _JUDGES) or are_reasons


def _holds_questions(tables: Sequence[ExampleTable], name: str) -> bool:
    """Whether a column holds what a model was asked: by its name, and no numbers."""
    if name.lower() in _QUESTIONS:
        return True
    words = {*words_of(name)}
    if not words & _OF_QUESTIONS or words & _OF_NO_QUESTION or names_id(name):
        return False
    return not is_number(name, tables)


def _are_places(tables: Sequence[ExampleTable], name: str) -> bool:
    """Whether a column holds integers that can be places in a text."""
    if not are_integers(name, tables):
        return False
    found = [_numbers(table, name) for table in tables]
    return all(each is not None and not (each >= _LONGEST).any() for each in found)


def _first(usual: Collection[str], known: dict[str, str]) -> str | None:
    return next((name for lower, name in known.items() if lower in usual), None)


def _has_decimals(table: ExampleTable, score: str) -> bool:
    """Whether a score has values that are not integers or halves in the first rows."""
    values = _numbers(table, score)
    return values is not None and bool((2.0 * values != (2.0 * values).floor()).any())


def _are_grades(tables: Sequence[ExampleTable], score: str) -> bool:
    """Whether scores of the first rows are above 1, as no probability is, and none is negative."""
    values = [each for table in tables if (each := _numbers(table, score)) is not None]
    return any((each > 1.0).any() for each in values) and not any((each < 0.0).any() for each in values)


def _are_logarithms(tables: Sequence[ExampleTable], score: str) -> bool:
    """Whether no score of the first rows is above 0."""
    found = [_numbers(table, score) for table in tables]
    return all(each is not None and not (each > 0.0).any() for each in found)


def _numbers(table: ExampleTable, name: str) -> pl.Series | None:
    """Return the numbers of the first rows; None if they are not numbers."""
    try:
        head = table.head(FIRST_ROWS).only((name,))
        typed, _, types = typed_columns(head, head, [name])
    except TrackpermError:
        return None  # the pairing reports the error
    if types[name] not in (ColumnType.INTEGER, ColumnType.DECIMAL):
        return None
    return typed.frame.get_column(name).to_polars().cast(pl.Float64).drop_nulls()
