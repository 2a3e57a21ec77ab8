"""Random changes of files: of their bytes, of what JSON says, and of the members of archives."""

from __future__ import annotations

import gzip
import io
import json
import random
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

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
    documents[place] = _changed(rng, documents[place])
    texts = (json.dumps(document, ensure_ascii=rng.random() < 0.8) for document in documents)
    return "\n".join(texts).encode("utf-8", "surrogatepass")


def _changed(rng: random.Random, value: Any) -> Any:
    """Change one thing within `value`."""
    if not isinstance(value, list | dict) or not value or rng.random() < 0.1:
        return rng.choice(ODD)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = rng.choice(keys)
    action = rng.random()
    if action < 0.1:
        del value[key]
    elif action < 0.15 and isinstance(value, dict):
        value[str(rng.choice(ODD))[:100]] = value.pop(key)
    elif action < 0.2 and isinstance(value, list):
        value.append(value[key])
    elif action < 0.3:
        value[key] = rng.choice(ODD)
    else:
        value[key] = _changed(rng, value[key])
    return value


def _archive(rng: random.Random, content: bytes, others: list[bytes]) -> bytes:
    if content.startswith(b"\x1f\x8b"):
        return _gzip(rng, content, others)
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
