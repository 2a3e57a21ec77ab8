from __future__ import annotations

import re
from dataclasses import replace
from decimal import ROUND_CEILING
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support.comparisons import accuracy, answers, check_golden, numbered, without_digests

import trackperm
from trackperm.comparison import Comparison
from trackperm.comparison.corrections import corrected
from trackperm.exact.result import format_log10_pvalue
from trackperm.ledger.run_texts import comparison_cell, comparison_name
from trackperm.report import description, phrases, text, view
from trackperm.report.formatting import escape_markdown
from trackperm.report.headline import headline
from trackperm.report.notes import notes_of
from trackperm.report.numbers import format_number
from trackperm.report.plain_words import plain_words

GOLDEN = Path(__file__).parent / "golden"

LONG_FORM = """
name: log_odds
description: how much more often the candidate is right
counts: {correct: prediction == label, wrong: prediction != label}
g: {a: u.correct, b: u.wrong, c: v.correct, d: v.wrong}
h: a * d / (b * c) - b * c / (a * d)
"""

ERRORS = """
name: error_rate
greater_is_better: false
counts: {wrong: prediction != label, all: 1}
score: wrong / all
"""


def spec(tmp_path: Path, document: str) -> Path:
    path = tmp_path / "statistic.yaml"
    path.write_text(document)
    return path


def certified(comparison: Comparison, error_bound: float) -> Comparison:
    return replace(comparison, test=replace(comparison.test, error_bound=error_bound))


def gold_standard() -> Comparison:
    """The example that the documentation prints."""
    return accuracy(better=109, worse=69, both=935, neither=206)


@pytest.mark.parametrize(
    ("better", "worse", "options", "ending"),
    [
        (20, 4, {}, "▲ better"),
        (4, 20, {}, "▼ worse"),
        (5, 4, {}, "≈ undecided"),
        (20, 4, {"alternative": "greater"}, "▲ better"),
        (20, 4, {"alternative": "less"}, "≈ undecided"),
        (4, 20, {"alternative": "less"}, "▼ worse"),
        (20, 4, {"alpha": 1e-4}, "≈ undecided"),
    ],
)
def test_verdict_follows_direction_alternative_and_level(better, worse, options, ending):
    line = text.lines(accuracy(better, worse, both=10, **options))[1]
    assert line.endswith(f"   {ending}")
    assert options.get("alternative", "two-sided") in line
    assert f"{better} better, {worse} worse" in line


def test_less_can_be_better(tmp_path):
    baseline, candidate = answers([False] * 12 + [True] * 20), answers([True] * 32)
    comparison = trackperm.compare(baseline, candidate, spec(tmp_path, ERRORS))
    first, second, *_ = text.lines(comparison)
    assert first.startswith("error_rate (lower is better)   baseline 0.3750 ")
    assert "difference -0.3750" in first
    assert second.endswith("(12 discordant: 12 better, 0 worse)   ▲ better")
    shown = description.markdown(comparison)
    assert "by error\\_rate, where lower is better" in shown
    assert "| error\\_rate (lower is better) | |" in shown
    details = {name: detail for name, _, detail in view.facts(comparison)}
    assert details["difference"] == "candidate minus baseline (lower is better)"
    assert "candidate minus baseline (lower is better)" in trackperm.report.html(comparison)


def test_direction_of_a_log_ratio_and_of_the_long_form(tmp_path):
    baseline, candidate = answers([False] * 12 + [True] * 20), answers([False] * 3 + [True] * 29)
    counts = "counts: {wrong: prediction != label, n: 1}\ngreater_is_better: false\n"
    ratio = f"name: ratio\n{counts}score: (wrong + 0.5) / (n + 1)\ncontrast: log ratio\n"
    long = f"name: long\n{counts}g: {{x: u.wrong, y: v.wrong}}\nh: x - y\n"
    for document, name in ((ratio, "ratio"), (long, "long")):
        comparison = trackperm.compare(baseline, candidate, spec(tmp_path, document))
        assert text.lines(comparison)[0].startswith(f"{name} (lower is better)   ")
        assert comparison.verdict == "better"
    assert {name: detail for name, _, detail in view.facts(comparison)}["observed"] == "(lower is better)"


