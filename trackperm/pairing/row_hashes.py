"""Hashes of rows, whose sums are digests that no order of rows changes and every engine computes alike.

Values become integers of 64 bits, their words; a linear combination of words, modulo two primes below
2^31, is raised to a power that permutes the residues. The hash of a row is that of its key times that of
its values, modulo the primes, so that rows with the same values need their keys' hashes in one sum alone.
Products of residues stay below 2^62: plain 64-bit arithmetic is exact on every engine. Sums of such hashes
tell multisets of rows apart as in Clarke et al. (2003), "Incremental Multiset Hash Functions and Their
Application to Memory Integrity Checking", with 62 bits: enough against accidents, not against somebody who
looks for two tables with one digest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
import numpy.typing as npt

from trackperm.tables.column_types import ColumnType

PRIMES = (2**31 - 1, 2**31 - 19)
"""Moduli of the two halves of a hash. 5 divides neither minus 1, so that x -> x^5 permutes the residues."""

INTEGER_TEXT = r"^(?:0|-?[1-9][0-9]{0,17})$"
"""Texts whose word is that of the integer: it does not matter how a format writes integers."""

TEXT_DIGITS = 15
"""Hexadecimal digits of SHA-256 that are the word of another text: 60 bits."""

NULL_WORD = -(2**62)
"""Word of a value that is missing."""

_LARGEST_WHOLE = 2.0**53
_BITS = tuple(2**i for i in reversed(range(10)))  # of a float's exponent

FrameT = TypeVar("FrameT", nw.DataFrame[Any], nw.LazyFrame[Any])


def text_word(text: str) -> int:
    """Return the word of a text that is not written as an integer."""
    return int(sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:TEXT_DIGITS], 16)


def number_word(frame: FrameT, name: str, type_: ColumnType, word: str) -> FrameT:
    """Add the words of a column of integers, booleans or decimals as column `word`, of int64."""
    if type_ is not ColumnType.DECIMAL:
        return frame.with_columns(nw.col(name).cast(nw.Int64).fill_null(NULL_WORD).alias(word))
    # |x| = m 2^e with 1 <= m < 2: multiplying by powers of two is exact.
    m, e = f"{word}_mantissa", f"{word}_exponent"
    frame = frame.with_columns(nw.col(name).abs().alias(m), nw.lit(0, nw.Int64).alias(e))
    for bit in _BITS:
        is_large, is_small = nw.col(m) >= 2.0**bit, nw.col(m) < 2.0 ** (1 - bit)
        is_small = is_small & (nw.col(m) > 0.0)
        frame = frame.with_columns(
            nw.when(is_large)
            .then(nw.col(m) * 2.0**-bit)
            .otherwise(nw.when(is_small).then(nw.col(m) * 2.0**bit).otherwise(nw.col(m)))
            .alias(m),
            nw.when(is_large)
            .then(nw.col(e) + bit)
            .otherwise(nw.when(is_small).then(nw.col(e) - bit).otherwise(nw.col(e)))
            .alias(e),
        )
    is_whole = (nw.col(name).abs() < _LARGEST_WHOLE) & (nw.col(name) == nw.col(name).floor())
    whole = nw.when(is_whole).then(nw.col(name)).otherwise(nw.lit(0.0)).cast(nw.Int64)
    # 52 bits of the mantissa behind its first, and 11 of the exponent
    bits = ((nw.col(m) - 1.0) * 2.0**52).fill_null(0.0).cast(nw.Int64) * 2048 + (nw.col(e) + 1023)
    signed = nw.when(nw.col(name) < 0.0).then(-bits - 1).otherwise(bits)
    found = nw.when(is_whole).then(whole).otherwise(signed)
    has_value = ~nw.col(name).is_null()
    return frame.with_columns(
        nw.when(has_value).then(found).otherwise(nw.lit(NULL_WORD, nw.Int64)).alias(word)
    ).drop(m, e)


def row_hash_sql(words: Sequence[str], name: str, rounds: int = 2) -> list[dict[str, str]]:
    """Return the SQL expressions of the hash of every row's `words`, by the names of their columns.

    Each list item reads columns of those before it; the last has the columns :func:`hash_names`.

    Parameters
    ----------
    rounds : int
        How often the combination of the words is raised to its fifth power.
    """
    halves = list(enumerate(zip(PRIMES, hash_names(name), strict=True)))
    results = [[f"{half}_of_round_{i}" for i in range(rounds)] + [half] for _, (_, half) in halves]
    steps = [{results[i][0]: _combined(words, i, p) for i, (p, _) in halves}]
    for i in range(rounds):
        last = {half: results[half][i] for half, _ in halves}
        steps.append(
            {f"{last[half]}_squared": f"{last[half]} * {last[half]} % {p}" for half, (p, _) in halves}
        )
        steps.append(
            {
                results[half][
                    i + 1
                ]: f"({last[half]}_squared * {last[half]}_squared % {p} * {last[half]} + 1) % {p}"
                for half, (p, _) in halves
            }
        )
    return steps


def row_hash(words: Sequence[npt.NDArray[Any]], n: int, rounds: int = 2) -> list[npt.NDArray[np.int64]]:
    """Return the hash of `n` rows, of their words as arrays of int64; see :func:`row_hash_sql`."""
    found = []
    for half, p in enumerate(PRIMES):
        h = np.full(n, _factor(half, -1, p), dtype=np.int64)
        for i, word in enumerate(words):
            h += np.remainder(word, p) * _factor(half, i, p) % p
        h %= p
        for _ in range(rounds):
            square = h * h % p
            h = (square * square % p * h + 1) % p
        found.append(h)
    return found


def hash_names(name: str) -> list[str]:
    """Name the columns of a hash."""
    return [f"{name}_{i}" for i in range(len(PRIMES))]


def product_sums(keys: str, values: str, condition: nw.Expr) -> list[nw.Expr]:
    """Return the expressions that add up the hashes of rows, under the names of the hashes `values`.

    Parameters
    ----------
    keys, values : str
        Names of the hashes of keys, or of sums of such, and of values.
    condition : Expr
        On which rows.
    """
    zero = nw.lit(0, nw.Int64)
    return [
        nw.when(condition).then(((nw.col(key) % p) * nw.col(value)) % p).otherwise(zero).sum().alias(value)
        for p, key, value in zip(PRIMES, hash_names(keys), hash_names(values), strict=True)
    ]


def digest(header: Sequence[object], sums: Mapping[str, int], name: str) -> str:
    """Return the SHA-256 of what is common to all rows, and the sums of their hashes.

    Parameters
    ----------
    header : sequence
        Of JSON values: number of rows, names and types of columns.
    sums : mapping of str to int
        What :func:`product_sums` gave.
    name : str
        Of the hashes.
    """
    written = [*header, *(int(sums[half] or 0) % p for p, half in zip(PRIMES, hash_names(name), strict=True))]
    return sha256(json.dumps(written).encode()).hexdigest()


def _combined(words: Sequence[str], half: int, p: int) -> str:
    """Combine words whose remainders have the sign of the dividend, as SQL has it."""
    terms = [f"CAST({_factor(half, -1, p)} AS BIGINT)"]
    terms += [f"{word} % {p} * {_factor(half, i, p)} % {p}" for i, word in enumerate(words)]
    return f"(({' + '.join(terms)}) % {p} + {p}) % {p}"


def _factor(half: int, word: int, p: int) -> int:
    return int(sha256(f"row hash {half} {word}".encode()).hexdigest(), 16) % (p - 1) + 1
