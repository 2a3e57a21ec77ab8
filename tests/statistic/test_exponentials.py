"""`exp` in scores: ties by algebra, log ratios, and numbers beyond all floats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import trackperm
from trackperm.comparison import Comparison
from trackperm.errors import InputError


def compared(folder: Path, spec: str, baseline: Sequence[int], candidate: Sequence[int]) -> Comparison:
    path = folder / "spec.yaml"
    path.write_text(f"counts: {{a: x, n: 1}}\n{spec}\n")
    runs = (pl.DataFrame({"id": range(len(run)), "x": run}) for run in (baseline, candidate))
    return trackperm.compare(*runs, path)


RUNS: dict[str, Any] = {"baseline": [3, 0, 2, 2, 5, 1, 4, 1], "candidate": [4, 0, 3, 1, 5, 2, 6, 2]}


@pytest.mark.parametrize("score", ["exp(a / n)", "exp(a / n + log(n) / 3)", "exp(-2) * exp(a / n)"])
def test_log_ratio_of_exponentials_is_a_difference(score: str, tmp_path: Path) -> None:
    ratio = compared(tmp_path, f"score: {score}\ncontrast: log ratio", **RUNS)
    difference = compared(tmp_path, "score: a / n", **RUNS)
    assert ratio.difference == difference.difference == 5 / 8
    assert ratio.pvalue == difference.pvalue
    assert ratio.test.ties == "exact"


@pytest.mark.parametrize("score", ["exp(a / n)", "exp(log(1 + a) / 3)", "exp(sqrt(a))"])
def test_a_monotone_function_of_a_fixed_sum_orders_as_the_sum(score: str, tmp_path: Path) -> None:
    """The sum of both runs is fixed, so that the difference of e^u and e^v grows with u - v."""
    found = compared(tmp_path, f"score: {score}", **RUNS)
    assert found.pvalue == compared(tmp_path, "score: a / n", **RUNS).pvalue
    assert found.test.ties == "exact"


def test_geometric_mean(tmp_path: Path) -> None:
    """exp((log(a) + log(n)) / 2) is sqrt(a n)."""
    by_logs = compared(tmp_path, "score: exp((log(a) + log(n)) / 2)", **RUNS)
    by_root = compared(tmp_path, "score: sqrt(a * n)", **RUNS)
    assert by_logs.candidate_score == by_root.candidate_score == math.sqrt(23 * 8)
    assert by_logs.pvalue == by_root.pvalue


TOO_LARGE = {
    "score: exp(a)": "the observed value of the statistic is beyond the range of floats",
    "score: exp(a)\ncontrast: log ratio": "a score by `spec` is beyond the range of floats",
    "score: exp(10 ** 13 * a)": "it takes the exponential of a number beyond 1e+15",
    "score: exp(-10 ** 13 * a)": "it takes the exponential of a number beyond 1e+15",
}


@pytest.mark.parametrize("spec", TOO_LARGE)
def test_beyond_all_floats(spec: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        compared(tmp_path, spec, [100, 200, 700], [100, 300, 800])
    assert TOO_LARGE[spec] in caught.value.message
    assert caught.value.hint


def test_great_powers_of_e_are_compared_exactly(tmp_path: Path) -> None:
    """Swaps that lead beyond all floats, and values too small for them, have their place in the order."""
    large = compared(tmp_path, "score: exp(a)", [300, 10, 350, 2], [350, 10, 300, 4])
    assert large.pvalue == compared(tmp_path, "score: a", [300, 10, 350, 2], [350, 10, 300, 4]).pvalue
    small = compared(tmp_path, "score: exp(-a)", [900, 900, 500], [901, 905, 501])
    assert small.pvalue == 1 / 4
