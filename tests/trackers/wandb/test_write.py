"""W&B's own traps: runs that are active, runs that are lost without a word, what a run tells of its maker."""

from __future__ import annotations

import dataclasses
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
from support.tracker_stores import PREDICTIONS, smallest_png
from support.wandb_projects import WandbProjects, end_service, logged_run
from support.wandb_publication import KEY, check_complete, publication
from support.wandb_standin import Standin, changes

from trackperm.errors import InputError, TrackerError
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


@pytest.fixture
def projects(standin: Standin) -> WandbProjects:
    return WandbProjects(standin)


@pytest.fixture
def project() -> str:
    return f"team/digits-{uuid4().hex[:8]}"


@pytest.fixture
def candidate(projects: WandbProjects, project: str) -> TrackedRun:
    locator = projects.run(project, "forest", {"predictions.json": PREDICTIONS})
    return projects.tracker().find(locator)


class TestWhatIsWritten:
    def test_pages_pictures_and_tables_are_drawn(
        self, standin: Standin, projects: WandbProjects, project: str, candidate: TrackedRun
    ):
        wanted = publication(candidate)
        projects.tracker().publish(wanted)
        run = standin.run(f"{project}/trackperm-{KEY}")
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

    def test_a_name_longer_than_w_b_keeps_is_cut(
        self, standin: Standin, projects: WandbProjects, project: str, candidate: TrackedRun
    ):
        wanted = dataclasses.replace(publication(candidate), name="f1: " + "a long name " * 20)
        projects.tracker().publish(wanted)
        kept = standin.run(f"{project}/trackperm-{KEY}").display_name
        assert kept == wanted.name[:127] + "…"
        assert not projects.tracker().publish(wanted).created

    def test_what_was_read_becomes_its_lineage(self, standin: Standin, projects: WandbProjects, project: str):
        runs = []
        for name in ("logistic", "forest"):
            tracker = projects.tracker()
            run = tracker.find(projects.run(project, name, {"eval/test.csv": PREDICTIONS}))
            tracker.read(run)
            runs.append(run)
        projects.tracker().publish(publication(runs[1], baseline=runs[0]))
        used = [standin.state.artifacts[number] for number in standin.run(f"{project}/trackperm-{KEY}").used]
        assert ["/".join(artifact.run or ()) for artifact in used] == [run.reference.locator for run in runs]
        result = standin.logged(f"{project}/trackperm-{KEY}")[f"trackperm-{KEY}"]
        assert json.loads(result.metadata or "")["trackperm.verdict"] == "▼ worse"

    def test_what_a_process_keeps_to_itself(
        self,
        standin: Standin,
        projects: WandbProjects,
        project: str,
        candidate: TrackedRun,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ):
        subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
        remote = "https://example.com/secret-repository.git"
        subprocess.run(["git", "remote", "add", "origin", remote], cwd=tmp_path, check=True)
        monkeypatch.setattr(sys, "argv", ["secret-script.py", "--password", "secret-argument"])
        sent = len(standin.received)
        projects.tracker().publish(publication(candidate))
        run = standin.run(f"{project}/trackperm-{KEY}")
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
            for request in standin.received[sent:]
            for secret in secrets
            if secret.encode() in request.body
        }
        assert not told

    def test_an_alert_is_raised_once_on_request(self, standin: Standin, project: str, candidate: TrackedRun):
        tracker = WandbTracker(standin.url)
        before = len(standin.state.alerts)
        tracker.publish(publication(candidate, "aa" * 16))
        better = {"trackperm.statistic": "f1", "trackperm.verdict": "▲ better"}
        tracker.publish(publication(candidate, "bb" * 16, tags=better), alert=True)
        assert len(standin.state.alerts) == before
        for _ in range(2):
            tracker.publish(publication(candidate), alert=True)
        (alert,) = standin.state.alerts[before:]
        assert alert["title"] == "▼ forest loses to logistic in f1, p 0.003"

    def test_nothing_is_left_of_what_an_earlier_version_wrote(
        self, standin: Standin, projects: WandbProjects, project: str, candidate: TrackedRun
    ):
        projects.tracker().publish(publication(candidate))
        left = {"pmf.png": smallest_png()}
        fewer = publication(candidate, metrics={"f1/p_value": 0.002}, tables={}, files=left)
        projects.tracker().publish(fewer)
        check_complete(standin, project, fewer)


