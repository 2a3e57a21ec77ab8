"""Effect bar of a comparison: the difference, its interval, zero and the margin, as SVG without a script."""

from __future__ import annotations

import math
import re
from itertools import takewhile

from trackperm.comparison import Comparison
from trackperm.report import phrases
from trackperm.report.drawings import drawing
from trackperm.report.drawings.drawing import LINE, SOFT, TEXT, words_at
from trackperm.report.formatting import shorten

WIDTH, NARROW, HEIGHT = 880, 340, 120
"""Sizes of the drawing in units: wide, for a phone, and its height."""

_TICKS, _TICKS_NARROW = 6, 3
"""Most intervals between ticks: labels of seven characters then have a space between them."""

_TOP, _MIDDLE, _AXIS = 17, 48, 74  # heights of the zero line, the interval and the axis
_NUMBER = 16  # size of the difference
_ROOM, _ROOM_NARROW = 90, 27  # characters of the names of both runs together
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_BOLD = 1.15  # width of bold letters


def effect_bar(comparison: Comparison, *, narrow: bool = False) -> str:
    """Draw the difference with its interval on an axis that contains 0, as an SVG element.

    Parameters
    ----------
    comparison : Comparison
        Result of :func:`trackperm.compare`.
    narrow : bool
        Whether the drawing is 340 instead of 880 units wide, for a phone: text keeps its size.

    Returns
    -------
    str
        An ``svg`` element that fills the width of its parent, with its contents as an accessible label.
    """
    width = NARROW if narrow else WIDTH
    return drawing.svg(width, HEIGHT, label(comparison), bar_parts(comparison, width))


def bar_parts(comparison: Comparison, width: int) -> str:
    """Return the elements of the bar, for a drawing of that width."""
    narrow = width < WIDTH
    edge = 24 if narrow else 40
    low, high = axis_range(comparison)
    ticks = drawing.ticks_between(low, high, _TICKS_NARROW if narrow else _TICKS)
    low, high = min(low, ticks[0]), max(high, ticks[-1])

    def x(value: float) -> float:
        return round(edge + (min(max(value, low), high) - low) / (high - low) * (width - 2 * edge), 1)

    colour = drawing.VERDICTS[comparison.verdict]
    parts = [f'<line x1="{edge}" x2="{width - edge}" y1="{_AXIS}" y2="{_AXIS}" stroke="{SOFT}"/>']
    if comparison.margin is not None:
        left, right = x(-comparison.margin), x(comparison.margin)
        words = "too small to matter"
        size = f'width="{round(right - left, 1)}" height="{_AXIS - _TOP}"'
        parts.append(f'<rect x="{left}" y="{_TOP}" {size} fill="{LINE}"/>')
        middle = drawing.kept_inside((left + right) / 2, words, 0, width)
        parts.append(words_at(middle, 13, words, text_anchor="middle"))
    shown = phrases.difference(comparison)
    first, last = map(x, phrases.differences(comparison))
    at, zero = (first + last) / 2, x(0.0)
    middle = drawing.kept_inside(at, shown, edge / 2, width - edge / 2, _BOLD * _NUMBER)
    is_covered = abs(zero - middle) < drawing.width_of(shown, _BOLD * _NUMBER) / 2 + 2
    parts.append(
        f'<line x1="{zero}" x2="{zero}" y1="{_MIDDLE - 10 if is_covered else _TOP}" y2="{_AXIS}"'
        f' stroke="{TEXT}" stroke-dasharray="4 4"/>'
    )
    if (interval := drawn_interval(comparison)) is None:
        inside = drawing.kept_inside(at, "no interval", 0, width)
        parts.append(words_at(inside, 68, "no interval", text_anchor="middle"))
    else:
        ends = x(interval[0]), x(interval[1])
        strokes = [(ends, 8)]
        if (deciding := phrases.deciding_interval(comparison)) is not None:
            strokes = [(ends, 3), ((x(deciding.low), x(deciding.high)), 8)]
        parts += [
            f'<line x1="{left}" x2="{right}" y1="{_MIDDLE}" y2="{_MIDDLE}" stroke="{colour}"'
            f' stroke-width="{stroke}" stroke-linecap="round" stroke-opacity=".55"/>'
            for (left, right), stroke in strokes
        ]
        parts += [
            f'<path d="M{end} {_MIDDLE - 9}l{sign * 14} 9l{-sign * 14} 9z" fill="{colour}"/>'
            for end, sign, value in ((ends[0], -1, interval[0]), (ends[1], 1, interval[1]))
            if math.isinf(value)
        ]
    if first == last:
        parts.append(f'<circle cx="{at}" cy="{_MIDDLE}" r="8" fill="{colour}"/>')
    else:  # from the worst to the best case of missing predictions
        size = f'width="{round(last - first + 16, 1)}" height="16" rx="8"'
        parts.append(f'<rect x="{round(first - 8, 1)}" y="{_MIDDLE - 8}" {size} fill="{colour}"/>')
    parts.append(
        words_at(middle, 32, shown, text_anchor="middle", font_size=_NUMBER, font_weight=700, fill=colour)
    )
    for tick in ticks:
        parts.append(f'<line x1="{x(tick)}" x2="{x(tick)}" y1="{_AXIS}" y2="{_AXIS + 5}" stroke="{SOFT}"/>')
        parts.append(words_at(x(tick), 94, drawing.tick_label(tick, ticks), text_anchor="middle"))
    left_side, right_side = sides(comparison, _ROOM_NARROW if narrow else _ROOM)
    parts.append(words_at(edge / 3, 114, f"← {left_side} better"))
    parts.append(words_at(width - edge / 3, 114, f"{right_side} better →", text_anchor="end"))
    return "".join(parts)


