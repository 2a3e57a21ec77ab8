"""Count table of a comparison, and histogram of the differences of its pairs."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.errors import InputError, InputTypeError
from trackperm.exact.types import IntArray

LARGEST = 2**62
"""Largest absolute value of a count: a sum of two such counts still fits int64."""

FEW_VALUES = 4
"""Largest number of distinct values that are counted by comparison, which beats a histogram for few."""

CHUNK = 2**17
"""Rows, or cells of a histogram, per step: an int64 array of this size (1 MiB) stays in the cache."""

CELLS = 2**16
"""Integers of a block of rows: with their differences (1.5 MiB) they stay in the second-level cache."""

TOGETHER = 64
"""Rows that are added as one: the sums of hundreds of columns use the vector units."""

_LONGEST_SPAN = 2**30


def integer_matrix(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    """Check that `values` are integers of shape (N, m) or (N,) and return them with shape (N, m).

    Arrays keep their integer type and are not copied; their values fit int64. It raises InputTypeError for
    another type, and InputError for a wrong shape, no rows, or a value beyond 2^62.
    """
    array = _of_integers(values, name)
    _check_range(_largest(array), name)
    return array


def _of_integers(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    """Return `values` as :func:`integer_matrix` does, without looking at those of 64 bits."""
    array = np.asarray(values)
    if array.ndim not in (1, 2):
        raise InputError(f"`{name}` has shape {array.shape}; expected (N,) or (N, m)")
    if array.shape[0] == 0:
        raise InputError(f"`{name}` is empty; a test needs at least one example")
    if array.dtype.kind == "O" and all(isinstance(x, numbers.Integral) for x in array.flat):
        _check_range(max(abs(int(x)) for x in array.flat), name)
        array = array.astype(np.int64)
    if array.dtype.kind not in "bui":
        raise InputTypeError(
            f"`{name}` is of type {array.dtype}; the exact test needs integers",
            hint="scale scores of three decimals, say, by `np.rint(1000 * scores).astype(int)`.",
        )
    return array[:, None] if array.ndim == 1 else array


def _largest(array: npt.NDArray[Any]) -> int:
    """Return the largest absolute value of integers, or that of their type if it is short."""
    if array.dtype.itemsize < 8:
        return 1 if array.dtype.kind == "b" else int(np.iinfo(array.dtype).max) + 1
    return max(-int(array.min(initial=0)), int(array.max(initial=0)))


def _check_range(largest: int, name: str) -> None:
    if largest >= LARGEST:
        raise InputError(f"`{name}` contains an integer beyond 2^62 ({largest}); its sums could overflow")


def exact_column_sums(matrix: IntArray, multiplicities: IntArray) -> tuple[int, ...]:
    """Return ``multiplicities @ matrix`` as Python integers, whatever their size."""
    if matrix.shape[0] == 0:
        return (0,) * int(matrix.shape[1])
    largest = max(-int(matrix.min()), int(matrix.max())) if matrix.size else 0
    if largest * int(multiplicities.sum()) < 2**63:
        return tuple((multiplicities @ matrix).tolist())
    return tuple(int(total) for total in multiplicities.astype(object) @ matrix.astype(object))


def group_rows(matrix: IntArray, multiplicities: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct rows of `matrix` in lexicographic order, with their summed multiplicities.

    Of several numbers of each row, shape (W, N), all are summed; the first ones are positive.
    """
    if matrix.shape[0] == 0:
        return matrix, multiplicities
    low = matrix.min(axis=0)
    spans = [int(high) - int(start) + 1 for high, start in zip(matrix.max(axis=0), low, strict=True)]
    strides = [1]
    for span in reversed(spans[1:]):
        strides.append(strides[-1] * span)
    if strides[-1] * spans[0] < 2**62:
        # One mixed-radix integer a row keeps the lexicographic order and is far cheaper to sort.
        keys = (matrix - low) @ np.array(strides[::-1], dtype=np.int64)
        n_cells = strides[-1] * spans[0]
        if n_cells <= max(4 * keys.size, 4096):
            totals = _bincount(keys, multiplicities, n_cells)
            (distinct,) = np.nonzero(np.atleast_2d(totals)[0])
            totals = totals[..., distinct]
        else:
            distinct, inverse = np.unique(keys, return_inverse=True)
            totals = _bincount(inverse, multiplicities, distinct.size)
        rows = np.empty((distinct.size, len(spans)), dtype=np.int64)
        for column, (stride, span) in enumerate(zip(strides[::-1], spans, strict=True)):
            rows[:, column] = distinct // stride % span + low[column]
        return rows, totals
    _, first, inverse = np.unique(_row_keys(matrix), return_index=True, return_inverse=True)
    return matrix[first], _bincount(inverse, multiplicities, first.size)


