"""What columns are usually called: predictions, labels, scores, ids, inputs, and clusters of examples."""

from __future__ import annotations

import re

PREDICTIONS = (
    "prediction",
    "predictions",
    "pred",
    "preds",
    "predicted",
    "predicted_label",
    "y_pred",
    "output",
    "outputs",
    "response",
    "model_output",
    "generation",
)
"""What columns of predictions are called."""

LABELS = (
    "label",
    "labels",
    "target",
    "targets",
    "gold",
    "gold_label",
    "reference",
    "ground_truth",
    "expected",
    "expected_output",
    "correct_answer",
    "y_true",
)
"""What columns of reference answers are called."""

SCORES = (
    "score",
    "correct",
    "is_correct",
    "acc",
    "accuracy",
    "exact_match",
    "reward",
    "passed",
    "pass",
    "success",
)
"""What columns are called that score an example, and nothing but that."""

IDS = (
    "id",
    "ids",
    "example_id",
    "question_id",
    "qid",
    "doc_id",
    "sample_id",
    "task_id",
    "uid",
    "idx",
    "index",
)
"""What columns of ids are called."""

INPUTS = ("question", "prompt", "input", "inputs", "query", "text", "sentence", "problem", "instruction")
"""What columns of inputs are called, which identify examples where each has its own."""

CONTEXTS = (
    "context",
    "passage",
    "article",
    "story",
    "document",
    "premise",
    "hypothesis",
    "choices",
    "options",
)
"""What columns are called that are a part of an input."""

CLUSTERS = (
    "document",
    "doc",
    "article",
    "passage",
    "paragraph",
    "context",
    "title",
    "page",
    "story",
    "book",
    "chapter",
    "conversation",
    "dialog",
    "dialogue",
    "session",
    "thread",
    "chat",
    "user",
    "speaker",
    "author",
    "patient",
    "participant",
    "person",
    "customer",
    "account",
    "worker",
    "annotator",
    "group",
    "cluster",
    "family",
    "topic",
    "source",
    "template",
    "event",
    "case",
    "file",
    "repo",
    "repository",
    "project",
    "url",
    "site",
    "db",
    "database",
    "table",
    "image",
    "video",
    "audio",
    "recording",
)
"""What columns are called whose values are clusters of examples that hang together."""

CATEGORIES = frozenset(
    (
        "language",
        "lang",
        "locale",
        "category",
        "subcategory",
        "subject",
        "level",
        "difficulty",
        "type",
        "kind",
        "class",
        "split",
        "subset",
        "task",
        "subtask",
        "domain",
        "dataset",
        "benchmark",
        "skill",
        "tag",
        "format",
        "style",
        "label",
        "target",
        "gold",
        "expected",
        "answer",
        "answers",
        "solution",
        "model",
        "system",
        "version",
        "stratum",
        "slice",
        "fold",
        "bucket",
        "grade",
        "year",
        "date",
        "country",
        "region",
        "gender",
        "license",
        "status",
    )
)
"""Words in the names of columns that sort examples by kind or answer: another test set has the same."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_OF_ONE = frozenset(
    ("id", "ids", "uid", "idx", "index", "hash", "key", "name", "title", "no", "nr", "num", "number")
)


def names_clusters(name: str) -> bool:
    """Whether a column is called as clusters are: ``document``, ``docId``, ``metadata.user_name``."""
    words = _words(name)
    while len(words) > 1 and words[-1] in _OF_ONE:
        words.pop()
    return bool(words) and words[-1] in CLUSTERS


def names_categories(name: str) -> bool:
    """Whether a column is called as those are that sort examples: ``language``, ``question_type``."""
    return not names_clusters(name) and any(word in CATEGORIES for word in _words(name))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]
