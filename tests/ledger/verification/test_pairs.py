"""Logged comparisons of pairs of examples are verified from the weights alone."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import trackperm
from trackperm.ledger.comparison_publication import evidence
from trackperm.ledger.verification.recomputation import verify_files
from trackperm.statistic import read_statistic

SPECS = {
    "auc": "",
    "by_language": "strata: language\nweights: {de: 2, en: 1}\n",
    "by_user": "cluster: user\n",
}


def comparison(keys: str) -> trackperm.Comparison:
    rng = np.random.default_rng(0)
    n = 80
    shared = {
        "id": np.arange(n),
        "label": rng.integers(0, 2, n),
        "language": rng.choice(["de", "en"], n),
        "user": rng.integers(0, 30, n),
    }
    runs = [pl.DataFrame({**shared, "score": np.round(rng.normal(size=n), 1)}) for _ in range(2)]
    spec = "pairs:\n  left: label == 1\n  right: label == 0\n  term: left.score > right.score\n"
    return trackperm.compare(*runs, read_statistic(spec + keys, "x.yaml", "share_of_pairs"))


@pytest.mark.parametrize("name", SPECS)
def test_everything_matches(name: str) -> None:
    found = verify_files(evidence(comparison(SPECS[name]).with_second_opinions()))
    assert found.matches, list(found.lines())


@pytest.mark.parametrize("cluster", [None, "user"])
def test_everything_matches_with_classes(cluster: str | None) -> None:
    rng = np.random.default_rng(1)
    rows = {"id": range(60), "label": rng.integers(0, 3, 60), "user": rng.integers(0, 30, 60)}
    runs = [pl.DataFrame({**rows, "probabilities": rng.dirichlet([1, 1, 1], 60).round(2)}) for _ in range(2)]
    found = trackperm.compare(*runs, "weighted_roc_auc", cluster=cluster).with_second_opinions()
    assert verify_files(evidence(found)).matches


@pytest.mark.parametrize("field", ["pvalue", "baseline_score", "difference", "n_discordant"])
def test_a_changed_number_is_found(field: str) -> None:
    files = evidence(comparison(""))
    data = json.loads(files["trackperm/comparison.json"])
    data[field] *= 2
    files["trackperm/comparison.json"] = json.dumps(data).encode()
    assert not verify_files(files).matches


def test_a_changed_unit_is_found() -> None:
    files = evidence(comparison(""))
    spec = files["trackperm/statistic.yaml"].decode()
    line = next(line for line in spec.splitlines() if "share:" in line)
    files["trackperm/statistic.yaml"] = spec.replace(line, "  share: 1/7").encode()
    assert not verify_files(files).matches
