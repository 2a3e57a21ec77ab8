"""Specs of pairs: their errors, documents and built-in statistics."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats
from sklearn import metrics
from support.pair_scores import concordance_index, pairwise_accuracy

import trackperm
from trackperm.errors import InputError, SpecError
from trackperm.statistic import load_statistic, read_statistic
from trackperm.statistic.pairs.term import by_order
from trackperm.statistic.problems import problems
from trackperm.statistic.written_spec import written_spec

AUC = """\
pairs:
  left: label == 1
  right: label == 0
  term: (left.score > right.score) + (left.score == right.score) / 2
"""
SQUARES = "pairs: {term: left.score * right.score * left.label, scale: raw}\n"


def runs(n: int, seed: int = 0, digits: int = 1) -> tuple[pl.DataFrame, pl.DataFrame]:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    label[:2] = 0, 1
    shared = {
        "id": np.arange(n),
        "label": label,
        "event": rng.integers(0, 2, n),
        "time": rng.integers(1, 9, n),
    }
    sides = (np.round(rng.normal(size=n) + label, digits) for _ in range(2))
    baseline, candidate = (pl.DataFrame({**shared, "score": score}) for score in sides)
    return baseline, candidate


def scores(name: str, baseline: pl.DataFrame, candidate: pl.DataFrame, **options: object) -> list[float]:
    found = trackperm.compare(baseline, candidate, name, **options)
    assert found.baseline_score is not None
    assert found.candidate_score is not None
    return [found.baseline_score, found.candidate_score]


@pytest.mark.parametrize("seed", range(5))
def test_against_libraries(seed: int) -> None:
    baseline, candidate = runs(80, seed)
    both = [(each["label"].to_numpy(), each["score"].to_numpy()) for each in (baseline, candidate)]
    assert scores("roc_auc", baseline, candidate) == pytest.approx(
        [metrics.roc_auc_score(label, score) for label, score in both]
    )
    assert scores("somers_d", baseline, candidate) == pytest.approx(
        [stats.somersd(label, score).statistic for label, score in both]
    )
    without_ties = [each.with_columns(label=pl.col("id").shuffle(seed)) for each in runs(80, seed, digits=12)]
    expected = [stats.kendalltau(each["label"], each["score"]).statistic for each in without_ties]
    assert scores("kendall_tau", *without_ties) == pytest.approx(expected)


def test_concordance_index_of_a_small_study() -> None:
    """Five patients, by hand: 6 comparable pairs.

    Patient 1 dies at 2, patient 2 at 4, patient 3 is censored at 4, patient 4 dies at 5, patient 5 is
    censored at 1. Patient 1 is compared with 2, 3 and 4; 2 with 3 (censored at the same time) and with 4; 4
    with nobody.
    """
    shared = {"id": [1, 2, 3, 4, 5], "label": [2, 4, 4, 5, 1], "event": [1, 1, 0, 1, 0]}
    # Risks 5 > 3, 3, 1 are in order; 3 and 3 are a tie; 3 > 1 is in order: (1 + 1 + 1 + 1/2 + 1) / 5.
    candidate = pl.DataFrame({**shared, "score": [5.0, 3.0, 3.0, 1.0, 9.0]})
    # 1 < 2, 3, 4, none in order; 2 < 3; 2 < 4: 0.
    baseline = pl.DataFrame({**shared, "score": [1.0, 2.0, 3.0, 4.0, 0.0]})
    assert scores("concordance_index", baseline, candidate) == [0.0, 0.9]


@pytest.mark.parametrize("seed", range(3))
def test_concordance_index_by_definition(seed: int) -> None:
    baseline, candidate = (each.with_columns(label=pl.col("time")) for each in runs(40, seed))
    expected = [
        float(concordance_index(each["score"].to_list(), each.to_dict(as_series=False)))
        for each in (baseline, candidate)
    ]
    assert scores("concordance_index", baseline, candidate) == pytest.approx(expected)


@pytest.mark.parametrize("tolerance", [0.0, 0.2, 0.5])
def test_pairwise_accuracy_by_definition(tolerance: float) -> None:
    baseline, candidate = runs(40)
    score = pairwise_accuracy(Fraction(str(tolerance)))
    expected = [
        float(score(each["score"].to_list(), each.to_dict(as_series=False))) for each in (baseline, candidate)
    ]
    found = scores("pairwise_accuracy", baseline, candidate, parameters={"tolerance": tolerance})
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (AUC + "counts: {a: 1}\n", "5:1", "`counts` cannot be used with `pairs`"),
        (AUC + "score: a\n", "5:1", "`score` cannot be used with `pairs`"),
        (AUC + "missing: {a: 1}\n", "5:1", "`missing` cannot be used with `pairs`"),
        (AUC + "classes: label\n", "5:1", "no condition reads `class`"),
        (AUC + "repeats: sum\n", "5:10", "expected"),
        (AUC + "resolution: 0.1\n", "4:9", "a term of comparisons has no `resolution`"),
        ("pairs: {left: label == 1}\n", "1:8", "the key `term` is missing"),
        (AUC + "  scale: logits\n", "5:10", "expected one of "),
        (AUC + "  middle: 1\n", "5:3", "unknown key `middle`"),
        (AUC.replace("label == 1", "score > 1"), "2:9", "`left` reads the score"),
        (AUC.replace("label == 1", "right.label == 1"), "2:9", "`right.label` cannot be used in `left`"),
        (AUC.replace("label == 1", "label + 1"), "2:9", "`left` is not a condition"),
        (AUC.replace("label == 0", "u.label == 0"), "3:10", "unknown prefix `u.`"),
        (AUC.replace("label == 0", "n_tokens(label) == 0"), "3:10", "`n_tokens` cannot be used in `pairs`"),
        (AUC.replace("> right.score", "> score"), "4:23", "`score` does not say of which example"),
        ("pairs: {term: left.score > 1, scale: raw}\n", "1:15", "does not read the scores of both examples"),
        ("pairs: {term: left.score - right.score}\n", "1:15", "on the scale of ranks"),
        ("pairs: {term: left.score - right.score > 0.1}\n", "1:15", "on the scale of ranks"),
        ("pairs: {term: log(left.score) - right.score, scale: raw}\n", "1:15", "`log` cannot be used"),
        ("name: loss\n" + AUC, "1:7", "`loss` needs the key `greater_is_better`"),
    ],
)
def test_errors(text: str, place: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        read_statistic(text, "x.yaml")
    assert f"x.yaml:{place}: " in caught.value.message
    assert message in caught.value.message
    path = tmp_path / "x.yaml"
    path.write_text(text)
    assert any(message in problem.message for problem in problems(path))


def test_all_errors_are_found(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("pairs:\n  left: score > 1\n  right: label +\n  term: left.score\n  scale: raw\n")
    assert [problem.line for problem in problems(path)] == [3]
    path.write_text("pairs:\n  left: score > 1\n  right: label + 1\n  term: left.score\n  scale: raw\n")
    assert [problem.line for problem in problems(path)] == [2, 3, 4]
    path.write_text(AUC)
    assert [problem.message.split("\n")[0] for problem in problems(path, ["id", "score"])] == [
        "the data has no column `label` at `$.pairs.left`",
        "the data has no column `label` at `$.pairs.right`",
    ]


def test_rows_of_one_example_cannot_be_combined() -> None:
    with pytest.raises(InputError, match="compares pairs of examples"):
        load_statistic("roc_auc", repeats="sum")
    assert load_statistic("roc_auc", repeats="rows").repeats == "rows"


def test_types_of_columns_are_checked() -> None:
    baseline, candidate = (each.with_columns(label=pl.lit("yes")) for each in runs(10))
    with pytest.raises(SpecError, match="text has no order"):
        trackperm.compare(baseline, candidate, "kendall_tau", allow_unseen=True)
    words = [each.with_columns(score=pl.lit("high")) for each in runs(10)]
    with pytest.raises(SpecError, match="text has no order"):
        trackperm.compare(*words, "roc_auc")


def test_any_other_term_needs_a_resolution_and_few_examples() -> None:
    statistic = read_statistic(SQUARES, "x.yaml", "squares")
    assert statistic.pair_term is not None
    assert not by_order(statistic.pair_term)
    with pytest.raises(SpecError, match="needs a `resolution`"):
        trackperm.compare(*runs(10), statistic)
    fine = load_statistic(statistic, resolution="0.01")
    found = trackperm.compare(*runs(10), fine)
    assert found.test.error_bound <= 1e-10
    assert "resolution: '0.01'" in written_spec(fine)
    with pytest.raises(SpecError, match="at most 10,000 examples, not 10,001"):
        trackperm.compare(*runs(10_001), fine)
    whole = [each.with_columns(score=pl.col("id") % 4) for each in runs(10)]
    assert trackperm.compare(*whole, statistic).difference == 0.0


def test_ranks_are_compared_on_all_pairs_too() -> None:
    """Weights of many kinds are not tabulated; the scores that are exchanged are ranks all the same."""
    term = "((left.score > right.score) - (left.score < right.score)) * left.weight"
    spec = f"pairs: {{term: {term}}}\n"
    weight = pl.int_range(100, 180).alias("weight")
    baseline, candidate = (each.with_columns(weight) for each in runs(80))
    scaled = candidate.with_columns(score=100.0 * pl.col("score"))
    slow = read_statistic(spec, "x.yaml", "weighted")
    first, second = (trackperm.compare(baseline, each, slow) for each in (candidate, scaled))
    assert first.pvalue == second.pvalue
    # With few weights, the term is tabulated.
    few = [each.with_columns(weight=1 + pl.col("id") % 3) for each in (baseline, candidate)]
    halves = read_statistic(spec.replace("left.weight", "left.weight / 2"), "x.yaml", "halves")
    assert trackperm.compare(*few, halves).pvalue == trackperm.compare(*few, slow).pvalue
    assert 2 * trackperm.compare(*few, halves).difference == pytest.approx(
        trackperm.compare(*few, slow).difference
    )


def test_quotients_on_all_pairs() -> None:
    term = "left.score * right.score * left.weight / right.weight"
    spec = f"pairs: {{term: {term}, scale: raw}}\nresolution: 0.000001\n"
    weight = pl.int_range(1, 81).alias("weight")
    both = [each.with_columns(weight) for each in runs(80)]
    found = trackperm.compare(*both, read_statistic(spec, "x.yaml", "quotient"))
    score, w = both[1]["score"].to_numpy(), both[1]["weight"].to_numpy()
    values = np.outer(score * w, score / w)
    expected = (values.sum() - np.trace(values)) / (80 * 79)
    assert found.candidate_score == pytest.approx(expected, abs=1e-6)
    with pytest.raises(SpecError, match="a negative exponent"):
        read_statistic("pairs: {term: left.score ** -1 * right.score, scale: raw}\n", "x.yaml")


@pytest.mark.parametrize(
    ("name", "largest"),
    [
        ("roc_auc", 1),
        ("concordance_index", 1),
        ("pairwise_accuracy", 1),
        ("kendall_tau", 2),
        ("somers_d", 2),
    ],
)
def test_largest_difference_of_two_scores(name: str, largest: int) -> None:
    term = load_statistic(name).pair_term
    assert term is not None
    assert term.largest_difference == largest


@pytest.mark.parametrize(
    ("term", "largest"),
    [
        ("where(left.score > right.score, 3, 0 - 1) / 2", 2),
        ("(left.score > right.score) * (left.label > right.label) - (left.label < right.label)", 2),
        ("(left.score > right.score) * left.weight", None),
        ("left.score - right.score", None),
        ("(left.score > right.score) / (left.label > right.label)", None),
    ],
)
def test_data_bound_some_terms_only(term: str, largest: int | None) -> None:
    spec = read_statistic(f"pairs:\n  scale: raw\n  term: {term}\n", "x.yaml", "x")
    assert spec.pair_term is not None
    assert spec.pair_term.largest_difference == largest
