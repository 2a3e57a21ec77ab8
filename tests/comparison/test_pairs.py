"""Comparisons by scores over pairs, against all swaps; and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from support import pair_scores
from support.budget import cases
from support.oracles import difference_pvalues

import trackperm
from trackperm.comparison.planning.equivalence_plan import plan_equivalence
from trackperm.comparison.second_opinions import DELONG
from trackperm.errors import InputError, InputTypeError, PairingError
from trackperm.exact.intervals import Interval, interval_of_pairs
from trackperm.statistic import Statistic, load_statistic, read_statistic
from trackperm.statistic.load import BUILTIN
from trackperm.statistic.written_spec import written_spec

NAMES = ("roc_auc", "kendall_tau", "somers_d", "concordance_index", "pairwise_accuracy")
SCORES: dict[str, pair_scores.Score] = {
    "roc_auc": pair_scores.roc_auc,
    "kendall_tau": pair_scores.kendall_tau,
    "somers_d": pair_scores.somers_d,
    "concordance_index": pair_scores.concordance_index,
    "pairwise_accuracy": pair_scores.pairwise_accuracy(Fraction(1, 5)),
}


def statistic(name: str, *keys: str, scale: str | None = None) -> Statistic:
    text = (BUILTIN / f"{name}.yaml").read_text(encoding="utf-8").replace("tolerance: 0.0", "tolerance: 0.2")
    if scale is not None and "scale:" not in text:
        text += f"  scale: {scale}\n"
    return read_statistic("\n".join([text, *keys]), f"{name}.yaml", name)


def random_rows(
    rng: np.random.Generator, name: str, n: int
) -> tuple[dict[str, list[Any]], list[list[float]]]:
    """Return examples with pairs of every kind in both strata, and scores of two systems with many ties."""
    label = rng.integers(0, 2 if name == "roc_auc" else 4, n)
    label[[0, 1, 2, 3]] = 0, 1, 1, 0
    event = rng.integers(0, 2, n)
    event[[0, 3]] = 1
    rows = {"label": label.tolist(), "event": event.tolist(), "stratum": ["a", "a", "b", "b"]}
    rows["stratum"] += rng.choice(["a", "b"], n - 4).tolist()
    values = rng.choice([0.0, 0.1, 0.3, 0.5, 0.8], (2, n)).tolist()
    return rows, values


def frames(rows: dict[str, list[Any]], scores: list[list[float]], **more: list[Any]) -> list[pl.DataFrame]:
    return [pl.DataFrame({"id": range(len(own)), **rows, **more, "score": own}) for own in scores]


def assert_exact(found: trackperm.Comparison, truth: Fraction) -> None:
    assert found.test.error_bound <= 1e-10
    assert abs(found.pvalue - float(truth)) <= max(found.test.error_bound, 1e-15) * float(truth) + 1e-15


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", NAMES)
def test_against_all_swaps(name: str) -> None:
    rng = np.random.default_rng(NAMES.index(name))
    for number in range(cases(8)):
        n = int(rng.integers(4, 9))
        rows, (baseline, candidate) = random_rows(rng, name, n)
        scale = "raw" if name == "pairwise_accuracy" else ("ranks", "raw")[number % 2]
        found = trackperm.compare(*frames(rows, [baseline, candidate]), statistic(name, scale=scale))
        score = SCORES[name]
        assert found.baseline_score == pytest.approx(float(score(baseline, rows)), abs=1e-14)
        assert found.candidate_score == pytest.approx(float(score(candidate, rows)), abs=1e-14)
        exchanged = [baseline, candidate]
        if scale == "ranks":
            exchanged = [pair_scores.midranks(each) for each in exchanged]
        assert_exact(found, pair_scores.exact_pvalue(score, exchanged[1], exchanged[0], rows))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", NAMES)
def test_strata_against_all_swaps(name: str) -> None:
    rng = np.random.default_rng(10 + NAMES.index(name))
    weights = {"a": Fraction(2), "b": Fraction(1)}
    spec = statistic(name, "strata: stratum", "weights: {b: 1, a: 2}", scale="raw")
    for _ in range(cases(6)):
        rows, scores = random_rows(rng, name, int(rng.integers(4, 9)))
        found = trackperm.compare(*frames(rows, scores), spec)
        assert found.pairing.influences.difference == pytest.approx(found.difference, abs=1e-12)
        score = pair_scores.by_stratum(SCORES[name], weights)
        assert found.candidate_score == pytest.approx(float(score(scores[1], rows)), abs=1e-14)
        assert_exact(found, pair_scores.exact_pvalue(score, scores[1], scores[0], rows))


def test_clusters_against_all_swaps_of_clusters() -> None:
    rng = np.random.default_rng(20)
    for _ in range(cases(6)):
        rows, scores = random_rows(rng, "roc_auc", 9)
        units = rng.integers(0, 5, 9).tolist()
        found = trackperm.compare(
            *frames(rows, scores, user=units), statistic("roc_auc", "cluster: user", scale="raw")
        )
        truth = pair_scores.exact_pvalue(pair_scores.roc_auc, scores[1], scores[0], rows, units)
        assert_exact(found, truth)


def test_pairs_within_groups_are_pooled() -> None:
    spec = read_statistic(
        "pairs:\n  left: label == 1\n  right: (label == 0) & (stratum == left.stratum)\n"
        "  term: (left.score > right.score) + (left.score == right.score) / 2\n  scale: raw\n",
        "x.yaml",
        "grouped",
    )

    def score(scores: Any, rows: Any) -> Fraction:
        label, group, n = rows["label"], rows["stratum"], range(len(scores))
        return pair_scores.mean(
            [
                Fraction(1 + (scores[i] > scores[j]) - (scores[i] < scores[j]), 2)
                for i in n
                for j in n
                if label[i] == 1 and label[j] == 0 and group[i] == group[j]
            ]
        )

    rng = np.random.default_rng(21)
    for _ in range(cases(6)):
        rows, scores = random_rows(rng, "roc_auc", 8)
        found = trackperm.compare(*frames(rows, scores), spec)
        assert found.candidate_score == pytest.approx(float(score(scores[1], rows)))
        assert_exact(found, pair_scores.exact_pvalue(score, scores[1], scores[0], rows))


@pytest.mark.parametrize("scale", ["ranks", "raw"])
def test_bounds_hold_against_polynomials(scale: str) -> None:
    """Tests of 12 to 40 examples: the law of the sum is a product of integer polynomials."""
    rng = np.random.default_rng(30)
    spec = statistic("roc_auc", scale=scale)
    for _ in range(cases(25)):
        n = int(rng.integers(12, 40))
        rows, scores = random_rows(rng, "roc_auc", n)
        found = trackperm.compare(*frames(rows, scores), spec)
        table = found.count_table
        weights = np.repeat(table.candidate[:, 0] - table.baseline[:, 0], table.multiplicities)
        assert_exact(found, difference_pvalues(weights.tolist())["two-sided"])


def test_order_of_runs_and_rows_does_not_matter() -> None:
    rng = np.random.default_rng(40)
    for name in NAMES:
        baseline, candidate = frames(*random_rows(rng, name, 60))
        one = trackperm.compare(baseline, candidate, name)
        other = trackperm.compare(candidate.sample(60, seed=1, shuffle=True), baseline, name)
        assert other.difference == pytest.approx(-one.difference)
        assert other.pvalue == pytest.approx(one.pvalue, rel=1e-9)
        assert trackperm.compare(baseline, baseline, name).pvalue == 1.0


def test_ranks_have_an_asymptotic_level_and_raw_scores_do_not() -> None:
    both = frames(*random_rows(np.random.default_rng(41), "roc_auc", 60))
    ranks, raw = (trackperm.compare(*both, statistic("roc_auc", scale=scale)) for scale in ("ranks", "raw"))
    assert "mid-ranks within each run" in str(ranks.pairing.asymptotic)
    assert raw.pairing.asymptotic is None
    assert "ranks of the scores within each run" in ranks.null_hypothesis
    # Ranks do not change if the scores of one run are on another scale.
    scaled = both[0].with_columns(score=3.0 * pl.col("score") - 7.0)
    assert trackperm.compare(scaled, both[1], "roc_auc").pvalue == ranks.pvalue
    assert trackperm.compare(scaled, both[1], statistic("roc_auc", scale="raw")).pvalue != raw.pvalue


def test_no_interval_and_no_equivalence_if_few_examples_changed() -> None:
    baseline, _ = frames(*random_rows(np.random.default_rng(42), "roc_auc", 200))
    changed = baseline.with_columns(
        score=pl.when(pl.col("id") == 5).then(pl.col("score") + 5).otherwise(pl.col("score"))
    )
    found = trackperm.compare(baseline, changed, statistic("roc_auc", scale="raw"), margin=0.2)
    assert found.n_discordant < 200
    assert found.interval is None
    assert "weigh as much as 1.1 equal ones; a score interval of pairs needs 8" in str(
        found.interval_unavailable
    )
    assert found.verdict == "undecided"


def test_interval_equivalence_and_its_pvalue() -> None:
    rng = np.random.default_rng(60)
    label = np.arange(800) % 4 == 0
    shared = rng.normal(size=800) + 2 * label
    rows = {"label": label.astype(int).tolist()}
    both = frames(rows, [(shared + 0.3 * rng.normal(size=800)).tolist() for _ in range(2)])
    found = trackperm.compare(*both, "roc_auc", margin=0.03)
    assert (found.interval.method, found.interval.approximate) == ("score", True)
    assert found.pairing.influences is not None
    error = found.pairing.influences.standard_error
    assert found.interval.high - found.interval.low == pytest.approx(2 * 1.96 * float(error or 0), rel=0.05)
    assert found.verdict == "equivalent"
    assert found.equivalence is not None
    assert max(-found.size.low, found.size.high) < 0.03
    assert trackperm.compare(*both, "roc_auc", margin=0.001).verdict == "undecided"
    board = trackperm.leaderboard(dict(zip("ab", both, strict=True)), "roc_auc", baseline="a")
    shown = next(row.interval for row in board.rows if row.name == "b")
    assert (shown.low, shown.high) == (found.interval.low, found.interval.high)
    none = trackperm.compare(*both, "roc_auc", interval="bootstrap")
    assert "score interval only" in str(none.interval_unavailable)


def test_interval_stays_within_the_range_of_a_difference() -> None:
    rng, label = np.random.default_rng(171), np.arange(24) % 2
    spread = rng.uniform(0.6, 1.5)
    wrong = -label + spread * rng.normal(size=24)
    right = 3 * label + rng.normal(size=24)
    both = frames({"label": label.tolist()}, [wrong.tolist(), right.tolist()])
    found = trackperm.compare(*both, "roc_auc")
    assert found.interval is not None
    whole = interval_of_pairs(found.pairing.influences, alpha=found.alpha)
    assert isinstance(whole, Interval)
    assert whole.high > 1.0
    assert (found.interval.low, found.interval.high) == (whole.low, 1.0)
    assert found.size.high < 1.0


def test_power_of_equivalence_stands_beside_the_margin() -> None:
    rng = np.random.default_rng(62)
    label = np.arange(600) % 2
    shared = rng.normal(size=600) + label
    rows = {"label": label.tolist()}
    both = frames(rows, [(shared + 0.3 * rng.normal(size=600)).tolist() for _ in range(2)])
    found = trackperm.compare(*both, "roc_auc", margin=0.025)
    power = found.equivalence_power
    assert power is not None
    assert power.n_examples == 600
    assert 0.3 < power.at_half < power.at_zero < 1.0
    assert "power of equivalence within 0.025" in str(found)
    plan = plan_equivalence(0.025, found, power=0.8, n_examples=600)
    assert plan.power_there == pytest.approx(power.at_zero)
    other = plan_equivalence(0.025, found, power=0.8, n_examples=plan.needed)
    assert other.power_there == pytest.approx(0.8, abs=0.01)
    assert plan.discordance is None
    few = trackperm.compare(*(each[:20] for each in both), "roc_auc", margin=0.025)
    assert few.equivalence_power is None or few.equivalence_power.at_zero < 0.2


def test_second_opinion_is_delongs_test() -> None:
    both = frames(*random_rows(np.random.default_rng(43), "roc_auc", 90))
    (found,) = trackperm.compare(*both, "roc_auc").with_second_opinions().second_opinions
    psi = []
    for each in both:
        label, score = each["label"].to_numpy() == 1, each["score"].to_numpy()
        a, b = score[label][:, None], score[~label][None]
        psi.append((a > b) + (a == b) / 2)
    difference = psi[1] - psi[0]
    variance = sum(difference.mean(axis=axis).var(ddof=1) / difference.shape[1 - axis] for axis in (0, 1))
    from scipy import stats

    assert found.name == DELONG
    assert found.pvalue == pytest.approx(2 * stats.norm.sf(abs(difference.mean()) / variance**0.5))
    clustered = trackperm.compare(*both, statistic("roc_auc", "cluster: stratum"))
    (found,) = clustered.with_second_opinions().second_opinions
    assert found.pvalue is None


def test_one_class_only() -> None:
    both = [
        each.with_columns(label=1) for each in frames(*random_rows(np.random.default_rng(44), "roc_auc", 9))
    ]
    with pytest.raises(InputError) as caught:
        trackperm.compare(*both, "roc_auc")
    assert caught.value.message == "`roc_auc` is undefined: all 9 examples have the `label` 1"
    assert "it needs examples with different labels; `--label NAME`" in str(caught.value.hint)
    with pytest.raises(InputError) as caught:
        trackperm.compare(*both, "average_precision")
    assert (
        caught.value.message
        == "`average_precision` is 1 for any scores: all 9 examples have `label == positive`"
    )
    zeros = [each.with_columns(label=0) for each in both]
    with pytest.raises(InputError, match="has no positive examples: none of its 9 examples has `label == "):
        trackperm.compare(*zeros, "average_precision")


def test_strata_of_one_class() -> None:
    mixed = frames(*random_rows(np.random.default_rng(44), "roc_auc", 9))
    mixed = [
        each.with_columns(label=pl.when(pl.col("stratum") == "b").then(1).otherwise(pl.col("label")))
        for each in mixed
    ]
    with pytest.raises(
        InputError, match=r"is undefined in the stratum 'b': all . examples have the `label` 1"
    ):
        trackperm.compare(*mixed, statistic("roc_auc", "strata: stratum"))
    # The average precision of positive examples alone is 1, and no less in one of several strata.
    found = trackperm.compare(*mixed, statistic("average_precision", "strata: stratum"))
    parts = [each.filter(pl.col("stratum") == "a") for each in mixed]
    alone = trackperm.compare(*parts, "average_precision")
    assert found.difference == pytest.approx(alone.difference / 2)
    none = [
        each.with_columns(label=pl.when(pl.col("stratum") == "b").then(0).otherwise(pl.col("label")))
        for each in mixed
    ]
    with pytest.raises(InputError, match="has no positive examples in the stratum 'b'"):
        trackperm.compare(*none, statistic("average_precision", "strata: stratum"))


def test_pairs_that_conditions_leave_out_are_named() -> None:
    spec = read_statistic(
        "pairs:\n  left: event == 1\n  right: event == 2\n  term: (left.score > right.score) + 0\n",
        "x.yaml",
        "no",
    )
    with pytest.raises(
        InputError, match="no two of its 9 examples are a left and a right one by `left: event"
    ):
        trackperm.compare(*frames(*random_rows(np.random.default_rng(44), "concordance_index", 9)), spec)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["roc_auc", "average_precision"])
@pytest.mark.parametrize("other", [2, "2", 7.0])
def test_two_labels_other_than_0_and_1_need_the_positive_class(name: str, other: Any) -> None:
    rows, scores = random_rows(np.random.default_rng(47), "roc_auc", 12)
    one = type(other)(1)
    labels = [one if label == 1 else other for label in rows["label"]]
    both = frames({**rows, "label": labels}, scores)
    with pytest.raises(InputError) as caught:
        trackperm.compare(*both, name)
    assert (
        f"`{name}` needs the positive class of labels other than 0 and 1, but `label` of"
        in caught.value.message
    )
    assert "--set positive=" in str(caught.value.hint)
    plain = trackperm.compare(*frames(rows, scores), name)
    for positive, sign in ((one, 1.0), (other, -1.0 if name == "roc_auc" else None)):
        found = trackperm.compare(*both, name, parameters={"positive": positive})
        if sign is not None:
            assert found.difference == pytest.approx(sign * plain.difference)
    for zero, unit in ((0, 1), (-1, 1), (False, True), ("0", "1")):
        usual = [unit if label == 1 else zero for label in rows["label"]]
        found = trackperm.compare(*frames({**rows, "label": usual}, scores), name)
        assert found.difference == pytest.approx(plain.difference)


def test_a_message_names_all_missing_columns() -> None:
    both = [pl.DataFrame({"id": range(9), "time": range(9), "risk": range(9)}) for _ in range(2)]
    spec = statistic("concordance_index", "strata: hospital\ncluster: patient")
    with pytest.raises(InputError) as caught:
        trackperm.compare(*both, spec)
    lacking = "`event`, `label`, `score`, `patient`, `hospital`"
    assert f"`baseline` lacks {lacking} and has" in caught.value.message
    for option in (
        "--column event=",
        "--label ",
        "--column score=",
        "--column patient=",
        "--column hospital=",
    ):
        assert option in str(caught.value.hint)


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), float("nan")])
def test_scores_that_are_not_finite(value: float) -> None:
    baseline, candidate = frames(*random_rows(np.random.default_rng(45), "roc_auc", 9))
    broken = candidate.with_columns(score=pl.when(pl.col("id") == 6).then(value).otherwise(pl.col("score")))
    expected = "has no value in|have no value in" if value != value else "infinite values"
    with pytest.raises((InputError, InputTypeError), match=expected):
        trackperm.compare(baseline, broken, "roc_auc")


def test_values_that_define_pairs_have_to_agree() -> None:
    baseline, candidate = frames(*random_rows(np.random.default_rng(46), "concordance_index", 9))
    with pytest.raises(PairingError, match="`event` differs between the runs on 9 of 9 examples"):
        trackperm.compare(baseline, candidate.with_columns(event=1 - pl.col("event")), "concordance_index")


@pytest.mark.parametrize("missing", ["wrong", "worst", "best", "bounds"])
def test_missing_scores_have_no_place_in_pairs(missing: Any) -> None:
    baseline, candidate = frames(*random_rows(np.random.default_rng(47), "roc_auc", 9))
    with pytest.raises(InputError, match="a missing score cannot be compared"):
        trackperm.compare(baseline, candidate[:7], "roc_auc", missing=missing)
    dropped = trackperm.compare(baseline, candidate[:7], "roc_auc", missing="drop")
    assert dropped.pvalue == trackperm.compare(baseline[:7], candidate[:7], "roc_auc").pvalue


def test_slices_are_compared_on_their_own_pairs() -> None:
    baseline, candidate = frames(*random_rows(np.random.default_rng(48), "roc_auc", 60))
    found = trackperm.compare(baseline, candidate, "roc_auc", slices=["stratum"])
    parts = [each.filter(pl.col("stratum") == "a") for each in (baseline, candidate)]
    assert found[1].pvalue == trackperm.compare(*parts, "roc_auc").pvalue


def test_leaderboard_tests_every_pair_of_runs() -> None:
    rows, scores = random_rows(np.random.default_rng(49), "roc_auc", 60)
    third = np.random.default_rng(50).normal(size=60).tolist()
    runs = dict(zip("abc", frames(rows, [*scores, third]), strict=True))
    for spec in ("roc_auc", statistic("roc_auc", "strata: stratum")):
        board = trackperm.leaderboard(runs, spec)
        assert len(board.pairs) == 3
        for pair in board.pairs:
            candidate, baseline = (board.rows[place].name for place in (pair.candidate, pair.baseline))
            one = trackperm.compare(runs[baseline], runs[candidate], spec)
            assert pair.test.pvalue == one.pvalue
            assert board.rows[pair.candidate].score == pytest.approx(one.candidate_score)
        assert any(note.startswith("asymptotic: ") for note in board.notes)
        assert not any(row.clones for row in board.rows)
    with pytest.raises(InputError, match="which has pairs"):
        trackperm.leaderboard(runs, "roc_auc", missing="drop")


def test_units_are_those_of_the_data() -> None:
    rows, scores = random_rows(np.random.default_rng(51), "roc_auc", 30)
    found = trackperm.compare(*frames(rows, scores), "roc_auc")
    n_pairs = rows["label"].count(1) * rows["label"].count(0)
    assert found.statistic.resolution == {"share": Fraction(1, 4 * n_pairs)}
    assert read_statistic(written_spec(found.statistic), "x").resolution == found.statistic.resolution
    assert load_statistic(found.statistic, cluster="stratum").resolution == {}
