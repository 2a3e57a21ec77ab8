"""Counts by unit, against the table of counts that the test takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.specs import load

from trackperm.exact import CountTable
from trackperm.pairing.many_runs import pair_many
from trackperm.pairing.pair import pair_in_memory as pair
from trackperm.statistic import load_statistic
from trackperm.tables.table import ExampleTable

STRATA = """
counts: {correct: prediction == label, n: 1}
score: correct / n
strata: language
"""


def runs(*, epochs: int = 1) -> list[ExampleTable]:
    rng = np.random.default_rng(2)
    n = 60
    examples: dict[str, Any] = {
        "id": rng.permutation(n),
        "label": rng.integers(0, 4, n),
        "language": rng.choice(["de", "en", "fr"], n),
    }
    frames = []
    for _ in range(2):
        parts = [
            pl.DataFrame({**examples, "prediction": rng.integers(0, 4, n), "epoch": epoch})
            for epoch in range(epochs)
        ]
        frames.append(pl.concat(parts))
    return [ExampleTable.from_native(frame, name) for frame, name in zip(frames, "ab", strict=True)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize("name", ["accuracy", "macro_f1", "strata"])
def test_it_groups_to_the_count_table(name: str, epochs: int, tmp_path: Path) -> None:
    statistic = load(tmp_path, STRATA) if name == "strata" else load_statistic(name)
    if epochs > 1:
        statistic = load_statistic(statistic, repeats="sum")
    first, second = runs(epochs=epochs)
    found = pair(first, second, statistic)
    counts = found.by_unit()
    assert counts.rows.shape == (60,)
    again = CountTable.from_counts(
        found.count_table.names, counts.candidate[counts.rows], counts.baseline[counts.rows]
    )
    for side in ("candidate", "baseline", "multiplicities"):
        assert (getattr(again, side) == getattr(found.count_table, side)).all()


def test_units_are_in_the_order_of_their_ids() -> None:
    first, second = runs()
    counts = pair(first, second, load_statistic("accuracy")).by_unit()
    frame = first.frame.to_polars().sort("id")
    right = (frame["prediction"] == frame["label"]).to_numpy().astype(np.int64)
    assert (counts.baseline[counts.rows, 0] == right).all()


def test_many_runs_at_once() -> None:
    first, second = runs()
    statistic = load_statistic("accuracy")
    (found,) = pair_many(first, [second], statistic)
    assert found is not None
    counts, wanted = found.by_unit(), pair(first, second, statistic).by_unit()
    assert (counts.candidate[counts.rows] == wanted.candidate[wanted.rows]).all()
