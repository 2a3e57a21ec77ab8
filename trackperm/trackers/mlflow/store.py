"""One MLflow store, which is never created, and calls to it with bounded waiting.

MLflow creates a database wherever its URI points, waits four minutes for a server that is down, prints
progress bars, and raises whatever its transport raised. Every call goes through :meth:`Store.calls`, which
changes these habits for the length of the call.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import mlflow
import requests
from mlflow import MlflowClient
from mlflow.entities import Experiment, Run
from mlflow.exceptions import MlflowException

from trackperm.errors import InputError, NotConfiguredError, TrackpermError
from trackperm.messages import did_you_mean, without_credentials, without_secrets
from trackperm.storage import is_full, no_room_for_temporary_files, temporary_files
from trackperm.trackers.environment import environment
from trackperm.trackers.failures import Advice, causes, missing_library
from trackperm.trackers.references import RunReference, TrackedRun

_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
FAILED_STATUSES = {"FAILED": "failed", "KILLED": "was killed"}
"""Statuses of runs that did not end well, and how notes say so."""

_STATUS = {"UNAUTHENTICATED": 401, "CUSTOMER_UNAUTHORIZED": 401, "PERMISSION_DENIED": 403}
_ENVIRONMENT = threading.RLock()
_PAGE = 1000
# Exceptions for no answer, a late answer, and an answer that breaks off.
_UNANSWERED = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)

# MLflow reads these variables at each call; a value that the user has set stays.
_QUIET = {"MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false", "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true"}
# MLflow would sleep for as long as a server requests, and ignore signals in the meantime.
_UNTOLD = {"MLFLOW_HTTP_RESPECT_RETRY_AFTER_HEADER": "false"}
_PATIENT = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "60",
    **_UNTOLD,
}
_BRIEF = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "5", **_UNTOLD}
# A request that is not idempotent is sent once, as a lost answer must not create a second run.
_ONCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}

# MLflow logs the traceback of a database's error there before it raises the error.
_DATABASE_LOG = logging.getLogger("mlflow.store.db.utils")
# What SQLAlchemy says before the error of a query that wrote what was pending.
_AUTOFLUSH = "(raised as a result of Query-invoked autoflush"

_ADVICE = Advice(
    credentials="set `MLFLOW_TRACKING_USERNAME` and `MLFLOW_TRACKING_PASSWORD`, or `MLFLOW_TRACKING_TOKEN`.",
    elsewhere="`--log-to mlflow:EXPERIMENT` writes to an experiment that you may edit, and nowhere else.",
    container="experiment",
    silence="is the server running, and is `--tracking-uri` right? `MLFLOW_HTTP_REQUEST_MAX_RETRIES` and"
    " `MLFLOW_HTTP_REQUEST_TIMEOUT` make it wait longer.",
)


class Store:
    """MLflow tracking store that exists; by default the one that MLflow or ``MLFLOW_TRACKING_URI`` names.

    Raise InputError if no URI is configured or the store does not exist, and TrackerError if a database does
    not answer.
    """

    def __init__(self, tracking_uri: str | None = None) -> None:
        if not tracking_uri and not mlflow.is_tracking_uri_set():  # type: ignore[no-untyped-call]
            raise NotConfiguredError(
                "no MLflow store is configured, and trackperm does not create one",
                hint="name it with `--tracking-uri`, such as `--tracking-uri http://127.0.0.1:5000`, "
                "or set `MLFLOW_TRACKING_URI`.",
            )
        self.uri = tracking_uri or mlflow.get_tracking_uri()
        self.label = without_credentials(self.uri)
        self._remote = urlsplit(self.uri).scheme in ("http", "https")
        self._reached = False
        self._is_shared = False
        with self._translated("opening it", writes=False):
            self._require_existing()
            self._client = MlflowClient(self.uri)

    @contextmanager
    def calls(self, doing: str, *, writes: bool = False, once: bool = False) -> Iterator[MlflowClient]:
        """Lend the client, with bounded waiting and errors that name the operation.

        `doing` completes "MLflow failed while ...", with the run named. Hints are about writing if the
        operation `writes`, and requests are not repeated if they may be sent `once` only.
        """
        with self._translated(doing, writes=writes):
            if self._is_shared and not once:
                yield self._client
                return
            self._reach()
            with _environment(_QUIET, _PATIENT, forced=_ONCE if once else {}):
                yield self._client

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Let threads call at the same time, by changing MLflow's settings once for all calls.

        Calls of other stores wait in the meantime, as MLflow's settings are those of the process.
        """
        with self._translated("connecting", writes=False):
            self._reach()
        with _environment(_QUIET, _PATIENT):
            self._is_shared = True
            try:
                yield
            finally:
                self._is_shared = False

    def run(self, run: TrackedRun) -> Run:
        """Return MLflow's record of `run`; if this adapter found the run, the object has the record."""
        if isinstance(run.details, Run):
            return run.details
        with self.calls(f"looking up run `{run.reference}`") as client:
            return client.get_run(run.reference.locator)

    def search(
        self,
        doing: str,
        experiment_ids: Sequence[str],
        wanted: str = "",
        order: str = "DESC",
        *,
        per_page: int = _PAGE,
    ) -> Iterator[Run]:
        """Yield the active runs of experiments that a filter in MLflow's language selects, a page at a time.

        Runs are in the order of their start times, ``ASC`` or ``DESC``. `doing` completes "MLflow failed
        while ...".
        """
        token: str | None = None
        while True:
            with self.calls(doing) as client:
                page = client.search_runs(
                    list(experiment_ids),
                    filter_string=wanted,
                    max_results=per_page,
                    order_by=[f"attributes.start_time {order}"],
                    page_token=token,
                )
            yield from page
            token = page.token
            if not token:
                return

    def close_after_failure(self, run_id: str) -> None:
        """Mark `run_id` as failed, if the store still answers."""
        # the failure that led here is the one to report
        with suppress(Exception), _environment(_QUIET, forced={**_BRIEF, **_ONCE}):
            self._client.set_terminated(run_id, status="FAILED")

    def tracked(self, run: Run) -> TrackedRun:
        """Convert a run of MLflow's to a `TrackedRun`."""
        run_id, experiment_id = run.info.run_id, run.info.experiment_id
        return TrackedRun(
            reference=RunReference("mlflow", run_id),
            name=run.info.run_name or run_id,
            container=experiment_id,
            url=f"{self.label.rstrip('/')}/#/experiments/{experiment_id}/runs/{run_id}"
            if self._remote
            else None,
            tracking_uri=self.uri,
            details=run,
        )

    def experiment(self, name: str) -> Experiment | None:
        """Find the active experiment called `name`."""
        found = self._experiment(name)
        return found if found is not None and found.lifecycle_stage == "active" else None

    def experiment_id(self, name: str) -> str:
        """Return the id of the active experiment called `name`; raise InputError if there is none."""
        experiment = self._experiment(name)
        if experiment is not None and experiment.lifecycle_stage == "active":
            return str(experiment.experiment_id)
        if experiment is not None:
            raise InputError(f"experiment `{name}` is deleted", hint=restoring_experiment(experiment))
        with self.calls("listing experiments") as client:
            names = [exp.name for exp in client.search_experiments(max_results=_PAGE)]
        raise InputError(
            f"MLflow at `{self.label}` has no experiment called `{name}`",
            hint=did_you_mean(name, names).strip() or f"`mlflow experiments create -n '{name}'` makes one.",
        )

    def _experiment(self, name: str) -> Experiment | None:
        """Find the experiment called `name`, which may be deleted."""
        with self.calls(f"looking up experiment `{name}`") as client:
            return client.get_experiment_by_name(name)

    def _reach(self) -> None:
        """Check, with short timeouts, that the server answers."""
        if self._remote and not self._reached:
            with _environment(_QUIET, _BRIEF):
                self._client.search_experiments(max_results=1)
            self._reached = True

    def _require_existing(self) -> None:
        parts = urlsplit(self.uri)
        dialect = parts.scheme.split("+")[0]
        if dialect in _DATABASES:
            self._require_database(dialect)
        elif parts.scheme in ("", "file") or len(parts.scheme) == 1:
            folder = Path(unquote(parts.path)) if parts.scheme == "file" else Path(self.uri)
            if not any(folder.glob("*/meta.yaml")):
                raise self._nothing_there(folder)

    def _require_database(self, dialect: str) -> None:
        from mlflow.store.db.utils import create_sqlalchemy_engine
        from sqlalchemy import inspect, make_url

        if dialect == "sqlite":
            file = Path((make_url(self.uri).database or ":memory:").removeprefix("file:"))
            if not file.is_file():
                raise self._nothing_there(file)
        engine = create_sqlalchemy_engine(self.uri)  # type: ignore[no-untyped-call]
        try:
            if not inspect(engine).has_table("experiments"):
                raise InputError(
                    f"the database `{self.label}` holds no MLflow store, and trackperm does not create one",
                    hint="check `--tracking-uri` and `MLFLOW_TRACKING_URI`.",
                )
        finally:
            engine.dispose()

    def _nothing_there(self, path: Path) -> InputError:
        if self.uri == str(path) and path.is_file():
            return InputError(
                f"`{self.label}` is a file, and no address of an MLflow store",
                hint=f"if it is a database of SQLite, write `sqlite:///{self.uri}`.",
            )
        return InputError(
            f"`{self.label}` is not an MLflow store, and trackperm does not create one (looked for"
            f" `{path.absolute()}`)",
            hint="check `--tracking-uri` and `MLFLOW_TRACKING_URI`; a relative path starts at the "
            "current directory.",
        )

    @contextmanager
    def _translated(self, doing: str, *, writes: bool) -> Iterator[None]:
        """Convert exceptions of a call into MLflow to a `TrackerError`, or name the missing library."""
        try:
            with _without_tracebacks():
                yield
        except TrackpermError:
            raise
        except Exception as error:  # object stores raise errors of their own libraries
            raise self._failure(error, doing, writes=writes) from error

    def _failure(self, error: Exception, doing: str, *, writes: bool) -> TrackpermError:
        found = list(causes(error))
        if not writes and (full := next(filter(is_full, found), None)) is not None:
            return no_room_for_temporary_files(full)
        if (lacking := missing_library(found, doing)) is not None:
            return lacking
        said, origin = self._said(error), self._said(found[-1])
        if origin not in said:
            said = f"{said} ({origin})"
        is_silent = any(isinstance(cause, _UNANSWERED) for cause in found)
        status = None if is_silent else next(filter(None, map(_http_status, found)), None)
        where = f"MLflow at `{self.label}`"
        return _ADVICE.error(where, doing, said, status=status, is_silent=is_silent, writes=writes)

    def _said(self, error: BaseException) -> str:
        said = without_secrets(str(error))
        host = urlsplit(self.uri).netloc  # includes the start of a password that contains `/`, `?` or `#`
        said = said if host in self.label else said.replace(host, "…")
        lines = [line for line in said.strip().split("\n") if not line.startswith(_AUTOFLUSH)]
        return lines[0][:400] if lines else ""


