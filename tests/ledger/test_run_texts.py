"""Texts of logged results: names of comparisons, and the cell with score and verdict."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from support.comparisons import accuracy, answers, named

import trackperm
from trackperm.comparison import Comparison, corrected
from trackperm.ledger.comparison_publication import publication
from trackperm.ledger.run_texts import comparison_cell, comparison_name, leaderboard_cell

LOWER = "counts:\n  wrong: prediction != label\n  n: 1\nscore: wrong / n\ngreater_is_better: false\n"


@pytest.mark.parametrize(
    ("comparison", "name", "cell"),
    [
        (
            accuracy(20, 4, both=10),
            "candidate beats baseline in accuracy, p 0.0015",
            "accuracy 0.8824 ▲ p=0.0015",
        ),
        (
            accuracy(4, 20, both=10),
            "candidate loses to baseline in accuracy, p 0.0015",
            "accuracy 0.4118 ▼ p=0.0015",
        ),
        (
            accuracy(12, 10, both=10),
            "candidate cannot be told from baseline in accuracy, p 0.83",
            "accuracy 0.6875 ≈ p=0.83",
        ),
        (
            accuracy(12, 10, both=10, alternative="greater"),
            "candidate is not shown to be better than baseline in accuracy, p 0.42 (one-sided)",
            "accuracy 0.6875 ≈ p=0.42 one-sided",
        ),
        (
            accuracy(20, 4, both=10, mid_p=True),
            "candidate beats baseline in accuracy, mid-p 0.00091",
            "accuracy 0.8824 ▲ mid-p=0.00091",
        ),
        (
            accuracy(4000, 0),
            "candidate beats baseline in accuracy, p 1.5e-1204",
            "accuracy 1.0000 ▲ p=1.5e-1204",
        ),
    ],
)
def test_exact_results(comparison: Comparison, name: str, cell: str):
    assert (comparison_name(comparison), comparison_cell(comparison)) == (name, cell)


def test_equivalence_has_the_p_value_of_equivalence():
    found = accuracy(10, 10, both=900, neither=80, margin=0.05)
    assert found.verdict == "equivalent"
    assert comparison_name(found) == "candidate is equivalent to baseline within 0.05 in accuracy, p < 1e-06"
    assert comparison_cell(found) == "accuracy 0.9100 ≡ within 0.05"


def test_a_sign_within_the_margin_and_examples_that_were_left_out_are_said():
    """Regression: the tag of a candidate that is worse by less than the margin was that of any worse one."""
    found = accuracy(2, 20, both=900, neither=80, margin=0.05)
    assert comparison_name(found) == (
        "candidate loses to baseline in accuracy, p 0.00012, and is equivalent within 0.05"
    )
    assert comparison_cell(found) == "accuracy 0.9002 ▼ p=0.00012 ≡ within 0.05"
    runs = [answers([True] * 4 + [False] * 26), answers([True] * 16 + [False] * 4)]
    for margin, cell in ((None, "▲ p=0.00049"), (0.9, "▲ p=0.00049 ≡ within 0.9")):
        dropped = trackperm.compare(*runs, missing="drop", margin=margin)
        assert comparison_cell(dropped) == f"accuracy 0.8000 {cell} n=20 of 30"
        assert "in accuracy, p 0.00049, 20 of 30 examples" in comparison_name(dropped)


def test_drawn_and_adjusted_results_say_so():
    drawn = accuracy(20, 4, both=10, method="monte-carlo", n_samples=2000)
    written = drawn.format_pvalue(2)
    assert comparison_name(drawn) == f"candidate beats baseline in accuracy, p ≈ {written} (Monte Carlo)"
    assert comparison_cell(drawn) == f"accuracy 0.8824 ▲ p≈{written} MC"
    first, _ = corrected([accuracy(20, 4, both=10), accuracy(12, 10, both=10)], "bonferroni")
    assert comparison_name(first) == "candidate beats baseline in accuracy, adjusted p 0.0031"
    assert comparison_cell(first) == "accuracy 0.8824 ▲ adj. p=0.0031"
    both, _ = corrected([drawn, drawn], "holm")
    assert comparison_cell(both).startswith("accuracy 0.8824 ▲ adj. p≈0.")
    assert comparison_cell(both).endswith(" MC")


def test_an_upper_bound_is_none_of_the_exact_values():
    exact = accuracy(20, 4, both=10)
    bound = replace(exact, test=replace(exact.test, method="bracket", error_bound=1.0))
    assert comparison_name(bound).endswith(", p ≤ 0.0016")
    assert comparison_cell(bound).endswith("▲ p≤0.0016")
    near = replace(exact, test=replace(exact.test, error_bound=0.02))
    assert comparison_name(near).endswith(", p 0.0015 (±2%)")
    assert comparison_cell(near).endswith("▲ p=0.0015 ±2%")


def test_a_verdict_that_depends_on_missing_predictions_shows_no_p():
    candidate = pl.DataFrame({"id": range(40), "prediction": ["a"] * 30 + [None] * 10, "label": ["a"] * 40})
    baseline = pl.DataFrame({"id": range(40), "prediction": ["a"] * 28 + ["b"] * 12, "label": ["a"] * 40})
    found = trackperm.compare(baseline, candidate, "accuracy", missing="bounds")
    assert found.depends_on_missing
    assert comparison_name(found) == (
        "candidate cannot be told from baseline in accuracy: it depends on missing predictions"
    )
    assert comparison_cell(found) == "accuracy ≥0.7500 ≈ depends on missing predictions"
    published = publication(found)
    assert published.candidate_tags["sig.accuracy.score"] == 0.75
    assert published.baseline_tags["sig.accuracy.score"] == 0.7
    turned = trackperm.compare(candidate, baseline, "accuracy", missing="bounds")
    assert comparison_cell(turned).startswith("accuracy 0.7000 ")
    assert publication(turned).baseline_tags["sig.accuracy.score"] == 0.75


def test_lower_is_better(tmp_path):
    (tmp_path / "wrong.yaml").write_text(LOWER, encoding="utf-8")
    runs = [answers([i < right for i in range(40)]) for right in (8, 30)]
    found = trackperm.compare(*runs, tmp_path / "wrong.yaml")
    assert comparison_name(found).startswith("candidate beats baseline in wrong, p ")
    assert comparison_cell(found).startswith("wrong ↓ 0.2500 ▲ p=")
    board = trackperm.leaderboard({"a": runs[0], "b": runs[1]}, tmp_path / "wrong.yaml", baseline="a")
    best = board.rows[0]
    assert best.pair is not None
    assert leaderboard_cell(board, best.score, best.pair).startswith("wrong ↓ 0.2500 ▲ adj. p=")


@pytest.mark.parametrize(
    ("candidate", "baseline", "shown"),
    [
        ("a\nb\tc", "  d  ", "a b c beats d in accuracy, p 0.0015"),
        ("left\u202eright", "\x00", "left right beats unnamed in accuracy, p 0.0015"),
        ("x" * 300, "short", None),
        ("short", "x" * 300, None),
        ("x" * 300, "y" * 300, None),
    ],
)
def test_names_of_runs_are_text_of_people(candidate: str, baseline: str, shown: str | None):
    name = comparison_name(named(accuracy(20, 4, both=10), baseline, candidate))
    assert len(name) <= 128
    assert name.endswith(" in accuracy, p 0.0015")
    assert "short" not in (candidate, baseline) or "short" in name
    assert shown is None or name == shown


def test_long_names_that_share_a_beginning_stay_different():
    long = "experiment-2026-11-24-with-all-the-settings-in-its-name-and-more-of-them-seed"
    name = comparison_name(named(accuracy(20, 4, both=10), f"{long}-2", f"{long}-1"))
    candidate, _, baseline = name.removesuffix(" in accuracy, p 0.0015").partition(" beats ")
    assert 127 <= len(name) <= 128
    assert candidate.endswith("-seed-1")
    assert baseline.endswith("-seed-2")
    assert candidate.startswith("experiment-2026-")
