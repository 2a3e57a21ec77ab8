"""What columns of clusters, of kinds and of ids are called."""

from __future__ import annotations

import pytest

from trackperm.tables.columns.names import names_categories, names_clusters, names_examples


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
