"""Picture of a verdict: it is passed on alone, so that it has all that qualifies the verdict."""

from __future__ import annotations

import re
from html import unescape

import polars as pl
import pytest
from support.comparisons import accuracy, named

import trackperm
from trackperm.comparison import Comparison
from trackperm.report.drawings.picture import picture
from trackperm.report.headline import headline

N = 400


def words(comparison: Comparison) -> str:
    """All texts of a picture, in one line."""
    return " ".join(unescape(text) for text in re.findall(r"<text[^>]*>(.*?)</text>", picture(comparison)))


def run(wrong: range, missing: range = range(0)) -> pl.DataFrame:
    answer = [None if i in missing else "no" if i in wrong else "yes" for i in range(N)]
    return pl.DataFrame(
        {
            "id": range(N),
            "document_id": [f"d{i // 20}" for i in range(N)],
            "prediction": answer,
            "label": ["yes"] * N,
        }
    )


def test_caveats_and_scope_are_in_the_picture() -> None:
    """Regression: p = 0.007 alone, where the test by document said 0.3."""
    comparison = trackperm.compare(run(range(100)), run(range(90, 140)), "accuracy")
    assert comparison.dependence
    found = words(comparison)
    assert "look: the differences between the runs are correlated within each `document_id`" in found
    assert "by `document_id`, p = " in found
    assert "scope: these two runs on these examples; not other seeds, prompts or test sets" in found


def test_missing_predictions_are_in_the_picture() -> None:
    comparison = trackperm.compare(
        run(range(100)), run(range(50), range(350, 370)), "accuracy", missing="wrong"
    )
    assert "missing predictions counted as wrong: 0 of the baseline, 20 of the candidate" in words(comparison)


def test_a_long_name_is_cut_in_its_middle_and_p_stays() -> None:
    """Regression: the end of the headline was cut, with the end of the baseline's name and with p."""
    start = "checkpoint-" + "very-long-model-name-" * 12
    comparison = named(accuracy(20, 4, both=10), f"{start}A", f"{start}B")
    for found in (words(comparison), headline(comparison)):
        assert re.search(r"….*-B is better than checkpoint-.*….*-A by accuracy \(p = 0.00154\)", found)
    assert len(headline(comparison, 230)) <= 230


@pytest.mark.parametrize("name", [f"ab__Efg-Hijk-{{}}_{'x' * 80}-m", f"{'x' * 95}{{}}", f"{'a-' * 50}{{}}"])
def test_names_of_any_form_leave_room_for_p(name: str) -> None:
    """Regression: lines that were broken at hyphens filled four lines before the p-value."""
    found = words(named(accuracy(20, 4, both=10), name.format("70B"), name.format("405B")))
    assert "by accuracy (p = 0.00154)" in found[: found.index("The candidate gets")]


def test_the_number_of_examples_and_the_level_of_the_bar_are_in_the_picture() -> None:
    found = words(accuracy(20, 4, both=10))
    assert re.search(
        r"34 examples \(24 discordant: 20 better, 4 worse\); difference \+0.4706, 95% CI \[", found
    )