def test_long_form_prints_the_observed_value_and_no_scores(tmp_path):
    baseline, candidate = answers([False] * 12 + [True] * 20), answers([False] * 3 + [True] * 29)
    comparison = trackperm.compare(baseline, candidate, spec(tmp_path, LONG_FORM))
    first, second, *_ = text.lines(comparison)
    assert re.fullmatch(r"log_odds   observed \+\d\.\d{4}(   about 95% CI \[.*\])?", first)
    assert "baseline" not in first
    assert "the statistic log\\_odds is at least as far from zero" in description.markdown(comparison)
    assert "9 discordant" in second


def test_dropped_examples_are_reported():
    baseline, candidate = answers([True] * 8), answers([True, False] * 3)
    lines = text.lines(trackperm.compare(baseline, candidate, "accuracy", missing="drop"))
    expected = "dropped: 2 examples without a complete row in both runs (baseline 8, candidate 6, tested 6)"
    assert lines[3:] == [
        expected,
        "no difference can be shown: with 3 discordant examples, p is at least 0.25",
    ]


def test_labels_that_were_not_compared_are_reported(tmp_path):
    document = "{name: mean, counts: {total: score, all: 1}, score: total / all}"
    frames = [pl.DataFrame({"id": ["a", "b"], "score": scores}) for scores in ([1, 2], [2, 3])]
    lines = text.lines(trackperm.compare(*frames, spec(tmp_path, document)))
    assert len(lines) == 6
    assert lines[3].startswith("no interval: only 2 examples differ between the runs; an interval by shifts")
    assert lines[5].startswith("labels were not compared")


def test_ties_that_are_not_exact_and_mid_p_are_labelled():
    comparison = gold_standard()
    approximate = replace(comparison, test=replace(comparison.test, ties="approximate"))
    assert text.lines(approximate)[3].startswith("ties approximate: ")
    comparison = replace(comparison, test=replace(comparison.test, ties="100 digits", mid_p=True))
    lines = text.lines(comparison)
    assert lines[1].startswith("mid-p = ")
    assert lines[3].startswith("ties by 100 digits: ")
    assert lines[4].startswith("mid-p: ties with the observed value count half")
    assert "(mid-p = " in description.markdown(comparison)


def test_the_power_of_equivalence_stands_beside_every_margin():
    """It depends on the discordance, not on the difference, and says where there are too few examples."""
    few, even, many = (
        accuracy(better, worse, both=n - better - worse, margin=0.03)
        for better, worse, n in ((23, 16, 400), (20, 19, 400), (40, 38, 4000))
    )
    said = "power of equivalence within 0.03: 10 % if the true difference is 0, 7 % if it is half the margin"
    for comparison in (few, even):
        cautious = f"{said}; even equal runs would rarely be shown equivalent with so few examples"
        assert cautious in notes_of(comparison)
        assert cautious in view.ComparisonView.of(comparison).notes
    assert said[1:] in description.markdown(few).replace("\\", "")
    assert any("above 99 %" in note and "rarely" not in note for note in notes_of(many))
    assert [fact for fact in view.facts(few) if fact[0] == "power of equivalence"] == [
        (
            "power of equivalence",
            "10 %",
            "within 0.03, if the true difference is 0; 7 % if it is half the margin",
        )
    ]
    assert few.to_dict()["equivalence_power"]["at_zero"] == pytest.approx(0.10, abs=0.005)
    assert few.to_frame()["equivalence_power"].to_list() == [few.equivalence_power.at_zero]


def test_the_power_of_equivalence_is_a_caveat_only_if_it_is_low():
    enough = accuracy(20, 19, both=4000, margin=0.03)
    assert str(enough.equivalence_power) in notes_of(enough)
    assert str(enough.equivalence_power) not in view.ComparisonView.of(enough).notes


def test_without_a_margin_or_an_interval_there_is_no_power_of_equivalence():
    assert accuracy(20, 19, both=300).equivalence_power is None
    few = accuracy(1, 1, both=30, statistic="f1", parameters={"positive": "yes"}, margin=0.1)
    assert few.equivalence_power is None
    assert few.to_dict()["equivalence_power"] is None


