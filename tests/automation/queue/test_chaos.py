"""Exactly once, whatever dies: processes killed at every write, and everything killed at random moments."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from support.budget import NIGHTLY
from support.hooked_runs import Heard, HookedStore
from support.mlflow_server import MlflowServer
from support.watchers import Program

from trackperm.automation.policy.load import load_policies
from trackperm.automation.queue.queue import Queue, Task
from trackperm.automation.queue.worker import Worker

pytestmark = [pytest.mark.tracker, pytest.mark.slow, pytest.mark.generated]

N_RUNS = {"one": 50, "two": 20} if NIGHTLY else {"one": 8, "two": 6}
N_KILLS, MOST_KILLS = (6, 12) if NIGHTLY else (2, 3)
MOST_RESTARTS = 4 if NIGHTLY else 1
RESTARTS = 0.12 if NIGHTLY else 0.4
DEADLINE_SECONDS = 840.0
N_APART = 4 if NIGHTLY else 32  # of MLflow's writes, which are of few kinds

# For each line that it reads, another process works off a queue and kills itself just before the n-th write,
# to the queue or to MLflow; what it died of is printed, or how many writes there were until the end.
KILLED = """
import os, signal, sys
from pathlib import Path
from mlflow import MlflowClient
from trackperm.automation.decision_log import DecisionLog
from trackperm.automation.policy.load import load_policies
from trackperm.automation.queue.queue import Queue
from trackperm.automation.queue.worker import Worker

def work(file, folder, last):
    counted = 0

    def deadly(owner, name):
        call = getattr(owner, name)
        def called(*arguments, **options):
            nonlocal counted
            counted += 1
            if counted == last:
                print(owner.__name__, name, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)
        setattr(owner, name, called)

    for name in ("claim", "fix_baseline", "complete"):
        deadly(Queue, name)
    for name in ("create_run", "set_tag", "log_batch", "log_artifact", "update_run", "set_terminated"):
        deadly(MlflowClient, name)
    worker = Worker(load_policies(file).policies, Queue(Path(folder), lease=0.0), DecisionLog(sys.stderr))
    step = worker.step()
    assert step.event == "compared", step
    print(counted, flush=True)

for line in sys.stdin:
    file, folder, last = line.rstrip().split("\\t")
    child = os.fork()
    if child == 0:
        work(file, folder, int(last))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


@pytest.mark.timeout(1800)
def test_killed_before_a_write(tmp_path: Path):
    """A worker dies before its n-th write; the next leaves one complete comparison, by the same baseline."""
    runs = HookedStore.local(tmp_path)
    file = runs.policy_file(statistics=["accuracy", {"name": "f1", "parameters": {"positive": 1}}])
    policy = load_policies(file).find()
    runs.baseline()
    command = [sys.executable, "-c", KILLED]
    with (
        (tmp_path / "killed.log").open("w") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, encoding="utf-8"
        ) as killed,
    ):

        def worked(last: int) -> tuple[str, str, Queue, str]:
            """Let the process work; returns what it died of, its exit code, the queue and the candidate."""
            assert killed.stdin is not None
            assert killed.stdout is not None
            candidate = f"mlflow:{runs.finished(seed=last + 10)}"
            queue = Queue(tmp_path / f"state-{last}", lease=0.0)
            queue.add([Task(policy.queue_key, candidate, policy.name)], "watch")
            killed.stdin.write(f"{file}\t{queue.folder}\t{last}\n")
            killed.stdin.flush()
            said = [killed.stdout.readline().strip() for _ in range(2)]
            return said[0], said[1], queue, candidate

        counted, code, _, _ = worked(0)
        assert code == "0"
        n_writes = int(counted)
        assert n_writes > 20
        died: list[str] = []
        for last in sorted({1, 2, 3, *range(4, n_writes, N_APART), n_writes - 1, n_writes}):
            what, code, queue, candidate = worked(last)
            assert code == str(-signal.SIGKILL), what
            died.append(what)
            fixed = queue.entries()[0].baseline
            runs.baseline(seed=1000 + last)  # a newer one, to which a comparison that was begun must not turn
            step = Worker([policy], queue, Heard().log).step()
            assert step.event in ("compared", "known")
            [entry] = queue.entries()
            assert entry.state == "done"
            assert fixed in (None, entry.baseline)
            _assert_complete(runs, candidate)
        killed.stdin.close()
        killed.wait(60)
    assert {"Queue claim", "Queue fix_baseline", "Queue complete", "MlflowClient create_run"} <= set(died)


