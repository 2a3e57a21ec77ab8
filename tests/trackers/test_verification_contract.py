"""Comparisons are verified from their runs without further options, by one contract for every adapter."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.tracker_stores import TrackerStore

import trackperm
from trackperm.errors import InputError
from trackperm.ledger.comparison_publication import evidence
from trackperm.ledger.verification import files, recomputation
from trackperm.trackers.base import Tracker

pytestmark = [pytest.mark.tracker, pytest.mark.contract]

N = 24
ROWS = range(N)


def columns_of(prediction: str, step: int) -> dict[str, list[Any]]:
    """Columns of a run that is wrong in every row whose number `step` divides."""
    right = [row % step > 0 for row in ROWS]
    sure = [0.25 + each / 2 for each in right]
    return {
        "key": [f"k{row}" for row in ROWS],
        "task": [f"t{row // 2}" for row in ROWS],
        "document": [f"d{row // 4}" for row in ROWS],
        "half": ["first" if 2 * row < N else "second" for row in ROWS],
        prediction: [row % 3 if each else (row + 1) % 3 for row, each in zip(ROWS, right, strict=True)],
        "verdict": ["CORRECT" if each else "WRONG" for each in right],
        "graded": [int(each) for each in right],
        "latency": [1.5 if each else 2.25 for each in right],
        **{
            f"p_{label}": [p if row % 3 == label else (1 - p) / 2 for row, p in zip(ROWS, sure, strict=True)]
            for label in range(3)
        },
    }


@pytest.fixture(autouse=True)
def read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read tables, which are whole, without a process that tries each first."""
    for module in (recomputation, files):
        monkeypatch.setattr(
            module, "read_damaged_parquet", lambda content: pl.read_parquet(io.BytesIO(content))
        )


def test_the_runs_are_read_again_as_they_were_compared(
    store: TrackerStore, tracker: Tracker, experiment: str, tmp_path: Path
):
    tables = columns_of("answer", 2), columns_of("said", 5)
    short = {name: values[2:] for name, values in tables[1].items()}
    locators = [
        store.run(experiment, name, {"whole.parquet": table, "other.parquet": other})
        for name, table, other in (("old", tables[0], tables[0]), ("new", tables[1], short))
    ]
    gold = tmp_path / "gold.csv"
    pl.DataFrame({"key": tables[0]["key"], "label": [row % 3 for row in ROWS]}).write_csv(gold)
    references = [f"{tracker.scheme}:{locator}" for locator in locators]
    whole, other = (
        tuple(store.chosen(locator, path) for locator in locators)
        for path in ("whole.parquet", "other.parquet")
    )
    own = {"baseline_columns": {"prediction": "answer"}, "candidate_columns": {"prediction": "said"}}
    by_key, by_task = {"columns": {"id": "key"}}, {"columns": {"id": "task"}}
    of_labels: dict[str, Any] = {"labels": str(gold), **own}
    of_classes = {"statistic": "multiclass_log_loss", "columns": {"probabilities": "p_*"}}
    kinds: list[dict[str, Any]] = [
        {"statistic": "accuracy", **of_labels, **by_key, "cluster": "document", "slices": ["half"]},
        {**of_classes, "labels": str(gold), "by_position": True},
        {"metric": ["verdict=CORRECT", "latency"], **by_key},
        {"metric": "graded", "repeats": "mean", **by_task},
        {"statistic": "accuracy", **of_labels, **by_key, "missing": "bounds"},
    ]
    for kind, options in enumerate(kinds):
        artifact = other if "missing" in options else whole
        found = trackperm.compare(*references, artifact=artifact, tracking_uri=store.tracking_uri, **options)
        comparison = found[-1] if isinstance(found, list) else found
        folder = tmp_path / str(kind)
        for path, content in evidence(comparison).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        again = trackperm.verify(folder, from_runs=True, tracking_uri=store.tracking_uri)
        assert again.matches, [*again.lines()]
    logged = trackperm.log(comparison, tracker, experiment)
    again = trackperm.verify(logged.run, from_runs=True, tracking_uri=store.tracking_uri)
    assert again.matches, [*again.lines()]
    options_of_runs, *_ = again.notes
    assert f"`--labels {gold}`, `--baseline-column prediction=answer`" in options_of_runs
    gold.unlink()
    with pytest.raises(
        InputError, match=f"the file `{gold}` with the labels of the comparison does not exist"
    ):
        trackperm.verify(logged.run, from_runs=True, tracking_uri=store.tracking_uri)
