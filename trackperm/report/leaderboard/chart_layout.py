"""Geometry of a leaderboard's chart, in percent of the width: the same on pages and in pictures."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from trackperm.exact.intervals import Interval
from trackperm.leaderboards import Leaderboard
from trackperm.report.drawings.drawing import tick_label, ticks_between
from trackperm.report.leaderboard import cells
from trackperm.report.leaderboard.names import short_names
from trackperm.report.numbers import format_difference, format_number

MOST_ROWS = 200
"""Runs that are drawn, on five screens; the table below the chart has all."""

_DIGITS = 1
"""Decimals of a position: a thousandth of the width is a pixel or two."""

_TICKS = 5
"""Most intervals between ticks, so that labels of seven characters fit on a phone."""

_EDGE = 3.0
"""Percent of the width that stay free at each end, for the first and the last label."""


@dataclass(frozen=True)
class DrawnRun:
    """One run of a chart; positions are in percent of the width of their column.

    Attributes
    ----------
    rank : int
        Rank of the run.
    name, label : str
        The name, and the same on one line without what all names share.
    score : str
        Score of the run.
    role : {'best', 'baseline', 'better', 'worse', 'undecided'}
        Verdict, or role of the run that others are compared with.
    marker, dagger : str
        Symbol of a verdict, empty for the other roles; mark of an interval that holds 0 although decided.
    at : float
        Position of the difference to the best run or the baseline.
    interval : (float, float) or None
        Position of the lower end of the interval, and its length.
    ranks : (float, float) or None
        Position of the best possible rank, and the length up to the worst.
    own_rank : float
        Position of the rank in this bar.
    difference_words, ranks_words : str
        What the drawings of the row show.
    """

    rank: int
    name: str
    label: str
    score: str
    role: str
    marker: str
    dagger: str
    at: float
    interval: tuple[float, float] | None
    ranks: tuple[float, float] | None
    own_rank: float
    difference_words: str
    ranks_words: str


@dataclass(frozen=True)
class ChartLayout:
    """Chart of a leaderboard: a row per run, with its score, verdict, possible ranks and interval.

    Attributes
    ----------
    runs : list of DrawnRun
        The runs, best first; at most :data:`MOST_ROWS`.
    n_runs : int
        Number of runs of the leaderboard.
    statistic : str
        Name of the statistic.
    zero : float
        Position of a difference of 0, in percent of the width.
    ticks : list of (float, str)
        Positions and labels of the axis.
    against : {'best', 'baseline'}
        Run that others are compared with.
    axis : str
        Title of the axis.
    has_ranks : bool
        Whether the possible ranks are known.
    remarks : list of str
        Sentences about names and runs that are left out, and about daggers.
    name_width : int
        Columns of a terminal that the widest label takes.
    """

    runs: list[DrawnRun]
    n_runs: int
    statistic: str
    zero: float
    ticks: list[tuple[float, str]]
    against: str
    axis: str
    has_ranks: bool
    remarks: list[str]
    name_width: int


def chart_layout(board: Leaderboard) -> ChartLayout:
    """Compute the chart of a leaderboard."""
    from rich.cells import cell_len  # imported late: results of two runs have no such chart

    shown = board.rows[:MOST_ROWS]
    n = len(board.rows)
    names = short_names([row.name for row in board.rows])
    low, high = _range(board)
    ticks = ticks_between(low, high, _TICKS)
    x = _scale(low, high)
    labels = names.on_one_line()
    against = "best" if board.baseline is None else "baseline"
    has_intervals = any(row.interval is not None for row in shown)
    runs, extra = [], cells.score_digits(board)
    for place, row in enumerate(shown):
        role = cells.role(board, place)
        interval = ranks = None
        if row.interval is not None:
            interval = _bar(*map(x, _ends(row.interval)))
        if row.ranks is not None:
            ranks = _bar(100 * (row.ranks[0] - 1) / n, 100 * row.ranks[1] / n)
        runs.append(
            DrawnRun(
                rank=row.rank,
                name=row.name,
                label=labels[place],
                score=format_number(row.score, extra=extra),
                role=role,
                marker="" if row.pair is None else row.pair.marker,
                dagger=cells.DAGGER * row.holds_zero,
                at=x(0.0 if row.pair is None else row.pair.difference),
                interval=interval,
                ranks=ranks,
                own_rank=round(100 * (row.rank - 0.5) / n, _DIGITS),
                difference_words=_difference_words(board, place, extra),
                ranks_words=f"possible ranks {cells.ranks(row)} of {n}" if row.ranks else "",
            )
        )
    remarks = [] if names.sentence is None else [names.sentence]
    remarks += [sentence for sentence in cells.legend(board) if sentence.startswith(cells.DAGGER)]
    if n > MOST_ROWS:
        remarks.append(f"the chart shows the first {MOST_ROWS} of {n} runs")
    return ChartLayout(
        runs=runs,
        n_runs=n,
        statistic=board.statistic.title,
        zero=x(0.0),
        ticks=[(x(tick), tick_label(tick, ticks)) for tick in ticks],
        against=against,
        axis=f"difference to the {against}" + (f", {cells.interval_name(board)}" if has_intervals else ""),
        has_ranks=any(run.ranks is not None for run in runs),
        remarks=remarks,
        name_width=max(cell_len(label) for label in labels[:MOST_ROWS]),
    )


def _difference_words(board: Leaderboard, place: int, extra: int) -> str:
    row = board.rows[place]
    if row.pair is None:
        return f"the {cells.role(board, place)}"
    parts = [f"difference {format_difference(row.pair.difference, extra=extra)}"]
    if row.interval is not None:
        parts.append(f"{cells.confidence(board)} interval {cells.interval(row)}")
    return ", ".join([*parts, f"{cells.pvalue_name(board)} = {cells.adjusted(board, row.pair)}"])


def _range(board: Leaderboard) -> tuple[float, float]:
    """Return the ends of the axis, which contains 0, all differences and the finite ends of intervals."""
    values = [0.0]
    for row in board.rows[:MOST_ROWS]:
        if row.pair is not None:
            values.append(row.pair.difference)
        if row.interval is not None:
            values += filter(math.isfinite, _ends(row.interval))
    low, high = min(values), max(values)
    return (low - 1.0, high + 1.0) if low == high else (low, high)


def _ends(interval: Interval) -> tuple[float, float]:
    """Return the ends of an interval; infinite on the open side of a one-sided one, whatever its limit."""
    low = -math.inf if interval.alternative == "less" else interval.low
    return low, math.inf if interval.alternative == "greater" else interval.high


def _scale(low: float, high: float) -> Callable[[float], float]:
    """Return the position of a value in percent; infinite values are at the edges of the column."""

    def x(value: float) -> float:
        if math.isinf(value):
            return 0.0 if value < 0 else 100.0
        share = (value - low) / (high - low)
        return round(_EDGE + (100 - 2 * _EDGE) * share, _DIGITS)

    return x


def _bar(start: float, end: float) -> tuple[float, float]:
    return round(start, _DIGITS), round(end - start, _DIGITS)


def labelled_places(n: int, most: int) -> list[int]:
    """Return the places that are labelled on an axis of `n` runs: the first, and every 2nd, 5th, 10th or so.

    Examples
    --------
    >>> labelled_places(40, 12)
    [0, 4, 9, 14, 19, 24, 29, 34, 39]
    """
    step = next(s * 10**k for k in range(n) for s in (1, 2, 5) if n <= most * s * 10**k)
    return [place for place in range(n) if place == 0 or (place + 1) % step == 0]
