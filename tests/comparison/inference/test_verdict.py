"""Rules of verdicts: sign, size, and the sentence that describes them."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.comparisons import accuracy, answers

import trackperm
from trackperm.choices import Alternative
from trackperm.comparison.inference.verdict import MARKERS, decide, decide_sign
from trackperm.errors import InputError

TWO_SIDED = {"alternative": "two-sided", "greater_is_better": True, "alpha": 0.05}


def test_monte_carlo_counts_with_its_whole_interval():
    options = {"method": "monte-carlo", "n_samples": 200}
    near = accuracy(28, 13, **options)
    assert near.pvalue < 0.05 < near.test.interval[1]
    assert near.decision.sign == near.verdict == "undecided"
    far = accuracy(60, 5, **options)
    assert far.decision.sign == far.verdict == "better"


@pytest.mark.parametrize(("better", "verdict"), [(6, "undecided"), (20, "better")])
def test_missing_predictions_that_could_turn_it(better: int, verdict: str):
    baseline = answers([False] * better + [True] * 20)
    candidate = answers([True] * better + [True] * 20).with_columns(
        prediction=pl.when(pl.col("id") >= f"dev-{better + 18:04d}").then(None).otherwise("prediction")
    )
    comparison = trackperm.compare(baseline, candidate, missing="bounds")
    assert comparison.depends_on_missing == (verdict == "undecided")
    assert comparison.decision.sign == comparison.verdict == verdict
    assert ("depends on the missing predictions" in str(comparison.decision)) == comparison.depends_on_missing


@pytest.mark.parametrize(
    ("pvalue", "observed", "alternative", "greater_is_better", "sign"),
    [
        (0.01, 0.1, "two-sided", True, "better"),
        (0.01, 0.1, "two-sided", False, "worse"),
        (0.01, -0.1, "two-sided", True, "worse"),
        (0.01, -0.1, "two-sided", False, "better"),
        (0.05, 0.1, "two-sided", True, "undecided"),
        (0.0499, 0.1, "greater", True, "better"),
        (0.0499, 0.1, "less", True, "worse"),
        (0.0499, -0.1, "less", False, "better"),
        (math.nan, 0.1, "two-sided", True, "undecided"),
        (1.0, 0.0, "two-sided", True, "undecided"),
    ],
)
def test_sign(pvalue: float, observed: float, alternative: Alternative, greater_is_better: bool, sign: str):
    options = {"alternative": alternative, "greater_is_better": greater_is_better, "alpha": 0.05}
    assert decide_sign(pvalue, observed, **options) == sign


@pytest.mark.parametrize(
    ("interval", "equivalent"),
    [
        ((-0.009, 0.009), True),
        ((0.001, 0.009), True),
        ((-0.01, 0.009), False),
        ((-0.009, 0.01), False),
        ((-0.02, 0.02), False),
        ((0.02, 0.03), False),
        ((-0.03, -0.02), False),
        ((-math.inf, math.inf), False),
        ((math.nan, math.nan), False),
        (None, None),
    ],
)
def test_size(interval: tuple[float, float] | None, equivalent: bool | None):
    found = decide(0.5, 0.001, **TWO_SIDED, margin=0.01, interval=interval)
    assert found.equivalent is equivalent
    assert found.word == ("equivalent" if equivalent else "undecided")
    assert decide(0.5, 0.001, **TWO_SIDED, interval=interval).equivalent is None


WITHIN = (0.001, 0.009)
BEYOND = (0.001, 0.011)


@pytest.mark.parametrize(
    ("pvalue", "margin", "interval", "depends_on_missing", "word", "sentence"),
    [
        (0.01, None, None, False, "better", "better"),
        (0.01, 0.01, WITHIN, False, "better", "better, and equivalent within 0.01"),
        (0.01, 0.01, BEYOND, False, "better", "better; not shown to be equivalent within 0.01"),
        (0.01, 0.01, None, False, "better", "better; not shown to be equivalent within 0.01: WHY"),
        (0.3, None, None, False, "undecided", "undecided"),
        (0.3, 0.01, BEYOND, False, "undecided", "undecided; not shown to be equivalent within 0.01"),
        (0.3, 0.01, WITHIN, False, "equivalent", "equivalent within 0.01; the sign is undecided"),
        (0.01, None, None, True, "undecided", "undecided; it depends on the missing predictions"),
    ],
)
def test_sentence_of_the_verdict(
    pvalue: float,
    margin: float | None,
    interval: tuple[float, float] | None,
    depends_on_missing: bool,
    word: str,
    sentence: str,
):
    found = decide(
        pvalue,
        0.005,
        **TWO_SIDED,
        margin=margin,
        interval=interval,
        lack=None if interval else "WHY",
        depends_on_missing=depends_on_missing,
    )
    assert found.word == word
    assert found.marker == MARKERS[found.word]
    assert str(found) == sentence


@given(
    pvalue=st.floats(0, 1),
    observed=st.floats(-1, 1),
    low=st.floats(-1, 1),
    width=st.floats(0, 1),
    margin=st.none() | st.floats(1e-6, 1),
    depends_on_missing=st.booleans(),
)
def test_laws(
    pvalue: float, observed: float, low: float, width: float, margin: float | None, depends_on_missing: bool
):
    interval = (low, low + width)
    options = {"margin": margin, "depends_on_missing": depends_on_missing}
    found = decide(pvalue, observed, **TWO_SIDED, **options, interval=interval)
    # p > alpha alone never says that runs are the same
    if pvalue > 0.05 and margin is None:
        assert found.word == "undecided"
    assert (found.word == "equivalent") == (found.sign == "undecided" and bool(found.equivalent))
    # the size says nothing of the sign, nor the sign of the size
    assert found.sign == decide(pvalue, observed, **TWO_SIDED, depends_on_missing=depends_on_missing).sign
    assert found.equivalent == decide(1.0, observed, **TWO_SIDED, **options, interval=interval).equivalent
    # exchanging the runs exchanges better and worse
    if observed:
        mirrored = decide(pvalue, -observed, **TWO_SIDED, **options, interval=(-interval[1], -interval[0]))
        assert mirrored.equivalent == found.equivalent
        other = {"better": "worse", "worse": "better", "undecided": "undecided"}
        assert mirrored.sign == other[found.sign]


@pytest.mark.parametrize("margin", [0.0, -0.01, math.inf, math.nan])
def test_a_margin_is_a_positive_number(margin: float):
    with pytest.raises(InputError, match=r"`margin` is .*; expected a positive number"):
        decide(0.5, 0.0, **TWO_SIDED, margin=margin, interval=(-1, 1))


@pytest.mark.parametrize("alpha", [0.5, 0.6])
def test_equivalence_needs_a_level_below_one_half(alpha: float):
    with pytest.raises(InputError, match=r"equivalence needs a number between 0 and 0\.5"):
        decide(0.5, 0.0, **{**TWO_SIDED, "alpha": alpha}, margin=0.1)
