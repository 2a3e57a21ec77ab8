"""Counts of two paired runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw


@dataclass(frozen=True, eq=False)
class PairedCounts:
    """Integer counts of both runs on the same examples.

    Attributes
    ----------
    frame : narwhals.DataFrame
        One row per example: the id column ``id``, then ``candidate.<count>`` and ``baseline.<count>``
        (integers of any width) for every name in `names`, ordered by id.
    names : tuple of str
        Names of the counts.
    """

    frame: nw.DataFrame[Any]
    names: tuple[str, ...]
