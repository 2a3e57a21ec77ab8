"""Detection of dependent examples in a leaderboard, with one note for all of its runs."""

from __future__ import annotations

from trackperm.comparison.assumptions.dependence import above_noise, shares_of
from trackperm.comparison.assumptions.intraclass import Intraclass
from trackperm.leaderboards.paired_runs import PairedRuns
from trackperm.pairing.cluster_columns import cluster_columns

MOST_RUNS = 20
"""Most runs that are checked beside the reference run.

Dependence belongs to the examples: more runs cost time and level, and rarely show another column.
"""


def clusters_seen(paired: PairedRuns) -> list[str]:
    """Return notes on columns whose groups of examples are dependent, with the number of pairs that show it.

    The columns are those that the reference run shares with another run. Each run is compared with the
    reference run by the rules of :mod:`trackperm.comparison.assumptions.dependence`, and all runs share its
    level.
    """
    others = [entry for entry in paired.entries if entry.data.name != paired.reference.name][:MOST_RUNS]
    statistic = paired.statistic
    if not others or statistic.cluster is not None:
        return []
    ids = others[0].pairing.counts.frame.get_column("id").unique(maintain_order=True)
    by_position = others[0].pairing.report.by == "position"
    columns = cluster_columns(
        paired.reference.table, others[0].data.table, statistic, ids, by_position=by_position
    )
    if not columns:
        return []
    shares = [found for entry in others if (found := shares_of(entry.pairing)) is not None]
    seen: dict[str, list[Intraclass]] = {}
    for column, correlation in above_noise((column, found) for found in shares for column in columns):
        seen.setdefault(column.name, []).append(correlation)
    return [
        f"look: the differences between runs are correlated within each `{name}` (intra-class correlation up"
        f" to {max(each.icc for each in found):.2f}, design effect up to"
        f" {max(each.design_effect for each in found):.1f}, in {len(found)} of {len(shares)} pairs with"
        f" `{paired.reference.name}`), but the p-values assume independence; `--cluster {name}` tests whole"
        " clusters"
        for name, found in seen.items()
    ]
