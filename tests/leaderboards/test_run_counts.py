"""Count tables of pairs of runs from the counts of each run."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from trackperm.comparison import RunData
from trackperm.leaderboards import run_counts
from trackperm.leaderboards.paired_runs import pair_all
from trackperm.leaderboards.run_counts import RunCounts
from trackperm.pairing.pair import pair_in_memory
from trackperm.statistic import load_statistic
from trackperm.tables.table import ExampleTable


def test_of_classes_every_run_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 4, 60)
    runs = []
    for i in range(4):
        prediction = np.where(rng.random(60) < 0.7, label, rng.integers(0, 4, 60))
        frame = pl.DataFrame({"id": np.arange(60), "label": label, "prediction": prediction})
        table = ExampleTable.from_native(frame[rng.permutation(60)], f"run {i}")
        runs.append(RunData(table, f"run {i}"))
    counted = RunCounts.of(pair_all(runs, load_statistic("macro_f1")))
    pairs = [(i, j) for i in range(4) for j in range(4)]
    wanted = [
        pair_in_memory(runs[j].table, runs[i].table, load_statistic("macro_f1")).count_table for i, j in pairs
    ]
    monkeypatch.setattr(run_counts, "pair_in_memory", None)
    for (i, j), table in zip(pairs, wanted, strict=True):
        found = counted.count_table(i, j)[0]
        assert found.names == table.names
        for part in ("candidate", "baseline", "multiplicities"):
            assert getattr(found, part).tolist() == getattr(table, part).tolist()