class TestOtherRuns:
    def test_a_run_that_is_being_trained_is_left_alone(
        self, standin: Standin, projects: WandbProjects, project: str, candidate: TrackedRun
    ):
        with logged_run(project.removeprefix("team/"), "training", standin=standin) as training:
            training.log({"loss": 2.0})
            path = f"{project}/{training.id}"
            before = wandb.run
            projects.tracker().publish(publication(candidate))
            assert wandb.run is before
            training.log({"loss": 1.0})
        assert [json.loads(row)["loss"] for row in standin.run(path).history] == [2.0, 1.0]
        assert standin.run(path).tags == []
        check_complete(standin, project, publication(candidate))

    def test_a_run_that_was_started_in_the_usual_way_is_left_alone(
        self, standin: Standin, projects: WandbProjects, project: str, candidate: TrackedRun
    ):
        training = wandb.init(
            entity="team",
            project=project.removeprefix("team/"),
            mode="online",  # else as the first run of this process was
            settings=wandb.Settings(base_url=standin.url, x_disable_stats=True, silent=True),
        )
        try:
            projects.tracker().publish(publication(candidate))
            assert wandb.run is training
        finally:
            training.finish()
        assert wandb.run is None
        assert standin.run(f"{project}/{training.id}").tags == []

    def test_no_run_stays_active(self, standin: Standin, projects: WandbProjects, candidate: TrackedRun):
        projects.tracker().publish(publication(candidate))
        assert wandb.setup().most_recent_active_run is None
        standin.fail("CommitArtifact", repeat(403))
        with pytest.raises(TrackerError):
            projects.tracker().publish(publication(candidate, "ab" * 16))
        assert wandb.setup().most_recent_active_run is None

    def test_a_candidate_that_is_not_finished_is_compared_and_left_alone(
        self, standin: Standin, projects: WandbProjects, project: str
    ):
        with logged_run(project.removeprefix("team/"), "forest", standin=standin) as run:
            running = TrackedRun(RunReference("wandb", f"{project}/{run.id}"), "forest", project)
            projects.tracker().publish(publication(running))
        assert not projects.candidate_tags(f"{project}/{run.id}")

    def test_tags_that_a_run_did_not_keep_are_said(
        self,
        projects: WandbProjects,
        project: str,
        candidate: TrackedRun,
        monkeypatch: pytest.MonkeyPatch,
    ):
        baseline = projects.tracker().find(projects.run(project, "logistic"))
        wanted = publication(candidate, baseline=baseline, baseline_tags={"sig.f1.baseline_of": "forest"})
        projects.tracker().publish(wanted)
        monkeypatch.delitem(changes._BUCKET_FIELDS, "summaryMetrics")
        with pytest.raises(TrackerError, match=r"did not store the summary of run .*sig\.f1"):
            projects.tracker().publish(wanted, tag_runs=True)


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
    def test_is_one_clear_message_and_the_next_try_completes(
        self, standin: Standin, projects: WandbProjects, project: str, candidate: TrackedRun, case: str
    ):
        route, status, message = _FAULTS[case]
        standin.fail(route, repeat(status))
        with pytest.raises(TrackerError, match=message) as caught:
            projects.tracker().publish(publication(candidate))
        assert "\n\n" not in caught.value.message
        begun = standin.state.runs.get((*project.split("/"), f"trackperm-{KEY}"))
        assert begun is None or "unfinished" in begun.tags
        assert begun is None or begun.notes != "**worse**, p = 0.003"
        standin.mend()
        end_service()
        projects.tracker().publish(publication(candidate))
        check_complete(standin, project, publication(candidate))

    def test_that_pass_are_forgiven(
        self, standin: Standin, projects: WandbProjects, project: str, candidate: TrackedRun
    ):
        standin.fail("#UpsertBucket", [500])
        standin.fail("PUT /blobs", [503])
        projects.tracker().publish(publication(candidate))
        check_complete(standin, project, publication(candidate))

    def test_what_was_lost_later_is_written_again(
        self, standin: Standin, projects: WandbProjects, project: str, candidate: TrackedRun
    ):
        projects.tracker().publish(publication(candidate))
        run = standin.run(f"{project}/trackperm-{KEY}")
        run.files.clear()
        run.notes = "changed by hand"
        projects.tracker().publish(publication(candidate))
        check_complete(standin, project, publication(candidate))

    def test_nobody_listens(self, candidate: TrackedRun):
        with pytest.raises(TrackerError, match="does not answer"):
            WandbTracker("http://127.0.0.1:9").find("team/digits/forest")

    def test_death_in_the_middle(
        self, standin: Standin, projects: WandbProjects, project: str, candidate: TrackedRun
    ):
        program = f"""
import os
from support.wandb_publication import publication
from trackperm.trackers.wandb import write
from trackperm.trackers.wandb.tracker import WandbTracker
def die(*_, **__):
    os._exit(9)
write._verify = die
tracker = WandbTracker({standin.url!r})
tracker.publish(publication(tracker.find({candidate.reference.locator!r})))
"""
        here = Path(__file__).parents[2]
        died = subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path[:0] = [{str(here)!r}]\n{program}"],
            timeout=60,
        )
        assert died.returncode == 9
        assert "unfinished" in standin.run(f"{project}/trackperm-{KEY}").tags
        projects.tracker().publish(publication(candidate))
        check_complete(standin, project, publication(candidate))


