"""Kind of p-value and meaning of its test, the same in text, JSON and page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.comparisons import accuracy, answers

import trackperm
from trackperm import report
from trackperm.comparison import Comparison
from trackperm.errors import InputError
from trackperm.exact.functions.rational import RationalStatistic
from trackperm.report import description, phrases, text

QUOTIENT = "counts: {right: prediction == label, wrong: prediction != label}\nscore: right / wrong\n"


def everything(comparison: Comparison) -> list[str]:
    """All texts of a comparison: terminal, Markdown, page."""
    page = re.sub(r"<script.*?</script>|<style>.*?</style>", "", report.html(comparison), flags=re.DOTALL)
    page = re.sub(r"</?span[^>]*>", "", page)
    return ["\n".join(text.lines(comparison)), description.markdown(comparison).replace("\\", ""), page]


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_a_mid_p_value_is_never_called_p_nor_exact(alternative: Any):
    comparison = accuracy(15, 4, both=30, alternative=alternative, mid_p=True)
    said = everything(comparison)
    for words in said:
        assert "mid-p computed exactly, level not guaranteed" in words
        assert "the error rate may exceed alpha" in words
        assert not re.search(
            r"(?<!mid-)\bp = \d|(?<!mid-)\bp is at least|(?<!mid-)p-value \||>p-value<", words
        )
    for words in said[1:]:
        assert "may disagree with the mid-p-value" in words
        assert "mid-p is the share" in words
        assert ", mid-p is at least" in words
    data = comparison.to_dict()
    assert (data["mid_p"], data["interval"]["relation"]) == (True, "may disagree")
    assert "mid-p = " in repr(comparison)
    assert "mid-p-value" in comparison._repr_html_()


def test_the_smallest_mid_p_value_is_attained():
    assert (
        phrases.smallest_p_sentence(accuracy(5, 0, mid_p=True))
        == "with 5 discordant examples, mid-p is at least 0.0312"
    )
    assert accuracy(5, 0, mid_p=True).pvalue == 2.0**-5


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_an_estimated_p_is_labelled(alternative: Any):
    comparison = accuracy(15, 4, both=30, alternative=alternative, method="monte-carlo", n_samples=999)
    for words in everything(comparison):
        assert "Monte Carlo of 999 swaps, 99 % interval" in words
    for words in everything(comparison)[1:]:
        assert "p is an estimate, from 999 random exchanges, of the share" in words
        assert "it may disagree with the estimated p-value" in words
        assert "and 999 random swaps, p is at least 0.001" in words
    assert comparison.to_dict()["n_samples"] == 999


@pytest.mark.parametrize("statistic", ["accuracy", "error_rate"])
@pytest.mark.parametrize("mid_p", [False, True])
@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_a_one_sided_test_shows_one_side(alternative: Any, mid_p: bool, statistic: str):
    """Both orders of two runs: the side that the test does not cover is never claimed."""
    first, second = answers([False] * 15 + [True] * 14), answers([True] * 25 + [False] * 4)
    looked_for = "better" if (alternative == "greater") == (statistic == "accuracy") else "worse"
    words = set()
    for runs in ((first, second), (second, first)):
        comparison = trackperm.compare(*runs, statistic, alternative=alternative, mid_p=mid_p)
        words.add(comparison.verdict)
        data = comparison.to_dict()
        interval = comparison.interval
        assert data["alternative"] == data["interval"]["alternative"] == interval.alternative == alternative
        assert (interval.high if alternative == "greater" else -interval.low) == 1.0
        if not mid_p:
            assert (0.0 not in interval) == (comparison.verdict != "undecided")
        for place, said in enumerate(everything(comparison)):
            assert "one-sided 95% CI" in said
            assert f", one-sided ({alternative})" in said
            assert place == 0 or ", one-sided)" in said
            assert place == 0 or "differences in the other direction do not count" in said
            assert "one-sided: p is valid only if" in said.replace("One-sided: p", "one-sided: p")
            assert "was chosen before the results were seen" in said
            if comparison.verdict == "undecided" and place > 0:
                assert f"candidate is not shown to be {looked_for} than baseline" in said
                assert "not shown to differ" not in said
                assert "neither run is shown" not in said
    assert words == {looked_for, "undecided"}


def test_the_reason_for_a_missing_interval_is_shown(tmp_path: Path):
    spec = tmp_path / "quotient.yaml"
    spec.write_text(QUOTIENT, encoding="utf-8")
    runs = answers([False] * 26), answers([True] * 25 + [False])
    reasons = {
        "only 1 example differs between the runs; a score interval needs 6": trackperm.compare(
            answers([True]), answers([False]), "f1", parameters={"positive": "yes"}
        ),
        "the statistic is undefined for some resamples": trackperm.compare(*runs, spec, interval="bootstrap"),
        "intervals were switched off": trackperm.compare(*runs, spec, interval="none"),
    }
    for reason, comparison in reasons.items():
        assert comparison.interval is None
        assert (comparison.interval_unavailable or "").startswith(reason)
        data = comparison.to_dict()
        assert (data["interval"], data["no_interval"]) == (None, comparison.interval_unavailable)
        assert all(f"o interval: {reason}" in said for said in everything(comparison))
    found = accuracy(3, 1)
    assert found.interval_unavailable is found.to_dict()["no_interval"] is None
    assert not any("o interval" in said for said in everything(found))


def test_unexpected_errors_of_an_interval_are_raised(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise InputError("something that nobody meant")

    monkeypatch.setattr(RationalStatistic, "values", refuse)
    comparison = trackperm.compare(
        answers([True] * 3), answers([False] * 3), "f1", parameters={"positive": "yes"}
    )
    with pytest.raises(InputError, match="nobody meant"):
        _ = comparison.interval
