"""The order of texts by their bytes, found by sorting integers.

Eight bytes read as a big-endian integer are ordered as the bytes are. Ids differ early, so that integers
decide nearly all of their order, and comparing texts, which is many times slower, what is left.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

_WIDTH = 8  # bytes that an integer holds
_ROUNDS = 4  # integers by which texts are compared before they are compared as texts
_SLICE = 2**18  # texts that are joined at once


def text_order(texts: pl.Series) -> npt.NDArray[np.int64]:
    """Return the rows of `texts` in ascending order of their UTF-8 bytes, as polars sorts them.

    Parameters
    ----------
    texts : Series of str, shape (N,)
        Without nulls.

    Returns
    -------
    ndarray of int64, shape (N,)
        Numbers of the rows, those with the same text next to each other.

    Examples
    --------
    >>> text_order(pl.Series(["q-10", "q-9", "q-1"])).tolist()
    [2, 0, 1]
    """
    order: npt.NDArray[np.int64] = np.arange(len(texts))
    if len(texts) < 2:
        return order
    start = _common_prefix(texts)
    # The places in `order`, and the texts there, whose order is not known.
    places: npt.NDArray[np.int64] = np.arange(len(texts))
    left = texts
    groups = np.zeros(len(texts), dtype=np.int64)  # of texts that are alike so far, in ascending order
    for _ in range(_ROUNDS):
        words = _words(left, start)
        within = np.argsort(words) if groups[0] == groups[-1] else np.lexsort((words, groups))
        order[places] = order[places][within]
        words, groups = words[within], groups[within]
        is_first = np.ones(len(words) + 1, dtype=np.bool_)  # of its group
        is_first[1:-1] = (words[1:] != words[:-1]) | (groups[1:] != groups[:-1])
        is_tied = ~(is_first[:-1] & is_first[1:])
        if not is_tied.any():
            return order
        places, groups = places[is_tied], np.cumsum(is_first[:-1], dtype=np.int64)[is_tied]
        left, start = texts.gather(order[places]), start + _WIDTH
    rest = pl.DataFrame({"group": groups, "text": left, "row": order[places]}).sort("group", "text")
    order[places] = rest.get_column("row").to_numpy()
    return order


def _common_prefix(texts: pl.Series) -> int:
    """Count the bytes with which all texts begin: those that the first and the last of them share."""
    first, last = str(texts.min()).encode(), str(texts.max()).encode()
    return next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))


def _words(texts: pl.Series, start: int) -> npt.NDArray[np.uint64]:
    """Return eight bytes of each text from `start` on as an integer, with zeros beyond its end."""
    words = np.empty(len(texts), dtype=np.uint64)
    done = 0
    for part in texts.to_frame().iter_slices(_SLICE):
        slice_ = part.to_series()
        lengths = slice_.str.len_bytes().to_numpy().astype(np.int64)
        data = np.frombuffer(str(slice_.str.join("").item()).encode() + bytes(_WIDTH), dtype=np.uint8)
        at_every_byte = np.ndarray((len(data) - _WIDTH + 1,), dtype=">u8", buffer=data, strides=(1,))
        first = np.cumsum(lengths) - lengths + np.minimum(start, lengths)
        n_own = np.clip(lengths - start, 0, _WIDTH)
        foreign = (8 * np.minimum(_WIDTH - n_own, _WIDTH - 1)).astype(np.uint64)  # bits, by 64 none can shift
        own = at_every_byte[first].astype(np.uint64) >> foreign << foreign
        words[done : done + len(lengths)] = np.where(n_own == 0, 0, own)
        done += len(lengths)
    return words
