"""Comparisons in folders of offline W&B runs: listed, verified, and seen when a file is changed."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import pytest
from support.command_line import call_trackperm, invoke
from support.comparisons import accuracy, answers
from support.wandb_projects import WandbFolders

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


def with_right_checksums(content: bytes) -> bytes:
    """Return a log whose records were changed, with checksums that belong to them."""
    block, header = 32768, struct.Struct("<IHB")
    fixed, position = bytearray(content), 7
    while position + header.size <= len(fixed):
        left = block - position % block
        if left < header.size:
            position += left
            continue
        _, length, kind = header.unpack_from(fixed, position)
        data = bytes(fixed[position + header.size : position + header.size + length])
        struct.pack_into("<I", fixed, position, zlib.crc32(data, zlib.crc32(bytes([kind]))))
        position += header.size + length
    return bytes(fixed)


def test_changed_numbers_of_an_offline_comparison_are_seen(tmp_path: Path):
    """Regression: the metrics of offline comparisons were not read, and everything matched."""
    container = WandbFolders(tmp_path).container("digits")
    comparison = accuracy(9, 2, both=20)
    run = trackperm.log(comparison, WandbTracker(), container).run
    folder = Path(run.reference.locator)
    assert trackperm.verify(run).matches
    (log,) = folder.glob("run-*.wandb")
    text = repr(comparison.pvalue).encode()
    assert text in log.read_bytes()
    log.write_bytes(with_right_checksums(log.read_bytes().replace(text, b"0.9" + text[3:])))
    found = trackperm.verify(run)
    assert "metric accuracy/p_value" in {check.what for check in found.checks if not check.matches}


@pytest.mark.extended
def test_a_changed_table_of_an_offline_comparison_is_seen(tmp_path: Path):
    container = WandbFolders(tmp_path).container("digits")
    run = trackperm.log(accuracy(9, 2, both=20), WandbTracker(), container).run
    (table,) = (Path(run.reference.locator) / "files" / "media").rglob("results*.table.json")
    table.write_text(table.read_text().replace("undecided", "better").replace("≈", "▲"))
    table_of_results = {check.what for check in trackperm.verify(run).checks if not check.matches}
    assert {what.partition(",")[0] for what in table_of_results} == {"table results"}
