"""The cells of a leaderboard as text, the same in every format, and what is said around the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from trackperm.comparison.verdict import MARKERS
from trackperm.leaderboards import Leaderboard, Pair, Row
from trackperm.report.text import EXACT_WITHIN, direction, ends, format_number, one_sided

STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
"""Levels of the adjusted p-value below which so many stars stand."""

DAGGER = "†"
"""Stands beside an interval that holds 0 although its row is decided."""

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
    """Name the column of intervals by their confidence, and what they promise together."""
    promise = f"{board.interval_promise} " if board.interval_promise else ""
    return f"{promise}{confidence(board)} interval"


def confidence(board: Leaderboard) -> str:
    """Write the confidence that the intervals have together."""
    return f"{float(100 * (1 - Decimal(repr(board.alpha)))):.10g} %"


def interval(row: Row) -> str:
    """Write the interval for the difference, with a dagger where it holds 0 although the row is decided."""
    return "" if row.interval is None else f"{ends(row.interval)}{DAGGER * row.holds_zero}"


def verdict(board: Leaderboard, place: int) -> str:
    """Write the marker of a row; the run that others are compared with has its role."""
    pair = board.rows[place].pair
    if pair is not None:
        return MARKERS[pair.verdict]
    return "best" if board.baseline is None else "baseline"


def adjusted(board: Leaderboard, pair: Pair, digits: int = 3) -> str:
    """Write the adjusted p-value, never as 0, on its side of alpha, and as what it is if by Monte Carlo."""
    corrected = replace(pair.test, pvalue=pair.adjusted, log10_pvalue=pair.log10_adjusted)
    found = corrected.format_pvalue(digits, board.alpha)
    return f"≈{found} MC" if board.is_drawn(pair) else found


def certainty(board: Leaderboard, pair: Pair) -> str:
    """Say what is known of the error of an adjusted p-value, in a word or two."""
    if board.is_drawn(pair):
        return "Monte Carlo"
    return "exact" if pair.test.error_bound <= EXACT_WITHIN else "certified upper end"


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
    name = f"{board.statistic.name}{direction(board.statistic)}"
    against = "all pairs" if board.baseline is None else f"against `{board.rows[board.baseline].name}`"
    return (
        f"{name}: {len(board.rows)} runs on {n} {unit}{'' if n == 1 else 's'}, {against}, "
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
    n_exact, others = len(board.pairs) - len(uncertain), len(uncertain) - methods["monte-carlo"]
    found = [f"{n_exact} exact" if uncertain else "exact"] if n_exact else []
    if methods["monte-carlo"]:
        found.append(
            f"{methods['monte-carlo']} by Monte Carlo, of which the upper end of the 99 % interval counts"
        )
    if others:
        found.append(f"{others} by certified upper ends")
    return (
        f"p-values: {', '.join(found)}, {board.alternative}, adjusted by {rule.title} for {len(board.pairs)} "
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
    sentences += _intervals(board, other)
    if board.alternative != "two-sided":
        sentences.append(one_sided(board.alternative))
    return sentences


def _intervals(board: Leaderboard, other: str) -> list[str]:
    """Say what the intervals promise, and where they and the verdicts part."""
    used = [row.interval for row in board.rows if row.interval is not None]
    if not used:
        return []
    kinds = ", ".join(sorted({found.method for found in used}))
    about = "about " if any(found.approximate for found in used) else ""
    m, each = len(board.pairs), f"{about}{100 * (1 - board.interval_level):.6g} % each"
    found = [f"{confidence(board)} intervals ({kinds}): for the difference to {other}"]
    if board.interval_promise == "simultaneous":
        found = [
            f"simultaneous {confidence(board)} intervals ({kinds}): for the difference to {other}, {each}, so"
            f" that those of all {m} comparisons cover at once (Bonferroni); an undecided row's holds 0"
        ]
    elif board.interval_promise:
        decided = sum(pair.verdict != "undecided" for pair in board.pairs)
        found = [
            f"FCR {confidence(board)} intervals ({kinds}): for the difference to {other}, {each}; of those"
            f" of the {decided} decided pairs the expected share that misses is at most {board.alpha:g}; they"
            " are not simultaneous, and an undecided row's holds 0"
        ]
    if any(row.holds_zero for row in board.rows):
        why = "the interval is approximate"
        if board.correction.name == "holm":
            why = "Holm's later steps decide the sign by less than an interval for all sizes at once takes"
        found.append(f"{DAGGER} the row is decided, and its interval holds 0: {why}")
    return found


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
