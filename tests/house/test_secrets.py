"""Secrets are planted wherever people keep them, and looked for in all that is shown, logged or written."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml
from support.command_line import call_trackperm
from support.comparisons import answers
from support.hooked_runs import HookedStore
from support.mlflow_server import MlflowServer
from support.mlflow_stores import MlflowStore
from support.processes import descendants, workers_of
from support.receivers import Site, listening
from support.served_objects import served_objects
from support.server_client import API, Client
from support.watchers import Program

import trackperm

pytestmark = pytest.mark.tracker

PLANTED = "Pl4nt3d"
"""What every secret begins with, and nothing else has."""

VARIABLES = {
    "AWS_SECRET_ACCESS_KEY": f"{PLANTED}/aws+secret",
    "WANDB_API_KEY": f"{PLANTED}wandb".ljust(40, "0"),
    "MLFLOW_TRACKING_PASSWORD": f"{PLANTED}-password",
    "MLFLOW_TRACKING_USERNAME": "ann",
    "REGISTRY_TOKEN": f"{PLANTED}-token",
    "DATABASE_URL": f"postgresql://ann:{PLANTED}-database@127.0.0.1:9/runs",
}
QUERY = "&".join(
    f"{name}={PLANTED}{name}"
    for name in ("auth", "code", "pat", "jwt", "access_token", "X-Amz-Signature", "sig")
)
HIDDEN = re.sub("=[^&]*", "=…", QUERY)
USER = f"ann:{PLANTED}-user@"
CLOSED = f"http://{USER}127.0.0.1:9"
BETTER = [False] * 20 + [True] * 60
WORSE = [True] * 20 + [False] * 60


@pytest.fixture
def addresses(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Addresses of a baseline and a candidate, with a user's password and all secrets of a query."""
    with served_objects() as (address, served):
        for name, correct in (("base", BETTER), ("cand", WORSE)):
            answers(correct).write_parquet(tmp_path / "table")
            served[f"/{name}.parquet"] = (tmp_path / "table").read_bytes()
        (tmp_path / "table").unlink()
        with_user = address.replace("//", f"//{USER}")
        yield f"{with_user}/base.parquet?{QUERY}", f"{with_user}/cand.parquet?{QUERY}"


def planted_in(folder: Path) -> list[str]:
    """List the files below a folder that have a secret, among them databases of MLflow and of queues."""
    secret = PLANTED.encode()
    return [str(path) for path in folder.rglob("*") if path.is_file() and secret in path.read_bytes()]


def shown(address: str) -> str:
    """Return an address without user and query."""
    return address.replace(USER, "").partition("?")[0]


def call(folder: Path, command: str, *arguments: str, code: int = 0, **env: str) -> str:
    """Call trackperm with secrets in its environment; returns what it said, in which there is none."""
    result = call_trackperm(folder, *command.split(), *arguments, env={**VARIABLES, **env})
    said = result.stdout + result.stderr
    assert result.returncode == code, said
    assert PLANTED not in said
    return said


@pytest.mark.extended
def test_commands_on_addresses(tmp_path: Path, addresses: tuple[str, str]):
    base, cand = addresses
    policy = tmp_path / "trackperm.yaml"
    first = {"name": "p", "baseline": {"run": "nowhere.parquet"}, "if_no_baseline": "pass"}
    policy.write_text(yaml.safe_dump({"policies": [first]}))
    files = [part for suffix in ("md", "json") for part in ("-o", f"out.{suffix}")]
    call(tmp_path, "inspect", base, "--labels", base, "-o", "inspect.json")
    call(tmp_path, "compare", base, cand, *files, "-o", "out.html", "-o", "out.txt")
    call(
        tmp_path, "leaderboard", base, cand, *files, "-o", "board.html", "-o", "board.csv", "-o", "board.tex"
    )
    host, nowhere = shown(base).removesuffix("base.parquet"), base.replace("/base", "/nowhere")
    for candidate, baseline, code in (
        (cand, (), 0),
        (cand, ("--baseline", base), 1),
        (cand, ("--baseline", cand), 2),
        (nowhere, (), 2),
    ):
        said = call(tmp_path, "gate", "--candidate", candidate, *baseline, *files, "-o", "out.xml", code=code)
        assert f"candidate: {host}" in said
        assert host in json.loads((tmp_path / "out.json").read_text())["candidate"]["reference"]
        assert not planted_in(tmp_path)
    unread = f"error: `{shown(nowhere)}?{HIDDEN}` cannot be read"
    assert unread in said
    for command in ("compare", "leaderboard"):
        said = call(tmp_path, command, base, nowhere, code=2)
        assert unread in said
    call(tmp_path, "inspect", base, "--labels", nowhere, code=2)
    assert len(list(tmp_path.iterdir())) > 9
    assert not planted_in(tmp_path)


