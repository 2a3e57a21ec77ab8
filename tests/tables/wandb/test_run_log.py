"""The reader of W&B's logs against wandb's own protobuf messages, and logs that break off or are damaged."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.processes import python
from support.wandb_offline_runs import OfflineRuns

from trackperm.errors import SourceError
from trackperm.tables.wandb.run_log import (
    ManifestEntry,
    RunLog,
    external_entries,
    media_entries,
    read_run_log,
)

BLOCK = 32768


def framed(records: Sequence[bytes]) -> bytes:
    """A log of records, written from the description of LevelDB's format."""
    log = b":W&B\xe1\xbe\x00"
    for record in records:
        offset, is_first = 0, True
        while is_first or offset < len(record):
            left = BLOCK - len(log) % BLOCK
            if left < 7:
                log += bytes(left)
                left = BLOCK
            part = record[offset : offset + left - 7]
            offset += len(part)
            kind = {(1, 1): 1, (1, 0): 2, (0, 0): 3, (0, 1): 4}[is_first, offset == len(record)]
            log += struct.pack("<IHB", zlib.crc32(bytes([kind]) + part), len(part), kind) + part
            is_first = False
    return log


def field(number: int, value: bytes | str | int) -> bytes:
    """One protobuf field: a varint, or bytes of any length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value: int) -> bytes:
    digits = b""
    while value > 0x7F:
        digits += bytes([value & 0x7F | 0x80])
        value >>= 7
    return digits + bytes([value])


def history(*items: bytes) -> bytes:
    return field(2, b"".join(field(1, item) for item in items))


def read(tmp_path: Path, content: bytes) -> RunLog:
    path = tmp_path / "run-x.wandb"
    path.write_bytes(content)
    return read_run_log(path, "run-x.wandb")


def log_of(runs: OfflineRuns, run_id: str) -> RunLog:
    return read_run_log(runs[run_id] / f"run-{run_id}.wandb", run_id)


@pytest.mark.extended
def test_who_the_run_is(offline_runs: OfflineRuns):
    log = log_of(offline_runs, "forest")
    assert (log.run_id, log.name, log.entity, log.project) == ("forest", "random forest", "team", "digits")
    assert (log.exit_code, log.is_whole) == (0, True)
    assert log.config["model"] == {"depth": 3}
    assert list(log.config["_wandb"]["visualize"]) == ["matrix"]
    earlier = log_of(offline_runs, "earlier")
    assert (earlier.job_type, earlier.group, earlier.name) == ("comparison", "trackperm", "")


def test_the_summary_is_what_was_updated_and_not_removed(tmp_path: Path):
    def item(*names: str, value: str | None = None) -> bytes:
        path = [field(1, names[0])] if len(names) == 1 else [field(2, name) for name in names]
        return b"".join([*path, *([] if value is None else [field(16, value)])])

    def summary(update: Sequence[bytes] = (), remove: Sequence[bytes] = ()) -> bytes:
        return field(
            3, b"".join([*(field(1, each) for each in update), *(field(2, each) for each in remove)])
        )

    log = tmp_path / "run-x.wandb"
    first = [item("f1/p_value", value="0.5"), item("a", "b", value="1"), item("a", "c", value='"x"')]
    second = summary([item("f1/p_value", value="0.25")], [item("a", "b"), item("gone"), item("a", "d")])
    log.write_bytes(
        framed([summary([*first, item("loss", value="2")]), second, summary(remove=[item("loss")])])
    )
    assert read_run_log(log, "x", with_summary=True).summary == {"f1/p_value": 0.25, "a": {"c": "x"}}
    assert read_run_log(log, "x").summary == {}


def test_notes_and_tags(tmp_path: Path):
    run = field(1, "x") + field(9, "**better**") + field(10, "trackperm") + field(10, "f1")
    log = read(tmp_path, framed([field(17, run)]))
    assert (log.notes, log.tags) == ("**better**", ("trackperm", "f1"))


@pytest.mark.extended
def test_against_wandbs_own_messages(offline_runs: OfflineRuns):
    """Every artifact and every table entry, as wandb's generated code decodes the same bytes."""
    for run_id in ("tables", "files"):
        path = offline_runs[run_id] / f"run-{run_id}.wandb"
        printed = python(f"""
import json
from wandb.proto.wandb_internal_pb2 import Record
from trackperm.tables.wandb.run_log import _records, RunLog, read_run_log
from pathlib import Path

def nested(items):
    row = {{}}
    for item in items:
        keys = list(item.nested_key) or [item.key]
        inner = row
        for key in keys[:-1]:
            inner = inner.setdefault(key, {{}})
        inner[keys[-1]] = json.loads(item.value_json)
    return row

def tables(row, prefix=()):
    if "_type" in row:
        yield ".".join(prefix), row
    else:
        for key, value in row.items():
            if isinstance(value, dict):
                yield from tables(value, (*prefix, key))

path = Path({str(path)!r})
media, artifacts = {{}}, []
for raw in _records(path.read_bytes(), RunLog()):
    record = Record.FromString(raw)
    for row in (nested(record.history.item), nested(record.summary.update)):
        for key, entry in tables(row):
            media.setdefault(key, []).append(entry)
    if record.HasField("artifact"):
        a = record.artifact
        entries = [(e.path, e.digest, e.size, e.ref, e.local_path) for e in a.manifest.contents]
        artifacts.append((a.name, a.type, a.digest, a.client_id, a.use_after_commit, entries))
log = read_run_log(path, "log")
assert log.media == media and len(media) + len(artifacts) > 1
ours = [
    (a.name, a.type, a.digest, a.client_id, a.is_input,
     [(e.path, e.digest, e.size, e.ref, e.local_path) for e in a.entries.values()])
    for a in log.artifacts
]
assert ours == artifacts
print("the same")
""")
        assert printed == "the same\n"


