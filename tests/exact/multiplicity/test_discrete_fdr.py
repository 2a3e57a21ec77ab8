"""The discrete step-down procedure AHSD: its definition, published numbers, and its exact FDR."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import hypergeom
from support.discrete_laws import outcomes, random_supports, sign_test_pvalues

from trackperm.errors import InputError
from trackperm.exact.multiplicity import AttainablePvalues, adjust_discrete


def fisher(x1: int, x2: int, n1: int = 148, n2: int = 132) -> tuple[float, AttainablePvalues]:
    """Fisher's exact two-sided test: the p-value, and those attainable with the same margins."""
    pmf = hypergeom.pmf(np.arange(x1 + x2 + 1), n1 + n2, x1 + x2, n1)
    pvalues = np.array([pmf[pmf <= q * (1 + 1e-7)].sum() for q in pmf]).clip(max=1.0)
    return float(pvalues[x1]), AttainablePvalues.listed(pvalues)


def test_against_published_values():
    # Doehler, Junge and Durand, "Introduction to DiscreteFDR", section 1: data and summary(DBH.sd.fast).
    tables = zip([4, 2, 2, 14, 6, 9, 4, 0, 1], [0, 0, 1, 3, 2, 1, 2, 2, 2], strict=True)
    pvalues, attainable = zip(*(fisher(x1, x2) for x1, x2 in tables), strict=True)
    published = [0.12476691, 0.49984639, 1.0, 0.01243145, 0.28849298, 0.02126871, 0.68723229]
    np.testing.assert_allclose(pvalues, [*published, 0.22135177, 0.60329543], atol=5e-9)
    adjusted = [0.25630985, 1.0, 1.0, 0.03819796, 0.51482782, 0.03819796, 1.0, 0.47895996, 1.0]
    # Those are of HSD, which keeps all terms: AHSD has the same for the least p-value, and none above them.
    found = adjust_discrete(pvalues, attainable)
    np.testing.assert_allclose(found[[3, 5]], [0.03819796, 0.03819796], atol=5e-9)
    assert (found <= np.array(adjusted) + 5e-9).all()


def family(rng: np.random.Generator, m: int) -> tuple[np.ndarray, list[np.ndarray]]:
    supports = [
        sign_test_pvalues(int(n)) if rng.random() < 0.5 else random_supports(rng, 1, 9)[0]
        for n in rng.integers(1, 40, m)
    ]
    return np.array([support[int(support.size * rng.random() ** 2)] for support in supports]), supports


def by_definition(pvalues: np.ndarray, supports: list[np.ndarray], alpha: float) -> np.ndarray:
    """The rejections from critical values, which are the greatest attainable p-values that qualify."""
    m = pvalues.size
    points = np.unique(np.concatenate(supports))
    laws = np.array([[support[support <= t].max(initial=0.0) for support in supports] for t in points])
    with np.errstate(divide="ignore"):
        terms = np.sort(laws / (1.0 - laws), axis=1)
    n_fit = [int(np.count_nonzero(terms[:, k - 1 :].sum(axis=1) <= alpha * k)) for k in range(1, m + 1)]
    critical = np.append(0.0, points)[n_fit]
    ascending = np.sort(pvalues)
    passed = ascending <= critical
    n_rejected = m if passed.all() else int(np.argmin(passed))
    return pvalues <= (ascending[n_rejected - 1] if n_rejected else -1.0)


@pytest.mark.parametrize("seed", range(25))
def test_against_the_definition_by_critical_values(seed):
    rng = np.random.default_rng(seed)
    pvalues, supports = family(rng, int(rng.integers(1, 30)))
    adjusted = adjust_discrete(pvalues, [AttainablePvalues.listed(support) for support in supports])
    for alpha in (0.0312, 0.1, 0.4):
        assert (adjusted < alpha).tolist() == by_definition(pvalues, supports, alpha).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_exact_fdr_of_independent_tests(seed):
    rng = np.random.default_rng(100 + seed)
    supports = random_supports(rng, 4, 5)
    attainable = [AttainablePvalues.listed(support) for support in supports]
    families, masses = outcomes(supports)
    adjusted = np.array([adjust_discrete(p, attainable) for p in families])
    for alpha in (0.1, 0.3):
        rejected = adjusted < alpha
        # False hypotheses have the p-value that is worst for the FDR: any fixed one is tried.
        for false in ([], [0], [1, 2]):
            true = [i for i in range(4) if i not in false]
            share = rejected[:, true].sum(axis=1) / np.maximum(rejected.sum(axis=1), 1)
            for fixed in {tuple(p[false]) for p in families}:
                here = (families[:, false] == fixed).all(axis=1)
                fdr = (share[here] * masses[here]).sum() / masses[here].sum()
                assert fdr <= alpha + 1e-12


def test_the_exact_fdr_can_come_near_the_level():
    # One sign test on 6 examples attains 1/32; its critical value is the greatest t with t / (1 - t) < alpha.
    six = AttainablePvalues.listed(sign_test_pvalues(6))
    assert adjust_discrete([1 / 32], [six]) == pytest.approx((1 / 32) / (1 - 1 / 32))


@pytest.mark.parametrize("seed", range(10))
def test_continuous_tests_give_the_procedure_known_for_them(seed):
    """Gavrilov, Benjamini and Sarkar (2009)."""
    rng = np.random.default_rng(seed)
    pvalues = rng.random(60) ** rng.choice([1, 4], 60)
    ascending, ranks = np.sort(pvalues), np.arange(1, 61)
    for alpha in (0.05, 0.3):
        critical = alpha * ranks / (60 + 1 - ranks * (1 - alpha))
        n_rejected = int(np.argmin(np.append(ascending < critical, False)))
        assert (adjust_discrete(pvalues, [AttainablePvalues.continuous()] * 60) < alpha).sum() == n_rejected


def test_rounding_errors_do_not_hide_that_pvalues_reach_one_another():
    support = sign_test_pvalues(12)
    exact = [AttainablePvalues.listed(support)] * 8
    noisy = [AttainablePvalues.listed(np.minimum(support * (1 + 1e-13 * k), 1.0)) for k in range(8)]
    pvalues = np.repeat(support[1:3], 4)
    np.testing.assert_allclose(
        adjust_discrete(pvalues * (1 - 1e-13), noisy), adjust_discrete(pvalues, exact), rtol=1e-9
    )


def test_refusals_and_small_families():
    laws = [AttainablePvalues.listed([0.25, 1.0])] * 2
    with pytest.raises(InputError, match="attainable ones of 2 tests"):
        adjust_discrete([0.5], laws)
    with pytest.raises(InputError, match=r"index 1 is 0\.1, below the smallest attainable one, 0\.25"):
        adjust_discrete([0.5, 0.1], laws)
    assert adjust_discrete([], []).tolist() == []
    assert adjust_discrete([1.0, 1.0], laws).tolist() == [1.0, 1.0]
