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
        (integers of any width) for every name in `names`, ordered by id. Decimal counts of the candidate are
        in :meth:`real` as well, as they were before they became integers of the pair's unit; but not where a
        row adds up several.
    names : tuple of str
        Names of the counts.
    """

    frame: pl.DataFrame
    names: tuple[str, ...]

    @staticmethod
    def real(name: str) -> str:
        """Return the name of the column with a decimal count of the candidate."""
        return f"real.{name}"
