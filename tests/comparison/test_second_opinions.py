"""Second opinions, against SciPy on the expanded examples and numbers of statsmodels.

The studentised permutation test itself is tested in `exact/engines/test_studentized.py`.
"""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from scipy import stats
from support.comparisons import accuracy, numbered
from support.specs import load

import trackperm
from trackperm import report
from trackperm.choices import Alternative
from trackperm.comparison import Comparison
from trackperm.comparison.second_opinions import STUDENTIZED, SecondOpinion, second_opinions
from trackperm.exact import CountTable
from trackperm.exact.engines.studentized import studentized_test
from trackperm.report import description, text
from trackperm.report.formatting import escape_markdown

T, RANKS, SIGNS, MCNEMAR, CHI2, CORRECTED, CLUSTERED = (
    "paired t-test",
    "Wilcoxon signed-rank test",
    "sign test",
    "McNemar's test, exact",
    "McNemar's test, chi-squared",
    "McNemar's test, chi-squared with continuity correction",
    "clustered standard error",
)
SHARE = "counts: {correct: prediction == label, n: 1}\nscore: correct / n\n"


FRAME = pl.DataFrame({"id": range(20), "label": [0, 1] * 10, "prediction": [1, 1, 0, 1] * 5})
OTHER = FRAME.with_columns(prediction=pl.Series([0, 1, 0, 0] * 5))


def opinions(comparison: Comparison) -> dict[str, SecondOpinion]:
    found = second_opinions(comparison.statistic, comparison.count_table, comparison.test, comparison.alpha)
    assert [opinion.name for opinion in found] == [T, RANKS, SIGNS, MCNEMAR, CHI2, CORRECTED, CLUSTERED]
    return {opinion.name: opinion for opinion in found}


def mean(baseline: npt.ArrayLike, candidate: npt.ArrayLike, **options: Any) -> Comparison:
    return trackperm.compare(numbered(score=baseline), numbered(score=candidate), "mean", **options)


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
@pytest.mark.parametrize("n", [13, 60, 2000])
def test_against_scipy(n: int, alternative: Alternative):
    """Scores of one decimal: many ties in size, and zeros."""
    generator = np.random.default_rng(n)
    baseline, candidate = generator.integers(0, 21, (2, n)) / 10
    candidate = np.minimum(candidate + generator.integers(0, 3, n) / 10, 2.0)
    found = opinions(mean(baseline, candidate, alternative=alternative))
    differences = np.rint(10 * candidate) - np.rint(10 * baseline)
    expected = stats.ttest_1samp(differences, 0, alternative=alternative).pvalue
    assert found[T].pvalue == pytest.approx(expected, rel=1e-10)
    assert found[CLUSTERED].pvalue == pytest.approx(expected, rel=1e-6)
    expected = stats.wilcoxon(
        differences[differences != 0], alternative=alternative, correction=False, method="asymptotic"
    ).pvalue
    assert found[RANKS].pvalue == pytest.approx(expected, rel=1e-10)
    up, down = int((differences > 0).sum()), int((differences < 0).sum())
    expected = stats.binomtest(up, up + down, alternative=alternative).pvalue
    assert found[SIGNS].pvalue == pytest.approx(expected, rel=1e-12)
    for name in (MCNEMAR, CHI2, CORRECTED):
        assert found[name].pvalue is None
        assert "it needs differences of one size" in found[name].sentence


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_few_untied_differences_are_ranked_exactly(alternative: Alternative):
    """Darwin's maize, in eighths of an inch (Fisher 1935; exact p 1726/2^15), without ties."""
    maize = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48])
    comparison = mean(np.zeros(15, dtype=int), maize, alternative=alternative)
    expected = stats.wilcoxon(maize, alternative=alternative, method="exact").pvalue
    found = opinions(comparison)
    assert found[RANKS].pvalue == pytest.approx(expected, rel=1e-12)
    if alternative == "two-sided":
        assert comparison.pvalue == pytest.approx(1726 / 2**15)
        # Fisher's t of 2.148 with 14 degrees of freedom
        assert found[T].pvalue == pytest.approx(2 * stats.t.sf(2.148, 14), rel=1e-3)
        assert found[T].overturns
        assert found[T].sentence == (
            "p = 0.0497 beside the exact p = 0.0527, on the other side of 0.05. It assumes that the mean"
            " of 15 differences, 15 of them not 0, is normally distributed, which is doubtful with so few."
        )


