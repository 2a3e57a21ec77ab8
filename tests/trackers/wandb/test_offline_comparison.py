"""Comparisons written offline: three runs that are synced, what is told, and what is read back."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.comparisons import answers
from support.tracker_stores import PREDICTIONS, smallest_png
from support.wandb_projects import WandbFolders, sync
from support.wandb_publication import charted, check_complete, publication
from support.wandb_standin import Standin
from wandb.sdk.wandb_summary import Summary

import trackperm
from trackperm.errors import InputError, TrackerError
from trackperm.trackers.base import open_tracker
from trackperm.trackers.publication import Published, Table
from trackperm.trackers.wandb import write
from trackperm.trackers.wandb.content import Content

pytestmark = pytest.mark.tracker


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "SETTLING_SECONDS", (0.0, 0.2))


class TestOfflineFirst:
    @pytest.fixture
    def folders(self, tmp_path: Path) -> WandbFolders:
        return WandbFolders(tmp_path)

    @pytest.fixture
    def empty(self) -> Iterator[Standin]:
        with Standin() as server:
            yield server
            assert not server.unmodelled

    @pytest.mark.extended
    def test_three_offline_runs_are_synced(self, folders: WandbFolders, empty: Standin, tmp_path: Path):
        container = folders.container("digits")
        tracker = open_tracker("wandb")
        runs = [
            tracker.find(folders.run(container, name, {"predictions.json": PREDICTIONS}))
            for name in ("logistic", "forest")
        ]
        wanted = publication(runs[1], baseline=runs[0])
        published = tracker.publish(wanted)
        assert not tracker.publish(wanted).created
        locators = [run.reference.locator for run in (*runs, published.run)]
        assert sorted(locators) == sorted(str(path) for path in Path(container).glob("offline-run-*"))
        for locator in locators:
            sync(Path(locator), empty, tmp_path)
        assert len(empty.state.runs) == 3
        check_complete(empty, "team/digits", wanted)

    def test_a_synced_comparison_is_that_of_the_runs_online(
        self, folders: WandbFolders, empty: Standin, tmp_path: Path
    ):
        """Regression: it counted twice, as the references of offline runs are paths."""
        container = Path(folders.container("digits"))
        runs = self._answered(folders, container, n_runs=2)
        offline = trackperm.log(trackperm.compare(*(f"wandb:{run}" for run in runs)))
        online = self._synced(runs, offline, empty, tmp_path)
        options = {"tracking_uri": empty.url}
        again = trackperm.log(trackperm.compare(*online, **options))
        assert (again.created, again.look) == (False, 1)
        assert len(empty.state.runs) == 3
        for run in online:
            (found,) = trackperm.family(run, **options)
            assert found.n_comparisons == 1
        container.rename(tmp_path / "gone")
        assert trackperm.verify(again.run, from_runs=True).matches

    @pytest.mark.extended
    def test_a_synced_leaderboard_is_that_of_the_runs_online(
        self, folders: WandbFolders, empty: Standin, tmp_path: Path
    ):
        """Regression: each of its pairs counted twice."""
        runs = self._answered(folders, Path(folders.container("digits")), n_runs=3)
        offline = trackperm.log(trackperm.leaderboard([f"wandb:{run}" for run in runs]))
        online = self._synced(runs, offline, empty, tmp_path)
        options = {"tracking_uri": empty.url}
        again = trackperm.log(trackperm.leaderboard(online, **options))
        assert (again.created, again.look) == (False, 1)
        (found,) = trackperm.family(online[0], **options)
        assert found.n_comparisons == 3

    @staticmethod
    def _answered(folders: WandbFolders, container: Path, n_runs: int) -> list[str]:
        """Write offline runs, each with four more right answers than the one before."""
        right = {f"run{i}": [True] * (6 + 4 * i) + [False] * (8 - 4 * i) for i in range(n_runs)}
        return [
            folders.run(str(container), name, {"predictions.json": answers(each).to_dict(as_series=False)})
            for name, each in right.items()
        ]

    @staticmethod
    def _synced(runs: list[str], published: Published, server: Standin, tmp_path: Path) -> list[str]:
        """Sync runs and what was published of them; return the references of the runs online."""
        for locator in (*runs, published.run.reference.locator):
            sync(Path(locator), server, tmp_path)
        return [f"wandb:team/digits/{Path(run).name.rpartition('-')[2]}" for run in runs]

    def test_artifacts_are_staged_beside_the_runs(
        self, folders: WandbFolders, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.delenv("WANDB_DATA_DIR")
        container = folders.container("digits")
        open_tracker("wandb").publish(publication(None), container)
        assert any(path.is_file() for path in Path(container, "artifacts").rglob("*"))

    def test_what_has_gone_is_written_again(self, folders: WandbFolders):
        container = folders.container("digits")
        tracker = open_tracker("wandb")
        first = tracker.publish(publication(None), container)
        (log,) = Path(first.run.reference.locator).glob("run-*.wandb")
        log.write_bytes(log.read_bytes()[:200])
        assert tracker.publish(publication(None), container).created
        assert not tracker.publish(publication(None), container).created

    def test_nothing_is_told_offline_either(self, folders: WandbFolders, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(sys, "argv", ["secret-script.py"])
        published = open_tracker("wandb").publish(publication(None), folders.container("digits"))
        folder = Path(published.run.reference.locator)
        (log,) = folder.glob("run-*.wandb")
        host = socket.gethostname().encode()
        told = [b"secret-", sys.executable.encode(), bytes([len(host)]) + host]  # as protobuf writes text
        assert not [secret for secret in told if secret in log.read_bytes()]
        names = {path.name for path in folder.rglob("*")}
        assert not names & {"requirements.txt", "wandb-metadata.json"}

    def test_offline_runs_get_no_tags(self, folders: WandbFolders):
        container = folders.container("digits")
        tracker = open_tracker("wandb")
        runs = [tracker.find(folders.run(container, name)) for name in ("logistic", "forest")]
        with pytest.raises(InputError, match="is offline, so it cannot get tags"):
            tracker.publish(publication(runs[1], baseline=runs[0]), tag_runs=True)
        assert not folders.comparisons(container)

    def test_an_alert_is_raised_when_the_comparison_is_synced(
        self, folders: WandbFolders, empty: Standin, tmp_path: Path
    ):
        published = open_tracker("wandb").publish(publication(None), folders.container("digits"), alert=True)
        sync(Path(published.run.reference.locator), empty, tmp_path)
        assert [alert["title"] for alert in empty.state.alerts] == [
            "▼ forest loses to logistic in f1, p 0.003"
        ]


class TestOfflineReadBack:
    """What an offline run holds otherwise than it should is named, and the comparison written again."""

    @pytest.fixture
    def written(self, tmp_path: Path) -> Path:
        container = WandbFolders(tmp_path).container("digits")
        return Path(open_tracker("wandb").publish(charted(), container).run.reference.locator)

    def test_what_differs_is_named(self, written: Path):
        assert not write._differences_offline(written, Content.of(charted()))
        metrics = {"f1/p_value": 0.003, "f1/difference": -0.02}
        changes: list[tuple[str, dict[str, object]]] = [
            ("summary `f1/difference`", {"metrics": {**metrics, "f1/difference": -0.03}}),
            ("summary `f1/log10_p`", {"metrics": {**metrics, "f1/log10_p": -2.5}}),
            ("tags and notes", {"description": "another"}),
            ("its name, job type and group", {"name": "another"}),
            ("config `trackperm.statistic`", {"tags": {"trackperm.statistic": "f2"}}),
            ("contents of `pmf.png`", {"files": {"pmf.png": smallest_png() + b"0"}}),
            ("`more`", {"tables": {"more": Table(("p",), [(1,)])}}),
            ("rows of `results`", {"tables": {"results": Table(("p",), [(1,), (2,)])}}),
        ]
        for named, change in changes:
            assert named in write._differences_offline(written, Content.of(charted(**change)))

    def test_another_chart_is_named(self, written: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("TRACKPERM_WANDB_CHART", "team/trackperm-null-distribution")
        found = write._differences_offline(written, Content.of(charted()))
        assert "chart `null_distribution`" in found

    def test_files_of_the_run_that_have_gone_or_changed_are_named(self, written: Path):
        (picture,) = (written / "files" / "media").rglob("*.png")
        picture.unlink()
        (page,) = (written / "files" / "media").rglob("*.html")
        page.write_bytes(b"changed")
        found = write._differences_offline(written, Content.of(charted()))
        assert found == ["`pmf`", "`trackperm_report`"]

    def test_what_is_lost_while_it_is_written_is_an_error(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(Summary, "update", lambda *_: None)
        with pytest.raises(TrackerError, match=r"did not store .*summary `f1/p_value`"):
            open_tracker("wandb").publish(publication(None), WandbFolders(tmp_path).container("digits"))
