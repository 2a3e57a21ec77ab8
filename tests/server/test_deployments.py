"""The ways a server is run: several processes, gunicorn, a static prefix, limits; and how it ends."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from support.installed import installed
from support.mlflow_server import ADMIN, MlflowServer, basic_auth, free_port
from support.mlflow_stores import MlflowStore
from support.processes import descendants, run, workers_of
from support.server_client import API, Client, predictions
from support.waiting import wait_until

from trackperm.server.jobs.limits import PENDING_PER_PAGE

pytestmark = [pytest.mark.tracker, pytest.mark.slow]


def two_runs(server: MlflowServer, n: int = 200, artifact: str = "p.parquet") -> dict[str, object]:
    store = MlflowStore(server.uri)
    runs = [
        store.run_with_predictions("digits", name, predictions(seed, n, rate), artifact=artifact)
        for seed, (name, rate) in enumerate([("baseline", 0.3), ("candidate", 0.1)])
    ]
    return {"kind": "compare", "runs": runs}


def is_gone(process: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return True


def wait_until_gone(processes: list[int]) -> None:
    wait_until(lambda: all(map(is_gone, processes)), 10.0, lambda: processes)


@pytest.mark.parametrize(
    ("workers", "gunicorn", "prefix"),
    [
        pytest.param(3, True, "/mlf", id="gunicorn-3-prefix"),
        pytest.param(3, False, "", id="uvicorn-3", marks=pytest.mark.nightly),
        pytest.param(1, True, "", id="gunicorn-1", marks=pytest.mark.nightly),
        pytest.param(1, False, "/mlf", id="uvicorn-prefix", marks=pytest.mark.nightly),
    ],
)
def test_deployment(tmp_path: Path, workers: int, gunicorn: bool, prefix: str) -> None:
    with MlflowServer.with_pages(tmp_path, workers=workers, gunicorn=gunicorn, prefix=prefix) as server:
        order, client = two_runs(server), Client(server.uri)
        job = client.begin({**order, "log": True})
        state = client.wait(job)
        assert state["state"] == "done", state
        result = state["result"]
        for _ in range(6 * workers):  # any process answers
            assert client.state(job)["result"] == result
            assert client.changed(job)["total"] == result["changed"]["total"]
        store = MlflowStore(server.uri)
        logged = store.get(result["logged"]["id"])
        assert logged.data.tags["trackperm.state"] == "done"
        assert client.result({"kind": "choices", "runs": order["runs"]})["runs"][0]["url"].startswith(
            f"{server.uri}/#/experiments/"
        )
        for page in ("/", "/trackperm/compare", "/trackperm/leaderboard", "/trackperm/static/board.js"):
            assert client.get(page).status_code == 200, page
        assert client.post(order, {"Origin": "https://evil.example"}).status_code == 403
        if prefix:
            bare = Client(server.uri.removesuffix(prefix))
            assert bare.get("/trackperm/compare").status_code == 404
            assert bare.post(order).status_code in (404, 405)


def test_allowed_hosts_and_origins(tmp_path: Path) -> None:
    """What a job asks of MLflow goes to the host that the user named, and only if MLflow allows that.

    Regression: behind a proxy that rewrites the host, every job was refused, though MLflow was told which
    origin to let through.
    """
    allowed = ["--allowed-hosts", "127.0.0.1:*,runs.example", "--cors-allowed-origins", "http://runs.example"]
    with MlflowServer.with_pages(tmp_path, arguments=allowed) as server:
        order, client = two_runs(server), Client(server.uri)
        named = client.post(order, {"Host": "runs.example"})
        assert named.status_code == 202, named.text
        shown = client.wait(named.json()["job"])["result"]
        assert shown["baseline"]["url"].startswith("http://runs.example/")
        assert client.get("/trackperm/compare", {"Host": "evil.example"}).status_code == 403
        begun = client.post(order, {"Origin": "http://runs.example"})
        assert begun.status_code == 202, begun.text
        assert client.wait(begun.json()["job"])["state"] == "done"
        for headers in (
            {"Host": "evil.example"},
            {"Origin": "https://runs.example"},
            {"Origin": "http://evil.example"},
        ):
            assert client.post(order, headers).status_code == 403


def test_process_of_the_server_is_killed(tmp_path: Path) -> None:
    """A job of a process that is gone has failed, as another process says; nothing is left behind."""
    with MlflowServer.with_pages(tmp_path, workers=2) as server:
        client, order = Client(server.uri), two_runs(server, 300_000)
        job = client.begin_running(order)
        workers = workers_of(server.process)
        parent = int(Path(f"/proc/{workers[0]}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(parent, signal.SIGKILL)
        wait_until_gone(workers)

        def has_failed() -> bool:
            with suppress(OSError):  # a connection that the process had accepted
                return client.state(job)["state"] == "failed"
            return False

        wait_until(has_failed, 30.0)
        assert "has ended" in client.state(job)["error"]["message"]
        assert client.result(order)["kind"] == "compare"


def kill_all(processes: Iterable[int], how: signal.Signals = signal.SIGKILL) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, how)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGTERM, id="terminated"),
        pytest.param(signal.SIGKILL, id="killed", marks=pytest.mark.nightly),
    ],
)
def test_server_ends(tmp_path: Path, how: signal.Signals) -> None:
    """With it end the processes that run jobs, also in the middle of one; no file with data is left."""
    with MlflowServer.with_pages(tmp_path) as server:
        Client(server.uri).begin_running(two_runs(server, 300_000))
        processes, workers = descendants(server.process), workers_of(server.process)
        assert workers
        kill_all(set(processes) - set(workers), how)
        wait_until_gone(workers)
        if how == signal.SIGTERM:
            wait_until_gone(processes)
        # of pages there are empty files, whose time says when they were heard of
        left = [path.name for path in tmp_path.glob("trackperm-server-*/*/*") if path.parent.name != "pages"]
        assert left in ([], ["state.json"])


ENDLESS = """\
from pathlib import Path

