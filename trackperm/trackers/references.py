"""References to runs, as text and as an adapter has resolved them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path

from trackperm.errors import InputError, InputTypeError
from trackperm.messages import without_credentials

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):(?!//|:)(.+)", re.DOTALL)
_SPARK = "spark"
_LIKE_A_SCHEME = re.compile(r"\s*([a-z][a-z0-9+.-]*)\s*:+\s*(?!//)(.*?)\s*", re.DOTALL | re.IGNORECASE)
_OFFLINE_RUN = re.compile(r"wandb:(?:.*[/\\])?(?:offline-)?run-\d{8}_\d{6}-([^/\\]+)", re.DOTALL)
_WANDB_PAGE = re.compile(r"https?://[^/]+(/wandb)?/[^/]+/[^/]+/runs/[^/]+(/.*)?")


@dataclass(frozen=True)
class RunReference:
    """Reference to a run: ``mlflow:3f2a...``, ``wandb:entity/project/run``, ``spark:a.table`` or a path.

    Attributes
    ----------
    scheme : str
        Name of the tracker, or ``file`` for runs outside trackers: files, URLs and tables of Spark.
    locator : str
        Text after the colon, whose syntax the tracker defines; the whole text for ``file``.
    """

    scheme: str
    locator: str

    @classmethod
    def parse(cls, text: str) -> RunReference:
        """Split `text` at its scheme; text without a scheme is a path, or the address of a run's page in W&B.

        Tables of Spark are outside trackers. ``models:/NAME/VERSION`` and ``models:/NAME@ALIAS`` belong to
        MLflow.

        Raises
        ------
        InputError
            If nothing follows the scheme, or `text` is a scheme with capitals, spaces or two colons.
        """
        if _WANDB_PAGE.fullmatch(text):
            return cls("wandb", text)
        if text.startswith("models:/"):  # as MLflow writes versions of registered models
            return cls("mlflow", text)
        match = _SCHEME.fullmatch(text)
        if match is None or match[1] == _SPARK:
            if text == f"{_SPARK}:":
                raise InputError(
                    f"`{text}` names no table", hint="write `spark:CATALOG.SCHEMA.TABLE`, for example."
                )
            if re.fullmatch(r"[a-z][a-z0-9+.-]+:", text):
                raise InputError(
                    f"`{text}` names a tracker without a run", hint=f"write `{text}<run id>`, for example."
                )
            _require_no_misspelt_scheme(text)
            return cls("file", text)
        return cls(match[1], match[2])

    @classmethod
    def of(cls, run: str | Path | TrackedRun) -> RunReference:
        """Return the reference of a run that is given as text, as a path, or as an adapter found it.

        Raises
        ------
        InputError
            If nothing follows the scheme of a text.
        InputTypeError
            If `run` is of another type.
        """
        if isinstance(run, TrackedRun):
            return run.reference
        if isinstance(run, str):
            return cls.parse(run)
        if isinstance(run, Path):
            return cls("file", str(run))
        raise InputTypeError(
            f"{type(run).__name__!r} is not a run; expected text, a path, or a run that a tracker found",
            hint="write `mlflow:RUN_ID`, for example, or pass one of `tracker.runs(experiment)`.",
        )

    def __repr__(self) -> str:
        locator = without_credentials(self.locator)
        return f"RunReference(scheme={self.scheme!r}, locator={locator!r})"

    def __str__(self) -> str:
        return self.locator if self.scheme == "file" else f"{self.scheme}:{self.locator}"


@dataclass(frozen=True)
class TrackedRun:
    """A run that an adapter has found.

    Attributes
    ----------
    reference : RunReference
        Reference whose locator is the tracker's own unique id.
    name : str
        Name that people see.
    container : str
        Id of the experiment or project that holds the run.
    url : str or None
        Page of the run, where the tracker knows one.
    tracking_uri : str or None
        Store or server that holds the run; None for the default one.
    details : object
        The adapter's own record of the run, which saves a second request; no one else reads it.
    """

    reference: RunReference
    name: str
    container: str
    url: str | None = None
    tracking_uri: str | None = field(default=None, compare=False, repr=False)
    details: object = field(default=None, compare=False, repr=False)


def schemes() -> list[str]:
    """List the schemes of all installed adapters."""
    return sorted({point.name for point in entry_points(group="trackperm.trackers")})


def without_part(logged: str) -> str:
    """Return the reference of a run without the part of an artifact that was compared, as `::SYSTEM`."""
    return logged.partition("::")[0]


def synced_id(reference: str) -> str | None:
    """Return the id at W&B of the offline run in a folder, once it is synced; None for other references."""
    match = _OFFLINE_RUN.fullmatch(reference)
    return None if match is None else match[1]


def is_same_run(logged: str, run: str) -> bool:
    """Whether a logged reference names `run`: itself, or in W&B the folder of the offline run that it was.

    The runs are of one project, in which ids are unique.
    """
    if logged == run:
        return True
    synced = [synced_id(each) for each in (logged, run)]
    if synced == [None, None] or not logged.startswith("wandb:") or not run.startswith("wandb:"):
        return False
    ids = {id_ or each.rpartition("/")[2] for id_, each in zip(synced, (logged, run), strict=True)}
    return len(ids) == 1


def _require_no_misspelt_scheme(text: str) -> None:
    """Refuse `MLflow:RUN` or `mlflow : RUN`, which would be a file that does not exist."""
    match = _LIKE_A_SCHEME.fullmatch(text)
    if match is None or text.startswith(f"{_SPARK}:"):
        return
    scheme, locator = match[1].lower(), match[2] or "<run id>"
    if scheme in (*schemes(), _SPARK, "models"):
        raise InputError(
            f"`{text}` is not the reference of a run; expected `{scheme}:{locator}`",
            hint=f"write `./{text}` if it is the path of a file.",
        )
