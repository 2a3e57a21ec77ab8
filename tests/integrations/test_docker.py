"""The image and the composition: their commands and health checks, run natively on a real PostgreSQL."""

from __future__ import annotations

import fnmatch
import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from support.hooked_runs import HookedStore
from support.mlflow_server import free_port
from support.placed import placed
from support.postgres import Postgres, programs
from support.processes import ROOT, descendants, run, script
from support.waiting import wait_until
from support.watchers import Program

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.tracker

FOLDER = ROOT / "integrations" / "docker"
PASSWORD = "s3cret of/the:data@base"  # would end a URI that it was put into
SECONDS = 120.0


def instructions(text: str) -> list[tuple[str, str]]:
    """List the instructions of a Dockerfile, without comments and with lines joined."""
    joined = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def interpolated(value: Any, env: Mapping[str, str]) -> Any:
    """Put variables for their names, as compose does; one that has to be set and is not is an error."""
    if isinstance(value, dict):
        return {key: interpolated(each, env) for key, each in value.items()}
    if isinstance(value, list):
        return [interpolated(each, env) for each in value]
    if not isinstance(value, str):
        return value

    def variable(match: re.Match[str]) -> str:
        name, operator, rest = match.groups()
        if operator == ":?" and not env.get(name):
            raise KeyError(f"{name}: {rest}")
        return env.get(name) or (rest if operator == ":-" else "")

    return re.sub(r"\$\{(\w+)(:[-?])?([^}]*)\}", variable, value)


DOCKERFILE = instructions((FOLDER / "Dockerfile").read_text(encoding="utf-8"))
COMPOSE = (FOLDER / "compose.yaml").read_text(encoding="utf-8")
OURS = ["mlflow", "watcher", "receiver"]


def services(**env: str) -> dict[str, Any]:
    found: dict[str, Any] = interpolated(yaml.safe_load(COMPOSE), env)["services"]
    return found


def last(instruction: str) -> str:
    return [rest for name, rest in DOCKERFILE if name == instruction][-1]


def image_env() -> dict[str, str]:
    """Give the environment that the image sets, but for its places."""
    env = dict(pair.split("=", 1) for pair in shlex.split(last("ENV")))
    assert env.pop("PATH").startswith("/opt/trackperm/bin:")
    assert env.pop("HOME") == last("WORKDIR")
    return env


def native(command: Sequence[str], places: Mapping[str, str | Path]) -> list[str]:
    """Give a command of a container, with the programs of this environment and other places."""
    program, *arguments = command
    programs = {"trackperm": script("trackperm"), "mlflow": script("mlflow"), "python": sys.executable}
    named = {each: place for each, place in places.items() if each in "\n".join(arguments)}
    return [programs[program], *placed("\n".join(arguments), named).split("\n")]


class Container:
    """A command that goes on until it is ended, in an empty folder, with an environment of its own."""

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        self.folder = folder
        folder.mkdir()
        home, temp = folder / "home", folder / "tmp"
        home.mkdir()
        temp.mkdir()
        dirs = {"HOME": str(home), "TMPDIR": str(temp), "PATH": os.environ["PATH"]}
        self._log = (folder / "log").open("wb")
        self.process = subprocess.Popen(
            # the shell waits for its input to end, which it does when this process dies in any way
            ["sh", "-c", '("$@"; kill -9 0) & read _; kill -9 0', "sh", *command],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            cwd=home,
            env={**dirs, **env},
            start_new_session=True,
        )

    def __enter__(self) -> Container:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        self._log.close()

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def wait_until_healthy(self, check: Sequence[str]) -> None:
        def is_healthy() -> bool:
            assert self.process.poll() is None, self.log
            return run(check, timeout=30).returncode == 0

        wait_until(is_healthy, SECONDS, lambda: self.log)


@pytest.fixture
def postgres_programs() -> Path:
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    if importlib.util.find_spec("psycopg2") is None:
        pytest.skip("psycopg2 is not installed")
    return found


@pytest.mark.slow
def test_mlflow_on_postgresql_is_watched(postgres_programs: Path, tmp_path: Path):
    composed = services(POSTGRES_PASSWORD=PASSWORD)
    made = composed["postgres"]["environment"]
    with Postgres(
        postgres_programs, made["POSTGRES_USER"], made["POSTGRES_DB"], made["POSTGRES_PASSWORD"]
    ) as database:
        assert database.is_ready(composed["postgres"]["healthcheck"]["test"][1:])
        service = composed["mlflow"]
        port = str(free_port())
        artifacts = tmp_path / "artifacts"
        artifacts.mkdir()
        places = {
            "0.0.0.0": "127.0.0.1",
            "5000": port,
            "postgres:5432": f"127.0.0.1:{database.port}",
            "/var/lib/mlflow": artifacts,
        }
        command = native(service["command"], places)
        check = native(service["healthcheck"]["test"][1:], {"5000": port})
        with Container(command, tmp_path / "mlflow", {**image_env(), **service["environment"]}) as server:
            server.wait_until_healthy(check)
            for process in [server.process.pid, *descendants(server.process.pid)]:
                assert PASSWORD.encode() not in Path(f"/proc/{process}/cmdline").read_bytes()
            url = f"http://127.0.0.1:{port}"
            for host, status in ((f"mlflow:{port}", 200), (f"localhost:{port}", 200), ("evil.example", 403)):
                answer = requests.get(f"{url}/trackperm/compare", headers={"Host": host}, timeout=30)
                assert answer.status_code == status, host
            watch_runs(composed["watcher"], url, tmp_path)
            assert not list((server.folder / "home").iterdir()), "the container's files are read-only"
            assert PASSWORD not in server.log
            assert "Traceback" not in server.log


