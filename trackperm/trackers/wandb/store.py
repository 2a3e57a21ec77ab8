"""One W&B server, and calls to it with bounded waiting and without private data.

wandb hides a server that does not answer behind messages of its own, waits without limit for uploads, and
sends a new run's command line, host and Git state to the server. Every call goes through :meth:`Store.calls`
and every run is started by :meth:`Store.start`, which change these habits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import requests
import wandb

from trackperm.errors import InputError, NotConfiguredError, TrackerError, TrackpermError
from trackperm.messages import without_credentials, without_secrets
from trackperm.storage import is_full, no_room_for_temporary_files
from trackperm.trackers.failures import Advice, causes, missing_library
from trackperm.trackers.references import RunReference, TrackedRun

_UNANSWERED = re.compile(
    r"did not respond in time|connection refused|no such host|timed? ?out|EOF\b|connection reset",
    re.IGNORECASE,
)
_UNKNOWN_USER = re.compile(r"log(ged)? ?in|api[ _]key|authentic|credential", re.IGNORECASE)
_SILENCE = (requests.ConnectionError, requests.Timeout, TimeoutError, ConnectionError)
_FORBIDDEN = re.compile(r"permission denied|forbidden|\b403\b", re.IGNORECASE)
_IN_USE = "is in use"
_NOT_FOUND = ("Could not find run", "Could not find project")
_NO_ARTIFACT = re.compile(r"artifact (membership )?'.*' not found in", re.IGNORECASE)
_NO_PROJECT = re.compile(r"project '.*' not found (?:under|in) entity")
UPLOAD_SECONDS = 300  # for an artifact, which is small
SETTLING_SECONDS = (0.0, 0.1, 0.4, 1.5, 3.0, 5.0)
"""Pauses between attempts to read back what was written, which a server may take a moment to show."""

# Users wait for a server that is down, for a slow start of a run, and for an upload, at most this long.
_REACH_SECONDS, _START_SECONDS, _FINISH_SECONDS = 15, 60, 300

_ADVICE = Advice(
    credentials="`wandb login` stores an API key; `WANDB_API_KEY` gives one to a single command.",
    elsewhere="`--log-to wandb:ENTITY/PROJECT` writes to a project that you may edit.",
    container="project",
    silence="is it up, and is `WANDB_BASE_URL` or `--tracking-uri` right? `WANDB_HTTP_TIMEOUT` makes it wait"
    " longer; where a run was being written, the next try completes it.",
)


def _netrc_files() -> list[Path]:
    """Return the files in which `wandb login` and requests look for an API key."""
    if named := os.environ.get("NETRC"):
        return [Path(named)]
    return [Path("~/.netrc").expanduser(), Path("~/_netrc").expanduser()]


class Store:
    """W&B server at `base_url`, or as wandb decides, by ``WANDB_BASE_URL`` and its settings."""

    def __init__(self, base_url: str | None = None) -> None:
        self._base_url = base_url or None

    @cached_property
    def api(self) -> wandb.Api:
        """Connection to the server, which caches what it reads; :meth:`fresh_api` reads the newest state."""
        self._reach()
        return self.fresh_api()

    def fresh_api(self) -> wandb.Api:
        """Return a new connection, as an :class:`wandb.Api` caches what it has read."""
        return wandb.Api(overrides={} if self._base_url is None else {"base_url": self._base_url})

    def _reach(self) -> None:
        """Check, with a short timeout, that a server answers; wandb before 0.27 would try for a year."""
        # wandb has its own settings for certificates and proxies
        with suppress(requests.exceptions.SSLError, requests.exceptions.ProxyError):
            requests.get(f"{self.base_url}/healthz", timeout=_REACH_SECONDS, allow_redirects=False)

    @property
    def base_url(self) -> str:
        """Address of the API, without credentials."""
        url = self._base_url or os.environ.get("WANDB_BASE_URL") or wandb.setup().settings.base_url
        return without_credentials(url).rstrip("/")

    def status(self) -> str:
        """Return the server and the user whose API key it accepts.

        Raise NotConfiguredError, without a request, if no API key is configured.
        """
        # The address is asked for last, as wandb starts a process of its own to tell it.
        has_key = bool(os.environ.get("WANDB_API_KEY")) or (
            any(file.exists() for file in _netrc_files())
            and requests.utils.get_netrc_auth(self.base_url) is not None
        )
        if not has_key:
            raise NotConfiguredError("no API key of W&B is configured", hint=_ADVICE.credentials)
        with self.calls("looking up the user") as api:
            return f"wandb {wandb.__version__} at `{self.base_url}` answers to `{api.viewer.username}`"

    @contextmanager
    def calls(self, doing: str, *, writes: bool = False) -> Iterator[wandb.Api]:
        """Lend the connection, with errors that name the operation: `doing` completes "W&B failed while ...".

        Hints are about writing if the operation `writes`. Raise TrackerError if wandb raised an exception,
        and StorageError if the disk has no room for downloaded files.
        """
        try:
            yield self.api
        except TrackpermError:
            raise
        except Exception as error:  # wandb raises whatever its transports raised
            if is_full(error) and not writes:
                raise no_room_for_temporary_files(error) from error
            raise self._failure(error, doing, writes=writes) from error

    def run_or_none(self, path: str) -> Any:
        """Read the run at ``entity/project/id`` as it is now; None if it does not exist."""
        try:
            return self.fresh_api().run(path)
        except (wandb.Error, ValueError) as error:
            if str(error).startswith(_NOT_FOUND):
                return None
            raise

    def artifact_or_none(self, name: str) -> Any:
        """Read the artifact ``entity/project/name:version`` as it is now; None if its project has none.

        Raise InputError if there is no such project, which W&B also says of those that one may not read, and
        any other refusal, which :meth:`wandb.Api.artifact_exists` takes for a no.
        """
        try:
            return self.fresh_api().artifact(name)
        except (wandb.Error, ValueError) as error:
            if _NO_ARTIFACT.match(str(error)):
                return None
            if _NO_PROJECT.match(str(error)):
                raise InputError(
                    f"W&B at `{self.base_url}` has no artifact `{name}`: its project does not exist, or this"
                    " API key may not read it",
                    hint="write `ENTITY/PROJECT/NAME:ALIAS`, as its page shows it.",
                ) from error
            raise

    def tracked(self, run: Any) -> TrackedRun:
        """Convert a run of :class:`wandb.Api` to a `TrackedRun`."""
        path = f"{run.entity}/{run.project}"
        return TrackedRun(
            reference=RunReference("wandb", f"{path}/{run.id}"),
            name=run.name or run.id,
            container=path,
            url=run.url,
            tracking_uri=self._base_url,
        )

    def start(self, **options: Any) -> Any:
        """Start an online run beside the run that may be active in this process."""
        settings = {} if self._base_url is None else {"base_url": self._base_url}
        return start_run("online", settings, **options)

    def _failure(self, error: Exception, doing: str, *, writes: bool) -> TrackpermError:
        found = list(causes(error))
        if (lacking := missing_library(found, doing)) is not None:
            return lacking
        said = without_secrets(str(error)).strip().split("\n")[0][:400]
        where = f"W&B at `{self.base_url}`"
        is_silent = any(isinstance(cause, _SILENCE) or _UNANSWERED.search(str(cause)) for cause in found)
        status = next(filter(None, map(_http_status, found)), None)
        if not is_silent and _UNKNOWN_USER.search(said):
            status = 401
        elif status != 401 and _FORBIDDEN.search(said):
            status = 403
        if said.endswith(_IN_USE) and status not in (401, 403) and not is_silent:
            return TrackerError(
                f"{where} cannot go on in this process while {doing}: an earlier try could not be started",
                hint="try again in a new process, or after `wandb.teardown()`, which ends all runs of it.",
            )
        return _ADVICE.error(where, doing, said, status=status, is_silent=is_silent, writes=writes)


def newest_version(artifacts: Iterable[Any]) -> Any:
    """Return the artifact with the highest version; None if the list is empty."""
    return max(artifacts, key=lambda artifact: int(artifact.version.removeprefix("v")), default=None)


def downloaded(artifact: Any, path: str) -> bytes:
    """Download a file of an artifact, past wandb's cache."""
    with TemporaryDirectory(prefix="trackperm-") as folder:
        return Path(artifact.get_entry(path).download(root=folder, skip_cache=True)).read_bytes()


