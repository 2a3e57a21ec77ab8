"""The cells of a leaderboard as text, the same in every format, and what is said around the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trackperm.comparison.verdict import MARKERS
from trackperm.leaderboards import Leaderboard, Pair, Row
from trackperm.report.text import EXACT_WITHIN, format_number

STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
"""Levels of the adjusted p-value below which so many stars stand."""

SCOPE = "these runs on these examples; not other seeds, prompts or test sets"


@dataclass(frozen=True)
class Cells:
    """A table of text.

    Attributes
    ----------
    header : tuple of str
        Names of the columns.
    rows : list of tuple of str
        One for each run.
    numeric : tuple of bool
        Which columns are aligned to the right.
    """

    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    numeric: tuple[bool, ...]


def cells(board: Leaderboard, *, stars: bool = False) -> Cells:
    """Write every row: rank, run, score, difference, interval, verdict with adjusted p, group, rank range.

    Columns that nothing stands in are left out.
    """
    columns = {
        "rank": [f"{row.rank}" for row in board.rows],
        "run": [row.name for row in board.rows],
        board.statistic.name: [format_number(row.score) for row in board.rows],
        "difference": [
            "" if row.pair is None else format_number(row.pair.difference, sign=True) for row in board.rows
        ],
        interval_name(board): [interval(row) for row in board.rows],
        "verdict": [verdict(board, i) for i in range(len(board.rows))],
        "adjusted p": [
            "" if row.pair is None else adjusted(board, row.pair) + (star(row.pair) if stars else "")
            for row in board.rows
        ],
        "group": [row.letters or "" for row in board.rows],
        "possible ranks": [ranks(row) for row in board.rows],
    }
    kept = {name: values for name, values in columns.items() if any(values)}
    numeric = ("rank", board.statistic.name, "difference", "adjusted p")
    return Cells(tuple(kept), list(zip(*kept.values(), strict=True)), tuple(name in numeric for name in kept))


def interval_name(board: Leaderboard) -> str:
    """Name the column of intervals by their confidence."""
    confidence = next((row.interval.confidence for row in board.rows if row.interval is not None), None)
    return "interval" if confidence is None else f"{100 * confidence:g} % interval"


def interval(row: Row) -> str:
    """Write the interval for the difference; infinite ends in words of the number line."""
    if row.interval is None:
        return ""
    low, high = (format_number(end, sign=True) for end in (row.interval.low, row.interval.high))
    return f"[{low}, {high}]"


def verdict(board: Leaderboard, place: int) -> str:
    """Write the marker of a row; the run that others are compared with has its role."""
    pair = board.rows[place].pair
    if pair is not None:
        return MARKERS[pair.verdict]
    return "best" if board.baseline is None else "baseline"


def adjusted(board: Leaderboard, pair: Pair, digits: int = 3) -> str:
    """Write the adjusted p-value, never as 0, and on its side of alpha."""
    corrected = replace(pair.test, pvalue=pair.adjusted, log10_pvalue=pair.log10_adjusted)
    return corrected.format_pvalue(digits, board.alpha)


def star(pair: Pair) -> str:
    """Write the stars of an adjusted p-value."""
    return next((stars for level, stars in STARS if pair.adjusted < level), "")


def ranks(row: Row) -> str:
    """Write the possible ranks."""
    if row.ranks is None:
        return ""
    low, high = row.ranks
    return f"{low}" if low == high else f"{low}-{high}"


def summary(board: Leaderboard) -> str:
    """Say what was compared: statistic, runs, examples, comparisons."""
    n, unit = board.n_examples, "example" if board.statistic.cluster is None else "cluster"
    against = "all pairs" if board.baseline is None else f"against `{board.rows[board.baseline].name}`"
    return (
        f"{board.statistic.name}: {len(board.rows)} runs on {n} {unit}{'' if n == 1 else 's'}, {against}, "
        f"{len(board.pairs)} comparison{'' if len(board.pairs) == 1 else 's'}"
    )


def method(board: Leaderboard) -> str:
    """Say how p-values were computed and corrected, and what that bounds."""
    rule = board.correction
    bound = {
        "FWER": "the probability of any false difference",
        "FDR": "the expected share of false ones among the verdicts",
    }[rule.controls]
    methods = Counter(pair.test.method for pair in board.pairs)
    uncertain = [
        pair
        for pair in board.pairs
        if pair.test.method == "monte-carlo" or pair.test.error_bound > EXACT_WITHIN
    ]
    certainty = "exact" if not uncertain else f"{len(board.pairs) - len(uncertain)} exact"
    if methods["monte-carlo"]:
        drawn = f"{methods['monte-carlo']} by Monte Carlo, of which the upper end of the 99 % interval counts"
        certainty += f", {drawn}"
    others = len(uncertain) - methods["monte-carlo"]
    if others:
        certainty += f", {others} by certified upper ends"
    return (
        f"p-values: {certainty}, {board.alternative}, adjusted by {rule.title} for {len(board.pairs)} "
        f"comparison{'' if len(board.pairs) == 1 else 's'}; {bound} is at most {board.alpha:g}"
        + (", apart from what these 99 % intervals miss" if methods["monte-carlo"] else "")
    )


def legend(board: Leaderboard) -> list[str]:
    """Say what the columns mean."""
    other = "the best run" if board.baseline is None else "the baseline"
    sentences = [f"▲ better, ▼ worse than {other}; ≈ undecided, which is no proof of equality"]
    if board.baseline is None:
        sentences.append("two runs share a letter exactly when they are not shown to differ")
    if any(row.ranks is not None for row in board.rows):
        sentences.append(
            "possible ranks: those that no significant difference rules out, "
            f"together for all runs at level {board.alpha:g}"
        )
    used = [row.interval for row in board.rows if row.interval is not None]
    if used:
        kinds = ", ".join(sorted({found.method for found in used}))
        sentences.append(
            f"intervals ({kinds}): for the difference to {other}, each by itself, not corrected for others"
            + (", nor for the best run having been chosen by its score" if board.baseline is None else "")
        )
    if any(found.relation == "may disagree" for found in used):
        sentences.append("intervals that are approximate may disagree with p")
    if not board.statistic.greater_is_better:
        sentences.append("less is better")
    return sentences


def notes(board: Leaderboard) -> list[str]:
    """List what a reader must know beyond the table."""
    found = []
    if board.missing == "drop" and board.n_examples < board.n_largest:
        found.append(
            f"tested on the {board.n_examples} examples that all runs have; the largest has {board.n_largest}"
        )
    if board.missing == "wrong":
        found.append("examples that any run has are counted in all; missing predictions count as wrong")
    if board.paired_by == "position":
        found.append("paired by position: nothing proves that the rows are the same examples")
    for group in clone_groups(board):
        found.append(f"clones, with the same counts on every example: {', '.join(group)}")
    return [*found, *board.notes]


def clone_groups(board: Leaderboard) -> list[tuple[str, ...]]:
    """Return the names of runs that are copies of each other, group by group."""
    groups = {
        tuple(other.name for other in board.rows if other.name == row.name or other.name in row.clones)
        for row in board.rows
        if row.clones
    }
    return sorted(groups)


def incomplete(board: Leaderboard) -> Sequence[tuple[str, str]]:
    """Return names of runs that are not in the family, and the first sentence of why."""
    return [(run.name, " ".join(run.reason.split())) for run in board.incomplete]
