"""The null distribution as a chart: PNG for trackers, interactive and self-contained HTML for reading.

Altair and vl-convert are the optional extra ``plots``; nothing else in trackperm imports them.
"""

from __future__ import annotations

import importlib.util
import io
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from trackperm.comparison import Comparison
from trackperm.errors import MissingDependencyError
from trackperm.exact import NullDistribution, PermutationTest
from trackperm.exact.null_distribution import DIGITS
from trackperm.report.text import format_number, how_certain, pvalue, shorten

if TYPE_CHECKING:
    import altair as alt

_Floats = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]

_MAX_BARS = 320  # two pixels each on a chart of 640 pixels
_INVISIBLE = 1e-5  # share of the mass beyond each end of the axis, less than a pixel of any bar
_LESS_EXTREME, _EXTREME = "less extreme than observed", "at least as extreme as observed"
_BLUE, _VERMILION = "#7f9fbf", "#d55e00"  # distinguishable with every kind of colour blindness

LIGHT: dict[str, Any] = {
    "background": "#ffffff",
    "axis": {"labelColor": "#444", "titleColor": "#222", "gridColor": "#e6e6e6", "domainColor": "#888"},
    "legend": {"labelColor": "#222"},
    "title": {"color": "#111", "subtitleColor": "#444"},
    "view": {"stroke": None},
    "style": {"observed": {"color": "#111"}},
}
"""Vega-Lite configuration for a light page and for PNG."""

DARK: dict[str, Any] = {
    "background": "transparent",
    "axis": {"labelColor": "#bbb", "titleColor": "#ddd", "gridColor": "#3a3f46", "domainColor": "#777"},
    "legend": {"labelColor": "#ddd"},
    "title": {"color": "#eee", "subtitleColor": "#bbb"},
    "view": {"stroke": None},
    "style": {"observed": {"color": "#fff"}},
}
"""Vega-Lite configuration for a dark page."""


def pmf_chart(comparison: Comparison) -> alt.LayerChart:
    """Draw the null distribution with the observed value and the region that the p-value sums.

    The chart has a few hundred bars, whatever the size of the support. A bar with values on both sides of the
    observed one has two parts; the masses of the extreme parts add up to the p-value, within the
    `mass_error_bound` of the null distribution.

    Raises
    ------
    MissingDependencyError
        If altair is not installed.
    CapacityError
        If the null distribution does not fit the memory budget of the test.
    """
    require("altair", "altair")
    import altair as alt

    test, statistic = comparison.test, comparison.statistic.name
    bars = _Bars.of(test.null_distribution)
    rows = bars.rows(test)
    low, high = bars.domain(test)
    title = shorten(statistic, 40)
    if comparison.candidate_score is not None:
        title = f"difference in {title} (candidate minus baseline)"

    region = (
        alt.Chart(alt.InlineData(values=_region(test, low, high)))
        .mark_rect(color=_VERMILION, opacity=0.08, clip=True)
        .encode(x="from:Q", x2="to:Q")
    )
    mass = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar(clip=True)
        .encode(
            x=alt.X("from:Q", title=title)
            .scale(domain=[low, high], nice=False, zero=False)
            .axis(tickCount=8, labelOverlap=True),
            x2="to:Q",
            y=alt.Y("top:Q", title="probability").scale(
                domain=[0, 1.15 * max(row["top"] for row in rows)], nice=False
            ),
            y2="base:Q",
            color=alt.Color(
                "region:N",
                scale=alt.Scale(domain=[_LESS_EXTREME, _EXTREME], range=[_BLUE, _VERMILION]),
                legend=alt.Legend(title=None, orient="top", labelLimit=0),
            ),
            tooltip=[
                alt.Tooltip("value:N", title="value"),
                alt.Tooltip("mass:Q", title="probability", format=".4g"),
                alt.Tooltip("region:N", title="region"),
            ],
        )
        .add_params(
            alt.selection_interval(name="zoom", bind="scales", encodings=["x"], zoom="wheel![event.shiftKey]")
        )
    )
    label = f"observed {format_number(test.observed, sign=True)}"
    observed = alt.Chart(alt.InlineData(values=[{"observed": test.observed, "label": label}]))
    rule = observed.mark_rule(style="observed", strokeDash=[6, 3], strokeWidth=2, clip=True).encode(
        x="observed:Q"
    )
    right_half = test.observed > (low + high) / 2
    text = observed.mark_text(
        style="observed",
        align="right" if right_half else "left",
        dx=-6 if right_half else 6,
        baseline="top",
        fontSize=12,
        fontWeight="bold",
        clip=True,
    ).encode(x="observed:Q", y=alt.value(4), text="label:N")

    names = [shorten(name, 40) for name in (comparison.candidate_name, comparison.baseline_name, statistic)]
    written = pvalue(comparison)
    chart: alt.LayerChart = (
        alt.layer(region, mass, rule, text)
        .properties(
            width=640,
            height=300,
            description=f"Null distribution of the statistic {names[2]}, {label}, {written}",
            title=alt.TitleParams(
                "{} against {} by {}".format(*names),
                subtitle=f"{written} ({how_certain(comparison)}, {test.alternative}); "
                "the bars show the distribution under random exchanges",
                anchor="start",
            ),
        )
        .configure(**LIGHT)
    )
    return chart


