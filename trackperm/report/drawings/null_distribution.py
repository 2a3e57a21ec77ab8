"""Null distribution of a comparison: bars that add up to the p-value, as SVG and as points of curves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.comparison import Comparison
from trackperm.errors import CapacityError
from trackperm.exact import NullDistribution, PermutationTest
from trackperm.exact.null_distribution import DIGITS
from trackperm.report import phrases
from trackperm.report.drawings import drawing
from trackperm.report.drawings.drawing import EXTREME, SOFT, TEXT, USUAL, words_at
from trackperm.report.formatting import shorten
from trackperm.report.numbers import format_difference

_Floats = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]

MOST_BARS = 320
"""Bars of a drawing, which has two or three units for each."""

_INVISIBLE = 1e-5  # share of the mass beyond each end of the axis, less than a pixel of any bar
_LESS_EXTREME, _EXTREME = "less extreme than observed", "at least as extreme as observed"

WIDTH, NARROW, HEIGHT = 880, 340, 280
"""Sizes of the drawing in units: wide, for a phone, and its height."""

_TOP, _AXIS, _EDGE = 24, 230, 14  # height of the highest bar, of the axis; and what is left at both ends


def null_drawing(comparison: Comparison, *, narrow: bool = False) -> str:
    """Draw the null distribution with the observed value and the region that the p-value sums, as SVG.

    The drawing has a few hundred bars, whatever the size of the support. A bar with values on both sides of
    the observed one has two parts; the masses of the extreme parts add up to the p-value, within the
    `mass_error_bound` of the null distribution.

    Raises
    ------
    CapacityError
        If the null distribution does not fit the memory budget of the test.
    """
    width = NARROW if narrow else WIDTH
    label = (
        f"Null distribution of the statistic {shorten(comparison.statistic.title, 40)}, observed"
        f" {format_difference(comparison.test.observed)}, {phrases.pvalue_with_side(comparison)}"
    )
    return drawing.svg(width, HEIGHT, label, null_parts(comparison, width))


def why_not_drawn(test: PermutationTest, error: CapacityError) -> str:
    """Return the reason why the null distribution is not drawn, whose size means nothing if p needs none."""
    if test.method == "bracket":
        return "p is between two certified ends, and the whole distribution is too large to compute"
    if test.method in ("tilted", "monte-carlo"):
        return "p is from random exchanges, and the whole distribution is too large to compute"
    return error.message


def null_parts(comparison: Comparison, width: int) -> str:
    """Return the elements of the null distribution, for a drawing of that width."""
    test, narrow = comparison.test, width < WIDTH
    bars = Bars.of(test.null_distribution, MOST_BARS // 2 if narrow else MOST_BARS)
    low, high = bars.domain(test)
    rows = [row for row in bars.rows(test) if row["to"] > low and row["from"] < high]
    highest = max(row["top"] for row in rows)

    def x(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low)
        return round(_EDGE + float(share) * (width - 2 * _EDGE), 1)

    def y(mass: float) -> float:
        return round(_AXIS - float(mass / highest) * (_AXIS - _TOP), 1)

    parts = [
        f'<rect x="{x(region["from"])}" y="{_TOP}" width="{round(x(region["to"]) - x(region["from"]), 1)}"'
        f' height="{_AXIS - _TOP}" fill="{EXTREME}" fill-opacity=".1"/>'
        for region in _region(test, low, high)
        if region["to"] > region["from"]
    ]
    for name, ink in ((_LESS_EXTREME, USUAL), (_EXTREME, EXTREME)):
        outline = _outline([row for row in rows if row["region"] == name], x, y)
        parts.append(f'<path d="{outline}" fill="{ink}"/>')
    parts.append(f'<line x1="{_EDGE}" x2="{width - _EDGE}" y1="{_AXIS}" y2="{_AXIS}" stroke="{SOFT}"/>')
    ticks = drawing.ticks_between(low, high, 4 if narrow else 8)
    for tick in ticks:
        parts.append(f'<line x1="{x(tick)}" x2="{x(tick)}" y1="{_AXIS}" y2="{_AXIS + 5}" stroke="{SOFT}"/>')
        words = drawing.tick_label(tick, ticks)
        middle = drawing.kept_inside(x(tick), words, 4, width - 4)
        parts.append(words_at(middle, _AXIS + 20, words, text_anchor="middle"))
    at = x(test.observed)
    parts.append(
        f'<line x1="{at}" x2="{at}" y1="{_TOP - 6}" y2="{_AXIS}" stroke="{TEXT}" stroke-width="2"'
        ' stroke-dasharray="6 3"/>'
    )
    observed = f"observed {format_difference(test.observed)}"
    middle = drawing.kept_inside(at, observed, 0, width, size=14)  # bold letters are wider
    parts.append(words_at(middle, 13, observed, text_anchor="middle", fill=TEXT, font_weight=700))
    title = shorten(comparison.statistic.title, 20 if narrow else 40)
    if comparison.candidate_score is not None:
        title = f"difference in {title}" + ("" if narrow else " (candidate minus baseline)")
    parts.append(words_at(width / 2, _AXIS + 42, title, text_anchor="middle"))
    return "".join(parts)


def _outline(rows: list[dict[str, Any]], x: Callable[[float], float], y: Callable[[float], float]) -> str:
    """Return a path: one outline of all neighbouring bars on the axis, and one of every other bar."""
    path, close, end = "", "", None
    for row in sorted(rows, key=lambda row: (row["base"] > 0.0, row["from"])):
        left, right, base = x(row["from"]), x(row["to"]), y(row["base"])
        if left != end or row["base"] > 0.0:
            path += f"{close}M{left:g} {base:g}"
        path += f"V{y(row['top']):g}H{right:g}"
        close, end = f"V{base:g}z", right
    return path + close


def pmf_curves(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the bars of the null distribution as points of curves, for trackers that draw lines.

    Each part of a bar has ``value`` (its middle on the axis), ``probability`` (its mass), ``curve`` (its
    region), and ``from``, ``to``, ``base`` and ``top`` (its corners). The curve ``observed`` has two points
    at the observed value. Errors are those of :func:`null_drawing`.
    """
    test = comparison.test
    bars = Bars.of(test.null_distribution)
    low, high = bars.domain(test)
    points = []
    for row in bars.rows(test):
        middle = (row["from"] + row["to"]) / 2
        if low <= middle <= high:
            is_below = test.alternative == "less" or (test.alternative == "two-sided" and middle < 0)
            extreme = f"at least as extreme, {'below' if is_below else 'above'}"
            curve = extreme if row["region"] == _EXTREME else "less extreme"
            corners = {name: row[name] for name in ("from", "to", "base", "top")}
            points.append({"value": middle, "probability": row["mass"], "curve": curve, **corners})
    highest = max(point["probability"] for point in points)
    for height in (0.0, highest):
        corners = {"from": test.observed, "to": test.observed, "base": 0.0, "top": highest}
        points.append({"value": test.observed, "probability": height, "curve": "observed", **corners})
    return points