def test_mcnemar_against_statsmodels():
    """Results from statsmodels 0.15.0, mcnemar([[935, 109], [69, 206]])."""
    found = opinions(accuracy(109, 69, 935, 206))
    assert found[MCNEMAR].pvalue == pytest.approx(0.0033497141805529586, rel=1e-12)
    assert found[CHI2].pvalue == pytest.approx(0.002716446662708766, rel=1e-12)
    assert found[CORRECTED].pvalue == pytest.approx(0.0034648329435355307, rel=1e-12)
    assert not found[MCNEMAR].differs
    assert found[CHI2].differs
    assert not found[CHI2].overturns


@pytest.mark.parametrize(("better", "worse"), [(10, 3), (3, 10), (7, 7), (1, 0)])
def test_one_sided_mcnemar_corrects_towards_the_middle(better: int, worse: int):
    n = better + worse
    found = opinions(accuracy(better, worse, 3, 3, alternative="greater"))
    assert found[MCNEMAR].pvalue == pytest.approx(stats.binom.sf(better - 1, n, 0.5))
    z = (better - 0.5 - n / 2) / np.sqrt(n / 4)
    assert found[CORRECTED].pvalue == pytest.approx(stats.norm.sf(z))
    found = opinions(accuracy(better, worse, 3, 3, alternative="less"))
    assert found[MCNEMAR].pvalue == pytest.approx(stats.binom.cdf(better, n, 0.5))
    z = (better + 0.5 - n / 2) / np.sqrt(n / 4)
    assert found[CORRECTED].pvalue == pytest.approx(stats.norm.cdf(z))


def test_the_continuity_correction_stops_at_0():
    found = opinions(accuracy(7, 7, 3, 3))
    assert found[CORRECTED].pvalue == found[CHI2].pvalue == 1.0


def clustered_runs() -> tuple[pl.DataFrame, pl.DataFrame]:
    generator = np.random.default_rng(11)
    document = generator.integers(0, 37, 240)
    effect = generator.normal(size=37)[document]
    baseline = (generator.random(240) < 0.55).astype(int)
    candidate = (generator.random(240) < 1 / (1 + np.exp(-(0.5 + effect)))).astype(int)
    common = {"id": range(240), "label": np.ones(240, int), "doc": [f"d{i}" for i in document]}
    return pl.DataFrame({**common, "prediction": baseline}), pl.DataFrame({**common, "prediction": candidate})


def test_clustered_standard_error_against_statsmodels(tmp_path: Path):
    """From statsmodels 0.15.0: OLS of the differences on a constant, cov_type="cluster", use_t=True."""
    comparison = trackperm.compare(*clustered_runs(), load(tmp_path, SHARE + "cluster: doc\n"))
    found = opinions(comparison)
    assert found[CLUSTERED].pvalue == pytest.approx(0.77090616, rel=1e-7)
    assert "Its standard error 0.0568 assumes 37 independent clusters" in found[CLUSTERED].sentence
    assert "with fewer than 40 it is usually too small" in found[CLUSTERED].sentence
    assert "for each" not in found[T].sentence
    assert found[MCNEMAR].pvalue is None


@pytest.mark.parametrize("statistic", ["f1", "mcc", "accuracy"])
def test_standard_error_against_the_jackknife(statistic: str):
    generator = np.random.default_rng(5)
    label = generator.integers(0, 2, 400)
    frames = []
    for rate in (0.3, 0.2):
        wrong = generator.random(400) < rate
        frames.append(numbered(label=label, prediction=np.where(wrong, 1 - label, label)))
    comparison = trackperm.compare(*frames, statistic)
    found = opinions(comparison)[CLUSTERED]
    table = comparison.count_table
    if not hasattr(comparison.statistic.h, "values"):
        assert found.pvalue is None
        return
    observed, _ = comparison.statistic.pairs(table.candidate, table.baseline)
    left_out = comparison.statistic.h.values(table.multiplicities @ observed - observed)
    centred = left_out - table.multiplicities @ left_out / 400
    error = np.sqrt(399 / 400 * table.multiplicities @ centred**2)
    expected = 2 * stats.t.sf(abs(comparison.difference) / error, 399)
    assert found.pvalue == pytest.approx(expected, rel=0.1)


def test_ratios_have_no_differences():
    found = opinions(trackperm.compare(FRAME, OTHER, "f1"))
    for name in (T, RANKS, SIGNS, MCNEMAR, CHI2, CORRECTED):
        assert found[name].pvalue is None
        assert found[name].sentence == (
            "Does not apply: `f1` is not a mean of one difference for each of the examples."
        )
    assert "delta method" in found[CLUSTERED].sentence


