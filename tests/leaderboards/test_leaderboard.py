"""Corrections, letters, ranks, clones, verdicts and refusals of leaderboards."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.budget import cases
from support.comparisons import numbered
from support.reference_data import ABSENT, DATA, available, reference

import trackperm
from trackperm.errors import InputError
from trackperm.exact.multiplicity import adjust
from trackperm.leaderboards import Leaderboard


def runs_of(rates: list[float], n: int = 80, seed: int = 0) -> dict[str, pl.DataFrame]:
    rng = np.random.default_rng(seed)
    label = np.where(np.arange(n) % 3, "y", "n")
    return {
        f"m{i}": numbered(prediction=np.where(rng.random(n) < rate, label, "?"), label=label)
        for i, rate in enumerate(rates)
    }


def share_a_letter(board: Leaderboard, first: int, second: int) -> bool:
    own = [set(board.rows[i].letters or "") for i in (first, second)]
    return bool(own[0] & own[1])


@given(rates=st.lists(st.sampled_from([0.3, 0.6, 0.9]), min_size=2, max_size=6), seed=st.integers(0, 99))
@settings(max_examples=cases(5), deadline=None)
def test_rows_follow_from_the_verdicts_on_pairs(rates: list[float], seed: int):
    board = trackperm.leaderboard(runs_of(rates, seed=seed), intervals=False)
    assert [pair.adjusted for pair in board.pairs] == pytest.approx(
        adjust([pair.test.pvalue for pair in board.pairs], "holm").tolist(), rel=1e-9
    )
    n = len(board.rows)
    assert sorted({(pair.baseline, pair.candidate) for pair in board.pairs}) == list(
        combinations(range(n), 2)
    )
    scores = [row.score for row in board.rows]
    assert scores == sorted(scores, reverse=True)
    significant = {(pair.baseline, pair.candidate): pair.verdict == "worse" for pair in board.pairs}
    for (better, worse), found in significant.items():
        assert share_a_letter(board, better, worse) is not found
    for place, row in enumerate(board.rows):
        assert row.rank == 1 + sum(score > row.score for score in scores)
        losses = sum(found for (_, worse), found in significant.items() if worse == place)
        wins = sum(found for (better, _), found in significant.items() if better == place)
        assert row.ranks == (1 + losses, n - wins)
        assert row.ranks[0] <= row.rank <= row.ranks[1]
        assert row.pair is None if place == 0 else (row.pair.candidate, row.pair.baseline) == (place, 0)


def test_a_baseline_is_compared_with_all_others():
    runs = runs_of([0.3, 0.9, 0.6, 0.6])
    board = trackperm.leaderboard(runs, baseline="m2")
    assert len(board.pairs) == 3
    assert board.rows[board.baseline].name == "m2"
    assert {row.name: row.pair and row.pair.verdict for row in board.rows} == {
        "m1": "better",
        "m2": None,
        "m3": "undecided",
        "m0": "worse",
    }
    assert {row.letters for row in board.rows} == {row.ranks for row in board.rows} == {None}
    by_hand = adjust([trackperm.compare(runs["m2"], runs[m]).pvalue for m in ("m0", "m1", "m3")])
    found = [board.pair("m2", name).adjusted for name in ("m0", "m1", "m3")]
    assert found == pytest.approx(by_hand.tolist(), rel=1e-9)
    assert trackperm.leaderboard(runs, baseline=runs["m2"]).to_json() == board.to_json()
    others = {name: run for name, run in runs.items() if name != "m2"}
    beside = trackperm.leaderboard(others, baseline=runs["m2"])
    assert [pair.adjusted for pair in beside.pairs] == [pair.adjusted for pair in board.pairs]
    with pytest.raises(KeyError):
        board.pair("m0", "m1")


def test_corrections():
    runs = runs_of([0.5, 0.6, 0.75, 0.9])
    boards = {name: trackperm.leaderboard(runs, correction=name) for name in ("holm", "by", "bonferroni")}
    for name, board in boards.items():
        pvalues = [pair.test.pvalue for pair in board.pairs]
        assert [pair.adjusted for pair in board.pairs] == pytest.approx(adjust(pvalues, name), rel=1e-9)
        assert board.correction.name == name
    assert all(row.ranks is None for row in boards["by"].rows)
    assert all(row.letters for row in boards["by"].rows)
    assert all(row.ranks for row in boards["bonferroni"].rows)
    for name in ("bh", "hommel"):
        with pytest.raises(InputError, match=rf"`correction` is '{name}'; expected one of `holm`"):
            trackperm.leaderboard(runs, correction=name)
    with pytest.raises(InputError, match="'none'; expected one of `holm`, `by`, `bonferroni`"):
        trackperm.leaderboard(runs, correction="none")


def test_monte_carlo_counts_by_the_upper_end_of_its_interval():
    board = trackperm.leaderboard(runs_of([0.5, 0.8, 0.9]), method="monte-carlo", n_samples=500, seed=7)
    ends = [pair.test.interval[1] for pair in board.pairs]
    assert all(pair.test.method == "monte-carlo" for pair in board.pairs)
    assert [pair.adjusted for pair in board.pairs] == pytest.approx(adjust(ends).tolist())
    assert min(ends) > min(pair.test.pvalue for pair in board.pairs)
    assert board.options["seed"] == "7"
    shown = trackperm.report.render(board, "text").decode()
    assert "is at most 0.05, if these intervals contain the p-values" in shown
    intervals = [row.interval for row in board.rows if row.pair is not None]
    assert {interval.relation for interval in intervals} == {"may disagree"}


def test_p_values_below_the_range_of_floats_are_adjusted():
    n = 3000
    label = pl.Series("label", ["y"] * n)
    runs = {
        name: pl.DataFrame({"id": np.arange(n), "prediction": [right] * n, "label": label})
        for name, right in (("all", "y"), ("none", "n"), ("nothing", ""))
    }
    board = trackperm.leaderboard(runs)
    pair = board.pair("all", "none")
    assert (pair.test.pvalue, pair.adjusted, pair.verdict) == (0.0, 0.0, "worse")
    assert pair.log10_adjusted == pytest.approx((1 - n) * np.log10(2) + np.log10(3), abs=1e-6)
    assert "e-90" in trackperm.report.render(board, "text").decode()
    assert '"adjusted_pvalue": null' in board.to_json()
    assert board.rows[1].clones == ("nothing",)


def test_clones_are_found():
    runs = runs_of([0.5, 0.8])
    board = trackperm.leaderboard({**runs, "copy": runs["m1"].reverse()})
    assert {row.name: row.clones for row in board.rows} == {"m1": ("copy",), "copy": ("m1",), "m0": ()}
    assert board.pair("m1", "copy").test.pvalue == 1.0
    assert [row.rank for row in board.rows] == [1, 1, 3]
    same = trackperm.leaderboard({"a": runs["m0"], "b": runs["m0"], "c": runs["m0"]})
    assert [row.clones for row in same.rows] == [("b", "c"), ("a", "c"), ("a", "b")]
    macro = trackperm.leaderboard({**runs, "copy": runs["m1"].reverse()}, "macro_f1")
    assert {row.name: row.clones for row in macro.rows} == {"m1": ("copy",), "copy": ("m1",), "m0": ()}


def test_less_can_be_better():
    board = trackperm.leaderboard(runs_of([0.3, 0.9, 0.6]), "error_rate")
    assert [row.name for row in board.rows] == ["m1", "m2", "m0"]
    assert board.rows[2].pair.verdict == "worse"
    assert board.rows[2].pair.difference > 0
    assert board.rows[0].letters.startswith("a")
    assert board.rows[0].ranks[0] == 1


def test_runs_that_cannot_be_scored_together_are_incomplete():
    """F1 is 0/0 in a run without positive predictions or labels; two such runs cannot be compared."""
    ids = list(range(6))

    def run(*positives: int) -> pl.DataFrame:
        return pl.DataFrame({"id": ids, "prediction": [int(i in positives) for i in ids], "label": [0] * 6})

    one = trackperm.leaderboard({"silent": run(), "noisy": run(1, 2), "other": run(3)}, "f1")
    assert (len(one.rows), one.incomplete) == (3, ())
    two = trackperm.leaderboard({"x": run(), "y": run(), "noisy": run(1, 2), "other": run(3)}, "f1")
    assert sorted(run.name for run in two.incomplete) == ["x", "y"]
    assert "0/0" in two.incomplete[0].reason
    assert len(two.pairs) == 1
    based = trackperm.leaderboard({"x": run(), "y": run(), "noisy": run(1, 2)}, "f1", baseline="x")
    assert [run.name for run in based.incomplete] == ["y"]
    with pytest.raises(InputError, match=r"needs two runs with a score[\s\S]*x: [\s\S]*y: "):
        trackperm.leaderboard({"x": run(), "y": run()}, "f1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "`alpha` is 0.0"),
        ({"alternative": "greater"}, "expected `two-sided` for all pairs"),
        ({"method": "fast"}, "`method` is 'fast'"),
        ({"baseline": "nobody.csv"}, "nobody.csv"),
        ({"experiment": "digits"}, '`experiment="digits"` does not name a tracker'),
    ],
)
def test_invalid_options_are_refused(options: dict, message: str):
    with pytest.raises(InputError, match=message):
        trackperm.leaderboard(runs_of([0.5, 0.8]), **options)


def test_a_statistic_without_scores_is_refused(tmp_path: Path):
    spec = tmp_path / "long.yaml"
    spec.write_text("counts: {right: prediction == label}\ng: {a: u.right, b: v.right}\nh: a - b\n")
    with pytest.raises(InputError, match="has no score of a single run"):
        trackperm.leaderboard(runs_of([0.5, 0.8]), spec)


def test_one_run_is_refused_with_its_name():
    with pytest.raises(InputError, match=r"got 1 run \(`m0`\); expected at least 2") as error:
        trackperm.leaderboard(runs_of([0.5]))
    assert error.value.hint is not None
    assert error.value.hint.startswith("name another run")


def test_a_leaderboard_introduces_itself():
    board = trackperm.leaderboard(runs_of([0.3, 0.9]))
    assert board.signature.startswith(
        "accuracy|alt:two-sided|n:80|runs:2|incomplete:0|pairs:1|correction:holm|"
    )
    assert board.key != trackperm.leaderboard(runs_of([0.3, 0.9]), correction="by").key
    assert replace(board, alpha=0.01).key == board.key  # options are what was asked for


@pytest.mark.skipif(not available(), reason=ABSENT)
def test_published_values_of_trec_and_aeon():
    """Four systems of TREC adhoc8, and three classifiers on 112 data sets."""
    topics = pl.read_csv(DATA / "reference_pvalues/urbano_trec/adhoc8_p10.csv")
    names = ["run95", "run94", "run19", "run41"]
    runs = {n: pl.DataFrame({"id": range(len(topics)), "score": topics[n]}) for n in names}
    board = trackperm.leaderboard(runs, "mean", intervals=False)
    for other in names[1:]:
        expected = float(reference(f"urbano/adhoc8_p10_run95__vs__{other}").pvalue("two-sided"))
        assert board.pair("run95", other).test.pvalue == pytest.approx(expected, rel=1e-9)
    classifiers = {}
    for name in ("FreshPRINCE", "HC2", "InceptionTime"):
        table = pl.read_csv(DATA / f"cv_folds/aeon_ucr/{name}_accuracy.csv")
        classifiers[name] = table.select(pl.col("Resamples:").alias("id"), pl.col("0").alias("score"))
    board = trackperm.leaderboard(classifiers, "mean", resolution="0.0001", intervals=False)
    for first, second in combinations(classifiers, 2):
        expected = float(
            reference(f"aeon_ucr/112_datasets_default_split/{first}__vs__{second}").pvalue("two-sided")
        )
        assert board.pair(first, second).test.pvalue == pytest.approx(expected, rel=1e-9)
    assert {row.name: row.letters for row in board.rows} == {
        "HC2": "a",
        "InceptionTime": "b",
        "FreshPRINCE": "b",
    }


def test_predictions_in_another_spelling_are_noted():
    label = ["dog", "cat"] * 20
    predictions = {"a": label, "b": ["DOG"] * 10 + label[10:], "c": ["cat"] * 40}
    runs = {name: numbered(label=label, prediction=each) for name, each in predictions.items()}
    [note] = [each for each in trackperm.leaderboard(runs, "accuracy").notes if "only case" in each]
    assert note.startswith("look: only case or spaces differ from the label in 5 predictions of `b`")
