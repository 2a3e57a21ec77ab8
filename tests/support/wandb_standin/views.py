"""What can be read: the kept records as GraphQL objects, under the names that the SDK asks for."""
# ruff: noqa: A006, N803 (arguments are named as the SDK names them)

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from support.wandb_standin.execution import Node, connection, node
from support.wandb_standin.state import (
    ArtifactRecord,
    CollectionRecord,
    RunRecord,
    State,
    blob_of,
    now,
    storage_id,
)

FEATURES = (
    "LARGE_FILENAMES",
    "ARTIFACT_TAGS",
    "CLIENT_IDS",
    "PROJECT_ARTIFACT_COLLECTION_MEMBERSHIP",
    "ARTIFACT_COLLECTION_MEMBERSHIP_FILES",
    "TOTAL_COUNT_IN_FILE_CONNECTION",
    "USE_ARTIFACT_WITH_ENTITY_AND_PROJECT_INFORMATION",
    "MARK_RUN_FILES_UPLOADED",
    "ARTIFACT_DIGEST_ALGORITHM",
)


class Views:
    """Views of `state`, with links that begin with `base`."""

    def __init__(self, state: State, base: str) -> None:
        self._state = state
        self.base = base

    def query(self) -> Node:
        state = self._state
        return node(
            "Query",
            viewer=lambda: self._user(),
            serverInfo=lambda: node(
                "ServerInfo",
                cliVersionInfo={"min_cli_version": "0.13.0", "max_cli_version": "0.99.0"},
                latestLocalVersionInfo=None,
                features=[node("ServerFeature", name=name, isEnabled=True) for name in FEATURES],
            ),
            project=lambda name, entityName=None: self._project(entityName or state.entity, name),
            model=lambda name, entityName=None: self._project(entityName or state.entity, name),
            models=lambda entityName, first=None, after=None: connection(
                [self._project(*key) for key in sorted(state.projects()) if key[0] == entityName],
                first,
                after,
            ),
            entity=lambda name: self._entity(name),
            organization=None,
            artifact=lambda id: self._artifact_or_none(state.artifact_of_id(id)),
            clientIDMapping=lambda clientID: (
                node("ClientIDMapping", serverID=state.client_ids[clientID])
                if clientID in state.client_ids
                else None
            ),
        )

    def run(self, run: RunRecord) -> Node:
        entity, project, name = run.key
        history = [json.loads(row) for row in run.history]
        return node(
            "Run",
            id=run.id,
            internalId=run.id,
            projectId=_number(f"{entity}/{project}"),
            name=name,
            displayName=run.display_name,
            description=run.description,
            notes=run.notes,
            tags=run.tags,
            config=run.config,
            summaryMetrics=run.summary,
            state=run.state,
            group=run.group,
            jobType=run.job_type,
            commit=run.commit,
            readOnly=False,
            createdAt=run.created,
            heartbeatAt=now(),
            systemMetrics="{}",
            sweepName=None,
            user=lambda: self._user(),
            project=lambda: self._project(entity, project),
            stopped=False,
            historyLineCount=len(history),
            logLineCount=len(run.log),
            eventsLineCount=len(run.events),
            historyTail=json.dumps(run.history[-1:]),
            eventsTail=json.dumps(run.events[-1:]),
            historyKeys=_history_keys(history),
            wandbConfig=lambda keys=None: json.dumps(
                {"t": json.loads(run.config).get("_wandb", {}).get("value", {}).get("t")}
            ),
            files=lambda first=None, after=None, names=None, pattern=None, **_: connection(
                self._run_files(run, names, pattern), first, after
            ),
            fileCount=len(run.files),
            history=lambda minStep=0, maxStep=None, samples=500: [
                json.dumps(row) for row in _between(history, minStep, maxStep)
            ][:samples],
            sampledHistory=lambda specs: [_sampled(history, json.loads(spec)) for spec in specs],
            parquetHistory=lambda **_: node("ParquetHistory", parquetUrls=[], liveData=history),
            outputArtifacts=lambda first=None, after=None, **_: connection(
                self._committed(run.logged), first, after
            ),
            inputArtifacts=lambda first=None, after=None, **_: connection(
                self._committed(run.used), first, after
            ),
            defaultColorIndex=0,
        )

    def artifact(self, artifact: ArtifactRecord) -> Node:
        state = self._state
        entries = state.entries(artifact)
        entity, project, _ = artifact.collection
        return node(
            "Artifact",
            id=artifact.id,
            artifactSequence=lambda: self.collection(state.collections[artifact.collection]),
            versionIndex=artifact.version,
            artifactType=lambda: self._artifact_type(entity, project, artifact.kind),
            description=artifact.description,
            metadata=artifact.metadata,
            ttlDurationSeconds=-2,
            ttlIsInherited=True,
            tags=[],
            historyStep=artifact.step,
            state=artifact.state,
            size=sum(entry.get("size", 0) for entry in entries.values()),
            digest=artifact.digest,
            digestAlgorithm="MANIFEST_MD5",
            commitHash=f"c{artifact.number}",
            fileCount=len(entries),
            createdAt=artifact.created,
            updatedAt=None,
            aliases=lambda: self._aliases(artifact),
            currentManifest=lambda: self.manifest(artifact) if artifact.manifest else None,
            files=lambda first=None, after=None, names=None, **_: connection(
                self._artifact_files(artifact, names), first, after
            ),
            filesByManifestEntries=lambda entries=None, **_: connection(
                self._artifact_files(artifact, [entry["name"] for entry in entries or []])
            ),
            createdBy=lambda: self.run(state.runs[artifact.run]) if artifact.run else None,
            usedBy=lambda first=None, after=None, **_: connection(
                [self.run(run) for run in state.runs.values() if artifact.number in run.used], first, after
            ),
        )

    def manifest(self, artifact: ArtifactRecord) -> Node:
        return node(
            "ArtifactManifest",
            id=storage_id("ArtifactManifest", artifact.number),
            file=node(
                "File",
                id=storage_id("ManifestFile", artifact.number),
                name="wandb_manifest.json",
                directUrl=self.blob_link(artifact.manifest or ""),
            ),
        )

    def collection(self, collection: CollectionRecord) -> Node:
        entity, project, name = collection.key
        versions = [self._state.artifacts[number] for number in reversed(collection.versions)]
        return node(
            "ArtifactSequence",
            id=collection.id,
            name=name,
            description=None,
            createdAt=collection.created,
            updatedAt=None,
            state="READY",
            project=lambda: self._project(entity, project),
            latestArtifact=lambda: self.artifact(versions[0]) if versions else None,
            defaultArtifactType=lambda: self._artifact_type(entity, project, collection.kind),
            type=lambda: self._artifact_type(entity, project, collection.kind),
            tags=lambda **_: connection([]),
            artifacts=lambda first=None, after=None, **_: connection(
                [self.artifact(version) for version in versions], first, after
            ),
            artifactMemberships=lambda first=None, after=None, **_: connection(
                [self._membership(version, collection) for version in versions], first, after
            ),
            artifactMembership=lambda aliasName: self._membership_or_none(
                entity, project, f"{name}:{aliasName}"
            ),
        )

    def report(self, report: Mapping[str, Any]) -> Node:
        return node(
            "View",
            **{name: report[name] for name in ("id", "type", "name", "displayName", "description", "spec")},
            project=lambda: self._project(report["entityName"], report["projectName"]),
            user=lambda: self._user(),
            createdAt=now(),
            updatedAt=now(),
        )

    def blob_link(self, blob: str) -> str:
        return f"{self.base}/blobs/{quote(blob)}"

    def _committed(self, numbers: Iterable[int]) -> list[Node]:
        found = [self._state.artifacts[number] for number in numbers]
        return [self.artifact(artifact) for artifact in found if artifact.state == "COMMITTED"]

    def _entity(self, name: str) -> Node:
        owner = node("Entity", id=storage_id("Entity", f"{name}-org"), name=f"{name}-org")
        return node(
            "Entity",
            id=storage_id("Entity", name),
            name=name,
            organization=node("Organization", name=name, orgEntity=owner, coreWeaveOrganizationId=None),
            user=None,
            defaultAccess=None,
        )

    def _user(self) -> Node:
        entity = self._state.entity
        return node(
            "User",
            id=storage_id("User", 1),
            name="Test",
            username=entity,
            entity=entity,
            email="test@example.com",
            photoUrl=None,
            flags="{}",
            admin=False,
            deletedAt=None,
            teams=lambda **_: connection([self._entity(entity)]),
            apiKeys=lambda **_: connection([]),
        )

    def _project(self, entity: str, name: str) -> Node | None:
        state = self._state
        if (entity, name) not in state.projects():
            return None

        def one_run(name: str) -> Node | None:
            found = state.runs.get((entity, project_name, name))
            return None if found is None else self.run(found)

        def matching(filters: str | None) -> list[RunRecord]:
            return state.runs_matching(entity, project_name, json.loads(filters or "{}"))

        project_name = name
        return node(
            "Project",
            id=storage_id("Project", f"{entity}/{name}"),
            internalId=storage_id("ProjectInternalId", _number(f"{entity}/{name}")),
            name=name,
            entity=self._entity(entity),
            entityName=entity,
            readOnly=False,
            createdAt=now(),
            isBenchmark=False,
            user=lambda: self._user(),
            run=one_run,
            bucket=lambda name, **_: one_run(name),
            runs=lambda first=None, after=None, filters=None, order=None: connection(
                [
                    self.run(run)
                    for run in sorted(matching(filters), key=_position, reverse=order == "-created_at")
                ],
                first,
                after,
            ),
            runCount=lambda filters=None: len(matching(filters)),
            artifact=lambda name, **_: self._artifact_or_none(
                state.artifact_called(entity, project_name, name)
            ),
            artifactCollectionMembership=lambda name: self._membership_or_none(entity, project_name, name),
            artifactCollection=lambda name: (
                self.collection(state.collections[entity, project_name, name])
                if (entity, project_name, name) in state.collections
                else None
            ),
            artifactType=lambda name: self._artifact_type(entity, project_name, name),
            allViews=lambda viewType, first=None, after=None, viewName=None: connection(
                [
                    self.report(report)
                    for report in state.reports.values()
                    if (report["entityName"], report["projectName"]) == (entity, project_name)
                    and report["type"] == viewType
                    and viewName in (None, report["name"])
                ],
                first,
                after,
            ),
        )

    def _artifact_type(self, entity: str, project: str, kind: str) -> Node:
        there = [
            found
            for found in self._state.collections.values()
            if found.key[:2] == (entity, project) and found.kind == kind
        ]
        named = {found.key[2]: found for found in there}
        return node(
            "ArtifactType",
            id=storage_id("ArtifactType", kind),
            name=kind,
            artifactCollections=lambda first=None, after=None, **_: connection(
                [self.collection(found) for found in there], first, after
            ),
            artifactCollection=lambda name: self.collection(named[name]) if name in named else None,
        )

    def _artifact_or_none(self, artifact: ArtifactRecord | None) -> Node | None:
        return None if artifact is None else self.artifact(artifact)

    def _membership_or_none(self, entity: str, project: str, name: str) -> Node | None:
        artifact = self._state.artifact_called(entity, project, name)
        if artifact is None:
            return None
        return self._membership(artifact, self._state.collections[entity, project, name.partition(":")[0]])

    def _membership(self, artifact: ArtifactRecord, collection: CollectionRecord) -> Node:
        return node(
            "ArtifactCollectionMembership",
            id=storage_id("Membership", artifact.number),
            versionIndex=artifact.version,
            createdAt=artifact.created,
            aliases=lambda: self._aliases(artifact),
            artifactCollection=lambda: self.collection(collection),
            artifact=lambda: self.artifact(artifact),
            files=lambda first=None, after=None, names=None, **_: connection(
                self._artifact_files(artifact, names), first, after
            ),
        )

    def _aliases(self, artifact: ArtifactRecord) -> list[Node]:
        collection = self._state.collections[artifact.collection]
        return [
            node(
                "ArtifactAlias",
                id=storage_id("ArtifactAlias", f"{artifact.number}:{alias}"),
                alias=alias,
                artifactCollection=lambda: self.collection(collection),
                artifactCollectionName=collection.key[2],
            )
            for (key, alias), number in sorted(self._state.aliases.items())
            if (key, number) == (collection.key, artifact.number)
        ]

    def _artifact_files(self, artifact: ArtifactRecord, names: Sequence[str] | None) -> list[Node]:
        files = []
        for path, entry in self._state.entries(artifact).items():
            if names and path not in names:
                continue
            link = entry.get("ref") or self.blob_link(blob_of(entry["digest"]))
            files.append(
                node(
                    "File",
                    id=storage_id("File", f"{artifact.id}{path}"),
                    name=path,
                    url=link,
                    directUrl=link,
                    sizeBytes=entry.get("size", 0),
                    mimetype="",
                    updatedAt=now(),
                    digest=entry["digest"],
                    md5=entry["digest"],
                    storagePath="",
                )
            )
        return files

    def _run_files(self, run: RunRecord, names: Sequence[str] | None, pattern: str | None) -> list[Node]:
        wanted = {name.removeprefix("./") for name in names or ()}
        files = []
        for name, content in sorted(run.files.items()):
            if wanted and name not in wanted:
                continue
            if pattern and not re.fullmatch(pattern.replace("%", ".*"), name):
                continue
            link = f"{self.base}/run-files/{quote('/'.join([*run.key, name]))}"
            files.append(
                node(
                    "File",
                    id=storage_id("File", f"{run.id}:{name}"),
                    name=name,
                    url=link,
                    directUrl=link,
                    sizeBytes=len(content),
                    mimetype="",
                    updatedAt=now(),
                    md5=base64.b64encode(hashlib.md5(content).digest()).decode(),
                )
            )
        return files


