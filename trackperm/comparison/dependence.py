"""Examples that hang together, as far as the runs show it: what a test of examples takes for independent.

Exchanging the outputs of single examples asks that what tells the runs apart on one example says nothing of
another. Where examples share a document, and the documents suit one run or the other, it says much: at a
design effect of 3, a p-value below 0.05 comes up every fourth time by chance. Nothing is changed by what is
seen here; it is said, with the p-value of the test that exchanges whole clusters.

What tells the runs apart on an example is its share in the statistic: of a mean, the difference of the
scores; of others, to first order, the change that exchanging its outputs makes where the runs are alike.
Columns that are looked at share a chance of :data:`LEVEL` that anything is said of examples which are
independent: one half is for those that are called as clusters are, and each half is divided evenly
(Bonferroni). Inputs that stand there several times are said in any case, where they matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trackperm.comparison.intraclass import Intraclass
from trackperm.comparison.runs import RunData
from trackperm.comparison.verdict import Sign
from trackperm.errors import InputError
from trackperm.exact import RationalStatistic
from trackperm.exact.result import format_pvalue
from trackperm.pairing import Pairing
from trackperm.pairing.checks.suspicions import shared_input
from trackperm.pairing.cluster_columns import ClusterColumn, cluster_columns
from trackperm.pairing.many_runs import PairedRun

LEVEL = 0.01
"""Chance, at most, that anything is said of examples which are independent of each other."""

MATTERS = 1.1
"""Design effect from which on something is said: a test at the level 0.05 has the size 0.062 there."""

MOST_SAID = 2
"""Columns of which something is said: those with the largest design effects."""

MOST_EXAMPLES = 200_000
"""Examples up to which clusters are looked for."""

MOST_CELLS = 2**22
"""Counts of one run up to which it is computed what each example adds to the statistic."""

FEWEST_DISCORDANT = 8
"""Examples that tell the runs apart, below which nothing shows how alike those of a cluster are."""

_STEP = 1e-6
"""Relative distance over which slopes are taken."""


@dataclass(frozen=True)
class Dependence:
    """Examples that hang together by a column.

    Attributes
    ----------
    column : str
        Its values are the clusters.
    n_clusters : int
        How many there are.
    n_shared, n_examples : int
        Number of examples that share theirs with another, and of all.
    is_input : bool
        Whether they share their whole input.
    icc : float
        Intra-class correlation of what tells the runs apart, by analysis of variance.
    design_effect : float
        By how much it makes the variance of the statistic larger.
    pvalue : float or None
        That of the test which exchanges whole clusters; None where there is no such test, or 0 in floats.
    log10_pvalue : float or None
        Its decimal logarithm, also where the p-value is below the range of floats.
    method : str or None
        The engine that computed it.
    verdict : {'better', 'worse', 'undecided'} or None
        On the sign, of this p-value alone.
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

    def sentence(self, name: str, alpha: float) -> str:
        """Say it without a full stop, the p-value by `name` and so that its side of `alpha` shows."""
        size = f"design effect {self.design_effect:.1f}"
        if self.is_input:
            found = f"{shared_input(self.n_shared, self.n_examples, self.column)} (intra-class correlation"
            found += f" of what tells the runs apart {self.icc:.2f}, {size})"
        else:
            found = f"examples of one `{self.column}` are alike in what tells the runs apart"
            found += f" (intra-class correlation {self.icc:.2f}, {size})"
        if self.log10_pvalue is None:
            return found
        shown = format_pvalue(self.pvalue or 0.0, self.log10_pvalue, 3, alpha)
        sign = {"monte-carlo": "≈", "bracket": "≤"}.get(self.method or "", "=")
        drawn = " (Monte Carlo)" if self.method == "monte-carlo" else ""
        return f"{found}: by `{self.column}`, {name} {sign} {shown}{drawn}"


def dependence_of(baseline: RunData, candidate: RunData, pairing: Pairing) -> tuple[Dependence, ...]:
    """Return the columns by which examples hang together, the largest design effects first, without p-values.

    Parameters
    ----------
    baseline, candidate : RunData
        The runs, with all their columns.
    pairing : Pairing
        How they were paired: by id, and without clusters.
    """
    statistic = pairing.statistic
    if len(pairing.counts.frame) > MOST_EXAMPLES or pairing.count_table.n_discordant == 0:
        return ()
    ids = pairing.counts.frame.get_column("id")
    columns = cluster_columns(baseline.table, candidate.table, statistic, ids.unique(maintain_order=True))
    if not columns:
        return ()
    shares = shares_of(pairing)
    if shares is None:
        return ()
    seen = [
        Dependence(
            column=column.name,
            n_clusters=found.n_clusters,
            n_shared=column.n_shared,
            n_examples=shares.size,
            is_input=column.is_input,
            icc=found.icc,
            design_effect=found.design_effect,
        )
        for column, found in above_noise((column, shares) for column in columns)
    ]
    return tuple(sorted(seen, key=lambda each: -each.design_effect)[:MOST_SAID])


def above_noise(
    looked_at: Iterable[tuple[ClusterColumn, npt.NDArray[np.float64]]],
) -> Iterator[tuple[ClusterColumn, Intraclass]]:
    """Yield the columns of which something is to be said, each set of clusters once.

    Parameters
    ----------
    looked_at : iterable of (ClusterColumn, ndarray of float64)
        All columns that are looked at, each with what examples add to the statistic.
    """
    found = [
        (column, alike, shares)
        for column, shares in looked_at
        if (alike := Intraclass.of(shares, column.clusters)) is not None
    ]
    n_called = sum(column.is_called for column, *_ in found)
    said: set[tuple[int, int, float, float]] = set()
    for column, alike, shares in found:
        level = LEVEL / 2 / (n_called if column.is_called else len(found) - n_called)
        is_clear = alike.pvalue <= level and np.count_nonzero(shares) >= FEWEST_DISCORDANT
        is_said = is_clear and alike.design_effect >= MATTERS
        same = id(shares), alike.n_clusters, round(alike.size, 9), round(alike.icc, 9)
        if same not in said and (is_said or (column.is_input and alike.size >= MATTERS)):
            said.add(same)
            yield column, alike


def shares_of(pairing: Pairing | PairedRun) -> npt.NDArray[np.float64] | None:
    """Return what each example adds to the statistic, to first order; None where that has no value.

    With a the sums of g as the runs are, b those with all outputs exchanged, and c = (a + b) / 2, where the
    runs are alike, h(a) is near grad h(c) . (a - c): the sum of grad h(c) . (a_i - b_i) / 2 over examples.
    """
    try:
        counts = pairing.by_unit()
    except InputError:
        return None
    if counts.candidate.size > MOST_CELLS:
        return None
    statistic = pairing.statistic
    observed, swapped = (g.astype(np.float64) for g in statistic.pairs(counts.candidate, counts.baseline))
    weights = np.bincount(counts.rows, minlength=len(observed))
    centre = weights @ (observed + swapped) / 2.0
    steps = _STEP * np.maximum(np.abs(centre), 1.0)
    points = centre + np.concatenate([np.diag(steps), -np.diag(steps)])
    h = statistic.h
    values = h.values(points) if isinstance(h, RationalStatistic) else h(points)
    up, down = np.broadcast_to(values, len(points)).reshape(2, -1)
    slopes = (up - down) / (2.0 * steps)
    if not np.isfinite(slopes).all():
        return None
    return ((observed - swapped) @ slopes / 2.0)[counts.rows]
