"""Charts by Altair: configuration for light and dark pages, PNG, and interactive pages without network.

Altair and vl-convert are the optional extra ``plots``; nothing else in trackperm imports them.
"""

from __future__ import annotations

import importlib.util
import io
from functools import cache
from typing import TYPE_CHECKING, Any

from trackperm.errors import MissingDependencyError

if TYPE_CHECKING:
    import altair as alt

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


def require(module: str, library: str) -> None:
    """Raise MissingDependencyError if `module` of `library` is not installed."""
    if importlib.util.find_spec(module) is None:
        raise MissingDependencyError(
            f"charts need `{library}`, which is not installed", hint="pip install 'trackperm[plots]'"
        )
