"""A real PostgreSQL in a temporary folder, on a free port of the loopback interface."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.mlflow_server import free_port
from support.processes import run
from support.waiting import wait_until

_START_SECONDS = 60.0


def programs() -> Path | None:
    """Find the folder of PostgreSQL's programs, those of Debian's newest version if there are several."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    named = shutil.which("initdb")
    return found[-1].parent if found else Path(named).parent if named else None


class Postgres:
    """A server with one database, whose owner has a password. A context manager."""

    def __init__(self, binaries: Path, user: str, database: str, password: str) -> None:
        self._binaries = binaries
        self._user, self._database, self._password = user, database, password
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        # it refuses to run as root; folders of pytest are closed to others
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._as = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    def __enter__(self) -> Postgres:
        self.folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        try:
            if self._as:
                shutil.chown(self.folder, self._as["user"], self._as["group"])
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.communicate(timeout=30)
        shutil.rmtree(self.folder)

    def is_ready(self, check: Sequence[str]) -> bool:
        """Whether a health check succeeds, such as a call of ``pg_isready``."""
        env = {"PGPORT": str(self.port)}
        return run([self._binaries / check[0], *check[1:]], env=env, timeout=30).returncode == 0

    def _make(self) -> None:
        data, secret = self.folder / "data", self.folder / "password"
        secret.write_text(self._password)
        secret.chmod(0o644)
        made = ["initdb", "--auth=scram-sha-256", f"--username={self._user}", f"--pwfile={secret}"]
        self._call([*made, "--no-sync", "--encoding=UTF8", "--locale=C", f"--pgdata={data}"])
        options = [f"-p{self.port}", "-h127.0.0.1", f"-k{self.folder}", "-cfsync=off"]
        server = [str(self._binaries / "postgres"), f"-D{data}", *options]
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                # the shell waits for its input to end, which it does when this process dies in any way
                ["sh", "-c", '"$@" & read _; kill -QUIT $!; wait $!', "sh", *server],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **self._as,
            )
        wait_until(
            lambda: self.is_ready(["pg_isready", "--host=127.0.0.1", f"--username={self._user}"]),
            _START_SECONDS,
            lambda: (self.folder / "log").read_text(),
        )
        create = ["createdb", "--host=127.0.0.1", f"--port={self.port}", f"--username={self._user}"]
        self._call([*create, "--maintenance-db=postgres", self._database])

    def _call(self, command: Sequence[str]) -> None:
        result = subprocess.run(
            [str(self._binaries / command[0]), *command[1:]],
            env={"PATH": os.defpath, "PGPASSWORD": self._password},
            cwd=self.folder,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
            **self._as,
        )
        assert result.returncode == 0, result.stderr
