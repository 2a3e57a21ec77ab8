"""Tables of test families: lines for a terminal, and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from trackperm.choices import CorrectionOfLogged
from trackperm.exact.result import format_log10_pvalue
from trackperm.ledger.entries import LedgerEntry, TestFamily
from trackperm.messages import amount, printable
from trackperm.report.formatting import aligned, shorten

_DIGEST = 12  # digits of a test set
_WIDEST = 80  # characters of a comparison's name


def family_lines(family: TestFamily, method: CorrectionOfLogged, *, spend: bool) -> Iterator[str]:
    """Yield a family as lines: a heading, one row per entry, and notes."""
    data = family.to_dict(method, spend=spend)
    n, left = family.n_comparisons, sum(entry.n_pairs for entry in family.entries if not entry.is_finished)
    boards = [entry for entry in family.entries if entry.is_leaderboard]
    of_pairs = f", {sum(entry.n_pairs for entry in boards)} of them pairs of leaderboards" if boards else ""
    state = f", {left} of them unfinished and not adjusted" if left else ""
    yield f"test set {family.test_set[:_DIGEST]}: {amount(n, 'logged comparison')}{of_pairs}{state}"
    columns = {method: family.adjusted(method), **({"spent": family.spent()} if spend else {})}
    rows = [("", "begun (UTC)", "comparison", "p", *columns, "verdict")]
    for entry in family.entries:
        adjusted = [_written(values.get(entry.number)) for values in columns.values()]
        last = f"-{entry.number + entry.n_pairs - 1}" if entry.n_pairs > 1 else ""
        rows.append(
            (f"{entry.number}{last}", *_described(entry), *adjusted, entry.tag("verdict") * entry.is_finished)
        )
    yield from aligned([[printable(cell) for cell in row] for row in rows], right={0})
    yield from data["adjustments"]
    yield from data["notes"]


def families_csv(families: list[TestFamily], method: CorrectionOfLogged, *, spend: bool) -> str:
    """Render families as CSV: one row per entry, without the pairs of leaderboards."""
    rows = [
        {"test_set": family.test_set, **{name: value for name, value in entry.items() if name != "pairs"}}
        for family in families
        for entry in family.to_dict(method, spend=spend)["comparisons"]
    ]
    written = io.StringIO()
    table = csv.DictWriter(written, rows[0] if rows else (), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return written.getvalue()


def _described(entry: LedgerEntry) -> tuple[str, str, str]:
    begun = "" if entry.created is None else entry.created.strftime("%Y-%m-%d %H:%M:%S")
    name = shorten(entry.run.name, _WIDEST)
    if entry.is_leaderboard:
        name += f", {amount(entry.n_pairs, 'pair')}"
    return begun, name, _pvalue(entry)


def _pvalue(entry: LedgerEntry) -> str:
    written = _written(entry.log10_pvalue)
    if not written:
        return "unreadable" if entry.is_finished else "unfinished"
    signature = entry.tag("signature")
    if "|method:tilted|" in signature or "|method:bracket|" in signature:
        return f"≤{written}"
    return f"≈{written} MC" if "|method:monte-carlo|" in signature else written


def _written(log10_pvalue: float | None) -> str:
    return "" if log10_pvalue is None else format_log10_pvalue(log10_pvalue)