def _row_keys(matrix: IntArray) -> IntArray:
    """Return sort keys of rows that are too long for one mixed-radix number.

    Values of a column, or the keys so far, are replaced by their ranks whenever they get too long.
    """
    keys, n_keys = np.zeros(len(matrix), dtype=np.int64), 1
    for column in matrix.T:
        span = int(column.max()) - int(column.min()) + 1
        if span > _LONGEST_SPAN:
            column = np.unique(column, return_inverse=True)[1]
            span = len(column)
        if n_keys * span >= 2**62:
            keys = np.unique(keys, return_inverse=True)[1]
            n_keys = len(keys)
        keys = keys * span + (column - column.min())
        n_keys *= span
    return keys


def _bincount(keys: IntArray, multiplicities: IntArray, n_cells: int) -> IntArray:
    if multiplicities.ndim > 1:
        return np.stack([_bincount(keys, each, n_cells) for each in multiplicities])
    if multiplicities.size and multiplicities.min() == multiplicities.max() == 1:
        return np.bincount(keys, minlength=n_cells).astype(np.int64)
    totals = np.zeros(n_cells, dtype=np.int64)
    np.add.at(totals, keys, multiplicities)
    return totals


def checked_multiplicities(values: npt.ArrayLike | None, n_rows: int) -> IntArray:
    """Return the number of examples of each row: the given numbers, or one each."""
    if values is None:
        return np.ones(n_rows, dtype=np.int64)
    array = integer_matrix(values, "multiplicities")[:, 0].astype(np.int64)
    if array.shape[0] != n_rows or array.min() < 1:
        raise InputError(f"`multiplicities` must be {n_rows} integers of at least 1")
    return array


def n_configurations(multiplicities: IntArray) -> int:
    """Return prod_k (c_k + 1), the number of choices of how many pairs of each kind are swapped."""
    return math.prod(c + 1 for c in multiplicities.tolist())


