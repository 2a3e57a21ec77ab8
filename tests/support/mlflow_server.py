"""A real `mlflow server` in a process group of its own: started, killed, restarted, never leaked."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

_START_SECONDS = 120.0


def free_port() -> int:
    """Find a port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


BASIC_AUTH = """\
[mlflow]
default_permission = NO_PERMISSIONS
database_uri = sqlite:///{folder}/users.db
admin_username = admin
admin_password = {password}
authorization_function = mlflow.server.auth:authenticate_request_basic_auth
"""
"""What `MLFLOW_AUTH_CONFIG_PATH` names, where nobody but the admin may do anything."""


class MlflowServer:
    """One server on the loopback interface, with its database and artifacts in `folder`.

    A context manager. After :meth:`kill`, :meth:`start` brings it back on the same port and store.

    Parameters
    ----------
    folder : Path
        Of the server.
    env : mapping, optional
        Added to its environment.
    app : str, optional
        ``--app-name``.
    workers : int
        Processes that answer requests.
    gunicorn : bool
        Whether they are gunicorn's, instead of uvicorn's.
    prefix : str
        ``--static-prefix``.
    arguments : sequence of str
        Further ones of ``mlflow server``.
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
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> MlflowServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        assert self._process is None
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
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"{self.uri}/health", timeout=2) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                pass
            if time.monotonic() > deadline:
                raise TimeoutError((self.folder / "server.log").read_text()[-4000:])
            time.sleep(0.1)
