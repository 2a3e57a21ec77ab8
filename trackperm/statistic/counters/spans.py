"""Entity spans, read from the tags of tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import UncountableError
from trackperm.statistic.counters.base import Integers, Items, numbered, require_same_items

Prefixes = npt.NDArray[np.int8]

SCHEMES = ("conlleval", "BIO", "IOBES")
"""Tagging schemes.

``conlleval`` reads BIO, IOB1 and IOBES tags as that program does: spans count that no B or E delimits. The
others accept well-formed spans alone, as seqeval's ``mode='strict'`` does.
"""

_PREFIXES = {"conlleval": "BIES", "BIO": "BI", "IOBES": "BIES"}
_HINTS = {
    "conlleval": "tags are `O`, and `B-`, `I-`, `E-` or `S-` followed by a type.",
    "BIO": "tags of the scheme BIO are `O`, and `B-` or `I-` followed by a type.",
    "IOBES": "tags of the scheme IOBES are `O`, and `B-`, `I-`, `E-` or `S-` followed by a type.",
}
_O, _B, _I, _E, _S = range(5)
_FEW = 10  # rows up to which all may be sentences of one token


def span_tp(prediction: pl.Series, label: pl.Series, scheme: str) -> Integers:
    """Count the spans with the same type, start and end in both columns."""
    require_same_items(prediction, label)
    types: dict[str, int] = {}
    predicted, actual = _Spans.read(prediction, scheme, types), _Spans.read(label, scheme, types)
    predicted.tags.require_same_lengths(actual.tags)
    same = (predicted.ends == actual.ends) & (predicted.types == actual.types)
    return actual.tags.sums(same & (actual.types >= 0))


def n_spans(column: pl.Series, scheme: str) -> Integers:
    """Count the spans."""
    spans = _Spans.read(column, scheme, {})
    return spans.tags.sums(spans.types >= 0)


@dataclass(frozen=True, eq=False)
class _Spans:
    """Spans by the token at which they start.

    Attributes
    ----------
    tags : Items
        Tags from which they were read.
    types : ndarray of int64
        Type of the span that starts at a token, or -1.
    ends : ndarray of int64
        Last token of the span that starts at a token, or -1.
    """

    tags: Items
    types: Integers
    ends: Integers

    @classmethod
    def read(cls, column: pl.Series, scheme: str, numbers: dict[str, int]) -> _Spans:
        """Read one column, and add the types of its spans to `numbers`; refuse a tag of another scheme."""
        tags = Items.read(column)
        prefixes, types = _parsed(tags, scheme, numbers)
        _require_sentences(tags, prefixes)
        continues = _continues(tags, prefixes, types)
        first = np.flatnonzero(~continues)
        last = np.append(first[1:], len(prefixes))[: len(first)] - 1
        is_span = _is_span(scheme, prefixes[first], prefixes[last])
        first, last = first[is_span], last[is_span]
        found = np.full((2, len(prefixes)), -1)
        found[:, first] = types[first], last
        return cls(tags, found[0], found[1])


def _require_sentences(tags: Items, prefixes: Prefixes) -> None:
    """Refuse rows of one tag each if some continue the span of another row."""
    continued = np.flatnonzero((prefixes == _I) | (prefixes == _E))
    if continued.size and len(tags.offsets) > _FEW and (tags.lengths <= 1).all():
        position = int(continued[0])
        raise UncountableError(
            tags.row_of(position),
            f"`{tags.name}` is {tags.values[position]!r}, which continues a span, but every row has one tag",
            "spans are counted by sentence: give one row for each, with the list of its tags.",
        )


def _parsed(tags: Items, scheme: str, numbers: dict[str, int]) -> tuple[Prefixes, Integers]:
    """Return the prefix of every tag and the number of its type."""
    (which,), n_numbers = numbered(tags)
    first = np.full(n_numbers, -1)
    first[which[::-1]] = np.arange(len(which))[::-1]  # the first place is assigned last, and stays
    prefixes, types = np.zeros(n_numbers, dtype=np.int8), np.zeros(n_numbers, dtype=np.int64)
    for position in np.sort(first[first >= 0]).tolist():
        tag = tags.values[position]
        if tag == "O":
            continue
        match = re.fullmatch(rf"([{_PREFIXES[scheme]}])(?:-(.*))?", tag, re.DOTALL)
        if match is None:
            problem = f"{tag!r} in `{tags.name}` is not a tag"
            raise UncountableError(tags.row_of(position), problem, _HINTS[scheme])
        prefixes[which[position]] = "OBIES".index(match[1])
        types[which[position]] = numbers.setdefault(match[2] or "", len(numbers))
    return prefixes[which], types[which]


def _continues(tags: Items, prefixes: Prefixes, types: Integers) -> npt.NDArray[np.bool_]:
    """Whether a token belongs to the same span as the token before it."""
    result: npt.NDArray[np.bool_] = (prefixes == _I) | (prefixes == _E)
    before = prefixes[:-1]
    result[1:] &= ((before == _B) | (before == _I)) & (types[1:] == types[:-1])
    result[tags.offsets[:-1][tags.lengths > 0]] = False
    return result


def _is_span(scheme: str, first: Prefixes, last: Prefixes) -> npt.NDArray[np.bool_]:
    """Whether tokens with these first and last prefixes form a span."""
    if scheme == "conlleval":
        return np.asarray(first != _O)
    if scheme == "BIO":
        return np.asarray(first == _B)
    return np.asarray((first == _S) | ((first == _B) & (last == _E)))