def test_the_p_of_an_equivalence_is_that_of_the_equivalence():
    comparison = accuracy(8, 7, both=385, margin=0.03)
    assert headline(comparison) == (
        "candidate and baseline are equivalent within 0.03 by accuracy (p = 0.00849 for equivalence)"
    )
    assert text.lines(comparison)[1].endswith("≡ equivalent within 0.03 (p = 0.00849); the sign is undecided")
    assert "| equivalence | p = 0.00849 |" in description.markdown(comparison)
    few = text.lines(accuracy(1, 1, both=198, margin=0.05))
    assert "no difference can be shown: with 2 discordant examples, p is at least 0.5" in few
    both = accuracy(20, 4, both=376, margin=0.1)
    assert headline(both).startswith("candidate is better than baseline by accuracy (p = 0.00154), and ")
    assert headline(both).endswith("equivalent within 0.1 (p = 3.5e-05 for equivalence)")
    several = trackperm.compare(
        answers([False] * 2 + [True] * 98), answers([True] * 100), ["accuracy", "error_rate"], margin=0.2
    )
    assert ", uncorrected for equivalence)" in headline(several[0])


@pytest.mark.parametrize(("margin", "what"), [(None, "it"), (0.9, "the sign")])
def test_the_headline_says_that_missing_predictions_decide(margin: float | None, what: str):
    runs = [answers([True] * 20 + [False] * 20), answers([True] * 24)]
    comparison = trackperm.compare(*runs, missing="bounds", margin=margin)
    assert headline(comparison).endswith(f"; {what} depends on the missing predictions")


def test_monte_carlo_is_labelled_everywhere():
    comparison = accuracy(better=30, worse=20, both=40, method="monte-carlo", n_samples=999)
    (first,) = [line for line in text.lines(comparison) if line.startswith("p ≈ ")]
    assert "exact" not in first
    assert any(line.startswith("Monte Carlo: 999 random swaps (seed 0), ") for line in text.lines(comparison))
    assert headline(comparison).endswith(f"(p ≈ {comparison.format_pvalue()}, Monte Carlo)")
    assert f"p ≈ {comparison.format_pvalue()}" in repr(comparison)
    assert "≈" in comparison._repr_html_()
    assert "Monte Carlo of 999 swaps" in comparison._repr_html_()
    assert comparison.options["seed"] == "0"
    assert comparison.key != accuracy(better=30, worse=20, both=40).key


def test_tilted_sampling_is_labelled_everywhere():
    """It is valid, neither exact nor an estimate, and the estimate beside it is not the p-value."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 12, 600)
    tables = [
        numbered(label=label, prediction=np.where(rng.random(600) < right, label, 0)) for right in (0.6, 0.75)
    ]
    comparison = trackperm.compare(*tables, "macro_f1")
    test, shown = comparison.test, comparison.format_pvalue()
    assert (test.method, test.relation, comparison.verdict) == ("tilted", "≤", "better")
    lines = text.lines(comparison)
    assert lines[1].startswith(f"p ≤ {shown}  valid (tilted sampling, 20,000 draws); about ")
    assert "exact" not in lines[1]
    assert "≈" not in lines[1]
    assert any(
        line.startswith("tilted sampling: 20,000 random swaps from a mixture of fair coins and ")
        for line in lines
    )
    assert any("no exact engine fits" in line for line in lines)
    assert not any("no difference can be shown" in line for line in lines)
    assert headline(comparison).endswith(f"(p ≤ {shown}, tilted sampling)")
    assert comparison_cell(comparison).endswith(f" ▲ p≤{comparison.format_pvalue(2)}")
    assert f"p ≤ {shown}" in repr(comparison)
    assert "valid (tilted sampling, 20,000 draws)" in comparison._repr_html_()
    assert f"≤ {shown} (valid (tilted sampling, 20,000 draws); about " in description.markdown(comparison)
    assert comparison.options["n_samples"] == "20000"
    data = comparison.to_dict()
    assert (data["relation"], data["error_bound"]) == ("≤", None)
    assert set(data["estimate"]) == {"log10", "relative_error", "effective_samples"}
    assert data["estimate"]["log10"] < data["log10_pvalue"]
    exact = accuracy(12, 4, both=10)
    taken = [each.corrected for each in corrected([exact, comparison], "holm")]
    assert [each.relation for each in taken] == ["=", "≤"]
    assert taken[1].pvalue == min(2.0 * comparison.pvalue, 1.0)


def classes(*rates: float) -> list[pl.DataFrame]:
    """Runs that are right on about these shares of 6,000 examples of twelve classes."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 12, 6000)
    return [
        numbered(label=label, prediction=np.where(rng.random(6000) < rate, label, rng.integers(0, 12, 6000)))
        for rate in rates
    ]


