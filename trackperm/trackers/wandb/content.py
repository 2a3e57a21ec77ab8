"""Content of the run of a comparison or leaderboard in W&B, prepared before anything is written."""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import wandb

from trackperm.errors import InputError
from trackperm.trackers.publication import KEY_TAG, Chart, Publication, Table
from trackperm.trackers.wandb.charts import drawn, preset_of

DIGEST = "trackperm.digest"

_DRAWN: Mapping[str, Callable[[str], Any]] = {
    ".png": wandb.Image,
    ".html": partial(wandb.Html, inject=False),
}
# Characters that W&B stores.
_MAX_TAG = 64
_MAX_NAME = 128
_MAX_KEY = 250


@dataclass(frozen=True)
class Content:
    """Final content of a publication's run.

    Attributes
    ----------
    kind : {'comparison', 'leaderboard'}
        Job type, and type of the result artifact.
    run_id, name : str
        Id of the run, which is the same for the same comparison, and its name.
    summary : mapping of str to float
        Numbers, which become columns of the runs table.
    config : mapping of str to str
        What was compared, and the digest of all content.
    tags : tuple of str
        Labels in the runs table.
    notes : str
        Markdown.
    tables : mapping of str to Table
        Tables whose cells JSON can represent, including those of the charts.
    charts : mapping of str to Chart
        Charts that W&B's pages draw from these tables.
    presets : mapping of str to str
        Presets of the charts.
    files : mapping of str to bytes
        Files by path in the result artifact.
    """

    kind: str
    run_id: str
    name: str
    summary: Mapping[str, float]
    config: Mapping[str, str]
    tags: tuple[str, ...]
    notes: str
    tables: Mapping[str, Table]
    charts: Mapping[str, Chart]
    presets: Mapping[str, str]
    files: Mapping[str, bytes]

    @classmethod
    def of(cls, publication: Publication) -> Content:
        """Convert `publication` to what W&B stores.

        Raise InputError if W&B would refuse, truncate or change any of it.
        """
        publication.check()
        for name in publication.metrics:
            if not 0 < len(name) <= _MAX_KEY or not all(part.strip() for part in name.split("/")):
                raise InputError(
                    f"W&B cannot store a metric called `{name[:300]}`", hint="rename the statistic."
                )
        files = dict(publication.files)
        tables = {name: table.finite() for name, table in publication.tables.items()}
        tables |= {f"{name}_table": chart.table for name, chart in publication.charts.items()}
        presets = {name: preset_of(chart) for name, chart in publication.charts.items()}
        files |= {f"{name}.json": table.json() for name, table in tables.items()}
        summary = {name: float(value) for name, value in publication.metrics.items()}
        statistic = publication.tags.get("trackperm.statistic", "")
        verdict = publication.tags.get("trackperm.verdict", "")
        tags = tuple(tag[:_MAX_TAG] for tag in ("trackperm", statistic, verdict) if tag)
        hashed = [
            sorted((name, repr(value)) for name, value in summary.items()),
            sorted(publication.tags.items()),
            [publication.name, publication.description, sorted(presets.items())],
            sorted((path, hashlib.sha256(data).hexdigest()) for path, data in files.items()),
        ]
        digest = hashlib.sha256(json.dumps(hashed).encode()).hexdigest()
        return cls(
            kind=publication.kind,
            run_id=f"trackperm-{publication.key[:32]}",
            name=_cut(publication.name),
            summary=summary,
            config={**publication.tags, KEY_TAG: publication.key, DIGEST: digest},
            tags=tags,
            notes=publication.description,
            tables=tables,
            charts=publication.charts,
            presets=presets,
            files=files,
        )

    @property
    def media_keys(self) -> tuple[str, ...]:
        """Keys of the values that :meth:`media` returns."""
        drawn = (posixpath.splitext(posixpath.basename(path)) for path in sorted(self.files))
        return (*self.tables, *(stem for stem, suffix in drawn if suffix in _DRAWN))

    def artifact(self, folder: Path) -> wandb.Artifact:
        """Build the result artifact, whose metadata name what was compared; offline runs have no lineage."""
        made = wandb.Artifact(self.run_id, type=self.kind, description=self.name, metadata=dict(self.config))
        for number, (path, data) in enumerate(sorted(self.files.items())):
            file = folder / f"{number}{posixpath.splitext(path)[1]}"
            file.write_bytes(data)
            made.add_file(str(file), name=path)
        return made

    def media(self, folder: Path) -> dict[str, Any]:
        """Return the values that W&B's pages draw, by key: tables, charts, pictures and pages."""
        values: dict[str, Any] = {
            name: wandb.Table(columns=list(table.columns), data=list(table.rows), allow_mixed_types=True)
            for name, table in self.tables.items()
            if name.removesuffix("_table") not in self.charts
        }
        values |= {name: drawn(chart) for name, chart in self.charts.items()}
        for number, (path, data) in enumerate(sorted(self.files.items())):
            stem, suffix = posixpath.splitext(posixpath.basename(path))
            if suffix in _DRAWN:
                file = folder / f"{number}{suffix}"
                file.write_bytes(data)
                values[stem] = _DRAWN[suffix](str(file))
        return values


def _cut(name: str) -> str:
    """Shorten a run's name to the length that W&B stores."""
    return name if len(name) <= _MAX_NAME else name[: _MAX_NAME - 1] + "…"
