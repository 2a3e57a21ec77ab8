"""A candidate judged in an MLflow store: compared once, judged, logged with its policy, and no two stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.comparisons import answers
from support.hooked_runs import HookedStore
from typer.testing import CliRunner

from trackperm.automation.judging import compare_candidate as work_module
from trackperm.automation.judging.baseline import Baseline, file_run, find_baseline
from trackperm.automation.judging.compare_candidate import JudgedComparison, compare_and_log
from trackperm.automation.judging.duplicates import complete, logged_before, withdraw_duplicates
from trackperm.automation.policy.policy import Policy
from trackperm.cli import commands
from trackperm.errors import InputError
from trackperm.trackers.references import TrackedRun

pytestmark = pytest.mark.tracker

GOOD, BAD = [True] * 30 + [False] * 10, [True] * 20 + [False] * 20
BASE = {"role": "baseline"}


class Digits(HookedStore):
    """An experiment with a baseline, a candidate, and a policy of two statistics."""

    def __init__(self, *place: Any) -> None:
        super().__init__(*place)
        self.tracker = self.store.tracker()
        self.first = self.run(GOOD, BASE)
        self.candidate = self.run(BAD)

    def run(self, correct: list[bool], tags: dict[str, str] | None = None, **more: list[str]) -> TrackedRun:
        """Log a finished run whose predictions have `more` columns."""
        run_id = self.begun(tags=tags)
        columns = answers(correct).to_dict(as_series=False)
        self.store.log_columns(run_id, {**columns, **more}, "predictions.parquet")
        self.store.client.set_terminated(run_id)
        return self.tracker.find(run_id)

    def policy(self, **changes: Any) -> Policy:
        return super().policy(**{"statistics": ["accuracy", "error_rate"], **changes})

    def found(self, policy: Policy) -> Baseline:
        return find_baseline(policy, self.tracker, self.candidate)

    def logged(self) -> list[dict[str, str]]:
        return [run.data.tags for run in self.store.comparisons(self.experiment)]


@pytest.fixture
def digits(database: Path, tmp_path: Path) -> Digits:
    uri = f"sqlite:///{database / 'mlflow.db'}"
    return Digits(uri, tmp_path, tmp_path / "artifacts", f"digits/{tmp_path.name}")


@pytest.mark.extended
def test_what_is_logged_knows_its_policy(digits: Digits):
    policy = digits.policy()
    assert logged_before(policy, digits.tracker, digits.candidate) == ()
    judged = compare_and_log(policy, digits.candidate, digits.found(policy))
    assert (judged.judgement.outcome, judged.is_superseded) == ("fail", False)
    assert judged.baseline.run == digits.first
    logged = digits.logged()
    assert {tags["trackperm.statistic"] for tags in logged} == {"accuracy", "error_rate"}
    for tags in logged:
        assert tags["trackperm.policy"] == "nightly"
        assert tags["trackperm.policy_digest"] == policy.digest
        assert tags["trackperm.policy_parts"] == "2"
        assert tags["trackperm.baseline"] == str(digits.first.reference)
    assert len(logged_before(policy, digits.tracker, digits.candidate)) == 2
    other = digits.policy(alpha=0.01)
    assert logged_before(other, digits.tracker, digits.candidate) == (), "another digest"
    assert logged_before(policy, digits.tracker, digits.run(BAD)) == (), "another candidate"


def test_the_same_again_adds_nothing(digits: Digits):
    policy = digits.policy(statistics=["accuracy"])
    (first,) = compare_and_log(policy, digits.candidate, digits.found(policy)).published
    (again,) = compare_and_log(policy, digits.candidate, digits.found(policy)).published
    assert (first.created, again.created, again.run) == (True, False, first.run)
    assert len(digits.logged()) == 1


@pytest.mark.extended
def test_a_part_is_not_the_whole_and_is_completed(digits: Digits):
    policy = digits.policy()
    judged = compare_and_log(policy, digits.candidate, digits.found(policy))
    digits.store.client.delete_run(judged.published[1].run.reference.locator)
    assert logged_before(policy, digits.tracker, digits.candidate) == ()
    again = compare_and_log(policy, digits.candidate, digits.found(policy))
    assert [each.created for each in again.published] == [False, True]
    assert len(logged_before(policy, digits.tracker, digits.candidate)) == 2
    digits.store.client.set_terminated(again.published[0].run.reference.locator, "FAILED")
    assert logged_before(policy, digits.tracker, digits.candidate) == (), "one is unfinished"


@pytest.mark.extended
def test_of_two_baselines_the_first_stays(digits: Digits):
    """As by two machines; the second sees a run that was tagged in between."""
    policy = digits.policy(statistics=["accuracy"])
    first = compare_and_log(policy, digits.candidate, Baseline(digits.first, "first"))
    other = digits.run(GOOD[::-1], BASE)
    second = compare_and_log(policy, digits.candidate, Baseline(other, "second"))
    assert (first.is_superseded, second.is_superseded) == (False, True)
    assert [each.run.reference for each in second.published] == [
        each.run.reference for each in first.published
    ]
    assert [tags["trackperm.baseline"] for tags in digits.logged()] == [str(digits.first.reference)]
    logged = digits.tracker.comparisons(digits.candidate)
    assert [len(group) for group in complete(policy, logged)[str(digits.candidate.reference)]] == [1]


@pytest.mark.extended
def test_of_two_at_the_same_time_the_first_begun_stays(digits: Digits, monkeypatch: pytest.MonkeyPatch):
    """Each of two machines logs before it sees the other; both then keep the same."""
    policy = digits.policy(statistics=["accuracy"])
    first = compare_and_log(policy, digits.candidate, Baseline(digits.first, "first"))
    other = digits.run(GOOD[::-1], BASE)
    second = _compared_unseeing(policy, digits.candidate, Baseline(other, "second"), monkeypatch)
    assert len(digits.logged()) == 2
    for _ in range(2):
        (kept,) = withdraw_duplicates(policy, digits.tracker, digits.candidate)
        assert kept.run.reference == first.published[0].run.reference
    assert [tags["trackperm.baseline"] for tags in digits.logged()] == [str(digits.first.reference)]
    withdrawn = digits.store.get(second.published[0].run.reference.locator)
    assert withdrawn.info.lifecycle_stage == "deleted"
    assert withdrawn.data.tags["trackperm.state"] == "superseded"
    assert withdrawn.data.tags["trackperm.superseded_by"] == str(kept.run.reference)


def test_one_that_is_unfinished_counts_for_nothing(digits: Digits):
    policy = digits.policy(statistics=["accuracy"])
    first = compare_and_log(policy, digits.candidate, Baseline(digits.first, "first"))
    digits.store.client.set_tag(first.published[0].run.reference.locator, "trackperm.state", "writing")
    other = digits.run(GOOD[::-1], BASE)
    assert not compare_and_log(policy, digits.candidate, Baseline(other, "second")).is_superseded
    again = compare_and_log(policy, digits.candidate, Baseline(digits.first, "first"))
    assert again.is_superseded, "what was finished and seen meanwhile stays"
    (logged,) = logged_before(policy, digits.tracker, digits.candidate)
    assert logged.tags["trackperm.baseline"] == str(other.reference)
    tags = digits.store.get(digits.candidate.reference.locator).data.tags
    assert tags["sig.accuracy.vs"] == other.name


def test_twins_of_one_key_become_one(digits: Digits):
    """Two writers at the same moment can leave two runs of one comparison in MLflow."""
    policy = digits.policy(statistics=["accuracy"])
    judged = compare_and_log(policy, digits.candidate, digits.found(policy))
    original = digits.store.get(judged.published[0].run.reference.locator)
    tags = {**original.data.tags, "trackperm.created": "2020-01-01T00:00:00+00:00"}
    twin = digits.store.run(digits.experiment, tags["mlflow.runName"], tags=tags)
    again = compare_and_log(policy, digits.candidate, digits.found(policy))
    assert [run.info.run_id for run in digits.store.comparisons(digits.experiment)] == [twin]
    assert [each.run.reference.locator for each in again.published] == [twin]


def _compared_unseeing(
    policy: Policy, candidate: TrackedRun, baseline: Baseline, monkeypatch: pytest.MonkeyPatch
) -> JudgedComparison:
    """Settle as one does who lists what is logged before another has logged it."""
    with monkeypatch.context() as blind:
        blind.setattr(work_module, "logged_before", lambda *_: ())
        blind.setattr(work_module, "withdraw_duplicates", lambda *_: ())
        return compare_and_log(policy, candidate, baseline)


def test_a_gate_leaves_side_by_side_what_it_compared_before(digits: Digits):
    policy = digits.policy(statistics=["accuracy"])
    compare_and_log(policy, digits.candidate, Baseline(digits.first, "first"))
    other = Baseline(digits.run(GOOD[::-1], BASE), "second")
    assert not compare_and_log(policy, digits.candidate, other, once=False).is_superseded
    assert len(digits.logged()) == 2


def test_what_a_gate_has_logged_is_known_and_never_withdrawn(digits: Digits, monkeypatch: pytest.MonkeyPatch):
    policy = digits.policy()
    baselines = [Baseline(digits.run(GOOD[i:] + GOOD[:i]), f"{i}") for i in range(3)]
    gates = [compare_and_log(policy, digits.candidate, each, once=False) for each in baselines[:2]]
    published = [{each.run.reference for each in gate.published} for gate in gates]
    kept = withdraw_duplicates(policy, digits.tracker, digits.candidate)
    assert {each.run.reference for each in kept} == published[0]
    assert len(digits.logged()) == 4
    worker = compare_and_log(policy, digits.candidate, baselines[2])
    assert worker.is_superseded
    assert {each.run.reference for each in worker.published} == published[0]
    assert len(digits.logged()) == 4, "nothing is compared again"
    late = _compared_unseeing(policy, digits.candidate, baselines[2], monkeypatch)
    assert len(digits.logged()) == 6
    withdraw_duplicates(policy, digits.tracker, digits.candidate)
    left = {f"mlflow:{run.info.run_id}" for run in digits.store.comparisons(digits.experiment)}
    assert left == {str(reference) for references in published for reference in references}
    assert left.isdisjoint(str(each.run.reference) for each in late.published)


def test_what_a_gate_refers_to_stays_though_a_worker_had_logged_it(
    digits: Digits, monkeypatch: pytest.MonkeyPatch
):
    policy = digits.policy(statistics=["accuracy"])
    other = Baseline(digits.run(GOOD[::-1]), "second")
    first = compare_and_log(policy, digits.candidate, Baseline(digits.first, "first"))
    second = _compared_unseeing(policy, digits.candidate, other, monkeypatch)
    gate = compare_and_log(policy, digits.candidate, other, once=False)
    assert gate.published[0].run.reference == second.published[0].run.reference
    withdraw_duplicates(policy, digits.tracker, digits.candidate)
    left = {f"mlflow:{run.info.run_id}" for run in digits.store.comparisons(digits.experiment)}
    assert left == {str(each.published[0].run.reference) for each in (first, second)}


@pytest.mark.extended
@pytest.mark.parametrize("is_first", [True, False])
def test_of_twins_that_stays_which_a_gate_refers_to(digits: Digits, is_first: bool):
    policy = digits.policy(statistics=["accuracy"])
    [first] = compare_and_log(policy, digits.candidate, digits.found(policy), once=False).published
    other = Baseline(digits.run(GOOD[::-1]), "second")
    [second] = compare_and_log(policy, digits.candidate, other, once=False).published
    twin = dict(digits.store.get((first if is_first else second).run.reference.locator).data.tags)
    twin.pop("trackperm.policy_asked", None)
    if is_first:
        twin["trackperm.created"] = "2020-01-01T00:00:00+00:00"
    digits.store.run(digits.experiment, twin["mlflow.runName"], tags=twin)
    assert len(digits.logged()) == 3
    [kept] = withdraw_duplicates(policy, digits.tracker, digits.candidate)
    assert kept.run.reference == first.run.reference
    left = {f"mlflow:{run.info.run_id}" for run in digits.store.comparisons(digits.experiment)}
    assert left == {str(each.run.reference) for each in (first, second)}


def test_elsewhere_and_nowhere(digits: Digits):
    target = f"{digits.experiment}/verdicts"
    digits.store.experiment(target)
    policy = digits.policy(log_to=f"mlflow:{target}", statistics=["accuracy"])
    judged = compare_and_log(policy, digits.candidate, digits.found(policy))
    assert (len(digits.logged()), len(digits.store.comparisons(target))) == (0, 1)
    assert len(logged_before(policy, digits.tracker, digits.candidate)) == 1
    assert len(judged.published) == 1
    nowhere = compare_and_log(digits.policy(), digits.candidate, digits.found(policy), log=False)
    assert (nowhere.published, len(nowhere.comparisons), digits.logged()) == ((), 2, [])


@pytest.mark.extended
def test_a_path_says_nothing_of_the_data_in_it(digits: Digits, monkeypatch: pytest.MonkeyPatch):
    """Two pull requests log the comparison of a file of the same name, with a baseline of their own."""
    monkeypatch.chdir(digits.folder)
    target = f"{digits.experiment}/verdicts"
    digits.store.experiment(target)
    policy = digits.policy(log_to=f"mlflow:{target}", statistics=["accuracy"])
    candidate, baselines = file_run("candidate.parquet"), [digits.first, digits.run(GOOD)]
    for correct, baseline in zip((GOOD, BAD), baselines, strict=True):
        answers(correct).write_parquet("candidate.parquet")
        assert not compare_and_log(policy, candidate, Baseline(baseline, "")).is_superseded
        assert logged_before(policy, None, candidate) == ()
    assert len(digits.store.comparisons(target)) == 2


def test_what_cannot_be_compared_is_refused_and_leaves_nothing(digits: Digits):
    policy = digits.policy()
    empty = digits.tracker.find(digits.store.run(digits.experiment, "empty"))
    with pytest.raises(InputError):
        compare_and_log(policy, empty, digits.found(policy))
    short = digits.run(BAD[:-1])
    with pytest.raises(InputError, match="have no partner"):
        compare_and_log(policy, short, digits.found(policy))
    assert digits.logged() == []


def test_slices_are_parts(digits: Digits):
    runs = [digits.run(correct, group=["a", "b"] * 20) for correct in (GOOD, BAD)]
    policy = digits.policy(slices="group", statistics=["accuracy"])
    judged = compare_and_log(policy, runs[1], Baseline(runs[0], "first"))
    assert len(judged.comparisons) == 3
    assert {tags["trackperm.policy_parts"] for tags in digits.logged()} == {"3"}
    assert len(logged_before(policy, digits.tracker, runs[1])) == 3


def test_the_gate_on_logged_runs(digits: Digits):
    path = digits.policy_file(statistics=["accuracy"])
    arguments = ["gate", "--policy", str(path), "--candidate", str(digits.candidate.reference)]
    result = CliRunner().invoke(commands.app, arguments)
    assert result.exit_code == 1, result.output
    assert f"baseline:  cand-1 ({digits.first.reference}): the newest finished run before" in result.stdout
    assert result.stdout.count("logged: mlflow:") == 1
    same = CliRunner().invoke(commands.app, [*arguments, "--baseline", str(digits.candidate.reference)])
    assert "is itself the run" in str(same.exception)
    unlogged = CliRunner().invoke(commands.app, [*arguments, "--no-log"])
    assert (unlogged.exit_code, "logged:" in unlogged.stdout) == (1, False)
