"""``trackperm.gate`` on runs and artifacts of W&B: what an alias names, and refused look-ups."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import wandb
from support.comparisons import answers
from support.wandb_projects import logged_run
from support.wandb_standin import Standin

import trackperm
from trackperm.automation.gate.gate import GateReport
from trackperm.errors import InputError, TrackerError

pytestmark = pytest.mark.tracker

LOOK_UP = "#ArtifactMembershipByName$"


def log_version(run: wandb.Run, folder: Path, n_right: int, *aliases: str) -> None:
    """Log a version of the artifact `predictions` in which so many of 100 answers are right."""
    file = folder / "p.parquet"
    answers([i < n_right for i in range(100)]).write_parquet(file)
    made = wandb.Artifact("predictions", type="predictions")
    made.add_file(str(file), name="p.parquet")
    run.log_artifact(made, aliases=list(aliases)).wait()


@pytest.fixture
def project(standin: Standin, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A project whose alias `prod` is a version of the predictions that the same run has replaced."""
    name = request.node.name.replace("_", "-")[:40]
    with logged_run(name, "production", standin=standin) as run:
        log_version(run, tmp_path, 90, "prod")
        log_version(run, tmp_path, 50)
    return f"team/{name}"


def finished(standin: Standin, project: str, folder: Path, n_right: int) -> str:
    with logged_run(project.partition("/")[2], f"{n_right} right", standin=standin) as run:
        log_version(run, folder, n_right)
    return f"wandb:{project}/{run.id}"


def judged(standin: Standin, candidate: str, folder: Path, baseline: str, *others: str) -> GateReport:
    text = ", ".join(["name: p", "statistics: [accuracy]", f"tracking_uri: {standin.url}", *others])
    policy = folder / "p.yaml"
    policy.write_text(f"policies: [{{{text}, baseline: {{{baseline}}}}}]")
    return trackperm.gate(candidate, policy, log=False)


@pytest.mark.extended
def test_an_alias_names_the_version_that_is_compared(project: str, standin: Standin, tmp_path: Path):
    """Regression: the newest predictions of the run that logged that version were compared."""
    candidate = finished(standin, project, tmp_path, 70)
    for others in ((), ("artifact: predictions",), ("artifact: predictions/p.parquet",)):
        report = judged(standin, candidate, tmp_path, f"alias: '{project}/predictions:prod'", *others)
        assert report.baseline is not None
        assert str(report.baseline.run.reference) == f"wandb:{project}/predictions:v0"
        assert report.outcome == "fail"


def test_a_look_up_that_is_refused_is_no_missing_baseline(project: str, standin: Standin, tmp_path: Path):
    """Regression: `if_no_baseline: pass` let a candidate pass whose baseline may not be read."""
    candidate = finished(standin, project, tmp_path, 10)
    alias = f"alias: '{project}/predictions:{{}}'"
    first = judged(standin, candidate, tmp_path, alias.format("none"), "if_no_baseline: pass")
    assert first.outcome == "no baseline"
    for status in (403, 404):
        standin.fail(LOOK_UP, itertools.repeat(status))
        try:
            with pytest.raises(TrackerError, match="looking up artifact"):
                judged(standin, candidate, tmp_path, alias.format("prod"), "if_no_baseline: pass")
        finally:
            standin.mend()
    elsewhere = "alias: 'team/no-such-project/predictions:prod'"
    with pytest.raises(InputError, match="its project does not exist, or this API key may not read it"):
        judged(standin, candidate, tmp_path, elsewhere, "if_no_baseline: pass")


@pytest.mark.extended
def test_an_artifact_is_a_candidate(project: str, standin: Standin, tmp_path: Path):
    """Regression: it was looked up as a run."""
    candidate = finished(standin, project, tmp_path, 70)
    report = judged(standin, f"wandb:{project}/predictions:prod", tmp_path, f"run: '{candidate}'")
    assert report.outcome == "pass"
    standin.run(candidate.removeprefix("wandb:")).state = "preempted"
    with pytest.raises(InputError, match="has failed"):
        judged(standin, candidate, tmp_path, f"alias: '{project}/predictions:prod'")


@pytest.mark.extended
@pytest.mark.parametrize("state", ["failed", "killed"])
def test_a_baseline_that_did_not_end_well_is_noted(
    project: str, standin: Standin, tmp_path: Path, state: str
):
    baseline, candidate = (finished(standin, project, tmp_path, n_right) for n_right in (70, 71))
    standin.run(baseline.removeprefix("wandb:")).state = state
    report = judged(standin, candidate, tmp_path, f"run: '{baseline}'")
    [note] = report.notes
    assert note.startswith("`70 right`: the run ")
