"""The ways a server is run: several processes, gunicorn, a static prefix, limits; and how it ends."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from support.mlflow_server import BASIC_AUTH, MlflowServer, free_port
from support.mlflow_stores import MlflowStore
from support.processes import descendants, run, workers_of
from support.server_client import API, Client, predictions

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


def wait_until_gone(processes: list[int], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not all(map(is_gone, processes)):
        assert time.monotonic() < deadline, [each for each in processes if not is_gone(each)]
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("workers", "gunicorn", "prefix"),
    [
        pytest.param(3, False, "", id="uvicorn-3"),
        pytest.param(3, True, "/mlf", id="gunicorn-3-prefix"),
        pytest.param(1, True, "", id="gunicorn-1", marks=pytest.mark.nightly),
        pytest.param(1, False, "/mlf", id="uvicorn-prefix", marks=pytest.mark.nightly),
    ],
)
def test_deployment(tmp_path: Path, workers: int, gunicorn: bool, prefix: str) -> None:
    env = {"TMPDIR": str(tmp_path)}
    with MlflowServer(
        tmp_path, env, app="trackperm", workers=workers, gunicorn=gunicorn, prefix=prefix
    ) as server:
        order, client = two_runs(server), Client(server.uri)
        job = client.begin({**order, "log": True})
        state = client.wait(job)
        assert state["state"] == "done", state
        result = state["result"]
        for _ in range(6 * workers):  # any process answers
            assert client.state(job)["result"] == result
            assert client.flips(job)["total"] == result["flips"]["total"]
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


def test_allowed_hosts(tmp_path: Path) -> None:
    """What a job asks of MLflow goes to the host that the user named, and only if MLflow allows that."""
    allowed = ["--allowed-hosts", "127.0.0.1:*,runs.example"]
    env = {"TMPDIR": str(tmp_path)}
    with MlflowServer(tmp_path, env, app="trackperm", arguments=allowed) as server:
        order, client = two_runs(server), Client(server.uri)
        assert client.result(order)["kind"] == "compare"
        named = client.post(order, {"Host": "runs.example"})
        assert named.status_code == 202, named.text
        assert client.wait(named.json()["job"])["result"]["baseline"]["url"].startswith(
            "http://runs.example/"
        )
        for refused in (
            client.post(order, {"Host": "evil.example"}),
            client.get("/trackperm/compare", {"Host": "evil.example"}),
        ):
            assert refused.status_code == 403


def test_process_of_the_server_is_killed(tmp_path: Path) -> None:
    """A job of a process that is gone has failed, as another process says; nothing is left behind."""
    with MlflowServer(tmp_path, {"TMPDIR": str(tmp_path)}, app="trackperm", workers=2) as server:
        client, order = Client(server.uri), two_runs(server, 300_000)
        job = client.begin(order)
        while client.state(job)["state"] == "waiting":
            time.sleep(0.02)
        workers = workers_of(server.process)
        parent = int(Path(f"/proc/{workers[0]}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(parent, signal.SIGKILL)
        wait_until_gone(workers)
        deadline = time.monotonic() + 30
        while True:
            assert time.monotonic() < deadline
            try:
                state = client.state(job)
            except OSError:  # a connection that the process had accepted
                continue
            if state["state"] == "failed":
                break
            time.sleep(0.1)
        assert "has ended" in state["error"]["message"]
        assert client.result(order)["kind"] == "compare"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["terminated", "killed"])
def test_server_ends(tmp_path: Path, how: signal.Signals) -> None:
    """With it end the processes that run jobs, also in the middle of one; no file with data is left."""
    with MlflowServer(tmp_path, {"TMPDIR": str(tmp_path)}, app="trackperm") as server:
        client, order = Client(server.uri), two_runs(server, 300_000)
        job = client.begin(order)
        while client.state(job)["state"] == "waiting":
            time.sleep(0.02)
        processes, workers = descendants(server.process), workers_of(server.process)
        assert workers
        for process in processes:
            if process not in workers:
                os.kill(process, how)
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
    package = folder / "endless-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: endless\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[trackperm.sources]\nendless = endless:ENDLESS\n")
    return {"PYTHONPATH": str(folder)}


def endless_runs(server: MlflowServer) -> dict[str, object]:
    store = MlflowStore(server.uri)
    runs = [store.run("endless", name) for name in ("baseline", "candidate")]
    for run_id in runs:
        store.client.log_text(run_id, "%endless\n", "p.txt")
    return {"kind": "compare", "runs": runs, "artifact": "p.txt"}


@pytest.mark.parametrize("limit", ["300", "8"], ids=["killed-server", "late"])
def test_worker_that_holds_the_interpreter(tmp_path: Path, limit: str) -> None:
    """It ends with the server, and at its limit: no thread of its own would come to do that."""
    env = {"TMPDIR": str(tmp_path), "TRACKPERM_JOB_SECONDS": limit, **endless(tmp_path)}
    with MlflowServer(tmp_path, env, app="trackperm") as server:
        client = Client(server.uri)
        job = client.begin(endless_runs(server))
        deadline = time.monotonic() + 60
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < deadline, client.state(job)
            time.sleep(0.1)
        processes, workers = descendants(server.process), workers_of(server.process)
        try:
            if limit == "300":
                for process in processes:
                    if process not in workers:
                        os.kill(process, signal.SIGKILL)
            else:
                assert "longer than 8 seconds" in client.wait(job)["error"]["message"]
            wait_until_gone(workers)
        finally:
            for process in workers:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        if limit == "300":
            assert not list(tmp_path.glob("trackperm-server-*/*/scratch"))


@pytest.mark.parametrize(
    ("limit", "value", "said"),
    [
        ("TRACKPERM_JOB_SECONDS", "1", "longer than 1 seconds"),
        ("TRACKPERM_JOB_MB", "60", "limit is 60 MB"),
        ("TRACKPERM_ARTIFACT_MB", "1", "at most 1 MB"),
    ],
)
def test_limits(tmp_path: Path, limit: str, value: str, said: str) -> None:
    """Each is named, with what raises it; the command line has none, and the server goes on."""
    with MlflowServer(tmp_path, {"TMPDIR": str(tmp_path), limit: value}, app="trackperm") as server:
        client = Client(server.uri)
        error = client.error(two_runs(server, 1_000_000))
        assert said in error["message"]
        assert limit in error["hint"]
        assert "command line" in error["hint"]
        assert client.get("/health").status_code == 200
        if limit != "TRACKPERM_JOB_SECONDS":  # within which no process starts
            assert client.result({"kind": "choices", "experiment": "1"})["kind"] == "choices"


def test_visitors_take_turns(tmp_path: Path) -> None:
    """A page that asks for much delays another by what runs; who cancels, or is gone, delays nobody."""
    with MlflowServer(tmp_path, {"TMPDIR": str(tmp_path)}, app="trackperm") as server:
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
        deadline = time.monotonic() + 60  # what logs is done, though its page is gone
        while not MlflowStore(server.uri).comparisons("digits"):
            assert time.monotonic() < deadline
            time.sleep(0.2)


def test_job_that_is_cancelled_ends(tmp_path: Path) -> None:
    """Also in the middle of a long call; the next one gets a process of its own."""
    env = {"TMPDIR": str(tmp_path), **endless(tmp_path)}
    with MlflowServer(tmp_path, env, app="trackperm") as server:
        client, order = Client(server.uri, page="a-page-that-cancels"), endless_runs(server)
        job = client.begin(order)
        deadline = time.monotonic() + 60
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < deadline, client.state(job)
            time.sleep(0.1)
        workers = workers_of(server.process)
        assert client.cancel(job).status_code == 204
        assert client.state(job)["state"] == "dropped"
        wait_until_gone(workers)
        assert client.result(two_runs(server))["verdict"] == "better"


def test_proxy_that_rewrites_the_host(tmp_path: Path) -> None:
    """Regression: every job was refused, though MLflow was told which origin to let through."""
    allowed = ["--cors-allowed-origins", "http://runs.example"]
    env = {"TMPDIR": str(tmp_path)}
    with MlflowServer(tmp_path, env, app="trackperm", arguments=allowed) as server:
        order, client = two_runs(server), Client(server.uri)
        begun = client.post(order, {"Origin": "http://runs.example"})
        assert begun.status_code == 202, begun.text
        assert client.wait(begun.json()["job"])["state"] == "done"
        for origin in ("https://runs.example", "http://evil.example"):
            assert client.post(order, {"Origin": origin}).status_code == 403


def users(folder: Path, password: str = "the-admins-own-1") -> dict[str, str]:
    """Return the environment of a server with basic authentication, whose database is not there yet."""
    (folder / "users.ini").write_text(BASIC_AUTH.format(folder=folder, password=password))
    return {
        "TMPDIR": str(folder),
        "TRACKPERM_WITH": "basic-auth",
        "MLFLOW_AUTH_CONFIG_PATH": str(folder / "users.ini"),
        "MLFLOW_FLASK_SERVER_SECRET_KEY": "a key of the tests",
    }


@pytest.mark.parametrize(
    "factory",
    [pytest.param(False, id="mlflow", marks=pytest.mark.nightly), pytest.param(True, id="uvicorn-factory")],
)
def test_users_are_set_up_once(tmp_path: Path, factory: bool) -> None:
    """Regression: processes that started together each made the tables, and all but one failed."""
    environment = users(tmp_path)
    if factory:  # without MLflow's command, which makes them before it starts processes
        package = tmp_path / "both-1.dist-info"
        package.mkdir()
        (package / "METADATA").write_text("Metadata-Version: 2.1\nName: both\nVersion: 1\n")
        (package / "entry_points.txt").write_text("[mlflow.app]\nboth = both:later\n")
        (tmp_path / "both.py").write_text(
            "import os\n"
            "from trackperm.server.app import create_app\n"
            "later = create_app() if '_MLFLOW_SGI_NAME' in os.environ else None\n"
        )
        environment["PYTHONPATH"] = str(tmp_path)
    with MlflowServer(tmp_path, environment, app="both" if factory else "trackperm", workers=4) as server:
        admin = Client(server.uri, ("admin", "the-admins-own-1"))
        deadline = time.monotonic() + 60
        while (tmp_path / "server.log").read_text().count("startup complete") < 4:
            assert time.monotonic() < deadline, (tmp_path / "server.log").read_text()[-4000:]
            time.sleep(0.1)
        assert admin.get("/trackperm/compare").status_code == 200
        assert Client(server.uri).get("/trackperm/compare").status_code == 401
    said = (tmp_path / "server.log").read_text()
    assert "Traceback" not in said
    assert "Error" not in said


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
    ended = run([*command, "--port", str(free_port())], cwd=tmp_path, env={**users(tmp_path), name: value})
    assert ended.returncode == 3
    assert ended.stderr.count("trackperm: ") == 1
    assert said in ended.stderr.partition("trackperm: ")[2]
    assert "Traceback" not in ended.stderr


def test_waitress(tmp_path: Path) -> None:
    """MLflow 3.17 tells it to call a factory twice; our application is not a factory."""
    arguments = ["--waitress-opts", "--threads=8"]
    with MlflowServer(tmp_path, {"TMPDIR": str(tmp_path)}, app="trackperm", arguments=arguments) as server:
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
    package = tmp_path / "own_app-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: own-app\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[mlflow.app]\nown = own_app:asgi\n")
    env = {"TMPDIR": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    with MlflowServer(tmp_path, env, app="own") as server:
        client = Client(server.uri)
        assert client.result(two_runs(server))["verdict"] == "better"
        assert client.get(f"{API}/jobs", id="0" * 32).status_code == 404
