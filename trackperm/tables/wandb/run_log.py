"""Transaction log of a W&B run, ``run-<id>.wandb``, read without wandb and without protobuf.

The file has LevelDB's framing: after seven bytes that identify it, blocks of 32 KiB contain fragments of
records, each with a checksum. A record is a protobuf message; only the few fields about the run, its tables
and its artifacts are decoded. The writer flushes the file from time to time, so the log of a run that was
killed or is still running can end anywhere.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trackperm.errors import SourceError
from trackperm.ordinary_files import HINT, special_kind
from trackperm.tables.expansion import Expansion
from trackperm.tables.json_values import parsed

MAGIC = struct.pack("<4sH", b":W&B", 0xBEE1)

_BLOCK = 32768
_HEADER = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4

# Numbers of fields in wandb's `wandb_internal.proto`.
_HISTORY, _SUMMARY, _CONFIG, _ARTIFACT, _RUN, _EXIT = 2, 3, 5, 8, 17, 18
_RUN_NOTES, _RUN_TAGS = 9, 10
_ITEM_KEY, _ITEM_NESTED_KEY, _ITEM_BOOLEAN, _ITEM_INTEGER, _ITEM_NUMBER = 1, 2, 4, 5, 6
_ITEM_TEXT, _ITEM_JSON, _ITEM_VALUE_JSON = 7, 8, 16
_DEEPEST = 100  # parts of a key, which bounds the recursion
_LONGEST = 10_000  # characters of a key, with which all keys inside it begin


@dataclass(frozen=True)
class ManifestEntry:
    """A file of an artifact: its path there, its digest, and its place when it was logged."""

    path: str
    digest: str = ""
    size: int = 0
    ref: str = ""
    local_path: str = ""


@dataclass(frozen=True)
class LoggedArtifact:
    """One version of an artifact, as the run logged it.

    Attributes
    ----------
    name, type : str
        Name and type of the artifact.
    digest : str
        Digest of the contents, the same offline and on a server.
    client_id : str
        Id by which history and summary refer to it.
    is_input : bool
        Whether the run used it as input.
    entries : mapping of str to ManifestEntry
        Files by path.
    manifest_file : str
        File that contains the entries instead, if there are very many.
    """

    name: str
    type: str
    digest: str
    client_id: str
    is_input: bool
    entries: Mapping[str, ManifestEntry]
    manifest_file: str = ""


@dataclass
class RunLog:
    """Content of the log of a run.

    Attributes
    ----------
    run_id, name, entity, project, job_type, group, notes : str
        Arguments of :func:`wandb.init` or its choices; empty where there are none.
    tags : tuple of str
        Tags in the order of the run.
    config : dict
        Config, with wandb's own entries under ``_wandb``.
    media : dict of str to list of dict
        All values with a ``_type``, such as tables, in history or summary, in the order of the log, by key;
        dots join the keys of nested values.
    summary : dict
        Final summary, if it was requested.
    artifacts : list of LoggedArtifact
        Artifacts in the order of the log.
    exit_code : int or None
        Exit code; None where the run has not ended.
    is_whole : bool
        Whether the last record is complete.
    """

    run_id: str = ""
    name: str = ""
    entity: str = ""
    project: str = ""
    job_type: str = ""
    group: str = ""
    notes: str = ""
    tags: tuple[str, ...] = ()
    config: dict[str, Any] = field(default_factory=dict)
    media: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    artifacts: list[LoggedArtifact] = field(default_factory=list)
    exit_code: int | None = None
    is_whole: bool = True


def read_run_log(path: Path, origin: str, *, with_summary: bool = False) -> RunLog:
    """Read the log of a run.

    The whole summary is read only `with_summary`, as a long training writes it at every step.
    Raise SourceError if the file is not such a log or is damaged.
    """
    log = RunLog()
    if special := special_kind(path):
        raise SourceError(f"`{path}` is {special}; expected an ordinary file", hint=HINT)
    data = path.read_bytes()
    if data[: len(MAGIC)] != MAGIC or data[len(MAGIC) : len(MAGIC) + 1] != b"\0":
        raise SourceError(
            f"`{origin}` is not the log of a W&B run in a known version",
            hint="wandb writes `run-<id>.wandb` to the folder of the run.",
        )
    try:
        for record in _records(data, log):
            _take(record, log, with_summary=with_summary)
    except (ValueError, struct.error, RecursionError) as error:
        raise SourceError(
            f"`{origin}` is damaged: {error}", hint="was it copied completely, and in binary mode?"
        ) from error
    return log


def media_entries(items: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the values with a ``_type`` in nested objects, by their keys joined with dots.

    Raise SourceError if the key of an object, with which the keys of all values in it begin, is too long.
    """
    if len(prefix) > _LONGEST:
        raise SourceError(f"a key has {len(prefix):,} characters; expected at most {_LONGEST:,}")
    for key, value in items.items():
        if isinstance(value, dict) and "_type" in value:
            yield prefix + key, value
        elif isinstance(value, dict):
            yield from media_entries(value, f"{prefix}{key}.")


