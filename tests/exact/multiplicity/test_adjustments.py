"""Adjusted p-values against closed testing over all intersections, SciPy and published numbers."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from trackperm.errors import InputError, InputTypeError
from trackperm.exact.multiplicity import ADJUSTMENTS, adjust, adjust_log10

families = st.lists(
    st.one_of(st.floats(1e-300, 1.0), st.sampled_from([0.0, 1e-300, 0.01, 0.02, 0.04, 0.05, 1.0])),
    min_size=1,
    max_size=7,
)
some_method = st.sampled_from(sorted(ADJUSTMENTS))


def closed_test(pvalues: np.ndarray, of_intersection: Callable[[np.ndarray], float]) -> np.ndarray:
    """The greatest p-value of all intersections that a hypothesis is in."""
    m = pvalues.size
    found = np.zeros(m)
    for size in range(1, m + 1):
        for members in map(list, itertools.combinations(range(m), size)):
            found[members] = np.maximum(found[members], of_intersection(pvalues[members]))
    return np.minimum(found, 1.0)


def simes(pvalues: np.ndarray) -> float:
    return float((np.sort(pvalues) * pvalues.size / np.arange(1, pvalues.size + 1)).min())


def bonferroni(pvalues: np.ndarray) -> float:
    return float(pvalues.min() * pvalues.size)


@pytest.mark.parametrize(("method", "of_intersection"), [("hommel", simes), ("holm", bonferroni)])
@given(pvalues=families)
@settings(deadline=None)
def test_against_closed_testing(method, of_intersection, pvalues):
    expected = closed_test(np.array(pvalues), of_intersection)
    np.testing.assert_allclose(adjust(pvalues, method), expected, rtol=1e-14)


@given(families)
@settings(deadline=None)
def test_bonferroni_against_its_definition(pvalues):
    assert adjust(pvalues, "bonferroni").tolist() == [min(p * len(pvalues), 1.0) for p in pvalues]


@given(families, st.sampled_from(["bh", "by"]))
@settings(deadline=None)
def test_false_discovery_rates_against_scipy(pvalues, method):
    expected = false_discovery_control(pvalues, method=method)
    np.testing.assert_allclose(adjust(pvalues, method), expected, rtol=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_hommel_of_many_against_the_step_wise_definition(seed):
    # Hommel (1988): at level a, with j the greatest for which p_(m-j+k) > k a / j for k = 1 .. j, reject
    # what is at most a / j; everything, if no j qualifies.
    rng = np.random.default_rng(seed)
    pvalues = np.sort(rng.random(60) ** rng.choice([1, 3, 8], 60))
    adjusted = adjust(pvalues, "hommel")
    for alpha in (0.01, 0.05, 0.2, 0.6):
        sizes = [j for j in range(1, 61) if (pvalues[60 - j :] > np.arange(1, j + 1) * alpha / j).all()]
        expected = pvalues <= alpha / max(sizes) if sizes else np.ones(60, dtype=bool)
        assert (adjusted <= alpha).tolist() == expected.tolist()


def test_benjamini_hochberg_against_published_values():
    # The toy example of the vignette "Introduction to DiscreteFDR", p.adjust(raw.pvalues, method = "BH").
    raw = [
        0.12476691,
        0.49984639,
        1.0,
        0.01243145,
        0.28849298,
        0.02126871,
        0.68723229,
        0.22135177,
        0.60329543,
    ]
    published = [0.37430072, 0.74976959, 1.0, 0.09570921, 0.51928737, 0.09570921, 0.77313633]
    published += [0.49804147, 0.77313633]
    np.testing.assert_allclose(adjust(raw, "bh"), published, atol=4e-8)


@given(families, some_method)
@settings(deadline=None)
def test_logarithms_agree(pvalues, method):
    positive = np.maximum(pvalues, 1e-300)
    np.testing.assert_allclose(
        10.0 ** adjust_log10(np.log10(positive), method), adjust(positive, method), rtol=1e-11
    )


@pytest.mark.parametrize("method", sorted(ADJUSTMENTS))
def test_no_logarithm_is_lost_below_the_range_of_floats(method):
    adjusted = adjust_log10([-5000.0, -4000.0, -0.1], method)
    assert np.isfinite(adjusted).all()
    assert -5000.0 <= adjusted[0] < -4999.0 < adjusted[1] < -3999.0 < adjusted[2] <= 0.0


@given(families, some_method, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_the_family_does_not_matter(pvalues, method, random):
    shuffled = list(range(len(pvalues)))
    random.shuffle(shuffled)
    adjusted = adjust(pvalues, method)
    assert adjust([pvalues[i] for i in shuffled], method).tolist() == adjusted[shuffled].tolist()


@given(families)
@settings(deadline=None)
def test_rules_that_dominate_others(pvalues):
    slack = 1.0 + 1e-12
    found = {method: adjust(pvalues, method) for method in ADJUSTMENTS}
    assert (found["hommel"] <= found["holm"] * slack).all()
    assert (found["holm"] <= found["bonferroni"] * slack).all()
    assert (found["bh"] <= found["hommel"] * slack).all()
    assert (found["bh"] <= found["by"] * slack).all()
    for adjusted in found.values():
        assert (adjusted >= np.array(pvalues) / slack).all()


@pytest.mark.parametrize("method", sorted(ADJUSTMENTS))
def test_families_of_one_and_of_zero(method):
    assert adjust([0.25], method).tolist() == [0.25]
    assert adjust([], method).tolist() == []


def test_dependence_under_which_rules_are_valid():
    any_dependence = {name for name, rule in ADJUSTMENTS.items() if rule.valid_under == "any dependence"}
    assert any_dependence == {"holm", "bonferroni", "by"}
    assert {name for name, rule in ADJUSTMENTS.items() if rule.controls == "FDR"} == {"bh", "by"}


@pytest.mark.parametrize(
    ("pvalues", "message"),
    [
        ([0.1, float("nan")], "index 1 is nan"),
        ([0.1, -1e-9], "index 1 is -1e-09"),
        ([1.0000001], "index 0 is 1.0000001"),
        ([[0.1]], "one dimension"),
    ],
)
def test_refuses_invalid_pvalues(pvalues, message):
    with pytest.raises(InputError, match=message):
        adjust(pvalues)


@pytest.mark.parametrize("logarithm", [float("nan"), -float("inf"), 1e-9])
def test_refuses_invalid_logarithms(logarithm):
    with pytest.raises(InputError, match="index 1"):
        adjust_log10([-1.0, logarithm])


def test_refuses_other_types_and_names():
    with pytest.raises(InputTypeError, match="expected numbers"):
        adjust(["0.1"])
    with pytest.raises(InputTypeError, match="expected numbers"):
        adjust([True, False])
    with pytest.raises(InputError, match="`method` is 'hochberg'; expected one of `holm`, `hommel`"):
        adjust([0.1], "hochberg")


@pytest.mark.parametrize("method", sorted(ADJUSTMENTS))
def test_all_pairs_of_129_systems_take_seconds(method):
    pvalues = np.random.default_rng(0).random(8256) ** 2
    started = time.process_time()
    adjust(pvalues, method)
    adjust_log10(np.log10(pvalues), method)
    assert time.process_time() - started < 2.0