def test_every_way_in_which_a_value_is_written(tmp_path: Path):
    marker = field(1, "_type") + field(16, '"table-file"')
    values = {
        "none": field(3, 0),
        "true": field(4, 1),
        "false": field(4, 0),
        "negative": field(5, 5),  # sint64: -3
        "positive": field(5, 6),
        "large": field(5, 2**64 - 1),  # the smallest there is
        "number": varint(6 << 3 | 1) + struct.pack("<d", -0.25),
        "text": field(7, "ümlaut"),
        "json": field(8, "[1, null]"),
        "old": field(16, '{"a": NaN}'),
    }
    items = [field(2, "t") + field(2, key) + value for key, value in values.items()]
    log = read(tmp_path, framed([history(field(2, "t") + field(2, "_type") + field(7, "x"), *items)]))
    (found,) = log.media["t"]
    nan = found.pop("old")["a"]
    assert nan != nan
    assert found == {
        "_type": "x",
        "none": None,
        "true": True,
        "false": False,
        "negative": -3,
        "positive": 3,
        "large": -(2**63),
        "number": -0.25,
        "text": "ümlaut",
        "json": [1, None],
    }
    assert read(tmp_path, framed([history(marker)])).media == {}  # a plain value that is called so


@pytest.mark.parametrize(
    "length", [0, 1, BLOCK - 15, BLOCK - 14, BLOCK - 13, BLOCK, 3 * BLOCK, 10 * BLOCK + 5]
)
def test_records_that_go_over_blocks(tmp_path: Path, length: int):
    run = field(17, field(1, "abc") + field(9, "n" * length) + field(3, "project"))
    entry = history(field(1, "t") + field(8, '{"_type": "table-file"}'))
    log = read(tmp_path, framed([run, entry, run, entry]))
    assert (log.run_id, log.project, len(log.media["t"]), log.is_whole) == ("abc", "project", 2, True)


