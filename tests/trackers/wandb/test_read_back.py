"""Comparisons in folders of offline W&B runs: listed, verified, and seen when a file is changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import call_trackperm, invoke
from support.comparisons import answers

import trackperm
from trackperm.tables.wandb.run_log import read_run_log
from trackperm.trackers.wandb.tracker import WandbTracker

pytestmark = [pytest.mark.tracker, pytest.mark.contract]


@pytest.mark.extended
def test_an_offline_comparison_is_listed_and_verified_until_a_file_of_it_is_changed(tmp_path: Path):
    for name, right in (("old", [True, False] * 6), ("new", [True] * 12)):
        answers(right).write_csv(tmp_path / f"{name}.csv")
    folder = tmp_path / "results"
    folder.mkdir()
    comparison = trackperm.compare(tmp_path / "old.csv", tmp_path / "new.csv")
    published = trackperm.log(comparison, WandbTracker(), str(folder))
    assert (published.look, trackperm.log(comparison, WandbTracker(), str(folder)).look) == (1, 1)
    run = Path(published.run.reference.locator)

    (listed,) = json.loads(invoke("family", "--experiment", f"wandb:{folder}", "--format", "json"))
    assert listed["test_set"] == comparison.pairing.test_set
    assert [each["log10_p"] for each in listed["comparisons"]] == [comparison.log10_pvalue]
    for reference in (run, f"wandb:{run}"):
        assert json.loads(invoke("family", reference, "--format", "json")) == [listed]
        invoke("verify", reference, "--from-runs")

    (log,) = run.glob("run-*.wandb")
    (result,) = [each for each in read_run_log(log, str(run)).artifacts if each.type == "comparison"]
    staged = Path(result.entries["trackperm/discordant.parquet"].local_path)
    staged.chmod(0o644)
    staged.write_bytes(staged.read_bytes()[:-1] + b"!")
    assert call_trackperm(tmp_path, "verify", run).returncode == 4
    printed = call_trackperm(tmp_path, "verify", run, "--format", "json").stdout
    assert "was changed at" in json.loads(printed)["checks"][0]["found"]