def sides(comparison: Comparison, room: int) -> tuple[str, str]:
    """Return the names of the runs that are better on the left and on the right of 0.

    Together they have at most `room` characters; roles stand for names that cannot be told apart then.
    """
    names = comparison.baseline_name, comparison.candidate_name
    baseline, candidate = (_UNPRINTABLE.sub("\ufffd", " ".join(name.split())) for name in names)
    if len(baseline) + len(candidate) > room:
        baseline, candidate = _without_common_start(baseline, candidate)
    baseline = shorten(baseline, max(room // 2, room - len(candidate)))
    candidate = shorten(candidate, room - len(baseline))
    if baseline == candidate or not (baseline and candidate):
        baseline, candidate = "baseline", "candidate"
    return (baseline, candidate) if comparison.statistic.greater_is_better else (candidate, baseline)


def _without_common_start(first: str, second: str) -> tuple[str, str]:
    """Replace the words that two names begin with by an ellipsis."""
    equal = takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
    shared = "".join(letter for letter, _ in equal)
    start = max(shared.rfind(separator) for separator in " -_./:") + 1
    return (f"…{first[start:]}", f"…{second[start:]}") if start > 1 else (first, second)


def drawn_interval(comparison: Comparison) -> tuple[float, float] | None:
    """Return the ends of the interval; infinite on the open side of a one-sided one, whatever its limit."""
    interval = comparison.interval
    if interval is None:
        return None
    low = -math.inf if interval.alternative == "less" else interval.low
    return low, math.inf if interval.alternative == "greater" else interval.high


def axis_range(comparison: Comparison) -> tuple[float, float]:
    """Return a range with 0, the difference, the finite ends of its interval, the margin, and some room."""
    values = [0.0, *phrases.differences(comparison)]
    values += filter(math.isfinite, drawn_interval(comparison) or ())
    if comparison.margin is not None:
        values += [-comparison.margin, comparison.margin]
    low, high = min(values), max(values)
    if low == high:
        return low - 1.0, high + 1.0
    room = 0.08 * (high - low)
    return low - room, high + room


def label(comparison: Comparison) -> str:
    """Return what the bar shows, in words."""
    intervals = [f", {name} {ends}" for name, ends in phrases.intervals(comparison)]
    found = f"difference {phrases.difference(comparison)}{''.join(intervals)}"
    return found if comparison.margin is None else f"{found}, margin {comparison.margin:g}"