from trackperm.tables import Source


def read(file):
    Path({begun!r}).touch()
    sum(range(10**13))


ENDLESS = Source("endless", "endless files", lambda file: file.head.startswith(b"%endless"), read)
"""
"""A format whose reader holds the interpreter in one call in C, for days."""


def endless(folder: Path) -> dict[str, str]:
    """Install that format in `folder`, and return the environment that has it."""
    (folder / "endless.py").write_text(ENDLESS.format(begun=str(folder / "begun")))
    return installed(folder, "endless", "[trackperm.sources]\nendless = endless:ENDLESS\n")


def begin_endless(server: MlflowServer, folder: Path) -> tuple[Client, str, list[int]]:
    """Begin a job on such files; a page, the job, and the processes that hold the interpreter."""
    (folder / "begun").unlink(missing_ok=True)
    client = Client(server.uri, page="a-page-that-cancels")
    job = client.begin(endless_runs(server))
    wait_until((folder / "begun").exists, 60.0, lambda: client.state(job))
    return client, job, workers_of(server.process)


def endless_runs(server: MlflowServer) -> dict[str, object]:
    store = MlflowStore(server.uri)
    runs = [store.run("endless", name) for name in ("baseline", "candidate")]
    for run_id in runs:
        store.client.log_text(run_id, "%endless\n", "p.txt")
    return {"kind": "compare", "runs": runs, "artifact": "p.txt"}


@pytest.mark.nightly
def test_worker_that_holds_the_interpreter_ends_with_the_server(tmp_path: Path) -> None:
    """No thread of its own would come to do that."""
    with MlflowServer.with_pages(tmp_path, endless(tmp_path)) as server:
        _, _, workers = begin_endless(server, tmp_path)
        try:
            kill_all(set(descendants(server.process)) - set(workers))
            wait_until_gone(workers)
        finally:
            kill_all(workers)
        assert not list(tmp_path.glob("trackperm-server-*/*/scratch"))


@pytest.mark.parametrize(
    ("limit", "value", "said"),
    [
        pytest.param("TRACKPERM_JOB_SECONDS", "1", "longer than 1 seconds", marks=pytest.mark.nightly),
        ("TRACKPERM_JOB_MB", "60", "limit is 60 MB"),
    ],
)
def test_limits(tmp_path: Path, limit: str, value: str, said: str) -> None:
    """Each is named, with what raises it; the command line has none, and the server goes on."""
    with MlflowServer.with_pages(tmp_path, {limit: value}) as server:
        client = Client(server.uri)
        error = client.error(two_runs(server, 1_000_000))
        assert said in error["message"]
        assert limit in error["hint"]
        assert "command line" in error["hint"]
        assert client.get("/health").status_code == 200
        if limit != "TRACKPERM_JOB_SECONDS":  # within which no process starts
            assert client.result({"kind": "choices", "experiment": "1"})["kind"] == "choices"


@pytest.mark.nightly
def test_visitors_take_turns(tmp_path: Path) -> None:
    """A page that asks for much delays another by what runs; who cancels, or is gone, delays nobody."""
    with MlflowServer.with_pages(tmp_path) as server:
        order = two_runs(server, 300_000)
        many, one = (Client(server.uri, page=f"the-page-of-{name}") for name in ("many-jobs", "one-job"))
        jobs = [many.begin(order) for _ in range(PENDING_PER_PAGE)]
        refused = many.post(order)
        assert refused.status_code == 429
        assert f"{PENDING_PER_PAGE} comparisons of this page" in refused.json()["error"]["message"]
        job = one.begin(order)
        assert one.get(f"{API}/jobs", id=jobs[0]).status_code == 404
        assert one.cancel(jobs[0]).status_code == 404
        assert one.wait(job)["state"] == "done"
        waiting = [each for each in jobs if many.state(each)["state"] == "waiting"]
        assert len(waiting) >= PENDING_PER_PAGE // 2
        for each in jobs:
            assert many.cancel(each).status_code == 204
        assert {many.state(each)["state"] for each in waiting} == {"dropped"}
        assert one.wait(one.begin(order))["state"] == "done"
        running = [one.begin(order) for _ in range(2)]
        gone = many.begin(order)
        many.begin({**order, "log": True})
        (record,) = tmp_path.glob(f"trackperm-server-*/{gone}/state.json")
        os.utime(record.parents[1] / "pages" / json.loads(record.read_text())["page"], (0, 0))
        assert {one.wait(job)["state"] for job in [*running, one.begin(order)]} == {"done"}
        assert json.loads(record.read_text())["state"] == "dropped"
        # what logs is done, though its page is gone
        wait_until(lambda: MlflowStore(server.uri).comparisons("digits"))


def test_job_that_is_cancelled_or_late_ends(tmp_path: Path) -> None:
    """Also in the middle of a long call; the next one gets a process of its own.

    A worker that is cancelled is gone before the limit of time would end it.
    """
    env = {"TRACKPERM_JOB_SECONDS": "15", **endless(tmp_path)}
    with MlflowServer.with_pages(tmp_path, env) as server:
        client, job, workers = begin_endless(server, tmp_path)
        assert "longer than 15 seconds" in client.wait(job)["error"]["message"]
        wait_until_gone(workers)
        client, job, workers = begin_endless(server, tmp_path)
        assert client.cancel(job).status_code == 204
        assert client.state(job)["state"] == "dropped"
        wait_until_gone(workers)
        assert client.result(two_runs(server))["verdict"] == "better"


@pytest.mark.parametrize(
    "factory",
    [pytest.param(False, id="mlflow", marks=pytest.mark.nightly), pytest.param(True, id="uvicorn-factory")],
)
def test_users_are_set_up_once(tmp_path: Path, factory: bool) -> None:
    """Regression: processes that started together each made the tables, and all but one failed."""
    environment = basic_auth(tmp_path)
    if factory:  # without MLflow's command, which makes them before it starts processes
        environment |= installed(tmp_path, "both", "[mlflow.app]\nboth = both:later\n")
        (tmp_path / "both.py").write_text(
            "import os\n"
            "from trackperm.server.app import create_app\n"
            "later = create_app() if '_MLFLOW_SGI_NAME' in os.environ else None\n"
        )
    app = "both" if factory else "trackperm"
    with MlflowServer(tmp_path, environment, app=app, workers=4, has_tables=False) as server:
        log = tmp_path / "server.log"
        wait_until(
            lambda: log.read_text().count("startup complete") >= 4, 60.0, lambda: log.read_text()[-4000:]
        )
        assert Client(server.uri, ADMIN).get("/trackperm/compare").status_code == 200
        assert Client(server.uri).get("/trackperm/compare").status_code == 401
    assert "Traceback" not in log.read_text()
    assert "Error" not in log.read_text()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TRACKPERM_JOB_MB", "much", "`TRACKPERM_JOB_MB` is 'much'"),
        pytest.param("TRACKPERM_WITH", "basic", "`TRACKPERM_WITH` is 'basic'", marks=pytest.mark.nightly),
        ("MLFLOW_AUTH_ADMIN_PASSWORD", "", "MLFLOW_AUTH_ADMIN_PASSWORD"),
        pytest.param(
            "MLFLOW_FLASK_SERVER_SECRET_KEY",
            "",
            "`MLFLOW_FLASK_SERVER_SECRET_KEY`",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_environment_that_cannot_be_used(tmp_path: Path, name: str, value: str, said: str) -> None:
    """The command ends before it starts anything, and says why, once."""
    store = ["--backend-store-uri", f"sqlite:///{tmp_path / 'mlflow.db'}"]
    command = [sys.executable, "-m", "mlflow", "server", "--app-name", "trackperm", *store]
    env = {**basic_auth(tmp_path), name: value}
    ended = run([*command, "--port", str(free_port())], cwd=tmp_path, env=env)
    assert ended.returncode == 3
    assert ended.stderr.count("trackperm: ") == 1
    assert said in ended.stderr.partition("trackperm: ")[2]
    assert "Traceback" not in ended.stderr


def test_waitress(tmp_path: Path) -> None:
    """MLflow 3.17 tells it to call a factory twice; our application is not a factory."""
    arguments = ["--waitress-opts", "--threads=8"]
    with MlflowServer.with_pages(tmp_path, arguments=arguments) as server:
        client = Client(server.uri)
        assert client.result({**two_runs(server), "log": True})["logged"]["created"]
        assert client.get("/trackperm/compare").status_code == 200


def test_application_of_ones_own(tmp_path: Path) -> None:
    """`register` adds everything to an application that somebody else makes."""
    (tmp_path / "own_app.py").write_text(
        "from mlflow.server import app\n"
        "from mlflow.server.fastapi_app import create_fastapi_app\n"
        "from trackperm.server.app import register\n"
        "\n"
        "register(app)\n"
        "asgi = create_fastapi_app(app)\n"
    )
    env = {"TMPDIR": str(tmp_path), **installed(tmp_path, "own_app", "[mlflow.app]\nown = own_app:asgi\n")}
    with MlflowServer(tmp_path, env, app="own") as server:
        client = Client(server.uri)
        assert client.result(two_runs(server))["verdict"] == "better"
        assert client.get(f"{API}/jobs", id="0" * 32).status_code == 404
