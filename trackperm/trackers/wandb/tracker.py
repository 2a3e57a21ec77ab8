"""Adapter of W&B, on a server or in folders of offline runs.

wandb is imported when a server is contacted or something is written; offline runs are read without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trackperm.errors import InputError, MissingDependencyError
from trackperm.tables.table import ExampleTable
from trackperm.trackers.base import table_or_error
from trackperm.trackers.history import History
from trackperm.trackers.predictions import Predictions
from trackperm.trackers.publication import LoggedComparison, Publication, Published, nowhere_to_log
from trackperm.trackers.references import RunReference, TrackedRun
from trackperm.trackers.wandb.offline import (
    find_offline_run,
    is_offline_run,
    offline_comparison,
    offline_comparisons,
    offline_files,
    offline_runs,
    offline_tables,
    read_offline_run,
)

if TYPE_CHECKING:
    from trackperm.trackers.wandb.store import Store

_RUN_FOLDER = re.compile(r"(offline-)?run-\d{8}_\d{6}-")

# Artifacts from which each run's table was read, by server and run: the lineage of a comparison. They are
# shared by all adapters, as another one may have read the other run.
_READ: dict[tuple[str | None, str], tuple[str, ...]] = {}


class WandbTracker:
    """Adapter of W&B, over HTTP or on folders; see :class:`trackperm.trackers.base.Tracker`.

    A run is named ``<entity>/<project>/<run id>``, ``<entity>/<project>/<run name>``, by the address of its
    page, or by the folder of an offline run. An artifact is named ``<entity>/<project>/<name>:<alias>``.
    Whatever needs a server raises :class:`~trackperm.errors.MissingDependencyError` if wandb is not
    installed. Without `base_url`, wandb decides, by ``WANDB_BASE_URL`` and its settings.
    """

    scheme: ClassVar[str] = "wandb"
    options: ClassVar[frozenset[str]] = frozenset({"alert", "tag_runs"})

    def __init__(self, base_url: str | None = None) -> None:
        self._base_url = base_url

    @classmethod
    def of_run(cls, run: Any, tracking_uri: str | None = None) -> WandbTracker:
        """Connect to the server of a run that :func:`wandb.init` returned."""
        return cls(tracking_uri or getattr(getattr(run, "settings", None), "base_url", None))

    def find(self, locator: str) -> TrackedRun:
        """Find the run or artifact that `locator` names; comparisons are refused."""
        if _is_offline(locator):
            return find_offline_run(locator)
        if locator.startswith((".", "/", "~")) or "offline-run-" in locator:
            exists = Path(locator).expanduser().exists()
            what = "is not the folder of a W&B run" if exists else "does not exist"
            raise InputError(
                f"`{locator}` {what}; expected a folder called `offline-run-<time>-<id>`",
                hint="W&B writes it to the folder `wandb` where the run was started.",
            )
        with _wandb():
            from trackperm.trackers.wandb.artifacts import find_artifact, is_artifact
            from trackperm.trackers.wandb.runs import find_run
        if is_artifact(locator):
            return find_artifact(self._store, locator)
        return find_run(self._store, locator)

    def read(self, run: TrackedRun, artifact: str | None = None) -> ExampleTable:
        """Read the per-example table that `run` logged; tables that W&B truncated are refused."""
        if _is_offline(run.reference.locator):
            return read_offline_run(run, artifact)
        with _wandb():
            from trackperm.trackers.wandb.artifacts import read_run
        table, _READ[self._base_url, run.reference.locator] = read_run(self._store, run, artifact)
        return table

    def read_all(
        self, runs: Sequence[TrackedRun], artifact: str | None = None
    ) -> Iterator[ExampleTable | InputError]:
        """Read the tables of many runs, one after the other."""
        return (table_or_error(self, run, artifact) for run in runs)

    def log_predictions(self, run: Any, predictions: Predictions) -> RunReference:
        """Log `predictions` as an artifact of an open run, online or offline.

        `run` is what :func:`wandb.init` returned; other objects raise
        :class:`~trackperm.errors.InputTypeError`, and disabled runs are refused.
        """
        with _wandb():
            from trackperm.trackers.wandb.predictions import require_open_run, write_predictions
        return write_predictions(self._store, require_open_run(run), predictions)

    def publish(
        self,
        publication: Publication,
        container: str | None = None,
        *,
        alert: bool = False,
        tag_runs: bool = False,
    ) -> Published:
        """Write `publication` as a run of its own, or update that run.

        The comparison of an offline candidate is an offline run beside it, which ``wandb sync`` uploads; its
        alert is raised then. `container` is ``entity/project`` of an existing project, or a folder that
        begins with ``.``, ``/`` or ``~``, is called ``wandb`` or contains runs. Without `tag_runs` the
        compared runs are not changed; with it their tags become columns of the runs table.
        """
        with _wandb():
            from trackperm.trackers.wandb.tags import require_taggable, tag_run
            from trackperm.trackers.wandb.write import write_offline, write_online
        tags = publication.run_tags(self.scheme) if tag_runs else []
        if tags:
            require_taggable(self._store, [run for run, _ in tags])
        home = publication.home
        if home is not None and home.reference.scheme != self.scheme:
            home = None
        place = self._place(container, home, publication.kind)
        if isinstance(place, Path):
            project = "" if home is None else home.container
            published = write_offline(publication, place, project, alert=alert)
        else:
            used = self._used(publication)
            published = write_online(self._store, publication, place, used=used, alert=alert)
        for run, values in tags:
            tag_run(self._store, run, values)
        return published

    def install_chart(self, entity: str) -> str:
        """Store trackperm's chart of the null distribution with a user or team, and return its name.

        Comparisons use it where the environment variable ``TRACKPERM_WANDB_CHART`` holds that name. Raise
        InputError if `entity` is not the name of a user or team.
        """
        with _wandb():
            from trackperm.trackers.wandb.charts import install_chart
        return install_chart(self._store, entity)

    def _place(self, container: str | None, home: TrackedRun | None, kind: str) -> Path | str:
        """Return the folder, or the project ``entity/project``, to write to."""
        if container is not None:
            if _is_folder(container):
                return Path(container).expanduser()
            from trackperm.trackers.wandb.runs import require_project

            return require_project(self._store, container)
        if home is None:
            raise nowhere_to_log(
                kind,
                "W&B",
                "`--log-to wandb:ENTITY/PROJECT` names a project, `--log-to wandb:./FOLDER` a folder.",
            )
        if _is_offline(home.reference.locator):
            return Path(home.reference.locator).parent
        return home.container

    def status(self) -> str:
        """Return the server and the user, if an API key is configured; otherwise nothing is contacted."""
        return self._store.status()

    def comparison(self, locator: str) -> LoggedComparison:
        """Find the comparison or leaderboard at ``<entity>/<project>/<run id>``, or in a folder."""
        if _is_offline(locator):
            return offline_comparison(locator)
        with _wandb():
            from trackperm.trackers.wandb.read_back import logged_comparison
        return logged_comparison(self._store, locator)

    def comparisons(self, near: TrackedRun | str, test_set: str | None = None) -> list[LoggedComparison]:
        """List the comparisons and leaderboards in a project or in a folder of offline runs."""
        if not isinstance(near, str) and near.reference.scheme != "wandb":
            raise InputError(f"run `{near.reference}` is not in W&B", hint="name a project.")
        locator = near if isinstance(near, str) else near.reference.locator
        if not isinstance(near, str) and _is_offline(locator):
            return offline_comparisons(Path(locator).parent, test_set)
        if isinstance(near, str) and _is_folder(near):
            return offline_comparisons(Path(near).expanduser(), test_set)
        with _wandb():
            from trackperm.trackers.wandb.read_back import logged_comparisons
            from trackperm.trackers.wandb.runs import require_project
        project = require_project(self._store, near) if isinstance(near, str) else near.container
        return logged_comparisons(self._store, project, test_set)

    def files(self, run: TrackedRun) -> dict[str, bytes]:
        """Read the files of a comparison under ``trackperm/``, by path."""
        if _is_offline(run.reference.locator):
            return offline_files(run)
        with _wandb():
            from trackperm.trackers.wandb.read_back import logged_files
        return logged_files(self._store, run)

    def shown_tables(self, run: TrackedRun) -> dict[str, bytes]:
        """Read the tables that the page of a comparison shows, by name, as JSON."""
        if _is_offline(run.reference.locator):
            return offline_tables(run)
        with _wandb():
            from trackperm.trackers.wandb.read_back import logged_tables
        return logged_tables(self._store, run)

    def runs(self, container: str) -> list[TrackedRun]:
        """List the finished runs of ``<entity>/<project>``, or the offline runs in a folder."""
        if _is_folder(container):
            return offline_runs(container)
        return [record.run for record in self.history().finished(container)]

    def history(self) -> History:
        """Return the history of the server: past runs and artifacts."""
        with _wandb():
            from trackperm.trackers.wandb.history import WandbHistory
        return WandbHistory(self._store)

    def _used(self, publication: Publication) -> list[str]:
        """Return the names of the artifacts from which the runs' tables were read on this server."""
        names = [_READ.get((self._base_url, run.reference.locator), ()) for run in publication.sources]
        return list(dict.fromkeys(name for used in names for name in used))

    @cached_property
    def _store(self) -> Store:
        with _wandb():
            from trackperm.trackers.wandb.store import Store
        return Store(self._base_url)


def _is_folder(container: str) -> bool:
    """Whether `container` is a folder and not ``entity/project``.

    wandb may create a folder called like the entity.
    """
    folder = Path(container).expanduser()
    return folder.is_dir() and (
        container.startswith((".", "/", "~"))
        or folder.name == "wandb"
        or any(_RUN_FOLDER.match(inside.name) for inside in folder.iterdir())
    )


def _is_offline(locator: str) -> bool:
    try:
        return is_offline_run(locator)
    except OSError:  # the locator is too long to be a path
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
