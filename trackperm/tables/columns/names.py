"""Usual names of columns: predictions, labels, scores, ids, attempts, inputs, and clusters of examples."""

from __future__ import annotations

import re

# fmt: off
PREDICTIONS = (
    "prediction", "predictions", "pred", "preds", "predicted", "predicted_label", "y_pred", "output",
    "outputs", "response", "model_output", "generation", "yhat", "y_hat", "predict",
    "prediction_label",
)
"""Usual names of columns of predictions."""

LABELS = (
    "label", "labels", "target", "targets", "gold", "gold_label", "reference", "ground_truth", "expected",
    "expected_output", "correct_answer", "y_true", "y_test", "y", "true_label", "truth", "actual", "gt",
    "label_ids", "true_answer",
)
"""Usual names of columns of reference answers."""

SECOND_ANSWERS = frozenset((
    "yhat", "y_hat", "y_test", "y", "label_ids", "predict", "prediction_label", "true_answer",
))
"""Names of predictions and labels that may mean others beside a more usual name: ``y``, a coordinate, and
``label_ids``, the numbers of the labels."""

SCORE = "score"
"""Name of a column that is either the score of an example or what a classifier computed for it."""

REWARD = "reward"
"""Name of a column of scores that may be negative."""

PASSED = "passed"
"""Name of a column that says whether an attempt passes, or how many of its tests pass."""

SCORES = (
    SCORE, "correct", "is_correct", "acc", "accuracy", "exact_match", REWARD, PASSED, "pass",
    "success",
)
"""Usual names of columns that can only be the score of an example."""

VALUES = ("value", "metric_value", "metric_score")
"""Usual names of columns with the value of a metric that another column names."""

METRICS = (
    "metric", "metrics", "metric_name", "metric_id", "measure", "measure_name", "score_name",
)
"""Usual names of columns that name the metric of a score, where each has a row of its own."""

EVALUATORS = (
    "evaluator", "evaluator_name", "scorer", "scorer_name", "annotation_name", "criterion", "criteria",
)
"""Usual names of columns of evaluators, which may differ from row to row."""

ANSWERS = frozenset((
    *PREDICTIONS, "answer", "answers", "translation", "hypothesis", "hyp", "mt", "summary", "completion",
    "transcript", "transcription", "generated_text", "prediction_text", "predicted_class",
))
"""Usual names of columns of outputs of a model."""

BOXES = ("bbox", "box", "boxes", "bounding_box", "xmin", "x_min")
"""Usual names of columns of the boxes of a detector."""

USERS = ("user_id", "userid", "user", "uid")
"""Usual names of columns of the users of a recommender; elsewhere they hold ids, or clusters of examples."""

ITEMS = ("item_id", "itemid", "item", "iid", "movie_id", "movieid", "product_id")
"""Usual names of columns of the items that a recommender ranks for users."""

TOPIC = "topic"
"""Name of a column of queries, or of the topics of texts."""

RANK = "rank"
"""Name of a column of the places of documents that are retrieved for a query."""

DOCUMENTS = ("docno", "docid", "doc_id", "document_id", "passage_id", "pid", "corpus_id", "corpus-id")
"""Usual names of columns of retrieved documents; in logs without queries they hold ids of examples."""

QUERIES = ("qid", "query_id", "query-id", "q_id", TOPIC, "topic_id", "query")
"""Usual names of columns of queries."""

IDS = (
    "id", "ids", "example_id", "question_id", "qid", "doc_id", "sample_id", "task_id", "uid", "idx",
    "index",
)
"""Usual names of columns of ids."""

SPLITS = ("split", "subset", "partition")
"""Usual names of columns that divide a data set into training and test data."""

TEXTS = ("text", "sentence")
"""Names of columns of texts, which are inputs of a classifier and outputs of a recogniser."""

INPUTS = (
    "question", "prompt", "input", "inputs", "user_input", "query", *TEXTS, "problem", "instruction",
)
"""Usual names of columns of inputs, which identify examples if every example has a different input."""

MEDIA = (
    "audio_filepath", "audio_path", "audio", "image_filepath", "image_path", "image", "video_path", "video",
    "src",
)
"""Usual names of columns with the path of an input, or a source text, which identify examples likewise."""

_OF_MEDIA = frozenset(("image", "img", "picture", "photo", "audio", "wav", "speech", "video"))
"""Words in names of columns of inputs that are not text."""

CONTEXTS = (
    "context", "passage", "article", "story", "document", "premise", "hypothesis", "choices", "options",
)
"""Usual names of columns that hold a part of an input."""

