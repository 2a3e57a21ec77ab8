"""Counts of two paired runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class PairedCounts:
    """Integer counts of both runs on the same examples.

    Attributes
    ----------
    frame : narwhals.DataFrame
        One row per example: the id column ``id``, then ``candidate.<count>`` and ``baseline.<count>``
        (int64) for every name in `names`, ordered by id.
    names : tuple of str
        Names of the counts.
    """

    frame: nw.DataFrame[Any]
    names: tuple[str, ...]

    def grouped(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Distinct counts and how many examples have them, in ascending order.

        Returns
        -------
        candidate, baseline : ndarray of int64, shape (K, p)
            Counts of the two runs.
        multiplicities : ndarray of int64, shape (K,)
            Number of examples with these counts.
        """
        columns = [f"{run}.{name}" for run in ("candidate", "baseline") for name in self.names]
        groups = (
            self.frame.select(columns)
            .with_columns(nw.lit(1, nw.Int64).alias("multiplicity"))
            .group_by(columns)
            .agg(nw.col("multiplicity").sum())
            .sort(columns)
        )
        values = np.ascontiguousarray(groups.to_numpy(), dtype=np.int64)
        p = len(self.names)
        return values[:, :p].copy(), values[:, p:-1].copy(), values[:, -1].copy()

    def differ(self) -> nw.Expr:
        """Whether any count differs between the runs, by row."""
        return nw.any_horizontal(
            *(nw.col(f"candidate.{name}") != nw.col(f"baseline.{name}") for name in self.names),
            ignore_nulls=False,
        )

    def discordant(self) -> nw.DataFrame[Any]:
        """Rows whose counts differ between the runs, ordered by id."""
        return self.frame.filter(self.differ())
