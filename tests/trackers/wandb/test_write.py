"""W&B's own traps: runs that are active, runs that are lost without a word, what a run tells of its maker."""

from __future__ import annotations

import getpass
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from uuid import uuid4

import pytest
import wandb
from support.tracker_stores import PREDICTIONS, Artifacts, smallest_png
from support.wandb_projects import WandbProjects, end_service, logged_run
from support.wandb_publication import KEY, check_complete, publication
from support.wandb_standin import Standin, changes
from support.wandb_standin.state import RunRecord

from trackperm.errors import InputError, TrackerError
from trackperm.trackers.base import Tracker
from trackperm.trackers.publication import Publication, Published
from trackperm.trackers.references import RunReference, TrackedRun
from trackperm.trackers.wandb import write
from trackperm.trackers.wandb.tracker import WandbTracker

pytestmark = [pytest.mark.tracker, pytest.mark.contract, pytest.mark.extended]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "SETTLING_SECONDS", (0.0, 0.2))
    monkeypatch.setattr(write, "UPLOAD_SECONDS", 20)
    monkeypatch.setenv("WANDB_HTTP_TIMEOUT", "6")
    monkeypatch.setenv("WANDB_INIT_TIMEOUT", "10")
    monkeypatch.setenv("WANDB_FINISH_TIMEOUT", "10")


class Place:
    """A project on the stand-in with a finished candidate, whose comparisons are published there."""

    def __init__(self, standin: Standin) -> None:
        self.standin, self.projects = standin, WandbProjects(standin)
        self.project = f"team/digits-{uuid4().hex[:8]}"
        self.name = self.project.removeprefix("team/")
        self.candidate = self.logged("forest", {"predictions.json": PREDICTIONS})

    def tracker(self) -> Tracker:
        return self.projects.tracker()

    def logged(self, name: str, artifacts: Artifacts | None = None) -> TrackedRun:
        return self.tracker().find(self.projects.run(self.project, name, artifacts))

    def wanted(self, **changes: object) -> Publication:
        return publication(self.candidate, **changes)

    def publish(self, wanted: Publication | None = None, **options: bool) -> Published:
        return self.tracker().publish(wanted or self.wanted(), **options)

    @property
    def run(self) -> RunRecord:
        """The run of the comparison, as the stand-in keeps it."""
        return self.standin.run(f"{self.project}/trackperm-{KEY}")

    def check(self, wanted: Publication | None = None) -> None:
        check_complete(self.standin, self.project, wanted or self.wanted())


@pytest.fixture
def place(standin: Standin) -> Place:
    return Place(standin)