def test_certified_ends_are_labelled_everywhere():
    """They are neither exact nor drawn at random, and the upper one is the p-value."""
    comparison = trackperm.compare(*classes(0.6, 0.65), "macro_f1", method="bracket")
    test, shown = comparison.test, comparison.format_pvalue()
    low, high = test.interval
    assert (test.method, test.relation, comparison.verdict) == ("bracket", "≤", "better")
    assert 0.0 < low < high < 1.5 * low
    assert high == pytest.approx(test.pvalue)
    lines = text.lines(comparison)
    assert lines[1].startswith(f"p ≤ {shown}  certified upper end, lower end {low:.3g}, two-sided")
    for word in ("exact", "valid", "about ", "≈"):
        assert word not in lines[1]
    assert any(
        line.startswith("certified ends: a weighted sum differs from the statistic by at most 0.0")
        for line in lines
    )
    assert headline(comparison).endswith(f"(p ≤ {shown}, certified upper end)")
    assert comparison_cell(comparison).endswith(f" ▲ p≤{comparison.format_pvalue(2)}")
    assert comparison_name(comparison).endswith(f", p ≤ {comparison.format_pvalue(2)}")
    assert f"p ≤ {shown}" in repr(comparison)
    assert ", certified upper end)" in comparison._repr_html_()
    assert "Not drawn: p is between two certified ends" in comparison._repr_html_()
    written = description.markdown(comparison)
    assert f"| p-value | ≤ {shown} (certified upper end, lower end {low:.3g}, two-sided) |" in written
    assert "p is an upper bound of the share of all exchanges" in written
    data = comparison.to_dict()
    assert (data["relation"], data["estimate"], data["n_samples"]) == ("≤", None, None)
    assert data["pvalue_interval"] == [low, high]
    assert data["error_bound"] == pytest.approx(high / low - 1.0)
    assert "|method:bracket|" in comparison.signature
    exact = accuracy(12, 4, both=10)
    taken = [each.corrected for each in corrected([exact, comparison], "holm")]
    assert [each.relation for each in taken] == ["=", "≤"]


def test_certified_ends_that_nobody_could_tell_apart_are_exact():
    comparison = accuracy(20, 4, both=10)
    near = replace(comparison.test, method="bracket", error_bound=1e-8)
    assert (near.relation, phrases.certainty(near), phrases.certainty_word(near)) == ("=", "exact", "")


def test_too_few_random_swaps_are_reported():
    lines = text.lines(accuracy(12, 0, method="monte-carlo", n_samples=50))
    assert "no difference can be shown: 50 swaps are too few; increase `--samples`" in lines
    assert not any("too few" in x for x in text.lines(accuracy(12, 0, method="monte-carlo", n_samples=500)))


def test_a_pvalue_near_the_level_has_more_digits():
    comparison = accuracy(9, 2)  # p = 0.0654296875
    assert comparison.format_pvalue() == "0.0654"
    assert replace(comparison, alpha=0.06542).format_pvalue() == "0.06543"
    assert replace(comparison, alpha=0.06543).format_pvalue() == "0.0654"


def test_no_verdict_is_possible_on_few_discordant_examples():
    note = "no difference can be shown: with 1 discordant example, p is at least 1"
    assert note in text.lines(accuracy(1, 0, both=2))
    assert not any("no difference can be shown" in line for line in text.lines(accuracy(6, 0, both=2)))


@pytest.mark.parametrize(
    ("error_bound", "words"),
    [
        (0.0, "exact,"),
        (1e-6, "exact,"),
        (2e-4, "exact within ±0.02 %,"),
    ],
)
def test_only_certified_pvalues_are_called_exact(error_bound, words):
    assert f"p = 0.00335  {words}" in text.lines(certified(gold_standard(), error_bound))[1]


