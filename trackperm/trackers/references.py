"""Where a run is, in words and as an adapter has found it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from trackperm.errors import InputError, InputTypeError
from trackperm.messages import without_credentials

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):(?!//|:)(.+)", re.DOTALL)
_SPARK = "spark"
_WANDB_PAGE = re.compile(r"https?://[^/]+(/wandb)?/[^/]+/[^/]+/runs/[^/]+(/.*)?")


@dataclass(frozen=True)
class RunReference:
    """Where a run is: ``mlflow:3f2a...``, ``wandb:entity/project/run``, a path or ``spark:prod.eval.run``.

    Attributes
    ----------
    scheme : str
        The tracker's name, or ``file`` for what is in none: files, URLs and tables of Spark.
    locator : str
        What stands behind the colon, in the tracker's own words; all of the text for ``file``.
    """

    scheme: str
    locator: str

    @classmethod
    def parse(cls, text: str) -> RunReference:
        """Split `text` at its scheme; text without one is a path, or the address of a run's page in W&B.

        Tables of Spark are in no tracker. ``models:/NAME/VERSION`` and ``models:/NAME@ALIAS`` are in MLflow.

        Raises
        ------
        InputError
            If nothing stands behind the scheme.
        """
        if _WANDB_PAGE.fullmatch(text):
            return cls("wandb", text)
        if text.startswith("models:/"):  # as MLflow writes versions of registered models
            return cls("mlflow", text)
        match = _SCHEME.fullmatch(text)
        if match is None or match[1] == _SPARK:
            if re.fullmatch(r"[a-z][a-z0-9+.-]+:", text):
                raise InputError(
                    f"`{text}` names a tracker but no run", hint=f"write `{text}<run id>`, for example."
                )
            return cls("file", text)
        return cls(match[1], match[2])

    @classmethod
    def of(cls, run: str | Path | TrackedRun) -> RunReference:
        """Return the reference of a run, however it is given: as text, as a path, or as it was found.

        Raises
        ------
        InputError
            If nothing stands behind the scheme of a text.
        InputTypeError
            If `run` is something else.
        """
        if isinstance(run, TrackedRun):
            return run.reference
        if isinstance(run, str):
            return cls.parse(run)
        if isinstance(run, Path):
            return cls("file", str(run))
        raise InputTypeError(
            f"a run is given as {type(run).__name__!r}; expected text, a path, or a run that a tracker found",
            hint="write `mlflow:RUN_ID`, for example, or take one of `tracker.runs(experiment)`.",
        )

    def __repr__(self) -> str:
        locator = without_credentials(self.locator)  # of an address
        return f"RunReference(scheme={self.scheme!r}, locator={locator!r})"

    def __str__(self) -> str:
        return self.locator if self.scheme == "file" else f"{self.scheme}:{self.locator}"


@dataclass(frozen=True)
class TrackedRun:
    """A run that an adapter has found.

    Attributes
    ----------
    reference : RunReference
        With the tracker's own unique id as locator, whatever the user wrote.
    name : str
        The name that people see.
    container : str
        Identifier of the experiment or project that holds the run.
    url : str or None
        A page that shows the run, where the tracker knows one.
    tracking_uri : str or None
        The store or server that holds it, as it was opened; None for the default one.
    details : object
        What the adapter learnt when it found the run, and need not ask for again; of no meaning to others.
    """

    reference: RunReference
    name: str
    container: str
    url: str | None = None
    tracking_uri: str | None = field(default=None, compare=False, repr=False)
    details: object = field(default=None, compare=False, repr=False)
