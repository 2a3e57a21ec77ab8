"""W&B projects for tests: runs logged with the SDK as people log them, online to the stand-in or offline."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import wandb

from support.processes import descendants
from support.tracker_stores import Artifacts, Columns, Kept, write_columns
from support.waiting import wait_until
from support.wandb_standin import API_KEY, Standin, environment
from trackperm.tables.wandb.run_log import read_run_log
from trackperm.trackers.base import Tracker, open_tracker
from trackperm.trackers.publication import KINDS

_END_SECONDS = 30.0


@contextmanager
def logged_run(
    project: str,
    name: str | None = None,
    *,
    standin: Standin | None = None,
    folder: Path | None = None,
    run_id: str | None = None,
    **settings: Any,
) -> Iterator[Any]:
    """Start a run of entity ``team``, online where there is a stand-in and else offline, and finish it."""
    own = wandb.Settings(
        **({} if standin is None else {"base_url": standin.url}),
        api_key=os.environ.get("WANDB_API_KEY", API_KEY),
        x_disable_stats=True,
        x_save_requirements=False,  # which takes longer than all else
        silent=True,
        **settings,
    )
    run = wandb.init(
        entity="team",
        project=project,
        name=name,
        id=run_id,
        dir=folder or os.environ.get("WANDB_DIR"),  # which wandb reads once in a process
        mode="offline" if standin is None else "online",
        reinit="create_new",
        settings=own,
    )
    try:
        yield run
    finally:
        run.finish()
        if standin is None:
            _wait_for_log(Path(run.dir).parent)


def _wait_for_log(folder: Path) -> None:
    """Wait until wandb's other process has written what it was told, which `finish` does not."""
    (log,) = folder.glob("run-*.wandb")
    wait_until(lambda: read_run_log(log, str(log)).exit_code is not None, 30.0)


def log_columns(run: Any, content: Columns | str, artifact: str = "predictions.json") -> None:
    """Log `content` to an open run.

    Columns called ``.json`` are a table that is logged under the name before it; all else is a file of an
    artifact of type ``predictions``.
    """
    path = Path(artifact)
    if path.suffix == ".json" and not isinstance(content, str):
        rows = [list(row) for row in zip(*content.values(), strict=True)]
        run.log({path.stem: wandb.Table(columns=list(content), data=rows)})
        return
    with TemporaryDirectory() as folder:
        file = Path(folder, path.name)
        if isinstance(content, str):
            file.write_text(content)
        else:
            write_columns(content, file)
        made = wandb.Artifact(f"{path.stem}-{run.id}", type="predictions")
        if file.is_dir():
            made.add_dir(str(file), name=str(path))
        else:
            made.add_file(str(file), name=artifact)
        logged = run.log_artifact(made)
        if not run.offline:
            logged.wait()


def end_service() -> None:
    """End wandb's other process, so that the next use starts one anew, which reads the environment again.

    wandb 0.31 can wait for it for ever: where an answer to a request given up crosses the word to end.
    """
    deaf = threading.Timer(_END_SECONDS, _kill_services)
    deaf.start()
    with suppress(SystemExit):  # with the status of a service that was killed
        wandb.teardown()
    deaf.cancel()


def _kill_services() -> None:
    for child in descendants(os.getpid()):
        with suppress(ProcessLookupError, FileNotFoundError):
            if b"wandb-core" in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(child, signal.SIGKILL)


def sync(folder: Path, standin: Standin, home: Path) -> None:
    """Upload an offline run as people do."""
    subprocess.run(
        [sys.executable, "-m", "wandb", "sync", "--include-synced", str(folder)],
        env={**os.environ, **environment(home, standin)},
        check=True,
        capture_output=True,
        timeout=120,
    )


