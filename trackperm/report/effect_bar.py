"""Effect bar of a comparison: the difference, its interval, zero and the margin, as SVG without a script."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from trackperm.comparison import Comparison
from trackperm.report import text

_COLOURS = {"better": "#00694d", "worse": "#b04a00", "undecided": "#4c5866", "equivalent": "#4c5866"}
"""Colours where a page defines none of its own."""

_TICKS = 6
"""Most intervals between ticks: labels of seven characters then have a space between them."""

_TICKS_NARROW = 3


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
    width, edge = (340, 24) if narrow else (880, 40)
    low, high = _range(comparison)
    ticks = list(_ticks(low, high, _TICKS_NARROW if narrow else _TICKS))
    low, high = min(low, ticks[0]), max(high, ticks[-1])

    def x(value: float) -> float:
        return round(edge + (min(max(value, low), high) - low) / (high - low) * (width - 2 * edge), 1)

    colour = f"var(--{comparison.verdict}, {_COLOURS[comparison.verdict]})"
    parts = [f'<line x1="{edge}" x2="{width - edge}" y1="74" y2="74" stroke="{_SOFT}"/>']
    if comparison.margin is not None:
        left, right = x(-comparison.margin), x(comparison.margin)
        parts.append(
            f'<rect x="{left}" y="14" width="{round(right - left, 1)}" height="60" fill="{_LINE}"/>'
            f"{_text((left + right) / 2, 10, 'too small to matter', edge, width)}"
        )
    parts.append(f'<line x1="{x(0)}" x2="{x(0)}" y1="14" y2="74" stroke="{_TEXT}" stroke-dasharray="4 4"/>')
    if (interval := comparison.interval) is not None:
        parts.append(
            f'<line x1="{x(interval.low)}" x2="{x(interval.high)}" y1="48" y2="48" stroke="{colour}"'
            ' stroke-width="8" stroke-linecap="round" stroke-opacity=".55"/>'
        )
    at = x(comparison.difference)
    shown = text.format_number(comparison.difference, sign=True)
    parts.append(f'<circle cx="{at}" cy="48" r="8" fill="{colour}"/>')
    parts.append(
        _text(at, 32, shown, edge, width, f'font-size="16" font-weight="700" fill="{colour}" {_HALO}')
    )
    for tick in ticks:
        parts.append(f'<line x1="{x(tick)}" x2="{x(tick)}" y1="74" y2="79" stroke="{_SOFT}"/>')
        parts.append(_text(x(tick), 94, _tick(tick, ticks), 0, width))
    sides = ("candidate better", "baseline better")
    left_side, right_side = sides[::-1] if comparison.statistic.greater_is_better else sides
    parts.append(f'<text x="{edge}" y="114" fill="{_SOFT}">← {left_side}</text>')
    parts.append(f'<text x="{width - edge}" y="114" fill="{_SOFT}" text-anchor="end">{right_side} →</text>')
    return (
        f'<svg viewBox="0 0 {width} 120" width="100%" role="img" aria-label="{escape(_label(comparison))}"'
        f' font-family="system-ui, sans-serif" font-size="12">{"".join(parts)}</svg>'
    )


_HALO = 'paint-order="stroke" stroke="var(--card, #ffffff)" stroke-width="4"'  # keeps the zero line off text
_TEXT, _SOFT, _LINE = "var(--text, #16191d)", "var(--soft, #59616b)", "var(--line, #dfe2e6)"


def _text(x: float, y: int, words: str, edge: int, width: int, style: str = f'fill="{_SOFT}"') -> str:
    """Return a text centred at `x`, but kept inside the drawing."""
    half = 3.6 * len(words) * (1.35 if "font-size" in style else 1.0)
    inside = round(min(max(x, edge + half), width - edge - half), 1) if 2 * half < width - 2 * edge else x
    return f'<text x="{inside}" y="{y}" text-anchor="middle" {style}>{escape(words)}</text>'


def _range(comparison: Comparison) -> tuple[float, float]:
    values = [0.0, comparison.difference]
    if comparison.interval is not None:
        values += [end for end in (comparison.interval.low, comparison.interval.high) if math.isfinite(end)]
    if comparison.margin is not None:
        values += [-comparison.margin, comparison.margin]
    low, high = min(values), max(values)
    if low == high:
        return low - 1.0, high + 1.0
    room = 0.08 * (high - low)
    return low - room, high + room


def _ticks(low: float, high: float, most: int) -> Iterator[float]:
    """Yield the multiples of 1, 2 or 5 times a power of ten inside the range, at most `most` + 1."""
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(s * power for s in (1, 2, 5, 10, 20) if (high - low) / (s * power) <= most)
    for i in range(math.ceil(low / step), math.floor(high / step) + 1):
        yield i * step


def _tick(value: float, ticks: list[float]) -> str:
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return "0" if abs(value) < step / 2 else f"{value:+.{digits}f}".replace("-", "−")


def _label(comparison: Comparison) -> str:
    found = f"difference {text.format_number(comparison.difference, sign=True)}"
    if comparison.interval is not None:
        found += f", {text.confidence(comparison.interval)} {text.ends(comparison.interval)}"
    return found if comparison.margin is None else f"{found}, margin {comparison.margin:g}"
