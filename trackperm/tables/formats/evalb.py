"""Output of evalb (Sekine and Collins): bracket counts of every sentence, then their totals."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from trackperm.errors import SourceError
from trackperm.tables.json_values import table
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable

_HEADER = ["ID", "Len.", "Stat.", "Recal"]
_RULE = re.compile(r"\s*={10,}\s*")
_MESSAGE = re.compile(r"\s*\d+ : \D")  # lines of standard error, which is often in the same file
_COUNTS = {"matched": 5, "gold": 6, "test": 7, "crossing": 8, "words": 9, "correct_tags": 10}
_STATED = {
    "Number of sentence": (0, 1, 2),
    "Number of Error sentence": (1,),
    "Number of Skip  sentence": (2,),
    "Number of Valid sentence": (0,),
}
_LONGEST = 18  # characters of a field, which an int64 holds
_HINT = "pass the whole output of one run of evalb, as in `evalb -p COLLINS.prm GOLD TEST > FILE`."

_Row = tuple[int, ...]  # the fields of a sentence, with -1 in place of rates


def read_evalb(file: SourceFile) -> ExampleTable:
    """Read the counts of every sentence.

    Its columns are ``id``, ``length``, ``status``, ``matched``, ``gold``, ``test``, ``crossing``, ``words``
    and ``correct_tags``. A sentence with an error (status 1) or skipped (status 2) has nulls as counts, as
    evalb excludes it from its totals. evalb numbers sentences from 1, which does not identify them, so
    ``words`` and ``gold``, which describe the reference, have to agree where both runs have them. Raise
    SourceError if the table is truncated, a row does not have evalb's twelve columns, or the rows do not add
    up to the totals below them.
    """
    lines = iter(enumerate(file.text.splitlines(), start=1))
    if not any(_RULE.fullmatch(line) for _, line in lines):
        raise _cut_off(file, "the rule that begins its table")
    rows = []
    for number, line in lines:
        if _RULE.fullmatch(line):
            break
        if line.strip() and not _MESSAGE.match(line):
            rows.append(_row(line, f"`{file.origin}`, line {number}"))
    else:
        raise _cut_off(file, "the rule that ends its table")
    if not rows:
        raise SourceError(f"`{file.origin}` is output of evalb without a sentence", hint=_HINT)
    _require_totals(rows, lines, file)
    columns: dict[str, list[int | None]] = {
        name: [row[place] for row in rows] for place, name in enumerate(("id", "length", "status"))
    }
    for name, place in _COUNTS.items():
        columns[name] = [None if row[2] else row[place] for row in rows]
    read = table(columns, lambda index: f"sentence {rows[index][0]}", file.origin)
    return replace(read, identity=("words", "gold"), notes=_notes(rows), statistics=("bracket_f1",))


def _row(line: str, where: str) -> _Row:
    fields = line.split()
    if len(fields) != 12:
        raise SourceError(f"{where}: {len(fields)} fields; expected evalb's 12: {line.strip()!r}", hint=_HINT)
    if max(map(len, fields)) > _LONGEST:
        raise SourceError(f"{where}: a field of {max(map(len, fields)):,} characters", hint=_HINT)
    try:
        row = tuple(-1 if place in (3, 4, 11) else int(field) for place, field in enumerate(fields))
    except ValueError as error:
        raise SourceError(f"{where}: {line.strip()!r} is not a row of counts", hint=_HINT) from error
    if row[2] not in (0, 1, 2):
        raise SourceError(f"{where}: status {row[2]}; expected 0, 1 (error) or 2 (skipped)")
    return row


def _require_totals(rows: list[_Row], rest: Iterator[tuple[int, str]], file: SourceFile) -> None:
    number, line = next(((number, line) for number, line in rest if line.strip()), (0, ""))
    fields = line.split()
    if len(fields) not in (3, 9):  # three fields if no sentence is valid
        raise _cut_off(file, "the totals below its table")
    # The total below `crossing` counts the sentences without crossing brackets, so it is not compared.
    stated = dict(zip(("words", "correct_tags"), fields[-3:-1], strict=True))
    if len(fields) == 9:
        stated |= zip(("matched", "gold", "test"), fields[2:5], strict=True)
    for name, total in stated.items():
        _require_same(name, sum(row[_COUNTS[name]] for row in rows if not row[2]), total, number, file)
    by_status = Counter(row[2] for row in rows)
    unseen = dict(_STATED)  # the first summary covers all sentences, the second the short ones
    for number, line in rest:
        name, _, total = (part.strip() for part in line.partition("="))
        if name in unseen:
            _require_same(name, sum(by_status[status] for status in unseen.pop(name)), total, number, file)


def _require_same(what: str, found: int, stated: str, number: int, file: SourceFile) -> None:
    if stated != str(found):
        raise SourceError(
            f"`{file.origin}`, line {number}: the total of `{what}` is {stated}, but its rows sum to {found}",
            hint=f"rows were lost or changed; {_HINT}",
        )


def _cut_off(file: SourceFile, lacking: str) -> SourceError:
    return SourceError(f"`{file.origin}` is output of evalb without {lacking}", hint=_HINT)


def _notes(rows: list[_Row]) -> tuple[str, ...]:
    left_out = [str(row[0]) for row in rows if row[2]]
    if not left_out:
        return ()
    some = ", ".join(left_out[:5]) + (", ..." if len(left_out) > 5 else "")
    return (
        f"{len(left_out):,} of {len(rows):,} sentences are errors or skipped, which evalb excludes from its"
        f" totals; they have no counts here (id {some})",
    )


def _recognises(file: SourceFile) -> bool:
    lines = (line for line in file.lines if line.strip() and not _MESSAGE.match(line))
    return any(line.split()[:4] == _HEADER for line in islice(lines, 2))


EVALB = Source("evalb", "evalb's table of sentences", _recognises, read_evalb)
