"""Detection of labels beside a score that a model may have computed for them: the score ranks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from trackperm.comparison.question.copied_labels import names_output
from trackperm.comparison.question.own_scores import names_quantity
from trackperm.comparison.question.same_in_runs import are_same, is_of_data
from trackperm.errors import TrackpermError
from trackperm.tables.columns.names import (
    ATTEMPT,
    CATEGORIES,
    IDS,
    SCORES,
    names_categories,
    names_clusters,
    names_id,
    words_of,
)
from trackperm.tables.columns.types import ColumnType, typed_columns
from trackperm.tables.table import ExampleTable, shared_columns

_BLOCK = 100_000
"""Number of first rows that are read of each run."""

_LEVEL = 0.05
"""Largest p-value of a rank test: in few rows, most columns are ranked by chance."""

_RANKED = 0.7
"""Area under the ROC curve above which a score counts as what a classifier computed for 0 and 1."""

_RANKED_LABELS = 0.8
"""Such an area for two words in a column with the name of labels, either of which may be the positive one."""

_RANKED_PROPERTIES = 0.9
"""Such an area for any two values. Questions `with image` or `hard` have lower scores, rarely so clearly."""

_CORRELATED = 0.4
"""Rank correlation above which a score counts as what a model computed for gold values."""

_CORRELATED_HUMANS = 0.6
"""Such a correlation for scores of people, who may have answered the questions: some are hard for all."""

# fmt: off
_LABELS = frozenset((
    "class", "label", "labels", "target", "gold", "truth", "diagnosis", "outcome", "disease", "malignant",
    "malignancy", "fraud", "fraudulent", "anomaly", "anomalous", "abnormal", "outlier", "spam", "churn",
    "churned", "default", "intrusion", "malware", "toxic", "positive", "relevant", "relevance",
))
"""Last words of names of columns of labels of two classes."""

_PROPERTIES = frozenset((
    "has", "have", "contains", "includes", "requires", "needs", "uses", "with", "without", "long", "short",
    "hard", "easy", "multi", "multimodal", "image", "images", "code", "english", "turn", "multiturn", "hop",
    "math", "reasoning", "table", "tables", "tool", "tools", "negation", "context", "ended", "paraphrased",
    "noisy", "occluded", "night",
))
"""Words in names of columns that describe an example and are no labels."""

_OF_NAMES = frozenset(("name", "key"))
"""Words in names of columns of systems, parts of data and metrics, whose scores may lie far apart."""

_OF_SETTINGS = frozenset((
    "variant", "arm", "tier", "modality", "device", "view", "setting", "settings", "environment", "channel",
    "accent", "sex", "complexity", "cached", "retry", "retried", "fallback", "quantized", "truncated",
))
"""Words in names of columns that say how an example was made or run, or for whom."""

_OF_DIRECTIONS = frozenset((
    "better", "direction", "mode", "goal", "objective", "polarity", "minimize", "maximize",
))
"""Words in names of columns that say whether greater scores are better: errors and accuracies lie apart."""

_GOLD = frozenset(("gold", "golden", "true", "truth", "gt", "annotated", "annotator", "annotators"))
_HUMAN = frozenset(("human", "humans", "expert", "experts", "expected", "target", "reference", "actual"))
"""Words in names of columns of gold values and of scores by people: `gold_score`, `human_rating`."""

_OF_TASKS = frozenset(("difficulty", "level", "seconds", "minutes", "hours", "days"))
"""Words in names of columns that say how hard a task is, as `human_minutes`: so it is for models, too."""
# fmt: on


class _Labels(NamedTuple):
    """Score and a column of two values in the first rows of a run, of which `values` are sorted."""

    frame: pl.DataFrame
    values: tuple[str, ...]

    @property
    def is_directed(self) -> bool:
        """Whether the second value is the positive one."""
        return self.values in (("0", "1"), ("0.0", "1.0"), ("false", "true"), ("no", "yes"))

    @property
    def counts(self) -> tuple[object, ...]:
        label = self.frame["label"]
        return self.values, len(label), label.null_count(), int((label == self.values[1]).sum())

    def area(self) -> float:
        """Area under the ROC curve, of the second value against the first one; 0.5 if it may be chance."""
        from scipy.stats import mannwhitneyu

        frame = self.frame.drop_nulls()
        first, second = (frame.filter(frame["label"] == value)["score"].to_numpy() for value in self.values)
        if not first.size or not second.size:
            return 0.5
        found = mannwhitneyu(second, first, method="asymptotic")
        is_chance = float(found.pvalue) > _LEVEL
        return 0.5 if is_chance else float(found.statistic) / (first.size * second.size)


def ranked_labels(tables: Sequence[ExampleTable], score: str, prediction: str | None) -> list[str]:
    """Return the columns of labels that the score of a run ranks, and that are the same in all runs.

    A classifier ranks its labels: the area under the ROC curve is far above 1/2. A score of answers seldom
    ranks such a column. Labels are

    - two values that the score ranks: clearly if they are 0 and 1, or true and false; more clearly if they
      are words in a column with the name of labels; and almost without exception if they are any others.
      Classifiers compute decimals, so scores of integers, such as grades, are accepted;
    - gold values, and scores by people, that the score is correlated with, if it is not 0 or 1.

    Outputs that differ between the runs are what is scored: then only columns with the name of labels of two
    classes count, and none beside `prediction`. Only the first rows are read; runs may have their rows in
    another order.
    """
    known = [name for name in shared_columns(tables) if name != score]
    outputs = [name for name in known if name == prediction or names_output(name)]
    is_one_run = all(table is tables[0] for table in tables)
    are_scored = bool(outputs) and (is_one_run or not all(are_same(tables, name) for name in outputs))
    if prediction is not None and (are_scored or are_same(tables, score)):
        return []
    found = []
    for name in known:
        if name in outputs or (are_scored and not names_label(name)):
            continue
        is_gold = not are_scored and _are_correlated(tables, score, name, is_judged=bool(outputs))
        is_label = is_gold or (not _names_no_label(name) and _is_ranked(tables, score, name))
        if is_label and (is_one_run or is_of_data(tables, name, name)):
            found.append(name)
    return found


def names_label(name: str) -> bool:
    """Whether the name of a column means labels of two classes: ``is_fraud``, ``target_class_name``."""
    words = [word for word in words_of(name) if word not in _OF_NAMES]
    *others, last = words or [""]
    return last in _LABELS and (CATEGORIES - _LABELS).isdisjoint(others)


def _names_no_label(name: str) -> bool:
    """Whether the name of a column says that it holds something else than labels, such as ids."""
    if name in (*IDS, *SCORES) or names_id(name) or ATTEMPT.fullmatch(name) is not None:
        return True
    is_other = not (_OF_NAMES | _OF_SETTINGS | _OF_DIRECTIONS).isdisjoint(words_of(name))
    return not names_label(name) and (is_other or names_categories(name) or names_clusters(name))


def _is_ranked(tables: Sequence[ExampleTable], score: str, name: str) -> bool:
    """Whether a column has two values, as often in each run, and the score of a run ranks them."""
    read = [_labels(table, score, name) for table in tables]
    found = [each for each in read if each is not None]
    if len(found) < len(read) or len({each.counts for each in found}) > 1:
        return False
    areas = [each.area() for each in found]
    is_property = not _PROPERTIES.isdisjoint(words_of(name))
    if found[0].is_directed and not is_property and max(areas) > _RANKED:
        return True
    least = _RANKED_LABELS if names_label(name) else _RANKED_PROPERTIES
    return max(max(each, 1.0 - each) for each in areas) > least


def _labels(table: ExampleTable, score: str, name: str) -> _Labels | None:
    """Return a score with fractions and a column of two values of the first rows; None if they are not."""
    if (counts := table.head(_BLOCK).counts_of_few(name, 6)) is None or len(counts) < 2:
        return None
    frame = _typed(table, score, name, (ColumnType.INTEGER, ColumnType.BOOLEAN, ColumnType.TEXT))
    if frame is None or frame["score"].dtype != pl.Float64:
        return None
    frame = frame.with_columns(pl.col("label").cast(pl.String).str.strip_chars().str.to_lowercase())
    values = tuple(frame["label"].drop_nulls().unique().sort())
    has_fractions = bool((frame["score"] != frame["score"].floor()).any())
    return _Labels(frame, values) if has_fractions and len(values) == 2 else None


def _are_correlated(tables: Sequence[ExampleTable], score: str, name: str, *, is_judged: bool) -> bool:
    """Whether a column has the name of gold values, and more than two, with which the score is correlated.

    `is_judged` is whether the runs have the same outputs, so that they differ in the judge.
    """
    from scipy.stats import spearmanr

    words = {*words_of(name)}
    is_other = names_quantity(name) or names_id(name) or name in SCORES or words & _OF_TASKS
    if not words & (_GOLD | _HUMAN) or is_other:
        return False
    least = _CORRELATED if is_judged or words & _GOLD else _CORRELATED_HUMANS
    for table in tables:
        frame = _typed(table, score, name, (ColumnType.INTEGER, ColumnType.DECIMAL))
        if frame is None:
            return False
        frame = frame.drop_nulls()
        scores = frame["score"].unique()
        if frame["label"].n_unique() < 3 or len(scores) < 2 or {*scores} <= {0, 1}:
            return False
        found = spearmanr(frame["score"].to_numpy(), frame["label"].to_numpy())
        if abs(found.statistic) > least and found.pvalue < _LEVEL:
            return True
    return False


def _typed(table: ExampleTable, score: str, name: str, types: Sequence[ColumnType]) -> pl.DataFrame | None:
    """Read a score and another column of the first rows; None if they have other types."""
    try:
        head = table.head(_BLOCK).only((score, name))
        typed, _, found = typed_columns(head, head, [score, name])
    except TrackpermError:
        return None  # the pairing reports the error
    if found[name] not in types or found[score] not in (ColumnType.INTEGER, ColumnType.DECIMAL):
        return None
    columns = {"score": typed.frame[score].to_polars(), "label": typed.frame[name].to_polars()}
    return pl.DataFrame(columns)
