"""`trackperm receive` as people run it: it takes a burst, works it off, keeps secrets, and ends."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from support.hooked_runs import HookedStore
from support.receivers import MLFLOW, WANDB, Sender, created
from support.receiving import Receiving
from support.watchers import COMMAND

from trackperm.automation.queue.queue import Queue
from trackperm.automation.webhooks.receive import WANDB_SECRET

pytestmark = pytest.mark.tracker


def policy_file(folder: Path) -> Path:
    runs = ["mlflow:digits", "wandb:team/digits"]
    return HookedStore("", folder).policy_file(runs=runs, baseline={"run": "b.csv"}, tracking_uri=None)


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Receiving]:
    """Start one that queues, and compares nothing."""
    with Receiving(tmp_path, policy_file(tmp_path), "--queue-only") as started:
        yield started


@pytest.mark.extended
def test_what_it_refuses_it_says_without_secrets(idle: Receiving):
    """Neither lines, nor the queue, nor arguments have a secret, a signature, or a part of a body."""
    sender, words = idle.sender, "confidential-words"
    body = json.dumps({"run": "team/digits/x", "note": words}).encode()
    assert sender.wandb(body)[0] == 202
    assert sender.wandb(body)[0] == 409
    assert sender.wandb(body, secret="guessed-by-somebody")[0] == 401
    assert sender.mlflow({**created("a" * 32), "note": words})[0] == 202
    assert sender.mlflow({**created("a" * 32), "note": words})[0] == 409
    assert sender.mlflow(created("b" * 32))[0] == 409  # another body under the same delivery id
    assert sender.mlflow(created("c" * 32), "delivery-2", at=time.time() - 3600)[0] == 401
    assert sender.wandb({"run": f"../{words}"})[0] == 400
    assert sender.wandb(f"{words}".encode())[0] == 400
    assert sender.wandb(b"[" * 60_000)[0] == 400
    assert sender.post("/wandb", b"x" * 70_000, {})[0] == 413
    assert (
        sender.post(f"/wandb/{words}?secret={words}", b"{}", {"Authorization": f"Bearer {words}"})[0] == 404
    )
    refused = Counter(line["status"] for line in idle.program.events("delivery-refused"))
    assert refused == {409: 3, 401: 2, 400: 3, 413: 1, 404: 1}
    assert len(idle.program.events("delivery")) == len(Queue(idle.state).entries()) == 2
    lines = idle.program.text.splitlines()
    assert all(json.loads(line)["event"] for line in lines if line), "one JSON object a line"
    kept = [idle.program.text.encode(), *(path.read_bytes() for path in idle.state.iterdir())]
    kept += [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if os.access(path, os.R_OK)]
    for secret in (WANDB, MLFLOW, words, "guessed-by"):
        assert not [text for text in kept if secret.encode() in text], secret


@pytest.mark.extended
def test_it_ends_on_a_signal(idle: Receiving):
    """Regression: it did not look whether it was asked where another thread was interrupted by the signal."""
    assert idle.sender.wandb({"run": "team/digits/x"})[0] == 202
    assert idle.program.stop(10) == 0
    assert idle.program.lines[-1]["event"] == "stopped"
    assert idle.program.lines[-1]["waiting"] == 1
    assert "Traceback" not in idle.program.text


@pytest.mark.extended
def test_a_replay_after_a_restart_is_refused(idle: Receiving):
    assert idle.sender.mlflow(created("a" * 32))[0] == 202
    idle.program.kill()
    idle.program.start()
    idle.wait_for(2, "started")
    again = Sender(int(idle.program.events("started")[1]["port"]))
    assert again.mlflow(created("a" * 32))[0] == 409
    assert Queue(idle.state).counts()["waiting"] == 1


@contextmanager
def piped(folder: Path, command: list[str], *options: str) -> Iterator[tuple[subprocess.Popen[str], Sender]]:
    """Start one that prints to a pipe, and that takes deliveries of W&B alone."""
    folders = ["--policy", policy_file(folder), "--state", folder / "state"]
    with subprocess.Popen(
        [*command, "receive", *folders, "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, WANDB_SECRET: WANDB},
        text=True,
    ) as process:
        try:
            yield process, Sender(json.loads(process.stdout.readline())["port"])
        finally:
            process.kill()


@pytest.mark.extended
@pytest.mark.parametrize("options", [[], ["--queue-only"]])
def test_nobody_reads_its_lines_any_more(tmp_path: Path, options: list[str]):
    """Senders are answered, and it ends, saying why."""
    with piped(tmp_path, COMMAND, *options) as (process, sender):
        process.stdout.close()
        assert sender.wandb({"run": "team/digits/x"})[0] == 202
        assert process.wait(timeout=30) == 2
        said = process.stderr.read()
    assert said == (
        "error: decisions can no longer be written to standard output: Broken pipe\n\n"
        "Hint: earlier webhooks are queued; start the command again with a working standard output.\n"
    )
    assert [entry.candidate for entry in Queue(tmp_path / "state").entries()] == ["wandb:team/digits/x"]


@pytest.mark.extended
@pytest.mark.parametrize(
    "option",
    [
        pytest.param("-n", id="limit-of-the-system"),
        pytest.param("-Sn", id="limit-of-its-own", marks=pytest.mark.extended),
    ],
)
def test_a_process_that_may_have_few_files_open(tmp_path: Path, option: str):
    """Regression: connections on which nothing comes took them all, and nothing else was accepted."""
    limited = ["sh", "-c", f'ulimit {option} 256; exec "$@"', "sh", *COMMAND]
    with piped(tmp_path, limited, "--queue-only") as (_, sender), ExitStack() as stack:
        for _ in range(400):
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", sender.port), timeout=10))
            slow.sendall(b"POST /wandb HTTP/1.1\r\nContent-Length: 9\r\n\r\n")
        began = time.monotonic()
        assert sender.wandb({"run": "team/digits/x"})[0] == 202
        assert time.monotonic() - began < 4.0  # less than one of them may take


@pytest.mark.slow
def test_a_burst_is_answered_at_once_and_worked_off_once(tmp_path: Path):
    """100 events in a burst, while others are being compared: all taken, none lost, none double.

    Regression: writers got in each other's way in SQLite, and some were told to come again.
    """
    runs = HookedStore.local(tmp_path)
    runs.baseline()
    first = [runs.finished() for _ in range(4)]
    roles = ["candidate", *["other"] * 24] * 4
    burst = [runs.finished(tags={"role": role}) for role in roles]
    with Receiving(tmp_path, runs.policy_file(tracking_uri=runs.store.uri)) as receiving:
        sender = receiving.sender
        for number, run_id in enumerate(first):
            assert sender.mlflow(created(run_id), f"first-delivery-{number}")[0] == 202
        receiving.wait_for(1, "compared")

        def send(numbered: tuple[int, str]) -> tuple[int, float]:
            began = time.monotonic()
            status, _ = sender.mlflow(created(numbered[1]), f"burst-delivery-{numbered[0]}")
            return status, time.monotonic() - began

        with ThreadPoolExecutor(50) as senders:
            answers = list(senders.map(send, enumerate(burst)))
        assert [status for status, _ in answers] == [202] * 100
        assert max(each for _, each in answers) < 20
        assert len(receiving.program.events("compared")) < 8, "answers do not wait for comparisons"
        receiving.wait_for(104, "compared", "skipped", seconds=600)
        assert receiving.program.stop() == 0
    wanted = sorted(f"mlflow:{run_id}" for run_id in [*first, *burst[::25]])
    assert sorted(line["candidate"] for line in receiving.program.events("compared")) == wanted
    assert len({line["candidate"] for line in receiving.program.events("skipped")}) == 96
    assert runs.compared() == wanted
    last = receiving.program.lines[-1]
    assert (last["done"], last["waiting"], last["claimed"], last["refused"]) == (8, 0, 0, 0)
