"""Names of runs that are cut in the middle, so that they fit a line."""

from __future__ import annotations

from collections.abc import Sequence

_LEAST = 16  # characters that remain of a run's name


def shorten_in_the_middle(text: str, limit: int) -> str:
    """Cut `text` to at most `limit` characters; names that share a beginning differ at their ends."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 2
    return f"{text[: limit - 1 - tail]}…{text[-tail:]}"


def fitting_names(names: Sequence[str], room: int) -> list[str]:
    """Cut two names so that both fit into `room` characters; a short one leaves its room to the other."""
    first, second = map(len, names)
    half = max(room // 2, _LEAST)
    limits = (max(half, room - second), max(half, room - first))
    return [shorten_in_the_middle(name, limit) for name, limit in zip(names, limits, strict=True)]