def external_entries(text: bytes) -> dict[str, ManifestEntry]:
    """Read the entries of an artifact with very many files, which wandb writes to a separate file.

    Raise ValueError if it is not gzipped JSON Lines, and OSError if it is truncated.
    """
    inflated = b"".join(Expansion.of("manifest of an artifact").inflated(io.BytesIO(text)))
    rows = (parsed(line.decode()) for line in inflated.splitlines() if line.strip())
    names = ("path", "digest", "size", "ref", "local_path")
    return {row["path"]: ManifestEntry(**{k: row[k] for k in names if row.get(k)}) for row in rows}


def _records(data: bytes, log: RunLog) -> Iterator[bytes]:
    """Yield complete records; a record that is truncated at the end of the file is left out."""
    position, parts = len(MAGIC) + 1, list[bytes]()
    while True:
        left = _BLOCK - position % _BLOCK
        if left < _HEADER.size:
            position += left
            continue
        if position + _HEADER.size > len(data):
            break
        checksum, length, kind = _HEADER.unpack_from(data, position)
        start, end = position + _HEADER.size, position + _HEADER.size + length
        if end > len(data) or not (checksum or length or kind):  # truncated, or zeros not yet overwritten
            break
        fragment = data[start:end]
        if zlib.crc32(fragment, zlib.crc32(bytes([kind]))) != checksum:
            raise ValueError(f"the checksum at byte {position} is wrong")
        if (kind in (_FULL, _FIRST)) == bool(parts) or not _FULL <= kind <= _LAST:
            raise ValueError(f"a fragment of type {kind} at byte {position} is out of order")
        parts.append(fragment)
        position = end
        if kind in (_FULL, _LAST):
            yield b"".join(parts)
            parts.clear()
    log.is_whole = not parts and position >= len(data)


def _take(record: bytes, log: RunLog, *, with_summary: bool) -> None:
    for number, value in _fields(record):
        if not isinstance(value, bytes):
            continue
        if with_summary and number == _SUMMARY:
            _merge(log.summary, _items(value, 1))
            _remove(log.summary, _items(value, 2))
        if number in (_HISTORY, _SUMMARY):
            if b"_type" in value:  # most records of a long history contain only numbers
                for key, entry in media_entries(_items(value, 1)):
                    log.media.setdefault(key, []).append(entry)
        elif number == _CONFIG:
            _merge(log.config, _items(value, 1))
        elif number == _ARTIFACT:
            log.artifacts.append(_artifact(value))
        elif number == _RUN:
            _take_run(value, log)
        elif number == _EXIT:
            log.exit_code = _integer(_message(value), 1)


def _take_run(data: bytes, log: RunLog) -> None:
    message = _message(data)
    log.run_id, log.entity, log.project = (_text(message, number) for number in (1, 2, 3))
    log.group, log.job_type, log.name = (_text(message, number) for number in (6, 7, 8))
    log.notes = _text(message, _RUN_NOTES)
    log.tags = tuple(map(_decoded, message.get(_RUN_TAGS, ())))
    for config in message.get(4, ()):
        _merge(log.config, _items(config, 1))


