"""Influences of examples on differences of means over pairs, by definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trackperm.exact.pairwise import Influences, PairMean, compared_pairs, influences_of

N = 40


def case(seed: int) -> tuple[Any, Any, Any, Any]:
    """Return scores of two systems, kinds, strata with pairs of both kinds, and clusters."""
    rng = np.random.default_rng(seed)
    both = np.round(rng.normal(size=(2, N)), 1)
    return both, np.arange(N) % 3 == 0, np.arange(N) // 20, rng.integers(0, 15, N)


def weighted_difference(both: Any, is_left: Any, strata: Any, shares: Any, weights: Any) -> float:
    """Return the weighted mean of the differences of areas, with a weight of each example."""
    found = 0.0
    for stratum, share in enumerate(shares):
        left, right = ((strata == stratum) & side for side in (is_left, ~is_left))
        product = np.outer(weights[left], weights[right])
        areas = [
            np.average(
                (each[left][:, None] > each[right]) + (each[left][:, None] == each[right]) / 2,
                weights=product,
            )
            for each in both
        ]
        found += share * (areas[0] - areas[1])
    return found


def found(both: Any, is_left: Any, strata: Any, shares: Any, clusters: Any = None) -> Influences:
    from fractions import Fraction

    def term(i: Any, j: Any, own: bool, other: bool) -> Any:
        a, b = both[1 - int(own), i], both[1 - int(other), j]
        return 2 * (a > b) + (a == b)

    def is_pair(i: Any, j: Any) -> Any:
        return is_left[i] & ~is_left[j] & (strata[i] == strata[j])

    sums = compared_pairs(term, is_pair, N)
    kinds = is_left.astype(np.int64)
    mean = PairMean(sums, Fraction(1, 2), kinds, strata, np.array(shares))
    return influences_of([mean], clusters=clusters)


def rounded(values: Any, unit: float) -> list[int]:
    return sorted(np.rint(np.asarray(values) / unit).astype(int).tolist())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shares", [(1.0,), (0.25, 0.75)])
@pytest.mark.parametrize("is_clustered", [False, True])
def test_they_are_slopes_by_the_weights_of_examples(
    seed: int, shares: tuple[float, ...], is_clustered: bool
) -> None:
    both, is_left, strata, clusters = case(seed)
    strata = strata if len(shares) > 1 else np.zeros(N, dtype=np.int64)
    units = np.unique(clusters, return_inverse=True)[1] if is_clustered else np.arange(N)
    influences = found(both, is_left, strata, shares, units if is_clustered else None)
    plain = weighted_difference(both, is_left, strata, shares, np.ones(N))
    assert influences.difference == pytest.approx(plain, abs=1e-12)
    n_units, step = int(units.max()) + 1, 1e-6
    slopes = [
        n_units
        * (
            weighted_difference(both, is_left, strata, shares, 1.0 + step * (units == k))
            - weighted_difference(both, is_left, strata, shares, 1.0 - step * (units == k))
        )
        / (2 * step)
        for k in range(n_units)
    ]
    seen = np.repeat(influences.values, influences.counts)
    assert np.abs(np.sort(slopes) - influences.unit * seen).max() <= 0.5001 * influences.unit
    assert influences.unit == pytest.approx(np.std(slopes) / 64, rel=1e-6)
    assert (influences.standard_error is None) == is_clustered
    exact = float(np.sum(np.square(slopes)) ** 2 / np.sum(np.power(slopes, 4)))
    assert influences.n_effective == pytest.approx(exact, rel=1e-2)


def test_equal_systems_have_no_influences() -> None:
    both, is_left, strata, _ = case(0)
    influences = found(np.stack([both[0], both[0]]), is_left, strata, (0.5, 0.5))
    assert (influences.unit, influences.values, influences.counts) == (0.0, (0,), (N,))
    assert influences.n_effective == 0.0