def test_logs_that_break_off_are_read_up_to_there(tmp_path: Path, offline_runs: OfflineRuns):
    whole = log_of(offline_runs, "files")
    content = (offline_runs["files"] / "run-files.wandb").read_bytes()
    n_artifacts = set()
    for end in (*range(7, 200), *range(200, len(content), 5)):
        log = read(tmp_path, content[:end])
        assert log.artifacts == whole.artifacts[: len(log.artifacts)]
        assert not log.is_whole or log.run_id in ("", "files")
        n_artifacts.add(len(log.artifacts))
    assert n_artifacts == {0, 1, 2}
    assert read(tmp_path, content + bytes(100)).artifacts == whole.artifacts  # space that was set aside


def test_every_flipped_bit_is_noticed_or_changes_nothing(tmp_path: Path, offline_runs: OfflineRuns):
    content = (offline_runs["only-metrics"] / "run-only-metrics.wandb").read_bytes()
    whole = log_of(offline_runs, "only-metrics")
    noticed = 0
    for position in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 8
        try:
            log = read(tmp_path, bytes(damaged))
        except SourceError:
            noticed += 1
        else:
            assert not log.is_whole or log == whole  # a length that points behind the end: it breaks off
    assert noticed > len(content) / 7 * 0.8


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not the log of a W&B run"),
        (b":W&B", "not the log of a W&B run"),
        (b":W&B\xe1\xbe\x01", "not the log of a W&B run in a known version"),
        (framed([field(17, b"\x0a\xff")]), "an integer is truncated"),
        (framed([field(17, b"\x0a\x02a")]), "field 1 is truncated"),
        (framed([field(17, b"\x0b")]), "wire type 3"),
        (framed([field(17, field(1, 5))]), "field 1 is not text"),
        (framed([field(18, field(1, "5"))]), "field 1 is not an integer"),
        (framed([b"\xff" * 11]), "more than 64 bits"),
        (framed([field(17, field(1, b"\xff"))]), "utf-8"),
        (framed([history(field(1, "t") + field(8, '{"_type": '))]), "damaged"),
    ],
)
def test_other_files_and_damaged_logs(tmp_path: Path, content: bytes, message: str):
    with pytest.raises(SourceError, match=message):
        read(tmp_path, content)


def test_fragments_out_of_order(tmp_path: Path):
    content = bytearray(framed([b"x" * (BLOCK + 10)]))
    last = bytes(content[BLOCK:])
    with pytest.raises(SourceError, match="type 4 at byte 7 is out of order"):
        read(tmp_path, bytes(content[:7]) + last)


def test_entries_in_a_file_of_their_own():
    lines = b'{"path": "a.csv", "digest": "d", "size": 3, "local_path": "/x", "extra": {}}\n\n{"path": "b"}\n'
    assert external_entries(gzip.compress(lines)) == {
        "a.csv": ManifestEntry("a.csv", "d", 3, "", "/x"),
        "b": ManifestEntry("b"),
    }


RECORDS = {
    "a tag that is a number": field(17, field(1, "id") + field(10, 7)),
    "a part of a key that is a number": history(field(2, 7) + field(16, '{"_type": "x"}')),
    "a key of very many parts": history(field(2, "a") * 5000 + field(16, '{"_type": "x"}')),
    "an item that is a number": field(5, field(1, 7)),
    "a manifest that is a number": field(8, field(12, 7)),
    "a decimal that is an integer": field(5, field(1, field(1, "a") + field(6, 7))),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_records_of_other_shapes_are_damage(tmp_path: Path, record: bytes):
    with pytest.raises(SourceError, match="is damaged: "):
        read(tmp_path, framed([record]))


def test_keys_that_all_begin_with_a_long_one_are_refused() -> None:
    """A kilobyte of each of a thousand keys would be a key of a megabyte."""
    logged = {"k" * 10_001: {"a": {"_type": "x"}}}
    with pytest.raises(SourceError, match="a key has 10,002 characters; expected at most 10,000"):
        list(media_entries(logged))
