"""Detection of dependent examples: columns whose groups have correlated differences between the runs.

The test exchanges the outputs of single examples, which assumes that examples are independent. Examples that
share a document often are not, because a document can favour one of the runs: at a design effect of 3, a
p-value below 0.05 occurs every fourth time by chance. A detected column does not change the test; it is
reported with the p-value of the test that exchanges whole clusters.

The correlation is that of the examples' shares in the statistic. For a mean, a share is the difference of the
scores; for other statistics it is, to first order, half the change that exchanging the outputs of the example
makes at the midpoint of the two runs. The probability of any false report is at most :data:`LEVEL`, which all
columns share: columns with the name of a cluster get one half, the others get the other half, and each half
is divided evenly (Bonferroni). Repeated inputs that affect the test are reported without a test of
correlation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from trackperm.comparison.assumptions.intraclass import Intraclass
from trackperm.comparison.inference.verdict import Sign
from trackperm.comparison.runs import RunData
from trackperm.comparison.scores import ranked_examples
from trackperm.errors import InputError
from trackperm.exact import CountTable
from trackperm.exact.rank_statistics import changes_by_coin
from trackperm.exact.result import Relation, format_pvalue
from trackperm.pairing import Pairing, PairingResult
from trackperm.pairing.checks.pairing_warnings import shared_input
from trackperm.pairing.cluster_columns import ClusterColumn, cluster_columns
from trackperm.pairing.cluster_sums import SummedClusters
from trackperm.pairing.many_runs import PairedRun
from trackperm.pairing.shares import shares_of_counts

LEVEL = 0.01
"""Bound on the probability of a report on independent examples.

It is below the usual 0.05 because every comparison is checked by default.
"""

MATTERS = 1.1
"""Smallest design effect that is reported: there, a test at the level 0.05 has the size 0.062."""

MOST_REPORTED = 2
"""Most columns that are reported, those with the largest design effects.

Columns such as document and author often form nearly the same clusters, and each one costs a test.
"""

MOST_SLOTS = 2 * 10**8
"""Most scores that are computed anew for the shares in a rank statistic: about a second."""

FEWEST_DISCORDANT = 8
"""Fewest examples with a nonzero share for which a correlation is reported.

