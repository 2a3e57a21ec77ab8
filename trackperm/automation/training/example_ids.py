"""Ids of examples that have none: digests of what they are.

Examples with equal ids are then equal examples, in whatever order a run sees them. Numbers of rows would pair
whatever stands in the same place, in another test set or order as well. Where inputs differ between two runs,
as those of two tokenisers, no example has a partner and the comparison is refused: name a column of ids.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from trackperm.errors import InputError

_KINDS = {"b": "<i8", "i": "<i8", "u": "<i8", "f": "<f8"}


def example_digest(example: Any) -> str:
    """Digest an example: 64 bits in hexadecimal.

    A list of numbers, an array and a tensor of the same numbers have the same digest; the order of names has
    no part in it.

    Parameters
    ----------
    example : object
        Numbers, text, bytes, arrays, tensors or pictures, and mappings and sequences of these.

    Raises
    ------
    InputError
        If there is something else in it.
    """
    digest = hashlib.blake2b(digest_size=8)
    _feed(digest, example)
    return digest.hexdigest()


def numbered(digests: Iterable[str]) -> list[str]:
    """Make ids of digests: the second of two equal examples gets ``-2``, and so on."""
    seen: Counter[str] = Counter()
    ids = []
    for digest in digests:
        seen[digest] += 1
        ids.append(digest if seen[digest] == 1 else f"{digest}-{seen[digest]}")
    return ids


def as_array(value: Any) -> Any:
    """Return a tensor of PyTorch as an array of NumPy, which knows no bfloat16; all else as it is."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = (value.double() if value.is_floating_point() else value).numpy()
    return value


def _feed(digest: Any, value: Any) -> None:
    value = as_array(value)
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if value is None or isinstance(value, int | float):
        digest.update(f"n{int(value) if isinstance(value, bool) else value};".encode())
    elif isinstance(value, str | bytes):
        text = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        digest.update(b"%c%d;" % (b"s" if isinstance(value, str) else b"b", len(text)) + text)
    elif isinstance(value, Mapping):
        digest.update(b"m%d;" % len(value))
        for name in sorted(value, key=str):
            _feed(digest, str(name))
            _feed(digest, value[name])
    elif isinstance(value, list | tuple) or hasattr(value, "__array_interface__"):
        _feed_sequence(digest, value)
    else:
        raise InputError(
            f"an example holds {type(value).__module__}.{type(value).__qualname__}, which has no digest by"
            " which the example could be known in other runs",
            hint="name a column of ids: `columns={'id': 'NAME'}`.",
        )


def _feed_sequence(digest: Any, value: Any) -> None:
    array = _numeric(value)
    if array is not None:
        kind = _KINDS[array.dtype.kind] if array.size else "<i8"
        digest.update(f"a{array.shape};".encode())
        # 0 is added, for -0.0 equals 0.0
        digest.update(np.ascontiguousarray(array.astype(kind) + 0).tobytes())
        return
    values = value.tolist() if isinstance(value, np.ndarray) else list(value)
    digest.update(b"l%d;" % len(values))
    for each in values:
        _feed(digest, each)


def _numeric(value: Any) -> np.ndarray[Any, Any] | None:
    """Return a sequence of numbers, or of such sequences of one length, as an array."""
    if isinstance(value, list | tuple) and any(hasattr(each, "detach") for each in value):
        return None
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):  # lengths differ
        return None
    return array if array.dtype.kind in _KINDS or not array.size else None
