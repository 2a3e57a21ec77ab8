"""Cross tables of many pairs by matrix products agree with counting each pair."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from trackperm.leaderboards import cross_tables
from trackperm.leaderboards.cross_tables import CrossTables


@pytest.mark.parametrize("n_codes", [1, 2, 3, 6])
@pytest.mark.parametrize(("together", "exact"), [(64, 2**24), (2, 2**24), (3, 100)])
def test_against_counting_each_pair(
    n_codes: int, together: int, exact: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_tables, "_TOGETHER", together)
    monkeypatch.setattr(cross_tables, "_EXACT_IN_FLOAT32", exact)
    rng = np.random.default_rng(n_codes)
    codes = [rng.integers(0, n_codes, 1000).astype(np.uint8) for _ in range(7)]
    for pairs in (
        [(second, first) for first, second in combinations(range(7), 2)],
        [(i, 3) for i in (6, 0, 5)],
    ):
        found = list(CrossTables(codes, n_codes).of_pairs(pairs))
        assert len(found) == len(pairs)
        for (i, j), table in zip(pairs, found, strict=True):
            cells = codes[i].astype(np.int64) * n_codes + codes[j]
            assert table.ravel().tolist() == np.bincount(cells, minlength=n_codes**2).tolist()


def test_products_of_numbers_beyond_float32() -> None:
    n = 2**24 + 1
    codes = [np.ones(n, dtype=np.uint8), np.ones(n, dtype=np.uint8)]
    (table,) = CrossTables(codes, 2).of_pairs([(0, 1)])
    assert table.tolist() == [[0, 0], [0, n]]
