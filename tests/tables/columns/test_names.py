"""What columns of clusters, of kinds and of ids are called."""

from __future__ import annotations

import pytest

from trackperm.tables.columns.names import (
    names_categories,
    names_clusters,
    names_examples,
    names_id,
    usual_spelling,
)


@pytest.mark.parametrize(
    "name",
    ["document", "doc_id", "docId", "DocID", "source_document", "user", "user_id", "metadata.user_name",
     "db_id", "article_title", "context", "passage_hash", "conversation-number", "title"],
)  # fmt: skip
def test_clusters(name: str) -> None:
    assert names_clusters(name)
    assert not names_categories(name)


@pytest.mark.parametrize("name", ["id", "", "42", "question_id", "documented", "title_length", "name", "key"])
def test_no_clusters(name: str) -> None:
    assert not names_clusters(name)


@pytest.mark.parametrize("name", ["language", "question_type", "metadata.subject", "taskName", "subject_id"])
def test_categories(name: str) -> None:
    assert names_categories(name)


@pytest.mark.parametrize(
    "name", ["id", "qid", "task_id", "taskId", "Question_ID", "sample_idx", "metadata.problem-id", "doc_id"]
)
def test_ids_of_examples(name: str) -> None:
    assert names_examples(name)


@pytest.mark.parametrize("name", ["task", "example", "user_id", "task_name", "id_task", "run_id", "question"])
def test_no_ids_of_examples(name: str) -> None:
    assert not names_examples(name)


SPELLINGS = {
    "is_correct": ["is_correct", "isCorrect", "IsCorrect", "Is Correct", " is  correct ", "IS_CORRECT"],
    "question_id": ["questionId", "questionID", "QuestionId", "Question ID", "Question_ID"],
    "example_ids": ["exampleIDs"],
    "llm_output": ["LLMOutput"],
    "f1_score": ["F1Score", "f1Score", "F1 Score"],
    "y_pred": ["yPred", "Y_PRED"],
    "_id": ["_id", "_ID"],
    "id": ["ID", "Id", "id "],
    "miou": ["mIoU", "MIOU"],
    "ph": ["pH", "PH"],
    "ebay": ["eBay"],
    "xmin": ["xMin"],
    "ids": ["IDs"],
    "bleu4": ["BLEU4"],
    "query-id": ["query-id", "Query-ID"],
    "metrics.exact_match": ["metrics.exactMatch"],
}


@pytest.mark.parametrize(("expected", "names"), SPELLINGS.items(), ids=SPELLINGS)
def test_usual_spellings(expected: str, names: list[str]) -> None:
    assert {usual_spelling(name) for name in names} == {expected}
    assert {names_id(name) for name in names} == {expected in ("question_id", "_id", "id", "ids")}
