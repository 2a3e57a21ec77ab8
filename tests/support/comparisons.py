"""Small real comparisons for the tests of what is shown and logged, and golden files to hold them against."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

import trackperm
from trackperm.choices import MissingRule
from trackperm.comparison import Comparison, RunData, compare_runs, load_run
from trackperm.exact import TestOptions
from trackperm.statistic import Statistic, load_statistic
from trackperm.tables import ExampleTable


def answers(correct: Sequence[bool], wrong: str = "no") -> pl.DataFrame:
    """Make a run's per-example table with `yes` where it is right."""
    return pl.DataFrame(
        {
            "id": [f"dev-{i:04d}" for i in range(len(correct))],
            "prediction": ["yes" if right else wrong for right in correct],
            "label": ["yes"] * len(correct),
        }
    )


def numbered(**columns: Sequence[Any]) -> pl.DataFrame:
    """Make a table with these columns and the ids 0, 1 and so on."""
    return pl.DataFrame({"id": range(len(next(iter(columns.values())))), **columns})


def run_data(*frames: pl.DataFrame, names: Sequence[str] = ("baseline", "candidate")) -> list[RunData]:
    """Return runs with these tables, called after their roles."""
    return [
        RunData(ExampleTable.from_native(frame, name), name)
        for frame, name in zip(frames, names, strict=True)
    ]


def accuracy(
    better: int, worse: int, both: int = 0, neither: int = 0, *, statistic: str = "accuracy", **options: Any
) -> Comparison:
    """Compare accuracies of runs that differ on `better` + `worse` examples, or what follows from them."""
    baseline = [False] * better + [True] * (worse + both) + [False] * neither
    candidate = [True] * better + [False] * worse + [True] * both + [False] * neither
    return trackperm.compare(answers(baseline), answers(candidate), statistic, **options)


def compared(sides: Any, statistic: Any, **options: Any) -> Any:
    """Compare two runs that are lists of rows."""
    return trackperm.compare(*map(pl.DataFrame, sides), statistic, **options)


def named(comparison: Comparison, baseline: str, candidate: str) -> Comparison:
    """Return a comparison with other names of its runs."""
    return replace(
        comparison,
        baseline_data=replace(comparison.baseline_data, name=baseline),
        candidate_data=replace(comparison.candidate_data, name=candidate),
    )


def compared_as_they_are(
    baseline: Any,
    candidate: Any,
    statistic: str | Path | Statistic,
    *,
    parameters: Mapping[str, Any] | None = None,
    missing: MissingRule = "error",
    **options: Any,
) -> Comparison:
    """Compare runs whose labels and predictions were drawn, whatever is refused of those of people."""
    runs = load_run(baseline, "baseline"), load_run(candidate, "candidate")
    spec = load_statistic(statistic, parameters=parameters)
    return compare_runs(*runs, spec, TestOptions(**options), missing=missing)


def check_golden(text: str, path: Path) -> None:
    """Compare `text` with a file that TRACKPERM_UPDATE_GOLDEN=1 rewrites."""
    if os.environ.get("TRACKPERM_UPDATE_GOLDEN") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "regenerate with TRACKPERM_UPDATE_GOLDEN=1"


def without_digests(document: str) -> str:
    """Blank out the parts of a signature that change with every release, or with how data are digested."""
    return re.sub(r"\b(data|spec|trackperm):[\w./]+", r"\1:…", document)
