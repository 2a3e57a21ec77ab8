"""A comparison as the tests of W&B's adapter write it, and what of it must be on a server."""

from __future__ import annotations

import dataclasses

from support.tracker_stores import smallest_png
from support.wandb_projects import kept
from support.wandb_standin import Standin
from trackperm.trackers.publication import Chart, Publication, Table
from trackperm.trackers.references import TrackedRun

KEY = "5eed" * 8


def publication(candidate: TrackedRun | None, key: str = KEY, **changes: object) -> Publication:
    made = Publication(
        key=key,
        name="forest loses to logistic in f1, p 0.003",
        metrics={"f1/p_value": 0.003, "f1/difference": -0.02},
        tables={"results": Table(("statistic", "p_value"), [("f1", "0.003")])},
        files={
            "pmf.png": smallest_png(),
            "trackperm_report.html": b"<!doctype html><p>worse</p>",
            "trackperm/count_table.parquet": b"counts",
        },
        tags={"trackperm.statistic": "f1", "trackperm.verdict": "▼ worse"},
        description="**worse**, p = 0.003",
        candidate=candidate,
        candidate_tags={"sig.f1": "f1 0.7500 ▼ p=0.003", "sig.f1.score": 0.75},
    )
    return dataclasses.replace(made, **changes)


def charted(**changes: object) -> Publication:
    """Publish a chart as well."""
    columns = ("value", "probability", "curve", "from", "to", "base", "top")
    rows = [(0.0, 0.9, "less extreme", -0.5, 0.5, 0.0, 0.9), (1.0, 0.1, "observed", 0.5, 1.5, 0.0, 0.1)]
    chart = Chart("null distribution", Table(columns, rows), "value", "probability", "curve")
    return publication(None, **{"charts": {"null_distribution": chart}, **changes})


def check_complete(standin: Standin, project: str, wanted: Publication) -> None:
    """Hold every part of a comparison's run against the publication."""
    path = f"{project}/trackperm-{wanted.key}"
    found = kept(standin, path)
    assert found.is_finished
    assert found.metrics == wanted.metrics
    assert found.files == wanted.files
    assert found.description == wanted.description
    assert set(standin.run(path).tags) == {"trackperm", "f1", "▼ worse"}
    comparisons = [run for run in standin.state.runs.values() if run.job_type == "comparison"]
    assert [run.key[2] for run in comparisons if "/".join(run.key[:2]) == project] == [
        f"trackperm-{wanted.key}"
    ]