def _number(name: str) -> int:
    return zlib.crc32(name.encode()) % 10**6


def _position(run: RunRecord) -> str:
    return run.created


def _between(history: Sequence[dict[str, Any]], start: int | None, end: int | None) -> list[dict[str, Any]]:
    return [row for row in history if row["_step"] >= (start or 0) and (end is None or row["_step"] < end)]


def _sampled(history: Sequence[dict[str, Any]], spec: dict[str, Any]) -> list[dict[str, Any]]:
    rows = _between(history, spec.get("minStep"), spec.get("maxStep"))
    keys = spec["keys"]
    return [{key: row[key] for key in keys} for row in rows if all(key in row for key in keys)][
        : spec.get("samples", 500)
    ]


def _history_keys(history: Sequence[dict[str, Any]]) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for row in history:
        for name, value in _flattened(row):
            kind = "number" if isinstance(value, (int, float)) else type(value).__name__
            count = keys[name]["typeCounts"][0]["count"] + 1 if name in keys else 1
            keys[name] = {
                "typeCounts": [{"type": kind, "count": count}],
                "monotonic": True,
                "previousValue": value,
            }
    return {"keys": keys, "lastStep": max((row["_step"] for row in history), default=-1), "sets": []}


def _flattened(row: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Names with dots, of all but media."""
    found: list[tuple[str, Any]] = []
    for name, value in row.items():
        if not isinstance(value, dict):
            found.append((prefix + name, value))
        elif "_type" not in value:
            found += _flattened(value, f"{prefix}{name}.")
    return found