def test_values_of_python(tmp_path: Path, addresses: tuple[str, str]):
    """A report is shown as a whole by notebooks, and by schedulers, which log what a task returns."""
    base, cand = addresses
    policy = {"name": "p", "baseline": {"run": "nowhere.parquet"}, "tracking_uri": "http://127.0.0.1:9"}
    file = tmp_path / "trackperm.yaml"
    file.write_text(yaml.safe_dump({"policies": [policy]}))
    report = trackperm.gate(cand, file, baseline=base)
    elsewhere = report.policy.model_copy(
        update={"tracking_uri": CLOSED}
    )  # as for a run that was listed there
    values = [report, report.policy, report.policy.to_dict(), report.comparisons]
    values += [elsewhere, elsewhere.to_dict()]
    assert PLANTED not in "".join(f"{each!r}{each}" for each in values)
    assert "127.0.0.1" in repr(report)


@pytest.mark.extended
def test_what_is_logged_of_addresses(tmp_path: Path, addresses: tuple[str, str]):
    store = MlflowStore.local(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        store.experiment("digits")
    to = ("--log-to", "mlflow:digits", "--tracking-uri", store.uri)
    base, cand = addresses
    policy = {"name": "p", "baseline": {"run": shown(base)}, "log_to": "mlflow:digits", "alpha": 0.01}
    (tmp_path / "trackperm.yaml").write_text(yaml.safe_dump({"policies": [policy]}))
    call(tmp_path, "gate", "--candidate", cand, code=1, MLFLOW_TRACKING_URI=store.uri)
    [logged] = store.comparisons("digits")
    assert f"{shown(cand)}?{HIDDEN}" in logged.data.tags["trackperm.candidate"]
    said = call(tmp_path, "compare", *addresses, *to)
    call(tmp_path, "leaderboard", *addresses, *to)
    assert "logged: mlflow:" in said
    assert (len(store.comparisons("digits")), len(store.comparisons("digits", "leaderboard"))) == (2, 1)
    assert any(path.suffix == ".html" for path in (tmp_path / "artifacts").rglob("*"))
    assert not planted_in(tmp_path)


@pytest.mark.parametrize(
    "uri",
    [
        CLOSED,
        f"http://127.0.0.1:9/?{QUERY}",
        pytest.param(
            f"postgresql+psycopg2://{USER}127.0.0.1:9/runs?password={PLANTED}", marks=pytest.mark.extended
        ),
        pytest.param(
            f"postgresql+psycopg2://ann:{quote(PLANTED + '/@')}@127.0.0.1:9/runs", marks=pytest.mark.extended
        ),
        f"unheard-of://{USER}host",
    ],
)
def test_a_store_that_fails(tmp_path: Path, uri: str):
    """Its address is said, so that people see what was asked, and no secret of it."""
    given, env = ("--tracking-uri", uri), {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
    call(tmp_path, "compare mlflow:a mlflow:b", *given, code=3, **env)
    call(tmp_path, "inspect mlflow:a", *given, code=3, **env)
    call(tmp_path, "family --experiment mlflow:e", *given, code=3, **env)
    call(tmp_path, "leaderboard --experiment mlflow:e", *given, code=3, **env)
    policy = {"name": "p", "runs": "mlflow:e", "baseline": {"run": "mlflow:b"}}
    (tmp_path / "trackperm.yaml").write_text(yaml.safe_dump({"policies": [policy]}))
    env |= {"MLFLOW_TRACKING_URI": uri}
    call(tmp_path, "gate --candidate mlflow:a", "-o", "out.md", "-o", "out.json", code=3, **env)
    call(tmp_path, "watch --once --state state", code=3, **env)
    call(tmp_path, "watch --status --state state", **env)
    assert not planted_in(tmp_path)


def test_a_receiver(tmp_path: Path):
    site = Site(tmp_path)
    bearer = {"Authorization": f"Bearer {PLANTED}", "Cookie": PLANTED, "X-Wandb-Signature": PLANTED}
    with listening(site.server):
        assert site.post(f"/wandb?token={PLANTED}", PLANTED.encode(), bearer)[0] == 401
        assert site.post(f"/{PLANTED}", b"", bearer)[0] == 404
        assert site.wandb({"artifact": f"team/digits/{PLANTED}", "token": PLANTED})[0] in (202, 400)
        site.raw(f"{PLANTED} {PLANTED}\r\n\r\n".encode())
        site.raw(f"POST /wandb?code={PLANTED} HTTP/1.1\r\nX: {PLANTED}\r\n\r\n".encode())
    said = [line for line in site.heard.lines if "artifact" not in json.dumps(line)]
    assert said
    assert PLANTED not in json.dumps(said)


@contextmanager
def watched_processes(process: int) -> Iterator[set[bytes]]:
    """Collect the arguments of all processes below one, for as long as the block runs."""
    seen: set[bytes] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.02):
            for child in descendants(process):
                try:
                    seen.add(Path(f"/proc/{child}/cmdline").read_bytes())
                except OSError:
                    continue

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


@pytest.mark.slow
def test_a_server_and_its_watcher(tmp_path: Path):
    """Pages, jobs, their processes and logs, and a watcher that has a password for the server."""
    folder = tmp_path / "server"
    folder.mkdir()
    env = {**VARIABLES, "TMPDIR": str(folder)}
    with MlflowServer(folder, env, app="trackperm") as server, watched_processes(server.process) as seen:
        store = HookedStore(server.uri, tmp_path)
        runs = [store.baseline(), store.finished(rate=0.5)]
        client = Client(server.uri, ("ann", f"{PLANTED}-user"))
        order = {"kind": "compare", "runs": runs, "log": True}
        sent = [
            json.dumps(client.result(order)),
            json.dumps(client.error({**order, "statistic": "nothing"})),
        ]
        board = {"kind": "leaderboard", "runs": runs}
        sent.append(json.dumps(client.result(board)))
        for path in ("compare", "leaderboard"):
            query = {"runs": ",".join(runs), "token": PLANTED}
            sent.append(client.get(f"/trackperm/{path}", **query).text.replace(f"token={PLANTED}", ""))
        sent.append(client.post({"kind": "nothing"}, path=f"{API}/jobs?code={PLANTED}").text)
        workers = workers_of(server.process)
        environments = [Path(f"/proc/{worker}/environ").read_bytes() for worker in workers]
        policy = store.policy_file(tracking_uri=None)
        log = tmp_path / "watch.log"
        with_user = server.uri.replace("//", f"//{USER}")
        arguments = ["watch", "--policy", policy, "--once", "--state", tmp_path / "state"]
        watcher = Program(arguments, log, {**VARIABLES, "MLFLOW_TRACKING_URI": with_user})
        with watcher:
            watcher.wait_for("stopped")
            seen.add(Path(f"/proc/{watcher.process}/cmdline").read_bytes())
        assert watcher.events("compared"), watcher.text
        said = (folder / "server.log").read_text()
        # MLflow's own server logs the addresses that it is asked for
        own = [line for line in said.splitlines() if " HTTP/1." not in line]
    assert environments
    assert not [each for each in environments if PLANTED.encode() in each]
    assert any(b"trackperm.server.jobs.process" in each for each in seen)
    assert not [each for each in seen if PLANTED.encode() in each]
    assert PLANTED not in "".join([*sent, *own, watcher.text])
    (folder / "server.log").unlink()
    assert not planted_in(tmp_path)
