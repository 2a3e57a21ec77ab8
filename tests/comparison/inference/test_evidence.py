"""Bounds of a difference as evidence of equivalence, and their error rate at the margin."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom
from support.budget import Measured, cases
from support.comparisons import answers, numbered

import trackperm
from trackperm.comparison import Comparison
from trackperm.comparison.inference.effect import interval_of
from trackperm.comparison.inference.evidence import SizeBounds, equivalence_pvalue, size_bounds
from trackperm.errors import InputError
from trackperm.exact import CountTable
from trackperm.exact.intervals import Interval
from trackperm.statistic import Statistic, load_statistic

TP, WRONG, TN = (1, 0), (0, 1), (0, 0)


def f1() -> Statistic:
    return load_statistic("f1", parameters={"positive": "yes"})


def f1_table(**counts: int) -> CountTable:
    """Counts of tp and incorrect of both runs: tp_no=3 are 3 examples where the candidate alone is right."""
    kinds = {"tp": TP, "no": WRONG, "tn": TN}
    pairs = [tuple(kinds[part] for part in name.split("_")) for name in counts]
    sides = [np.repeat([pair[i] for pair in pairs], list(counts.values()), axis=0) for i in (0, 1)]
    return CountTable.from_counts(("tp", "incorrect"), *sides)


def is_within(size: SizeBounds, margin: float) -> bool:
    return size.lack(margin) is None and -margin < size.low and size.high < margin


def test_an_exact_interval_always_counts() -> None:
    accuracy = load_statistic("accuracy")
    right = np.array([[1, 1]] * 39 + [[0, 1]])
    table = CountTable.from_counts(("correct", "n"), right, np.array([[1, 1]] * 40))
    found = size_bounds(accuracy, table, 0.05)
    assert isinstance(found.basis, Interval)
    assert (found.basis.method, found.least) == ("paired proportions", 0.0)
    assert (found.low, found.high) == (found.basis.low, found.basis.high)
    assert found.lack(0.01) is None


def accuracy_table(better: int, worse: int, n: int) -> CountTable:
    right, wrong = [1, 1], [0, 1]
    candidate = [right] * better + [wrong] * worse + [right] * (n - better - worse)
    baseline = [wrong] * better + [right] * (n - better)
    return CountTable.from_counts(("correct", "n"), np.array(candidate), np.array(baseline))


def test_bounds_together_support_what_each_supports() -> None:
    """The lower of the low bounds, the higher of the high ones, and the larger margin that is too small."""
    interval = Interval(-0.01, 0.02, 0.05, "two-sided", "bootstrap BCa", "may disagree", "")
    first = SizeBounds(-0.01, 0.02, interval, 0.03, "few examples")
    second = SizeBounds(-0.02, 0.01, interval, 0.0, "many examples")
    for joined in (first.joined(second), second.joined(first)):
        assert (joined.low, joined.high, joined.least) == (-0.02, 0.02, 0.03)
        assert joined.lack(0.025) == "few examples"
        assert joined.lack(0.035) is None


@pytest.mark.parametrize(("better", "worse", "n"), [(6, 6, 400), (10, 8, 300), (12, 20, 1000), (0, 0, 100)])
def test_each_bound_is_the_one_sided_bound_at_alpha(better: int, worse: int, n: int) -> None:
    """Two one-sided tests at alpha (Schuirmann 1987) are the interval of confidence 1 - 2 alpha."""
    statistic, table = load_statistic("accuracy"), accuracy_table(better, worse, n)
    found = size_bounds(statistic, table, 0.05)
    low, high = (interval_of(statistic, table, alpha=0.05, alternative=side) for side in ("greater", "less"))
    assert isinstance(low, Interval)
    assert isinstance(high, Interval)
    assert (found.low, found.high) == pytest.approx((low.low, high.high), rel=1e-9)
    if better == worse == 0:  # Clopper and Pearson's bound for no success among n
        assert found.high == pytest.approx(1.0 - 0.05 ** (1.0 / n), rel=1e-9)


@pytest.mark.parametrize(("margin", "verdict"), [(0.017, "undecided"), (0.019, "equivalent")])
def test_equivalence_at_alpha_takes_the_interval_at_two_alpha(margin: float, verdict: str) -> None:
    """Six examples better and six worse of 400: the 90 % interval ends at 0.0173, the 95 % one at 0.0205."""
    right = [True] * 394 + [False] * 6, [False] * 6 + [True] * 394
    found = trackperm.compare(*map(answers, right), "accuracy", margin=margin)
    assert found.verdict == verdict


@pytest.mark.parametrize("discordant", [0, 5])
def test_bounds_cover_the_worst_change_of_few_examples(discordant: int) -> None:
    """F1 changes by less for any change of the share of examples that may differ (Clopper and Pearson)."""
    rng = np.random.default_rng(0)
    table = f1_table(tp_tp=120, no_no=9, tn_tn=300)
    if discordant:
        table = f1_table(tp_tp=120, no_no=9, tn_tn=300, no_tp=3, tn_no=2)
    n, alpha = int(table.multiplicities.sum()), 0.05
    found = size_bounds(f1(), table, alpha)
    share = -math.expm1(math.log(alpha) / n)
    if discordant:
        share = next(p for p in np.arange(0.0, 0.1, 1e-5) if binom.cdf(discordant, n, p) <= alpha)
    assert isinstance(found.basis, str)
    assert found.low == -found.high
    score = f1().score
    assert score is not None
    base = np.repeat(table.baseline, table.multiplicities, axis=0)
    kinds = np.array([TP, WRONG, TN])
    worst = 0.0
    for _ in range(300):
        changed = base.copy()
        chosen = rng.choice(n, math.floor(share * n), replace=False)
        changed[chosen] = (
            kinds[rng.integers(0, 3)] if rng.random() < 0.5 else kinds[rng.integers(0, 3, chosen.size)]
        )
        totals = [tuple(side.sum(axis=0).tolist()) for side in (changed, base)]
        worst = max(worst, abs(float(score(totals[0])) - float(score(totals[1]))))
    # those that cost most: right ones of the positives
    right = np.flatnonzero(base[:, 0])[: math.floor(share * n)]
    base_score = float(score(tuple(base.sum(axis=0).tolist())))
    base[right] = WRONG
    worst = max(worst, base_score - float(score(tuple(base.sum(axis=0).tolist()))))
    assert 0.5 * found.high < worst <= found.high


@pytest.mark.parametrize(
    ("name", "by_labels"),
    [
        ("accuracy", True),
        ("mean", True),
        ("recall", True),
        ("specificity", True),
        ("balanced_accuracy", True),
        ("token_accuracy", True),
        ("f1", False),
        ("precision", False),
        ("macro_f1", False),
        ("mcc", False),
        ("pooled_error_rate", False),
    ],
)
def test_divisors_that_depend_on_labels_only(name: str, by_labels: bool) -> None:
    assert load_statistic(name).divides_by_labels is by_labels


@pytest.mark.parametrize("name", ["accuracy", "recall", "precision", "f1"])
def test_equal_runs_have_an_interval_if_divisors_depend_on_labels_only(
    name: str,
) -> None:
    """Without differences F1 counts as linear; it once had the interval of a share."""
    run = answers([True] * 30 + [False] * 10 + [True] * 400)
    frame = run.with_columns(label=pl.Series(["yes"] * 40 + ["no"] * 400)).with_columns(
        prediction=pl.Series(["yes"] * 30 + ["no"] * 410)
    )
    parameters = {} if name == "accuracy" else {"positive": "yes"}
    found = trackperm.compare(frame, frame, name, parameters=parameters, margin=0.3)
    if name in ("accuracy", "recall"):
        assert found.interval is not None
    else:
        assert (
            found.interval_unavailable
            == f"exchanging outputs never changes `{name}`, so the size of a difference is unknown"
        )
        assert found.decision.equivalent, "0.68 % of 440 are 3"


def test_a_score_that_no_swap_changes_has_no_interval() -> None:
    """Without true positives, F1 is 0 in both runs for any other errors."""
    table = f1_table(no_tn=3, tn_no=2, no_no=2, tn_tn=43)
    found = size_bounds(f1(), table, 0.05)
    assert found.basis == "exchanging outputs never changes `f1`, so the size of a difference is unknown"
    assert found.high > 0.5


def test_bounds_hold_in_every_case_of_missing_predictions() -> None:
    baseline = answers([True] * 300)
    candidate = answers([True] * 290)
    found = trackperm.compare(baseline, candidate, "accuracy", missing="bounds", margin=0.06)
    sizes = [outcome.size for outcome in found.bounds]
    assert found.size.low == min(size.low for size in sizes) < -0.03
    assert found.size.high == max(size.high for size in sizes)
    assert found.decision.equivalent == is_within(found.size, 0.06)


def test_a_statistic_without_scores_is_unbounded(tmp_path: Path) -> None:
    spec = tmp_path / "odds.yaml"
    spec.write_text(
        "counts: {right: prediction == label, wrong: prediction != label}\n"
        "g: {a: u.right, b: u.wrong, c: v.right, d: v.wrong}\nh: a * d - b * c\n"
    )
    runs = answers([True] * 50 + [False] * 4), answers([True] * 49 + [False] * 5)
    found = trackperm.compare(*runs, spec, margin=1e9)
    assert found.interval_unavailable is not None
    assert found.size.high == math.inf
    assert found.decision.equivalent is None


def test_few_examples_do_not_show_equivalence() -> None:
    """Regression: five tied examples were equivalent within 0.01 by F1, because resampling kept the tie."""
    labels = ["yes", "no", "yes", "no", "yes"]
    frame = pl.DataFrame({"id": range(5), "prediction": labels, "label": labels})
    found: Comparison = trackperm.compare(frame, frame, "f1", parameters={"positive": "yes"}, margin=0.01)
    assert found.verdict == "undecided"
    assert found.interval is None
    data = found.to_dict()
    assert (data["equivalent"], data["interval"]) == (None, None)
    assert data["no_equivalence"] == (
        "no interval is available, 0 of 5 examples are discordant, and up to 45 % may be"
    )


def test_nearly_all_examples_are_named_without_an_exponent() -> None:
    runs = [["yes", "no"] * 5 + ["yes"] * 2, ["no", "yes"] * 5 + ["no", "yes"]]
    frames = [pl.DataFrame({"id": range(12), "prediction": run, "label": ["yes"] * 12}) for run in runs]
    found = trackperm.compare(*frames, "f1", parameters={"positive": "yes"}, margin=0.01, interval="none")
    assert found.to_dict()["no_equivalence"] == (
        "no interval is available, 11 of 12 examples are discordant, and up to 99.6 % may be"
    )


@pytest.mark.slow
@pytest.mark.generated
@pytest.mark.parametrize(
    ("positives", "scores", "n"),
    [
        (0.05, (0.95, 0.92), 50),
        (0.3, (0.95, 0.92), 50),
        (0.5, (0.95, 0.92), 20),
        (0.1, (0.85, 0.80), 200),
        (0.3, (0.7, 0.62), 500),
        (0.3, (0.95, 0.92), 1000),
        (0.5, (0.998, 0.99), 2000),
    ],
)
def test_equivalence_at_the_margin_has_the_error_rate_alpha(
    positives: float, scores: tuple[float, float], n: int, measured: Measured
) -> None:
    """The true difference is the margin; once 33 % were equivalent at N = 50, F1 0.92 against 0.95."""
    rng, n_sets, statistic = np.random.default_rng(3), cases(150), f1()
    kinds, law = [], []
    for label, share in ((1, positives), (0, 1.0 - positives)):
        wrong = [min((1.0 - f) * (1.0 if label else positives / (1.0 - positives)), 1.0) for f in scores]
        for a in (0, 1):
            for b in (0, 1):
                kinds.append((label * (1 - a), a, label * (1 - b), b))
                law.append(share * np.prod([w if x else 1.0 - w for w, x in zip(wrong, (a, b), strict=True)]))
    rows = np.array(kinds)
    sums = np.array(law) @ rows
    margin = abs(float(sums[0] / (sums[0] + sums[1] / 2) - sums[2] / (sums[2] + sums[3] / 2)))
    shown = equivalent = 0
    for _ in range(n_sets):
        drawn = np.repeat(rows, rng.multinomial(n, law), axis=0)
        table = CountTable.from_counts(("tp", "incorrect"), drawn[:, :2], drawn[:, 2:])
        found = size_bounds(statistic, table, 0.05)
        shown += isinstance(found.basis, Interval)
        equivalent += is_within(found, margin)
    measured(
        f"\nF1 {scores} of {n}, {positives:.0%} positives: equivalent {equivalent / n_sets:.3f},"
        f" by an interval in {shown} of {n_sets}"
    )
    assert equivalent <= binom.ppf(1.0 - 1e-3, n_sets, 0.06)


@pytest.mark.parametrize(
    ("better", "worse", "n", "margin"), [(8, 7, 400, 0.03), (20, 4, 400, 0.1), (3, 9, 60, 0.4)]
)
def test_the_p_of_an_equivalence_is_the_smallest_level_that_shows_it(
    better: int, worse: int, n: int, margin: float
) -> None:
    accuracy, table = load_statistic("accuracy"), accuracy_table(better, worse, n)
    found = equivalence_pvalue(accuracy, table, margin, 0.05)
    assert 1e-6 < found.pvalue < 0.05
    assert not found.is_bound
    assert is_within(size_bounds(accuracy, table, found.pvalue), margin)
    assert not is_within(size_bounds(accuracy, table, 0.999 * found.pvalue), margin)
    assert str(found) == f"p = {found.pvalue:.3g}"


def test_the_p_of_an_equivalence_by_shifts() -> None:
    rng = np.random.default_rng(0)
    ids, scores = list(range(300)), rng.integers(0, 10, 300) / 100
    runs = [
        pl.DataFrame({"id": ids, "score": s})
        for s in (scores, (scores + rng.integers(-2, 3, 300) / 100).round(2))
    ]
    comparison = trackperm.compare(*runs, "mean", margin=0.0025)
    assert comparison.decision.equivalent
    found = comparison.equivalence
    assert found is not None
    statistic, table = comparison.statistic, comparison.count_table
    assert is_within(size_bounds(statistic, table, found.pvalue), 0.0025)
    assert not found.is_bound
    assert not is_within(size_bounds(statistic, table, 0.99 * found.pvalue), 0.0025)


def test_a_tiny_p_of_an_equivalence_is_a_bound() -> None:
    found = equivalence_pvalue(load_statistic("accuracy"), accuracy_table(8, 7, 400), 0.3, 0.05)
    assert (found.pvalue, found.is_bound, str(found)) == (pytest.approx(1e-6), True, "p < 1e-06")


@pytest.mark.parametrize(("margin", "shown"), [(0.1, "p < 0.002"), (0.024, "p < 0.01"), (0.0175, "p < 0.05")])
def test_an_approximate_interval_gives_bounds_alone(margin: float, shown: str) -> None:
    rng = np.random.default_rng(0)
    labels = (rng.random(2000) < 0.4).astype(int)
    runs = [
        numbered(prediction=np.where(rng.random(2000) < 0.06, 1 - labels, labels), label=labels)
        for _ in range(2)
    ]
    comparison = trackperm.compare(*runs, "f1", margin=margin)
    assert comparison.decision.equivalent, comparison.size
    assert str(comparison.equivalence) == shown


def test_without_an_equivalence_there_is_no_p_of_it() -> None:
    runs = answers([True] * 30), answers([True] * 20 + [False] * 10)
    assert trackperm.compare(*runs, "accuracy").equivalence is None
    undecided = trackperm.compare(*runs, "accuracy", margin=0.01)
    assert undecided.equivalence is None
    assert undecided.to_dict()["equivalence_pvalue"] is None


def test_with_missing_predictions_the_larger_p_counts() -> None:
    whole = answers([True] * 190 + [False] * 10)
    comparison = trackperm.compare(whole, whole.head(198), "accuracy", missing="bounds", margin=0.04)
    assert comparison.decision.equivalent
    assert comparison.equivalence is not None
    each = [
        equivalence_pvalue(case.statistic, case.count_table, 0.04, 0.05).pvalue for case in comparison.bounds
    ]
    assert comparison.equivalence.pvalue == max(each) > min(each)


def test_a_margin_beyond_the_range_of_the_statistic_is_refused() -> None:
    """Regression: a margin of 3, meant as 3 %, found an accuracy of 0.1 equivalent with one of 0.9."""
    label, other = [1] * 40, [1] * 20 + [0] * 20
    with pytest.raises(InputError, match="no two scores by `accuracy` differ by more than 1") as caught:
        trackperm.compare(label, label, other, statistic="accuracy", margin=3)
    assert caught.value.hint == "a margin of 3 % is 0.03."
    with pytest.raises(InputError, match="differ by more than 2"):
        trackperm.compare(label, label, other, statistic="mcc", margin=2)
    assert trackperm.compare(label, label, other, statistic="mse", margin=3).margin == 3