def require_artifact_folder(run: Run, lack: str, otherwise: str = "") -> None:
    """Refuse a run whose artifacts are in a local folder that does not exist, as in a store that was moved.

    MLflow stores absolute paths of such folders and lists nothing where they are missing. `lack` says what
    was not found, and `otherwise` is the next step for a run that has no artifacts.
    """
    address = run.info.artifact_uri
    uri = urlsplit(address)
    if uri.scheme not in ("", "file") or uri.netloc:
        return
    folder = Path(url2pathname(uri.path if uri.scheme else address))
    if not folder.exists():
        raise InputError(
            f"{lack}: its artifact folder `{folder}` does not exist",
            hint="if the store was moved or is on another machine, put the folder there, or a link to it."
            + (f" If nothing was logged: {otherwise}" if otherwise else ""),
        )


def downloaded(client: MlflowClient, run_id: str, path: str) -> bytes:
    """Download an artifact of a run."""
    with TemporaryDirectory(prefix="trackperm-") as folder:
        return Path(client.download_artifacts(run_id, path, folder)).read_bytes()


@contextmanager
def temporary_file(name: str, data: bytes) -> Iterator[str]:
    """Write a temporary file of this name, which MLflow is to log; raise StorageError if its disk is full."""
    with temporary_files():
        made = TemporaryDirectory(prefix="trackperm-")
    with made as folder:
        file = Path(folder, name)
        with temporary_files():
            file.write_bytes(data)
        yield str(file)


