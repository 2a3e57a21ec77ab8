"""Ids for examples without ids: digests of their content.

Equal ids then mean equal examples, in whatever order a run sees them. Row numbers would pair rows at the same
place even if test sets or orders differ. If inputs differ between two runs, as with two tokenisers, no
example has a partner and the comparison is refused; a column of ids avoids that.
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
    """Return a digest of an example: 64 bits in hexadecimal.

    An example consists of numbers, text, bytes, arrays, tensors, pictures, and mappings and sequences of
    these; raise InputError if it contains another type. A list, an array and a tensor of the same numbers
    have the same digest, and the order of keys does not matter.

    Examples
    --------
    >>> example_digest({"x": [1, 2], "y": "a"}) == example_digest({"y": "a", "x": np.array([1, 2])})
    True
    """
    digest = hashlib.blake2b(digest_size=8)
    _feed(digest, example)
    return digest.hexdigest()


def numbered(digests: Iterable[str]) -> list[str]:
    """Turn digests into distinct ids: the second of two equal examples gets the suffix ``-2``, and so on."""
    seen: Counter[str] = Counter()
    ids = []
    for digest in digests:
        seen[digest] += 1
        ids.append(digest if seen[digest] == 1 else f"{digest}-{seen[digest]}")
    return ids


def as_array(value: Any) -> Any:
    """Convert a tensor of PyTorch to an array of NumPy; return other values unchanged."""
    if hasattr(value, "detach"):  # NumPy has no bfloat16
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
            f"an example contains {type(value).__module__}.{type(value).__qualname__}, which has no digest"
            " to identify the example in other runs",
            hint="name a column of ids: `columns={'id': 'NAME'}`.",
        )


def _feed_sequence(digest: Any, value: Any) -> None:
    array = _numeric(value)
    if array is not None:
        kind = _KINDS[array.dtype.kind] if array.size else "<i8"
        digest.update(f"a{array.shape};".encode())
        # -0.0 equals 0.0, and adding 0 makes their bytes equal
        digest.update(np.ascontiguousarray(array.astype(kind) + 0).tobytes())
        return
    values = value.tolist() if isinstance(value, np.ndarray) else list(value)
    digest.update(b"l%d;" % len(values))
    for each in values:
        _feed(digest, each)


def _numeric(value: Any) -> np.ndarray[Any, Any] | None:
    """Return a sequence of numbers, or of equally long sequences of numbers, as an array; else None."""
    if isinstance(value, list | tuple) and any(hasattr(each, "detach") for each in value):
        return None
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):  # lengths differ
        return None
    return array if array.dtype.kind in _KINDS or not array.size else None
