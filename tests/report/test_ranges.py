"""What is shown as a range: both cases of missing predictions, and the interval that decides equivalence."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl
from support.comparisons import accuracy

import trackperm
from trackperm.comparison import Comparison
from trackperm.report import description, phrases, text, view
from trackperm.report.drawings.effect_bar import effect_bar
from trackperm.report.drawings.text_bar import text_bar
from trackperm.report.notes import notes_of
from trackperm.report.page import html
from trackperm.report.plain_words import plain_words
from trackperm.server.jobs.views import comparison_view


class TestMissingBounds:
    """Regression: one of the two cases was shown as the result."""

    @staticmethod
    def compared() -> Comparison:
        label = ["a"] * 100
        first = pl.DataFrame({"id": range(100), "prediction": ["b"] * 20 + ["a"] * 80, "label": label})
        second = pl.DataFrame(
            {
                "id": range(100),
                "prediction": ["a"] * 5 + ["b"] * 10 + ["a"] * 65 + [None] * 20,
                "label": label,
            }
        )
        return trackperm.compare(first, second, "accuracy", missing="bounds")

    def test_scores_and_differences_are_ranges(self) -> None:
        comparison = self.compared()
        assert phrases.scores(comparison) == [
            ("baseline", "0.8000"),
            ("candidate", "0.7000 to 0.9000"),
            ("difference", "-0.1000 to +0.1000"),
        ]
        assert plain_words(comparison).startswith(
            "Depending on the missing predictions, the candidate gets between 10 fewer and 10 more of every"
            " 100 examples right. If the two runs were interchangeable, in the less extreme case, a"
        )
        assert not any("minimum detectable" in note for note in notes_of(comparison))
        assert "odds" not in " ".join(description.explanation(comparison))

    def test_the_bars_go_from_the_worst_to_the_best_case(self) -> None:
        comparison = self.compared()
        numbers, axis, _ = text_bar(comparison)
        assert "-0.1000 to +0.1000" in numbers
        assert re.search("●{5,}", axis)
        assert "<circle" not in effect_bar(comparison)

    def test_counts_are_ranges_or_those_of_a_named_case(self) -> None:
        comparison = self.compared()
        assert phrases.discordance(comparison) == "10 to 30 discordant: 10 better, 0 to 20 worse"
        more_changed = replace(comparison, pairing=replace(comparison.pairing, n_changed=45))
        changes = [note for note in notes_of(more_changed) if "changed" in note]
        assert changes == [
            "45 of 100 predictions changed or are missing in one run; 30 change the score in the worst case"
        ]
        assert "With 30 discordant examples in the worst case, p is" in " ".join(
            description.explanation(comparison)
        )
        assert "differ in the worst case; cells" in html(comparison)
        assert comparison_view(comparison)["changed"]["case"] == " in the worst case"

    def test_missing_predictions_are_noted_for_both_cases(self) -> None:
        noted = [note for note in notes_of(self.compared()) if note.startswith("missing predictions: ")]
        assert noted[1:] == ["missing predictions: 0 of the baseline, 20 of the candidate"]
        (case, _) = self.compared().bounds
        assert "missing predictions: 0 of the baseline at their best, 20 of the candidate at their worst" in (
            notes_of(case)
        )

    def test_a_logged_comparison_names_the_case_of_its_counts(self) -> None:
        logged = replace(self.compared(), bounds=())
        assert phrases.discordance(logged) == "30 discordant: 10 better, 20 worse in the worst case"

    def test_each_case_has_its_own_sign_and_no_p_is_0(self) -> None:
        label = ["a"] * 1400
        first = pl.DataFrame({"id": range(1400), "prediction": ["b"] * 1400, "label": label})
        second = first.with_columns(prediction=pl.when(pl.col("id") > 0).then(pl.lit("a")))
        (note,) = (
            note
            for note in notes_of(trackperm.compare(first, second, "accuracy", missing="bounds"))
            if note.startswith("missing predictions: worst")
        )
        assert "p = 0," not in note
        assert re.search(r"p = \d\.\d+e-4\d\d, better", note)


def test_the_interval_that_decides_equivalence_is_shown() -> None:
    comparison = accuracy(8, 7, both=385, margin=0.03)
    assert [name for name, _ in phrases.intervals(comparison)] == ["95% CI", "90% CI"]
    assert "   90% CI [-0.0163, +0.0215]" in text.lines(comparison)[0]
    assert "| 90% CI |" in description.markdown(comparison)
    assert re.search("╌━+╂━●━+╌", text_bar(comparison)[1])
    facts = {name: detail for name, _, detail in view.facts(comparison)}
    assert "decides equivalence" in facts["90% CI"]