class TestWhatIsWritten:
    def test_pages_pictures_and_tables_are_drawn(self, place: Place):
        wanted = place.wanted()
        place.publish(wanted)
        run = place.run
        summary = run.read_summary()
        assert (run.job_type, run.group, run.exit_code) == ("comparison", "trackperm", 0)
        assert {name: summary[name]["_type"] for name in ("results", "pmf", "trackperm_report")} == {
            "results": "table-file",
            "pmf": "image-file",
            "trackperm_report": "html-file",
        }
        assert run.files[summary["pmf"]["path"]] == wanted.files["pmf.png"]
        assert run.files[summary["trackperm_report"]["path"]] == wanted.files["trackperm_report.html"]
        assert len(run.history) == 1

    def test_a_name_longer_than_w_b_keeps_is_cut(self, place: Place):
        wanted = place.wanted(name="f1: " + "a long name " * 20)
        place.publish(wanted)
        assert place.run.display_name == wanted.name[:127] + "…"
        assert not place.publish(wanted).created

    def test_what_was_read_becomes_its_lineage(self, place: Place):
        runs = [place.logged(name, {"eval/test.csv": PREDICTIONS}) for name in ("logistic", "forest")]
        for run in runs:
            place.tracker().read(run)
        place.publish(publication(runs[1], baseline=runs[0]))
        used = [place.standin.state.artifacts[number] for number in place.run.used]
        assert ["/".join(artifact.run or ()) for artifact in used] == [run.reference.locator for run in runs]
        result = place.standin.logged(f"{place.project}/trackperm-{KEY}")[f"trackperm-{KEY}"]
        assert json.loads(result.metadata or "")["trackperm.verdict"] == "▼ worse"

    def test_what_a_process_keeps_to_itself(
        self, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
        remote = "https://example.com/secret-repository.git"
        subprocess.run(["git", "remote", "add", "origin", remote], cwd=tmp_path, check=True)
        monkeypatch.setattr(sys, "argv", ["secret-script.py", "--password", "secret-argument"])
        sent = len(place.standin.received)
        place.publish()
        run = place.run
        assert set(run.files) & {"requirements.txt", "wandb-metadata.json", "output.log"} == set()
        assert (run.events, run.log) == ([], [])
        secrets = [
            "secret-",
            f'"{socket.gethostname()}"',
            str(Path.cwd()),
            sys.executable,
            sys.prefix,
            *([f'"{getpass.getuser()}"'] if getpass.getuser() != "team" else []),
        ]
        told = {
            (secret, request.route)
            for request in place.standin.received[sent:]
            for secret in secrets
            if secret.encode() in request.body
        }
        assert not told

    def test_an_alert_is_raised_once_on_request(self, place: Place):
        alerts = place.standin.state.alerts
        before = len(alerts)
        tracker = WandbTracker(place.standin.url)
        tracker.publish(place.wanted(key="aa" * 16))
        better = {"trackperm.statistic": "f1", "trackperm.verdict": "▲ better"}
        tracker.publish(place.wanted(key="bb" * 16, tags=better), alert=True)
        assert len(alerts) == before
        for _ in range(2):
            tracker.publish(place.wanted(), alert=True)
        (alert,) = alerts[before:]
        assert alert["title"] == "▼ forest loses to logistic in f1, p 0.003"

    def test_nothing_is_left_of_what_an_earlier_version_wrote(self, place: Place):
        place.publish()
        left = {"pmf.png": smallest_png()}
        fewer = place.wanted(metrics={"f1/p_value": 0.002}, tables={}, files=left)
        place.publish(fewer)
        place.check(fewer)


class TestOtherRuns:
    def test_a_run_that_is_being_trained_is_left_alone(self, place: Place):
        with logged_run(place.name, "training", standin=place.standin) as training:
            training.log({"loss": 2.0})
            before = wandb.run
            place.publish()
            assert wandb.run is before
            training.log({"loss": 1.0})
        kept = place.standin.run(f"{place.project}/{training.id}")
        assert [json.loads(row)["loss"] for row in kept.history] == [2.0, 1.0]
        assert kept.tags == []
        place.check()

    def test_a_run_that_was_started_in_the_usual_way_is_left_alone(self, place: Place):
        training = wandb.init(
            entity="team",
            project=place.name,
            mode="online",  # else as the first run of this process was
            settings=wandb.Settings(base_url=place.standin.url, x_disable_stats=True, silent=True),
        )
        try:
            place.publish()
            assert wandb.run is training
        finally:
            training.finish()
        assert wandb.run is None
        assert place.standin.run(f"{place.project}/{training.id}").tags == []

    def test_no_run_stays_active(self, place: Place):
        place.publish()
        assert wandb.setup().most_recent_active_run is None
        place.standin.fail("CommitArtifact", repeat(403))
        with pytest.raises(TrackerError):
            place.publish(place.wanted(key="ab" * 16))
        assert wandb.setup().most_recent_active_run is None

    def test_a_candidate_that_is_not_finished_is_compared_and_left_alone(self, place: Place):
        with logged_run(place.name, "forest", standin=place.standin) as run:
            running = TrackedRun(RunReference("wandb", f"{place.project}/{run.id}"), "forest", place.project)
            place.publish(publication(running))
        assert not place.projects.candidate_tags(f"{place.project}/{run.id}")

    def test_tags_that_a_run_did_not_keep_are_said(self, place: Place, monkeypatch: pytest.MonkeyPatch):
        baseline = place.logged("logistic")
        wanted = place.wanted(baseline=baseline, baseline_tags={"sig.f1.baseline_of": "forest"})
        place.publish(wanted)
        monkeypatch.delitem(changes._BUCKET_FIELDS, "summaryMetrics")
        with pytest.raises(TrackerError, match=r"did not store the summary of run .*sig\.f1"):
            place.publish(wanted, tag_runs=True)


_FAULTS = {
    "out of order at the start": ("#UpsertBucket", 500, "does not answer|failed"),
    "too many requests": ("#(Run|UpsertBucket)$", 429, "does not answer|failed"),
    "unknown user": ("graphql", 401, "does not accept these credentials"),
    "may not write": ("#UpsertBucket", 403, "denies permission"),
    "may not upload": ("PUT /blobs", 403, "failed|denies"),
    "may not commit": ("#CommitArtifact", 403, "denies permission|failed"),
    "stream is lost": ("file_stream", 404, "did not store"),
    "run files are lost": ("PUT /run-files", 403, "did not store"),
}
_RETRIED = ("out of order at the start", "too many requests")  # by wandb itself, for some ten seconds


class TestFaults:
    @pytest.fixture(autouse=True)
    def another_process(self) -> Iterator[None]:
        end_service()  # which reads the environment once, and how long to wait with it
        yield
        end_service()  # an id whose run could not be started stays in use

    @pytest.mark.parametrize(
        "case", [pytest.param(case, marks=[pytest.mark.slow] if case in _RETRIED else []) for case in _FAULTS]
    )
    def test_is_one_clear_message_and_the_next_try_completes(self, place: Place, case: str):
        route, status, message = _FAULTS[case]
        place.standin.fail(route, repeat(status))
        with pytest.raises(TrackerError, match=message) as caught:
            place.publish()
        assert "\n\n" not in caught.value.message
        begun = place.standin.state.runs.get((*place.project.split("/"), f"trackperm-{KEY}"))
        assert begun is None or "unfinished" in begun.tags
        assert begun is None or begun.notes != "**worse**, p = 0.003"
        place.standin.mend()
        end_service()
        place.publish()
        place.check()

    def test_that_pass_are_forgiven(self, place: Place):
        place.standin.fail("#UpsertBucket", [500])
        place.standin.fail("PUT /blobs", [503])
        place.publish()
        place.check()

    def test_what_was_lost_later_is_written_again(self, place: Place):
        place.publish()
        place.run.files.clear()
        place.run.notes = "changed by hand"
        place.publish()
        place.check()

    def test_nobody_listens(self, standin: Standin):
        with pytest.raises(TrackerError, match="does not answer"):
            WandbTracker("http://127.0.0.1:9").find("team/digits/forest")

    def test_death_in_the_middle(self, place: Place):
        program = f"""
import os
from support.wandb_publication import publication
from trackperm.trackers.wandb import write
from trackperm.trackers.wandb.tracker import WandbTracker

def die(*_, **__):
    os._exit(9)

write._verify = die
tracker = WandbTracker({place.standin.url!r})
tracker.publish(publication(tracker.find({place.candidate.reference.locator!r})))
"""
        here = Path(__file__).parents[2]
        died = subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path[:0] = [{str(here)!r}]\n{program}"],
            timeout=60,
        )
        assert died.returncode == 9
        assert "unfinished" in place.run.tags
        place.publish()
        place.check()


