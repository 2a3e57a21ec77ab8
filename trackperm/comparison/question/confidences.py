"""Detection of scores that may be a model's confidence, and do not measure the quality of its output."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from trackperm.errors import InputError, TrackpermError
from trackperm.pairing.columns.shared_values import have_values_of_one
from trackperm.pairing.judges import has_judge
from trackperm.tables.columns.names import (
    ANSWERS,
    BOXES,
    CONTEXTS,
    INPUTS,
    LABELS,
    TEXTS,
    names_id,
    names_media,
    words_of,
)
from trackperm.tables.columns.types import FIRST_ROWS, ColumnType, are_integers, is_number, typed_columns
from trackperm.tables.row_meaning import (
    retrieved_documents,
    scored_links,
    verification_trials,
    why_no_examples,
)
from trackperm.tables.table import ExampleTable, shared_columns

# fmt: off
_QUESTIONS = frozenset((*INPUTS, *CONTEXTS, "source", "source_text", "src", "conversation", "task")) - ANSWERS
"""Usual names of columns of inputs, which logs of judges have and logs of confidences mostly lack."""

_OF_QUESTIONS = frozenset((
    "question", "questions", "prompt", "query", "input", "inputs", "instruction", "instructions", "message",
    "messages", "request", "problem", "goal", "dialog", "dialogue", "history", "image",
))
"""Words in other names of columns of inputs."""

_OF_NO_QUESTION = frozenset((
    "output", "outputs", "response", "answer", "prediction", "predicted", "generated", "assistant",
    "completion", "error", "template", "hash", "name", "size", "version", "language", "lang", "type",
    "category", "length",
))
"""Words in names of columns that do not hold an input: `prompt_version`, `error_message`."""

_OF_MODELS = frozenset((*BOXES, "segmentation", "keypoints", "entity_group", "token_str"))
"""Usual names of columns that detectors and taggers write together with their confidence."""

_LOGARITHMS = frozenset(("logprob", "logprobs", "log_prob", "log_probs", "logit", "logits"))
"""Usual names of columns of logarithms of probabilities."""

_SPAN = frozenset(("start", "end"))
"""Names of the columns with the first and last position of an answer in a text."""

_OF_SPANS = ANSWERS | {"word", "entity"}
"""Usual names of columns with the text at these positions."""

_LONGEST = 10**7
"""Integers from here on are timestamps rather than positions in a text."""
# fmt: on

_REASONING = "reasoning"
"""Name of a column with the reasons of a judge, or with the reasoning of the model."""


def notes_on_confidence(tables: Sequence[ExampleTable], score: str) -> tuple[str, ...]:
    """Return a note if a score may be a model's confidence; raise an error if it very likely is.

    A score is accepted without a note if

    - its values are multiples of 0.5, as grades are;
    - a column says how answers were judged;
    - the log has labels, and no boxes or positions that a model wrote with its confidence;
    - it is above 1 and never negative, and the log has neither boxes, positions, retrieved documents, trials
      of a verification nor links that a model scored.

    A column `text` holds answers beside a column of inputs, and if the runs have different texts.

    Raises
    ------
    InputError
        If the log has boxes, positions, retrieved documents, trials of a verification or scored links; or if
        it has answers but no inputs, or no score is above 0, as logarithms of probabilities are not.
    """
    known = {name.lower(): name for name in shared_columns(tables)}
    if not any(_has_decimals(table, score) for table in tables) or has_judge(tables):
        return ()
    has_labels = not known.keys().isdisjoint(LABELS)
    retrieved = None if has_labels else retrieved_documents(tables)
    are_grades = _are_grades(tables, score)
    answer = None if has_labels or are_grades else _first(ANSWERS, known) or _text_of_output(tables, known)
    other = _first(_OF_MODELS if has_labels or are_grades else _OF_MODELS | _LOGARITHMS, known)
    if other is None and known.keys() >= _SPAN and known.keys() & _OF_SPANS:
        other = known["start"] if all(_are_positions(tables, known[name]) for name in _SPAN) else None
    if other is None:
        other = verification_trials(tables) if retrieved is None else retrieved[0]
    if other is None and (linked := scored_links(tables)) is not None:
        other = linked[1]
    if answer is None and other is None:
        return ()
    said = f"`{score}` of `{tables[0].origin}` may be a model's confidence in its own output"
    is_asked = _REASONING in known or any(
        _holds_questions(tables, name)
        for name in known.values()
        if name != answer and not (answer in TEXTS and names_media(name))
    )
    if other is not None or not is_asked or _are_logarithms(tables, score):
        reason = why_no_examples(tables)
        way = f"`--metric {score}` compares means of `{score}`, if greater values are better"
        labelled = (
            "`--prediction COLUMN` with `--label COLUMN` or `--labels FILE` compares outputs with labels"
        )
        raise InputError(
            f"{said}, which does not measure its quality: the log has a column `{other or answer}`, and no"
            " column of a judge",
            hint=f"{way}; {labelled}." if reason is None else f"{reason}; {way}.",
        )
    return (f"look: {said}, `{answer}`; `--metric {score}` says that it is a judgement of it",)


def _text_of_output(tables: Sequence[ExampleTable], known: dict[str, str]) -> str | None:
    """Return a column such as `text` if a model wrote it: another one holds the input, or the runs differ.

    A text beside an image or a recording is what a recogniser read or heard.
    """
    inputs = [name for lower, name in known.items() if lower not in TEXTS]
    has_input = any(names_media(name) or _holds_questions(tables, name) for name in inputs)
    texts = (known[lower] for lower in TEXTS if lower in known)
    return next((name for name in texts if has_input or not have_values_of_one(tables, name)), None)


def _holds_questions(tables: Sequence[ExampleTable], name: str) -> bool:
    """Whether a column holds inputs: its name says so, and its values are not numbers."""
    if name.lower() in _QUESTIONS:
        return True
    words = {*words_of(name)}
    if not words & _OF_QUESTIONS or words & _OF_NO_QUESTION or names_id(name):
        return False
    return not is_number(name, tables)


def _are_positions(tables: Sequence[ExampleTable], name: str) -> bool:
    """Whether a column holds integers that can be positions in a text."""
    if not are_integers(name, tables):
        return False
    found = [_numbers(table, name) for table in tables]
    return all(each is not None and not (each >= _LONGEST).any() for each in found)


def _first(usual: Collection[str], known: dict[str, str]) -> str | None:
    return next((name for lower, name in known.items() if lower in usual), None)


def _has_decimals(table: ExampleTable, score: str) -> bool:
    """Whether the first rows of a score have values that are not multiples of 0.5."""
    values = _numbers(table, score)
    return values is not None and bool((2.0 * values != (2.0 * values).floor()).any())


def _are_grades(tables: Sequence[ExampleTable], score: str) -> bool:
    """Whether the first rows of a score exceed 1, which probabilities do not, and none is negative."""
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
