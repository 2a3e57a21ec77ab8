"""Effect bar in characters, for Markdown that shows no pictures."""

from __future__ import annotations

import math

from trackperm.comparison import Comparison
from trackperm.report import phrases
from trackperm.report.drawings.effect_bar import axis_range, drawn_interval, sides

WIDTH = 60
"""Columns: the description of a run in MLflow, and a comment on a phone, show as many."""

_ROOM = WIDTH - len("←  better  better →") - 1


def text_bar(comparison: Comparison) -> list[str]:
    """Draw the difference, its interval, zero and the margin in three lines of at most 60 characters.

    ``●`` is the difference, ``━`` its interval, ``░`` the margin on both sides of zero, which is ``┼``, or
    ``╂`` where the interval covers it. With a margin, ``━`` is the interval that decides equivalence, and
    ``╌`` the rest of the other one. A one-sided interval ends in ``◄`` or ``►``.
    """
    low, high = axis_range(comparison)

    def column(value: float) -> int:
        return round((min(max(value, low), high) - low) / (high - low) * (WIDTH - 1))

    axis = ["─"] * WIDTH
    if comparison.margin is not None:
        for i in range(column(-comparison.margin), column(comparison.margin) + 1):
            axis[i] = "░"
    axis[column(0.0)] = "┼"
    interval, deciding = drawn_interval(comparison), phrases.deciding_interval(comparison)
    if interval is not None:
        for i in range(column(interval[0]), column(interval[1]) + 1):
            axis[i] = "━" if deciding is None else "╌"
        if deciding is not None:
            for i in range(column(deciding.low), column(deciding.high) + 1):
                axis[i] = "━"
        if interval[0] <= 0.0 <= interval[1]:
            axis[column(0.0)] = "╂"
        if math.isinf(interval[0]):
            axis[0] = "◄"
        if math.isinf(interval[1]):
            axis[-1] = "►"
    first, last = map(column, phrases.differences(comparison))
    axis[first : last + 1] = "●" * (last + 1 - first)

    numbers = [" "] * WIDTH
    _put(numbers, column(0.0), "0")
    _put(numbers, (first + last) // 2, phrases.difference(comparison))
    left, right = (f"{name} better" for name in sides(comparison, _ROOM))
    between = WIDTH - len(left) - len(right) - 4
    return ["".join(numbers).rstrip(), "".join(axis), f"← {left}{' ' * between}{right} →"]


def _put(line: list[str], column: int, words: str) -> None:
    """Write words around a column, in place of what is there."""
    start = min(max(column - len(words) // 2, 0), len(line) - len(words))
    if start > 0:
        line[start - 1] = " "
    line[start : start + len(words)] = words
    if start + len(words) < len(line):
        line[start + len(words)] = " "
