"""SQuAD: questions with their accepted answers, and predictions for its evaluation script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from trackperm.errors import SourceError
from trackperm.tables.json_values import are_ids, has_members, member, table
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable

_HINT = 'SQuAD is {"data": [{"paragraphs": [{"qas": [{"id": ..., "question": ..., "answers": [...]}]}]}]}.'


def read_questions(file: SourceFile) -> ExampleTable:
    """Read questions and their answers, of version 1.1 or 2.0.

    Its columns are ``id``, ``question``, ``title`` (of the article) and ``label``, the list of accepted
    answers, which is empty for a question without an answer. Raise SourceError if the document is not in
    SQuAD's format, or contains no question.
    """
    columns: dict[str, list[Any]] = {name: [] for name in ("id", "question", "title", "label")}
    places = []
    for place, article, question in _questions(file):
        where = f"`{file.origin}`, {place}"
        answers = _list(question, "answers", where)
        label = [answer.get("text") if isinstance(answer, dict) else None for answer in answers]
        texts = (question.get("id"), question.get("question"), *label)
        if not all(isinstance(text, str) for text in texts):
            raise SourceError(
                f"{where}: its `id`, `question` or the `text` of an answer is not text", hint=_HINT
            )
        for name, value in zip(columns, (*texts[:2], article.get("title"), label), strict=True):
            columns[name].append(value)
        places.append(place)
    if not places:
        raise SourceError(f"`{file.origin}` contains no question", hint=_HINT)
    return replace(table(columns, places.__getitem__, file.origin), identity=("question", "title"))


def read_predictions(file: SourceFile) -> ExampleTable:
    """Read the answers to questions, ``{id: text}``; empty text means that the question has no answer.

    Its columns are ``id`` and ``prediction``.
    """
    answers: dict[str, str] = file.document
    columns = {"id": list(answers), "prediction": list(answers.values())}
    read = table(columns, lambda index: f"question {columns['id'][index]}", file.origin)
    return replace(read, statistics=("squad_em", "token_f1"))


def _questions(file: SourceFile) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    for i, article in enumerate(_objects(file.document, "data", f"`{file.origin}`")):
        where = f"`{file.origin}`, article {i}"
        for j, paragraph in enumerate(_objects(article, "paragraphs", where)):
            for k, question in enumerate(_objects(paragraph, "qas", f"{where}, paragraph {j}")):
                yield f"article {i}, paragraph {j}, question {k}", article, question


def _objects(parent: dict[str, Any], member: str, where: str) -> list[dict[str, Any]]:
    found = _list(parent, member, where)
    if not all(isinstance(item, dict) for item in found):
        raise SourceError(f"{where}: `{member}` contains values that are not objects", hint=_HINT)
    return found


def _list(parent: dict[str, Any], member: str, where: str) -> list[Any]:
    found = parent.get(member)
    if not isinstance(found, list):
        raise SourceError(f"{where}: `{member}` is missing or not a list", hint=_HINT)
    return found


def _is_questions(file: SourceFile) -> bool:
    data = member(file.document, "data")
    return isinstance(data, list) and bool(data) and has_members(data[0], "paragraphs")


def _is_predictions(file: SourceFile) -> bool:
    """Whether all members are texts and all names are ids, as of SQuAD or of any data set."""
    answers = file.document
    if not isinstance(answers, dict) or not answers:
        return False
    if not all(isinstance(text, str) for text in answers.values()):
        return False
    return are_ids(answers) or all(re.fullmatch("[0-9a-f]{24}(_[0-9]+)?", name) for name in answers)


SQUAD = Source("squad", "SQuAD's questions and answers", _is_questions, read_questions)
SQUAD_PREDICTIONS = Source("squad-predictions", "SQuAD's predictions", _is_predictions, read_predictions)
