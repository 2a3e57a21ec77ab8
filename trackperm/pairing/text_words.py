"""Words of many texts: a vectorised MD5 for short texts.

For a short text, the call of a hash function from Python takes longer than the hash itself, and holds the
global interpreter lock. Here each step of MD5 is an operation on arrays; there are about 600 operations for
any number of texts.

References
----------
R. Rivest (1992), "The MD5 Message-Digest Algorithm", RFC 1321.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.pairing.row_hashes import TEXT_BITS, text_word

FEW = 2**11
"""Number of texts up to which it is faster to hash them one by one."""

_LONGEST = 55  # bytes that fit into one block of MD5 before its padding and length
_TOGETHER = 2**13  # texts that are hashed at once: their blocks stay in the processor's cache
_START = tuple(np.uint32(x) for x in (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476))
_SINES = tuple(np.uint32(abs(math.sin(i + 1)) * 2**32) for i in range(64))
_SHIFTS = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))
_PLACES = ((1, 0), (5, 1), (3, 5), (7, 0))

Words = npt.NDArray[np.int64]


def text_words(texts: pl.Series) -> Words:
    """Return :func:`~trackperm.pairing.row_hashes.text_word` of every text; no text may be null."""
    n_bytes = texts.str.len_bytes()
    is_short = (n_bytes <= _LONGEST) & (n_bytes == texts.str.len_chars())
    words = np.empty(len(texts), dtype=np.int64)
    words[(~is_short).to_numpy()] = [text_word(text) for text in texts.filter(~is_short).to_list()]
    if is_short.any():
        words[is_short.to_numpy()] = _of_short(texts.filter(is_short), n_bytes.filter(is_short))
    return words


def _of_short(texts: pl.Series, n_bytes: pl.Series) -> Words:
    """Return the words of texts of ASCII characters that fit into one block."""
    width = max(1, int(n_bytes.max()))  # type: ignore[arg-type]
    padded = np.frombuffer(texts.str.pad_end(width, "\0").str.join("")[0].encode(), dtype=np.uint8)
    sizes, padded = n_bytes.to_numpy().astype(np.uint32), padded.reshape(len(texts), width)
    words = np.empty(len(texts), dtype=np.int64)
    for start in range(0, len(texts), _TOGETHER):
        part = slice(start, start + _TOGETHER)
        words[part] = _md5(_blocks(padded[part], sizes[part]), width // 4)
    return words


def _blocks(padded: npt.NDArray[np.uint8], sizes: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return the blocks of texts, shape (16, n): the text, a bit 1, zeros, and its length in bits."""
    n, width = padded.shape
    blocks = np.zeros((n, 64), dtype=np.uint8)
    blocks[:, :width] = padded
    blocks[np.arange(n), sizes] = 0x80
    words = np.ascontiguousarray(blocks.view("<u4").T, dtype=np.uint32)
    words[14] = 8 * sizes
    return words


def _md5(block: npt.NDArray[np.uint32], last: int) -> Words:
    """Return the first bits of MD5 of blocks whose words after `last` are 0, except for the length."""
    a, b, c, d = (np.full(block.shape[1], x, dtype=np.uint32) for x in _START)
    for step in range(64):
        turn, place = step // 16, (_PLACES[step // 16][0] * step + _PLACES[step // 16][1]) % 16
        if turn == 0:
            f = d ^ (b & (c ^ d))
        elif turn == 1:
            f = c ^ (d & (b ^ c))
        elif turn == 2:
            f = b ^ c ^ d
        else:
            f = c ^ (b | ~d)
        a += f
        a += _SINES[step]
        if place <= last or place == 14:
            a += block[place]
        shift = _SHIFTS[turn][step % 4]
        a, b, c, d = d, b + (a << np.uint32(shift) | a >> np.uint32(32 - shift)), b, c
    first, second = ((x + start).byteswap().astype(np.int64) for x, start in ((a, _START[0]), (b, _START[1])))
    words: Words = (first << 32 | second) >> (64 - TEXT_BITS) & (2**TEXT_BITS - 1)
    return words