def test_an_upper_bound_of_an_exact_engine_is_shown_as_one():
    """Regression: "p = 1.95e-15 certified as an upper bound", where the exact p was 2e-28."""
    comparison = gold_standard()
    test = replace(
        comparison.test, method="lattice", pvalue=0.003351, error_bound=1.0, interval=(0.0, 0.003351)
    )
    comparison = replace(comparison, test=test)
    assert "p ≤ 0.00336  certified upper end," in text.lines(comparison)[1]
    assert headline(comparison).endswith("(p ≤ 0.00336, certified upper end)")
    written = description.markdown(comparison)
    assert "| p-value | ≤ 0.00336 (certified upper end, two-sided) |" in written
    assert "p is an upper bound of the share of all exchanges" in written
    assert "the p-value is an upper bound of the probability of the orange region" in trackperm.report.html(
        comparison
    )
    assert comparison.to_dict()["relation"] == "≤"
    assert "p≤0.0034" in comparison_cell(comparison)
    taken = [each.corrected.relation for each in corrected([comparison, accuracy(20, 4)], "holm")]
    assert taken == ["≤", "="]


@pytest.mark.parametrize(
    ("value", "plain", "signed"),
    [
        (0.0, "0.0000", "0.0000"),
        (0.79151, "0.7915", "+0.7915"),
        (-0.25, "-0.2500", "-0.2500"),
        (2.1e-5, "2.1e-05", "+2.1e-05"),
        (1234.5, "1234.5000", "+1234.5000"),
        (-12345.678, "-12345.68", "-12345.68"),
        (7006794.41, "7006794", "+7006794"),
        (3e9, "3e+09", "+3e+09"),
    ],
)
def test_numbers(value, plain, signed):
    assert format_number(value) == plain
    assert format_number(value, sign=True) == signed


@pytest.mark.parametrize("name", ["better", "worse", "undecided", "identical", "tiny", "position"])
def test_golden(name):
    comparison = {
        "better": gold_standard,
        "worse": lambda: accuracy(2, 15, both=40),
        "undecided": lambda: accuracy(5, 4, both=40),
        "identical": lambda: accuracy(0, 0, both=4),
        "tiny": lambda: accuracy(5000, 20),
        "position": lambda: accuracy(3, 9, both=2, by_position=True, alternative="less"),
    }[name]()
    check_golden("\n".join(text.lines(comparison)) + "\n", GOLDEN / f"{name}.txt")
    check_golden(without_digests(description.markdown(comparison)) + "\n", GOLDEN / f"{name}.md")


HOSTILE = "a|b*c_d<script>`x`[l](http://e.x)\n# head\\ " + "é" * 5000


def test_markdown_escapes_names_and_stays_short():
    comparison = gold_standard()
    baseline = replace(comparison.baseline_data, name=HOSTILE)
    candidate = replace(comparison.candidate_data, name=f"{HOSTILE[:-1]}e")
    comparison = replace(comparison, baseline_data=baseline, candidate_data=candidate)
    document = description.markdown(comparison, remarks=["x" * 20_000, HOSTILE] * 20)
    assert len(document) <= 8_000
    assert document.startswith(r"**▲ a\|b\*c\_d\<script\>\`x\`\[l\](http://e.x) \# head\\ é")
    prose = re.sub(r"\n```text\n.*?\n```\n", "", document, flags=re.DOTALL)
    assert len(prose) < len(document)
    assert not re.search(r"(?<!\\)[<`]", prose)
    assert document.count("\n```") == 2


def test_explanation_names_the_statistic_and_the_floor():
    sentences = description.explanation(accuracy(12, 3))
    assert sentences[0] == "accuracy: Share of examples whose prediction equals the label: correct / n."
    assert sentences[1].startswith("The null hypothesis is that outputs are exchangeable on every example: ")
    assert sentences[-2] == f"With 15 discordant examples, p is at least {2.0**-14:.3g}."
    assert description.explanation(accuracy(5, 0))[-2] == (
        "With 5 discordant examples, p is at least 0.0625, so it cannot be below 0.05."
    )
    assert "with 1 discordant example, p is at least 1" in phrases.smallest_p_sentence(accuracy(1, 0))
    assert phrases.smallest_p_sentence(accuracy(1100, 0)).endswith(
        "p is at least 1e-331"
    )  # 2^-1099 = 10^-330.8
    assert not any("discordant" in sentence for sentence in description.explanation(accuracy(0, 0, both=3)))


def test_odds_where_no_example_is_worse():
    (sentence,) = (
        each for each in description.explanation(accuracy(9, 0)) if "discordant example is" in each
    )
    assert sentence.startswith("No discordant example is worse, so the odds of better to worse cannot")
    assert re.search(r"\(95% CI \d.* or more\)\.$", sentence)