def test_strata_are_not_ignored(tmp_path: Path):
    generator = np.random.default_rng(2)
    baseline, candidate = (
        numbered(
            label=["a"] * 10 + ["b"] * 80,
            prediction=np.where(generator.random(90) < rate, "c", ["a"] * 10 + ["b"] * 80),
        )
        for rate in (0.5, 0.3)
    )
    comparison = trackperm.compare(baseline, candidate, load(tmp_path, SHARE + "strata: label\n"))
    found = opinions(comparison)
    assert "has weighted strata" in found[T].sentence
    # the variance of a mean of two means, each with the divisor of its stratum
    moved = (candidate["prediction"] == candidate["label"]).cast(int) - (
        baseline["prediction"] == baseline["label"]
    ).cast(int)
    d = moved.to_numpy()
    variance = sum(part.var() / part.size for part in (d[:10], d[10:])) / 4 * 90 / 89
    expected = 2 * stats.t.sf(abs(comparison.difference) / np.sqrt(variance), 89)
    assert found[CLUSTERED].pvalue == pytest.approx(expected, rel=1e-6)


def test_one_large_difference_is_named():
    found = opinions(mean(np.zeros(50, dtype=int), [1000, *range(1, 50)]))
    assert "doubtful because one is 96 % of the sum of squares" in found[T].sentence


@pytest.mark.parametrize(
    ("comparison", "reasons"),
    [
        (
            lambda: accuracy(0, 0, 3, 3),
            {T: "all 6 differences are equal", RANKS: "all differences are 0"},
        ),
        (lambda: accuracy(5, 0), {T: "all 5 differences are equal", CLUSTERED: "contribute the same"}),
        (lambda: accuracy(1, 0), {CLUSTERED: "it needs at least two examples"}),
    ],
)
def test_tests_that_do_not_apply(comparison: Any, reasons: dict[str, str]):
    found = opinions(comparison())
    for name, reason in reasons.items():
        assert found[name].pvalue is None
        assert reason in found[name].sentence


def test_multiplicities_count_examples():
    """A million examples in a few rows."""
    comparison = accuracy(109, 69, 935, 206)
    table = comparison.count_table
    many = CountTable(table.names, table.candidate, table.baseline, 1000 * table.multiplicities)
    found = {o.name: o for o in second_opinions(comparison.statistic, many, comparison.test)}
    z = (109_000 - 69_000) / np.sqrt(178_000)
    assert found[CHI2].pvalue == pytest.approx(2 * stats.norm.sf(z), rel=1e-9, abs=1e-300)
    assert found[RANKS].pvalue == pytest.approx(found[CHI2].pvalue, rel=1e-9, abs=1e-300)


def test_monte_carlo_is_not_called_exact():
    found = opinions(accuracy(109, 69, 935, 206, method="monte-carlo", n_samples=2000))
    assert "beside the permutation test's p ≈ " in found[T].sentence
    found = opinions(accuracy(109, 69, 935, 206, mid_p=True))
    assert "beside the permutation test's mid-p = " in found[T].sentence


def test_an_upper_bound_of_an_exact_engine_is_not_called_exact():
    comparison = accuracy(109, 69, 935, 206)
    found = opinions(replace(comparison, test=replace(comparison.test, error_bound=1.0)))
    assert "beside the permutation test's p ≤ " in found[T].sentence


def test_integers_beyond_64_bits_in_sums(tmp_path: Path):
    """Slopes of a third and of a large prime's inverse need a common unit beyond int64."""
    spec = load(tmp_path, "counts: {a: x, b: y}\nscore: a / 2305843009213693951 + b / 3000000019\n")
    generator = np.random.default_rng(0)
    runs = [numbered(x=generator.integers(0, 5, 30), y=generator.integers(0, 5, 30)) for _ in range(2)]
    comparison = trackperm.compare(*runs, spec)
    d = (runs[1]["y"] - runs[0]["y"]).to_numpy() / 3000000019 + (
        runs[1]["x"] - runs[0]["x"]
    ).to_numpy() / 2305843009213693951
    assert opinions(comparison)[T].pvalue == pytest.approx(stats.ttest_1samp(d, 0).pvalue, rel=1e-9)


def test_second_opinions_are_shown_and_do_not_change_the_key():
    comparison = accuracy(9, 2, both=20)
    asked = comparison.with_second_opinions()
    assert (asked.key, asked.signature) == (comparison.key, comparison.signature)
    assert comparison.to_dict()["second_opinions"] == []
    assert asked.to_dict() | {"second_opinions": []} == comparison.to_dict()
    shown = [f"{each.name}: {each.sentence}" for each in asked.second_opinions]
    assert text.lines(asked) == [*text.lines(comparison), *shown]
    page, plain = report.html(asked), report.html(comparison)
    for each in asked.second_opinions:
        assert html.escape(each.sentence).replace("&#x27;", "&#39;") in page
        assert escape_markdown(each.sentence) in description.markdown(asked)
    assert "<h2>Second opinions</h2>" in page
    assert "Second opinions" not in plain


