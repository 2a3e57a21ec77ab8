"""Logs of Inspect (UK AI Security Institute), as JSON or as ``.eval`` archives."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from trackperm.errors import MissingDependencyError, SourceError
from trackperm.messages import amount, printable
from trackperm.tables.expansion import Expansion
from trackperm.tables.json_values import member, member_names, parsed, table
from trackperm.tables.source import BROKEN_ARCHIVE, Source, SourceFile, chosen_part, decoded
from trackperm.tables.table import ExampleTable

_HEADER, _START = "header.json", "_journal/start.json"
_ATTACHMENT = "attachment://"
_ENCRYPTED = 1  # flag of a member of an archive
_LONGEST_MESSAGE = 120
_AGAIN = "`inspect eval-retry LOG` runs what failed again"
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def read_inspect_log(file: SourceFile) -> ExampleTable:
    """Read the samples of a log: ``id``, ``epoch``, ``prediction``, ``label``, and the values of scorers.

    With one scorer, chosen or the only one, its values are the column ``score``. Otherwise each scorer has a
    column, and there is a ``prediction`` if all scorers extracted the same answer.

    Scores are converted as by Inspect's ``value_to_float`` (C 1, I 0, P 0.5, N 0), except that other text is
    refused and not 0. A scorer with several values has a part ``scorer/value`` for each. ``input_hash`` is
    the SHA-256 of the input, in which chat messages count by role and content; pairing checks it. A sample
    that ended in an error has no answer and no scores, also if Inspect scored it (``score_on_error``). Raise
    SourceError if samples or the chosen scorer are missing, or a value is not a score, and
    MissingDependencyError if the archive is compressed with Zstandard and no library that reads it is
    installed.
    """
    header, samples = _archive(file) if file.members else (file.document, file.document.get("samples"))
    claimed = member(header, "results", "total_samples")
    if not isinstance(samples, list) or not samples:
        raise SourceError(
            f"`{file.origin}` is an Inspect log without samples"
            + (f", although its header claims {claimed}" if claimed else ""),
            hint="was it written with `--no-log-samples`, or reduced to its header?",
        )
    scores = [_scores(sample, index, file.origin) for index, sample in enumerate(samples)]
    scorers = member_names(scores, file.origin)
    failure = "; ".join(_failures(header, samples))
    if not scorers:
        raise SourceError(
            f"`{file.origin}` has no scores: {failure or 'the status of its run is `success`'}",
            hint=f"{_AGAIN}." if failure else "`inspect score` adds them.",
        )
    chosen = scorers if file.part is None else [chosen_part(file, scorers, "scorer")]
    answers = _answers(scores, chosen)
    columns = {
        "id": [sample["id"] for sample in samples],
        "epoch": [sample.get("epoch", 1) for sample in samples],
        **({} if answers is None else {"prediction": answers}),
        "label": _targets(samples),
        "input_hash": [_input_hash(sample) for sample in samples],
    }
    metrics = {name: f"score.{name}" if name in columns else name for name in chosen}
    metrics = {chosen[0]: "score"} if len(chosen) == 1 else metrics
    for scorer, column in metrics.items():
        values = [found.get(scorer, (None, None))[0] for found in scores]
        columns[column] = [
            _score(value, scorer, sample, file.origin) for value, sample in zip(values, samples, strict=True)
        ]
    facts = {
        "task": member(header, "eval", "task"),
        "dataset": member(header, "eval", "dataset", "name"),
        "scorer": ", ".join(chosen),
    }
    return replace(
        table(columns, lambda index: f"sample {index}", file.origin),
        identity=("input_hash",),
        facts={name: str(fact) for name, fact in facts.items() if fact is not None},
        notes=tuple(_notes(failure, len(samples), claimed)),
        metrics=metrics,
    )


def _answers(scores: list[dict[str, tuple[Any, Any]]], scorers: list[str]) -> list[Any] | None:
    """Return the answer that scorers extracted from every sample; None if their answers differ."""
    each = [[found.get(scorer, (None, None))[1] for scorer in scorers] for found in scores]
    return [answers[0] for answers in each] if all(a == row[0] for row in each for a in row) else None


def _failures(header: Mapping[str, Any], samples: list[Any]) -> list[str]:
    """Say that the run failed, and how many of its samples did, with the first message of each."""
    found = []
    status, error = header.get("status"), _message(header.get("error"))
    if status != "success":
        found.append(f"the run did not succeed: its status is `{status}`" + (f" ({error})" if error else ""))
    if failed := [sample for sample in samples if sample.get("error")]:
        first = f"{failed[0]['id']!r}, {_message(failed[0]['error']) or 'without a message'}"
        n = f"{len(failed):,} of {amount(len(samples), 'sample')}"
        have = "has" if len(failed) == 1 else "have"
        found.append(f"{n} ended in an error and {have} no score (first: {first})")
    return found


def _message(error: object) -> str:
    """Return the first line of the message of an error, shortened; empty if there is none."""
    said = printable(str(member(error, "message") or "").strip().partition("\n")[0])
    return said if len(said) <= _LONGEST_MESSAGE else f"{said[: _LONGEST_MESSAGE - 1]}…"


def _notes(failure: str, n_samples: int, claimed: object) -> list[str]:
    notes = [f"look: {failure}; {_AGAIN}"] if failure else []
    if isinstance(claimed, int) and claimed != n_samples:
        notes.append(f"the header claims {claimed} samples, but the log has {n_samples}")
    return notes


def _archive(file: SourceFile) -> tuple[dict[str, Any], list[Any]]:
    with suppress(ImportError):
        import zipfile_zstd  # noqa: F401  # adds Zstandard to `zipfile`, which Python has from 3.14
    try:
        with zipfile.ZipFile(file.path) as archive:
            names = dict.fromkeys(archive.namelist())
            head = _HEADER if _HEADER in names else _START
            read = [head, *(name for name in names if name.startswith("samples/"))]
            limit = Expansion.of(file.origin)
            limit.require(sum(archive.getinfo(name).file_size for name in read))
            header, *samples = (_json(archive, name, limit) for name in read)
    except NotImplementedError as error:
        raise MissingDependencyError(
            f"`{file.origin}` is compressed with Zstandard: {error}", hint="pip install 'trackperm[inspect]'"
        ) from error
    except SourceError:
        raise
    except Exception as error:  # each compression has its own library and errors
        if any(entry.flag_bits & _ENCRYPTED for entry in _entries(file)):
            raise SourceError(
                f"`{file.origin}` is an encrypted archive", hint="decrypt it; Inspect does not encrypt."
            ) from error
        raise SourceError(
            f"`{file.origin}` is a damaged archive: {error}", hint="was it copied completely?"
        ) from error
    if not isinstance(header, dict):
        raise SourceError(f"`{file.origin}`: the header is not a JSON object")
    return {"status": "started", **header}, samples


def _entries(file: SourceFile) -> list[zipfile.ZipInfo]:
    try:
        with zipfile.ZipFile(file.path) as archive:
            return archive.infolist()
    except BROKEN_ARCHIVE:
        return []


def _json(archive: zipfile.ZipFile, name: str, limit: Expansion) -> Any:
    text = decoded(limit.member(archive, name), f"{limit.origin}, {name}")
    try:
        return parsed(text)
    except ValueError as error:
        raise SourceError(f"`{limit.origin}`, `{name}`: not JSON: {error}") from error


def _scores(sample: object, index: int, origin: str) -> dict[str, tuple[Any, Any]]:
    """Return value and answer by scorer, or by ``scorer/value`` if a scorer has several values.

    A sample that ended in an error has none: what a scorer said of it describes the error, not the model.
    """
    if not isinstance(sample, dict) or "id" not in sample or "input" not in sample:
        raise SourceError(
            f"`{origin}`, sample {index} is not an object with `id` and `input`", hint="is it an Inspect log?"
        )
    given = {} if sample.get("error") else sample.get("scores") or {}
    found: dict[str, tuple[Any, Any]] = {}
    for scorer, score in given.items() if isinstance(given, dict) else ():
        if not isinstance(score, dict) or "value" not in score:
            raise SourceError(f"`{origin}`, sample {sample['id']!r}: the score of `{scorer}` has no `value`")
        value, answer = score["value"], score.get("answer")
        if isinstance(value, dict):
            found |= {f"{scorer}/{name}": (part, answer) for name, part in value.items()}
        else:
            found[scorer] = value, answer
    return found


def _score(value: object, scorer: str, sample: Mapping[str, Any], origin: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool | int | float):
        try:
            return float(value)
        except OverflowError:
            raise SourceError(
                f"`{origin}`, sample {sample['id']!r}: the value of scorer `{scorer}` exceeds the range of"
                " decimals"
            ) from None
    if isinstance(value, str):
        if value in _GRADES or value.lower() in ("yes", "true", "no", "false"):
            return _GRADES.get(value, _GRADES.get(value.lower()))
        with suppress(ValueError):
            return float(value)
    raise SourceError(
        f"`{origin}`, sample {sample['id']!r}: the value {value!r} of scorer `{scorer}` is not a score",
        hint="scores are numbers, booleans, or C, I, P and N.",
    )


def _targets(samples: list[Any]) -> list[Any]:
    """Return the targets, all as lists if one of them is a list."""
    targets = [sample.get("target") for sample in samples]
    if any(isinstance(target, list) for target in targets):
        return [[target] if isinstance(target, str) else target for target in targets]
    return targets


def _input_hash(sample: Mapping[str, Any]) -> str:
    given = sample["input"]
    if isinstance(given, list):  # messages have ids that are new in every run
        parts = [[m.get("role"), m.get("content")] if isinstance(m, dict) else m for m in given]
        given = json.dumps(parts, sort_keys=True)
    text = str(given)
    attachments = sample.get("attachments")
    if text.startswith(_ATTACHMENT) and isinstance(attachments, dict):
        text = str(attachments.get(text.removeprefix(_ATTACHMENT), text))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _recognises(file: SourceFile) -> bool:
    if file.members:
        return bool(file.members & {_HEADER, _START})
    document = file.document
    return (
        isinstance(document, dict)
        and {"status", "eval", "plan"} <= document.keys()
        and member(document, "eval", "task") is not None
    )


INSPECT_LOG = Source("inspect", "Inspect log", _recognises, read_inspect_log, part="scorer")