def pmf_curves(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the bars of the null distribution as points of curves, for trackers that draw lines.

    Each part of a bar has ``value`` (its middle on the axis), ``probability`` (its mass), ``curve`` (its
    region), and ``from``, ``to``, ``base`` and ``top`` (its corners). The curve ``observed`` has two points
    at the observed value. Errors are those of :func:`pmf_chart`.
    """
    test = comparison.test
    bars = _Bars.of(test.null_distribution)
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


def png(chart: alt.LayerChart) -> bytes:
    """Render `chart` as PNG, at twice the screen resolution, without a browser or network."""
    require("vl_convert", "vl-convert-python")
    buffer = io.BytesIO()
    chart.save(buffer, format="png", scale_factor=2)
    return buffer.getvalue()


def embedded(chart: alt.LayerChart) -> dict[str, Any]:
    """Return the values of :func:`described` and the program of charts, for a page that needs no network."""
    return {**described(chart), "program": program()}


def described(chart: alt.LayerChart) -> dict[str, Any]:
    """Return `chart` as JSON values: its spec, as wide as its container, and the dark configuration."""
    # tests validate every chart against the schema; that takes as long as all other work on it
    return {"spec": chart.properties(width="container").to_dict(validate=False), "dark": DARK}


@cache
def program() -> str:
    """Return Vega, Vega-Lite and Vega-Embed from vl-convert as one script, ``window.vegaEmbed``.

    Raises
    ------
    MissingDependencyError
        If vl-convert is not installed.
    """
    require("vl_convert", "vl-convert-python")
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


@dataclass(frozen=True)
class _Bars:
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
    def of(cls, null: NullDistribution) -> _Bars:
        visible = _visible(null.mass)
        values = null.values[visible]
        gaps = np.diff(values)
        if gaps.size and np.allclose(gaps, gaps[0], rtol=1e-3, atol=0.0):  # an even lattice
            size = -(-values.size // _MAX_BARS)  # values per bar
            bar = (np.arange(null.values.size) - visible.start) // size
            bar = np.clip(bar, -_MAX_BARS, (values.size - 1) // size + _MAX_BARS)
            bar -= bar[0]
            first = np.flatnonzero(np.diff(bar, prepend=-1))
            last = np.append(first[1:], bar.size) - 1
            half = gaps[0] * (0.4 if values.size <= 64 else 0.5)
            return cls(null, null.values[first] - half, null.values[last] + half, bar, visible)
        if values.size <= 100:
            half = (values[-1] - values[0]) / 400 or 0.01
            bar = np.clip(np.arange(null.values.size) - visible.start, 0, values.size - 1)
            return cls(null, values - half, values + half, bar, visible)
        edges = _smooth_edges(values, null.mass[visible])
        width = edges[1] - edges[0]
        beyond = width * np.arange(1, _MAX_BARS + 1)
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


def _smooth_edges(values: _Floats, mass: _Floats) -> _Floats:
    """Bin an irregular support as finely as possible without ripples, which bunched values cause.

    The number of bins is odd, so that 0 is the middle of a bin and a symmetric distribution looks symmetric.
    """
    margin = 1e-9 * (values[-1] - values[0])
    ends = (float(values[0] - margin), float(values[-1] + margin))
    ripples = []
    for n_bins in range(_MAX_BARS // 2 - 1, 20, -8):
        binned, edges = np.histogram(values, bins=n_bins, range=ends, weights=mass)
        variation = float(np.abs(np.diff(binned, prepend=0.0, append=0.0)).sum() / binned.max())
        ripples.append((variation, n_bins, edges))
        if variation < 2.1:  # the total variation of a single peak is 2
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


def require(module: str, library: str) -> None:
    """Raise MissingDependencyError if `module` of `library` is not installed."""
    if importlib.util.find_spec(module) is None:
        raise MissingDependencyError(
            f"charts need `{library}`, which is not installed", hint="pip install 'trackperm[plots]'"
        )
