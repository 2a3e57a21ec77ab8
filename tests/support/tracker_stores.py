"""What the tests of all trackers share: what is logged, and what a store shows of what was kept."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import polars as pl
import pytest

from trackperm.trackers.base import Tracker
from trackperm.trackers.publication import Publication, Table
from trackperm.trackers.references import TrackedRun

Columns = Mapping[str, Sequence[Any]]
Artifacts = Mapping[str, Columns | str]
"""What a run logs, by path: a table where it ends in ``.json``, else a file with columns or of that text.

What ends in ``/`` is a folder of Parquet parts, as Spark writes it; ``.gz`` compresses a CSV.
"""

PREDICTIONS: Columns = {
    "id": ["001", "1", "01", "x"],
    "prediction": ["a", "b", "a", "b"],
    "label": ["a", "a", "a", "b"],
}


def write_columns(columns: Columns, path: Path) -> None:
    """Write `columns` as Parquet, as CSV that may be compressed, or to a folder in two parts."""
    frame = pl.DataFrame(dict(columns))
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(frame.write_csv().encode()))
    elif path.suffix:
        frame.write_csv(path)
    else:
        path.mkdir()
        for number, part in enumerate((frame.head(1), frame.slice(1))):
            part.write_parquet(path / f"part-{number:05}-0b1c-c000.snappy.parquet")
        (path / "_SUCCESS").write_bytes(b"")


@dataclass(frozen=True)
class Kept:
    """The run of a comparison or leaderboard, read without the adapter."""

    locator: str
    name: str
    is_finished: bool
    metrics: Mapping[str, float]
    description: str
    tags: Mapping[str, str]
    tables: Mapping[str, Any]
    files: Mapping[str, bytes]


class TrackerStore(Protocol):
    """A place of one tracker, written to as its users write and read back without the adapter.

    `tags_candidates` says whether the candidate gets tags without being asked for.
    """

    tags_candidates: bool

    def tracker(self) -> Tracker:
        """Open the store as trackperm does."""

    @property
    def tracking_uri(self) -> str | None:
        """What ``--tracking-uri`` takes."""

    def open_run(self, container: str, name: str) -> AbstractContextManager[Any]:
        """Start a run as the tracker's users do, and finish it."""

    def address(self) -> tuple[str, str]:
        """Return the scheme and the address that other processes open it by, which may be empty."""

    def container(self, name: str) -> str:
        """Make an experiment or project, and return what it is called when something is logged there."""

    def run(self, container: str, name: str, artifacts: Artifacts | None = None) -> str:
        """Make a finished run and return its locator."""

    def by_name(self, container: str, name: str) -> str:
        """Return the locator that names a run by its name."""

    def chosen(self, locator: str, artifact: str) -> str:
        """Return what ``--artifact`` takes for what was logged as `artifact`."""

    def comparisons(self, container: str, kind: str = "comparison") -> list[Kept]:
        """List the comparisons in an experiment or project, or the leaderboards."""

    def snapshot(self, locator: str) -> Any:
        """Return everything that is kept of a run, but its tags as candidate."""

    def candidate_tags(self, locator: str) -> dict[str, str | float]:
        """Return the tags of a run as candidate."""


def smallest_png() -> bytes:
    """One black pixel; W&B opens the pictures that it is given."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


SERVERS = ["mlflow-sqlite", pytest.param("mlflow-http", marks=pytest.mark.extended), "wandb-online"]
"""Stores whose runs have names; those of W&B that are offline are folders."""

STORES = [*SERVERS, pytest.param("wandb-offline", marks=pytest.mark.extended)]
"""All; the default suite runs over one of each tracker."""

on_servers = pytest.mark.parametrize("store", SERVERS, indirect=True)


def publication(baseline: TrackedRun | None, candidate: TrackedRun | None, **changes: object) -> Publication:
    made = Publication(
        key="5eed" * 8,
        name="forest loses to logistic in accuracy, p 3.5e-12",
        metrics={"accuracy/p_value": 3.5e-12, "accuracy/difference": -0.25, "accuracy/n_examples": 4.0},
        tables={
            "results": Table(("statistic", "p_value", "bound"), [("accuracy", "3.5e-12", math.inf)]),
            "discordant": Table(("id", "better"), [("001", True), ("1", None)]),
        },
        files={"pmf.png": smallest_png(), "trackperm/statistic.yaml": b"name: accuracy\n"},
        tags={"trackperm.statistic": "accuracy", "trackperm.verdict": "▼ worse"},
        description="**worse**, p = 3.5e-12 ▼",
        baseline=baseline,
        candidate=candidate,
        candidate_tags={
            "sig.accuracy": "accuracy 0.5000 ▼ p=3.5e-12",
            "sig.accuracy.vs": "logistic",
            "sig.accuracy.score": 0.5,
        },
        baseline_tags={"sig.accuracy.baseline_of": "forest ▼", "sig.accuracy.score": 0.75},
    )
    return replace(made, **changes)
