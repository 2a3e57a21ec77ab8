"""A real `mlflow server` in a process group of its own: started, killed, restarted, never leaked."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import requests

from support.mlflow_database import write_tables
from support.waiting import wait_until

_START_SECONDS = 120.0


def free_port() -> int:
    """Find a port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def silent_server() -> Iterator[str]:
    """Listen without ever answering; yields the address."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        yield f"http://127.0.0.1:{silent.getsockname()[1]}"


ADMIN = ("admin", "the-admins-own-1")
_BASIC_AUTH = """\
[mlflow]
default_permission = NO_PERMISSIONS
database_uri = sqlite:///{folder}/users.db
admin_username = {admin[0]}
admin_password = {admin[1]}
authorization_function = mlflow.server.auth:authenticate_request_basic_auth
auth_cache_ttl_seconds = 300
"""


def basic_auth(folder: Path) -> dict[str, str]:
    """Return the environment of a server with users, where nobody but the admin may do anything."""
    config = folder / "users.ini"
    config.write_text(_BASIC_AUTH.format(folder=folder, admin=ADMIN))
    return {
        "TMPDIR": str(folder),
        "TRACKPERM_WITH": "basic-auth",
        "MLFLOW_AUTH_CONFIG_PATH": str(config),
        "MLFLOW_FLASK_SERVER_SECRET_KEY": "a key of the tests",
    }


class MlflowServer:
    """One server on the loopback interface, with its database, artifacts and log in `folder`.

    A context manager. After :meth:`kill`, :meth:`start` brings it back on the same port and store. `env` is
    added to its environment; `workers` are processes of uvicorn, or of `gunicorn`; `app` is ``--app-name``,
    `prefix` is ``--static-prefix``, and `arguments` are further ones of ``mlflow server``. If not
    `has_tables`, it makes the tables of its database itself.
    """

    def __init__(
        self,
        folder: Path,
        env: Mapping[str, str] | None = None,
        *,
        app: str | None = None,
        workers: int = 1,
        gunicorn: bool = False,
        prefix: str = "",
        arguments: Sequence[str] = (),
        has_tables: bool = True,
    ) -> None:
        self.folder = folder
        self.artifacts = folder / "artifacts"
        self.port = free_port()
        self.uri = f"http://127.0.0.1:{self.port}{prefix}"
        self._env = dict(env or {})
        self._options = ["--workers", str(workers), *arguments]
        self._options += [] if app is None else ["--app-name", app]
        self._options += ["--gunicorn-opts", "--timeout 120"] if gunicorn else []
        self._options += ["--static-prefix", prefix] if prefix else []
        self._has_tables = has_tables
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def with_pages(cls, folder: Path, env: Mapping[str, str] | None = None, **options: Any) -> MlflowServer:
        """Return one with trackperm's pages, whose temporary files are in `folder` as well."""
        return cls(folder, {"TMPDIR": str(folder), **(env or {})}, app="trackperm", **options)

    def __enter__(self) -> MlflowServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        assert self._process is None
        if self._has_tables:
            write_tables(self.folder / "mlflow.db")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
        settings = {
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "PYTHONUNBUFFERED": "1",
        }
        server = [sys.executable, "-m", "mlflow", "server"]
        server += ["--backend-store-uri", f"sqlite:///{self.folder / 'mlflow.db'}"]
        server += ["--artifacts-destination", str(self.artifacts)]
        server += ["--host", "127.0.0.1", "--port", str(self.port), *self._options]
        # The shell waits for its input to end, which it does when this process dies in any way.
        guarded = ["sh", "-c", '"$@" & read _; kill -9 0', "sh", *server]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                guarded,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**inherited, **settings, **self._env},
                start_new_session=True,
            )
        try:
            self._wait()
        except BaseException:
            self.kill()
            raise

    @property
    def process(self) -> int:
        """Id of the process that all others of the server come from."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End the server at once, with everything that it has started."""
        if self._process is None:
            return
        process, self._process = self._process, None
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def _wait(self) -> None:
        def is_there() -> bool:
            with suppress(requests.RequestException):
                return requests.get(f"{self.uri}/health", timeout=2).status_code == 200
            return False

        wait_until(is_there, _START_SECONDS, lambda: (self.folder / "server.log").read_text()[-4000:])


def ask(server: MlflowServer, route: str, method: str = "POST", **content: str) -> requests.Response:
    """Administer the users of a server."""
    return requests.request(method, f"{server.uri}/api/{route}", json=content, auth=ADMIN, timeout=30)


def add_user(server: MlflowServer, name: str, password: str) -> None:
    assert ask(server, "2.0/mlflow/users/create", username=name, password=password).status_code == 200


def allow(server: MlflowServer, experiment_id: str, name: str, permission: str = "READ") -> None:
    """Give a user a permission, in the way of this version of MLflow."""
    said = {"username": name, "permission": permission}
    old, new = "2.0/mlflow/experiments/permissions/create", "3.0/mlflow/users/permissions/grant"
    answers = [
        ask(server, old, experiment_id=experiment_id, **said),
        ask(server, new, resource_type="experiment", resource_id=experiment_id, **said),
    ]
    assert 200 in [answer.status_code for answer in answers], [answer.text for answer in answers]
