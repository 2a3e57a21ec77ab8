"""Errors of trackers: what an exception of MLflow's or W&B's library means, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trackperm.errors import MissingDependencyError, PermissionDeniedError, TrackerError

_INSTALL = {
    "boto3": "pip install 'trackperm[s3]'",
    "botocore": "pip install 'trackperm[s3]'",
    "google": "pip install 'trackperm[gcs]'",
    "azure": "pip install 'trackperm[azure]'",
}
_REQUIRED = re.compile(r"requires? the (\w+) library")  # wandb's words
_COMPLETES = "unfinished runs are marked as such; after the cause is removed, the next try completes them."


@dataclass(frozen=True)
class Advice:
    """Hints that differ between trackers.

    Attributes
    ----------
    credentials : str
        How to log in.
    elsewhere : str
        How to write to another experiment or project.
    container : str
        ``experiment`` or ``project``.
    silence : str
        What to check where a server does not answer.
    """

    credentials: str
    elsewhere: str
    container: str
    silence: str

    def error(
        self, where: str, doing: str, said: str, *, status: int | None, is_silent: bool, writes: bool
    ) -> TrackerError:
        """Return the error for a call that failed.

        `where` is the tracker and its address, `doing` completes "failed while ...", and `said` is the
        message of the library, without secrets. `status` is the HTTP status of the answer, `is_silent` means
        that the server did not answer, and hints are about writing if the call `writes`.
        """
        if status == 401:
            return TrackerError(
                f"{where} does not accept these credentials, while {doing}: {said}", hint=self.credentials
            )
        if status == 403:
            read = f"this {self.container} needs the permission to read it."
            return PermissionDeniedError(
                f"{where} denies permission, while {doing}: {said}",
                hint=f"`--no-log` writes nothing; {self.elsewhere}" if writes else read,
            )
        if is_silent:
            return TrackerError(f"{where} does not answer, while {doing}", hint=self.silence)
        return TrackerError(f"{where} failed while {doing}: {said}", hint=_COMPLETES if writes else None)


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and all that led to it, each once."""
    pending, seen = [error], set[int]()
    while pending:
        found = pending.pop(0)
        if isinstance(found, BaseException) and id(found) not in seen:
            seen.add(id(found))
            yield found
            # wandb keeps its transport's exception in `exc`
            pending += [getattr(found, "exc", None), found.__context__, found.__cause__]


def missing_library(causes: Iterable[BaseException], doing: str) -> MissingDependencyError | None:
    """Return the error that names a missing library of an object store, if that is among the causes.

    `doing` completes "... is needed for", such as ``reading run `3f2a```.
    """
    for cause in causes:
        name = cause.name if isinstance(cause, ModuleNotFoundError) else None
        said = _REQUIRED.search(str(cause))
        library = (name or (said[1] if said else "")).partition(".")[0]
        if library:
            called = "boto3" if library == "botocore" else library
            return MissingDependencyError(
                f"`{called}`, which is not installed, is needed for {doing}",
                hint=_INSTALL.get(library, f"pip install {library}"),
            )
    return None