@pytest.mark.parametrize(
    ("line", "exchanged", "floor"),
    [
        (
            "cluster: passage",
            "all examples with the same `passage` together: exchanging",
            "With 5 discordant clusters, p is at least 0.0625, so it cannot be below 0.05.",
        ),
        (
            "repeats: sum",
            "every example, all of its rows together: exchanging",
            "With 10 discordant examples, p is at least 0.00195.",
        ),
    ],
)
def test_explanation_names_the_exchanged_unit(tmp_path, line, exchanged, floor):
    spec = tmp_path / "share.yaml"
    spec.write_text(
        f"counts: {{right: prediction == label, n: 1}}\nscore: right / n\n{line}\n", encoding="utf-8"
    )
    rows = {"id": [f"q{i // (2 if 'repeats' in line else 1)}" for i in range(20)]}
    rows |= {"passage": [f"p{i // 4}" for i in range(20)], "label": [1] * 20}
    runs = [pl.DataFrame({**rows, "prediction": [x] * 20}) for x in (0, 1)]
    sentences = description.explanation(trackperm.compare(*runs, spec))
    assert exchanged in sentences[0], "without a description, the null hypothesis comes first"
    assert sentences[-2] == floor


def test_printed_ends_contain_the_certified_ones():
    """Regression: a lower end was "equal to three digits" to an upper end that is printed rounded up."""
    test = accuracy(12, 4, both=10).test
    close = replace(test, method="bracket", error_bound=1e-4)
    shown = phrases.certainty(close).removeprefix("certified upper end, lower end ")
    assert float(shown) <= test.interval[0] <= test.pvalue <= float(close.format_pvalue())
    apart = replace(close, interval=(0.012, test.pvalue))
    assert phrases.certainty(apart) == "certified upper end, lower end 0.012"


def test_upper_ends_are_rounded_up_and_lower_ends_down() -> None:
    """Regression: `p ≤ 0.131` for an end of 0.1312, while the exact p was 0.13103."""
    comparison = accuracy(9, 2)
    test = replace(
        comparison.test, method="bracket", pvalue=0.131178, error_bound=0.01, interval=(0.11989, 0.131178)
    )
    comparison = replace(comparison, test=test)
    assert (phrases.pvalue(comparison), comparison.format_pvalue(2)) == ("p ≤ 0.132", "0.14")
    assert phrases.certainty(test) == "certified upper end, lower end 0.119"
    assert "p is at least 0.000976" in phrases.smallest_p_sentence(accuracy(9, 2))
    assert format_log10_pvalue(-400.5, rounding=ROUND_CEILING) == "3.17e-401"


def test_runs_of_one_name_are_called_by_their_references_or_roles() -> None:
    """Regression: "preds.csv is better than preds.csv"."""
    comparison = accuracy(20, 4)
    same = replace(comparison.baseline_data, name="preds")
    comparison = replace(comparison, baseline_data=same, candidate_data=replace(same, name="preds"))
    assert headline(comparison).startswith("the candidate is better than the baseline by accuracy")
    other = replace(same, table=replace(same.table, origin="B/preds.csv"))
    found = replace(comparison, candidate_data=other)
    assert headline(found).startswith("B/preds.csv is better than baseline by accuracy")


def test_an_interval_beside_a_correction_says_to_which_p_value_it_belongs() -> None:
    found = corrected([accuracy(20, 8), accuracy(9, 4)], "holm")[0]
    facts = {name: detail for name, _, detail in view.facts(found)}
    assert facts["95% CI"].endswith("agrees with the uncorrected p-value, not with the correction")
    assert plain_words(found).endswith(", before the correction for 2 tests.")
    shown = phrases.ends(found.interval)
    assert f"uncorrected 95% CI {shown}" in text.lines(found)[0]
    assert f"| uncorrected 95% CI | {escape_markdown(shown)} |" in description.markdown(found)
    assert "uncorrected" not in text.lines(accuracy(20, 8))[0]


def test_a_score_that_no_exchange_changes_has_no_detectable_effect() -> None:
    """Regression: a rounding error became a minimum detectable effect of 1.7e-07."""
    label = [0] * 40
    runs = [
        pl.DataFrame({"id": range(40), "prediction": [0] * n + [1] * (40 - n), "label": label})
        for n in (40, 30)
    ]
    notes = notes_of(trackperm.compare(*runs, "cohen_kappa", allow_unseen=True))
    assert "the exchange of no single example changes the score" in notes
    assert not any("detectable" in note for note in notes)