CLASS_PROBABILITIES = (
    "probability_*", "probabilities_*", "proba_*", "prob_*", "predict_proba_*", "p_*",
)
"""Usual names of columns of probabilities, one for each class, whose name takes the place of the star."""

CLUSTERS = (
    "document", "doc", "article", "passage", "paragraph", "context", "title", "page", "story", "book",
    "chapter", "conversation", "dialog", "dialogue", "session", "thread", "chat", "user", "speaker",
    "author", "patient", "participant", "person", "customer", "account", "worker", "annotator", "group",
    "cluster", "family", "topic", "source", "template", "event", "case", "file", "repo", "repository",
    "project", "url", "site", "db", "database", "table", "image", "video", "audio", "recording",
)
"""Words at the end of names of columns whose values are clusters of dependent examples."""

CATEGORIES = frozenset((
    "language", "lang", "locale", "category", "subcategory", "subject", "level", "difficulty", "type",
    "kind", "class", "split", "subset", "task", "subtask", "domain", "dataset", "benchmark", "skill",
    "tag", "format", "style", "label", "target", "gold", "expected", "answer", "answers", "solution",
    "model", "system", "version", "stratum", "slice", "fold", "bucket", "grade", "year", "date",
    "country", "region", "gender", "license", "status",
))
"""Words in names of columns that sort examples by kind or answer; another test set has the same values."""

_PARTS = frozenset((
    "language", "lang", "locale", "category", "subcategory", "subject", "level", "split", "subset",
    "partition", "task", "subtask", "domain", "dataset", "benchmark", "section", "fold",
))
"""Words in names of columns of parts of a data set; ids may restart in each part."""
# fmt: on

ATTEMPT = re.compile(
    r"(train_)?(epoch|sample|trial|repeat|repetition|replicate|rollout|seed|attempt)"
    r"([ _.-]?(id|idx|index|number|num|no|nr))?",
    re.IGNORECASE,
)
"""Pattern of the usual names of columns that number the attempts at an example, such as ``epoch``."""

PERHAPS_ATTEMPT = re.compile(
    r"(run|iteration|iter|generation|gen)([ _.-]?(id|idx|index|number|num|no|nr))?", re.IGNORECASE
)
"""Pattern of names of columns that number attempts only if ids repeat and the numbers tell their rows apart.
"""

_EXAMPLES = frozenset(("problem", "question", "task", "instance", "example", "sample", "prompt"))
"""Words for an example: with `id` or `idx` after them they name a column of ids."""

_ROWS = frozenset((
    "row", "rows", "record", "log", "line", "entry", "sequence", "seq", "request", "response", "call", "job",
    "event", "trace", "span", "run",
))  # fmt: skip
"""Words for a row of a log or a call: with `id` after them they name a number that each run gives anew."""

_OUTPUTS = frozenset((
    "pred", "predicted", "prediction", "output", "completion", "generation", "generated", "result",
    "retrieved", "top", "matched", "nearest", "selected", "chosen", "returned", "recommended", "inferred",
    "guess", "guessed", "detected", "assigned", "proposed", "linked",
))  # fmt: skip
"""Words for what a model found or wrote: in names of ids they mean those of outputs."""

_PERHAPS_OUTPUTS = frozenset(("answer", "answers", "best", "closest", "match", "winner"))
"""Words in names of ids that are those of outputs in some logs, and those of examples in others."""

_HUMP = re.compile(
    "(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z][0-9])(?=[A-Z][a-z])|(?<=[A-Z])(?=[A-Z](?!s(?![a-z]))[a-z])"
)
"""Ends of words in names such as ``isCorrect``, ``F1Score`` and ``LLMOutput``, but not in ``exampleIDs``."""

