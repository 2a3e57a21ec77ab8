"""Bases of the lattice that differences span: the same lattice, and short vectors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from trackperm.exact import DifferenceHistogram
from trackperm.exact.engines.lattice.lattice import echelon_basis, reduce_rank


def orthogonalised(gram: np.ndarray) -> tuple[list[list[Fraction]], list[Fraction]]:
    """Gram-Schmidt coefficients and squared lengths, by the recursion of Cholesky's method."""
    n = len(gram)
    mu = [[Fraction(0)] * n for _ in range(n)]
    norms: list[Fraction] = []
    for i in range(n):
        for j in range(i):
            rest = sum(mu[i][k] * mu[j][k] * norms[k] for k in range(j))
            mu[i][j] = (Fraction(int(gram[i, j])) - rest) / norms[j]
        norms.append(Fraction(int(gram[i, i])) - sum(mu[i][k] ** 2 * norms[k] for k in range(i)))
    return mu, norms


@pytest.mark.parametrize("seed", range(12))
def test_bases_are_reduced_in_the_sense_of_lenstra_lenstra_and_lovasz(seed: int) -> None:
    """Coefficients of at most 1/2, and lengths that shrink by at most 3/4 - mu^2 from one row to the next."""
    rng = np.random.default_rng(seed)
    rank, n = int(rng.integers(2, 6)), 40
    generators = rng.integers(-9, 10, (rank, rank + 2))
    differences = rng.integers(-30, 31, (n, rank)) @ generators
    counts = rng.integers(1, 50, n)
    histogram = DifferenceHistogram.from_pairs(differences, 0 * differences, multiplicities=counts)
    lattice = reduce_rank(histogram)
    assert (lattice.coordinates @ np.array(lattice.basis).T == histogram.differences).all()
    gram = (lattice.coordinates.T * histogram.multiplicities) @ lattice.coordinates
    mu, norms = orthogonalised(gram)
    for i in range(1, lattice.rank):
        assert max(map(abs, mu[i][:i])) <= Fraction(1, 2)
        assert norms[i] >= (Fraction(3, 4) - mu[i][i - 1] ** 2) * norms[i - 1]


def test_the_basis_does_not_depend_on_the_order_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    rows = (rng.integers(-30, 31, (200, 3)) @ rng.integers(-9, 10, (3, 5))).astype(object)
    found = echelon_basis(rows)
    assert found is not None
    assert found == echelon_basis(rng.permutation(rows))
    assert all(line[pivot] > 0 for line, pivot in zip(*found, strict=True))


def test_integers_beyond_64_bits_do_not_overflow() -> None:
    """Products of such entries have 120 bits."""
    rng = np.random.default_rng(1)
    differences = rng.integers(-(2**60), 2**60, (2, 3)).repeat(2, axis=0)
    histogram = DifferenceHistogram.from_pairs(differences, 0 * differences)
    lattice = reduce_rank(histogram)
    assert lattice.rank == 2
    back = lattice.coordinates.astype(object) @ np.array(lattice.basis, dtype=object).T
    assert (back == histogram.differences).all()