class WandbProjects:
    """The projects of entity ``team`` on a server."""

    tags_candidates = False

    def __init__(self, standin: Standin) -> None:
        self._standin = standin

    def tracker(self) -> Tracker:
        return open_tracker("wandb", self._standin.url)

    @property
    def tracking_uri(self) -> str:
        return self._standin.url

    def open_run(self, container: str, name: str) -> AbstractContextManager[Any]:
        return logged_run(container.removeprefix("team/"), name, standin=self._standin)

    def address(self) -> tuple[str, str]:
        return "wandb", self._standin.url

    def container(self, name: str) -> str:
        project = name.replace("/", "-")
        if ("team", project) not in {key[:2] for key in self._standin.state.runs}:
            with logged_run(project, "the first", standin=self._standin):
                pass
        return f"team/{project}"

    def run(self, container: str, name: str, artifacts: Artifacts | None = None) -> str:
        with self.open_run(container, name) as run:
            for path, content in (artifacts or {}).items():
                log_columns(run, content, path)
        return f"team/{container.removeprefix('team/')}/{run.id}"

    def by_name(self, container: str, name: str) -> str:
        return f"team/{container.removeprefix('team/')}/{name}"

    def chosen(self, locator: str, artifact: str) -> str:
        return _chosen(locator.rpartition("/")[2], artifact)

    def comparisons(self, container: str, kind: str = "comparison") -> list[Kept]:
        project = container.removeprefix("team/")
        return [
            kept(self._standin, "/".join(key))
            for key, run in self._standin.state.runs.items()
            if key[:2] == ("team", project) and run.job_type == kind
        ]

    def snapshot(self, locator: str) -> Any:
        run = copy.deepcopy(self._standin.run(locator))
        summary = run.read_summary()
        run.summary = json.dumps({name: summary[name] for name in sorted(summary) if name[:4] != "sig."})
        return run

    def candidate_tags(self, locator: str) -> dict[str, str | float]:
        summary = self._standin.run(locator).read_summary()
        return {name: value for name, value in summary.items() if name.startswith("sig.")}


class WandbFolders:
    """Offline runs, in a folder for each project."""

    tags_candidates = False

    def __init__(self, root: Path) -> None:
        self._root = root

    def tracker(self) -> Tracker:
        return open_tracker("wandb")

    @property
    def tracking_uri(self) -> None:
        return None

    def open_run(self, container: str, name: str) -> AbstractContextManager[Any]:
        return logged_run("digits", name, folder=Path(container).parent)

    def address(self) -> tuple[str, str]:
        return "wandb", ""

    def container(self, name: str) -> str:
        folder = self._root / name / "wandb"
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    def run(self, container: str, name: str, artifacts: Artifacts | None = None) -> str:
        with self.open_run(container, name) as run:
            for path, content in (artifacts or {}).items():
                log_columns(run, content, path)
        return str(Path(run.dir).parent)

    def by_name(self, container: str, name: str) -> str:
        raise NotImplementedError

    def chosen(self, locator: str, artifact: str) -> str:
        return _chosen(locator.rpartition("-")[2], artifact)

    def comparisons(self, container: str, kind: str = "comparison") -> list[Kept]:
        found = []
        for folder in Path(container).glob("offline-run-*-trackperm-*"):
            with Standin() as standin, TemporaryDirectory() as copies:
                copied = shutil.copytree(folder, Path(copies, folder.name))
                sync(copied, standin, Path(copies))
                ((key, run),) = standin.state.runs.items()
                if run.job_type == kind:
                    found.append(kept(standin, "/".join(key), str(folder)))
        return found

    def snapshot(self, locator: str) -> Any:
        return {
            str(path): hashlib.md5(path.read_bytes()).hexdigest()
            for path in sorted(Path(locator).rglob("*"))
            if path.is_file() and path.parent.name != "logs"
        }

    def candidate_tags(self, locator: str) -> dict[str, str | float]:
        return {}


def kept(standin: Standin, path: str, locator: str | None = None) -> Kept:
    """Read a comparison as the stand-in keeps it."""
    run, logged = standin.run(path), standin.logged(path)
    (result,) = [artifact for artifact in logged.values() if artifact.kind in KINDS]
    summary = run.read_summary()
    files = {name: standin.state.content(result, name) for name in standin.state.entries(result)}
    tables = {}
    for name, value in summary.items():
        if isinstance(value, dict) and value.get("_type") == "table-file":
            tables[name] = json.loads(run.files[value["path"]])
            assert json.loads(files.pop(f"{name}.json")) == tables[name]
    return Kept(
        locator=locator or path,
        name=run.display_name,
        is_finished=run.state == "finished" and "unfinished" not in run.tags,
        metrics={
            name: value
            for name, value in summary.items()
            if not name.startswith("_") and isinstance(value, (int, float))
        },
        description=run.notes or "",
        tags=run.read_config(),
        tables=tables,
        files=files,
    )


def _chosen(run_id: str, artifact: str) -> str:
    path = Path(artifact)
    return path.stem if path.suffix == ".json" else f"{path.stem}-{run_id}/{path}"
