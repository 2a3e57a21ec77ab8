"""Sums over clusters of examples that are not in memory, for the search of dependent examples.

The engine that holds the rows adds up the shares of the examples of each cluster, and then over all clusters,
so that only a few numbers of each column leave it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import narwhals as nw
import numpy as np
import polars as pl

from trackperm.pairing.cluster_columns import (
    candidate_names,
    input_names,
    is_cluster_name,
    is_grouping,
)
from trackperm.pairing.columns.roles import PairedColumns
from trackperm.pairing.counts.classes import KIND
from trackperm.pairing.counts.counting import MAX_CELLS, MULTIPLICITY, STRATUM, spread, with_multiplicity
from trackperm.pairing.counts.row_counts import RowCounts
from trackperm.pairing.engines.base import Frame
from trackperm.pairing.joined import KEY, SIDES, JoinedRows, count_columns, of
from trackperm.pairing.shares import shares_of_counts
from trackperm.statistic import Statistic
from trackperm.tables.columns.names import CONTEXTS
from trackperm.tables.table import ExampleTable

_SHARE = "share"
_R = "deviation"
_BEYOND_64_BITS = (nw.UInt64, nw.Int128, nw.UInt128)


@dataclass(frozen=True)
class SummedClusters:
    """A column whose values may be clusters, and the sums over its clusters.

    The sums are of the deviations r_i of the examples' shares from their mean, in any unit;
    :mod:`trackperm.comparison.assumptions.intraclass` defines R_c and s_j of a cluster of n_c examples.

    Attributes
    ----------
    name, is_called, is_input, n_shared
        As of :class:`~trackperm.pairing.cluster_columns.ClusterColumn`.
    n_examples, n_nonzero : int
        Number of all examples, and of those with a share other than 0.
    n_clusters, n_several : int
        Number of all clusters, and of those with several examples.
    squared_sizes : float
        Sum of n_c^2.
    squares, own : float
        Sums of r_i^2 and of s_1 / n_c.
    between : float
        Sum of R_c^2 / n_c.
    second, third : float
        Sums of (s_1^2 - s_2) / n_c^2 and of (s_1^3 - 3 s_1 s_2 + 2 s_3) / n_c^3.
    """

    name: str
    is_called: bool
    is_input: bool
    n_shared: int
    n_examples: int
    n_nonzero: int
    n_clusters: int
    n_several: int
    squared_sizes: float
    squares: float
    own: float
    between: float
    second: float
    third: float

    @property
    def is_grouping(self) -> bool:
        """Whether the column has enough clusters, with enough examples."""
        return is_grouping(
            self.n_examples,
            self.n_clusters,
            self.n_several,
            is_called=self.is_called,
            is_input=self.is_input,
        )


def with_cluster_columns(
    columns: PairedColumns, tables: tuple[ExampleTable, ExampleTable], statistic: Statistic
) -> PairedColumns:
    """Add the columns that may hold clusters to those that an engine joins."""
    names = [
        name
        for name in candidate_names(tables, statistic, columns.ids)
        if all(table.has_representatives([name]) for table in tables)
        and not any(table.schema[name] in _BEYOND_64_BITS for table in tables)
    ]
    return replace(columns, clusters=tuple(names))


def summed_clusters(counts: RowCounts) -> tuple[SummedClusters, ...]:
    """Add up the shares of the examples in the clusters of each column of ``PairedColumns.clusters``.

    Columns that differ between the runs, or between the rows of an example, are left out, as in
    :func:`~trackperm.pairing.cluster_columns.cluster_columns`.
    """
    rows, names = counts.rows, counts.rows.columns.clusters
    shares = _shares(counts) if names else None
    if shares is None:
        return ()
    engine, f = rows.engine, rows.functions
    share, sizes = shares[_SHARE].to_numpy(), shares[MULTIPLICITY].to_numpy()
    frame = engine.kept(_with_values(counts, shares.drop(MULTIPLICITY)))
    answers = engine.collected(
        frame.select(
            f.len().cast(f.Int64).alias("n"),
            (f.col(_SHARE) != 0.0).cast(f.Int64).sum().cast(f.Int64).alias("n_nonzero"),
            *(f.col(_differs(i)).sum().cast(f.Int64).alias(_differs(i)) for i in range(len(names))),
        )
    ).row(0, named=True)
    n, n_nonzero = int(answers["n"]), int(answers["n_nonzero"])
    mean = float(share @ sizes) / n
    largest = float(np.abs(share - mean).max(initial=0.0))
    if largest <= 1e-12 * float(np.abs(share).max(initial=0.0)):
        return ()
    frame = frame.with_columns(((f.col(_SHARE) - mean) / largest).alias(_R))
    places = [i for i in range(len(names)) if not answers[_differs(i)]]
    inputs, ids = input_names((rows.runs[0].table, rows.runs[1].table)), rows.columns.ids
    found = [_summed(rows, frame, i, n, n_nonzero, is_called=is_cluster_name(names[i], ids)) for i in places]
    parts = [_value(i) for i in places if names[i] in inputs or names[i] in CONTEXTS]
    if any(each.name in inputs for each in found):
        different = engine.collected(frame.select(*parts).unique().select(f.len()))
        n_inputs = int(different.item())
        found = [
            replace(each, is_input=each.name in inputs and each.n_clusters == n_inputs) for each in found
        ]
    return tuple(each for each in found if each.is_grouping)


def _value(i: int) -> str:
    return f"cluster_{i}"


def _differs(i: int) -> str:
    return f"differs_{i}"


def _shares(counts: RowCounts) -> pl.DataFrame | None:
    """Return the share and the number of rows with each value of the columns that determine the share."""
    engine, statistic, by_class = counts.rows.engine, counts.statistic, counts.by_class
    if by_class is not None:
        if counts.has_units:
            keys = engine.collected(counts.frame.select("id")).sort("id")
        else:
            keys = pl.DataFrame({KIND: np.arange(len(by_class.sizes))})
        sides = [side.reshape(len(side), -1) for side in (by_class.candidate, by_class.baseline)]
        sizes = by_class.sizes
    else:
        columns, p = count_columns(statistic.count_names), len(statistic.count_names)
        names = [STRATUM, *columns] if counts.has_strata else columns
        found = with_multiplicity(engine, counts.frame, names)
        keys, sizes = found.select(names), found[MULTIPLICITY].to_numpy()
        sides = [found.select(part).to_numpy().astype(np.int64) for part in (columns[:p], columns[p:])]
        if counts.has_strata:
            place = {name: i for i, name in enumerate(statistic.weights)}
            at = np.array([place[name] for name in found[STRATUM].to_list()], dtype=np.int64)
            shape = len(found), len(place), p
            if len(found) * len(place) * p > MAX_CELLS:
                return None
            sides = [spread(side, np.arange(len(found)), at, shape) for side in sides]
    shares = shares_of_counts(statistic, sides[0], sides[1], sizes)
    if shares is None:
        return None
    return keys.with_columns(pl.Series(_SHARE, shares), pl.Series(MULTIPLICITY, sizes))


def _with_values(counts: RowCounts, shares: pl.DataFrame) -> Frame:
    """Return share and clusters of every example, and whether the clusters differ between its rows."""
    rows, f = counts.rows, counts.rows.functions
    keys = [name for name in shares.columns if name != _SHARE]
    frame = counts.frame.join(rows.engine.local(shares), on=keys, how="left")
    clusters = rows.columns.clusters
    sides = [[f.col(of(side, name)) for side in SIDES] for name in clusters]
    values = [
        f.coalesce(*(of(side, name) for side in SIDES)).alias(_value(i)) for i, name in enumerate(clusters)
    ]
    differ = [
        ((a != b).fill_null(False) | (a.is_null() & b.is_null())).cast(f.Int64).alias(_differs(i))
        for i, (a, b) in enumerate(sides)
    ]
    if not counts.has_units:
        return frame.select(_SHARE, *values, *differ)
    ends = [
        end.alias(name)
        for i in range(len(clusters))
        for name, end in ((_value(i), f.col(_value(i)).min()), (f"last_{i}", f.col(_value(i)).max()))
    ]
    of_examples = (
        rows.rows_in_test.select(f.col(KEY).alias("id"), *values, *differ)
        .group_by("id")
        .agg(*ends, *(f.col(_differs(i)).max() for i in range(len(clusters))))
    )
    disagree = [
        f.max_horizontal(f.col(_differs(i)), (f.col(_value(i)) != f.col(f"last_{i}")).cast(f.Int64)).alias(
            _differs(i)
        )
        for i in range(len(clusters))
    ]
    of_units = frame.group_by("id").agg(f.col(_SHARE).sum())
    return of_units.join(of_examples.with_columns(*disagree), on="id", how="left").drop("id")


def _summed(
    rows: JoinedRows, frame: Frame, i: int, n_examples: int, n_nonzero: int, *, is_called: bool
) -> SummedClusters:
    f, r = rows.functions, rows.functions.col(_R)
    of_clusters = frame.group_by(_value(i)).agg(
        f.len().cast(f.Float64).alias("n"),
        r.sum().alias("r_1"),
        (r * r).sum().alias("s_1"),
        (r * r * r * r).sum().alias("s_2"),
        (r * r * r * r * r * r).sum().alias("s_3"),
    )
    n, r_1, s_1, s_2, s_3 = (f.col(name) for name in ("n", "r_1", "s_1", "s_2", "s_3"))
    several = f.when(n > 1)
    sums = {
        "n_clusters": f.len().cast(f.Float64),
        "n_several": several.then(1.0).otherwise(0.0).sum(),
        "n_shared": several.then(n).otherwise(0.0).sum(),
        "squared_sizes": (n * n).sum(),
        "squares": s_1.sum(),
        "own": (s_1 / n).sum(),
        "between": (r_1 * r_1 / n).sum(),
        "second": ((s_1 * s_1 - s_2) / (n * n)).sum(),
        "third": ((s_1 * s_1 * s_1 - 3.0 * s_1 * s_2 + 2.0 * s_3) / (n * n * n)).sum(),
    }
    found = rows.engine.collected(of_clusters.select(value.alias(name) for name, value in sums.items()))
    k, n_several, n_shared, *others = map(float, found.row(0))
    return SummedClusters(
        rows.columns.clusters[i],
        is_called,
        False,
        int(n_shared),
        n_examples,
        n_nonzero,
        int(k),
        int(n_several),
        *others,
    )
