"""Counters against their definitions in plain Python, one example at a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.reference_data import _chunks, _token_f1, _tokens

from trackperm.statistic.counters import COUNTERS, edits
from trackperm.statistic.counters import ngrams as ngrams_module
from trackperm.statistic.counters.ngrams import ORDERS

Lists = list[list[Any]]


def series(columns: Sequence[Sequence[Any]]) -> list[pl.Series]:
    """Columns of texts or of lists, all with items of one type."""
    integers = any(isinstance(item, int) for values in columns for value in values for item in value)
    inner = pl.Int64 if integers else pl.String
    return [
        pl.Series(
            name, values, dtype=pl.String if all(isinstance(v, str) for v in values) else pl.List(inner)
        )
        for name, values in zip(("prediction", "label")[-len(columns) :], columns, strict=True)
    ]


def counted(name: str, *columns: Sequence[Any], choice: str | int | None = None) -> list[Any]:
    counter = COUNTERS[name]
    choices = () if not counter.choices else (choice or counter.choices[0],)
    values = counter.function(*series(columns), *choices)
    assert values.dtype == (np.float64 if counter.decimal else np.int64)
    assert len(values) == len(columns[0])
    return values.tolist()


def tables(*items: st.SearchStrategy[Any], aligned: bool = False) -> st.SearchStrategy[tuple[Lists, ...]]:
    """Rows of a prediction and a label, as two columns."""

    def row(item: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        if aligned:
            return st.lists(st.tuples(item, item), max_size=7).map(
                lambda pairs: ([a for a, _ in pairs], [b for _, b in pairs])
            )
        return st.tuples(st.lists(item, max_size=7), st.lists(item, max_size=7))

    columns = st.one_of(*(st.lists(row(item), max_size=6) for item in items))
    return columns.map(lambda rows: ([a for a, _ in rows], [b for _, b in rows]))


WORDS = st.sampled_from(["a", "b", "B", "", "é", "a b"])
NUMBERS = st.sampled_from([2, 3, -1, -2, 2**61 - 1, -(2**63), 2**63 - 1])  # some have the same hash
TAGS = st.builds(
    lambda prefix, kind: "O" if prefix == "O" else prefix + kind,
    st.sampled_from("OOBIES"),
    st.sampled_from(["", "-X", "-Y", "-X-Y"]),
)
BIO_TAGS = TAGS.map(lambda tag: re.sub("^[ES]", "I", tag))


def multiset(a: list[Any], b: list[Any]) -> int:
    return sum((Counter(a) & Counter(b)).values())


def levenshtein(a: Sequence[Any], b: Sequence[Any]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        previous, row = row, [i]
        for j, y in enumerate(b, start=1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (x != y)))
    return row[-1]


DEFINITIONS: dict[str, Callable[[Any, Any], int]] = {
    "set_overlap": lambda a, b: len(set(a) & set(b)),
    "token_overlap": multiset,
    "edit_operations": levenshtein,
}


@pytest.mark.parametrize("name", DEFINITIONS)
@given(table=tables(WORDS, NUMBERS))
@example(table=([], []))
@example(table=([[]], [[]]))
def test_lists_of_any_lengths(name: str, table: tuple[Lists, Lists]) -> None:
    assert counted(name, *table) == [DEFINITIONS[name](a, b) for a, b in zip(*table, strict=True)]


@given(table=tables(WORDS, NUMBERS, aligned=True))
@example(table=([], []))
@example(table=([[], ["a"], []], [[], ["a"], []]))
def test_lists_of_the_same_lengths(table: tuple[Lists, Lists]) -> None:
    expected = [sum(x == y for x, y in zip(a, b, strict=True)) for a, b in zip(*table, strict=True)]
    assert counted("token_matches", *table) == expected


@given(table=tables(WORDS, NUMBERS))
def test_one_column(table: tuple[Lists, Lists]) -> None:
    _, lists = table
    assert counted("n_tokens", lists) == list(map(len, lists))
    assert counted("set_size", lists) == [len(set(items)) for items in lists]


@given(st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9)), max_size=6))
@example([("a\x1cb\u00a0c\u2003 d", "\n\x85a\u200bb")])
def test_texts(rows: list[tuple[str, str]]) -> None:
    # Lists that are written as text are refused, as are sets with other separators, or of 0 and 1 alone.
    rows = [(re.sub(r"[\[({]", "", x), re.sub(r"[\[({]", "", y)) for x, y in rows]
    a, b = [x for x, _ in rows], [y for _, y in rows]
    assert counted("n_tokens", b) == [len(text.split()) for text in b]
    assert counted("n_characters", b) == list(map(len, b))
    assert counted("edit_operations", a, b) == [levenshtein(x.split(), y.split()) for x, y in rows]
    assert counted("character_edit_operations", a, b) == [levenshtein(x, y) for x, y in rows]
    a, b = ([re.sub(r"[,;|0]", "", text) for text in column] for column in (a, b))
    shared = [len(set(x.split()) & set(y.split())) for x, y in zip(a, b, strict=True)]
    assert counted("set_overlap", a, b) == shared


def ngrams(items: Sequence[Any], order: int) -> list[tuple[Any, ...]]:
    return list(zip(*(items[i:] for i in range(order)), strict=False))


@pytest.mark.parametrize("order", ORDERS)
@given(table=tables(st.sampled_from(["a", "b"]), NUMBERS))
@example(table=([], []))
@example(table=([[], ["a"]], [["a", "a"], []]))
def test_ngrams(order: int, table: tuple[Lists, Lists]) -> None:
    first, second = ([ngrams(items, order) for items in column] for column in table)
    assert counted("n_ngrams", table[0], choice=order) == list(map(len, first))
    assert counted("ngram_matches", *table, choice=order) == list(map(multiset, first, second))


def test_ngrams_of_many_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngrams_module, "_ROWS", 100)
    rng = np.random.default_rng(2)
    a, b = ([" ".join(rng.choice(list("xyz"), size)) for size in rng.integers(0, 9, 207)] for _ in "ab")
    for order in ORDERS:
        expected = [
            multiset(ngrams(x.split(), order), ngrams(y.split(), order)) for x, y in zip(a, b, strict=True)
        ]
        assert counted("ngram_matches", a, b, choice=order) == expected


def test_edits_of_many_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edits, "_ROWS", 100)
    rng = np.random.default_rng(1)
    a, b = ([rng.integers(0, 3, size).tolist() for size in rng.integers(0, 9, 207)] for _ in "ab")
    expected = [levenshtein(x, y) for x, y in zip(a, b, strict=True)]
    assert counted("edit_operations", a, b) == expected
    texts = [["".join(map(str, items)) for items in column] for column in (a, b)]
    assert counted("character_edit_operations", *texts) == expected


def test_edits_of_long_texts() -> None:
    a, b = "ab" * 20_000, "ba" * 3 + "c"
    assert counted("character_edit_operations", [a, "", a, "", "bb"], [b, b, "", a, a]) == [
        39_994,
        7,
        40_000,
        40_000,
        39_998,
    ]


def strict_spans(tags: list[str], scheme: str) -> set[tuple[str, int, int]]:
    """Find well-formed spans by a regular expression over the prefixes, for spans of any type."""
    prefixes = "".join(tag[0] for tag in tags)
    types = [tag[1:].removeprefix("-") for tag in tags]
    pattern = {"BIO": "BI*", "IOBES": "S|BI*E"}[scheme]
    found = set()
    for start in range(len(tags)):
        same = next((i for i in range(start, len(tags)) if types[i] != types[start]), len(tags))
        if match := re.compile(pattern).match(prefixes, start, same):
            found.add((types[start], start, match.end()))
    return found


@pytest.mark.parametrize("scheme", ["BIO", "IOBES"])
@given(table=tables(BIO_TAGS, aligned=True))
@example(table=([["B", "I", "O", "I"]], [["B-X", "I", "I-X", "I-X"]]))
def test_strict_spans(scheme: str, table: tuple[Lists, Lists]) -> None:
    a, b = ([strict_spans(tags, scheme) for tags in column] for column in table)
    assert counted("span_predicted", table[0], choice=scheme) == list(map(len, a))
    assert counted("span_actual", table[1], choice=scheme) == list(map(len, b))
    assert counted("span_tp", *table, choice=scheme) == [len(x & y) for x, y in zip(a, b, strict=True)]


@given(table=tables(TAGS, aligned=True))
def test_strict_iobes_spans(table: tuple[Lists, Lists]) -> None:
    a, b = ([strict_spans(tags, "IOBES") for tags in column] for column in table)
    assert counted("span_tp", *table, choice="IOBES") == [len(x & y) for x, y in zip(a, b, strict=True)]
    assert counted("span_actual", table[1], choice="IOBES") == list(map(len, b))


@given(table=tables(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"]), aligned=True))
def test_spans_as_conlleval_reads_bio(table: tuple[Lists, Lists]) -> None:
    a, b = ([_chunks(tags) for tags in column] for column in table)
    assert counted("span_predicted", table[0]) == list(map(len, a))
    assert counted("span_tp", *table) == [len(x & y) for x, y in zip(a, b, strict=True)]


def test_iob1() -> None:
    tags = [["I-X", "I-X", "B-X", "O", "I-X", "I-Y", "O"]]
    assert counted("span_actual", tags) == [4]
    assert counted("span_actual", tags, choice="BIO") == [1]


ARCS = st.builds(
    lambda head, relation: f"{head}:{relation}",
    st.sampled_from([0, 1, 12]),
    st.sampled_from(["root", "nsubj", "nsubj:pass"]),
)


@given(table=tables(ARCS, aligned=True))
def test_arcs(table: tuple[Lists, Lists]) -> None:
    def matches(key: Callable[[str], str]) -> list[int]:
        return [sum(key(x) == key(y) for x, y in zip(a, b, strict=True)) for a, b in zip(*table, strict=True)]

    heads = [[" ".join(arc.partition(":")[0] for arc in arcs) for arcs in column] for column in table]
    assert counted("arc_matches", *table) == matches(str)
    assert counted("head_matches", *table) == matches(lambda arc: arc.partition(":")[0])
    assert counted("head_matches", heads[0], table[1]) == counted("head_matches", *heads)


ANSWERS = st.one_of(
    st.text(max_size=12),
    st.lists(
        st.sampled_from(["a", "The", "an", "cat", "cat's", "A.", "-", "\n", " ", "Ünd", "a\u0301", "ΟΔΟΣ"])
    ).map(" ".join),
)


@given(st.lists(st.tuples(ANSWERS, ANSWERS, st.lists(ANSWERS, max_size=3)), max_size=5))
@example([("The", "a.", []), ("the cat", "cat\n", ["the", "cat"]), ("the", "", ["the", "cat"])])
def test_answers(rows: list[tuple[str, str, list[str]]]) -> None:
    predictions, labels = [row[0] for row in rows], [row[1] for row in rows]
    accepted = [row[2] for row in rows]

    def known(answers: list[str]) -> list[str]:
        return [answer for answer in answers if _tokens(answer)] or [""]

    def f1(prediction: str, answers: list[str]) -> float:
        return float(max(_token_f1(prediction, [answer]) for answer in known(answers)))

    def matches(prediction: str, answers: list[str]) -> bool:
        return any(_tokens(prediction) == _tokens(answer) for answer in known(answers))

    assert counted("n_answer_tokens", labels) == [len(_tokens(label)) for label in labels]
    assert counted("answer_overlap", predictions, labels) == [
        multiset(_tokens(a), _tokens(b)) for a, b in zip(predictions, labels, strict=True)
    ]
    assert counted("answer_f1", predictions, labels) == [
        f1(a, [b]) for a, b in zip(predictions, labels, strict=True)
    ]
    assert counted("answer_matches", predictions, labels) == [
        matches(a, [b]) for a, b in zip(predictions, labels, strict=True)
    ]
    if any(isinstance(answer, str) for answers in accepted for answer in answers):
        assert counted("answer_f1", predictions, accepted) == list(map(f1, predictions, accepted))
        assert counted("answer_matches", predictions, accepted) == list(map(matches, predictions, accepted))


def test_f1_of_an_answer_is_the_float_nearest_to_it() -> None:
    (found,) = counted("answer_f1", ["x y z"], ["x w v u"])
    assert found == float(Fraction(2, 7))