def start_run(mode: str, settings: Mapping[str, Any], **options: Any) -> Any:
    """Start a run that sends no data about this process, beside the run that may be active in it.

    It is written to a server (`mode` ``online``) or to a folder (``offline``), with `settings` of wandb;
    `options` are arguments of :func:`wandb.init`.
    """
    # Without `create_new`, `wandb.init` returns the run that is being trained.
    return wandb.init(
        mode=mode,  # type: ignore[arg-type]
        reinit="create_new",
        settings=wandb.Settings(**{**_private(), **_patient(), **settings}),
        **options,
    )


@contextmanager
def ended(run: Any) -> Iterator[Any]:
    """Finish a started run when the block ends, as failed if it raises."""
    try:
        yield run
    except BaseException:
        with suppress(Exception):  # the first failure is the one to report
            run.finish(exit_code=1)
        raise
    run.finish(exit_code=0)


def _private() -> dict[str, Any]:
    """Return settings that keep command line, host, user, Git and packages from the server."""
    return {
        "console": "off",
        "disable_code": True,
        "disable_git": True,
        "disable_job_creation": True,
        "docker": None,
        "email": "",
        "host": "trackperm",
        "program": "trackperm",
        "save_code": False,
        "silent": True,
        "username": "",
        "x_disable_machine_info": True,
        "x_disable_meta": True,
        "x_disable_stats": True,
        "x_executable": "",
        "x_save_requirements": False,
    }


def _patient() -> dict[str, Any]:
    """Return limits on waiting that the user has not set and this version of wandb supports."""
    wanted = {
        "init_timeout": _START_SECONDS,
        "finish_timeout": _FINISH_SECONDS,
        "finish_timeout_raises": True,
    }
    known = wandb.Settings.model_fields
    return {
        name: value
        for name, value in wanted.items()
        if name in known and f"WANDB_{name.upper()}" not in os.environ
    }


def _http_status(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None) or getattr(response, "http_status", None)
    return int(status) if status else None
