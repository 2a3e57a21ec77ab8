"""Transcripts in sclite's ``trn``: the words of an utterance, and its id in parentheses at the end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from trackperm.errors import SourceError
from trackperm.tables.json_values import table
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable

_ID = re.compile(r"[^()\s]+")
_SEPARATOR = re.compile("[-_]")
_COMMENT = ";;"
_ALTERNATIVES = re.compile(r"\{|(?<!\S)\([^()\s]+\)(?!\S)")
"""Alternative words, ``{ a / b }``, and words that may be left out, ``(uh)``."""
_FEWEST = 2
"""Fewest lines by which the format is recognised."""


def read_trn(file: SourceFile) -> ExampleTable:
    """Read ``id`` and ``prediction``, the words with single spaces; comments begin with two semicolons.

    Raise SourceError if a line has no id, an id repeats, or a text has alternative or optional words, which
    only sclite counts.
    """
    texts: dict[str, str] = {}
    for number, line in _lines(enumerate(file.text.split("\n"), start=1)):
        where = f"`{file.origin}`, line {number}"
        if (found := _text_and_id(line)) is None:
            raise SourceError(f"{where} does not end with the id of an utterance, such as `(spk1-utt2)`")
        text, id_ = found
        if other := _ALTERNATIVES.search(text):
            raise SourceError(
                f"{where} has alternative or optional words (`{text[other.start() : other.start() + 40]}`),"
                " which `word_error_rate` does not know",
                hint="compare the reports of `sclite -o sgml`, which counts them.",
            )
        if id_ in texts:
            raise SourceError(f"{where}: the utterance `{id_}` is in an earlier line, too")
        texts[id_] = text
    columns = {"id": list(texts), "prediction": list(texts.values())}
    read = table(columns, lambda index: f"utterance {columns['id'][index]}", file.origin)
    return replace(read, statistics=("word_error_rate",))


def _lines(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    return ((n, line) for n, line in numbered if line.strip() and not line.startswith(_COMMENT))


def _text_and_id(line: str) -> tuple[str, str] | None:
    """Return the words of a line and the id behind them; None without one.

    An id has a separator, and a letter or two separators, unlike the years of ``Title (1995-2003)``.
    """
    text, _, end = line.rstrip().rpartition("(")
    id_ = end.removesuffix(")")
    parts = _SEPARATOR.split(id_)
    is_id = len(parts) > 2 or (len(parts) > 1 and any(map(str.isalpha, id_)))
    if id_ == end or not is_id or not _ID.fullmatch(id_) or text.rstrip() == text != "":
        return None
    return " ".join(text.split()), id_


def _recognises(file: SourceFile) -> bool:
    lines = [line for _, line in _lines(enumerate(file.lines))]
    is_cut = not file.head.endswith(b"\n")
    return len(lines) >= _FEWEST and all(map(_text_and_id, lines[:-1] if is_cut else lines))


TRN = Source("trn", "sclite's trn transcripts", _recognises, read_trn)
