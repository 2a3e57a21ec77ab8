"""Repeats, clusters and strata: which rows of counts are exchanged together, and scored apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from trackperm.errors import InputError
from trackperm.exact import CountTable
from trackperm.pairing.paired_counts import PairedCounts
from trackperm.statistic import Statistic

STRATUM = "stratum"
_LARGEST = 2**62
MAX_CELLS = 2**26
"""How many counts there may be, where each unit has those of every stratum or class."""


def summed(
    counts: PairedCounts, units: nw.Series[Any], strata: nw.Series[Any] | None, statistic: Statistic
) -> tuple[PairedCounts, nw.Series[Any] | None]:
    """Add up the counts of each unit within each stratum.

    Returns
    -------
    counts : PairedCounts
        A row for every unit and stratum that it has examples of, with the unit as ``id``.
    strata : Series or None
        The stratum of each row.

    Raises
    ------
    InputError
        If sums may reach 2^62.
    """
    columns = [name for name in counts.frame.columns if name != "id"]
    keys = ["id"] if strata is None else ["id", STRATUM]
    frame = counts.frame.with_columns(units.alias("id"))
    if strata is not None:
        frame = frame.with_columns(strata.alias(STRATUM))
    sizes = frame.group_by(keys).agg(nw.len().alias("n"))
    reach = max(int(frame.get_column(name).abs().max()) for name in columns)
    require_small_sums(reach, int(sizes.get_column("n").max()), statistic)
    frame = frame.group_by(keys).agg(nw.col(columns).sum()).sort(keys)
    found = None if strata is None else frame.get_column(STRATUM)
    return PairedCounts(frame.select("id", *columns), counts.names), found


def require_small_sums(largest: int, n: int, statistic: Statistic) -> None:
    """Refuse sums of `n` counts, of which one is `largest`, that may reach 2^62.

    Raises
    ------
    InputError
        If they may.
    """
    if largest * n >= _LARGEST:
        raise InputError(
            f"the counts of `{statistic.name}` may add up to 2^62 and more",
            hint="give them in a larger unit: `resolution`.",
        )


def grouped(counts: PairedCounts, strata: nw.Series[Any] | None, statistic: Statistic) -> CountTable:
    """Group counts, those of each stratum by themselves: one row for every unit, whatever strata it is in.

    Raises
    ------
    InputError
        If units that are in several strata are too many for that.
    """
    if strata is None:
        return CountTable.from_counts(counts.names, *counts.grouped())
    columns = [f"{run}.{name}" for run in ("candidate", "baseline") for name in counts.names]
    frame = counts.frame.with_columns(strata.alias(STRATUM))
    spanning = frame.get_column("id").is_duplicated()
    alone = (
        frame.filter(~spanning)
        .group_by(STRATUM, *columns)
        .agg(nw.len().cast(nw.Int64).alias("multiplicity"))
        .sort(STRATUM, *columns)
    )
    several = frame.filter(spanning)
    units = np.unique(several.get_column("id").to_numpy(), return_inverse=True)[1]
    n_alone, n_units = len(alone), len(alone) + int(units.max(initial=-1)) + 1
    rows = np.concatenate([np.arange(n_alone), n_alone + units])
    values = nw.concat([alone.select(STRATUM, *columns), several.select(STRATUM, *columns)])
    multiplicities = np.concatenate(
        [alone.get_column("multiplicity").to_numpy(), np.ones(n_units - n_alone, dtype=np.int64)]
    )
    names = list(statistic.weights)
    if n_units * len(names) * len(columns) > MAX_CELLS:
        raise InputError(
            f"{n_units} rows of counts in {len(names)} strata are too many", hint="use fewer strata."
        )
    place = {name: i for i, name in enumerate(names)}
    at = np.array([place[name] for name in values.get_column(STRATUM).to_list()], dtype=np.int64)
    p = len(counts.names)
    candidate, baseline = (
        spread(values.select(part).to_numpy(), rows, at, (n_units, len(names), p))
        for part in (columns[:p], columns[p:])
    )
    return CountTable.from_counts(statistic.total_names, candidate, baseline, multiplicities)


def spread(
    values: npt.NDArray[Any], rows: npt.NDArray[Any], strata: npt.NDArray[Any], shape: Sequence[int]
) -> npt.NDArray[np.int64]:
    """Put the counts of a row where its unit and stratum are, among zeros; shape (units, strata * counts)."""
    table = np.zeros(shape, dtype=np.int64)
    table[rows, strata] = values
    return table.reshape(shape[0], -1)