class TestReferences:
    @pytest.mark.parametrize(
        "page",
        [
            "https://wandb.ai/{path}",
            "https://forge.coreweave.com/wandb/{path}/overview?nw=nwuser",
            "http://127.0.0.1:8080/{path}#logs",
        ],
    )
    def test_the_address_of_a_page_on_any_host(self, place: Place, page: str):
        entity, project, run_id = place.candidate.reference.locator.split("/")
        reference = RunReference.parse(page.format(path=f"{entity}/{project}/runs/{run_id}"))
        assert reference.scheme == "wandb"
        assert place.tracker().find(reference.locator) == place.candidate

    @pytest.mark.parametrize("page", ["https://wandb.ai/team", "https://wandb.ai/team/digits/reports/x"])
    def test_other_pages_are_refused(self, standin: Standin, page: str):
        with pytest.raises(InputError, match="not the address of a run's page"):
            WandbProjects(standin).tracker().find(page)

    def test_the_entity_has_a_default(self, place: Place):
        locator = place.candidate.reference.locator.removeprefix("team/")
        assert place.tracker().find(locator) == place.candidate

    def test_a_folder_that_wandb_made_is_not_taken_for_the_project(self, place: Place, tmp_path: Path):
        assert (tmp_path / place.candidate.reference.locator).is_dir()  # by `wandb.Api`, as WANDB_DIR is set
        published = place.tracker().publish(publication(None), place.project)
        assert published.run.container == place.project
        place.check(publication(None))

    def test_an_id_is_preferred_to_a_name(self, place: Place):
        one = place.logged("forest").reference.locator
        place.projects.run(place.project, one.rpartition("/")[2])
        assert place.tracker().find(one).reference.locator == one