class TestReferences:
    @pytest.mark.parametrize(
        "page",
        [
            "https://wandb.ai/{path}",
            "https://forge.coreweave.com/wandb/{path}/overview?nw=nwuser",
            "http://127.0.0.1:8080/{path}#logs",
        ],
    )
    def test_the_address_of_a_page_on_any_host(
        self, projects: WandbProjects, candidate: TrackedRun, page: str
    ):
        entity, project, run_id = candidate.reference.locator.split("/")
        reference = RunReference.parse(page.format(path=f"{entity}/{project}/runs/{run_id}"))
        assert reference.scheme == "wandb"
        assert projects.tracker().find(reference.locator) == candidate

    @pytest.mark.parametrize("page", ["https://wandb.ai/team", "https://wandb.ai/team/digits/reports/x"])
    def test_other_pages_are_refused(self, projects: WandbProjects, page: str):
        with pytest.raises(InputError, match="not the address of a run's page"):
            projects.tracker().find(page)

    def test_the_entity_has_a_default(self, projects: WandbProjects, candidate: TrackedRun):
        assert projects.tracker().find(candidate.reference.locator.removeprefix("team/")) == candidate

    def test_a_folder_that_wandb_made_is_not_taken_for_the_project(
        self, standin: Standin, projects: WandbProjects, project: str, candidate: TrackedRun, tmp_path: Path
    ):
        assert (tmp_path / candidate.reference.locator).is_dir()  # by `wandb.Api`, as WANDB_DIR is set
        published = projects.tracker().publish(publication(None), project)
        assert published.run.container == project
        check_complete(standin, project, publication(None))

    def test_an_id_is_preferred_to_a_name(self, standin: Standin, projects: WandbProjects, project: str):
        one = projects.run(project, "forest")
        projects.run(project, one.rpartition("/")[2])
        assert projects.tracker().find(one).reference.locator == one
