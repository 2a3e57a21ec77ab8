"""Columns of one run that have other names than those of the other run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from support.command_line import call_trackperm
from support.comparisons import answers

import trackperm
from trackperm.errors import InputError

OLD = answers([True] * 30 + [False] * 20)
NEW = answers([True] * 45 + [False] * 5)
OTHER = OLD.rename({"prediction": "answer", "id": "question"}).with_columns(prediction=pl.lit("unused"))
NAMES = {"prediction": "answer", "id": "question"}

WAYS: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "polars": lambda frame, _: frame,
    "lazy": lambda frame, _: frame.lazy(),
    "pandas": lambda frame, _: frame.to_pandas(),
    "duckdb": lambda frame, _: duckdb.from_arrow(frame.to_arrow()),
    "parquet": lambda frame, folder: _written(frame, folder / "old.parquet"),
    "csv": lambda frame, folder: _written(frame, folder / "old.csv"),
}


def _written(frame: pl.DataFrame, path: Path) -> Path:
    frame.write_csv(path) if path.suffix == ".csv" else frame.write_parquet(path)
    return path


@pytest.mark.sample(3)
@pytest.mark.parametrize("way", WAYS)
def test_the_result_is_that_of_equal_names(way: str, tmp_path: Path):
    expected = trackperm.compare(OLD, NEW, "accuracy")
    found = trackperm.compare(WAYS[way](OTHER, tmp_path), NEW, "accuracy", baseline_columns=NAMES)
    assert (found.pvalue, found.n_discordant, found.key) == (expected.pvalue, 15, expected.key)
    exchanged = trackperm.compare(NEW, WAYS[way](OTHER, tmp_path), "accuracy", candidate_columns=NAMES)
    assert exchanged.verdict == "worse"


def test_names_of_both_runs_and_of_one():
    both = NEW.rename({"prediction": "said"})
    found = trackperm.compare(OTHER, both, "accuracy", columns={"prediction": "said"}, baseline_columns=NAMES)
    assert found.n_discordant == 15


def test_labels_in_a_file_of_their_own(tmp_path: Path):
    OLD.select("id", "label").write_csv(tmp_path / "labels.csv")
    found = trackperm.compare(
        OTHER.drop("label"), NEW.drop("label"), labels=tmp_path / "labels.csv", baseline_columns=NAMES
    )
    assert found.n_discordant == 15


def test_columns_that_do_not_exist():
    with pytest.raises(
        InputError, match=r"(?s)`baseline` has no column `answers`.*Did you mean `answer`"
    ) as found:
        trackperm.compare(OTHER, NEW, baseline_columns={"prediction": "answers"})
    assert str(found.value).startswith('`baseline_columns={"prediction": "answers"}`')
    with pytest.raises(InputError, match="two names"):
        trackperm.compare(OTHER, NEW, baseline_columns={"prediction": "answer", "id": "answer"})


def test_on_the_command_line(tmp_path: Path):
    OTHER.write_csv(tmp_path / "old.csv")
    NEW.write_csv(tmp_path / "new.csv")
    options = [word for pair in NAMES.items() for word in ("--baseline-column", "=".join(pair))]
    found = call_trackperm(tmp_path, "compare", "old.csv", "new.csv", *options)
    assert "50 examples (15 discordant: 15 better, 0 worse)   ▲ better" in found.stdout
    refused = call_trackperm(tmp_path, "compare", "new.csv", "old.csv", "--candidate-column", "id=questions")
    assert refused.returncode == 2
    assert "`--candidate-column id=questions`: `old.csv` has no column `questions`" in refused.stderr
