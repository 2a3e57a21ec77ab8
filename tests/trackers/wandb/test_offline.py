"""Offline runs as runs of a tracker, and compared from the command line without a server."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pytest
from support.processes import run as run_process
from support.processes import script
from support.wandb_offline_runs import N_ROWS, OfflineRuns

import trackperm
from trackperm.errors import InputError
from trackperm.trackers.base import open_tracker
from trackperm.trackers.wandb.offline import find_offline_run, is_offline_run, read_offline_run


@pytest.mark.extended
def test_what_is_an_offline_run(offline_runs: OfflineRuns, monkeypatch: pytest.MonkeyPatch):
    folder = offline_runs["forest"]
    assert is_offline_run(str(folder))
    assert is_offline_run(str(folder / "run-forest.wandb"))
    assert not is_offline_run(str(folder.parent))
    assert not is_offline_run(str(folder / "files"))
    assert not is_offline_run("team/digits/forest")
    monkeypatch.setenv("HOME", str(folder.parent))
    assert is_offline_run(f"~/{folder.name}")
    assert find_offline_run(f"~/{folder.name}") == find_offline_run(str(folder))


@pytest.mark.extended
def test_a_log_that_is_being_written_is_waited_for(offline_runs: OfflineRuns, tmp_path: Path):
    content = (offline_runs["forest"] / "run-forest.wandb").read_bytes()
    log = tmp_path / "run-forest.wandb"
    log.write_bytes(content[:7])
    writer = threading.Timer(0.3, log.write_bytes, [content])
    writer.start()
    found = find_offline_run(str(tmp_path))
    writer.join()
    assert (found.name, read_offline_run(found).notes) == ("random forest", ())


def test_a_run_is_found_by_its_folder(offline_runs: OfflineRuns, monkeypatch: pytest.MonkeyPatch):
    folder = offline_runs["forest"]
    found = find_offline_run(str(folder))
    assert str(found.reference) == f"wandb:{folder.resolve()}"
    assert (found.name, found.container, found.url) == ("random forest", "team/digits", None)
    monkeypatch.chdir(folder.parent)
    assert find_offline_run(folder.name) == find_offline_run(f"{folder.name}/run-forest.wandb") == found
    nameless = find_offline_run(offline_runs["logistic"].name)
    assert (nameless.name, nameless.container) == ("logistic", "digits")


def test_its_table_is_read(offline_runs: OfflineRuns):
    run = find_offline_run(str(offline_runs["forest"]))
    table = read_offline_run(run)
    assert (len(table), table.origin) == (N_ROWS, str(run.reference))
    run = find_offline_run(str(offline_runs["tables"]))
    assert len(read_offline_run(run, "nested.deep")) == 7
    with pytest.raises(InputError, match=r"9 tables[\s\S]*choose one: `artifact=.eval/dev set.`"):
        read_offline_run(run)


@pytest.mark.parametrize("locator", ["wandb/offline-run-20260101_000000-x", "./wandb/latest-run", "~/x"])
def test_folders_that_are_not_there_are_not_looked_up_on_a_server(
    locator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"`{locator}` does not exist"):
        open_tracker("wandb").find(locator)


def test_comparisons_are_refused(offline_runs: OfflineRuns):
    with pytest.raises(InputError, match="is a comparison that trackperm logged"):
        find_offline_run(str(offline_runs["earlier"]))


def test_folders_are_compared_as_files(offline_runs: OfflineRuns):
    comparison = trackperm.compare(offline_runs["logistic"], offline_runs["forest"])
    assert (comparison.n_examples, comparison.n_discordant) == (N_ROWS, 15)
    assert comparison.candidate_name == offline_runs["forest"].name


def test_from_the_command_line_without_wandb(offline_runs: OfflineRuns, tmp_path: Path):
    """A package called wandb that cannot be imported is in the way of whoever imports it."""
    (tmp_path / "wandb.py").write_text("raise AssertionError('wandb was imported')")
    paths = [offline_runs["logistic"], f"{offline_runs['forest']}::predictions"]
    result = run_process(
        [sys.executable, script("trackperm"), "compare", *paths, "--format", "json"],
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert result.returncode == 0, result.stderr
    (found,) = json.loads(result.stdout)
    assert (found["n_examples"], found["n_better"], found["n_worse"]) == (N_ROWS, 10, 5)
