"""Pairs of examples: every engine counts the same shares, with clusters and strata."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from trackperm.pairing.pair import pair
from trackperm.statistic import load_statistic, read_statistic
from trackperm.tables.table import ExampleTable

SPEC = """\
name: grouped
cluster: user
strata: language
pairs:
  left: event == 1
  right: (label > left.label) | ((label == left.label) & (event == 0))
  term: (left.score > right.score) + (left.score == right.score) / 2
"""


def runs(n: int) -> list[ExampleTable]:
    rng = np.random.default_rng(0)
    shared = {
        "id": rng.permutation(n),
        "label": rng.integers(0, 6, n),
        "event": rng.integers(0, 2, n),
        "user": rng.integers(0, n // 3, n),
        "language": rng.choice(["de", "en"], n),
    }
    scores = np.round(rng.normal(size=(2, n)), 1)
    return [
        ExampleTable.from_native(pl.DataFrame({**shared, "score": own}), name)
        for name, own in zip(("baseline", "candidate"), scores, strict=True)
    ]


@pytest.mark.parametrize("name", ["concordance_index", "grouped"])
def test_every_engine_counts_the_same(name: str) -> None:
    statistic = read_statistic(SPEC, "grouped.yaml") if name == "grouped" else load_statistic(name)
    found = pair(*runs(60), statistic)
    table = found.count_table
    differences = table.multiplicities @ (table.candidate - table.baseline)
    units = list(found.statistic.resolution.values())
    assert all(abs(float(d * unit)) <= 1 for d, unit in zip(differences, units, strict=True))
    assert table.n_examples == (60 if name != "grouped" else len(set(runs(60)[0].polars_column("user"))))
    assert found.report.asymptotic is not None
    influences = found.report.influences
    assert influences is not None
    assert sum(influences.counts) == table.n_examples
    by_stratum = [float(d * unit) for d, unit in zip(differences, units, strict=True)]
    assert influences.difference == pytest.approx(np.mean(by_stratum))
    assert (influences.standard_error is None) == (name == "grouped")


def test_the_table_has_a_row_for_each_weight() -> None:
    """The baseline's score is divided so that at most one weight occurs with two shares."""
    table = pair(*runs(60), load_statistic("concordance_index")).count_table
    weights = (table.candidate - table.baseline)[:, 0]
    assert len(weights) <= len(np.unique(weights)) + 1
    assert set(np.ptp(table.baseline, axis=0)) <= {0, 1}
