"""What a comparison could have shown, and the differences that its statistic is made of."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from trackperm.errors import InputError
from trackperm.exact import RationalStatistic, RealStatistic
from trackperm.exact.differences import Differences
from trackperm.exact.power import (
    MinimumDetectableEffect,
    approximate_minimum_detectable_effect,
    detectable_effect,
    minimum_detectable_effect,
    null_standard_deviation,
)

U, N_U, V, N_V = (RationalStatistic.variable(i, 4) for i in range(4))
MEAN = U / N_U - V / N_V
F1 = U.divide(U + N_U / 2, undefined=0) - V.divide(V + N_V / 2, undefined=0)
Integers = npt.NDArray[np.int64]


def pairs(u: npt.ArrayLike, v: npt.ArrayLike) -> tuple[Integers, Integers]:
    """g of a mean: totals and numbers of both runs."""
    u, v = np.asarray(u), np.asarray(v)
    ones = np.ones_like(u)
    return np.stack([u, ones, v, ones], axis=1), np.stack([v, ones, u, ones], axis=1)


SHARE = pairs([1, 0, 1, 0], [0, 1, 1, 0])
COUNTS = np.array([109, 69, 935, 206])


def test_differences_of_a_share():
    found = Differences.of(MEAN, *SHARE, COUNTS)
    assert found is not None
    assert found.values.tolist() == [-1, 0, 1] or found.values.tolist() == [-2, 0, 2]
    assert found.counts.tolist() == [69, 1141, 109]
    assert (found.n, found.n_up, found.n_down, found.n_moved) == (1319, 109, 69, 178)
    assert found.size == found.values[-1]
    assert found.unit * int(found.counts @ found.values) == Fraction(40, 1319)


def test_differences_add_up_to_the_statistic():
    generator = np.random.default_rng(0)
    observed, swapped = pairs(*generator.integers(-9, 10, (2, 40)))
    counts = generator.integers(1, 5, 40)
    found = Differences.of(MEAN, observed, swapped, counts)
    assert found is not None
    assert found.size is None
    assert found.counts.sum() == counts.sum()
    assert found.unit * int(found.counts @ found.values) == MEAN(counts @ observed)


@pytest.mark.parametrize(
    ("u", "v", "one_size"),
    [([2, 0], [0, 1], None), ([2, 0], [0, 2], True), ([2, 3], [0, 3], True), ([3], [3], None)],
)
def test_differences_of_one_size(u: list[int], v: list[int], one_size: bool | None):
    found = Differences.of(MEAN, *pairs(u, v), np.ones(len(u), dtype=np.int64))
    assert found is not None
    assert (found.size is not None) == bool(one_size)


@pytest.mark.parametrize(
    "h",
    [F1, U * U - V * V, RealStatistic.from_rational(MEAN), U - V + 1, U + V],
    ids=["ratio", "square", "real", "shifted", "symmetric"],
)
def test_statistics_that_are_not_sums_of_differences(h: RationalStatistic | RealStatistic):
    generator = np.random.default_rng(0)
    counts = generator.integers(0, 3, (40, 4))
    assert Differences.of(h, counts, counts[:, [2, 3, 0, 1]], np.ones(40, dtype=np.int64)) is None


def test_exact_for_paired_proportions():
    found = detectable_effect(*SHARE, MEAN, COUNTS)
    assert found == minimum_detectable_effect(1319, 178 / 1319)


def test_in_the_units_of_the_statistic():
    """Scores of 0 and 100: the same test, on another scale."""
    observed, swapped = pairs([100, 0, 100, 0], [0, 100, 100, 0])
    found, share = detectable_effect(observed, swapped, MEAN, COUNTS), detectable_effect(*SHARE, MEAN, COUNTS)
    assert found is not None
    assert share is not None
    assert found.exact
    assert found.effect == pytest.approx(100 * share.effect, rel=1e-12)


def test_approximate_for_other_statistics():
    generator = np.random.default_rng(0)
    counts = generator.integers(0, 3, (400, 2)), generator.integers(0, 3, (400, 2))
    observed, swapped = np.hstack(counts), np.hstack(counts[::-1])
    ones = np.ones(400, dtype=np.int64)
    for h in (F1, MEAN + (U - V) / 7):
        sd = null_standard_deviation(observed, swapped, h, ones)
        found = detectable_effect(observed, swapped, h, ones, power=0.9, alpha=0.01, alternative="greater")
        assert found == approximate_minimum_detectable_effect(
            400, sd, 400, power=0.9, alpha=0.01, alternative="greater"
        )
        assert found is not None
        assert not found.exact


def test_nothing_is_discordant():
    found = detectable_effect(SHARE[0], SHARE[0], MEAN, COUNTS)
    assert found == MinimumDetectableEffect(None, 0.8, 0.05, "two-sided", 1319, exact=True)


def test_none_if_the_deviation_is_unknown():
    """At the mean of the null distribution, (0, 0), one divides by 0, and the other is flat."""
    observed, swapped = np.array([[1, -1]]), np.array([[-1, 1]])
    x, y = (RationalStatistic.variable(i, 2) for i in range(2))
    assert detectable_effect(observed, swapped, (x - y) / (x * y), np.array([1])) is None
    assert (
        detectable_effect(observed, swapped, x**3 - y**3 - (x - y) * (x * x + y * y), np.array([1])) is None
    )


def test_refusals():
    with pytest.raises(InputError, match="`power` is 2"):
        detectable_effect(*SHARE, MEAN, COUNTS, power=2.0)
