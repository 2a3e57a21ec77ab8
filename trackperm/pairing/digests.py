"""Digests of two runs' data and of their test set, which depend neither on row order nor on the engine.

The hash of a row is the hash of its key times the hash of its values, modulo the primes, so that rows with
equal values need only the sum of their keys' hashes; see :mod:`~trackperm.pairing.engines.base`. Sums of such
hashes identify multisets of rows as in Clarke et al. (2003), "Incremental Multiset Hash Functions and Their
Application to Memory Integrity Checking". Their 62 bits protect against accidents, but not against an
attacker who searches for two tables with the same digest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

import narwhals as nw
import polars as pl

from trackperm.pairing.engines.base import HALVES, NULL_WORD, Engine, Frame
from trackperm.pairing.engines.in_memory import text_words
from trackperm.pairing.internal_names import internal
from trackperm.pairing.joined import KEY_HASH, SIDES, JoinedRows, of
from trackperm.statistic.expressions.functions import Functions
from trackperm.tables.columns.types import LISTS, ColumnType

SUM = "s"
"""First letter of a test set's digest if it is a sum of hashes; earlier versions wrote only digits."""

_HASH = "hash"
_TEST_SET = "test_set"
_LARGEST_WHOLE = 2.0**53
_BITS = tuple(2**i for i in reversed(range(10)))  # of a float's exponent


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
        sums |= {f"{values}_{half}": _sum(f, half, values, conditions[name]) for half in HALVES}
    return frame, sums


def digests_of(rows: JoinedRows, sums: Mapping[str, int]) -> Digests:
    """Compute the digests of two runs and their test set from the sums of :func:`with_sums`."""
    header = [[name, rows.types[name].value] for name in _own(rows)]
    ids = [rows.types[name].value for name in rows.columns.ids]
    baseline, candidate = (
        _digest([int(sums[f"n_{side}"]), ids, header], sums, f"{_HASH}_{side}") for side in SIDES
    )
    test_set = _digest([_TEST_SET, int(sums[f"n_{_TEST_SET}"])], sums, f"{_HASH}_{_TEST_SET}")
    return Digests(baseline, candidate, f"{SUM}{test_set[len(SUM) :]}")


def _own(rows: JoinedRows) -> list[str]:
    """Return the columns of a run that enter its digest."""
    columns = rows.columns
    return sorted(name for name in rows.types if columns.id is None or name not in columns.ids)


def _shared(rows: JoinedRows) -> tuple[str, ...]:
    """Return the columns of an example that enter the digest of the test set beside its id."""
    columns = rows.columns
    shared = (columns.label,) if columns.label is not None else tuple(sorted(columns.identity))
    return tuple(name for name in shared if columns.id is None or name not in columns.ids)


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
    lists = batch[name].to_list()
    texts = [None if items is None else json.dumps(items, ensure_ascii=False) for items in lists]
    return batch.with_columns(text_words(pl.Series(texts, dtype=pl.String)).alias(_word(name)))


def number_word(f: Functions, frame: Frame, name: str, type_: ColumnType, word: str) -> Frame:
    """Add the words of a column of integers, booleans or decimals as column `word`, of int64."""
    if type_ is not ColumnType.DECIMAL:
        return frame.with_columns(f.col(name).cast(f.Int64).fill_null(NULL_WORD).alias(word))
    # |x| = m 2^e with 1 <= m < 2: multiplying by powers of two is exact.
    m, e = f"{word}_mantissa", f"{word}_exponent"
    frame = frame.with_columns(f.col(name).abs().alias(m), f.lit(0, f.Int64).alias(e))
    for bit in _BITS:
        is_large, is_small = f.col(m) >= 2.0**bit, f.col(m) < 2.0 ** (1 - bit)
        is_small = is_small & (f.col(m) > 0.0)
        frame = frame.with_columns(
            f.when(is_large)
            .then(f.col(m) * 2.0**-bit)
            .otherwise(f.when(is_small).then(f.col(m) * 2.0**bit).otherwise(f.col(m)))
            .alias(m),
            f.when(is_large)
            .then(f.col(e) + bit)
            .otherwise(f.when(is_small).then(f.col(e) - bit).otherwise(f.col(e)))
            .alias(e),
        )
    is_whole = (f.col(name).abs() < _LARGEST_WHOLE) & (f.col(name) == f.col(name).floor())
    whole = f.when(is_whole).then(f.col(name)).otherwise(f.lit(0.0)).cast(f.Int64)
    # 52 bits of the mantissa after its first, and 11 bits of the exponent
    bits = ((f.col(m) - 1.0) * 2.0**52).fill_null(0.0).cast(f.Int64) * 2048 + (f.col(e) + 1023)
    signed = f.when(f.col(name) < 0.0).then(-bits - 1).otherwise(bits)
    found = f.when(is_whole).then(whole).otherwise(signed)
    has_value = ~f.col(name).is_null()
    return frame.with_columns(
        f.when(has_value).then(found).otherwise(f.lit(NULL_WORD, f.Int64)).alias(word)
    ).drop(m, e)


def _sum(f: Functions, half: str, values: str, condition: nw.Expr) -> nw.Expr:
    """Return the expression that adds up one half of the hashes of the rows on which `condition` holds."""
    p, zero = HALVES[half], f.lit(0, f.Int64)
    product = ((f.col(f"{KEY_HASH}_{half}") % p) * f.col(f"{values}_{half}")) % p
    return f.when(condition).then(product).otherwise(zero).sum()


def _digest(header: Sequence[object], sums: Mapping[str, int], name: str) -> str:
    """Return the SHA-256 of a header of JSON values and the sums of the hashes `name` of all rows."""
    written = [*header, *(int(sums[f"{name}_{half}"] or 0) % p for half, p in HALVES.items())]
    return sha256(json.dumps(written).encode()).hexdigest()


def _of_either(f: Functions, name: str) -> nw.Expr:
    """Return the word of the baseline's value, or of the candidate's where the baseline's is null."""
    baseline, candidate = (f.col(_word(of(side, name))) for side in SIDES)
    return f.when(baseline == NULL_WORD).then(candidate).otherwise(baseline)


def _word(name: str) -> str:
    return f"word_{name}"