With d of them, the exact p-value under random signs is at least 2^(1 - d), which is above LEVEL for d < 8.
"""

_Column = TypeVar("_Column", ClusterColumn, SummedClusters)

_DRAWN: Mapping[str, tuple[Relation, str]] = {
    "monte-carlo": ("≈", " (Monte Carlo)"),
    "tilted": ("≤", " (tilted sampling)"),
}
"""Sign before a p-value from random swaps, and the words behind it, by engine."""


@dataclass(frozen=True)
class Dependence:
    """Column whose groups of examples depend on each other.

    Attributes
    ----------
    column : str
        Column whose values are the clusters.
    n_clusters : int
        Number of clusters.
    n_shared, n_examples : int
        Number of examples that share their cluster with another one, and number of all examples.
    is_input : bool
        Whether the examples of a cluster share their whole input.
    icc : float
        Intra-class correlation of the examples' shares in the statistic, by analysis of variance.
    design_effect : float
        Factor by which the correlation increases the variance of the statistic.
    pvalue : float or None
        p-value of the test that exchanges whole clusters; None if this test is impossible, or if it is below
        the range of floats.
    log10_pvalue : float or None
        Decimal logarithm of the p-value, also below the range of floats.
    method : str or None
        The engine that computed the p-value.
    verdict : {'better', 'worse', 'undecided'} or None
        Verdict on the sign by this p-value, without correction.
    is_bound : bool
        Whether the p-value is a certified upper end.
    """

    column: str
    n_clusters: int
    n_shared: int
    n_examples: int
    is_input: bool
    icc: float
    design_effect: float
    pvalue: float | None = None
    log10_pvalue: float | None = None
    method: str | None = None
    verdict: Sign | None = None
    is_bound: bool = False

    def sentence(self, name: str, alpha: float) -> str:
        """Describe the dependence in a sentence without a full stop.

        The p-value is called `name`, and has enough digits to show on which side of `alpha` it lies.
        """
        size = f"design effect {self.design_effect:.1f}"
        if self.is_input:
            found = shared_input(self.n_shared, self.n_examples, self.column)
        else:
            found = f"the differences between the runs are correlated within each `{self.column}`"
        found += f" (intra-class correlation {self.icc:.2f}, {size})"
        if self.log10_pvalue is None:
            return found
        sign, drawn = _DRAWN.get(self.method or "", ("≤" if self.is_bound else "=", ""))
        shown = format_pvalue(self.pvalue or 0.0, self.log10_pvalue, 3, alpha, sign)
        return f"{found}: by `{self.column}`, {name} {sign} {shown}{drawn}"


def dependence_of(baseline: RunData, candidate: RunData, pairing: PairingResult) -> tuple[Dependence, ...]:
    """Find columns whose groups of examples are dependent, largest design effects first, without p-values.

    The runs have all their columns; they are paired without clusters.
    """
    if pairing.count_table.n_discordant == 0:
        return ()
    found = _found(baseline, candidate, pairing) if isinstance(pairing, Pairing) else _summed(pairing)
    seen = [
        Dependence(
            column=column.name,
            n_clusters=correlation.n_clusters,
            n_shared=column.n_shared,
            n_examples=pairing.count_table.n_examples,
            is_input=column.is_input,
            icc=correlation.icc,
            design_effect=correlation.design_effect,
        )
        for column, correlation in found
    ]
    return tuple(sorted(seen, key=lambda each: -each.design_effect)[:MOST_REPORTED])


def _found(
    baseline: RunData, candidate: RunData, pairing: Pairing
) -> Iterator[tuple[ClusterColumn, Intraclass]]:
    """Yield the columns to report of counts that are in memory."""
    columns = cluster_columns(
        baseline.table,
        candidate.table,
        pairing.statistic,
        pairing.counts.frame.get_column("id").unique(maintain_order=True),
        by_position=pairing.report.by == "position",
    )
    shares = shares_of(pairing) if columns else None
    return iter(()) if shares is None else above_noise((column, shares) for column in columns)


def _summed(pairing: PairingResult) -> Iterator[tuple[SummedClusters, Intraclass]]:
    """Yield the columns to report of counts that an engine has added up."""
    return _above_noise(
        (column, correlation, column.n_nonzero, 0)
        for column in pairing.clusters
        if (correlation := Intraclass.of_sums(column)) is not None
    )


def above_noise(
    checked: Iterable[tuple[ClusterColumn, npt.NDArray[np.float64]]],
) -> Iterator[tuple[ClusterColumn, Intraclass]]:
    """Yield the columns to report, each set of clusters once.

    `checked` has all columns that are checked, each with the examples' shares in the statistic, shape (N,).
    """
    return _above_noise(
        (column, correlation, int(np.count_nonzero(shares)), id(shares))
        for column, shares in checked
        if (correlation := Intraclass.of(shares, column.clusters)) is not None
    )


def _above_noise(
    checked: Iterable[tuple[_Column, Intraclass, int, int]],
) -> Iterator[tuple[_Column, Intraclass]]:
    """Yield the columns to report; each has the number of nonzero shares, and that of the pair of runs."""
    found = list(checked)
    n_called = sum(column.is_called for column, *_ in found)
    reported: set[tuple[int, int, float, float]] = set()
    for column, correlation, n_nonzero, pair in found:
        level = LEVEL / 2 / (n_called if column.is_called else len(found) - n_called)
        is_clear = correlation.pvalue <= level and n_nonzero >= FEWEST_DISCORDANT
        matters = is_clear and correlation.design_effect >= MATTERS
        same = pair, correlation.n_clusters, round(correlation.size, 9), round(correlation.icc, 9)
        if same not in reported and (matters or (column.is_input and correlation.size >= MATTERS)):
            reported.add(same)
            yield column, correlation


def shares_of(pairing: Pairing | PairedRun) -> npt.NDArray[np.float64] | None:
    """Return the share of each example in the statistic, to first order; None where it has no value."""
    if pairing.statistic.rank_score is not None:
        return _shares_of_ranks(pairing)
    try:
        counts = pairing.by_unit()
    except InputError:
        return None
    weights = np.bincount(counts.rows, minlength=len(counts.candidate))
    shares = shares_of_counts(pairing.statistic, counts.candidate, counts.baseline, weights)
    return None if shares is None else shares[counts.rows]


def _shares_of_ranks(pairing: Pairing | PairedRun) -> npt.NDArray[np.float64] | None:
    """Return half the change of a rank statistic by exchanging each example; None if that takes long."""
    counts = pairing.counts
    candidate, baseline = (
        counts.frame.select(f"{run}.{name}" for name in counts.names).to_numpy().astype(np.int64)
        for run in ("candidate", "baseline")
    )
    table = CountTable(counts.names, candidate, baseline, np.ones(len(candidate), dtype=np.int64))
    ranked, scores = ranked_examples(pairing.statistic, table)
    if ranked.n_coins * scores.n_slots > MOST_SLOTS and scores.linear is None:
        return None
    shares = np.zeros(ranked.n)
    shares[ranked.coins >= 0] = changes_by_coin(scores, ranked)[ranked.coins[ranked.coins >= 0]]
    return shares
