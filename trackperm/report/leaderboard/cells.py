"""Cells of a leaderboard as text, the same in every format, and the sentences around the table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal

from trackperm.comparison.inference.verdict import MARKERS, Sign
from trackperm.exact.result import EXACT_WITHIN, format_pvalue
from trackperm.leaderboards import Leaderboard, Pair, Row
from trackperm.messages import amount
from trackperm.report.fitting_names import shorten_in_the_middle
from trackperm.report.numbers import extra_digits, format_difference, format_number
from trackperm.report.phrases import direction, ends, one_sided, one_sided_word, sides

STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
"""Stars of adjusted p-values below each level."""

DAGGER = "†"
"""Mark of an interval that contains 0 although its row is decided."""

_ONE_BY_ONE = 3
"""Most excluded runs that are listed one by one for the same reason; an experiment may have thousands."""

MOST_GROUPS = 10
"""Groups that letters show; the possible ranks of more are easier to read."""

_MOST_HINTS = 3

_INDENTED = re.compile(r":?\n*(?:\n {4}(?!`).*)+")
_OF_RUNS = re.compile(r"(\n*)\n {4}`")

_IN_HEADLINE = 60
"""Characters of a name in the headline."""

_CAUTION = re.compile(
    r"(?:^|: )look: |missing predictions? count|^tested on the |^examples of any run |^paired by position"
)

SCOPE = "these runs on these examples; not other seeds, prompts or test sets"


@dataclass(frozen=True)
class Cells:
    """Table of text.

    Attributes
    ----------
    header : tuple of str
        Names of the columns.
    rows : list of tuple of str
        One row per run.
    numeric : tuple of bool
        Whether each column is aligned to the right.
    """

    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    numeric: tuple[bool, ...]

    def only(self, names: Collection[str]) -> Cells:
        """Keep the columns with these names, in their order."""
        places = [i for i, name in enumerate(self.header) if name in names]
        rows = [tuple(row[i] for i in places) for row in self.rows]
        return Cells(tuple(self.header[i] for i in places), rows, tuple(self.numeric[i] for i in places))

    def without(self, names: Collection[str]) -> Cells:
        """Leave out the columns with these names."""
        return self.only([name for name in self.header if name not in names])


def cells(board: Leaderboard, *, stars: bool = False, names: Sequence[str] | None = None) -> Cells:
    """Return all rows: rank, run, score, difference, interval, verdict, adjusted p, group, possible ranks.

    Empty columns are left out, and so are groups if they are too many to read. `names` are shown in place of
    the names of the runs.
    """
    extra = score_digits(board)
    columns = {
        "rank": [f"{row.rank}" for row in board.rows],
        "run": [row.name for row in board.rows] if names is None else list(names),
        board.statistic.title: [format_number(row.score, extra=extra) for row in board.rows],
        "difference": [
            "" if row.pair is None else format_difference(row.pair.difference, extra=extra)
            for row in board.rows
        ],
        interval_name(board): [interval(row) for row in board.rows],
        "verdict": [verdict(board, i) for i in range(len(board.rows))],
        pvalue_name(board): [
            "" if row.pair is None else adjusted(board, row.pair) + (star(row.pair) if stars else "")
            for row in board.rows
        ],
        "group": [row.letters or "" for row in board.rows] if shows_groups(board) else [],
        "possible ranks": [ranks(row) for row in board.rows],
    }
    kept = {name: values for name, values in columns.items() if any(values)}
    numeric = ("rank", board.statistic.title, "difference", pvalue_name(board))
    return Cells(tuple(kept), list(zip(*kept.values(), strict=True)), tuple(name in numeric for name in kept))


def score_digits(board: Leaderboard) -> int:
    """Return how many digits the scores need beyond the usual ones, so that unequal ones look unequal."""
    rows = board.rows
    other = rows[0 if board.baseline is None else board.baseline].score
    return extra_digits([row.score for row in rows], [(row.score, other) for row in rows])


def interval_name(board: Leaderboard) -> str:
    """Return the name of the interval column, with the confidence and the joint guarantee."""
    promise = f"{board.interval_promise} " if board.interval_promise else ""
    return f"{promise}{confidence(board)} interval"


def confidence(board: Leaderboard) -> str:
    """Return the joint confidence of the intervals, after ``one-sided`` if they are."""
    found = f"{float(100 * (1 - Decimal(repr(board.alpha)))):.10g} %"
    return " ".join(filter(None, (one_sided_word(board.alternative), found)))


def pvalue_name(board: Leaderboard) -> str:
    """Return the name of the column of p-values: ``adjusted p``, and ``one-sided`` if they are."""
    return " ".join(filter(None, (one_sided_word(board.alternative), "adjusted p")))


def interval(row: Row) -> str:
    """Return the interval of a row, with a dagger if it holds 0 although the row is decided."""
    return "" if row.interval is None else f"{ends(row.interval)}{DAGGER * row.holds_zero}"


def verdict(board: Leaderboard, place: int) -> str:
    """Return the verdict of a row with its marker, or the role of the run that others are compared with."""
    pair = board.rows[place].pair
    return role(board, place) if pair is None else f"{MARKERS[pair.verdict]} {pair.verdict}"


def role(board: Leaderboard, place: int) -> str:
    """Return the verdict of a row, or ``best`` or ``baseline`` for the run that others are compared with."""
    pair = board.rows[place].pair
    if pair is not None:
        return pair.verdict
    return "best" if board.baseline is None else "baseline"


def shows_groups(board: Leaderboard) -> bool:
    """Whether letters show the groups: at most :data:`MOST_GROUPS`, or nothing else shows them."""
    letters = set("".join(row.letters or "" for row in board.rows)) - {" "}
    return len(letters) <= MOST_GROUPS or all(row.ranks is None for row in board.rows)


def adjusted(board: Leaderboard, pair: Pair, digits: int = 3) -> str:
    """Return the adjusted p-value, never rounded to 0 or across alpha, and marked if it is not exact."""
    relation = board.relation(pair)
    found = format_pvalue(pair.adjusted, pair.log10_adjusted, digits, board.alpha, relation)
    return {"≈": f"≈{found} MC", "≤": f"≤{found}", "=": found}[relation]


def certainty(board: Leaderboard, pair: Pair) -> str:
    """Return the certainty of an adjusted p-value in a word or two."""
    relation = board.relation(pair)
    if relation == "≈":
        return "Monte Carlo"
    if relation == "≤" and pair.log10_adjusted in {
        each.log10_adjusted for each in board.pairs if each.test.method == "tilted"
    }:
        return "valid"
    return "exact" if pair.test.error_bound <= EXACT_WITHIN and relation == "=" else "certified upper end"


def star(pair: Pair) -> str:
    """Return the stars of an adjusted p-value."""
    return next((stars for level, stars in STARS if pair.adjusted < level), "")


def ranks(row: Row) -> str:
    """Return the possible ranks of a row."""
    if row.ranks is None:
        return ""
    low, high = row.ranks
    return f"{low}" if low == high else f"{low}-{high}"


def finding(board: Leaderboard) -> str:
    """Return what the leaderboard shows, as a headline: the runs that are told from the best, or baseline.

    It ends with the number of runs that were not compared: one of them may be the best.
    """
    found = _finding_of_all(board) if board.baseline is None else _finding_against_baseline(board)
    return f"{found}; {not_compared}" if (not_compared := _not_compared(board)) else found


def _not_compared(board: Leaderboard) -> str:
    n = len(board.incomplete)
    return f"{n:,} of {n + len(board.rows):,} runs {_are(n)} not compared" if n else ""


def _finding_of_all(board: Leaderboard) -> str:
    n, open_ = len(board.rows), _n_rows(board, "undecided")
    best = _in_headline(board.rows[0])
    if n == 2:
        other = _in_headline(board.rows[1])
        return f"{best} and {other} cannot be told apart" if open_ else f"{best} is better than {other}"
    if not open_:
        return f"{best} is better than {'both' if n == 3 else f'all {n - 1}'} others"
    if open_ == n - 1:
        none = "neither" if n == 3 else "none"
        return f"No run is shown to be the best: {none} of the other {n - 1} can be told from the first"
    return f"{open_} of the other {n - 1} runs cannot be told from the best"


def _finding_against_baseline(board: Leaderboard) -> str:
    better, worse, open_ = (_n_rows(board, verdict) for verdict in ("better", "worse", "undecided"))
    n = len(board.rows) - 1
    shown = {"two-sided": "different from", "greater": "better than", "less": "worse than"}
    if not board.statistic.greater_is_better:
        shown |= {"greater": "worse than", "less": "better than"}
    if n == 1:
        (other,) = (_in_headline(row) for row in board.rows if row.pair is not None)
        if open_:
            return f"{other} is not shown to be {shown[board.alternative]} the baseline"
        return f"{other} is {'better' if better else 'worse'} than the baseline"
    if open_ == n:
        return f"None of {n} runs is shown to be {shown[board.alternative]} the baseline"
    counts = [f"{k} {_are(k)} {word}" for k, word in ((worse, "worse"), (open_, "undecided")) if k]
    first = f"{better} of {n} runs {_are(better)}" if better else f"None of {n} runs is shown to be"
    return ", ".join([f"{first} better than the baseline", *counts])


def lead(board: Leaderboard) -> str:
    """Return who is first, and what an undecided difference means, as a sentence without a full stop."""
    statistic = f"{board.statistic.title}{direction(board.statistic)}"
    if board.baseline is None:
        ties = sum(row.rank == 1 for row in board.rows) - 1
        others = f" and {ties} other{'s' if ties > 1 else ''}" if ties else ""
        score = format_number(board.rows[0].score, extra=score_digits(board))
        found = f"the best {statistic} is {score}, of {' '.join(board.rows[0].name.split())}{others}"
    else:
        row = board.rows[board.baseline]
        name = " ".join(row.name.split())
        score = format_number(row.score, extra=score_digits(board))
        found = f"the baseline {name} has {statistic} {score}, rank {row.rank}"
    if not _n_rows(board, "undecided"):
        return found
    return f"{found}; an undecided run is neither shown to differ from it nor shown to equal it"


def _in_headline(row: Row) -> str:
    return shorten_in_the_middle(" ".join(row.name.split()), _IN_HEADLINE)


def _n_rows(board: Leaderboard, verdict: Sign) -> int:
    return sum(row.pair is not None and row.pair.verdict == verdict for row in board.rows)


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def summary(board: Leaderboard) -> str:
    """Return what was compared, as a sentence: statistic, runs, examples, comparisons."""
    unit = "example" if board.statistic.cluster is None else "cluster"
    name = f"{board.statistic.title}{direction(board.statistic)}"
    against = "all pairs" if board.baseline is None else f"against `{board.rows[board.baseline].name}`"
    return (
        f"{name}: {len(board.rows)} runs on {amount(board.n_examples, unit)}, {against}, "
        f"{amount(len(board.pairs), 'comparison')}"
    )


def method(board: Leaderboard) -> str:
    """Return how p-values were computed and corrected, and what that bounds, as a sentence."""
    rule = board.correction
    bound = {
        "FWER": "the probability of any false difference",
        "FDR": "the expected share of false ones among the verdicts",
    }[rule.controls]
    methods = Counter(pair.test.method for pair in board.pairs)
    uncertain = [pair for pair in board.pairs if pair.test.error_bound > EXACT_WITHIN]
    n_exact = len(board.pairs) - len(uncertain)
    others = len(uncertain) - methods["monte-carlo"] - methods["tilted"]
    found = [f"{n_exact} exact" if uncertain else "exact"] if n_exact else []
    if methods["monte-carlo"]:
        found.append(f"{methods['monte-carlo']} by Monte Carlo (upper ends of the 99 % intervals)")
    if methods["tilted"]:
        found.append(f"{methods['tilted']} valid by tilted sampling")
    if others:
        found.append(f"{others} by certified upper ends")
    return (
        f"p-values: {', '.join(found)}, {sides(board.alternative)}, adjusted by {rule.title} for"
        f" {amount(len(board.pairs), 'comparison')}; {bound} is at most {board.alpha:g}"
        + (", if these intervals contain the p-values" if methods["monte-carlo"] else "")
    )


def legend(board: Leaderboard, *, stars: bool = False) -> list[str]:
    """Return sentences about the meaning of the columns, and of `stars` if they are shown."""
    other = "the best run" if board.baseline is None else "the baseline"
    sentences = [f"▲ better, ▼ worse than {other}; ≈ undecided, which does not prove equality"]
    if board.baseline is None and shows_groups(board):
        sentences.append("two runs share a letter exactly if they are not shown to differ")
    if any(row.ranks is not None for row in board.rows):
        sentences.append(
            "possible ranks: those that no significant difference rules out, "
            f"together for all runs at level {board.alpha:g}"
        )
    if stars:
        levels = ", ".join(f"{mark} below {level:g}" for level, mark in reversed(STARS))
        sentences.append(f"stars: adjusted p {levels}; verdicts are at level {board.alpha:g}")
    sentences += _intervals(board, other)
    if board.alternative != "two-sided":
        sentences.append(one_sided(board.alternative))
    return sentences


def _intervals(board: Leaderboard, other: str) -> list[str]:
    """Return sentences about the guarantee of the intervals, and where they differ from the verdicts."""
    used = [row.interval for row in board.rows if row.interval is not None]
    if not used:
        return []
    kinds = ", ".join(sorted({found.method for found in used}))
    about = "about " if any(found.approximate for found in used) else ""
    m, each = len(board.pairs), f"{about}{100 * (1 - board.interval_level):.6g} % each"
    found = [f"{confidence(board)} intervals ({kinds}) for the difference to {other}"]
    if board.interval_promise == "simultaneous":
        found = [
            f"simultaneous {confidence(board)} intervals ({kinds}) for the difference to {other}: {each}, so"
            f" that all {m:,} intervals cover jointly (Bonferroni); that of an undecided row contains 0"
        ]
    elif board.interval_promise:
        decided = sum(pair.verdict != "undecided" for pair in board.pairs)
        found = [
            f"FCR {confidence(board)} intervals ({kinds}) for the difference to {other}: {each}; the expected"
            f" share of misses among those of the {decided:,} decided pairs is at most {board.alpha:g}; they"
            " are not simultaneous, and that of an undecided row contains 0"
        ]
    if any(row.holds_zero for row in board.rows):
        why = "the interval is approximate"
        if board.correction.name == "holm":
            why = "later steps of Holm's procedure decide more signs than simultaneous intervals"
        found.append(f"{DAGGER} the row is decided, but its interval contains 0: {why}")
    return found


def notes(board: Leaderboard) -> list[str]:
    """Return what a reader has to know beyond the table, as sentences."""
    found = []
    if board.missing == "drop" and board.n_examples < board.n_largest:
        found.append(
            f"tested on the {amount(board.n_examples, 'example')} that all runs have; the largest has"
            f" {board.n_largest:,}"
        )
    if board.missing == "wrong":
        found.append("examples of any run are counted in all runs; missing predictions count as wrong")
    if board.paired_by == "position":
        found.append("paired by position: nothing proves that the rows are the same examples")
    for group in clone_groups(board):
        found.append(f"clones, with the same counts on every example: {', '.join(group)}")
    return [*found, *board.notes]


def cautions(board: Leaderboard) -> list[str]:
    """Return the notes without which the verdicts may mislead."""
    return [note for note in notes(board) if _CAUTION.search(note)]


def clone_groups(board: Leaderboard) -> list[tuple[str, ...]]:
    """Return groups of runs with the same counts on every example, by name."""
    groups = {
        tuple(other.name for other in board.rows if other.name == row.name or other.name in row.clones)
        for row in board.rows
        if row.clones
    }
    return sorted(groups)


def incomplete(board: Leaderboard) -> Sequence[tuple[str, str]]:
    """Return the names of excluded runs, with the reason on one line, without its tables of examples."""
    return [(run.name, _without_tables(run.reason)) for run in board.incomplete]


def incomplete_groups(board: Leaderboard) -> Sequence[tuple[str, str]]:
    """Return what :func:`incomplete` returns, with runs of one reason as one entry if they are many.

    The reasons of two runs are the same if only their own names differ in them.
    """
    groups: dict[str, list[tuple[str, str]]] = {}
    for run, entry in zip(board.incomplete, incomplete(board), strict=True):
        groups.setdefault(entry[1].replace(run.origin, "").replace(run.name, ""), []).append(entry)
    found = []
    for entries in groups.values():
        if len(entries) <= _ONE_BY_ONE:
            found += entries
            continue
        first = ", ".join(name for name, _ in entries[:_ONE_BY_ONE])
        more = f"{len(entries) - _ONE_BY_ONE:,} more"
        found.append((f"{first} and {more}", f"all for one reason, of the first: {entries[0][1]}"))
    return found


def incomplete_hints(board: Leaderboard) -> list[str]:
    """Return the first hints on how to compare the excluded runs, each once."""
    return list(dict.fromkeys(run.hint for run in board.incomplete if run.hint))[:_MOST_HINTS]


def _without_tables(message: str) -> str:
    """Return a message on one line, without tables of examples and colons before them.

    Lines that say which columns each run has are kept.
    """
    found = _OF_RUNS.sub(lambda each: ": `" if each[1] else "; `", _INDENTED.sub("", message))
    return " ".join(found.split())