def restoring(client: MlflowClient, run: Run) -> str:
    """Return a hint that restores a deleted run, or its experiment if that is deleted as well."""
    experiment = client.get_experiment(run.info.experiment_id)
    if experiment.lifecycle_stage != "active":
        return restoring_experiment(experiment)
    return f"`mlflow runs restore --run-id {run.info.run_id}` restores it."


def restoring_experiment(experiment: Experiment) -> str:
    """Return a hint that restores a deleted experiment."""
    command = f"mlflow experiments restore --experiment-id {experiment.experiment_id}"
    return f"`{command}` restores the experiment."


def moment(milliseconds: int | None) -> datetime | None:
    """Convert a time of MLflow's, in milliseconds, to a datetime in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, tz=timezone.utc) if milliseconds else None


@contextmanager
def _without_tracebacks() -> Iterator[None]:
    """Keep MLflow from logging the errors of databases in this thread, for they are raised, too."""
    here = threading.get_ident()

    def is_kept(record: logging.LogRecord) -> bool:
        return record.exc_info is None or record.thread != here

    _DATABASE_LOG.addFilter(is_kept)
    try:
        yield
    finally:
        _DATABASE_LOG.removeFilter(is_kept)


@contextmanager
def _environment(*defaults: Mapping[str, str], forced: Mapping[str, str] | None = None) -> Iterator[None]:
    """Set MLflow's variables for the length of a call, where the user has not."""
    with _ENVIRONMENT:
        unset = {name: value for each in defaults for name, value in each.items() if name not in os.environ}
        with environment(**{**unset, **(forced or {})}):
            yield


def _http_status(error: BaseException) -> int | None:
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return int(error.response.status_code)
    if isinstance(error, MlflowException):
        return _STATUS.get(error.error_code)
    return None