_WITH_LETTERS = frozenset(name for name in (*PREDICTIONS, *LABELS, *QUERIES) if name[1:2] == "_")
"""Usual names that begin with a word of one letter: ``y_pred``, ``q_id``."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_OF_ONE = frozenset(
    ("id", "ids", "uid", "idx", "index", "hash", "key", "name", "title", "no", "nr", "num", "number")
)


def usual_spelling(name: str) -> str:
    """Return a name in small letters, with an underscore between its words.

    A letter is a word only in usual names, as ``pH`` and ``mIoU`` are one word.

    Examples
    --------
    >>> [usual_spelling(name) for name in ("isCorrect", " Question ID", "yPred", "mIoU")]
    ['is_correct', 'question_id', 'y_pred', 'miou']
    """
    parts = []
    for part in re.split(r"([\s_]+)", name.strip()):
        words = _HUMP.split(part)
        spelt = "_".join(words).lower()
        parts.append(spelt if min(map(len, words)) > 1 or spelt in _WITH_LETTERS else part.lower())
    return re.sub(r"\s+", "_", "".join(parts))


def names_clusters(name: str) -> bool:
    """Whether the name of a column means a cluster: ``document``, ``docId``, ``metadata.user_name``."""
    words = words_of(name)
    while len(words) > 1 and words[-1] in _OF_ONE:
        words.pop()
    return bool(words) and words[-1] in CLUSTERS


def names_id(name: str) -> bool:
    """Whether a column may be the id of the examples by its name: ``id``, ``doc_id``, ``prompt_hash``."""
    spelt = usual_spelling(name)
    return spelt in IDS or (spelt.endswith(("_id", "_hash")) and not ATTEMPT.fullmatch(name))


def names_number_of_row(name: str) -> bool:
    """Whether a column of integers numbers rows or groups of them by its name: ``family_index``, ``doc_idx``.

    An index of decimals may be a metric, such as ``jaccard_index``.
    """
    return words_of(name)[-1:] in (["index"], ["idx"])


def names_examples(name: str) -> bool:
    """Whether the name of a column means the id of an example: ``task_id``, ``questionId``, ``qid``."""
    words = words_of(name)
    is_of_example = len(words) > 1 and words[-1] in ("id", "idx") and words[-2] in _EXAMPLES
    return usual_spelling(name) in IDS or is_of_example


def names_individuals(name: str) -> bool:
    """Whether each value of a column may name an example: ``doc_id``, ``questionId``, ``name``, ``uuid``."""
    return names_id(name) or words_of(name)[-1:] in (["id"], ["uid"], ["uuid"], ["guid"], ["key"], ["name"])


def names_rows(name: str) -> bool:
    """Whether an id is rather that of a row, a call or an output than of an example: ``idx``, ``row_id``."""
    words = words_of(name)
    if len(words) < 2 or words[-1] not in ("id", "hash"):
        return name.lower() in ("idx", "index")
    return (words[-1] == "id" and words[-2] in _ROWS) or has_output_word(name) or may_be_output(name)


def has_output_word(name: str) -> bool:
    """Whether a name has a word for what a model found or wrote: ``predicted_id``, ``completion_text``."""
    return not _OUTPUTS.isdisjoint(words_of(name))


def may_be_output(name: str) -> bool:
    """Whether an id may be that of an output or of an example: ``answer_id``, ``best_match_id``."""
    return not _PERHAPS_OUTPUTS.isdisjoint(words_of(name)) and names_id(name)


def may_number_rows(name: str) -> bool:
    """Whether an id may be a number that each run gives to its rows: ``id``, ``sample_id``, ``index``."""
    return usual_spelling(name) in ("id", "ids", "sample_id", "uid") or names_rows(name)


def is_of_examples(name: str) -> bool:
    """Whether the name of an id means that of an example, and not perhaps that of a row: ``question_id``."""
    return (usual_spelling(name).endswith("_hash") or names_examples(name)) and not may_number_rows(name)


def place_of_id(name: str) -> tuple[int, int]:
    """Return the place of an id: usual names, other ids of examples, others, and those of rows."""
    spelt = usual_spelling(name)
    place = IDS.index(spelt) if spelt in IDS else len(IDS)
    kinds = (spelt in IDS, names_examples(name), True) if not names_rows(name) else ()
    return (kinds.index(True) if kinds else 3), place


def input_name(name: str) -> str:
    """Return the last part of a name in its usual spelling: ``question`` of ``inputs.question``."""
    return usual_spelling(name.replace("/", ".").rpartition(".")[2])


def names_input(name: str) -> bool:
    """Whether a column has the usual name of an input: ``inputs.question``, ``image_path``."""
    return input_name(name) in (*INPUTS, *MEDIA)


def names_media(name: str) -> bool:
    """Whether the name of a column means an input that is not text: ``image_path``, ``audio``."""
    return not _OF_MEDIA.isdisjoint(words_of(name))


def names_categories(name: str) -> bool:
    """Whether the name of a column means a category: ``language``, ``question_type``."""
    return not names_clusters(name) and any(word in CATEGORIES for word in words_of(name))


def names_parts(name: str) -> bool:
    """Whether the name of a column means a part of a data set: ``subject``, ``task_name``; no id."""
    words = words_of(name)
    return bool(words) and not names_id(name) and any(word in _PARTS for word in words)


def words_of(name: str) -> list[str]:
    """Return the words of a name in lower case, without digits: ``user_promptText`` has three."""
    return [word.lower() for word in _WORDS.findall(name)]
