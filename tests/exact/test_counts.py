"""Count tables and difference histograms, against counting row by row."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from trackperm.errors import InputError, InputTypeError
from trackperm.exact import CountTable, DifferenceHistogram, counts, difference_test
from trackperm.exact.counts import group_rows


@pytest.mark.sample(6)
@pytest.mark.parametrize("largest", [1, 5, 10**6, 2**61])
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("cells", [12, counts.CELLS])
def test_histogram_against_counting(
    cells: int, mirrored: bool, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "CELLS", cells)
    rng = np.random.default_rng(largest % 97)
    for _ in range(50):
        n_rows, m = int(rng.integers(1, 40)), int(rng.integers(1, 4))
        a, b = rng.integers(-largest, largest + 1, size=(2, n_rows, m))
        if mirrored:
            a, b = np.hstack([a, b]), np.hstack([b, a])
            # In some row, a column may no longer mirror another one.
            a[-1, -1] += int(rng.integers(0, 2))
        times = rng.integers(1, 5, n_rows)
        histogram = DifferenceHistogram.from_pairs(a, b, times)
        expected: Counter[tuple[int, ...]] = Counter()
        ups: Counter[tuple[int, ...]] = Counter()
        for x, y, count in zip(a.tolist(), b.tolist(), times.tolist(), strict=True):
            difference = tuple(p - q for p, q in zip(x, y, strict=True))
            if any(difference):
                sign = 1 if next(d for d in difference if d) > 0 else -1
                folded = tuple(sign * d for d in difference)
                expected[folded] += count
                ups[folded] += count * (sign == 1)
        rows = [tuple(row) for row in histogram.differences.tolist()]
        assert rows == sorted(expected)
        assert histogram.multiplicities.tolist() == [expected[row] for row in rows]
        assert histogram.n_up.tolist() == [ups[row] for row in rows]
        totals = [
            sum(int(c) * x[i] for x, c in zip(a.tolist(), times, strict=True)) for i in range(a.shape[1])
        ]
        assert histogram.observed == tuple(totals)
        moved = [
            o + sum(u * r[i] for r, u in zip(rows, histogram.n_up.tolist(), strict=True))
            for i, o in enumerate(histogram.origin)
        ]
        assert tuple(moved) == histogram.observed
        assert histogram.n_examples == int(times.sum())


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_sums_of_many_rows(dtype: type) -> None:
    a, b = np.random.default_rng(0).integers(-100, 100, size=(2, 5_000, 3), dtype=dtype)
    histogram = DifferenceHistogram.from_pairs(a, b)
    assert histogram.observed == tuple(a.astype(int).sum(axis=0))
    assert histogram.swapped == tuple(b.astype(int).sum(axis=0))
    assert histogram.multiplicities.sum() == histogram.n_discordant == int((a != b).any(axis=1).sum())


def test_the_order_of_examples_changes_nothing() -> None:
    rng = np.random.default_rng(1)
    u, v = rng.integers(0, 4, size=(2, 300, 2))
    order = rng.permutation(300)
    table, shuffled = (CountTable.from_counts(("a", "b"), x, y) for x, y in ((u, v), (u[order], v[order])))
    for field in ("candidate", "baseline", "multiplicities"):
        np.testing.assert_array_equal(getattr(table, field), getattr(shuffled, field))
    assert table.n_examples == 300
    assert table.n_discordant == int((u != v).any(axis=1).sum())
    assert table.totals() == (tuple(u.sum(axis=0)), tuple(v.sum(axis=0)))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64, object])
def test_small_integer_types_do_not_wrap(dtype: type) -> None:
    u, v = np.array([1, 0, 1, 1, 1, 0, 1]), np.array([0, 1, 0, 0, 1, 0, 0])
    assert difference_test(u.astype(dtype), v.astype(dtype)) == difference_test(u, v)


@pytest.mark.parametrize(
    ("values", "error", "said"),
    [
        ([0.5, 1.0], InputTypeError, "float64; the exact test needs integers"),
        (["a", "b"], InputTypeError, "needs integers"),
        ([1, float("nan")], InputTypeError, "needs integers"),
        ([], InputError, "at least one example"),
        ([[[1]]], InputError, "expected (N,) or (N, m)"),
        ([2**62 + 1, 0], InputError, "beyond 2^62"),
        ([2**80, 0], InputError, "beyond 2^62"),
        ([1, 0, 1], InputError, "expected the same shape"),
    ],
)
def test_refuses(values: list[object], error: type[Exception], said: str) -> None:
    with pytest.raises(error) as refusal:
        DifferenceHistogram.from_pairs(np.array(values), np.array([1, 0]))
    assert said in str(refusal.value)


@pytest.mark.parametrize("largest", [1, 1000, 2**40, 2**61])
@pytest.mark.parametrize("n_columns", [3, 70])
def test_rows_that_are_too_long_for_one_integer(largest: int, n_columns: int):
    rng = np.random.default_rng([largest % 97, n_columns])
    rows = rng.integers(-largest, largest, size=(40, n_columns), endpoint=True)[rng.integers(0, 40, size=100)]
    rows[:, 1] = rng.integers(0, 2, size=100) * 2**61
    multiplicities = rng.integers(1, 5, size=100)
    found, totals = group_rows(rows, multiplicities)
    expected, inverse = np.unique(rows, axis=0, return_inverse=True)
    assert found.tolist() == expected.tolist()
    assert totals.tolist() == np.bincount(inverse.ravel(), multiplicities).astype(int).tolist()
    some = multiplicities * (rng.random(100) < 0.3)
    again, both = group_rows(rows, np.stack([multiplicities, some]))
    assert again.tolist() == expected.tolist()
    assert both.tolist() == [totals.tolist(), np.bincount(inverse.ravel(), some).astype(int).tolist()]


@pytest.mark.parametrize("largest", [1, 10**6])
def test_rows_with_several_numbers(largest: int) -> None:
    rows = np.array([[0, 0], [largest, 1], [0, 0], [0, 1]])
    found, totals = group_rows(rows, np.array([[1, 2, 3, 4], [1, 0, 0, 0]]))
    assert found.tolist() == [[0, 0], [0, 1], [largest, 1]]
    assert totals.tolist() == [[4, 4, 2], [1, 0, 0]]
