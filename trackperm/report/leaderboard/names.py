"""Short names of runs: without what all of them share, and on one line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

LONGEST = 44
"""Characters of a name in a chart: a third of a line at 1,280 pixels."""

_LEAST_SHARED = 6
"""Characters that names have to share before these are left out: a suffix such as ``.csv`` stays."""

_SEPARATOR = re.compile(r"[_/:=|,\s]|(?<![0-9]e)-|(?<![0-9])\.|\.(?![0-9])")
"""End of a word; numbers such as 1e-05 and 0.5 are one word."""


@dataclass(frozen=True)
class ShortNames:
    """Names of runs without what all of them share.

    Attributes
    ----------
    prefix, suffix : str
        Beginning and end of every name, up to a separator; empty if the names share too little.
    names : tuple of str
        The names without both, in the order given; they are unique if the names are.
    """

    prefix: str
    suffix: str
    names: tuple[str, ...]

    @property
    def sentence(self) -> str | None:
        """Sentence about what is left out; None if nothing is."""
        found = [
            f"{verb} `{' '.join(part.split())}`"
            for verb, part in (("begins with", self.prefix), ("ends with", self.suffix))
            if part
        ]
        return f"every name {' and '.join(found)}, which is left out here" if found else None

    def on_one_line(self, limit: int = LONGEST) -> tuple[str, ...]:
        """Return the names cut to `limit` characters, around the place where each differs from all others.

        Names that would become equal by that remain whole.
        """
        order = sorted(range(len(self.names)), key=self.names.__getitem__)
        alike = [0] * len(order)
        for first, second in pairwise(order):
            n = _n_shared([self.names[first], self.names[second]])
            alike[first], alike[second] = max(alike[first], n), max(alike[second], n)
        cut = [_cut(name, n, limit) for name, n in zip(self.names, alike, strict=True)]
        return tuple(
            short if cut.count(short) == 1 else name for short, name in zip(cut, self.names, strict=True)
        )


def short_names(names: Sequence[str]) -> ShortNames:
    """Leave out the words that all names begin or end with; one name alone stays whole.

    Examples
    --------
    >>> short_names(["large-lr1-seed1", "large-lr2-seed1"])
    ShortNames(prefix='large-', suffix='-seed1', names=('lr1', 'lr2'))
    """
    if len(names) < 2:
        return ShortNames("", "", tuple(names))
    one = names[0]
    words = list(_SEPARATOR.finditer(one))
    n_first = _n_shared([name[:-1] for name in names])
    start = max((found.end() for found in words if found.end() <= n_first), default=0)
    n_last = _n_shared([name[start + 1 :][::-1] for name in names])
    end = min((found.start() for found in words if found.start() >= len(one) - n_last), default=len(one))
    length = len(one) - end
    if start + length < _LEAST_SHARED:
        return ShortNames("", "", tuple(names))
    return ShortNames(one[:start], one[end:], tuple(name[start : len(name) - length] for name in names))


def _n_shared(texts: Sequence[str]) -> int:
    """Return how many characters all texts begin with: those that the first and the last in order share."""
    first, last = min(texts), max(texts)
    return next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))


def _cut(name: str, alike: int, limit: int) -> str:
    """Cut a name to `limit` characters, which contain the first ones after the `alike` shared ones."""
    name = " ".join(name.split())
    if len(name) <= limit:
        return name
    head = limit // 3
    if alike < limit - head:
        return f"{name[: limit - 1]}…"
    start = min(max(alike - 4, head), len(name) - (limit - head - 1))
    tail = name[start : start + limit - head - 1]
    if start + len(tail) < len(name):
        tail = f"{tail[:-1]}…"
    return f"{name[:head]}…{tail}"
