"""``trackperm doctor``: versions, extras, trackers and rights, one line each."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated, Literal

import typer

from trackperm.cli.output import OutputFiles, Renderers, TextOrJson, as_json, emit, require_formats
from trackperm.cli.progress import working
from trackperm.errors import MissingDependencyError, NotConfiguredError, TrackpermError
from trackperm.messages import printable, without_secrets
from trackperm.version import __version__

State = Literal["ok", "absent", "fails"]
"""``absent`` is an extra that is not installed, or a tracker that is not configured."""

EXTRAS = (
    *("plots", "mlflow", "wandb", "wandb-reports", "inspect", "trec", "spark", "s3", "gcs", "azure"),
    *("huggingface", "lightning"),
)
"""Extras for users; others are sets of these, or for developers."""

_LIBRARIES = ("numpy", "scipy", "polars", "duckdb", "narwhals", "pydantic", "typer")


@dataclass(frozen=True)
class Finding:
    """Result of one check.

    Attributes
    ----------
    subject : str
        Object of the check, such as ``extra mlflow``.
    state : {'ok', 'absent', 'fails'}
        Result of the check.
    text : str
        What was found, in one line; for a failure also the next step.
    exit_code : int
        Exit code of a failure.
    """

    subject: str
    state: State
    text: str
    exit_code: int = 0

    def line(self) -> str:
        """Format the finding as a line."""
        return f"{self.state:7} {self.subject:20} {self.text}"


def doctor(
    tracking_uri: Annotated[
        str | None,
        typer.Option(
            metavar="URI", help="MLflow's server or store. [default: as MLflow decides]", show_default=False
        ),
    ] = None,
    format_: TextOrJson = "text",
    output: OutputFiles = None,
) -> None:
    """Check the installation: versions, extras, configured trackers, and folders that are written.

    No other server than the configured trackers is contacted, and nothing is logged. Exit code 2 if a folder
    cannot be written or a library is broken, 3 if a configured tracker fails.
    """
    require_formats(output, ("text", "json"))
    with working("checking the installation"):
        findings = [*_versions(), *_extras(), *_trackers(tracking_uri), *_folders()]
    renderers: Renderers = {
        "text": lambda: "\n".join(finding.line() for finding in findings),
        "json": lambda: as_json([asdict(finding) for finding in findings]),
    }
    emit(renderers, format_, output)
    exit_code = max(finding.exit_code for finding in findings)
    if exit_code:
        raise typer.Exit(exit_code)


def _versions() -> Iterator[Finding]:
    where = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    yield Finding("trackperm", "ok", f"{__version__}, {where}, {Path(__file__).parents[1]}")
    yield Finding("libraries", "ok", ", ".join(f"{name} {version(name)}" for name in _LIBRARIES))


def _extras() -> Iterator[Finding]:
    for extra in EXTRAS:
        versions = {name: _version(name) for name in _requirements(extra)}
        lacking = [name for name, found in versions.items() if found is None]
        if lacking:
            text = f"{', '.join(lacking)} not installed; pip install 'trackperm[{extra}]'"
            yield Finding(f"extra {extra}", "absent", text)
        else:
            found = ", ".join(f"{name} {number}" for name, number in versions.items())
            yield Finding(f"extra {extra}", "ok", found or "needs nothing on this Python")


def _requirements(extra: str) -> list[str]:
    """Return the names of the packages that an extra adds, on this version of Python."""
    names = []
    for text in requires("trackperm") or ():
        requirement, _, marker = text.partition(";")
        limit = re.search(r"python_version < '3\.(\d+)'", marker)
        is_needed = limit is None or sys.version_info < (3, int(limit[1]))
        if is_needed and re.search(rf"extra == ['\"]{extra}['\"]", marker):
            names.append(re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0])
    return names


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _trackers(tracking_uri: str | None) -> Iterator[Finding]:
    from trackperm.trackers.references import schemes

    for scheme in schemes():
        yield _tracker(scheme, tracking_uri if scheme == "mlflow" else None)


def _tracker(scheme: str, tracking_uri: str | None) -> Finding:
    """Open a tracker, and ask it for an answer if its adapter can."""
    from trackperm.trackers.base import open_tracker

    subject = f"tracker {scheme}"
    try:
        status = getattr(open_tracker(scheme, tracking_uri), "status", None)
        return Finding(subject, "ok", "the adapter is installed" if status is None else _line(status()))
    except (NotConfiguredError, MissingDependencyError) as error:
        return Finding(subject, "absent", _line(f"{error.message}\n{error.hint or ''}"))
    except TrackpermError as error:
        return Finding(subject, "fails", _line(f"{error.message}\n{error.hint or ''}"), exit_code=3)
    except Exception as error:  # an adapter, or its library, may raise anything
        return Finding(subject, "fails", _line(f"{type(error).__name__}: {error}"), exit_code=3)


def _folders() -> Iterator[Finding]:
    from trackperm.automation.queue.database import default_folder

    folders = {
        "this folder": Path.cwd(),
        "temporary files": Path(tempfile.gettempdir()),
        "state of watchers": default_folder(),
    }
    for subject, folder in folders.items():
        # A folder that does not exist is created in the nearest one that does.
        nearest = next((each for each in (folder, *folder.parents) if each.exists()), folder)
        if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
            yield Finding(subject, "ok", _line(f"`{folder}` can be written"))
        else:
            text = f"`{folder}` cannot be written; change its rights, or name another folder"
            yield Finding(subject, "fails", _line(text), exit_code=2)


def _line(text: str) -> str:
    """Put a message and its hint on one line, without secrets."""
    return printable(without_secrets("; ".join(part.strip() for part in text.split("\n") if part.strip())))
