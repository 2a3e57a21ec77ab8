"""Registry of counters, by their names in specs."""

from __future__ import annotations

from trackperm.statistic.counters.answers import answer_f1, answer_matches, answer_overlap, n_answer_tokens
from trackperm.statistic.counters.base import (
    CLASSES,
    ITEMS,
    NUMBERS,
    PROBABILITIES,
    RANKS,
    TEXT,
    TEXTS,
    Counter,
)
from trackperm.statistic.counters.edits import character_edit_operations, edit_operations, n_characters
from trackperm.statistic.counters.labels import (
    is_among,
    label_count,
    label_distance,
    label_distance_squares,
    place,
)
from trackperm.statistic.counters.ngrams import (
    CHARACTER_ORDERS,
    ORDERS,
    character_ngram_matches,
    n_character_ngrams,
    n_ngrams,
    ngram_matches,
)
from trackperm.statistic.counters.probabilities import (
    OUTCOMES,
    class_log_loss,
    class_probability,
    class_squared_error,
    log_loss,
)
from trackperm.statistic.counters.rankings import GAINS, ndcg, reciprocal_rank
from trackperm.statistic.counters.sets import set_overlap, set_size, token_overlap
from trackperm.statistic.counters.spans import SCHEMES, n_spans, span_tp
from trackperm.statistic.counters.tokens import arc_matches, head_matches, n_tokens, token_matches
from trackperm.statistic.counters.translations import translation_edits
from trackperm.tables.columns.types import ColumnType

COUNTERS = {
    "n_tokens": Counter(n_tokens, (ITEMS,)),
    "token_matches": Counter(token_matches, (ITEMS, ITEMS)),
    "head_matches": Counter(head_matches, (ITEMS, ITEMS)),
    "arc_matches": Counter(arc_matches, (TEXTS, TEXTS)),
    "span_tp": Counter(span_tp, (TEXTS, TEXTS), SCHEMES),
    "span_predicted": Counter(n_spans, (TEXTS,), SCHEMES),
    "span_actual": Counter(n_spans, (TEXTS,), SCHEMES),
    "set_overlap": Counter(set_overlap, (ITEMS, ITEMS)),
    "set_size": Counter(set_size, (ITEMS,)),
    "token_overlap": Counter(token_overlap, (ITEMS, ITEMS)),
    "ngram_matches": Counter(ngram_matches, (ITEMS, ITEMS), ORDERS),
    "n_ngrams": Counter(n_ngrams, (ITEMS,), ORDERS),
    "edit_operations": Counter(edit_operations, (ITEMS, ITEMS)),
    "character_edit_operations": Counter(character_edit_operations, (TEXT, TEXT)),
    "n_characters": Counter(n_characters, (TEXT,)),
    "answer_overlap": Counter(answer_overlap, (TEXT, TEXT)),
    "n_answer_tokens": Counter(n_answer_tokens, (TEXT,)),
    "answer_f1": Counter(answer_f1, (TEXT, TEXTS), decimal=True),
    "answer_matches": Counter(answer_matches, (TEXT, TEXTS)),
    "is_among": Counter(is_among, (CLASSES,), free=ColumnType.TEXT),
    "label_count": Counter(label_count, (CLASSES, CLASSES), looks_up=True),
    "place": Counter(place, (RANKS,), free=ColumnType.TEXT),
    "label_distance": Counter(label_distance, (RANKS, RANKS), free=ColumnType.TEXT, looks_up=True),
    "label_distance_squares": Counter(
        label_distance_squares, (RANKS, RANKS), free=ColumnType.TEXT, looks_up=True
    ),
    "character_ngram_matches": Counter(character_ngram_matches, (TEXT, TEXT), CHARACTER_ORDERS),
    "n_character_ngrams": Counter(n_character_ngrams, (TEXT,), CHARACTER_ORDERS),
    "translation_edits": Counter(translation_edits, (TEXT, TEXT)),
    "reciprocal_rank": Counter(
        reciprocal_rank, (ITEMS, ITEMS), free=ColumnType.INTEGER, decimal=True, objects=1
    ),
    "ndcg": Counter(ndcg, (ITEMS, ITEMS), GAINS, free=ColumnType.INTEGER, decimal=True, objects=1),
    "log_loss": Counter(log_loss, (NUMBERS,), OUTCOMES, decimal=True),
    "class_log_loss": Counter(
        class_log_loss, (PROBABILITIES, CLASSES), decimal=True, free=ColumnType.TEXT, by_class=True, objects=0
    ),
    "class_probability": Counter(
        class_probability,
        (PROBABILITIES, CLASSES),
        decimal=True,
        free=ColumnType.TEXT,
        by_class=True,
        objects=0,
    ),
    "class_squared_error": Counter(
        class_squared_error,
        (PROBABILITIES, CLASSES),
        decimal=True,
        free=ColumnType.TEXT,
        by_class=True,
        objects=0,
    ),
}
"""All counters. Two columns of lists need the same type of items."""
