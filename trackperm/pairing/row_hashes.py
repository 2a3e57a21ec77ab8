"""Hashes of rows. Their sums are digests that depend neither on row order nor on the engine.

Each value becomes an integer of 64 bits, its word. A linear combination of words, modulo two primes below
2^31, is raised to a power that permutes the residues. The hash of a row is the hash of its key times the hash
of its values, modulo the primes, so that rows with equal values need only the sum of their keys' hashes.
Products of residues stay below 2^62, so that plain 64-bit arithmetic is exact in every engine. Sums of such
hashes identify multisets of rows as in Clarke et al. (2003), "Incremental Multiset Hash Functions and Their
Application to Memory Integrity Checking". Their 62 bits protect against accidents, but not against an
attacker who searches for two tables with the same digest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import md5, sha256
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from trackperm.statistic.expressions.functions import Functions
from trackperm.tables.column_types import ColumnType

PRIMES = (2**31 - 1, 2**31 - 19)
"""Moduli p of the two halves of a hash. 5 does not divide p - 1, so that x -> x^5 permutes the residues."""

INTEGER_TEXT = r"^(?:0|-?[1-9][0-9]{0,17})$"
"""Texts that have the word of an integer, so that digests do not depend on how a format stores integers."""

TEXT_DIGITS = 15
"""Hexadecimal digits of MD5 that make the word of any other text: 60 bits, which fit into int64."""

TEXT_BITS = 4 * TEXT_DIGITS
"""Bits of the word of a text."""

NULL_WORD = -(2**62)
"""Word of a missing value."""

_TOGETHER = 2**14  # rows that are hashed at once: their words stay in the processor's cache
_LARGEST_WHOLE = 2.0**53
_BITS = tuple(2**i for i in reversed(range(10)))  # of a float's exponent


def text_word(text: str) -> int:
    """Return the word of a text that does not match :data:`INTEGER_TEXT`."""
    hashed = md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    return int.from_bytes(hashed.digest()[:8], "big") >> (64 - TEXT_BITS)


def text_words(texts: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return :func:`text_word` of every text of a column, which has no surrogates."""
    digests = b"".join([md5(text.encode(), usedforsecurity=False).digest() for text in texts])
    return (np.frombuffer(digests, dtype=">u8")[::2] >> np.uint64(64 - TEXT_BITS)).astype(np.int64)


def number_word(
    f: Functions, frame: nw.LazyFrame[Any], name: str, type_: ColumnType, word: str
) -> nw.LazyFrame[Any]:
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


def row_hash_sql(words: Sequence[str], name: str, rounds: int = 2) -> list[dict[str, str]]:
    """Return SQL expressions that compute the hash of every row's `words`, by column name.

    Each item of the list reads columns of the items before it; the last has the columns :func:`hash_names`.

    Parameters
    ----------
    rounds : int
        Number of times that the combination of the words is raised to its fifth power.
    """
    halves = list(zip(PRIMES, hash_names(name), strict=True))
    steps = [{f"{half}_0": _combined(words, i, p) for i, (p, half) in enumerate(halves)}]
    for i in range(rounds):
        squares, powers = dict[str, str](), dict[str, str]()
        for p, half in halves:
            x, square = f"{half}_{i}", f"{half}_{i}_squared"
            squares[square] = f"{x} * {x} % {p}"
            powers[f"{half}_{i + 1}"] = f"({square} * {square} % {p} * {x} + 1) % {p}"
        steps += [squares, powers]
    return [*steps, {half: f"{half}_{rounds}" for _, half in halves}]


def row_hash(words: Sequence[npt.NDArray[Any]], n: int, rounds: int = 2) -> list[npt.NDArray[np.int64]]:
    """Return the hashes of `n` rows, given their words as arrays of int64; see :func:`row_hash_sql`."""
    found = [np.empty(n, dtype=np.int64) for _ in PRIMES]
    for start in range(0, n, _TOGETHER):
        part = slice(start, min(start + _TOGETHER, n))
        for half, p in enumerate(PRIMES):
            h = np.full(part.stop - start, _factor(half, -1, p), dtype=np.int64)
            for i, word in enumerate(words):
                h += _remainder(_remainder(word[part], p) * _factor(half, i, p), p)
            h = _remainder(h, p)
            for _ in range(rounds):
                square = _remainder(h * h, p)
                h = _remainder(_remainder(square * square, p) * h + 1, p)
            found[half][part] = h
    return found


def _remainder(a: npt.NDArray[np.int64], p: int) -> npt.NDArray[np.int64]:
    """Return a mod p, from 0 to p - 1, by floor division, which NumPy computes as a multiplication."""
    multiples = a // p
    multiples *= p
    return np.subtract(a, multiples, out=multiples)


def hash_names(name: str) -> list[str]:
    """Name the columns of a hash."""
    return [f"{name}_{i}" for i in range(len(PRIMES))]


def product_sums(f: Functions, keys: str, values: str, condition: nw.Expr) -> list[nw.Expr]:
    """Return expressions that add up the hashes of rows, named like the hashes `values`.

    Parameters
    ----------
    keys, values : str
        Names of the hashes of keys (or of sums of these), and of the hashes of values.
    condition : Expr
        Rows that are added up.
    """
    zero = f.lit(0, f.Int64)
    return [
        f.when(condition).then(((f.col(key) % p) * f.col(value)) % p).otherwise(zero).sum().alias(value)
        for p, key, value in zip(PRIMES, hash_names(keys), hash_names(values), strict=True)
    ]


def digest(header: Sequence[object], sums: Mapping[str, int], name: str) -> str:
    """Return the SHA-256 of a header of JSON values and the sums of hashes of all rows.

    `sums` are the values of the expressions of :func:`product_sums`, and `name` is that of the hashes of
    values.
    """
    written = [*header, *(int(sums[half] or 0) % p for p, half in zip(PRIMES, hash_names(name), strict=True))]
    return sha256(json.dumps(written).encode()).hexdigest()


def _combined(words: Sequence[str], half: int, p: int) -> str:
    """Return the SQL of the linear combination; in SQL, a remainder has the sign of the dividend."""
    terms = [f"CAST({_factor(half, -1, p)} AS BIGINT)"]
    terms += [f"{word} % {p} * {_factor(half, i, p)} % {p}" for i, word in enumerate(words)]
    return f"(({' + '.join(terms)}) % {p} + {p}) % {p}"


@lru_cache(maxsize=2**10)
def _factor(half: int, word: int, p: int) -> int:
    return int(sha256(f"row hash {half} {word}".encode()).hexdigest(), 16) % (p - 1) + 1
