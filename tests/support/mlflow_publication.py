"""A comparison as the tests of MLflow's adapter write it, and what of it must be in a store."""

from __future__ import annotations

from support.mlflow_stores import MlflowStore
from trackperm.trackers.publication import Publication, Table
from trackperm.trackers.references import TrackedRun


def publication(candidate: TrackedRun, key: str = "5eed" * 8, n_files: int = 2) -> Publication:
    return Publication(
        key=key,
        name="forest beats logistic in f1, p 0.003",
        metrics={"f1/p_value": 0.003, "f1/difference": 0.02},
        tables={"results": Table(("statistic", "p_value"), [("f1", "0.003")])},
        files={f"trackperm/part-{i:03d}.txt": b"counts %d" % i for i in range(n_files)},
        tags={"trackperm.verdict": "▲ better"},
        description="**better**",
        candidate=candidate,
        candidate_tags={"sig.f1": "f1 0.7500 ▲ p=0.003", "sig.f1.score": 0.75},
    )


def check_complete(store: MlflowStore, run_id: str, wanted: Publication) -> None:
    """Hold every part of a comparison's run against the publication."""
    run = store.get(run_id)
    assert run.info.status == "FINISHED"
    assert run.data.tags["trackperm.state"] == "done"
    assert run.data.metrics == wanted.metrics
    assert wanted.tags.items() <= run.data.tags.items()
    assert run.data.tags["mlflow.note.content"] == wanted.description
    assert store.artifacts(run_id).keys() == {*wanted.files, "results.json"}
    assert wanted.files.items() <= store.artifacts(run_id).items()
    assert wanted.candidate is not None
    data = store.get(wanted.candidate.reference.locator).data
    assert wanted.candidate_tags.items() <= {**data.tags, **data.metrics}.items()
