"""Result of pairing two runs: the table of counts, the report, and the rows that differ."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from trackperm.exact import CountTable
from trackperm.pairing.cluster_sums import SummedClusters
from trackperm.pairing.counts.by_unit import CountsByUnit
from trackperm.pairing.counts.paired_counts import PairedCounts
from trackperm.pairing.report import PairingReport
from trackperm.statistic import Statistic


@dataclass(frozen=True, eq=False)
class PairingResult:
    """Result of pairing two runs.

    Attributes
    ----------
    statistic : Statistic
        The statistic, with the units of the counts and the weights of the strata or classes.
    count_table : CountTable
        The counts, grouped: a row is an exchangeable unit, and each stratum or class has its own columns.
    report : PairingReport
        Report on how the examples were paired.
    discordant : polars.DataFrame
        Examples with any count that differs between the runs, ordered by id. The columns are ``id``,
        ``label`` if labels were checked, ``stratum`` if there are strata, then ``baseline.<name>`` and
        ``candidate.<name>`` for every other column that the statistic reads and for every count, in the units
        of the spec; if a column has the name of a count, only the count is included. Clusters, and examples
        with several rows, have only the counts.
    clusters : tuple of SummedClusters
        Columns that may hold clusters of examples, if the counts of examples are not in memory and clusters
        were searched.
    """

    statistic: Statistic
    count_table: CountTable
    report: PairingReport
    discordant: pl.DataFrame
    clusters: tuple[SummedClusters, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, eq=False)
class Pairing(PairingResult):
    """Result of pairing two runs in memory, with the counts of every example.

    Attributes
    ----------
    counts : PairedCounts
        Counts of both runs by example or by cluster; a cluster in several strata has a row for each stratum.
        Counts of several classes are added up.
    strata : polars.Series or None
        The stratum of every row of `counts`; None if the statistic has no strata.
    by_class : CountsByUnit or None
        The counts of every class; None if the statistic has no classes.
    """

    counts: PairedCounts
    strata: pl.Series | None
    by_class: CountsByUnit | None = None

    def by_unit(self) -> CountsByUnit:
        """Return the counts of every exchangeable unit: an example or a cluster.

        Raises
        ------
        InputError
            If the counts of all units in all strata would not fit in memory.
        """
        return self.by_class or CountsByUnit.of(self.counts, self.strata, self.statistic)