@dataclass(frozen=True)
class CountTable:
    """Table of distinct pairs of counts with multiplicities, tied pairs included.

    A test needs no other data.

    Attributes
    ----------
    names : tuple of str, length p
        Names of the counts.
    candidate, baseline : ndarray of int64, shape (K, p)
        Counts of the two runs, one row for each distinct pair, in lexicographic order.
    multiplicities : ndarray of int64, shape (K,)
        Number of examples with each pair of counts.
    """

    names: tuple[str, ...]
    candidate: IntArray
    baseline: IntArray
    multiplicities: IntArray

    @classmethod
    def from_counts(
        cls,
        names: tuple[str, ...],
        candidate: npt.ArrayLike,
        baseline: npt.ArrayLike,
        multiplicities: npt.ArrayLike | None = None,
    ) -> CountTable:
        """Group the counts of N examples, arrays of shape (N, p).

        Raises
        ------
        InputTypeError, InputError
            If the arrays are not integers of one shape, or are empty.
        """
        u, v = integer_matrix(candidate, "candidate"), integer_matrix(baseline, "baseline")
        if u.shape != v.shape or u.shape[1] != len(names):
            raise InputError(
                f"`candidate` has shape {u.shape} and `baseline` {v.shape}; expected (N, {len(names)}) twice"
            )
        rows, totals = group_rows(
            np.hstack([u, v]).astype(np.int64), checked_multiplicities(multiplicities, u.shape[0])
        )
        p = len(names)
        return cls(names, rows[:, :p], rows[:, p:], totals)

    @property
    def n_examples(self) -> int:
        """Number of examples, tied ones included."""
        return int(self.multiplicities.sum())

    @property
    def n_discordant(self) -> int:
        """Number of examples whose counts differ between the runs."""
        return int(self.multiplicities[(self.candidate != self.baseline).any(axis=1)].sum())

    def totals(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the count totals of the candidate and of the baseline."""
        return (
            exact_column_sums(self.candidate, self.multiplicities),
            exact_column_sums(self.baseline, self.multiplicities),
        )


@dataclass(frozen=True)
class DifferenceHistogram:
    """Histogram of the differences a_n - b_n in S = sum_n (b_n + B_n (a_n - b_n)).

    The B_n are fair coins.

    A pair and its mirror image have the same law up to a shift of the origin, so differences are folded:
    the first non-zero entry of each is positive. Then S = origin + sum_k sum_{j <= c_k} B_kj e_k.

    Attributes
    ----------
    differences : ndarray of int64, shape (K, m)
        Distinct folded non-zero differences e_k.
    multiplicities : ndarray of int64, shape (K,)
        How many pairs have each, c_k.
    origin : tuple of int, length m
        Value of S when all B are 0.
    observed, swapped : tuple of int, length m
        The sums of a_n (the observed value of S) and of b_n.
    n_examples : int
        Number of pairs N, identical ones included.
    n_up : ndarray of int64, shape (K,)
        Number of the c_k pairs with a_n - b_n = e_k; the others have -e_k. The observed value of S is
        origin + sum_k n_up_k e_k.
    """

    differences: IntArray
    multiplicities: IntArray
    origin: tuple[int, ...]
    observed: tuple[int, ...]
    swapped: tuple[int, ...]
    n_examples: int
    n_up: IntArray

    @classmethod
    def from_pairs(
        cls, observed: npt.ArrayLike, swapped: npt.ArrayLike, multiplicities: npt.ArrayLike | None = None
    ) -> DifferenceHistogram:
        """Fold and group the differences of N pairs.

        `observed` and `swapped`, shape (N, m) or (N,), are a_n = g(u_n, v_n) and b_n = g(v_n, u_n);
        `multiplicities` is the number of times that each pair occurs. Arrays that are not integers of one
        shape, are empty, or overflow are refused.
        """
        a, b = _of_integers(observed, "observed"), _of_integers(swapped, "swapped")
        if a.shape != b.shape:
            raise InputError(
                f"`observed` has shape {a.shape} and `swapped` {b.shape}; expected the same shape"
            )
        counts = None if multiplicities is None else checked_multiplicities(multiplicities, a.shape[0])
        folded, (folded_totals, n_up), swap_total = _folded_differences(a, b, counts)
        up, down = exact_column_sums(folded, n_up), exact_column_sums(folded, folded_totals - n_up)
        origin = tuple(s - d for s, d in zip(swap_total, down, strict=True))
        return cls(
            differences=folded,
            multiplicities=folded_totals,
            origin=origin,
            observed=tuple(x + d for x, d in zip(origin, up, strict=True)),
            swapped=swap_total,
            n_examples=a.shape[0] if counts is None else int(counts.sum()),
            n_up=n_up,
        )

    @property
    def n_discordant(self) -> int:
        """Number of pairs that a swap changes."""
        return int(self.multiplicities.sum())


def _folded_differences(
    observed: npt.NDArray[Any], swapped: npt.NDArray[Any], multiplicities: IntArray | None
) -> tuple[IntArray, IntArray, tuple[int, ...]]:
    """Return the folded rows of ``observed - swapped``, their numbers, and the sums of `swapped`.

    The rows are distinct, in lexicographic order. The numbers, shape (2, K), are those of all pairs of a row,
    and of those with this sign. The arrays are read once, in blocks that stay in the cache. Columns that are
    copies or negatives of earlier ones, such as the counts of the other run, are left out of the grouping.
    """
    n_rows, n_columns = observed.shape
    step = max(CELLS // n_columns, 1)
    totals = [0] * n_columns
    like: set[tuple[int, int, int]] | None = None
    parts: list[tuple[IntArray, IntArray]] = []
    is_grouped = n_rows <= step
    for first in range(0, n_rows, step):
        a, b = observed[first : first + step], swapped[first : first + step]
        largest = _largest(b)
        for name, size in (("observed", _largest(a)), ("swapped", largest)):
            _check_range(size, name)
        counts = None if multiplicities is None else multiplicities[first : first + step]
        totals = [t + x for t, x in zip(totals, _column_sums(b, largest, counts), strict=True)]
        differences = np.empty((n_columns, a.shape[0]), dtype=np.int64)
        np.subtract(a.T, b.T, out=differences, dtype=np.int64, casting="unsafe")
        like = {
            (i, j, sign)
            for i, j, sign in (_likenesses(differences) if like is None else like)
            if (np.array_equal if sign > 0 else _are_opposite)(differences[i], differences[j])
        }
        source = {i: (j, sign) for i, j, sign in like}
        free = [i for i in range(n_columns) if i not in source]
        columns = differences[free] if source else differences
        counted = _counted(columns, counts)
        is_grouped &= counted is not None
        rows, numbers = _folded(columns, counts) if counted is None else counted
        parts.append((_with_copies(rows, free, source), numbers))
    rows, numbers = parts[0]
    if not is_grouped:
        rows = np.concatenate([rows for rows, _ in parts])
        numbers = np.concatenate([numbers for _, numbers in parts], axis=1)
        rows, numbers = group_rows(rows[:, free], numbers)
        rows = _with_copies(rows, free, source)
    return rows, numbers, tuple(totals)


def _with_copies(rows: IntArray, free: list[int], source: dict[int, tuple[int, int]]) -> IntArray:
    """Return rows with the columns that are a sign times another one."""
    if not source:
        return rows
    found = np.empty((rows.shape[0], len(free) + len(source)), dtype=np.int64)
    found[:, free] = rows
    for i, (j, sign) in source.items():
        found[:, i] = sign * found[:, j]
    return found


def _counted(columns: IntArray, counts: IntArray | None) -> tuple[IntArray, IntArray] | None:
    """Return the distinct folded rows of columns, and their numbers; None if too many are possible."""
    reach = np.maximum(columns.max(axis=1), -columns.min(axis=1)).tolist()
    spans = [2 * largest + 1 for largest in reach]
    n_cells, middle = math.prod(spans), math.prod(spans) // 2
    if n_cells > CELLS:
        return None
    # A row and its negative are as far from the middle, and a row with a positive leading entry is beyond it.
    keys = columns[0] + reach[0]
    for column, largest, span in zip(columns[1:], reach[1:], spans[1:], strict=True):
        keys *= span
        keys += column + largest
    cells = np.bincount(keys, minlength=n_cells) if counts is None else _bincount(keys, counts, n_cells)
    up, down = cells[middle + 1 :], cells[:middle][::-1]
    numbers = np.stack([up + down, up])
    (present,) = numbers[0].nonzero()
    places = np.unravel_index(present + (middle + 1), spans)
    return np.stack(places, axis=1) - np.array(reach), numbers[:, present]


def _folded(columns: IntArray, counts: IntArray | None) -> tuple[IntArray, IntArray]:
    """Return the folded rows of columns that are not all 0, and their numbers."""
    sign: IntArray = np.sign(columns[(columns != 0).argmax(axis=0), np.arange(columns.shape[1])])
    (kept,) = sign.nonzero()
    numbers: IntArray = np.stack([np.abs(sign), np.maximum(sign, 0)])
    if counts is not None:
        numbers *= counts
    return (sign * columns).T[kept], numbers[:, kept]


def _are_opposite(one: IntArray, other: IntArray) -> bool:
    return not (one + other).any()


def _column_sums(matrix: npt.NDArray[Any], largest: int, counts: IntArray | None) -> tuple[int, ...]:
    """Return the exact sums of columns whose entries are at most `largest`, with counts if there are any."""
    n_rows, n_columns = matrix.shape
    if counts is not None or largest * n_rows >= LARGEST:
        ones = np.ones(n_rows, dtype=np.int64)
        return exact_column_sums(matrix.astype(np.int64), ones if counts is None else counts)
    # Sums over long rows are many times faster than those over short ones.
    n_long = n_rows // TOGETHER
    long = matrix[: n_long * TOGETHER].reshape(n_long, TOGETHER * n_columns).sum(axis=0, dtype=np.int64)
    rest = matrix[n_long * TOGETHER :].sum(axis=0, dtype=np.int64)
    return tuple((long.reshape(-1, n_columns).sum(axis=0) + rest).tolist())


def _likenesses(differences: IntArray) -> set[tuple[int, int, int]]:
    """Return (i, j, sign) where a weighted sum says that column i may be sign times an earlier column j.

    `differences` has a row for each column.
    """
    earlier: dict[int, int] = {}
    found = set()
    # Sums wrap around: equal columns have equal ones, opposite columns opposite ones.
    for i, total in enumerate((differences @ np.arange(1, differences.shape[1] + 1)).tolist()):
        opposite = (2**63 - total) % 2**64 - 2**63
        if total in earlier:
            found.add((i, earlier[total], 1))
        elif opposite in earlier:
            found.add((i, earlier[opposite], -1))
        else:
            earlier[total] = i
    return found


def signed_differences(
    candidate: npt.NDArray[Any], baseline: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], IntArray]:
    """Return the distinct values of ``candidate - baseline``, ascending, and how often each occurs.

    The arrays have integers or booleans of any width, or Python integers (dtype object). It works in chunks,
    so it needs little memory beyond the inputs if the values are close together.
    """
    own, other = _bounds(candidate), _bounds(baseline)
    low, high = own[0] - other[1], own[1] - other[0]
    wide = max(-own[0], own[1], -other[0], other[1]) >= LARGEST
    if wide or high - low >= CHUNK:
        dtype = object if wide else np.int64
        differences = np.subtract(candidate, baseline, dtype=dtype, casting="unsafe")
        values, found = np.unique(differences, return_counts=True)
        return values, found.astype(np.int64)
    n_possible = high - low + 1
    chunks = (
        np.subtract(
            candidate[first : first + CHUNK],
            baseline[first : first + CHUNK],
            dtype=np.int64,
            casting="unsafe",
        )
        for first in range(0, candidate.size, CHUNK)
    )
    if n_possible > FEW_VALUES:
        counts: IntArray = np.zeros(n_possible, dtype=np.int64)
        for chunk in chunks:
            chunk -= low
            counts += np.bincount(chunk, minlength=n_possible)
    else:
        numbers = [0] * n_possible
        for chunk in chunks:
            for place in range(1, n_possible):
                numbers[place] += int(np.count_nonzero(chunk == low + place))
        numbers[0] = candidate.size - sum(numbers)
        counts = np.array(numbers)
    (present,) = counts.nonzero()
    return present + low, counts[present]


def _bounds(values: npt.NDArray[Any]) -> tuple[int, int]:
    """Return bounds of integers: exact if one is negative, else 0 and less than twice the largest."""
    bits = int(np.bitwise_or.reduce(values))
    return (0, bits) if bits >= 0 else (int(np.minimum.reduce(values)), int(np.maximum.reduce(values)))