def test_an_underflowed_pvalue_is_not_written_as_0():
    found = opinions(accuracy(5000, 0, both=1))
    assert found[T].pvalue == 0.0
    assert found[T].shown == "< 1e-300"
    assert found[T].sentence.startswith("p < 1e-300 beside the exact p = ")
    assert found[SIGNS].shown == "< 1e-300"


def precision(**options: Any) -> Comparison:
    """Two runs of which one predicts five times as many examples positive."""
    generator = np.random.default_rng(4)
    label = generator.integers(0, 2, 300)
    flagged = [generator.random(300) < share * (0.7 + 0.6 * label) for share in (0.5, 0.1)]
    frames = [numbered(label=label, prediction=each.astype(int)) for each in flagged]
    return trackperm.compare(*frames, "precision", **options)


def studentized(comparison: Comparison) -> SecondOpinion:
    (found,) = comparison.with_studentized().second_opinions
    assert found.name == STUDENTIZED
    return found


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_studentized_describes_its_null_hypothesis(alternative: Alternative):
    comparison = precision(alternative=alternative)
    found, table = studentized(comparison), comparison.count_table
    observed, swapped = comparison.statistic.pairs(table.candidate, table.baseline)
    expected = studentized_test(
        observed, swapped, comparison.statistic.h, table.multiplicities, alternative=alternative
    )
    assert found.pvalue == expected.pvalue
    assert found.sentence == (
        f"p = {found.pvalue:.3g} beside the exact p = {comparison.format_pvalue()}, on the same side of 0.05."
        " It tests equal scores: asymptotically, and in samples of any size if outputs are exchangeable. The"
        " difference after each swap is divided by its own standard error (delta method); all swaps are"
        " enumerated. It does not affect the verdict."
    )


def test_studentized_describes_its_random_swaps(tmp_path: Path):
    spec = load(tmp_path, "counts: {errors: e, words: w}\nscore: errors / words\n")
    generator = np.random.default_rng(0)
    runs = [numbered(e=generator.integers(0, 9, 60), w=generator.integers(9, 30, 60)) for _ in range(2)]
    found = studentized(trackperm.compare(*runs, spec))
    assert re.search(r"; Monte Carlo of 100,000 swaps, 99 % interval 0\.\d+ to 0\.\d+\. ", found.sentence)


@pytest.mark.parametrize("statistic", ["accuracy", "balanced_accuracy", "recall"])
def test_studentized_is_the_same_test_of_a_mean(statistic: str):
    comparison = trackperm.compare(FRAME, OTHER, statistic)
    found = studentized(comparison)
    assert (found.pvalue, found.differs, found.overturns) == (comparison.pvalue, False, False)
    assert f". It is the same test: `{statistic}` is a sum of one difference for each of" in found.sentence


def test_studentized_needs_slopes(tmp_path: Path):
    spec = load(tmp_path, "counts: {a: prediction == label, n: 1}\nscore: max(a, n - a) / n\n")
    frame = pl.DataFrame({"id": range(9), "label": [1] * 9, "prediction": [1, 0, 1] * 3})
    found = studentized(trackperm.compare(frame, frame.with_columns(prediction=1), spec))
    assert found.pvalue is None
    assert found.sentence == (
        "Does not apply: `max` in the statistic is not differentiable everywhere; the studentised test needs"
        " slopes."
    )


def test_studentized_and_second_opinions_in_either_order():
    comparison = precision()
    both = comparison.with_studentized().with_second_opinions()
    assert [each.name for each in both.second_opinions] == [
        *(each.name for each in comparison.with_second_opinions().second_opinions),
        STUDENTIZED,
    ]
    assert comparison.with_second_opinions().with_studentized() == both
    assert both.with_studentized() == both
    assert (both.key, both.verdict, both.remarks) == (comparison.key, comparison.verdict, comparison.remarks)
    shown = f"{STUDENTIZED}: {both.second_opinions[-1].sentence}"
    assert shown in text.lines(both)
    assert html.escape(both.second_opinions[-1].sentence).replace("&#x27;", "&#39;") in report.html(both)


def test_studentized_of_identical_and_of_exchanged_runs():
    assert studentized(trackperm.compare(FRAME, FRAME, "precision")).pvalue == 1.0
    there, back = (studentized(trackperm.compare(*pair, "f1")) for pair in ((FRAME, OTHER), (OTHER, FRAME)))
    assert there.pvalue == back.pvalue
