"""Which baseline is found in an MLflow store, by every rule; see the contract of histories for others."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from support.hooked_runs import HookedStore

from trackperm.automation.judging.baseline import file_run, find_baseline, is_selected
from trackperm.automation.policy.policy import Policy
from trackperm.errors import InputError, NoBaselineError, SpecError
from trackperm.trackers.history import history_of
from trackperm.trackers.references import TrackedRun

pytestmark = pytest.mark.tracker

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


class Runs(HookedStore):
    """An experiment whose runs start at the minutes they are told."""

    def __init__(self, *place: Any) -> None:
        super().__init__(*place)
        self.tracker = self.store.tracker()

    def run(self, *arguments: Any, **options: Any) -> TrackedRun:
        """Make a run, which is found as people find it."""
        return self.tracker.find(self.made(*arguments, **options))

    def made(
        self,
        minute: int,
        tags: dict[str, str] | None = None,
        *,
        name: str = "run",
        status: str = "FINISHED",
        experiment: str | None = None,
    ) -> str:
        """Make a run, and return its id."""
        start = int((NOON + timedelta(minutes=minute)).timestamp() * 1000)
        client = self.store.client
        made = client.create_run(
            self.store.experiment(experiment or self.experiment), start_time=start, tags=tags, run_name=name
        )
        if status != "RUNNING":
            client.set_terminated(made.info.run_id, status, end_time=start + 1000)
        return str(made.info.run_id)

    def rule(self, **baseline: Any) -> Policy:
        return self.policy(baseline=baseline)

    def found(self, candidate: TrackedRun, **baseline: Any) -> TrackedRun:
        return find_baseline(self.rule(**baseline), self.tracker, candidate).run


@pytest.fixture
def runs(database: Path, tmp_path: Path) -> Runs:
    uri = f"sqlite:///{database / 'mlflow.db'}"
    return Runs(uri, tmp_path, tmp_path / "artifacts", f"digits/{tmp_path.name}")


PROD = {"stage": "prod"}


@pytest.mark.extended
def test_the_newest_finished_run_before_the_candidate(runs: Runs):
    runs.run(1, PROD)
    newest = runs.run(2, PROD, name="right")
    runs.run(3, {"stage": "dev"})
    runs.run(4, PROD, status="FAILED")
    runs.run(5, PROD, status="RUNNING")
    runs.made(6, {**PROD, "trackperm.kind": "comparison"})
    candidate = runs.run(7, PROD)
    runs.run(8, PROD)
    policy = runs.rule(newest={"tags": PROD})
    found = find_baseline(policy, runs.tracker, candidate)
    assert found.run == newest
    assert found.why == (
        "the newest finished run before the candidate (stage=prod), started 2026-03-01 12:02:00 UTC"
    )
    assert found.run.name == "right"


def test_the_newest_by_name_and_of_any(runs: Runs):
    first = runs.run(1, name="release-1")
    second = runs.run(2, name="try-1")
    candidate = runs.run(3, name="release-2")
    assert runs.found(candidate, newest={"name": "release-*"}) == first
    assert runs.found(candidate, newest={}) == second


@pytest.mark.extended
def test_the_newest_is_found_behind_many_others(runs: Runs):
    right = runs.run(0, PROD, name="release")
    for minute in range(1, 60):  # more than one page
        runs.run(minute, PROD, name="try")
    assert runs.found(runs.run(99), newest={"tags": PROD, "name": "rel*"}) == right


def test_the_newest_of_another_experiment(runs: Runs):
    other = f"{runs.experiment}/production"
    right = runs.run(1, PROD, experiment=other)
    runs.run(2, PROD)
    candidate = runs.run(3)
    assert runs.found(candidate, newest={"tags": PROD}, among=f"mlflow:{other}") == right
    with pytest.raises(InputError, match="no experiment called `nowhere`"):
        runs.found(candidate, newest={}, among="mlflow:nowhere")


def test_the_branch(runs: Runs):
    main = runs.run(1, {"mlflow.source.git.branch": "main"})
    other = runs.run(2, {"mlflow.source.git.branch": "feature", "ref": "main"})
    candidate = runs.run(3, {"mlflow.source.git.branch": "feature"})
    assert runs.found(candidate, branch="main") == main
    assert runs.found(candidate, branch="main", branch_tag="ref") == other
    policy = runs.rule(branch="develop")
    with pytest.raises(NoBaselineError, match="of the branch develop before the candidate"):
        find_baseline(policy, runs.tracker, candidate)


def test_values_that_look_like_a_query(runs: Runs):
    tags = {"note": "it's", "pair": 'say "a"'}
    right = runs.run(1, tags)
    candidate = runs.run(2)
    assert runs.found(candidate, newest={"tags": tags}) == right
    assert runs.found(candidate, newest={"tags": {"note": "it's"}}) == right
    with pytest.raises(InputError, match="cannot search for the tag `note`"):
        runs.found(candidate, newest={"tags": {"note": "' or \""}})
    with pytest.raises(NoBaselineError):
        runs.found(candidate, newest={"tags": {"note": "' or 1 = 1"}})


def test_a_registered_model(runs: Runs):
    champion, challenger = runs.run(1, name="champion"), runs.run(2, name="challenger")
    client, model = runs.store.client, f"digits-{runs.folder.name}"
    client.create_registered_model(model)
    for alias, run in (("champion", champion), ("next", challenger)):
        version = client.create_model_version(
            model, f"runs:/{run.reference.locator}/model", run.reference.locator
        )
        client.set_registered_model_alias(model, alias, version.version)
    candidate = runs.run(3)
    found = find_baseline(runs.rule(champion=model), runs.tracker, candidate)
    assert (found.run, found.why) == (champion, f"the champion of the model {model}")
    assert runs.found(candidate, alias=f"models:/{model}@next") == challenger
    with pytest.raises(NoBaselineError, match="is itself the champion"):
        runs.found(champion, champion=model)
    for wrong in (f"models:/{model}@last", "models:/nothing@champion"):
        with pytest.raises(NoBaselineError, match=f"has no `{wrong}`"):
            runs.found(candidate, alias=wrong)
    registered = client.create_model_version(model, runs.folder.as_uri())
    client.set_registered_model_alias(model, "nobody", registered.version)
    mistakes = [{"alias": f"models:/{model}@nobody"}, {"alias": "team/project/model:prod"}]
    for mistake in [*mistakes, {"champion": ""}, {"champion": "a/b:c"}]:
        with pytest.raises(InputError) as refused:
            runs.found(candidate, **mistake)
        assert not isinstance(refused.value, NoBaselineError), "`if_no_baseline: pass` is not about it"
    client.delete_run(challenger.reference.locator)
    with pytest.raises(InputError, match="which is deleted") as deleted:
        runs.found(candidate, alias=f"models:/{model}@next")
    assert not isinstance(deleted.value, NoBaselineError)
    with pytest.raises(SpecError, match="expected `models:/NAME@ALIAS`"):
        runs.found(candidate, alias=f"{model}@next")


def test_a_run_by_its_id_or_name(runs: Runs):
    named = runs.run(1, name="one")
    candidate = runs.run(2)
    reference = f"mlflow:{named.reference.locator}"
    found = find_baseline(runs.rule(run=reference), runs.tracker, candidate)
    assert (found.run, found.why) == (named, "named by the policy")
    assert runs.found(candidate, run=f"mlflow:{runs.experiment}/one") == named
    for minute in (3, 4):
        runs.run(minute, name="two")
    with pytest.raises(InputError, match="2 runs are called") as ambiguous:
        runs.found(candidate, run=f"mlflow:{runs.experiment}/two")
    with pytest.raises(NoBaselineError, match="is itself"):
        runs.found(named, run=reference)
    runs.store.client.delete_run(named.reference.locator)
    with pytest.raises(InputError, match="is deleted") as deleted:
        runs.found(candidate, run=reference)
    with pytest.raises(InputError, match="has no run called `tow`") as misspelled:
        runs.found(candidate, run=f"mlflow:{runs.experiment}/tow")
    for mistake in (ambiguous, deleted, misspelled):
        assert not isinstance(mistake.value, NoBaselineError), "`if_no_baseline: pass` is not about it"


def test_a_file_is_found_and_is_itself_by_whichever_path(runs: Runs, monkeypatch: pytest.MonkeyPatch):
    for name in ("base.csv", "copy.csv"):
        (runs.folder / name).write_text("id,prediction,label\n1,a,a\n")
    candidate = runs.run(1)
    found = find_baseline(runs.rule(run="./base.csv"), runs.tracker, candidate)
    assert found.run == file_run(f"{runs.folder}/base.csv")
    with pytest.raises(NoBaselineError, match=r"`\./none\.csv` does not exist"):
        runs.found(candidate, run="./none.csv")
    monkeypatch.chdir(runs.folder)
    policy = runs.rule(run="base.csv")
    for path in ("base.csv", "./base.csv", f"../{runs.folder.name}/base.csv", f"{runs.folder}/base.csv"):
        with pytest.raises(NoBaselineError, match=r"is itself the file base\.csv"):
            find_baseline(policy, None, file_run(path))
    assert find_baseline(policy, None, file_run("copy.csv")).run == file_run(f"{runs.folder}/base.csv")


def test_the_baseline_of_a_file_is_looked_for_where_the_runs_are(runs: Runs):
    newest = runs.run(1, PROD)
    policy = runs.rule(newest={"tags": PROD})
    assert find_baseline(policy, None, file_run("candidate.csv")).run == newest
    homeless = policy.model_copy(update={"runs": ()})
    with pytest.raises(InputError, match="`nightly` does not name the place of its baseline"):
        find_baseline(homeless, None, file_run("candidate.csv"))


def test_which_runs_are_wanted(runs: Runs):
    policy = runs.rule(newest={})
    only = policy.only.model_copy(update={"tags": PROD, "name": "cand-*"})
    policy = policy.model_copy(update={"only": only})
    history = history_of(runs.tracker)

    def wanted(**options: Any) -> bool:
        options = {"tags": PROD, "name": "cand-1", **options}
        return is_selected(policy, history.record(runs.run(1, **options)))

    assert wanted()
    assert not wanted(name="other")
    assert not wanted(tags={})
    assert not wanted(status="FAILED")
    assert not wanted(status="RUNNING")


def test_the_history_of_an_experiment(runs: Runs):
    first, second = runs.run(1, PROD), runs.run(5)
    runs.run(2, status="FAILED")
    runs.made(3, {"trackperm.kind": "comparison"})
    history = history_of(runs.tracker)
    assert [each.run for each in history.finished(runs.experiment)] == [first, second]
    since = NOON + timedelta(minutes=3)
    assert [each.run for each in history.finished(runs.experiment, since)] == [second]
    record = history.record(first)
    assert (record.started, record.ended) == (
        NOON + timedelta(minutes=1),
        NOON + timedelta(minutes=1, seconds=1),
    )
    assert record.tags["stage"] == "prod"
    assert history.holds(runs.experiment, first)
    assert not history.holds("digits/another", first)
