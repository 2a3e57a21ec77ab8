"""Pairs of runs of which nothing is to be suspected, told apart quickly from those that need a look.

The rules are those of :func:`~trackperm.pairing.checks.suspicions.suspicions`. In doubt, a run needs a look.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.pairing.checks.suspicions import CHANCE, ENOUGH, POWER
from trackperm.pairing.columns import PairedColumns
from trackperm.tables.column_types import LISTS, ColumnType

_ROUNDING = 1e-9

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Unsuspicious:
    """Whether nothing is to be suspected of a run on the rows of the reference run, without nulls."""

    reference: pl.DataFrame
    columns: PairedColumns
    types: Mapping[str, ColumnType]
    never: bool
    """Whether the reference run itself, or the inputs, need a look."""

    @classmethod
    def of(
        cls, reference: pl.DataFrame, columns: PairedColumns, types: Mapping[str, ColumnType]
    ) -> Unsuspicious:
        """Look at the reference run alone."""
        never = bool(columns.identity) or _is_label(reference, columns)
        return cls(reference, columns, types, never)

    def __call__(self, run: pl.DataFrame) -> bool:
        """Look at `run`, in the order of the reference run."""
        if self.never:
            return False
        names = self.columns.of_runs
        if len(run) < ENOUGH or not names:
            return True
        if all(run[name].equals(self.reference[name]) for name in names) or _is_label(run, self.columns):
            return False
        return all(self._agree(self.reference[name], run[name], self.types[name]) for name in names)

    def _agree(self, reference: pl.Series, run: pl.Series, type_: ColumnType) -> bool:
        if type_ in LISTS:
            return True
        n = len(run)
        if type_ is ColumnType.DECIMAL:
            u, v = run.to_numpy(), reference.to_numpy()
            if float(np.ptp(u - v)) <= 2.0 * 1e-9 * float(np.abs(u - v).max()):
                return False
            return _are_correlated(v, u)
        if type_ is ColumnType.TEXT:
            codes = pl.concat([reference, run]).rank("dense").to_numpy()
        else:
            codes = (
                np.unique(np.concatenate([reference.to_numpy(), run.to_numpy()]), return_inverse=True)[1] + 1
            )
        a, b = codes[:n], codes[n:]
        sizes = [np.bincount(side, minlength=int(codes.max()) + 1) for side in (a, b)]
        if 2 * max(int(np.count_nonzero(size)) for size in sizes) >= n:  # no names of kinds
            return type_ is ColumnType.TEXT or _are_correlated(a, b)
        chance = float((sizes[0] / n) @ (sizes[1] / n))
        largest = float(np.minimum(*sizes).sum()) / n
        if largest - chance <= POWER * math.sqrt(chance * (1.0 - chance) / n) * (1.0 - _ROUNDING):
            return True
        agreement = (float((a == b).mean()) - chance) / (largest - chance)
        return agreement > CHANCE + _ROUNDING


def _is_label(run: pl.DataFrame, columns: PairedColumns) -> bool:
    """Whether the label stands in a column of predictions, on every example."""
    label = columns.label
    return label is not None and any(run[name].equals(run[label]) for name in columns.of_runs)


def _are_correlated(a: Array, b: Array) -> bool:
    """Whether ranks show that rows belong together, or are too few to show that they do not."""
    if math.sqrt(len(a)) <= POWER:
        return True
    ranks = pl.DataFrame({"a": a, "b": b}).select(pl.all().rank("average"))
    correlation = ranks.select(pl.corr("a", "b")).item()
    return correlation is not None and float(correlation) > CHANCE + _ROUNDING