def watch_runs(service: Mapping[str, Any], url: str, folder: Path) -> None:
    """Let the image's own command compare a run that finishes, once, though it is started twice."""
    runs = HookedStore(url, folder)
    runs.baseline()
    state, port = folder / "state", str(free_port())
    command = native(
        json.loads(last("CMD")),
        {
            "/etc/trackperm/trackperm.yaml": FOLDER / "trackperm.yaml",
            "/var/lib/trackperm/state": state,
            "8643": port,
        },
    )
    check = native(json.loads(last("HEALTHCHECK").partition(" CMD ")[2]), {"8643": port})
    env = {name: placed(value, {"http://mlflow:5000": url}) for name, value in service["environment"].items()}
    assert run(check).returncode != 0, "nobody is healthy who does not run"
    with Program(command[1:], folder / "watcher.log", env) as watcher:
        watcher.wait_until_started()
        candidate = runs.finished(rate=0.5)
        compared = watcher.wait_for("compared")
        assert compared["candidate"] == f"mlflow:{candidate}"
        assert run(check).returncode == 0
        assert watcher.stop() == 0
        watcher.start()
        watcher.wait_until_started()
        later = runs.finished()
        wait_until(lambda: len(watcher.events("compared")) >= 2, SECONDS, lambda: watcher.text)
        assert watcher.stop() == 0
    assert runs.compared() == sorted([f"mlflow:{candidate}", f"mlflow:{later}"])
    assert "Traceback" not in watcher.text


@pytest.mark.slow
def test_receiver(tmp_path: Path):
    composed = services(POSTGRES_PASSWORD=PASSWORD, TRACKPERM_MLFLOW_WEBHOOK_SECRET="x" * 32)
    service, port = composed["receiver"], str(free_port())
    places = {
        "0.0.0.0": "127.0.0.1",
        "8642": port,
        "/etc/trackperm/trackperm.yaml": FOLDER / "trackperm.yaml",
        "/var/lib/trackperm/state": tmp_path / "state",
    }
    command = native(service["command"], places)
    check = native(service["healthcheck"]["test"][1:], {"8642": port})
    with Program(command[1:], tmp_path / "log", service["environment"]) as receiver:
        receiver.wait_until_started()
        assert run(check).returncode == 0
        assert receiver.stop() == 0
    assert run(check).returncode != 0


def test_the_composition_is_closed():
    composed = services(POSTGRES_PASSWORD=PASSWORD)
    for name, service in composed.items():
        assert service.get("restart") == "unless-stopped", name
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), name
        for needed, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}, name
            assert "healthcheck" in composed[needed], needed
    for name in OURS:
        assert composed[name]["read_only"] is True
        assert composed[name]["cap_drop"] == ["ALL"]
        assert composed[name]["security_opt"] == ["no-new-privileges:true"]
        assert all(PASSWORD not in argument for argument in composed[name].get("command", []))
    assert "healthcheck" not in composed["watcher"], "it has that of the image, whose command it runs"
    assert "command" not in composed["watcher"]
    named = {each.partition(":")[0] for service in composed.values() for each in service["volumes"]}
    assert {each for each in named if not each.startswith(".")} == set(yaml.safe_load(COMPOSE)["volumes"])
    assert all((FOLDER / each).exists() for each in named if each.startswith("."))
    with pytest.raises(KeyError, match=r"set it in \.env"):
        services()


def test_the_image_has_no_root_and_no_secret():
    assert last("USER") == "trackperm"
    assert DOCKERFILE.index(("USER", "trackperm")) < DOCKERFILE.index(("CMD", last("CMD")))
    assert "useradd" in last("RUN")
    assert "/var/lib/trackperm" in last("RUN")
    for name, rest in DOCKERFILE:
        assert not (name in ("ARG", "ENV") and re.search("pass|secret|token|api_?key", rest, re.IGNORECASE))
        assert name != "COPY" or "." not in rest.split(), "what is copied is named"


def test_what_is_copied_is_there_and_enough_to_build():
    """What the ignore file lets through has all that Dockerfile and build configuration name."""
    ignored = (FOLDER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignored[0] == "*"
    allowed = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = {
        path
        for name, rest in DOCKERFILE
        if name == "COPY" and "--from" not in rest
        for path in rest.split()[:-1]
    }
    assert copied == allowed
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    build = project["tool"]["hatch"]
    wanted = [project["project"]["readme"], *project["project"]["license-files"], "pyproject.toml"]
    wanted += [*build["build"]["targets"]["wheel"]["packages"], build["version"]["path"]]
    for path in wanted:
        assert any(fnmatch.fnmatch(path, each) or path.startswith(f"{each}/") for each in copied), path
    extras = dict(rest.split("=") for name, rest in DOCKERFILE if name == "ARG")["EXTRAS"].split(",")
    assert set(extras) <= set(project["project"]["optional-dependencies"])
