"""Pairs of labelled runs, and how a comparison checks or refuses their labels."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import trackperm
from trackperm.cli.arguments import assignments
from trackperm.errors import InputError, PairingError, SpecError
from trackperm.pairing.checks.label_values import require_label_values
from trackperm.statistic import Statistic, builtin_names, load_statistic
from trackperm.tables.lazy.scan import Scan
from trackperm.tables.table import ExampleTable

OF_ONE_CLASS = tuple(
    name
    for name in builtin_names()
    if load_statistic(name).has_positive and "prediction" in load_statistic(name).used_columns
)
"""Built-in statistics that count one class of the predictions against all others."""


def run(labels: Any, right: float, seed: int = 0, **columns: Any) -> pl.DataFrame:
    """A run that says one of the labels, the right one with probability `right` at least."""
    rng = np.random.default_rng([seed, int(100 * right)])
    labels = list(labels)
    is_right = rng.random(len(labels)) < right
    guesses = rng.permutation(labels).tolist()
    predictions = [label if r else guess for label, r, guess in zip(labels, is_right, guesses, strict=True)]
    ids = [f"q{i}" for i in range(len(labels))]
    return pl.DataFrame({"id": ids, "prediction": predictions, "label": labels, **columns}, strict=False)


def two_runs(labels: Any) -> Any:
    return run(labels, 0.3), run(labels, 0.9)


def renamed(frames: Any, names: dict[Any, Any]) -> Any:
    both = pl.col("prediction", "label").replace_strict(names)
    return [frame.with_columns(both) for frame in frames]


def compared(frames: Any, statistic: Any, **options: Any) -> Any:
    baseline, candidate = frames
    return trackperm.compare(baseline, candidate, statistic, **options)


def refusal(frames: Any, statistic: Any, **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        compared(frames, statistic, **options)
    assert not isinstance(caught.value, SpecError | PairingError)
    return caught.value


def settings(error: InputError) -> list[dict[str, object]]:
    """The values that a hint would have one choose, as a shell and the command line read them."""
    options = re.findall(r"`(--set [^`]*)`", error.hint or "")
    assert options
    return [assignments([shlex.split(option)[1]]) for option in options]


def checked(frames: Sequence[Any], statistic: str | Statistic, **options: Any) -> Statistic:
    tables = [ExampleTable.from_native(frame, f"run {i}") for i, frame in enumerate(frames)]
    return require_label_values(tables, load_statistic(statistic), **options)


def scans(folder: Path, frames: Sequence[pl.DataFrame]) -> list[ExampleTable]:
    """Files whose columns are read when they are used."""
    tables = []
    for i, frame in enumerate(frames):
        frame.write_parquet(folder / f"{i}.parquet")
        scan = Scan(pl.scan_parquet(folder / f"{i}.parquet"), lambda error: pytest.fail(str(error)))
        tables.append(ExampleTable.from_scan(scan, f"{i}.parquet"))
    return tables
