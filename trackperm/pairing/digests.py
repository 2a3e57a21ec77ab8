"""Digests of two runs' data and of their test set, which depend neither on row order nor on the engine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import narwhals as nw
import polars as pl

from trackperm.pairing.engines.base import Engine, Frame
from trackperm.pairing.internal_names import internal
from trackperm.pairing.joined import KEY_HASH, SIDES, JoinedRows, of
from trackperm.pairing.row_hashes import (
    NULL_WORD,
    digest,
    hash_names,
    number_word,
    product_sums,
    text_word,
)
from trackperm.statistic.expressions.functions import Functions
from trackperm.tables.column_types import LISTS, ColumnType

SUM = "s"
"""First letter of a test set's digest if it is a sum of hashes; earlier versions wrote only digits."""

_HASH = "hash"
_TEST_SET = "test_set"


@dataclass(frozen=True)
class Digests:
    """SHA-256 digests of two runs and of their test set; the latter begins with :data:`SUM`.

    Attributes
    ----------
    baseline, candidate : str
        Digest of each run's ids and columns that were read, with their names and types.
    test_set : str
        Digest of the examples that either run has: their ids, with their labels if these were checked, else
        with the columns that identify an example's input. All rows of one id are one example. Where rows are
        paired by position, the number of a row is its id. The digest does not depend on predictions, the
        statistic, the names of columns, the order of the two runs, the treatment of missing examples, or
        whether integers were logged as integers, text or whole decimals.
    """

    baseline: str
    candidate: str
    test_set: str


def digests(rows: JoinedRows) -> Digests:
    """Compute the digests of two runs and their test set, in one query."""
    frame, sums = with_sums(rows)
    found = rows.engine.collected(frame.select(value.alias(name) for name, value in sums.items()))
    return digests_of(rows, found.row(0, named=True))


def with_sums(
    rows: JoinedRows, parts: Sequence[str] = (*SIDES, _TEST_SET)
) -> tuple[Frame, dict[str, nw.Expr]]:
    """Return the rows with their hashes, and the expressions of the sums that :func:`digests_of` reads.

    Parameters
    ----------
    parts : sequence of str
        Parts to digest: sides, and the test set, which needs both sides.
    """
    own, frame, f = _own(rows), rows.frame, rows.functions
    read = [(of(side, name), rows.types[name]) for side in SIDES if side in parts for name in own]
    frame = _with_words(rows.engine, frame, read)
    conditions = {side: rows.there(side) for side in SIDES} | {_TEST_SET: rows.is_first()}
    words = {side: [_word(of(side, name)) for name in own] for side in SIDES}
    if _TEST_SET in parts:
        shared = _shared(rows)
        frame = frame.with_columns(
            _of_either(f, name).alias(_word(internal("either", name))) for name in shared
        )
        words[_TEST_SET] = [_word(internal("either", name)) for name in shared]
    sums: dict[str, nw.Expr] = {}
    for name in parts:
        values = f"{_HASH}_{name}"
        frame = rows.engine.with_row_hash(frame, words[name], values)
        sums[f"n_{name}"] = rows.n_rows(conditions[name])
        sums |= zip(hash_names(values), product_sums(f, KEY_HASH, values, conditions[name]), strict=True)
    return frame, sums


def digests_of(rows: JoinedRows, sums: Mapping[str, int]) -> Digests:
    """Compute the digests of two runs and their test set from the sums of :func:`with_sums`."""
    header = [[name, rows.types[name].value] for name in _own(rows)]
    ids = [rows.types[name].value for name in rows.columns.ids]
    baseline, candidate = (
        digest([int(sums[f"n_{side}"]), ids, header], sums, f"{_HASH}_{side}") for side in SIDES
    )
    test_set = digest([_TEST_SET, int(sums[f"n_{_TEST_SET}"])], sums, f"{_HASH}_{_TEST_SET}")
    return Digests(baseline, candidate, f"{SUM}{test_set[len(SUM) :]}")


def _own(rows: JoinedRows) -> list[str]:
    """Return the columns of a run that enter its digest."""
    columns = rows.columns
    return sorted(name for name in rows.types if columns.id is None or name not in columns.ids)


def _shared(rows: JoinedRows) -> tuple[str, ...]:
    """Return the columns of an example that enter the digest of the test set beside its id."""
    columns = rows.columns
    return (columns.label,) if columns.label is not None else tuple(sorted(columns.identity))


def _with_words(engine: Engine, frame: Frame, columns: Iterable[tuple[str, ColumnType]]) -> Frame:
    texts: dict[str, str] = {}
    for name, type_ in columns:
        if type_ is ColumnType.TEXT:
            texts[_word(name)] = name
        elif type_ in LISTS:
            frame = engine.mapped(frame, partial(_list_words, name=name))
        else:
            frame = number_word(engine.functions, frame, name, type_, _word(name))
    return engine.with_text_words(frame, texts) if texts else frame


def _list_words(batch: pl.DataFrame, name: str) -> pl.DataFrame:
    words = [
        NULL_WORD if items is None else text_word(json.dumps(items, ensure_ascii=False))
        for items in batch[name].to_list()
    ]
    return batch.with_columns(pl.Series(_word(name), words, pl.Int64))


def _of_either(f: Functions, name: str) -> nw.Expr:
    """Return the word of the baseline's value, or of the candidate's where the baseline's is null."""
    baseline, candidate = (f.col(_word(of(side, name))) for side in SIDES)
    return f.when(baseline == NULL_WORD).then(candidate).otherwise(baseline)


def _word(name: str) -> str:
    return f"word_{name}"
