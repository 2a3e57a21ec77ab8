"""Verification of detected dependence of examples, which needs the runs and not only the logged counts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from support.changed_evidence import changed
from support.comparisons import run_data
from support.document_effects import documents, sides

import trackperm
from trackperm.comparison import RunData, compare_statistics
from trackperm.ledger.comparison_publication import evidence
from trackperm.ledger.verification import verify_files, verify_from_runs


def logged() -> tuple[dict[str, bytes], list[RunData]]:
    found = sides(np.random.default_rng(1), documents(), 1.0)
    runs = run_data(*found)
    (comparison,) = compare_statistics(*runs, [trackperm.load_statistic("accuracy")])
    assert comparison.dependence
    return evidence(comparison), runs


def test_by_the_counts_clusters_are_taken_as_logged() -> None:
    files, _ = logged()
    found = verify_files(files)
    assert found.matches
    assert any("dependence of examples" in note for note in found.notes)


def test_by_the_runs_clusters_are_detected_again() -> None:
    files, runs = logged()
    found = verify_from_runs(files, *runs)
    assert found.matches
    assert "pvalue by document, from the runs" in [check.what for check in found.checks]


@pytest.mark.parametrize(
    ("name", "value"), [("pvalue", 0.5), ("icc", 0.01), ("n_clusters", 3), ("verdict", "worse")]
)
def test_a_changed_value_is_detected(name: str, value: Any) -> None:
    files, runs = logged()
    (seen,) = json.loads(files["trackperm/comparison.json"])["dependence"]
    found = verify_from_runs(changed(files, dependence=[{**seen, name: value}]), *runs)
    assert [check.what for check in found.checks if not check.matches] == [
        f"{name} by document, from the runs"
    ]


@pytest.mark.parametrize("value", [[], [3], "none", {"document": 3}])
def test_missing_dependence_is_detected(value: Any) -> None:
    files, runs = logged()
    found = verify_from_runs(changed(files, dependence=value), *runs)
    wanted = "columns of dependent examples, from the runs"
    assert [check.what for check in found.checks if not check.matches] == [wanted]