def _assert_complete(runs: HookedStore, candidate: str) -> None:
    """One finished comparison for each statistic, all with one baseline, and nothing else."""
    found = runs.store.comparisons("digits")
    own = [run for run in found if run.data.tags["trackperm.candidate"] == candidate]
    assert sorted((run.info.status, run.data.tags["trackperm.statistic"]) for run in own) == [
        ("FINISHED", "accuracy"),
        ("FINISHED", "f1"),
    ]
    assert len({run.data.tags["trackperm.baseline"] for run in own}) == 1


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("machines", ["one", pytest.param("two", marks=pytest.mark.nightly)])
def test_chaos(tmp_path: Path, machines: str):
    """Two watchers, runs finishing in random order, server and watchers killed at random moments.

    On one machine they share the queue; on two they meet in the tracker only.
    """
    n_runs = N_RUNS[machines]
    drawn = random.Random(20261122 if machines == "one" else 7)
    state = {
        "one": [tmp_path / "state", tmp_path / "state"],
        "two": [tmp_path / "state-1", tmp_path / "state-2"],
    }[machines]
    (tmp_path / "server").mkdir()
    with MlflowServer(tmp_path / "server") as server:
        runs = HookedStore(server.uri, tmp_path)
        runs.baseline()
        candidates = []
        for number in range(n_runs):
            run_id = runs.begun()
            runs.log(run_id, seed=100 + number)
            candidates.append(run_id)
        file = runs.policy_file()
        watchers = [
            Program(
                ["watch", "--policy", file, "--state", folder, "--interval", "1", "--lease", "5"],
                tmp_path / f"watcher-{i}.log",
            )
            for i, folder in enumerate(state)
        ]
        order = drawn.sample(candidates, n_runs)
        finished = threading.Event()

        def finish() -> None:
            for run_id in order:
                while True:
                    try:
                        runs.store.client.set_terminated(run_id)
                        break
                    except Exception:  # the server is down
                        time.sleep(0.5)
                time.sleep(drawn.uniform(0.0, 1.5))
            finished.set()

        finishing = threading.Thread(target=finish, daemon=True)
        try:
            for watcher in watchers:
                watcher.start()
            finishing.start()
            kills, restarts = 0, 0
            deadline = time.monotonic() + DEADLINE_SECONDS
            while time.monotonic() < deadline:
                time.sleep(drawn.uniform(1.0, 6.0))
                what = drawn.random()
                if what < RESTARTS and restarts < MOST_RESTARTS:
                    restarts += 1
                    server.kill()
                    time.sleep(drawn.uniform(0.0, 3.0))
                    server.start()
                elif what < RESTARTS + 0.48 and kills < MOST_KILLS:
                    kills += 1
                    drawn.choice(watchers).kill()
                for watcher in watchers:
                    if drawn.random() < 0.7 or kills >= MOST_KILLS:
                        watcher.start()
                if finished.is_set() and kills >= N_KILLS and restarts >= 1 and _is_settled(state, n_runs):
                    break
            for watcher in watchers:
                watcher.start()
            while not _is_settled(state, n_runs) and time.monotonic() < deadline:
                time.sleep(1)
            lines = [line for watcher in watchers for line in watcher.events("compared", "known", "refused")]
            for watcher in watchers:
                watcher.wait_until_started()
            codes = [watcher.stop() for watcher in watchers]
        finally:
            for watcher in watchers:
                watcher.kill()
            finished.wait(60)
        assert (finished.is_set(), kills >= N_KILLS, restarts >= 1) == (True, True, True)
        assert codes == [0, 0]
        expected = sorted(f"mlflow:{run_id}" for run_id in candidates)
        compared = sorted(
            run.data.tags["trackperm.candidate"]
            for run in runs.store.comparisons("digits")
            if run.info.status == "FINISHED"
        )
        assert compared == expected, "nothing lost, nothing double"
        for folder in set(state):
            entries = Queue(folder).entries()
            assert sorted(entry.candidate for entry in entries) == expected
            assert {entry.state for entry in entries} == {"done"}
        assert not [line for line in lines if line["event"] == "refused"]
        if machines == "one":
            said = Counter(line["candidate"] for line in lines)
            assert max(said.values()) == 1, "no decision is taken twice"
            assert len(runs.store.comparisons("digits")) == n_runs, "nothing unfinished is left"
        for watcher in watchers:
            assert "Traceback" not in watcher.text


def _is_settled(folders: list[Path], n_runs: int) -> bool:
    counts = [Queue(folder).counts() for folder in dict.fromkeys(folders)]
    return all(count["done"] == n_runs for count in counts)


def test_a_watcher_that_is_told_to_stop_finishes_what_it_does(tmp_path: Path):
    runs = HookedStore.local(tmp_path)
    runs.baseline()
    for seed in range(5):
        runs.finished(seed=seed + 2)
    arguments = ["watch", "--policy", runs.policy_file(), "--state", tmp_path / "state"]
    arguments += ["--health", tmp_path / "health.json"]
    with Program(arguments, tmp_path / "watcher.log") as watcher:
        watcher.wait_for("compared")
        assert watcher.stop() == 0
        assert [line["event"] for line in watcher.lines][-1] == "stopped"
        counts = Queue(tmp_path / "state").counts()
        assert counts["claimed"] == 0
        assert counts["done"] == len(watcher.events("compared")) == len(runs.compared())
        assert (tmp_path / "health.json").exists()
