"""Dependency trees in CoNLL-U, the format of Universal Dependencies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from trackperm.errors import SourceError
from trackperm.tables.json_values import table
from trackperm.tables.source import Source, SourceFile, decoded
from trackperm.tables.table import ExampleTable

_COLUMNS = 10
_NUMBER = re.compile(r"[0-9]{1,9}(?:[-.][0-9]{1,9})?")
_FIRST = re.compile(r"1|1-[0-9]+|[01]\.1")
_DECIMAL = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")
_SENTENCE = re.compile(r"#\s*sent_id\s*=(.*)")

_Sentence = tuple[str | None, list[str], list[str]]  # its sent_id, its words, and their arcs


def read_conllu(file: SourceFile) -> ExampleTable:
    """Read words, and the head and relation of each.

    Its columns are ``id`` (the ``sent_id``, or the number of the sentence from 1 where no sentence has one),
    ``tokens`` and ``prediction`` (items such as ``2:nsubj``). Multiword tokens and empty nodes have no head
    and are left out. Raise SourceError if a line does not have ten columns, a word is out of order or has no
    head, or only some sentences have a ``sent_id``.
    """
    sentences = list(_sentences(file))
    if not sentences:
        raise SourceError(f"`{file.origin}` has no sentence")
    without = [index for index, (name, _, _) in enumerate(sentences, start=1) if name is None]
    if 0 < len(without) < len(sentences):
        raise SourceError(
            f"`{file.origin}`: {len(without):,} of {len(sentences):,} sentences have no `sent_id`, first"
            f" sentence {without[0]}",
            hint="add one to every sentence, or remove all.",
        )
    columns: dict[str, list[int] | list[str | None] | list[list[str]]] = {
        "id": list(range(1, len(sentences) + 1)) if without else [name for name, _, _ in sentences],
        "tokens": [words for _, words, _ in sentences],
        "prediction": [arcs for _, _, arcs in sentences],
    }
    read = table(columns, lambda index: f"sentence {index + 1}", file.origin)
    return replace(read, identity=("tokens",), statistics=("las",))


def _sentences(file: SourceFile) -> Iterator[_Sentence]:
    # Not splitlines(), which would also split at characters that a word may contain.
    lines = enumerate(decoded(file.path.read_bytes(), file.origin).split("\n"), start=1)
    stripped = ((number, line.rstrip("\r")) for number, line in lines)
    for is_blank, group in groupby(stripped, lambda line: not line[1].strip()):
        if is_blank:
            continue
        name, words, arcs = None, list[str](), list[str]()
        for number, line in group:
            if line.startswith("#"):
                match = _SENTENCE.fullmatch(line)
                name = match[1].strip() if match else name
                continue
            place, form, arc = _word(line, f"`{file.origin}`, line {number}")
            if not place.isdigit():
                continue
            if int(place) != len(words) + 1:
                raise SourceError(f"`{file.origin}`, line {number}: word {place} follows word {len(words)}")
            words.append(form)
            arcs.append(arc)
        if words:
            yield name, words, arcs


def _word(line: str, where: str) -> tuple[str, str, str]:
    fields = line.split("\t")
    if len(fields) != _COLUMNS or not _NUMBER.fullmatch(fields[0]):
        raise SourceError(
            f"{where}: {len(fields)} columns that begin with {fields[0]!r}; expected ten that begin with a"
            " number",
            hint="tabs separate columns: ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC.",
        )
    place, form, head, relation = fields[0], fields[1], fields[6], fields[7]
    if place.isdigit() and (not re.fullmatch("[0-9]+", head) or relation in ("", "_")):
        raise SourceError(
            f"{where}: word {place} has the head {head!r} and the relation {relation!r}",
            hint="every word has a number as HEAD, 0 for the root, and a DEPREL.",
        )
    return place, form, f"{head}:{relation}"


def _recognises(file: SourceFile) -> bool:
    first = next((line for line in file.lines if line.strip() and not line.startswith("#")), "")
    fields = first.split("\t")
    if len(fields) != _COLUMNS or _FIRST.fullmatch(fields[0]) is None:
        return False
    tag, head, relation = fields[3], fields[6], fields[7]
    # Lines that are not words have `_` as head. A table of numbers has numbers in place of tags.
    return re.fullmatch("[0-9]+|_", head) is not None and not any(map(_DECIMAL.fullmatch, (tag, relation)))


CONLLU = Source("conllu", "CoNLL-U", _recognises, read_conllu)
