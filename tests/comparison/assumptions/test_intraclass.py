"""Intra-class correlation and its p-value, against their definitions."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.budget import cases

from trackperm.comparison.assumptions.intraclass import Intraclass, sign_cumulants

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def by_definition(values: Floats, clusters: Integers) -> float:
    """One-way analysis of variance, sum by sum; the method of moments for clusters of unequal sizes."""
    groups = [values[clusters == c] for c in np.unique(clusters)]
    n, k = len(values), len(groups)
    mean = sum(values) / n
    between = sum(len(group) * (np.mean(group) - mean) ** 2 for group in groups) / (k - 1)
    within = sum(sum((x - np.mean(group)) ** 2 for x in group) for group in groups) / (n - k)
    size = (n - sum(len(group) ** 2 for group in groups) / n) / (k - 1)
    return float((between - within) / (between + (size - 1) * within))


def drawn(seed: int, k: int = 12, spread: float = 1.0) -> tuple[Floats, Integers]:
    rng = np.random.default_rng(seed)
    clusters = rng.permutation(np.repeat(np.arange(k), rng.integers(1, 9, k)))
    return rng.normal(3.0, 1.0, clusters.size) + spread * rng.normal(size=k)[clusters], clusters


@pytest.mark.parametrize("seed", range(5))
def test_against_the_analysis_of_variance(seed: int) -> None:
    values, clusters = drawn(seed)
    found = Intraclass.of(values, clusters)
    assert found.icc == pytest.approx(by_definition(values, clusters), rel=1e-9)
    assert found.n_clusters == 12


def test_two_clusters_are_the_fewest() -> None:
    values = np.array([0.0, 1.0, 2.0, 5.0, 7.0])
    found = Intraclass.of(values, np.array([0, 0, 0, 1, 1]))
    assert found.icc == pytest.approx(by_definition(values, np.array([0, 0, 0, 1, 1])))


def test_against_the_f_test_of_scipy() -> None:
    """For equal sizes, MSB / MSW is (1 + (m - 1) ICC) / (1 - ICC)."""
    rng = np.random.default_rng(4)
    groups = rng.normal(size=(20, 6)) + rng.normal(size=(20, 1))
    found = Intraclass.of(groups.ravel(), np.repeat(np.arange(20), 6))
    assert found is not None
    f = stats.f_oneway(*groups).statistic
    assert (1 + 5 * found.icc) / (1 - found.icc) == pytest.approx(f)
    assert found.design_effect == pytest.approx(1 + 5 * found.icc)


def test_the_design_effect_is_that_of_the_variance_of_a_sum() -> None:
    """From covariances, with clusters of any sizes in which any two examples have the correlation rho."""
    sizes, rho = np.array([1, 1, 2, 3, 7, 12]), 0.3
    clusters = np.repeat(np.arange(6), sizes)
    same = clusters[:, None] == clusters[None, :]
    covariance = np.where(same, rho, 0.0) + (1.0 - rho) * np.eye(clusters.size)
    exact = covariance.sum() / clusters.size
    found = Intraclass(6, rho, float(sizes @ sizes) / clusters.size, 1.0)
    assert found.design_effect == pytest.approx(exact)


@pytest.mark.generated
@given(data=st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 3)), min_size=2, max_size=9))
def test_cumulants_against_all_signs(data: list[tuple[int, int]]) -> None:
    values = np.array([value for value, _ in data], dtype=np.float64)
    clusters = np.unique([cluster for _, cluster in data], return_inverse=True)[1]
    sizes = np.bincount(clusters)
    signs = np.array(list(product((-1.0, 1.0), repeat=values.size)))
    q = np.zeros(len(signs))
    for c, size in enumerate(sizes):
        own = clusters == c
        q += ((signs[:, own] @ values[own]) ** 2 - (values[own] ** 2).sum()) / size
    found = sign_cumulants(values, clusters)
    assert q.mean() == pytest.approx(0.0, abs=1e-9)
    assert found[0] == pytest.approx(q.var(), abs=1e-9)
    assert found[1] == pytest.approx(((q - q.mean()) ** 3).mean(), abs=1e-7)


def test_values_without_correlation() -> None:
    values = np.array([1.0, 2.0, 4.0])
    assert Intraclass.of(np.ones(4), np.array([0, 0, 1, 1])) is None, "all values are equal"
    assert Intraclass.of(values, np.zeros(3, dtype=np.int64)) is None, "one cluster"
    assert Intraclass.of(values, np.arange(3)) is None, "each example is one"


def test_scale_and_place_do_not_matter() -> None:
    values, clusters = drawn(9)
    one, other = Intraclass.of(values, clusters), Intraclass.of(1e9 - 1e-3 * values, clusters)
    assert other.icc == pytest.approx(one.icc, rel=1e-3)
    assert other.pvalue == pytest.approx(one.pvalue, rel=1e-2)


def test_clusters_with_more_differences_are_not_correlated() -> None:
    """An F test, which assumes equal variances, rejects every tenth data set at the level 0.005."""
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(40), 10)
    chance = np.where(clusters % 10 == 0, 0.5, 0.01)
    by_f = found = 0
    for _ in range(200):
        values = (rng.random(400) > chance).astype(np.float64) - (rng.random(400) > chance)
        by_f += stats.f_oneway(*values.reshape(40, 10)).pvalue <= 0.005
        alike = Intraclass.of(values, clusters)
        found += alike is not None and alike.pvalue <= 0.005
    assert by_f > 10
    assert found <= 5


def independent(kind: str, rng: np.random.Generator, clusters: Integers) -> Floats:
    """Differences of two runs that are independent of each other, on examples of which some are harder."""
    n, k = clusters.size, int(clusters.max()) + 1
    if kind == "heavy tails":
        return rng.standard_t(2, n)
    chance = {
        "examples": rng.beta(2, 1, n),
        "clusters": rng.beta(0.5, 0.5, k)[clusters],  # where some tell the runs apart far more often
        "effect": np.minimum(rng.beta(2, 1, n), 0.85),
    }[kind]
    better = chance + 0.15 if kind == "effect" else chance
    return (rng.random(n) < better).astype(np.float64) - (rng.random(n) < chance)


@pytest.mark.slow
@pytest.mark.generated
@pytest.mark.parametrize("kind", ["examples", "clusters", "effect", "heavy tails"])
@pytest.mark.parametrize(("k", "size"), [(8, 25), (40, 10), (500, 2)])
def test_noise_of_independent_examples(kind: str, k: int, size: int) -> None:
    """P-values below the level 0.005 of one column are as rare as the level states."""
    rng = np.random.default_rng(k)
    n, few, many = cases(2000), 0, 0
    for _ in range(n):
        clusters = np.repeat(np.arange(k), rng.geometric(1 / size, k))
        found = Intraclass.of(independent(kind, rng, clusters), clusters)
        few += found is not None and found.pvalue <= 0.005
        many += found is not None and found.pvalue <= 0.05
    assert few <= stats.binom.ppf(1 - 1e-4, n, 0.0075), f"{few} of {n} below 0.005"
    assert many <= stats.binom.ppf(1 - 1e-4, n, 0.06), f"{many} of {n} below 0.05"
    assert many >= 0.02 * n, "no test at all would pass as well"
