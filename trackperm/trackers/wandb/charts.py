"""Charts on W&B's own pages, drawn by a preset that every server has, or by trackperm's if it is installed.

A native chart is a table and the name of a preset, which is a Vega-Lite spec stored on the server. W&B's own
presets draw lines but not bars of a given width, so the default is one line per curve.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import wandb

from trackperm.errors import InputError, TrackerError
from trackperm.trackers.publication import Chart
from trackperm.trackers.wandb.store import Store

VARIABLE = "TRACKPERM_WANDB_CHART"
"""Environment variable with the preset of charts, where trackperm's is installed."""

PRESET = "trackperm-null-distribution"

_LINES = "wandb/line/v0"
_ID = re.compile(r"[\w.-]+/[\w.-]+")
_BARS = ("from", "to", "base", "top", "curve")
_OBSERVED = "datum['${field:curve}'] == 'observed'"

CURVES = ("less extreme", "at least as extreme, below", "at least as extreme, above")
"""Names of the curves that are bars, as in :func:`trackperm.report.charts.pmf_curves`."""

SPEC: Mapping[str, Any] = {
    "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
    "description": "The null distribution of a paired-permutation test, with the observed value",
    "data": {"name": "wandb"},
    "title": "${string:title}",
    "layer": [
        {
            "transform": [{"filter": f"!({_OBSERVED})"}],
            "mark": {"type": "bar", "clip": True},
            "encoding": {
                "x": {"field": "${field:from}", "type": "quantitative", "title": "value of the statistic"},
                "x2": {"field": "${field:to}"},
                "y": {"field": "${field:top}", "type": "quantitative", "title": "probability"},
                "y2": {"field": "${field:base}"},
                "color": {
                    "field": "${field:curve}",
                    "type": "nominal",
                    "scale": {
                        "domain": list(CURVES),
                        "range": ["#7f9fbf", "#d55e00", "#d55e00"],
                    },
                    "legend": {"title": None, "orient": "top"},
                },
            },
        },
        {
            "transform": [{"filter": _OBSERVED}],
            "mark": {"type": "rule", "strokeDash": [6, 3], "strokeWidth": 2, "clip": True},
            "encoding": {"x": {"field": "${field:from}", "type": "quantitative"}},
        },
    ],
}
"""Preset of trackperm: bars of the widths in the table, and a line at the observed value."""


def preset_of(chart: Chart) -> str:
    """Return the name of the preset of `chart`.

    Raise InputError if the environment variable does not hold the name of a preset.
    """
    wanted = os.environ.get(VARIABLE)
    if not wanted or not {*_BARS} <= {*chart.table.columns}:
        return _LINES
    if not _ID.fullmatch(wanted):
        raise InputError(
            f"`{VARIABLE}={wanted}` does not name a chart; expected `ENTITY/{PRESET}`",
            hint="`trackperm install-chart wandb:ENTITY` installs one and prints its name.",
        )
    return wanted


def drawn(chart: Chart) -> Any:
    """Convert `chart` for :meth:`wandb.Run.log`, which logs its table under its own key and ``_table``."""
    table = wandb.Table(
        columns=list(chart.table.columns), data=list(chart.table.rows), allow_mixed_types=True
    )
    preset = preset_of(chart)
    if preset == _LINES:
        fields = {"x": chart.x, "y": chart.y, "stroke": chart.curve}
    else:
        fields = {name: name for name in _BARS}
    return wandb.plot_table(preset, table, fields, {"title": chart.title})


def presets_in(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the presets of the charts in a run's config, by key."""
    charts = config.get("_wandb", {}).get("visualize", {})
    return {key: chart.get("panel_config", {}).get("panelDefId", "") for key, chart in charts.items()}


def install_chart(store: Store, entity: str) -> str:
    """Store trackperm's preset with a user or team, and return its name.

    Raise InputError if `entity` is not the name of a user or team.
    """
    if not re.fullmatch(r"[\w.-]+", entity):
        raise InputError(f"`wandb:{entity}` is not a user or team; expected `wandb:ENTITY`")
    with store.calls(f"installing the chart `{entity}/{PRESET}`", writes=True) as api:
        made = api.create_custom_chart(
            entity=entity,
            name=PRESET,
            display_name="trackperm: null distribution",
            spec_type="vega2",
            access="private",
            spec=dict(SPEC),
        )
    if made != f"{entity}/{PRESET}":
        raise TrackerError(f"W&B installed the chart as `{made}`, not as `{entity}/{PRESET}`")
    return str(made)
