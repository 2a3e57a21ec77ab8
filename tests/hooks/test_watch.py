"""The watcher on real stores: what it compares, what it leaves alone, and how it goes on after failures."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from contextlib import nullcontext
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import requests
from hooked_runs import Heard, HookedStore

from trackperm.errors import InputError, TrackerError
from trackperm.hooks import work as work_module
from trackperm.hooks import worker as worker_module
from trackperm.hooks.backoff import delay, retry_after
from trackperm.hooks.health import Health, endpoint
from trackperm.hooks.notes import Notes, scrubbed
from trackperm.hooks.queue import Queue, Unit
from trackperm.hooks.queue_file import QueueError
from trackperm.hooks.watch import Watcher
from trackperm.hooks.worker import Worker

pytestmark = pytest.mark.tracker


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue(tmp_path / "state")


@pytest.fixture
def heard() -> Heard:
    return Heard()


def once(store: HookedStore, queue: Queue, heard: Heard, **changes: Any) -> Exception | None:
    return Watcher([store.policy(**changes)], queue, heard.notes).once(threading.Event())


def test_every_wanted_run_is_compared_once(runs: HookedStore, queue: Queue, heard: Heard):
    baseline = runs.baseline()
    first, second = runs.finished(seed=2, rate=0.5), runs.finished(seed=3)
    runs.finished("other", tags={"role": "something else"})
    runs.begun("still going")
    assert once(runs, queue, heard) is None
    assert runs.compared() == sorted([f"mlflow:{first}", f"mlflow:{second}"])
    [one, other] = heard.events("compared")
    assert (one["candidate"], one["baseline"]) == (f"mlflow:{first}", f"mlflow:{baseline}")
    assert (one["outcome"], other["outcome"]) == ("fail", "pass")
    assert one["policy"] == "nightly"
    assert "baseline" in one["why"]
    assert once(runs, queue, heard) is None
    assert len(heard.events("compared")) == 2
    assert queue.counts()["done"] == 2


def test_a_watcher_that_lost_its_state_compares_nothing_again(
    runs: HookedStore, tmp_path: Path, heard: Heard
):
    runs.baseline()
    candidate = runs.finished()
    once(runs, Queue(tmp_path / "one"), heard)
    before = runs.store.comparisons(runs.experiment)
    another = Queue(tmp_path / "two")
    assert once(runs, another, heard) is None
    [known] = heard.events("known")
    assert known["candidate"] == f"mlflow:{candidate}"
    assert known["comparisons"] == [f"mlflow:{run.info.run_id}" for run in before]
    assert [run.info.end_time for run in runs.store.comparisons(runs.experiment)] == [
        run.info.end_time for run in before
    ]
    assert another.entries()[0].outcome == "known"


def test_what_cannot_be_compared_is_refused_until_the_run_changes(
    runs: HookedStore, queue: Queue, heard: Heard
):
    runs.baseline()
    candidate = runs.begun()
    runs.store.client.set_terminated(candidate)
    assert once(runs, queue, heard) is None
    assert once(runs, queue, heard) is None
    [refused] = heard.events("refused")
    assert refused["candidate"] == f"mlflow:{candidate}"
    assert "no" in refused["reason"]
    assert queue.entries()[0].state == "refused"
    runs.log(candidate)
    runs.store.client.set_tag(candidate, "note", "predictions were added")
    assert once(runs, queue, heard) is None
    assert runs.compared() == [f"mlflow:{candidate}"]


def test_the_first_run_has_no_baseline(runs: HookedStore, queue: Queue, heard: Heard):
    candidate = runs.finished()
    assert once(runs, queue, heard) is None
    runs.baseline()
    assert once(runs, queue, heard) is None
    assert heard.events("compared", "known") == []
    assert queue.retry_refused([queue.entries()[0].digest]) == 1
    once(runs, queue, heard)
    assert [line["candidate"] for line in heard.events("refused")] == [f"mlflow:{candidate}"] * 2


def test_a_retry_keeps_the_baseline_of_the_first_attempt(
    runs: HookedStore, queue: Queue, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    baseline = runs.baseline()
    candidate = runs.finished()
    policy, settle = runs.policy(baseline={"champion": "m"}), worker_module.settle
    runs.store.client.create_registered_model("m")
    runs.store.client.create_model_version("m", runs.folder.as_uri(), run_id=baseline)
    runs.store.client.set_registered_model_alias("m", "champion", "1")

    def broken(*arguments: Any) -> Any:
        raise TrackerError("MLflow at `…` does not answer")

    queue.add([Unit(policy.digest, f"mlflow:{candidate}", policy.name)], "watch")
    worker = Worker([policy], queue, heard.notes)
    monkeypatch.setattr(worker_module, "settle", broken)
    turn = worker.turn()
    assert turn is not None
    assert turn.event == "retry"
    runs.store.client.create_model_version("m", runs.folder.as_uri(), run_id=runs.finished("new champion"))
    runs.store.client.set_registered_model_alias("m", "champion", "2")
    monkeypatch.setattr(worker_module, "settle", settle)
    monkeypatch.setattr(queue, "_clock", lambda: time.time() + 3000)
    turn = worker.turn()
    assert turn is not None
    assert turn.event == "compared"
    assert queue.entries()[0].baseline == f"mlflow:{baseline}"


def test_what_a_worker_left_double_is_withdrawn_by_the_next(
    runs: HookedStore, tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    """On another machine a worker saw nothing of the comparison, and died before it looked again."""
    runs.baseline()
    candidate = runs.finished()
    once(runs, Queue(tmp_path / "one"), heard)
    [first] = runs.store.comparisons(runs.experiment)
    other = runs.baseline(seed=5)
    policy, queue = runs.policy(), Queue(tmp_path / "two")
    queue.add([Unit(policy.digest, f"mlflow:{candidate}", policy.name)], "watch")
    claim = queue.claim([policy.digest], "dies")
    assert claim is not None
    queue.fix_baseline(claim, f"mlflow:{other}", "newer")
    queue.release(claim)
    with monkeypatch.context() as blind:
        blind.setattr(worker_module, "withdraw_duplicates", lambda *_: ())
        blind.setattr(work_module, "settled_before", lambda *_: ())
        blind.setattr(work_module, "withdraw_duplicates", _killed)
        with pytest.raises(KeyboardInterrupt):
            Worker([policy], queue, heard.notes).turn()
    assert len(runs.compared()) == 2
    turn = Worker([policy], queue, heard.notes).turn()
    assert turn is not None
    assert turn.event == "known"
    assert [run.info.run_id for run in runs.store.comparisons(runs.experiment)] == [first.info.run_id]


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_queue_that_fails_refuses_nothing(
    runs: HookedStore, queue: Queue, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    """What was logged while the queue could not be written to is found by the next worker."""

    def full(*_: object) -> None:
        raise QueueError("the disk is full")

    runs.baseline()
    candidate = runs.finished()
    with monkeypatch.context() as broken:
        broken.setattr(queue, "settle", full)
        assert isinstance(once(runs, queue, heard), TrackerError)
    assert queue.entries()[0].state == "claimed"
    monkeypatch.setattr(queue, "_clock", lambda: time.time() + 120)
    assert once(runs, queue, heard) is None
    assert [line["event"] for line in heard.lines] == ["queued", "queue-failed", "known"]
    assert runs.compared() == [f"mlflow:{candidate}"]


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (TrackerError("down"), "retry"),
        (ConnectionError("reset"), "retry"),
        (MemoryError(), "retry"),
        (InputError("cannot be paired"), "refused"),
        (ZeroDivisionError("oops"), "refused"),
    ],
)
def test_what_becomes_of_errors(
    runs: HookedStore,
    queue: Queue,
    heard: Heard,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    event: str,
):
    def broken(*arguments: Any) -> Any:
        raise error

    runs.baseline()
    runs.finished()
    monkeypatch.setattr(worker_module, "settle", broken)
    found = once(runs, queue, heard)
    assert isinstance(found, TrackerError) == (event == "retry")
    assert [line["event"] for line in heard.lines] == ["queued", event]
    assert queue.entries()[0].state == ("waiting" if event == "retry" else "refused")


def test_an_interrupted_worker_gives_its_row_back(
    runs: HookedStore, queue: Queue, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    def interrupted(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    runs.baseline()
    runs.finished()
    monkeypatch.setattr(worker_module, "settle", interrupted)
    with pytest.raises(KeyboardInterrupt):
        once(runs, queue, heard)
    [entry] = queue.entries()
    assert (entry.state, entry.attempts) == ("waiting", 0)


def test_a_worker_that_stood_still_notices(
    runs: HookedStore, tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    """Another worker takes the row over while this one looks for the baseline, and settles it."""
    queue = Queue(tmp_path / "state", lease=0.0)
    runs.baseline()
    runs.finished()
    find = worker_module.find_baseline
    policy = runs.policy()
    settled = threading.Event()

    def slow(*arguments: Any) -> Any:
        if not settled.is_set():
            settled.set()
            other = Worker([policy], queue, Heard().notes).turn()
            assert other is not None
            assert other.event == "compared"
        return find(*arguments)

    monkeypatch.setattr(worker_module, "find_baseline", slow)
    monkeypatch.setattr(Worker, "_renewed", lambda worker, claim: nullcontext())
    assert once(runs, queue, heard) is None
    assert [line["event"] for line in heard.lines] == ["queued", "lease-lost"]
    assert len(runs.compared()) == 1


def test_a_row_that_was_taken_over_is_not_compared_again(
    runs: HookedStore, tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    """Its baseline is fixed, so that nothing is written to the row between the claim and the comparison."""
    queue, policy, settle = Queue(tmp_path / "state", lease=0.0), runs.policy(), worker_module.settle
    baseline, candidate = runs.baseline(), runs.finished()
    queue.add([Unit(policy.digest, f"mlflow:{candidate}", policy.name)], "watch")
    claim = queue.claim([policy.digest], "earlier")
    assert claim is not None
    queue.release(queue.fix_baseline(claim, f"mlflow:{baseline}", "the newest"))
    owners: list[str] = []
    logged_before = worker_module._logged_before

    def slow(*arguments: Any) -> Any:
        found = logged_before(*arguments)
        if not owners:
            assert queue.claim([policy.digest], "another") is not None
            owners.append("another")
        return found

    def counted(*arguments: Any) -> Any:
        owners.append("this one")
        return settle(*arguments)

    monkeypatch.setattr(worker_module, "_logged_before", slow)
    monkeypatch.setattr(worker_module, "settle", counted)
    monkeypatch.setattr(Worker, "_renewed", lambda worker, claim: nullcontext())
    Worker([policy], queue, heard.notes).turn()
    assert [line["event"] for line in heard.lines] == ["lease-lost"]
    assert owners == ["another"]


def test_a_lease_is_renewed_while_a_comparison_takes_long(
    runs: HookedStore, tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    queue, settle = Queue(tmp_path / "state", lease=0.6), worker_module.settle
    runs.baseline()
    runs.finished()
    policy = runs.policy()
    taken = []

    def slow(*arguments: Any) -> Any:
        time.sleep(1.5)
        taken.append(queue.claim([policy.digest], "another"))
        return settle(*arguments)

    monkeypatch.setattr(worker_module, "settle", slow)
    once(runs, queue, heard)
    assert taken == [None]
    assert queue.entries()[0].attempts == 1


def test_runs_that_were_announced_while_they_are_going(runs: HookedStore, queue: Queue, heard: Heard):
    runs.baseline()
    going, failed, other = runs.begun(), runs.begun(), runs.finished(tags={"role": "x"})
    runs.store.client.set_terminated(failed, "FAILED")
    policy = runs.policy()
    elsewhere = HookedStore(runs.store.uri, runs.folder, runs.folder / "else", "elsewhere").finished()
    units = [Unit(policy.digest, f"mlflow:{run}", policy.name) for run in (going, failed, other, elsewhere)]
    queue.add([*units, Unit(policy.digest, "mlflow:no-such-run", policy.name)], "receive")
    worker = Worker([policy], queue, heard.notes)
    while worker.turn() is not None:
        pass
    events = {line["candidate"].removeprefix("mlflow:"): line["event"] for line in heard.lines}
    assert events == {
        going: "waiting",
        failed: "skipped",
        other: "skipped",
        elsewhere: "skipped",
        "no-such-run": "refused",
    }
    assert {entry.candidate for entry in queue.entries()} == {f"mlflow:{going}", "mlflow:no-such-run"}


def test_since(runs: HookedStore, queue: Queue, heard: Heard):
    runs.baseline()
    runs.finished()
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    Watcher([runs.policy()], queue, heard.notes, since=later).once(threading.Event())
    assert heard.lines == []


def test_an_experiment_that_is_not_there(runs: HookedStore, queue: Queue, heard: Heard):
    runs.baseline()
    error = once(runs, queue, heard, runs="mlflow:no-such-experiment")
    assert isinstance(error, InputError)
    [line] = heard.events("list-failed")
    assert "no-such-experiment" in line["reason"]


def test_a_place_to_log_to_that_is_not_there_yet_refuses_no_run(
    runs: HookedStore, queue: Queue, heard: Heard
):
    runs.baseline()
    candidate = runs.finished()
    verdicts = f"{runs.experiment}-verdicts"
    error = once(runs, queue, heard, log_to=f"mlflow:{verdicts}")
    assert isinstance(error, TrackerError)
    [retry] = heard.events("retry")
    assert f"no experiment called `{verdicts}`" in retry["reason"]
    runs.store.experiment(verdicts)
    later = Queue(queue.folder, clock=lambda: time.time() + 900.0)
    assert once(runs, later, heard, log_to=f"mlflow:{verdicts}") is None
    assert [line["candidate"] for line in heard.events("compared")] == [f"mlflow:{candidate}"]


def test_of_equal_policies_the_one_that_is_about_a_run_compares_it(
    runs: HookedStore, queue: Queue, heard: Heard
):
    runs.baseline()
    candidate = f"mlflow:{runs.finished()}"
    runs.store.experiment("elsewhere")
    other, own = runs.policy(name="other", runs="mlflow:elsewhere"), runs.policy(name="own")
    assert other.digest == own.digest
    for policy in (other, own):
        queue.add([Unit(policy.digest, candidate, policy.name)], "app")
    Worker([other, own], queue, heard.notes).turn()
    [compared] = heard.events("compared")
    assert (compared["policy"], compared["candidate"]) == ("own", candidate)
    queue.add([Unit(other.digest, "mlflow:none", other.name)], "app")
    assert Worker([other], queue, heard.notes).turn().event == "refused"


def test_a_tracker_that_is_down(runs: HookedStore, queue: Queue, heard: Heard):
    began = time.monotonic()
    error = once(runs, queue, heard, tracking_uri="http://127.0.0.1:9")
    assert isinstance(error, TrackerError)
    assert time.monotonic() - began < 30
    assert "does not answer" in heard.events("list-failed")[0]["reason"]


def test_runs_until_it_is_told_to_stop(runs: HookedStore, queue: Queue, heard: Heard, tmp_path: Path):
    runs.baseline()
    stop, file = threading.Event(), tmp_path / "health.json"
    watcher = Watcher([runs.policy()], queue, heard.notes, interval=0.2, health=Health(30, file))
    thread = threading.Thread(target=watcher.run, args=(stop,))
    thread.start()
    try:
        candidate = runs.finished()
        deadline = time.monotonic() + 30
        while not heard.events("compared") and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        stop.set()
        thread.join(30)
    assert not thread.is_alive()
    assert runs.compared() == [f"mlflow:{candidate}"]
    assert json.loads(file.read_text())["state"] == "ok"


def test_a_health_file_that_cannot_be_written_ends_nothing(runs: HookedStore, queue: Queue, heard: Heard):
    runs.baseline()
    folder = runs.folder / "gone"
    watcher = Watcher([runs.policy()], queue, heard.notes, health=Health(30, folder / "health.json"))
    assert watcher.once(threading.Event()) is None
    assert "health.json` cannot be written" in heard.events("health-failed")[0]["reason"]


def test_health(tmp_path: Path):
    health = Health(0.5, tmp_path / "health.json")
    with endpoint(health, 0) as port:
        url = f"http://127.0.0.1:{port}"
        health.beat(is_good=True, queue={"waiting": 1})
        assert requests.get(f"{url}/health", timeout=5).json()["queue"] == {"waiting": 1}
        assert requests.get(f"{url}/other", timeout=5).status_code == 404
        time.sleep(0.6)
        assert requests.get(f"{url}/health", timeout=5).json()["state"] == "stalled"
        health.beat(is_good=False)
        answer = requests.get(f"{url}/healthz", timeout=5)
        assert (answer.status_code, answer.json()["state"]) == (503, "failing")
        with pytest.raises(InputError, match=f"port {port} cannot be listened on"), endpoint(health, port):
            pass
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{url}/health", timeout=2)
    with pytest.raises(InputError, match="health file"):
        Health(1, tmp_path / "no" / "folder").beat(is_good=True)


def test_delays_are_drawn_below_a_growing_bound():
    for attempts, bound in ((0, 2.0), (3, 16.0), (100, 600.0)):
        drawn = [delay(attempts) for _ in range(300)]
        assert 0.6 * bound < max(drawn) <= bound
        assert min(drawn) < 0.2 * bound


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("7", 7.0), ("-3", 0.0), ("soon", None), ("inf", None), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0)],
)
def test_what_a_server_asks_for(written: str, seconds: float | None):
    response = requests.Response()
    response.status_code, response.headers["Retry-After"] = 429, written
    error = TrackerError("refused")
    error.__cause__ = OSError("wrapped")
    error.__cause__.__context__ = requests.HTTPError("too many", response=response)
    assert retry_after(error) == seconds
    assert retry_after(TrackerError("no answer")) is None


def test_a_rate_limit_is_kept(runs: HookedStore, queue: Queue, heard: Heard, monkeypatch: pytest.MonkeyPatch):
    response = requests.Response()
    response.status_code, response.headers["Retry-After"] = 429, "77"

    def limited(*arguments: Any) -> Any:
        raise TrackerError("too many requests") from requests.HTTPError(response=response)

    runs.baseline()
    for _ in range(3):
        runs.finished()
    monkeypatch.setattr(worker_module, "settle", limited)
    assert isinstance(once(runs, queue, heard), TrackerError)
    assert len(heard.events("retry")) == 1, "the tracker is left alone after the first"
    assert heard.events("retry")[0]["told_to_wait"] == 77
    assert max(entry.due for entry in queue.entries()) - time.time() == pytest.approx(77, abs=10)


def test_nothing_secret_is_noted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "correct horse battery")
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef")
    heard = Heard()
    heard.notes(
        "x",
        reason="at https://me:pass@host/p?api_key=k123&x=1 with `correct horse battery`",
        more=["Bearer abcdefgh", "key 0123456789abcdef", "Authorization: Basic dXNlcjpwYXNz"],
        nothing=None,
        number=1.5,
    )
    [line] = heard.lines
    for secret in ("pass@", "correct horse", "k123", "abcdefgh", "0123456789abcdef", "dXNl"):
        assert secret not in heard.text
    assert "https://host/p" in line["reason"]
    assert (line["number"], "nothing" in line) == (1.5, False)
    assert len(scrubbed("x" * 10_000)) == 2000


def test_notes_are_whole_lines(capsys: pytest.CaptureFixture[str]):
    notes = Notes(policy="p")
    threads = [threading.Thread(target=notes, args=("e",), kwargs={"text": "x" * 500}) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["policy"] for line in lines] == ["p"] * 20