def _artifact(data: bytes) -> LoggedArtifact:
    message = _message(data)
    manifest = _message(message[12][-1]) if 12 in message else {}
    entries = [_entry(entry) for entry in manifest.get(4, ())]
    return LoggedArtifact(
        name=_text(message, 5),
        type=_text(message, 4),
        digest=_text(message, 6),
        client_id=_text(message, 15),
        is_input=bool(_integer(message, 10)),
        entries={entry.path: entry for entry in entries},
        manifest_file=_text(manifest, 5),
    )


def _entry(data: bytes) -> ManifestEntry:
    message = _message(data)
    path, digest, ref, local_path = (_text(message, number) for number in (1, 2, 3, 6))
    return ManifestEntry(path, digest, _integer(message, 4), ref, local_path)


def _items(data: bytes, number: int) -> dict[str, Any]:
    """Return the items of a record of history, summary or config; keys of several parts become objects."""
    result: dict[str, Any] = {}
    for item in _message(data).get(number, ()):
        message = _message(item)
        path = [*map(_decoded, message.get(_ITEM_NESTED_KEY, ()))] or [_text(message, _ITEM_KEY)]
        if len(path) > _DEEPEST:
            raise ValueError(f"a key has {len(path):,} parts")
        nested = result
        for part in path[:-1]:
            child = nested.get(part)
            nested[part] = child = child if isinstance(child, dict) else {}
            nested = child
        nested[path[-1]] = _value(message)
    return result


def _value(message: Mapping[int, list[Any]]) -> Any:
    for written in (_ITEM_VALUE_JSON, _ITEM_JSON):
        if written in message:
            return parsed(_text(message, written))
    if _ITEM_TEXT in message:
        return _text(message, _ITEM_TEXT)
    if _ITEM_BOOLEAN in message:
        return bool(_integer(message, _ITEM_BOOLEAN))
    if _ITEM_INTEGER in message:  # a sint64 has its sign in the lowest bit
        zigzag = _integer(message, _ITEM_INTEGER)
        return (zigzag >> 1) ^ -(zigzag & 1)
    if _ITEM_NUMBER in message:
        number = message[_ITEM_NUMBER][-1]
        if not isinstance(number, bytes):
            raise ValueError("a field has an integer; expected a decimal")
        return struct.unpack("<d", number)[0]
    return None


def _merge(target: dict[str, Any], update: Mapping[str, Any]) -> None:
    for key, value in update.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = value


def _remove(target: dict[str, Any], removed: Mapping[str, Any]) -> None:
    for key, value in removed.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            _remove(target[key], value)
        else:
            target.pop(key, None)


def _text(message: Mapping[int, list[Any]], number: int) -> str:
    value = message[number][-1] if number in message else b""
    if not isinstance(value, bytes):
        raise ValueError(f"field {number} is not text")
    return value.decode()


def _decoded(value: object) -> str:
    if not isinstance(value, bytes):
        raise ValueError("a field has a number; expected text")
    return value.decode()


def _integer(message: Mapping[int, list[Any]], number: int) -> int:
    value = message[number][-1] if number in message else 0
    if not isinstance(value, int):
        raise ValueError(f"field {number} is not an integer")
    return value


def _message(data: object) -> dict[int, list[Any]]:
    if not isinstance(data, bytes):
        raise ValueError("a field has a number; expected a message")
    message: dict[int, list[Any]] = {}
    for number, value in _fields(data):
        message.setdefault(number, []).append(value)
    return message


def _fields(data: bytes) -> Iterable[tuple[int, Any]]:
    """Yield the fields of a protobuf message: integers of varints, bytes of all others."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire == 2:
            length, position = _varint(data, position)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ValueError(f"field {number} has the unknown wire type {wire}")
        if position + length > len(data):
            raise ValueError(f"field {number} is truncated")
        yield number, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position == len(data):
            raise ValueError("an integer is truncated")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise ValueError("an integer has more than 64 bits")
