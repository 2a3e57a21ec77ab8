"""Lattice that the differences span: a short basis, and the points that swaps reach.

The random part of S is sum_k sum_j B_kj e_k, so S moves on a lattice of rank r <= m only. The exact engines
use its coordinates X = sum_k sum_j B_kj x_k, with e_k = basis @ x_k: for F1 by four counts r = 2, for
accuracy r = 1. The Hermite form finds a basis; lattice reduction in the covariance metric of X then makes the
box that contains the mass small.

A form D(x) = D_0 + d . x of the lattice point X = sum_k sum_j B_kj x_k has values between
D_0 + sum_k c_k min(d . x_k, 0) and D_0 + sum_k c_k max(d . x_k, 0), both attained. Points with a form outside
its range have probability 0 exactly, such as those where a count, or the divisor of F1, would be negative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.exact.counts import LARGEST, DifferenceHistogram, exact_column_sums
from trackperm.exact.distributions.characteristic import SwapDistribution
from trackperm.exact.types import IntArray

IntMatrix = list[list[int]]
Integers = npt.NDArray[Any]
"""Python integers in an array of objects."""

Flags = npt.NDArray[np.bool_]

MOST_REDUCED = 8
"""Largest rank whose basis is reduced: beyond it no window fits, and drawing swaps needs no basis."""

SPANNING = 32
"""Number of rows from which a basis is found first."""


@dataclass(frozen=True)
class Lattice:
    """A basis of the lattice that the differences span.

    Attributes
    ----------
    basis : tuple of tuple of int, shape (m, r)
        Columns are basis vectors; r is the rank.
    coordinates : ndarray of int64, shape (K, r)
        e_k = basis @ coordinates[k]; up to rank 8, no smaller lattice contains them all. Beyond rank 8 the
        basis is the standard one, and the coordinates are the e_k themselves.
    """

    basis: tuple[tuple[int, ...], ...]
    coordinates: IntArray

    @property
    def rank(self) -> int:
        """Number of basis vectors r."""
        return int(self.coordinates.shape[1])


def reduce_rank(histogram: DifferenceHistogram) -> Lattice:
    """Find a basis of the lattice of the differences that is short in the covariance metric.

    Of floating-point numbers, sums of such coordinates may exceed 2^62, those of the differences do not, and
    the basis is the standard one then.
    """
    rows = histogram.differences.astype(object)  # Python integers, which do not overflow
    reduced = echelon_basis(rows)
    if reduced is None:
        return _standard_lattice(histogram)
    weights = histogram.multiplicities.astype(object)
    echelon, pivots = reduced
    rank = len(echelon)
    coordinates = _coordinates(rows, echelon, pivots)
    transform, inverse = _short_transform(((coordinates.T * weights) @ coordinates).tolist())
    coordinates = coordinates @ np.array(transform, dtype=object).reshape(rank, rank).T
    if any(size > LARGEST for size in weights @ np.abs(coordinates)):
        return _standard_lattice(histogram)
    basis = tuple(
        tuple(sum(echelon[i][row] * inverse[i][j] for i in range(rank)) for j in range(rank))
        for row in range(rows.shape[1])
    )
    return Lattice(basis, coordinates.astype(np.int64))


def _standard_lattice(histogram: DifferenceHistogram) -> Lattice:
    m = histogram.differences.shape[1]
    identity = tuple(tuple(int(i == j) for j in range(m)) for i in range(m))
    return Lattice(identity, histogram.differences)


def along(lattice: Lattice, gram: IntMatrix, direction: Sequence[int]) -> Lattice:
    """Return a basis whose last vector has a primitive direction, and whose other coordinates are short.

    `gram`, sum_k c_k x_k x_k^T, is the metric of coordinates. Those other than the last one are 0 on the
    direction.
    """
    transform = _annihilating(direction)
    heads, last = transform[:-1], transform[-1]
    metric = [[_product(gram, a, b) for b in heads] for a in heads]
    short = [
        [sum(t * head[j] for t, head in zip(row, heads, strict=True)) for j in range(len(last))]
        for row in _short_transform(metric)[0]
    ]
    for head in reversed(short):
        nearest = math.floor(
            Fraction(_product(gram, last, head), _product(gram, head, head)) + Fraction(1, 2)
        )
        last = [a - nearest * b for a, b in zip(last, head, strict=True)]
    transform = [*short, last]
    inverse = _unimodular_inverse(transform)
    columns = list(zip(*inverse, strict=True))
    basis = tuple(
        tuple(sum(b * x for b, x in zip(row, column, strict=True)) for column in columns)
        for row in lattice.basis
    )
    coordinates = lattice.coordinates.astype(object) @ np.array(transform, dtype=object).T
    if any(abs(int(x)) > LARGEST for x in coordinates.ravel()):
        return lattice
    return Lattice(basis, coordinates.astype(np.int64))


def _annihilating(direction: Sequence[int]) -> IntMatrix:
    """Return a unimodular matrix whose last row is 1 on a primitive vector, and whose other rows are 0."""
    rest = list(direction)
    rows = [[int(i == j) for j in range(len(rest))] for i in range(len(rest))]
    while sum(map(bool, rest)) > 1:
        pivot = min((i for i, x in enumerate(rest) if x), key=lambda i: abs(rest[i]))
        for i, x in enumerate(rest):
            if i != pivot and x:
                quotient = x // rest[pivot]
                rest[i] -= quotient * rest[pivot]
                rows[i] = [a - quotient * b for a, b in zip(rows[i], rows[pivot], strict=True)]
    last = next(i for i, x in enumerate(rest) if x)
    return [*rows[:last], *rows[last + 1 :], [rest[last] * a for a in rows[last]]]


def _product(gram: IntMatrix, left: Sequence[int], right: Sequence[int]) -> int:
    return sum(
        a * g * b for a, line in zip(left, gram, strict=True) for g, b in zip(line, right, strict=True)
    )


def echelon_basis(rows: Integers) -> tuple[IntMatrix, list[int]] | None:
    """Return a row-echelon basis of the integer span of `rows`, and the pivot column of each basis row.

    It is the Hermite normal form, which does not depend on the order of the rows. Return None as soon as
    there are more than `MOST_REDUCED` basis rows.
    """
    basis: dict[int, list[int]] = {}
    # A few rows mostly span what all do, which then only have to be reduced once.
    for rest in (rows[:SPANNING], rows[SPANNING:]):
        while rest.size and (rest := _remainders(rest, basis)).size:
            _insert(basis, rest[0].tolist())
            if len(basis) > MOST_REDUCED:
                return None
    pivots = sorted(basis)
    for pivot in pivots:
        if basis[pivot][pivot] < 0:
            basis[pivot] = [-a for a in basis[pivot]]
    for position, pivot in enumerate(pivots):
        for upper in pivots[:position]:
            quotient = basis[upper][pivot] // basis[pivot][pivot]
            basis[upper] = [a - quotient * b for a, b in zip(basis[upper], basis[pivot], strict=True)]
    return [basis[pivot] for pivot in pivots], pivots


def _insert(basis: dict[int, list[int]], vector: list[int]) -> None:
    """Add a vector to the span of a row-echelon basis, whose rows have their pivots as keys."""
    for column in range(len(vector)):
        if vector[column] == 0:
            continue
        if column not in basis:
            basis[column] = vector
            return
        # Euclid on the pivots: afterwards the basis row has the gcd and `vector` a zero here.
        pivot_row = basis[column]
        while vector[column] != 0:
            quotient = pivot_row[column] // vector[column]
            reduced = [p - quotient * v for p, v in zip(pivot_row, vector, strict=True)]
            pivot_row, vector = vector, reduced
        basis[column] = pivot_row


def _remainders(rows: Integers, basis: dict[int, list[int]]) -> Integers:
    """Reduce rows modulo the basis rows, and return the nonzero remainders."""
    for pivot in sorted(basis):
        vector = np.array(basis[pivot], dtype=object)
        rows = rows - (rows[:, pivot] // vector[pivot])[:, None] * vector
    return np.asarray(rows[(rows != 0).any(axis=1)])


def _coordinates(rows: Integers, echelon: IntMatrix, pivots: Sequence[int]) -> Integers:
    """Solve ``row = sum_i x_i echelon[i]`` for integers x by forward substitution, for every row."""
    found = np.empty((len(rows), len(echelon)), dtype=object)
    for i, (line, pivot) in enumerate(zip(echelon, pivots, strict=True)):
        vector = np.array(line, dtype=object)
        found[:, i] = rows[:, pivot] // vector[pivot]
        rows = rows - found[:, i, None] * vector
    return found


def _short_transform(gram: IntMatrix) -> tuple[IntMatrix, IntMatrix]:
    """Return a unimodular V whose rows are short in the metric `gram`, and its inverse.

    It is found by LLL with delta = 3/4, in integers (de Weger 1989).

    With x' = V x the variance of x'_i is the squared length of row i, so short rows make a small box.
    In two dimensions this is the reduction of Lagrange.

    References
    ----------
    Lenstra, Lenstra and Lovasz (1982), Factoring polynomials with rational coefficients, section 1.
    """
    n = len(gram)
    rows = [[int(i == j) for j in range(n)] for i in range(n)]
    columns = [list(row) for row in rows]  # of the inverse

    def orthogonalise() -> tuple[IntMatrix, list[int]]:
        """Return mu_ij times the determinant of the first j + 1 rows, and the determinants of 0 to n rows."""
        scaled = [[0] * n for _ in range(n)]
        determinants = [1]
        for i in range(n):
            for j in range(i + 1):
                value = _product(gram, rows[i], rows[j])
                for k in range(j):
                    value = determinants[k + 1] * value - scaled[i][k] * scaled[j][k]
                    value //= determinants[k]  # an integer
                scaled[i][j] = value
            determinants.append(scaled[i][i])
        return scaled, determinants

    scaled, determinants = orthogonalise()
    i = 1
    while i < n:
        for j in range(i - 1, -1, -1):
            nearest = (2 * scaled[i][j] + determinants[j + 1]) // (2 * determinants[j + 1])
            if nearest:
                rows[i] = [a - nearest * b for a, b in zip(rows[i], rows[j], strict=True)]
                columns[j] = [a + nearest * b for a, b in zip(columns[j], columns[i], strict=True)]
                scaled, determinants = orthogonalise()
        before, here, after = determinants[i - 1 : i + 2]
        if 4 * (after * before + scaled[i][i - 1] ** 2) >= 3 * here**2:
            i += 1
        else:
            rows[i - 1], rows[i] = rows[i], rows[i - 1]
            columns[i - 1], columns[i] = columns[i], columns[i - 1]
            scaled, determinants = orthogonalise()
            i = max(i - 1, 1)
    return rows, [list(row) for row in zip(*columns, strict=True)]


def _unimodular_inverse(matrix: IntMatrix) -> IntMatrix:
    """Invert an integer matrix of determinant +-1 by Gauss-Jordan elimination over fractions."""
    n = len(matrix)
    work = [
        [Fraction(x) for x in row] + [Fraction(int(i == j)) for j in range(n)] for i, row in enumerate(matrix)
    ]
    for column in range(n):
        pivot = next(i for i in range(column, n) if work[i][column] != 0)
        work[column], work[pivot] = work[pivot], work[column]
        head = work[column][column]
        work[column] = [x / head for x in work[column]]
        for i in range(n):
            if i != column and work[i][column] != 0:
                factor = work[i][column]
                work[i] = [a - factor * b for a, b in zip(work[i], work[column], strict=True)]
    return [[int(x) for x in row[n:]] for row in work]


@dataclass(frozen=True)
class Strip:
    """Points x with least <= constant + slopes . x <= greatest, all integers."""

    constant: int
    slopes: tuple[int, ...]
    least: int
    greatest: int

    def between(self, least: int, greatest: int) -> Strip:
        """Return the part of the strip where the form is between two values, ends included."""
        return replace(self, least=max(least, self.least), greatest=min(greatest, self.greatest))

    def contains(self, points: Sequence[IntArray]) -> Flags:
        """Return flags of the points in the strip, given as r broadcastable coordinate arrays."""
        values = self._values(points, self.slopes)
        return np.asarray((values >= self.least) & (values <= self.greatest), dtype=np.bool_)

    def contains_box(self, ends: Sequence[tuple[int, int]]) -> bool:
        """Whether a box is in the strip, given by the least and the greatest coordinate on each axis."""
        ranges = [sorted((s * low, s * high)) for s, (low, high) in zip(self.slopes, ends, strict=True)]
        low, high = (self.constant + sum(values) for values in zip(*ranges, strict=True))
        return bool(self.least <= low and high <= self.greatest)

    def cut(self, heads: Sequence[IntArray], low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
        """Shorten rows {heads} x [low, high] to the strip; low > high if nothing is left."""
        rest = self._values(heads, self.slopes[:-1])
        slope = self.slopes[-1]
        if slope == 0:
            outside = (rest < self.least) | (rest > self.greatest)
            return low, np.where(outside, low - 1, high)
        # Python's and NumPy's integer divisions round down.
        if slope > 0:
            first, last = -((rest - self.least) // slope), (self.greatest - rest) // slope
        else:
            first, last = -((self.greatest - rest) // -slope), (rest - self.least) // -slope
        return (
            np.minimum(np.maximum(low, first), high + 1).astype(np.int64),
            np.maximum(np.minimum(high, last), low - 1).astype(np.int64),
        )

    def _values(self, points: Sequence[IntArray], slopes: Sequence[int]) -> npt.NDArray[Any]:
        """Return constant + slopes . points, in Python integers where int64 might overflow."""
        size = abs(self.constant) + max(abs(self.least), abs(self.greatest))
        size += sum(abs(s) * int(np.abs(axis).max(initial=0)) for s, axis in zip(slopes, points, strict=True))
        dtype: Any = np.int64 if size < LARGEST else object
        total: Any = np.array(self.constant, dtype=dtype)
        for slope, axis in zip(slopes, points, strict=True):
            if slope:
                total = total + slope * axis.astype(dtype)
        return np.asarray(total)


class Reach:
    """Points of a lattice that satisfy the ranges of all totals.

    Parameters
    ----------
    law : SwapDistribution
        Distribution of the lattice point.
    origin : sequence of int, length m
        Totals at lattice point 0.
    basis : sequence of sequence of int, shape (m, r)
        Totals at x are origin + basis @ x.
    """

    def __init__(self, law: SwapDistribution, origin: Sequence[int], basis: Sequence[Sequence[int]]) -> None:
        self._law = law
        forms: dict[tuple[int, ...], int] = {}
        for constant, row in zip(origin, basis, strict=True):
            slopes = tuple(row)
            # Forms whose slopes agree up to sign have the same strip.
            if any(slopes) and tuple(-s for s in slopes) not in forms:
                forms.setdefault(slopes, constant)
        self.strips = self.strips_of([(constant, slopes) for slopes, constant in forms.items()])

    def strips_of(self, forms: Sequence[tuple[int, tuple[int, ...]]]) -> list[Strip]:
        """Return the strips between the extreme values of affine forms: constants and slopes."""
        constants, slopes = [constant for constant, _ in forms], [steps for _, steps in forms]
        largest = max((abs(s) for steps in slopes for s in steps), default=0)
        largest *= int(np.abs(self._law.coordinates).max(initial=0))
        dtype: Any = np.int64 if largest * max(self._law.rank, 1) < LARGEST else object
        matrix = np.array(slopes, dtype=dtype).reshape(len(forms), self._law.rank)
        steps = self._law.coordinates.astype(dtype) @ matrix.T
        both = np.hstack([np.minimum(steps, 0), np.maximum(steps, 0)])
        sums = exact_column_sums(both, self._law.multiplicities)
        ends = zip(constants, slopes, sums[: len(forms)], sums[len(forms) :], strict=True)
        return [Strip(at, steps, at + fall, at + rise) for at, steps, fall, rise in ends]

    def contains(self, points: Sequence[IntArray]) -> Flags:
        """Return flags of the points within all ranges, given as r broadcastable coordinate arrays."""
        found = np.ones(np.broadcast_shapes(*(axis.shape for axis in points)), dtype=np.bool_)
        for strip in self.strips:
            found &= strip.contains(points)
        return found
