"""What a W&B backend keeps: runs, artifacts by collection, blobs by their md5."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

RunKey = tuple[str, str, str]
"""Entity, project and run id."""
CollectionKey = tuple[str, str, str]
"""Entity, project and name."""


def now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def storage_id(kind: str, name: object) -> str:
    """Ids have to be base64, for clients take them apart."""
    return base64.b64encode(f"{kind}:{name}".encode()).decode()


@dataclass
class RunRecord:
    """One run, with its JSON fields as the client sent them."""

    key: RunKey
    display_name: str
    description: str | None = None
    notes: str | None = None
    tags: list[str] = field(default_factory=list)
    config: str = "{}"
    summary: str = "{}"
    state: str = "running"
    group: str | None = None
    job_type: str | None = None
    host: str | None = None
    program: str | None = None
    commit: str | None = None
    repo: str | None = None
    created: str = field(default_factory=now)
    history: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    used: list[int] = field(default_factory=list)
    logged: list[int] = field(default_factory=list)
    exit_code: int | None = None

    @property
    def id(self) -> str:
        entity, project, name = self.key
        return storage_id("Run:v1", f"{name}:{project}:{entity}")

    def read_summary(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self.summary)
        return read

    def read_config(self) -> dict[str, Any]:
        """Values by name, without W&B's own."""
        read = json.loads(self.config)
        return {name: entry["value"] for name, entry in read.items() if name != "_wandb"}


@dataclass
class ArtifactRecord:
    """One version of an artifact; it counts once it is committed."""

    number: int
    collection: CollectionKey
    kind: str
    digest: str
    description: str | None
    metadata: str | None
    step: int | None
    run: RunKey | None
    wanted_aliases: list[str]
    state: str = "PENDING"
    version: int | None = None
    manifest: str | None = None
    created: str = field(default_factory=now)

    @property
    def id(self) -> str:
        return storage_id("Artifact", self.number)


@dataclass
class CollectionRecord:
    """Versions of one name."""

    key: CollectionKey
    number: int
    kind: str
    versions: list[int] = field(default_factory=list)
    created: str = field(default_factory=now)

    @property
    def id(self) -> str:
        return storage_id("ArtifactCollection", self.number)


class State:
    """Everything that is kept, and how names find it."""

    def __init__(self, entity: str) -> None:
        self.entity = entity
        self.runs: dict[RunKey, RunRecord] = {}
        self.artifacts: dict[int, ArtifactRecord] = {}
        self.collections: dict[CollectionKey, CollectionRecord] = {}
        self.aliases: dict[tuple[CollectionKey, str], int] = {}
        self.client_ids: dict[str, str] = {}
        self.blobs: dict[str, bytes] = {}
        self.alerts: list[Mapping[str, Any]] = []
        self.charts: dict[str, Mapping[str, Any]] = {}
        self.reports: dict[str, Mapping[str, Any]] = {}
        self.trace_calls: list[Mapping[str, Any]] = []

    def projects(self) -> set[tuple[str, str]]:
        """Entity and name of each: a project is made by what is first logged to it."""
        return {key[:2] for key in [*self.runs, *self.collections]}

    def run_of_id(self, run_id: str) -> RunRecord | None:
        return next((run for run in self.runs.values() if run.id == run_id), None)

    def artifact_of_id(self, artifact_id: str) -> ArtifactRecord | None:
        return next((found for found in self.artifacts.values() if found.id == artifact_id), None)

    def artifact_called(self, entity: str, project: str, name: str) -> ArtifactRecord | None:
        """Find ``name``, ``name:alias``, ``name:v3`` or ``name:digest`` among what is committed."""
        name, _, alias = name.partition(":")
        collection = self.collections.get((entity, project, name))
        if collection is None:
            return None
        number = self.aliases.get((collection.key, alias or "latest"))
        versions = [self.artifacts[i] for i in collection.versions]
        found = (
            next((a for a in versions if alias in (f"v{a.version}", a.digest)), None)
            if number is None
            else self.artifacts[number]
        )
        return found if found is not None and found.state == "COMMITTED" else None

    def entries(self, artifact: ArtifactRecord) -> dict[str, dict[str, Any]]:
        """Read the files that the manifest of `artifact` lists."""
        manifest = self.blobs.get(artifact.manifest or "")
        if manifest is None:
            return {}
        listed: dict[str, dict[str, Any]] = json.loads(manifest)["contents"]
        return listed

    def content(self, artifact: ArtifactRecord, path: str) -> bytes:
        """Read one file of `artifact`."""
        return self.blobs[blob_of(self.entries(artifact)[path]["digest"])]

    def runs_matching(self, entity: str, project: str, filters: Mapping[str, Any]) -> list[RunRecord]:
        return [
            run for run in self.runs.values() if run.key[:2] == (entity, project) and _matches(run, filters)
        ]


def blob_of(digest: str) -> str:
    """Name the blob whose md5 is `digest`, in base64."""
    return f"md5/{base64.b64decode(digest).hex()}"


def _matches(run: RunRecord, filters: Mapping[str, Any]) -> bool:
    for name, wanted in filters.items():
        if name == "$and":
            held = all(_matches(run, part) for part in wanted)
        elif name == "$or":
            held = any(_matches(run, part) for part in wanted)
        else:
            value = _filtered_value(run, name)
            held = (
                all(_holds(value, operator, operand) for operator, operand in wanted.items())
                if isinstance(wanted, dict)
                else (wanted in value if isinstance(value, list) else value == wanted)
            )
        if not held:
            return False
    return True


def _filtered_value(run: RunRecord, name: str) -> Any:
    if name.startswith("summary_metrics."):
        return run.read_summary().get(name.removeprefix("summary_metrics."))
    if name.startswith("config."):
        return run.read_config().get(name.removeprefix("config.").removesuffix(".value"))
    return {
        "tags": run.tags,
        "display_name": run.display_name,
        "displayName": run.display_name,
        "state": run.state,
        "jobType": run.job_type,
        "group": run.group,
        "name": run.key[2],
    }[name]


def _holds(value: Any, operator: str, operand: Any) -> bool:
    values = value if isinstance(value, list) else [value]
    return {
        "$in": lambda: any(each in operand for each in values),
        "$nin": lambda: all(each not in operand for each in values),
        "$ne": lambda: value != operand,
        "$gt": lambda: value is not None and value > operand,
        "$lt": lambda: value is not None and value < operand,
        "$exists": lambda: (value is not None) == operand,
        "$regex": lambda: isinstance(value, str) and re.search(operand, value) is not None,
    }[operator]()
