"""Reports of sclite (NIST's SCTK) about every utterance: ``sgml`` and ``pra``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from trackperm.errors import SourceError
from trackperm.tables.json_values import table
from trackperm.tables.source import Source, SourceFile, chosen_part
from trackperm.tables.table import ExampleTable

_TAG = re.compile(r'<(/?[A-Z]+)((?:\s+\w+="[^"]*")*)\s*>')  # a value may contain `>`
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_WORD = r'("(?:[^"\\]|\\.)*")?'
_ITEM = re.compile(rf"([A-Z]),{_WORD},{_WORD}(?:,[^:]*)?")
_SCORES = re.compile(r"Scores: \(#C #S #D #I\)" + 4 * r" ([0-9]{1,9})" + r"\s*")
_SCORING = ("frag_corr", "opt_del", "weight_ali")
_TIMES = ("file", "channel", "R_T1", "R_T2")
_HINT = "sclite writes it with `-o sgml` or `-o pra`; pass its file unchanged."


class _Utterance(NamedTuple):
    id: str
    counts: tuple[int, int, int, int]  # correct, substitutions, deletions, insertions
    reference: str
    hypothesis: str
    segment: str | None = None  # of the audio, where the transcript has times


def read_sgml(file: SourceFile) -> ExampleTable:
    """Read the alignment of every utterance in a report of sclite's `-o sgml`.

    Its columns are ``id``, ``correct``, ``substitutions``, ``deletions``, ``insertions``, ``errors`` (the sum
    of these three), ``words`` (of the reference: correct, substituted and deleted), ``reference`` and
    ``hypothesis``. Words that sclite counts as correct are correct, such as an optional word that is missing.
    Of alternative references the file contains the chosen one; the texts are for reading. Where the
    transcript has times, ``segment`` (recording, channel and times) has to agree between runs. Raise
    SourceError if the file is truncated, an alignment has items other than C, S, D and I, an utterance
    repeats, or there are several systems and none was chosen.
    """
    systems: dict[str, dict[str, str]] = {}
    utterances: dict[str, list[_Utterance]] = {}
    text, title, open_tags = file.text, "", list[str]()
    line = place = 0
    for tag in _TAG.finditer(text):
        name, attributes = tag[1], dict(_ATTRIBUTE.findall(tag[2]))
        if name.startswith("/"):
            if not open_tags or open_tags.pop() != name[1:]:
                raise _broken(file, text, tag.start(), f"<{name}> closes an element that is not open")
            continue
        open_tags.append(name)
        if name == "SYSTEM":
            title = attributes.get("title", "")
            if title in systems:
                raise _broken(file, text, tag.start(), f"there are two systems `{title}`")
            systems[title], utterances[title] = attributes, []
        elif name == "PATH":
            end = text.find("</PATH>", tag.end())
            if end < 0 or not systems or "id" not in attributes:
                raise _broken(file, text, tag.start(), "a PATH without its end, its id or its system")
            line, place = line + text.count("\n", place, tag.start()), tag.start()
            where = f"`{file.origin}`, line {1 + line}, utterance `{attributes['id']}`"
            aligned = _aligned(attributes["id"], text[tag.end() : end].strip(), where)
            utterances[title].append(aligned._replace(segment=_segment(attributes)))
    if open_tags:
        raise SourceError(f"`{file.origin}` is truncated: <{open_tags[-1]}> is not closed", hint=_HINT)
    chosen = chosen_part(file, list(systems), "system")
    scoring = ", ".join(f"{name}={systems[chosen][name]}" for name in _SCORING if name in systems[chosen])
    facts = {"scoring": scoring, "reference": _base(systems[chosen].get("ref_fname", ""))}
    read = _table(utterances[chosen], file)
    return replace(read, facts=facts, identity=("segment",) if "segment" in read.columns else ())


def read_pra(file: SourceFile) -> ExampleTable:
    """Read the scores of every utterance in a report of sclite's `-o pra`; columns as in :func:`read_sgml`.

    The texts are left out, as that report breaks them into lines and capitalises errors. Raise SourceError if
    the file is truncated, or an utterance repeats.
    """
    utterances: list[_Utterance] = []
    waiting = ""
    for number, line in enumerate(file.text.splitlines(), start=1):
        where = f"`{file.origin}`, line {number}"
        match = re.fullmatch(r"id: \((.*)\)\s*", line)
        scores = _SCORES.fullmatch(line)
        if (match and waiting) or (line.startswith("Scores:") and not (scores and waiting)):
            raise SourceError(f"{where}: utterances and their scores do not alternate", hint=_HINT)
        if match:
            waiting = match[1]
        elif scores:
            correct, substituted, deleted, inserted = (int(count) for count in scores.groups())
            utterances.append(_Utterance(waiting, (correct, substituted, deleted, inserted), "", ""))
            waiting = ""
    if waiting:
        raise SourceError(f"`{file.origin}` is truncated: utterance `{waiting}` has no scores", hint=_HINT)
    read = _table(utterances, file)
    return replace(read, data=read.frame.drop("reference", "hypothesis"))


def _aligned(identifier: str, alignment: str, where: str) -> _Utterance:
    counts: Counter[str] = Counter()
    reference, hypothesis = [], []
    position = 0
    while position < len(alignment):
        item = _ITEM.match(alignment, position)
        if item is None or item[1] not in "CSDI" or alignment[item.end() : item.end() + 1] not in ("", ":"):
            raise SourceError(
                f"{where}: `{alignment[position : position + 40]}` is not an item C, S, D or I", hint=_HINT
            )
        counts[item[1]] += 1
        reference.append(_text(item[2]))
        hypothesis.append(_text(item[3]))
        position = item.end() + 1
    words = (" ".join(filter(None, side)) for side in (reference, hypothesis))
    correct, substituted, deleted, inserted = (counts[kind] for kind in "CSDI")
    return _Utterance(identifier.strip("()"), (correct, substituted, deleted, inserted), *words)


def _segment(attributes: Mapping[str, str]) -> str | None:
    times = [attributes[name] for name in _TIMES if name in attributes]
    return " ".join(times) if len(times) == len(_TIMES) else None


def _base(name: str) -> str:
    return re.split(r"[/\\]", name)[-1]


def _text(quoted: str | None) -> str:
    """Return a word without its quotes, and without the tags after a semicolon."""
    word = re.match(r"(?:[^;\\]|\\.)*", (quoted or '""')[1:-1])
    return re.sub(r"\\(.)", r"\1", word[0]) if word else ""


def _table(utterances: list[_Utterance], file: SourceFile) -> ExampleTable:
    if not utterances:
        raise SourceError(f"`{file.origin}` is a report of sclite without an utterance", hint=_HINT)
    twice, times = Counter(utterance.id for utterance in utterances).most_common(1)[0]
    if times > 1:
        raise SourceError(
            f"`{file.origin}` has {times} utterances `{twice}`",
            hint="pass the report of one system on one set of utterances.",
        )
    names = ("correct", "substitutions", "deletions", "insertions")
    columns: dict[str, list[str] | list[int]] = {"id": [utterance.id for utterance in utterances]}
    for place, name in enumerate(names):
        columns[name] = [utterance.counts[place] for utterance in utterances]
    columns["errors"] = [sum(utterance.counts[1:]) for utterance in utterances]
    columns["words"] = [sum(utterance.counts[:3]) for utterance in utterances]
    columns["reference"] = [utterance.reference for utterance in utterances]
    columns["hypothesis"] = [utterance.hypothesis for utterance in utterances]
    if all(utterance.segment for utterance in utterances):
        columns["segment"] = [utterance.segment or "" for utterance in utterances]
    read = table(columns, lambda index: f"utterance {utterances[index].id}", file.origin)
    return replace(read, statistics=("pooled_error_rate",))


def _broken(file: SourceFile, text: str, position: int, problem: str) -> SourceError:
    return SourceError(f"`{file.origin}`, line {1 + text.count(chr(10), 0, position)}: {problem}", hint=_HINT)


def _is_sgml(file: SourceFile) -> bool:
    tag = _TAG.match(file.first_line.strip())
    return tag is not None and tag[1] == "SYSTEM" and "hyp_fname" in tag[2]


def _is_pra(file: SourceFile) -> bool:
    return b"Scores:" in file.head and any(_SCORES.fullmatch(line) for line in file.lines)


SCLITE = Source("sclite", "sclite's sgml report", _is_sgml, read_sgml, part="system")
SCLITE_PRA = Source("sclite-pra", "sclite's pra report", _is_pra, read_pra)
