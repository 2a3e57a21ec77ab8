"""The native chart of a comparison: drawn by a preset that every server has, or by ours once installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import vl_convert
from support.command_line import call_trackperm
from support.comparisons import accuracy
from support.wandb_projects import WandbProjects
from support.wandb_publication import charted, check_complete
from support.wandb_standin import Standin, environment

from trackperm.errors import InputError, TrackerError
from trackperm.ledger.comparison_publication import publication
from trackperm.trackers.wandb.charts import CURVES, PRESET, SPEC, VARIABLE
from trackperm.trackers.wandb.tracker import WandbTracker

pytestmark = [pytest.mark.tracker, pytest.mark.extended]

PANEL = "null_distribution"


def panel(standin: Standin, path: str) -> dict[str, object]:
    """Configuration of the panel that a run's page shows."""
    config = json.loads(standin.run(path).config)
    found: dict[str, object] = config["_wandb"]["value"]["visualize"][PANEL]["panel_config"]
    return found


def test_the_null_distribution_is_drawn_as_lines(standin: Standin):
    project = WandbProjects(standin).container("charts-of-lines")
    published = WandbTracker(standin.url).publish(charted(), project)
    shown = panel(standin, published.run.reference.locator)
    assert shown["panelDefId"] == "wandb/line/v0"
    assert shown["fieldSettings"] == {"x": "value", "y": "probability", "stroke": "curve"}
    assert shown["stringSettings"] == {"title": "null distribution"}
    summary = standin.run(published.run.reference.locator).read_summary()
    assert summary[f"{PANEL}_table"]["nrows"] == 2
    check_complete(standin, project, charted())


def test_our_chart_is_used_once_it_is_installed(
    standin: Standin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    project = WandbProjects(standin).container("charts-of-ours")
    tracker = WandbTracker(standin.url)
    tracker.publish(charted(), project)
    installed = call_trackperm(tmp_path, "install-chart", "wandb:team", env=environment(tmp_path, standin))
    assert installed.stdout == f"export {VARIABLE}=team/{PRESET}\n", installed.stderr
    kept = standin.state.charts[f"team/{PRESET}"]
    assert (kept["type"], kept["access"], json.loads(kept["spec"])) == ("vega2", "PRIVATE", SPEC)

    monkeypatch.setenv(VARIABLE, f"team/{PRESET}")
    assert not tracker.publish(charted(), project).created
    shown = panel(standin, f"{project}/trackperm-{charted().key}")
    assert shown["panelDefId"] == f"team/{PRESET}"
    assert set(shown["fieldSettings"]) >= {"from", "to", "base", "top", "curve"}  # of before, the others
    with pytest.raises(TrackerError, match="installing the chart `team/trackperm-null-distribution`"):
        tracker.install_chart("team")


def test_an_invalid_entity_is_refused(standin: Standin):
    for entity in ("", "a/b", "https://wandb.ai/team"):
        with pytest.raises(InputError, match="is not a user or team"):
            WandbTracker(standin.url).install_chart(entity)


def test_a_setting_that_names_no_chart_is_refused(standin: Standin, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, "our chart")
    with pytest.raises(InputError, match=rf"`{VARIABLE}=our chart` does not name a chart"):
        WandbTracker(standin.url).publish(charted(), WandbProjects(standin).container("charts-of-none"))


def test_a_chart_has_few_points():
    chart = publication(accuracy(30_000, 29_000)).charts[PANEL]
    assert 100 < len(chart.table.rows) <= 1000


def test_our_spec_is_drawn_by_vega():
    chart = publication(accuracy(20, 4)).charts[PANEL]
    assert {*chart.table.columns} >= {chart.x, chart.y, chart.curve}
    text = json.dumps(SPEC)
    for name in chart.table.columns:
        text = text.replace("${field:" + name + "}", name)
    text = text.replace("${string:title}", chart.title)
    assert "${" not in text
    rows = [dict(zip(chart.table.columns, row, strict=True)) for row in chart.table.rows]
    spec = json.loads(text)
    drawn = vl_convert.vegalite_to_svg({**spec, "data": {"values": rows}})
    assert chart.title in drawn
    assert all(f">{curve}<" in drawn for curve in CURVES)
    spec["layer"][0]["mark"]["type"] = "no mark"
    with pytest.raises(ValueError, match="conversion failed"):
        vl_convert.vegalite_to_svg({**spec, "data": {"values": rows}})