@dataclass(frozen=True)
class Bars:
    """Bars of a null distribution; every value belongs to one bar.

    Attributes
    ----------
    null : NullDistribution
        The distribution.
    low, high : ndarray of float64, shape (B,)
        Ends of each bar on the axis.
    bar : ndarray of int64, shape (J,)
        Index of the bar of each value, ascending.
    visible : slice
        Values that are shown: all but the ends of the tails.
    """

    null: NullDistribution
    low: _Floats
    high: _Floats
    bar: _Integers
    visible: slice

    @classmethod
    def of(cls, null: NullDistribution, most: int = MOST_BARS) -> Bars:
        """Group the values into at most `most` visible bars."""
        visible = _visible(null.mass)
        values = null.values[visible]
        gaps = np.diff(values)
        if gaps.size and np.allclose(gaps, gaps[0], rtol=1e-3, atol=0.0):  # an even lattice
            size = -(-values.size // most)  # values per bar
            bar = (np.arange(null.values.size) - visible.start) // size
            bar = np.clip(bar, -most, (values.size - 1) // size + most)
            bar -= bar[0]
            first = np.flatnonzero(np.diff(bar, prepend=-1))
            last = np.append(first[1:], bar.size) - 1
            half = gaps[0] * (0.4 if values.size <= 64 else 0.5)
            return cls(null, null.values[first] - half, null.values[last] + half, bar, visible)
        if values.size <= 100:
            half = (values[-1] - values[0]) / 400 or 0.01
            bar = np.clip(np.arange(null.values.size) - visible.start, 0, values.size - 1)
            return cls(null, values - half, values + half, bar, visible)
        edges = _smooth_edges(values, null.mass[visible], most)
        width = edges[1] - edges[0]
        beyond = width * np.arange(1, most + 1)
        edges = np.concatenate([edges[0] - beyond[::-1], edges, edges[-1] + beyond])
        bar = np.clip(np.searchsorted(edges, null.values, side="right") - 1, 0, edges.size - 2)
        return cls(null, edges[:-1], edges[1:], bar, visible)

    def domain(self, test: PermutationTest) -> tuple[float, float]:
        """Return the ends of the axis, which contains all visible values and the observed one."""
        shown = self.bar[self.visible]
        low, high = float(self.low[shown[0]]), float(self.high[shown[-1]])
        low, high = min(low, test.observed), max(high, test.observed)
        if test.alternative == "two-sided":
            low, high = min(low, -abs(test.observed)), max(high, abs(test.observed))
        margin = 0.5 if shown.size == 1 else 0.04 * (high - low)
        return low - margin, high + margin

    def rows(self, test: PermutationTest) -> list[dict[str, Any]]:
        """Return the parts of the bars: the less extreme part and, on top of it, the extreme part."""
        values, mass = self.null.values, self.null.mass
        parts, first, part = np.unique(
            2 * self.bar + _is_extreme(values, test), return_index=True, return_inverse=True
        )
        last = np.zeros(parts.size, dtype=np.int64)
        last[part] = np.arange(values.size)
        heights = np.bincount(part, weights=mass)
        rows: list[dict[str, Any]] = []
        for i, (bar, extreme) in enumerate(np.stack(np.divmod(parts, 2), axis=1).tolist()):
            on_top = bool(extreme) and i > 0 and parts[i] == parts[i - 1] + 1
            base = float(heights[i - 1]) if on_top else 0.0
            lowest, highest = f"{values[first[i]]:.6g}", f"{values[last[i]]:.6g}"
            rows.append(
                {
                    "from": float(self.low[bar]),
                    "to": float(self.high[bar]),
                    "base": base,
                    "top": base + float(heights[i]),
                    "mass": float(heights[i]),
                    "value": lowest if lowest == highest else f"{lowest} to {highest}",
                    "region": _EXTREME if extreme else _LESS_EXTREME,
                }
            )
        return rows


def _visible(mass: _Floats) -> slice:
    """Return the values without the ends of both tails, which no bar could show."""
    invisible = _INVISIBLE * float(mass.sum())
    first = int(np.searchsorted(np.cumsum(mass), invisible, side="right"))
    beyond = int(np.searchsorted(np.cumsum(mass[::-1]), invisible, side="right"))
    return slice(first, mass.size - beyond)


def _smooth_edges(values: _Floats, mass: _Floats, most: int) -> _Floats:
    """Bin an irregular support as finely as possible without ripples, which bunched values cause.

    A value at 0 is in the middle of a bin, so that a symmetric distribution looks symmetric: the number of
    bins is odd then.
    The total variation of a single peak is 2, also of a spike at its top: hence the distance of each bar from
    the cubic curve through its four neighbours counts as well.
    """
    margin = 1e-9 * (values[-1] - values[0])
    below = np.concatenate([[0.0], np.cumsum(mass)])  # mass of the first values, which makes each bin cheap
    ripples = []
    step = 2 if np.abs(values).min() <= margin else 1
    for n_bins in range(most // 2 - 1, 20, -step):
        edges = np.linspace(values[0] - margin, values[-1] + margin, n_bins + 1)
        binned = np.pad(np.diff(below[np.searchsorted(values, edges)]), 2)
        curve = (4.0 * (binned[1:-3] + binned[3:-1]) - binned[:-4] - binned[4:]) / 6.0
        spike = np.abs(binned[2:-2] - curve).max()
        ripple = float((np.abs(np.diff(binned)).sum() + 2.0 * spike) / binned.max())
        ripples.append((ripple, n_bins, edges))
        if ripple < 2.1:
            break
    return min(ripples, key=lambda found: found[:2])[2]


def _is_extreme(values: _Floats, test: PermutationTest) -> npt.NDArray[np.bool_]:
    """Return which values the p-value sums, within the precision of the distribution's values."""
    slack = 10.0**-DIGITS * float(np.abs(values).max())
    if test.alternative == "two-sided":
        return np.abs(values) >= abs(test.observed) - slack
    if test.alternative == "less":
        return values <= test.observed + slack
    return values >= test.observed - slack


def _region(test: PermutationTest, low: float, high: float) -> list[dict[str, float]]:
    """Return the intervals of the axis with values at least as extreme as the observed one."""
    if test.alternative == "two-sided":
        size = abs(test.observed)
        return [{"from": low, "to": -size}, {"from": size, "to": high}]
    if test.alternative == "less":
        return [{"from": low, "to": test.observed}]
    return [{"from": test.observed, "to": high}]
