"""Empty cells in columns of sets: the hint says how they are read as empty sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import trackperm
from trackperm.choices import MissingRule
from trackperm.errors import PairingError

LABELS = ["a", "a b", None, "b", None, "c"]
RUNS = ["a", "a", "b", None, None, "c"], ["a b", "a b", None, "b", "c", "c"]


def hint(*runs: Any, missing: MissingRule = "error", statistic: str = "multilabel_f1") -> str:
    with pytest.raises(PairingError) as caught:
        trackperm.compare(*runs, statistic, missing=missing)
    return str(caught.value.hint)


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("missing", ["error", "wrong"])
def test_the_code_writes_empty_sets(
    separator: str, missing: MissingRule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files give the scores of the same lists."""
    monkeypatch.chdir(tmp_path)
    frames = [pl.DataFrame({"id": range(6), "prediction": run, "label": LABELS}) for run in RUNS]
    for frame, name in zip(frames, "xy", strict=True):
        frame.write_csv(f"{name}.csv", separator=separator)
    for name in "xy":
        said = hint(f"{name}.csv", f"{name}.csv", missing=missing)
        assert said.startswith("An empty cell of a CSV file is a missing value: if those of `")
        eval(said.split("`pl.")[1].join(("pl.", "")).partition("` of polars")[0], {"pl": pl})
    lists = [
        frame.with_columns(pl.col("prediction", "label").str.split(" ").fill_null([])) for frame in frames
    ]
    expected = trackperm.compare(*lists, "multilabel_f1")
    found = trackperm.compare("x.jsonl", "y.jsonl", "multilabel_f1")
    assert (found.n_examples, found.baseline_score) == (6, expected.baseline_score)
    assert found.candidate_score == expected.candidate_score


def test_values_of_types() -> None:
    run = pl.DataFrame({"id": range(6), "prediction": [["a"]] * 6, "label": [["a"], None] * 3})
    assert hint(run, run).startswith(
        "If the empty values of `label` are empty sets, write `[]` in their place."
    )


def test_other_statistics(tmp_path: Path) -> None:
    run = pl.DataFrame({"id": range(6), "prediction": RUNS[0], "label": LABELS})
    run.write_csv(path := tmp_path / "x.csv")
    assert hint(path, path, statistic="accuracy").startswith("`--missing drop` tests the 3 paired examples")
