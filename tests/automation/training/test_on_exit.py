"""`compare_on_exit` in scripts that log to real stores: compared, or queued, and never in the way."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import mlflow
import pytest
from support.hooked_runs import Script
from support.mlflow_server import silent_server
from support.processes import run
from support.watchers import COMMAND

import trackperm
from trackperm.automation.training import on_exit as module
from trackperm.errors import InputTypeError
from trackperm.trackers.open_runs import open_run
from trackperm.trackers.publication import GROUP
from trackperm.trackers.wandb.store import start_run

pytestmark = [pytest.mark.tracker, pytest.mark.usefixtures("mlflow_script")]


def trained(runs: Script, **options: Any) -> str:
    with mlflow.start_run(tags={"role": "candidate"}, **options) as run:
        runs.log(run.info.run_id, rate=0.5)
    return str(run.info.run_id)


def _sixty(path: Path) -> module.CompareOnExit:
    return trackperm.compare_on_exit(path, budget_seconds=60)


@pytest.mark.extended
def test_inside_a_run(runs: Script):
    runs.baseline()
    path = runs.policy_file()
    with mlflow.start_run(tags={"role": "candidate"}) as run, _sixty(path):
        runs.log(run.info.run_id, rate=0.5)
    assert runs.compared() == [f"mlflow:{run.info.run_id}"]
    [entry] = runs.entries
    assert (entry.state, entry.outcome, entry.source) == ("done", "fail", "on-exit")
    assert f"compared: mlflow:{run.info.run_id} under policy `nightly`: fail" in runs.told
    assert runs.store.get(run.info.run_id).info.status == "FINISHED"


@pytest.mark.slow
def test_around_a_run_and_once(runs: Script):
    runs.baseline()
    path = runs.policy_file()
    with trackperm.compare_on_exit(path, budget_seconds=60):
        first = trained(runs)
    with trackperm.compare_on_exit(path, budget_seconds=60, run=f"mlflow:{first}"):
        pass
    assert runs.compared() == [f"mlflow:{first}"]


def test_a_run_that_ended_before_the_block_is_not_meant(runs: Script):
    trained(runs)
    with trackperm.compare_on_exit(runs.policy_file()):
        pass
    assert "no run of MLflow or W&B was open in this block" in runs.told
    assert not runs.state.exists()


def queued(runs: Script) -> list[str]:
    """List the candidates in the queue, which nobody has looked at."""
    assert {(entry.state, entry.attempts) for entry in runs.entries} == {("waiting", 0)}
    return [entry.candidate for entry in runs.entries]


class TestRunsOfTheBlock:
    """Those that it begins, or else the one around it; without a budget, they are queued."""

    def block(self, runs: Script) -> module.CompareOnExit:
        return trackperm.compare_on_exit(runs.policy_file(), budget_seconds=0)

    def test_one_that_is_resumed_and_ended(self, runs: Script):
        first = trained(runs)
        with self.block(runs), mlflow.start_run(run_id=first):
            began = time.monotonic()
        assert time.monotonic() - began < 10
        assert queued(runs) == [f"mlflow:{first}"]
        assert "`trackperm watch` compares it" in runs.told

    def test_one_inside_another(self, runs: Script):
        with mlflow.start_run(), self.block(runs):
            inner = trained(runs, nested=True)
        assert queued(runs) == [f"mlflow:{inner}"]

    def test_the_one_around_it_if_it_begins_none(self, runs: Script):
        with mlflow.start_run() as outer:
            trained(runs, nested=True)
            with self.block(runs):
                pass
        assert queued(runs) == [f"mlflow:{outer.info.run_id}"]

    def test_one_around_it_that_it_ends(self, runs: Script):
        outer = mlflow.start_run()
        with self.block(runs):
            mlflow.end_run()
        assert queued(runs) == [f"mlflow:{outer.info.run_id}"]

    def test_all_of_several_but_none_of_before_and_after(self, runs: Script):
        trained(runs)
        with self.block(runs):
            first, second = trained(runs), trained(runs)
            with mlflow.start_run() as third:
                fourth = trained(runs, nested=True)
        trained(runs)
        assert queued(runs) == [f"mlflow:{run}" for run in (first, second, third.info.run_id, fourth)]

    def test_of_blocks_inside_each_other_both(self, runs: Script):
        stricter = runs.policy_file("stricter", alpha=0.01)
        with self.block(runs):
            with trackperm.compare_on_exit(stricter, budget_seconds=0):
                first = trained(runs)
            second = trained(runs)
        found = {(entry.policy, entry.candidate) for entry in runs.entries}
        of_outer = {("nightly", f"mlflow:{run}") for run in (first, second)}
        assert found == {("stricter", f"mlflow:{first}"), *of_outer}

    def test_not_those_of_another_thread(self, runs: Script):
        def other() -> None:
            with mlflow.start_run(), self.block(runs):
                pass

        with self.block(runs):
            first = trained(runs)
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
        [of_other, own] = queued(runs)
        assert own == f"mlflow:{first}" != of_other

    @pytest.mark.parametrize("fails", [False, True])
    def test_the_libraries_are_left_as_they_were(self, runs: Script, fails: bool):
        import wandb

        before = mlflow.ActiveRun.__init__, wandb.init
        with suppress(ZeroDivisionError), self.block(runs), self.block(runs):
            assert before[0] is not mlflow.ActiveRun.__init__
            assert before[1] is not wandb.init
            if fails:
                raise ZeroDivisionError
        assert (mlflow.ActiveRun.__init__, wandb.init) == before

    @pytest.mark.extended
    def test_one_of_wandb_that_has_ended(self, runs: Script):
        import wandb

        with wandb.init(project="digits", mode="offline") as outer, self.block(runs):
            with wandb.init(project="digits", mode="offline", reinit="create_new") as inner:
                folder = Path(inner.dir).parent
            wandb.init(project="digits", mode="disabled", reinit="create_new").finish()
            with start_run("offline", {}, project="digits", group=GROUP, job_type="comparison"):
                pass  # as trackperm logs a comparison
        assert [text for text in runs.said if "is offline" in text] == [
            f"not compared: wandb:{folder} is offline. After `wandb sync`, `trackperm watch` finds it."
        ]
        assert outer.id != inner.id
        assert not [text for text in runs.said if "no policy selects" in text]


@pytest.mark.nightly
def test_the_refusal_of_one_run_is_not_that_of_another(runs: Script):
    runs.baseline()
    with _sixty(runs.policy_file()):
        with mlflow.start_run(tags={"role": "candidate"}) as without:
            pass
        with_predictions = trained(runs)
    [refused] = [each for each in runs.said if each.startswith(f"not compared: mlflow:{without.info.run_id}")]
    assert "has no artifact that could hold per-example predictions" in refused
    [compared] = [each for each in runs.said if f"mlflow:{with_predictions}" in each]
    assert compared.startswith(f"compared: mlflow:{with_predictions} under policy `nightly`: fail")


@pytest.mark.nightly
def test_a_refusal_at_the_end_of_an_earlier_block_does_not_answer(runs: Script):
    runs.baseline()
    path = runs.policy_file()
    with mlflow.start_run(tags={"role": "candidate"}) as run:
        with _sixty(path):
            pass
        assert f"not compared: mlflow:{run.info.run_id}" in runs.told
        runs.caplog.clear()
        with _sixty(path):
            runs.log(run.info.run_id, rate=0.5)
    assert f"compared: mlflow:{run.info.run_id} under policy `nightly`: fail" in runs.told
    assert "not compared" not in runs.told


@pytest.mark.extended
def test_each_block_of_a_run_is_compared(runs: Script):
    """Regression: the second block reported the outcome of the first."""
    runs.baseline()
    path = runs.policy_file()
    with mlflow.start_run(tags={"role": "candidate"}) as run:
        for seed, rate, outcome in ((3, 0.2, "pass"), (2, 0.5, "fail")):
            with _sixty(path):
                runs.log(run.info.run_id, seed, rate)
            assert f"compared: mlflow:{run.info.run_id} under policy `nightly`: {outcome}" in runs.told
            runs.caplog.clear()
    assert len(runs.compared()) == 2, "the same predictions again are not another comparison"


@pytest.mark.slow
def test_what_is_queued_under_a_policy_without_runs_a_watcher_compares(runs: Script):
    """As the warning promises; who has queued nothing is told what is lacking."""
    runs.baseline()
    path, state = runs.policy_file(runs=[]), ["--state", runs.folder / "state"]
    watch = [*COMMAND, "watch", "--policy", path, "--once", *state]
    refused = run(watch, cwd=runs.folder)
    assert refused.returncode == 2
    assert "has `runs`, and none has a run in the queue" in refused.stderr
    with trackperm.compare_on_exit(path, budget_seconds=0):
        candidate = trained(runs)
    assert "`trackperm watch` compares it" in runs.told
    for _ in range(2):  # nor is it an error that all is done
        result = run([*watch, "--retry-refused"], cwd=runs.folder)
        assert result.returncode == 0, result.stderr
    assert runs.compared() == [f"mlflow:{candidate}"]
    assert [entry.outcome for entry in runs.entries] == ["fail"]


def test_an_exception_passes_through_and_nothing_is_compared(runs: Script):
    with pytest.raises(ZeroDivisionError), mlflow.start_run(), trackperm.compare_on_exit(runs.policy_file()):
        raise ZeroDivisionError
    assert not runs.state.exists()


@pytest.mark.extended
def test_a_tracker_that_does_not_answer_costs_the_budget(runs: Script):
    with silent_server() as uri:
        path = runs.policy_file(tracking_uri=uri)
        with trackperm.compare_on_exit(path, run="mlflow:" + "a" * 32, budget_seconds=3):
            began = time.monotonic()
        assert time.monotonic() - began < 20
    [entry] = runs.entries
    assert entry.state == "waiting"
    assert entry.due <= time.time(), "given back at once, not after the lease"
    assert "not compared yet" in runs.told


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("other.yaml", {}),
        ("not-valid.yaml", {}),
        ("nightly.yaml", {"name": "other"}),
        ("nightly.yaml", {"run": object()}),
        ("nightly.yaml", {"state": "not-valid.yaml"}),
    ],
    ids=["no file", "not valid", "no such policy", "unreadable run", "no folder"],
)
def test_nothing_is_raised(
    runs: Script,
    path: str,
    options: dict[str, Any],
):
    runs.policy_file()
    Path("not-valid.yaml").write_text("policies: [}")
    with mlflow.start_run(), trackperm.compare_on_exit(path, budget_seconds=5, **options):
        pass
    assert [record.levelname for record in runs.caplog.records if record.name == "trackperm"] == ["WARNING"]


@pytest.mark.parametrize("budget", [None, "30", float("nan"), -1])
def test_an_invalid_budget_costs_no_record(runs: Script, budget: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "run_in_subprocess", lambda *_: "")
    with trackperm.compare_on_exit(runs.policy_file(), budget_seconds=budget), mlflow.start_run():
        pass
    assert f"`budget_seconds` is {budget!r}; expected a number of at least 0, and 20 is used" in runs.told
    assert [entry.state for entry in runs.entries] == ["waiting"]


@pytest.mark.extended
def test_a_run_that_passes_without_a_baseline(runs: Script):
    path = runs.policy_file(if_no_baseline="pass")
    with mlflow.start_run(tags={"role": "candidate"}) as run, _sixty(path):
        runs.log(run.info.run_id)
    assert f"passed: mlflow:{run.info.run_id} under policy `nightly`: no baseline" in runs.told


def test_a_fault_of_our_own_is_not_raised(runs: Script, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "run_in_subprocess", Mock(side_effect=RuntimeError("oops")))
    with mlflow.start_run(), trackperm.compare_on_exit(runs.policy_file()):
        pass
    assert "the run was not compared: RuntimeError: oops" in runs.told
    assert [entry.state for entry in runs.entries] == ["waiting"]


@pytest.mark.parametrize(
    ("executable", "why"),
    [
        ("", "its worker process could not be started"),
        (shutil.which("false"), "its worker process ended early"),
    ],
)
def test_without_a_process_it_stays_queued(
    runs: Script,
    monkeypatch: pytest.MonkeyPatch,
    executable: str,
    why: str,
):
    monkeypatch.setattr(sys, "executable", executable)
    with mlflow.start_run(tags={"role": "candidate"}), _sixty(runs.policy_file()):
        pass
    [warning] = [record.getMessage() for record in runs.caplog.records if record.levelno == logging.WARNING]
    assert why in warning
    assert "It is queued in" in warning
    assert runs.entries[0].state == "waiting"


def test_runs_of_wandb_without_a_server():
    settings = SimpleNamespace(mode="online", base_url="https://host", api_key="k" * 40)
    kind = type("Run", (), {"__module__": "wandb.sdk.wandb_run"})
    run = kind()
    vars(run).update(settings=settings, entity="team", project="digits", id="abc", offline=False)
    found = open_run(run)
    assert str(found.reference) == "wandb:team/digits/abc"
    assert found.environment == {"WANDB_BASE_URL": "https://host", "WANDB_API_KEY": "k" * 40}
    assert "kkkk" not in repr(found)
    vars(run).update(offline=True, dir="/x/wandb/offline-run-1-abc/files")
    assert open_run(run).is_offline
    with pytest.raises(InputTypeError, match=r"builtins\.int is not a run"):
        open_run(5)


@pytest.mark.slow
def test_no_process_and_no_secret_is_left(runs: Script, monkeypatch: pytest.MonkeyPatch):
    """The other process is ended with the budget, and its arguments say nothing."""
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "correct-horse-battery")
    seen: list[bytes] = []
    with silent_server() as uri:
        path = runs.policy_file(tracking_uri=uri)
        popen = module.run_in_subprocess.__globals__["subprocess"].Popen

        def started(command: list[str], **options: Any) -> Any:
            process = popen(command, **options)
            arguments = Path(f"/proc/{process.pid}/cmdline")
            while not arguments.read_bytes():  # the kernel sets them after `Popen` has heard that it began
                assert process.poll() is None
            seen.append(arguments.read_bytes())
            return process

        monkeypatch.setattr(module.run_in_subprocess.__globals__["subprocess"], "Popen", started)
        with trackperm.compare_on_exit(path, run="mlflow:" + "a" * 32, budget_seconds=4):
            pass
    assert len(seen) == 1
    assert b"correct-horse" not in seen[0]
    assert b"a" * 32 not in seen[0]
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    alive = [Path(f"/proc/{child}/cmdline").read_bytes() for child in children]
    assert not [line for line in alive if b"trackperm.automation.training.subprocess_worker" in line]
    assert sys.executable.encode() in seen[0]
