"""Runs logged in W&B, on a server or in a folder: find one, read its table, log a comparison back.

wandb is imported when a server is asked or something is written, not before: offline runs are read without.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from trackperm.errors import InputError, MissingDependencyError
from trackperm.tables import ExampleTable
from trackperm.trackers.base import Publication, Published, TrackedRun
from trackperm.trackers.wandb_offline import find_offline_run, is_offline_run, read_offline_run

if TYPE_CHECKING:
    from trackperm.trackers.wandb_store import Store

# Which artifacts each run's table was read from, by server and run: the lineage of a comparison, whose runs
# may have been read by two trackers.
_READ: dict[tuple[str | None, str], tuple[str, ...]] = {}


class WandbTracker:
    """Adapter of W&B, over HTTP or on folders of offline runs.

    Runs are named ``<entity>/<project>/<run id>``, ``<entity>/<project>/<run name>``, by the address of their
    page, or by the folder of an offline run; an artifact of theirs is ``<entity>/<project>/<name>:<alias>``.

    Parameters
    ----------
    base_url : str, optional
        Where the server's API is; by default as wandb decides, by ``WANDB_BASE_URL`` and its settings.
    alert : bool
        Whether a comparison that finds the candidate worse raises an alert, when it is first written.
    tag_runs : bool
        Whether the candidate, if it is a finished run, gets its tags as columns of the runs table. Else
        nothing is changed in the runs that are compared.
    """

    def __init__(self, base_url: str | None = None, *, alert: bool = False, tag_runs: bool = False) -> None:
        self._base_url = base_url
        self._alert = alert
        self._tag_runs = tag_runs

    def find(self, locator: str) -> TrackedRun:
        """Find the one run that `locator` names; comparisons are refused.

        Raises
        ------
        InputError
            If no run or several runs answer to it.
        TrackerError
            If W&B cannot be reached or refuses.
        MissingDependencyError
            If it is on a server and wandb is not installed.
        """
        if _is_offline(locator):
            return find_offline_run(locator)
        if locator.startswith((".", "/", "~")) or "offline-run-" in locator:
            raise InputError(
                f"`{locator}` is no folder of a W&B run", hint="it is called `offline-run-<time>-<id>`."
            )
        with _wandb():
            from trackperm.trackers.wandb_artifacts import find_artifact, is_artifact
            from trackperm.trackers.wandb_runs import find_run
        if is_artifact(locator):
            return find_artifact(self._store, locator)
        return find_run(self._store, locator)

    def read(self, run: TrackedRun, artifact: str | None = None) -> ExampleTable:
        """Read the per-example table that `run` logged.

        Raises
        ------
        InputError
            If there is no such artifact, or several and none was named.
        SourceError
            If the artifact cannot be read as a table, or W&B cut it.
        TrackerError
            If W&B cannot be reached or refuses.
        """
        if _is_offline(run.reference.locator):
            return read_offline_run(run, artifact)
        with _wandb():
            from trackperm.trackers.wandb_artifacts import read_run
        table, _READ[self._base_url, run.reference.locator] = read_run(self._store, run, artifact)
        return table

    def publish(self, publication: Publication, container: str | None = None) -> Published:
        """Write `publication` as a run of its own, or bring that run up to date.

        The comparison of an offline candidate is an offline run beside it, which ``wandb sync`` uploads.

        Parameters
        ----------
        publication : Publication
            What to write.
        container : str, optional
            ``entity/project`` of an existing project, or a folder, to write to instead of the candidate's.

        Raises
        ------
        InputError
            If neither says where to write, the project does not exist, or W&B could not keep a name or value;
            nothing has been written then.
        TrackerError
            If W&B failed; the next try completes what was begun.
        MissingDependencyError
            If wandb is not installed.
        """
        with _wandb():
            from trackperm.trackers.wandb_artifacts import is_artifact
            from trackperm.trackers.wandb_comparison import tag_candidate, write_offline, write_online
            from trackperm.trackers.wandb_runs import require_project
        candidate = publication.candidate
        if candidate is not None and candidate.reference.scheme != "wandb":
            candidate = None
        offline = None
        if candidate is not None and _is_offline(candidate.reference.locator):
            offline, candidate = candidate, None
        if container is not None and Path(container).expanduser().is_dir():
            beside = offline or candidate
            return write_offline(
                publication,
                Path(container).expanduser(),
                "" if beside is None else beside.container,
                alert=self._alert,
            )
        if container is not None:
            project = require_project(self._store, container)
        elif offline is not None:
            folder = Path(offline.reference.locator).parent
            return write_offline(publication, folder, offline.container, alert=self._alert)
        elif candidate is not None:
            project = candidate.container
        else:
            raise InputError(
                "the candidate is not in W&B, so it does not say where to log the comparison",
                hint="`--log-to wandb:ENTITY/PROJECT` names a project, `--log-to wandb:FOLDER` a folder.",
            )
        published = write_online(
            self._store, publication, project, used=self._used(publication), alert=self._alert
        )
        if self._tag_runs and candidate is not None and not is_artifact(candidate.reference.locator):
            tag_candidate(self._store, candidate, publication.candidate_tags)
        return published

    def _used(self, publication: Publication) -> list[str]:
        """Names of the artifacts that the runs' tables were read from, as far as they are on this server."""
        runs = (publication.baseline, publication.candidate)
        names = [_READ.get((self._base_url, run.reference.locator), ()) for run in runs if run is not None]
        return list(dict.fromkeys(name for used in names for name in used))

    @cached_property
    def _store(self) -> Store:
        with _wandb():
            from trackperm.trackers.wandb_store import Store
        return Store(self._base_url)


def _is_offline(locator: str) -> bool:
    try:
        return is_offline_run(locator)
    except OSError:  # a name that no file can have
        return False


@contextmanager
def _wandb() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingDependencyError(
            f"W&B's servers need a library that is not installed: {error}",
            hint="pip install 'trackperm[wandb]'",
        ) from error
