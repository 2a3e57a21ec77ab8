"""What can be changed: the SDK's mutations, under their own names."""
# ruff: noqa: N802

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from support.wandb_standin.execution import RefusedError, connection, node
from support.wandb_standin.state import (
    ArtifactRecord,
    CollectionRecord,
    RunRecord,
    State,
    blob_of,
    storage_id,
)
from support.wandb_standin.views import Views

Fields = dict[str, Any]

_BUCKET_FIELDS = {
    "displayName": "display_name",
    "description": "description",
    "notes": "notes",
    "tags": "tags",
    "config": "config",
    "summaryMetrics": "summary",
    "groupName": "group",
    "jobType": "job_type",
    "state": "state",
    "host": "host",
    "program": "program",
    "commit": "commit",
    "repo": "repo",
}


class Changes:
    """The mutations that the SDK sends; each method is named as its mutation is."""

    def __init__(self, state: State, views: Views) -> None:
        self._state = state
        self._views = views
        self._pending_manifests: dict[int, str] = {}

    def upsertBucket(self, fields: Fields) -> Fields:
        state = self._state
        run = state.run_of_id(fields["id"]) if "id" in fields else None
        inserted = False
        if run is None:
            project = fields.get("modelName") or "uncategorized"
            key = (fields.get("entityName") or state.entity, project, fields["name"])
            inserted = key not in state.runs
            run = state.runs.setdefault(key, RunRecord(key, key[2]))
        for name, attribute in _BUCKET_FIELDS.items():
            if name in fields:
                setattr(run, attribute, fields[name])
        return {"bucket": self._views.run(run), "inserted": inserted}

    def createArtifact(self, fields: Fields) -> Fields:
        state = self._state
        entity, project = fields["entityName"] or state.entity, fields["projectName"]
        # `wandb sync` names it in a list, up to 0.26
        (name,) = fields.get("artifactCollectionNames") or [fields["artifactCollectionName"]]
        key = (entity, project, name)
        number = len(state.artifacts) + len(state.collections) + 1
        collection = state.collections.setdefault(
            key, CollectionRecord(key, number, fields["artifactTypeName"])
        )
        if "sequenceClientID" in fields:
            state.client_ids.setdefault(fields["sequenceClientID"], collection.id)
        run = state.runs.get((entity, project, fields.get("runName", "")))
        aliases = [alias["alias"] for alias in fields.get("aliases", ())]
        artifact = self._same_content(collection, fields["digest"], fields.get("enableDigestDeduplication"))
        if artifact is None:
            artifact = ArtifactRecord(
                number=number + 1,
                collection=key,
                kind=fields["artifactTypeName"],
                digest=fields["digest"],
                description=fields.get("description"),
                metadata=fields.get("metadata"),
                step=fields.get("historyStep"),
                run=None if run is None else run.key,
                wanted_aliases=aliases,
            )
            state.artifacts[artifact.number] = artifact
        else:
            state.aliases.update({(key, alias): artifact.number for alias in aliases})
        if "clientID" in fields:
            state.client_ids[fields["clientID"]] = artifact.id
        if run is not None and artifact.number not in run.logged:
            run.logged.append(artifact.number)
        return {"artifact": self._views.artifact(artifact)}

    def createArtifactManifest(self, fields: Fields) -> Fields:
        return self._expect_manifest(self._artifact(fields["artifactID"]), fields)

    def updateArtifactManifest(self, fields: Fields) -> Fields:
        manifest = fields["artifactManifestID"]
        number = next(
            number for number in self._state.artifacts if storage_id("ArtifactManifest", number) == manifest
        )
        return self._expect_manifest(self._state.artifacts[number], fields)

    def createArtifactFiles(self, fields: Fields) -> Fields:
        files = []
        for wanted in fields["artifactFiles"]:
            blob = blob_of(wanted["md5"])
            kept = blob in self._state.blobs
            files.append(
                node(
                    "File",
                    id=storage_id("File", blob),
                    name=wanted["name"],
                    displayName=wanted["name"],
                    storagePath=f"wandb_artifacts/{blob}",
                    uploadUrl=None if kept else self._views.blob_link(blob),
                    uploadHeaders=[],
                    uploadMultipartUrls=None,
                    artifact=self._views.artifact(self._artifact(wanted["artifactID"])),
                )
            )
        return {"files": connection(files)}

    def commitArtifact(self, fields: Fields) -> Fields:
        state = self._state
        artifact = self._artifact(fields["artifactID"])
        if artifact.state != "COMMITTED":
            artifact.manifest = self._pending_manifests.get(artifact.number)
            if artifact.manifest not in state.blobs:
                raise RefusedError("the manifest was not uploaded")
            missing = [
                path
                for path, entry in state.entries(artifact).items()
                if not entry.get("ref") and blob_of(entry["digest"]) not in state.blobs
            ]
            if missing:
                raise RefusedError(f"files were not uploaded: {missing}")
            collection = state.collections[artifact.collection]
            artifact.version = len(collection.versions)
            artifact.state = "COMMITTED"
            collection.versions.append(artifact.number)
            for alias in [*artifact.wanted_aliases, "latest"]:
                state.aliases[collection.key, alias] = artifact.number
        return {"artifact": self._views.artifact(artifact)}

    def linkArtifact(self, fields: Fields) -> Fields:
        state, artifact = self._state, self._artifact(fields["artifactID"])
        key = (fields["entityName"], fields["projectName"], fields["artifactPortfolioName"])
        number = len(state.artifacts) + len(state.collections) + 1
        collection = state.collections.setdefault(key, CollectionRecord(key, number, artifact.kind))
        collection.versions.append(artifact.number)
        for alias in [*(alias["alias"] for alias in fields.get("aliases") or ()), "latest"]:
            state.aliases[key, alias] = artifact.number
        return {"versionIndex": len(collection.versions) - 1, "artifactMembership": None}

    def useArtifact(self, fields: Fields) -> Fields:
        artifact, run = self._artifact(fields["artifactID"]), self._run(fields)
        if artifact.number not in run.used:
            run.used.append(artifact.number)
        return {"artifact": self._views.artifact(artifact)}

    def updateArtifact(self, fields: Fields) -> Fields:
        artifact = self._artifact(fields["artifactID"])
        artifact.description = fields.get("description", artifact.description)
        artifact.metadata = fields.get("metadata", artifact.metadata)
        return {"artifact": self._views.artifact(artifact)}

    def addAliases(self, fields: Fields) -> Fields:
        artifact = self._artifact(fields["artifactID"])
        for alias in fields["aliases"]:
            key = (alias["entityName"], alias["projectName"], alias["artifactCollectionName"])
            self._state.aliases[key, alias["alias"]] = artifact.number
        return {"success": True}

    def deleteAliases(self, fields: Fields) -> Fields:
        for alias in fields["aliases"]:
            key = (alias["entityName"], alias["projectName"], alias["artifactCollectionName"])
            self._state.aliases.pop((key, alias["alias"]), None)
        return {"success": True}

    def createRunFiles(self, fields: Fields) -> Fields:
        run = self._run(fields)
        link = f"{self._views.base}/run-files/{quote('/'.join(run.key))}"
        return {
            "runID": run.id,
            "uploadHeaders": [],
            "files": [node("File", name=name, uploadUrl=f"{link}/{quote(name)}") for name in fields["files"]],
        }

    def markRunFilesUploaded(self, fields: Fields) -> Fields:
        return {"success": True}

    def notifyScriptableRunAlert(self, fields: Fields) -> Fields:
        self._state.alerts.append(fields)
        return {"success": True}

    def createCustomChart(self, fields: Fields) -> Fields:
        name = f"{fields['entity']}/{fields['name']}"
        if name in self._state.charts:
            raise RefusedError(f"custom chart {name} already exists")
        self._state.charts[name] = fields
        return {"chart": node("CustomChart", id=name)}

    def upsertView(self, fields: Fields) -> Fields:
        reports = self._state.reports
        report = fields.get("id", storage_id("View", len(reports) + 1))
        inserted = report not in reports
        reports[report] = {**fields, "id": report}
        return {"view": self._views.report(reports[report]), "inserted": inserted}

    def deleteRun(self, fields: Fields) -> Fields:
        run = self._state.run_of_id(fields["id"])
        if run is not None:
            del self._state.runs[run.key]
        return {"clientMutationId": None}

    def _same_content(
        self, collection: CollectionRecord, digest: str, wanted: bool | None
    ) -> ArtifactRecord | None:
        versions = [self._state.artifacts[number] for number in reversed(collection.versions)]
        return next((version for version in versions if wanted and version.digest == digest), None)

    def _expect_manifest(self, artifact: ArtifactRecord, fields: Fields) -> Fields:
        blob = f"manifest/{artifact.number}/{fields['digest']}"
        self._pending_manifests[artifact.number] = blob
        link = self._views.blob_link(blob)
        file = node(
            "File",
            id=storage_id("ManifestFile", artifact.number),
            name=fields.get("name", "wandb_manifest.json"),
            displayName=fields.get("name", "wandb_manifest.json"),
            uploadUrl=link,
            uploadHeaders=[],
            directUrl=link,
        )
        manifest = storage_id("ArtifactManifest", artifact.number)
        return {"artifactManifest": node("ArtifactManifest", id=manifest, file=file)}

    def _artifact(self, artifact_id: str) -> ArtifactRecord:
        found = self._state.artifact_of_id(artifact_id)
        if found is None:
            raise RefusedError(f"artifact {artifact_id} not found")
        return found

    def _run(self, fields: Fields) -> RunRecord:
        entity = fields["entityName"] or self._state.entity
        run = self._state.runs.get((entity, fields["projectName"], fields["runName"]))
        if run is None:
            raise RefusedError("run not found")
        return run


def apply_stream(run: RunRecord, update: Fields) -> None:
    """Take in what ``file_stream`` was sent: history, events, console lines, summary, the end."""
    lines = {"wandb-history.jsonl": run.history, "wandb-events.jsonl": run.events, "output.log": run.log}
    for name, part in (update.get("files") or {}).items():
        if name == "wandb-summary.json":
            run.summary = json.dumps(json.loads(part["content"][-1]))
        elif name in lines:
            lines[name][part["offset"] :] = part["content"]
    if update.get("complete"):
        run.exit_code = update.get("exitcode")
        run.state = "finished" if run.exit_code == 0 else "failed"
