"""Tagged text of CoNLL's shared tasks: one token per line, its tag last, a blank line between sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from trackperm.errors import SourceError
from trackperm.tables.json_values import table
from trackperm.tables.source import Source, SourceFile, decoded
from trackperm.tables.table import ExampleTable

_TAG = re.compile(r"O|[BIESLU]-\S+")
_FEW = 10  # lines: with fewer, a column of the letter O may belong to any table
_START = "-DOCSTART-"

_Line = tuple[int, list[str]]  # its number, and its fields


def read_conll(file: SourceFile) -> ExampleTable:
    """Read tokens and their tags.

    Its columns are ``id`` (number of the sentence from 1), ``tokens`` (the first column) and ``prediction``
    (the tags, the last column). ``FILE::4`` reads the tags from column 4, and ``FILE::3,4`` also ``label``
    from column 3, as in the input of conlleval. Raise SourceError if lines differ in their number of columns,
    a value is not a tag, the chosen column does not exist, or the last two columns hold tags of the same
    types and none was chosen.
    """
    sentences = list(_sentences(file))
    if not sentences:
        raise SourceError(f"`{file.origin}` has no tagged token")
    width = len(sentences[0][0][1])
    columns: dict[str, list[int] | list[list[str]]] = {
        "id": list(range(1, len(sentences) + 1)),
        "tokens": [[fields[0] for _, fields in sentence] for sentence in sentences],
    }
    for name, place in _places(file, sentences, width).items():
        columns[name] = [[_tag(file, line, place) for line in sentence] for sentence in sentences]
    read = table(columns, lambda index: f"sentence {index + 1}", file.origin)
    tags = (tag for sentence in columns["prediction"] if isinstance(sentence, list) for tag in sentence)
    of_spans = all(_TAG.fullmatch(tag) for tag in tags)
    return replace(read, identity=("tokens",), statistics=("span_f1" if of_spans else "token_accuracy",))


def _sentences(file: SourceFile) -> Iterator[list[_Line]]:
    # Not splitlines(), which would also split at characters that a token may contain.
    lines = enumerate(decoded(file.path.read_bytes(), file.origin).split("\n"), start=1)
    fields = ((number, _fields(line)) for number, line in lines)
    width = 0
    for is_blank, group in groupby(fields, lambda line: not line[1]):
        sentence = [] if is_blank else [line for line in group if not _is_aside(line[1])]
        for number, found in sentence:
            width = width or len(found)
            if len(found) != width or width < 2:
                raise SourceError(
                    f"`{file.origin}`, line {number}: {len(found)} columns, where the first token has {width}"
                    + (", too few for a tag" if width < 2 else ""),
                    hint="a line has a token and its tags, separated by tabs or spaces; a blank line ends a"
                    " sentence.",
                )
        if sentence:
            yield sentence


def _fields(line: str) -> list[str]:
    line = line.rstrip("\r")
    if not line.strip(" \t"):
        return []
    return line.split("\t") if "\t" in line else re.split(" +", line.strip(" "))


def _is_aside(fields: list[str]) -> bool:
    """Whether a line is not a token: the start of a document, or a comment such as `# id 7`."""
    return fields[0] == _START or (fields[0].startswith("#") and not _TAG.fullmatch(fields[-1]))


def _places(file: SourceFile, sentences: list[list[_Line]], width: int) -> dict[str, int]:
    if file.part is None:
        types = [_types(sentences, place) for place in (width - 2, width - 1)]
        if width > 2 and types[0] & types[1]:
            raise SourceError(
                f"`{file.origin}` has tags of the same types in columns {width - 1} and {width}"
                f" (such as `{min(types[0] & types[1])}`)",
                hint=f"`{file.origin}::{width - 1},{width}` reads labels from column {width - 1} and"
                f" predictions from column {width}; `{file.origin}::{width}` reads"
                " predictions alone, for labels from `--labels FILE`.",
            )
        return {"prediction": width - 1}
    chosen = file.part.split(",")
    places = [int(place) - 1 for place in chosen if re.fullmatch(r"[0-9]{1,3}", place)]
    if len(places) != len(chosen) or len(places) > 2 or not all(0 < place < width for place in places):
        raise SourceError(
            f"`{file.origin}::{file.part}` does not select one or two columns of tags",
            hint=f"`::{width}` reads predictions from column {width}, `::{width - 1},{width}` also labels,"
            f" from the column before it; there are {width} columns, and the first holds the tokens.",
        )
    return dict(zip(("prediction", "label"), reversed(places), strict=False))


def _types(sentences: list[list[_Line]], place: int) -> set[str]:
    tags = {fields[place] for sentence in sentences for _, fields in sentence}
    return {tag.partition("-")[2] for tag in tags if _TAG.fullmatch(tag)} - {""}


def _tag(file: SourceFile, line: _Line, place: int) -> str:
    number, fields = line
    if not _TAG.fullmatch(fields[place]):
        raise SourceError(
            f"`{file.origin}`, line {number}: {fields[place]!r} in column {place + 1} is not a tag",
            hint="tags are `O`, and `B-` or `I-` followed by a type.",
        )
    return fields[place]


def _recognises(file: SourceFile) -> bool:
    if b"\0" in file.head or file.is_json:
        return False
    lines = file.head.decode("utf-8-sig", errors="replace").split("\n")
    if len(file.head) == 2**16:
        lines = lines[:-1]  # the last line may be truncated
    # The first line decides for most files, so the fields of others are split only when needed.
    of_lines = (fields for fields in map(_fields, lines) if fields and not _is_aside(fields))
    first = next(of_lines, None)
    if first is None or not _is_tagged(first):
        return False
    tokens = [first, *of_lines]
    has_sentences = any(not line.strip() for line in "\n".join(lines).strip().split("\n"))
    if not has_sentences and len(tokens) < _FEW and {fields[-1] for fields in tokens} == {"O"}:
        return False  # perhaps a table with a column of this letter
    # The reader reports the few lines that are not in the format.
    return sum(map(_is_tagged, tokens)) >= 0.9 * len(tokens)


def _is_tagged(fields: list[str]) -> bool:
    return len(fields) > 1 and _TAG.fullmatch(fields[-1]) is not None


CONLL = Source("conll", "CoNLL's tagged tokens", _recognises, read_conll, part="column")
