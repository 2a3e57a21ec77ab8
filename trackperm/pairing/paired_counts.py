"""Counts of two paired runs."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, eq=False)
class PairedCounts:
    """Integer counts of both runs on the same examples.

    Attributes
    ----------
    frame : polars.DataFrame
        One row per example: the id column ``id``, then ``candidate.<count>`` and ``baseline.<count>``
        (integers of any width) for every name in `names`, ordered by id.
    names : tuple of str
        Names of the counts.
    """

    frame: pl.DataFrame
    names: tuple[str, ...]
