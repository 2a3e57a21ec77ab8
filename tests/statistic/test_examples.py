"""The statistics in `examples/statistics`, against all swaps in fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.processes import ROOT
from support.unit_swaps import example_pvalue

import trackperm

FOLDER = ROOT / "examples" / "statistics"
Row = dict[str, Any]


def log_ratio(u: Sequence[Row], v: Sequence[Row]) -> Fraction:
    """A monotone function of the size of the logarithm: the larger of the ratio and its inverse."""
    wrong = [sum(row["prediction"] != row["label"] for row in rows) for rows in (u, v)]
    return Fraction(max(wrong), min(wrong))


def thresholds(u: Sequence[Row], v: Sequence[Row]) -> Fraction:
    def f_half(rows: Sequence[Row]) -> Fraction:
        found = [row["score"] >= row["threshold"] for row in rows]
        both = sum(row["label"] for row, is_found in zip(rows, found, strict=True) if is_found)
        if not both:
            return Fraction(0)
        precision, recall = Fraction(both, sum(found)), Fraction(both, sum(row["label"] for row in rows))
        return Fraction(5, 4) * precision * recall / (precision / 4 + recall)

    return abs(f_half(u) - f_half(v))


@pytest.mark.parametrize("seed", range(3))
def test_log_ratio_of_error_rates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    label = ["yes", "no"] * 6
    runs = []
    for rate in (0.7, 0.3):
        wrong = (rng.random(12) < rate).tolist()
        wrong[0] = True  # in both runs: no swap is without an error
        answers = [{"yes": "no", "no": "yes"}[a] if w else a for a, w in zip(label, wrong, strict=True)]
        runs.append(pl.DataFrame({"id": range(12), "prediction": answers, "label": label}))
    baseline, candidate = runs
    found = trackperm.compare(baseline, candidate, FOLDER / "error_log_ratio.yaml")
    assert found.pvalue == pytest.approx(
        float(example_pvalue(baseline.to_dicts(), candidate.to_dicts(), log_ratio))
    )
    assert found.difference == pytest.approx(np.log(found.candidate_score / found.baseline_score))
    assert found.test.ties == "exact"


@pytest.mark.parametrize("seed", range(3))
def test_f_half_at_two_thresholds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    run = pl.DataFrame({"id": range(10), "score": rng.random(10), "label": rng.integers(0, 2, 10)})
    baseline, candidate = (run.with_columns(threshold=pl.lit(cut)) for cut in (0.2, 0.6))
    found = trackperm.compare(baseline, candidate, FOLDER / "f_half_at_threshold.yaml")
    assert found.pvalue == float(example_pvalue(baseline.to_dicts(), candidate.to_dicts(), thresholds)) < 1
    assert abs(found.difference) == pytest.approx(
        float(thresholds(candidate.to_dicts(), baseline.to_dicts()))
    )


def test_ten_lines_are_enough() -> None:
    files = sorted(FOLDER.glob("*.yaml"))
    assert [path.name for path in files] == ["error_log_ratio.yaml", "f_half_at_threshold.yaml"]
    assert all(len(path.read_text(encoding="utf-8").splitlines()) <= 10 for path in files)
