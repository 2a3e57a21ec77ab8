"""What pages show of comparisons and leaderboards: plain values that agree with the results."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from unittest.mock import Mock
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from support.comparisons import accuracy, answers

import trackperm
from trackperm.errors import CapacityError
from trackperm.report.changed_examples import changed_examples
from trackperm.report.drawings.null_distribution import Bars
from trackperm.report.plain_words import plain_words
from trackperm.server.jobs import views

ATTACK = "<script>alert(1)</script>"


def strict(value):
    """Take `value` through JSON that knows no infinity."""
    return json.loads(json.dumps(value, allow_nan=False))


def board(**options):
    runs = [answers([i % (k + 2) != 0 for i in range(60)]) for k in range(4)]
    return trackperm.leaderboard(runs, "accuracy", **options)


def test_comparison():
    comparison = accuracy(20, 4, both=10)
    view = strict(views.comparison_view(comparison))
    assert (view["marker"], view["verdict"]) == ("▲", "better")
    assert view["headline"] == "candidate is better than baseline by accuracy (p = 0.00154)"
    assert [name for name, _, _ in view["facts"]] == [
        *("baseline", "candidate", "difference", "p-value", "95% CI", "examples")
    ]
    assert view["changed"] == {"total": 24, "unit": "example", "better": 20, "worse": 4, "case": ""}
    assert view["comparison"] == strict(comparison.to_dict())
    assert view["logged"] is None
    assert view["baseline"] == {"name": "baseline", "id": None, "experiment_id": None, "url": None}
    assert view["words"] == plain_words(comparison)
    labels = {ET.fromstring(drawing).attrib["aria-label"] for drawing in view["bars"]}
    assert labels == {"difference +0.4706, 95% CI [+0.1674, +0.6931]"}
    assert all(ET.fromstring(drawing).tag.endswith("svg") for drawing in view["null"]["drawings"])
    assert view["null"]["caption"].startswith("The bars show")
    assert len(json.dumps(view)) < 60_000


def test_notes_have_the_words_of_the_page():
    """Regression: pages said `--cluster`, which they have not, and `mlflow:RUN_ID` for a named run."""
    runs = [
        pl.DataFrame(
            {
                "id": range(400),
                "document_id": [f"d{i // 20}" for i in range(400)],
                "split": ["train", "test"] * 200,
                "prediction": ["no" if i in wrong else "yes" for i in range(400)],
                "label": ["yes"] * 400,
            }
        )
        for wrong in (range(100), range(90, 140))
    ]
    comparison = trackperm.compare(*runs, "accuracy")
    notes = views.comparison_view(comparison)["notes"]
    assert any(note.endswith("`Column of clusters: document_id` tests whole clusters") for note in notes)
    assert any(note.endswith("`trackperm compare --slice split` compares each part") for note in notes)
    named = replace(comparison, baseline_data=replace(comparison.baseline_data, name="first"))
    view = views.comparison_view(named)
    [note] = [note for note in view["notes"] if "split" in note]
    assert note.startswith("look: `split` of `first` has ")
    assert not [line for line in view["pairing"] if "split" in line]


def test_texts_of_runs_are_left_as_they_are():
    comparison = accuracy(3, 1, both=2)
    named = replace(comparison, candidate_data=replace(comparison.candidate_data, name=ATTACK))
    view = views.comparison_view(named)
    assert view["candidate"]["name"] == ATTACK
    assert ATTACK in view["headline"]
    for drawing in (*view["bars"], *view["null"]["drawings"]):
        assert ATTACK not in drawing
        assert "script" not in {each.tag.rpartition("}")[2] for each in ET.fromstring(drawing).iter()}


def test_a_distribution_that_is_too_large_is_not_drawn(monkeypatch):
    monkeypatch.setattr(Bars, "of", Mock(side_effect=CapacityError("too large")))
    shown = views.comparison_view(accuracy(3, 1))["null"]
    assert shown == {"drawings": ["", ""], "caption": "", "refusal": "too large"}


def test_every_changed_example_has_its_direction():
    changed = changed_examples(accuracy(20, 4, both=10, neither=3))
    assert changed.columns == ("change", "id", "label", "prediction")
    assert [row[0] for row in changed.rows] == ["better"] * 20 + ["worse"] * 4
    assert changed.rows[0] == ("better", "dev-0000", "yes", ("no", "yes"))


def test_a_count_that_says_more_than_the_direction_is_kept():
    ids, label = [f"x{i}" for i in range(6)], ["a b c"] * 6
    runs = [
        pl.DataFrame({"id": ids, "label": label, "prediction": words})
        for words in (["a b c"] * 3 + ["x y z"] * 3, ["a b x"] * 3 + ["a y z"] * 3)
    ]
    changed = changed_examples(trackperm.compare(*runs, "word_error_rate"))
    assert changed.columns == ("change", "id", "label", "prediction", "errors")
    assert changed.rows[0][-1] == (0, 1)
    assert changed.rows[-1][-1] == (3, 2)


def test_a_value_that_stays_is_shown_once_and_a_taken_name_is_told_apart():
    ids = [f"x{i}" for i in range(4)]
    frame = pl.DataFrame({"id": ids, "prediction": [1, 1, 0, 0], "label": [1, 1, 1, 1]})
    changed = changed_examples(trackperm.compare(frame, frame.with_columns(prediction=1), "f1"), most=1)
    values = dict(zip(changed.columns, changed.rows[0], strict=True))
    assert values["prediction"] == (0, 1)
    assert len(changed.rows) == 1


def test_less_may_be_better():
    baseline, candidate = answers([True, False, False, True]), answers([False, True, True, True])
    changed = changed_examples(trackperm.compare(baseline, candidate, "error_rate"))
    assert [(row[0], row[1]) for row in changed.rows] == [
        ("worse", "dev-0000"),
        ("better", "dev-0001"),
        ("better", "dev-0002"),
    ]


def test_decimal_scores_have_directions():
    ids = [f"x{i}" for i in range(5)]
    baseline = pl.DataFrame({"id": ids, "score": [0.1, 0.25, 0.5, 0.3, 1.0]})
    candidate = pl.DataFrame({"id": ids, "score": [0.3, 0.2, 0.5, 0.31, 1.0]})
    comparison = trackperm.compare(baseline, candidate, "mean")
    changed = changed_examples(comparison)
    assert [row[0] for row in changed.rows] == ["better", "worse", "better"]
    assert (comparison.n_better, comparison.n_worse) == (2, 1)


def test_where_examples_have_no_sign_of_their_own_none_is_shown():
    label = [1, 1, 0, 0, 1, 0] * 3
    ids = [f"x{i}" for i in range(18)]
    runs = [
        pl.DataFrame({"id": ids, "prediction": [(i // k) % 2 for i in range(18)], "label": label})
        for k in (1, 2)
    ]
    comparison = trackperm.compare(*runs, "f1")
    changed = changed_examples(comparison)
    assert comparison.n_better is None
    assert changed.columns[0] == "id"
    assert len(changed.rows) == comparison.n_discordant
    assert views.comparison_view(comparison)["changed"]["better"] is None


def test_long_texts_are_whole_and_large_integers_are_text():
    long = "a" * 5_000
    ids = [2**53 + 1, 2]
    baseline = pl.DataFrame({"id": ids, "prediction": [long, "b"], "label": [long, "b"]})
    candidate = baseline.with_columns(prediction=pl.Series(["c", "b"]))
    (row,) = changed_examples(trackperm.compare(baseline, candidate, "accuracy")).rows
    assert str(2**53 + 1) in row
    assert (long, "c") in row
    strict(row)


def test_leaderboard():
    found = board()
    view = strict(views.leaderboard_view(found))
    assert [row["name"] for row in view["rows"]] == [row.name for row in found.rows]
    names = [column["name"] for column in view["columns"]]
    scores = [row["sort"][names.index("accuracy")] for row in view["rows"]]
    assert all(a >= b for a, b in pairwise(scores))
    assert scores == [row.score for row in found.rows]
    assert [row["verdict"] for row in view["rows"]] == ["best", "undecided", "undecided", "worse"]
    assert view["finding"] == "2 of the other 3 runs cannot be told from the best"
    assert [run["name"] for run in view["chart"]["runs"]] == [row.name for row in found.rows]
    assert view["board"] == strict(found.to_dict())
    assert view["markdown"] == trackperm.report.render(found, "markdown").decode()
    assert view["latex"] == trackperm.report.render(found, "latex").decode()


def test_pairs_below_the_diagonal_are_those_of_the_leaderboard():
    found = board()
    pairs = strict(views.leaderboard_view(found)["pairs"])
    assert pairs["heat"] is None
    assert [len(row) for row in pairs["below"]] == [0, 1, 2, 3]
    for pair in found.pairs:
        verdict, difference, p = pairs["below"][pair.candidate][pair.baseline]
        assert verdict == pair.verdict
        assert float(difference) == pytest.approx(pair.difference, abs=1e-4)
        assert float(p) == pytest.approx(pair.adjusted, rel=0.01)


def test_many_runs_have_a_heat_map():
    found = trackperm.leaderboard([answers([i % (k + 2) != 0 for i in range(60)]) for k in range(12)])
    pairs = strict(views.leaderboard_view(found)["pairs"])
    assert pairs["heat"]["n"] == 12
    assert pairs["heat"]["paths"].keys() == {"better", "worse", "undecided"}


def test_a_leaderboard_with_a_baseline_has_no_pairs():
    view = views.leaderboard_view(board(baseline=answers([True] * 60)))
    assert view["pairs"] is None
    assert sum(row["verdict"] == "baseline" for row in view["rows"]) == 1
