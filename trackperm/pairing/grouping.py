"""Sums of counts over exchangeable units, within strata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import InputError
from trackperm.exact import CountTable
from trackperm.pairing.counting import count_columns
from trackperm.pairing.engines.base import Engine, Frame
from trackperm.pairing.joined import SIZE
from trackperm.statistic import Statistic

STRATUM = "stratum"
_LARGEST = 2**62
MAX_CELLS = 2**26
"""Most counts in a table of all units by all strata or classes: 512 MB of int64."""


def summed(engine: Engine, frame: Frame, unit: str, statistic: Statistic, *, strata: bool) -> Frame:
    """Add up the counts of each unit within each stratum.

    It returns a row for every unit and each of its strata: the unit as ``id``, :data:`STRATUM` where there
    are strata, and the counts. Sums that may reach 2^62 are refused.
    """
    f, columns = engine.functions, count_columns(statistic.count_names)
    frame = frame.select(f.col(unit).alias("id"), *([STRATUM] if strata else []), *columns)
    keys = ["id", STRATUM] if strata else ["id"]
    reach = engine.collected(frame.select(f.col(*columns).abs().max()))
    sizes = engine.collected(frame.group_by(keys).agg(f.len().alias("n")).select(f.col("n").max()))
    require_small_sums(max(map(int, reach.row(0))), int(sizes.item()), statistic)
    sums = frame.group_by(keys).agg(f.col(column).sum().alias(column) for column in columns)
    return engine.kept(sums.with_columns(f.col(*columns).cast(f.Int64), f.lit(1, f.Int64).alias(SIZE)))


def require_small_sums(largest: int, n: int, statistic: Statistic) -> None:
    """Refuse sums of `n` counts of at most `largest` if they may reach 2^62."""
    if largest * n >= _LARGEST:
        raise InputError(
            f"the counts of `{statistic.name}` may add up to 2^62 and more",
            hint="`resolution` in the file of the statistic sets a larger unit.",
        )


def count_table(
    engine: Engine, frame: Frame, statistic: Statistic, *, strata: bool, units: bool
) -> CountTable:
    """Group units with equal counts; each stratum has its own columns of counts.

    `frame` has ``id``, the counts, their multiplicity, and :data:`STRATUM` where there are strata; `units`
    states that an id may be in several strata. Counts of all rows in all strata that would not fit in memory
    are refused.
    """
    f, columns = engine.functions, count_columns(statistic.count_names)
    p = len(statistic.count_names)
    if not strata:
        groups = _multiplicities(engine, frame, columns)
        values = np.ascontiguousarray(groups.select(columns).to_numpy(), dtype=np.int64)
        sizes = groups["multiplicity"].to_numpy()
        return CountTable.from_counts(statistic.count_names, values[:, :p], values[:, p:], sizes)
    alone, n_spanning = frame, 0
    several = pl.DataFrame(schema={"id": pl.Int64, **dict.fromkeys([STRATUM, *columns], pl.Int64)})
    if units:
        spanning = frame.group_by("id").agg(f.len().alias("n")).filter(f.col("n") > 1).select("id")
        alone = frame.join(spanning, on="id", how="anti")
        n_spanning = int(engine.collected(spanning.select(f.len())).item())
    groups = _multiplicities(engine, alone, [STRATUM, *columns])
    n_units, n_strata = len(groups) + n_spanning, len(statistic.weights)
    if n_units * n_strata * len(columns) > MAX_CELLS:
        raise InputError(
            f"{n_units} rows of counts in {n_strata} strata are too many", hint="use fewer strata."
        )
    if n_spanning:
        several = engine.collected(frame.join(spanning, on="id", how="semi").sort("id", STRATUM))
    return _over_strata(groups, several, statistic)


def _multiplicities(engine: Engine, frame: Frame, columns: Sequence[str]) -> pl.DataFrame:
    f = engine.functions
    groups = frame.group_by(columns).agg(f.col(SIZE).sum().cast(f.Int64).alias("multiplicity"))
    return engine.collected(groups).sort(columns)


def _over_strata(alone: pl.DataFrame, several: pl.DataFrame, statistic: Statistic) -> CountTable:
    """Combine grouped units that are in one stratum with the rows of units that are in several strata."""
    columns, p = count_columns(statistic.count_names), len(statistic.count_names)
    units = np.unique(several["id"].to_numpy(), return_inverse=True)[1]
    n_alone, n_units = len(alone), len(alone) + int(units.max(initial=-1)) + 1
    rows = np.concatenate([np.arange(n_alone), n_alone + units])
    parts = [frame.select(STRATUM, *columns) for frame in (alone, several) if len(frame)]
    values = pl.concat(parts)
    multiplicities = np.concatenate(
        [alone["multiplicity"].to_numpy(), np.ones(n_units - n_alone, dtype=np.int64)]
    )
    names = list(statistic.weights)
    place = {name: i for i, name in enumerate(names)}
    at = np.array([place[name] for name in values[STRATUM].to_list()], dtype=np.int64)
    candidate, baseline = (
        spread(values.select(part).to_numpy(), rows, at, (n_units, len(names), p))
        for part in (columns[:p], columns[p:])
    )
    return CountTable.from_counts(statistic.total_names, candidate, baseline, multiplicities)


def spread(
    values: npt.NDArray[Any], rows: npt.NDArray[Any], strata: npt.NDArray[Any], shape: Sequence[int]
) -> npt.NDArray[np.int64]:
    """Place the counts of each row by unit and stratum, else zeros; shape (units, strata * counts)."""
    table = np.zeros(shape, dtype=np.int64)
    table[rows, strata] = values
    return table.reshape(shape[0], -1)
