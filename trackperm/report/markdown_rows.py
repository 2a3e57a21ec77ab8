"""Rows of a Markdown table of several comparisons: scores, interval, p-value and verdict."""

from __future__ import annotations

from collections.abc import Sequence

from trackperm.comparison import Comparison
from trackperm.report import phrases
from trackperm.report.formatting import escape_markdown

HEADER = "statistic | baseline | candidate | difference | interval | p | verdict |"
ALIGNMENT = "---|---:|---:|---:|---|---|---|"
"""First two lines of the table, without the bar at their beginning, before which another column may stand."""


def table_of(comparisons: Sequence[Comparison]) -> str:
    """Return the table of several comparisons, in which names cannot act as markup."""
    rows = [cells(each, escape_markdown(each.title)) for each in comparisons]
    return "\n".join([f"| {HEADER}", f"|{ALIGNMENT}", *(f"| {' | '.join(row)} |" for row in rows)])


def cells(comparison: Comparison, title: str) -> list[str]:
    """Return the cells of a comparison, the first one with `title`, which is Markdown."""
    values = dict(phrases.scores(comparison))
    intervals = [f"{ends} ({name})" for name, ends in phrases.intervals(comparison)]
    return [
        f"{title}{phrases.direction(comparison.statistic)}",
        values.get("baseline", ""),
        values.get("candidate", ""),
        values.get("difference", values.get("observed", "")),
        "<br>".join(intervals) or f"none: {escape_markdown(comparison.interval_unavailable or '')}",
        _pvalue(comparison),
        f"{comparison.marker} {comparison.verdict}",
    ]


def _pvalue(comparison: Comparison) -> str:
    if comparison.verdict == "equivalent":
        return f"{phrases.equivalence(comparison).removeprefix('p = ')} (equivalence)"
    found = phrases.bare_pvalue(comparison)
    kinds = (phrases.certainty_word(comparison.test), phrases.one_sided_word(comparison.test.alternative))
    if any(kinds):
        found += f" ({', '.join(filter(None, kinds))})"
    if comparison.n_uncorrected is not None:
        return f"{found} (uncorrected)"
    if comparison.corrected is None:
        return found
    return f"{found} (adjusted {phrases.adjusted_pvalue(comparison)})"
