"""Random changes of files: of their bytes, of what JSON says, of tables, and of the members of archives."""

from __future__ import annotations

import copy
import gzip
import io
import json
import random
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import polars as pl

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**400, 10**4290, 0.1, -0.0, 1e308),
    *(
        float("nan"),
        float("inf"),
        "",
        " ",
        "x",
        "\ud800",
        "\0",
        "1e999",
        "1" * 5000,
        "é" * 50,
        "attachment://",
    ),
    *([], [[]], [None], ["a", 1], {}, {"": 1}, {"a": {"b": []}}, [{"name": None}]),
)
WORDS = (
    *(b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xef\xbb\xbf", b'"', b"'", b"\n", b"\r", b",", b"\t", b";"),
    *(b"{", b"}", b"[", b"]", b"<", b">", b"&", b"*", b": ", b"-", b"1" * 5000, b"1e999", b"nan", b"::"),
    *(b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"<!-- -->", b"%", b"\\ud800", b"#"),
)

_LONGEST = 2**20  # bytes


def mutated(rng: random.Random, content: bytes, others: list[bytes]) -> bytes:
    """Return `content` after one to four changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        kinds = [_bytes, _bytes, _json, _json, _archive]
        content = rng.choice(kinds)(rng, content, others)
        content = content[:_LONGEST]
    return content


def _bytes(rng: random.Random, content: bytes, others: list[bytes]) -> bytes:
    start = rng.randrange(len(content) + 1)
    end = min(len(content), start + rng.choice((0, 1, 1, 2, 4, 16, 100)))
    changes: tuple[Callable[[], bytes], ...] = (
        lambda: b"",
        lambda: rng.choice(WORDS),
        lambda: _repeated(rng.choice(WORDS), rng.choice((2, 50, 50, 50, 1000, 1000, 1000, 2**17))),
        lambda: bytes(byte ^ (1 << rng.randrange(8)) for byte in content[start:end]),
        lambda: _repeated(content[start:end], rng.choice((2, 2, 2, 100, 100, 100, 2**17))),
        lambda: rng.choice(others)[: rng.randrange(1, 200)],
        lambda: str(rng.choice(ODD)).encode("utf-8", "surrogatepass"),
    )
    if rng.random() < 0.05:
        return content[:start]
    return content[:start] + rng.choice(changes)() + content[end:]


def _repeated(piece: bytes, times: int) -> bytes:
    """Repeat `piece`, sometimes so often that time with the square of a length shows."""
    return piece * min(times, 1 + _LONGEST // max(len(piece), 1))


def _gzip(rng: random.Random, content: bytes, others: list[bytes]) -> bytes:
    try:
        inside = gzip.decompress(content)
    except (OSError, EOFError, zlib.error):  # one that was changed before
        return _bytes(rng, content, others)
    return gzip.compress(_json(rng, inside, others)[:_LONGEST])


def _json(rng: random.Random, content: bytes, others: list[bytes]) -> bytes:
    try:
        documents = [json.loads(content)]
    except (ValueError, RecursionError):
        try:
            documents = [json.loads(line) for line in content.splitlines()]
        except (ValueError, RecursionError):
            return _bytes(rng, content, others)
    if not documents:
        return content
    place = rng.randrange(len(documents))
    try:
        documents[place] = _changed(rng, documents[place])
        texts = [json.dumps(document, ensure_ascii=rng.random() < 0.8) for document in documents]
    except RecursionError:
        return _bytes(rng, content, others)
    return "\n".join(texts).encode("utf-8", "surrogatepass")


def _changed(rng: random.Random, value: Any) -> Any:
    """Change one thing within `value`: each as likely as any other, however deep it lies."""
    places = _places(value)
    if not places or rng.random() < 0.02:
        return rng.choice(ODD)
    inside, key = rng.choice(places)
    other, its_key = rng.choice(places)
    action = rng.random()
    if action < 0.1:
        del inside[key]
    elif action < 0.2 and isinstance(inside, dict):
        inside[rng.choice((str(rng.choice(ODD))[:100], str(its_key)))] = inside.pop(key)
    elif action < 0.3 and isinstance(inside, list):
        inside.append(inside[key])
    elif action < 0.4:
        inside[key] = copy.deepcopy(other[its_key])
    elif action < 0.5:
        inside[key] = rng.choice(([inside[key]], {"x": inside[key]}))
    else:
        inside[key] = rng.choice(ODD)
    return value


def _places(value: Any) -> list[tuple[Any, Any]]:
    """List each object and array within `value`, with each of its keys."""
    places: list[tuple[Any, Any]] = []
    left = [value] if isinstance(value, list | dict) else []
    while left:
        inside = left.pop()
        keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
        places += [(inside, key) for key in keys]
        left += [inside[key] for key in keys if isinstance(inside[key], list | dict) and inside[key]]
    return places


def _frame(rng: random.Random, content: bytes, others: list[bytes]) -> bytes:
    """Change a value of a sample in Parquet, with which the type of its column may change."""
    if content not in others:  # changed before: polars may panic, which is for the reader to find
        return _bytes(rng, content, others)
    written = io.BytesIO()
    try:
        rows = pl.read_parquet(content).to_dicts()
        pl.DataFrame(_changed(rng, rows), strict=False).write_parquet(written)
    except (pl.exceptions.PanicException, Exception):  # no table any more
        return _bytes(rng, content, others)
    return written.getvalue()


def _archive(rng: random.Random, content: bytes, others: list[bytes]) -> bytes:
    if content.startswith(b"\x1f\x8b"):
        return _gzip(rng, content, others)
    if content.startswith(b"PAR1"):
        return _frame(rng, content, others)
    if not content.startswith(b"PK"):
        return _json(rng, content, others)
    written = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        chosen = rng.choice(list(members))
        members[chosen] = _json(rng, members[chosen], others)
        with zipfile.ZipFile(written, "w", rng.choice((0, 8, 12, 14))) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
    except Exception:  # an archive that was changed before
        return _bytes(rng, content, others)
    return written.getvalue()
