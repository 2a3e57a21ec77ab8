from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from support.comparisons import accuracy

import trackperm
from trackperm.comparison import Comparison
from trackperm.report.effect_bar import effect_bar
from trackperm.report.plain_words import how_often, plain_words

CASES = {
    "better": accuracy(20, 4, both=76),
    "worse": accuracy(3, 60, both=40),
    "equivalent": accuracy(8, 7, both=385, margin=0.1),
    "equal": accuracy(0, 0, both=10),
    "one-sided": accuracy(20, 4, both=76, alternative="greater"),
}


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("comparison", CASES.values(), ids=CASES)
def test_everything_is_inside_the_drawing_and_in_its_place(comparison: Comparison, narrow: bool) -> None:
    svg = ET.fromstring(effect_bar(comparison, narrow=narrow))
    width = float(svg.attrib["viewBox"].split()[2])
    places = [
        float(each.attrib[name]) for each in svg for name in ("x", "x1", "x2", "cx") if name in each.attrib
    ]
    assert all(0 <= place <= width for place in places)
    circle = next(each for each in svg if each.tag == "circle")
    zero = next(each for each in svg if "stroke-dasharray" in each.attrib)
    moved = float(circle.attrib["cx"]) - float(zero.attrib["x1"])
    assert (moved > 0) - (moved < 0) == (comparison.difference > 0) - (comparison.difference < 0)
    ticks = [
        each.text for each in svg if each.tag == "text" and re.fullmatch(r"0|[+−][\d.]+", each.text or "")
    ]
    assert "0" in ticks
    assert len(ticks) == len(set(ticks)) <= 8
    assert ("too small to matter" in ET.tostring(svg, "unicode")) == (comparison.margin is not None)


def test_the_label_says_what_is_drawn() -> None:
    label = ET.fromstring(effect_bar(CASES["equivalent"])).attrib["aria-label"]
    assert re.fullmatch(r"difference \+0\.0025, 95% CI \[-0\.\d+, \+0\.\d+\], margin 0\.1", label)


def test_where_lower_is_better_the_sides_are_exchanged() -> None:
    higher, lower = (trackperm.compare(*two_errors(), name) for name in ("accuracy", "word_error_rate"))
    ends = [
        [each.text for each in ET.fromstring(effect_bar(found)) if "←" in (each.text or "")]
        for found in (higher, lower)
    ]
    assert ends == [["← baseline better"], ["← candidate better"]]


def two_errors():
    import polars as pl

    labels = ["a b", "c d"] * 10
    return [
        pl.DataFrame({"id": range(20), "label": labels, "prediction": ["x"] * wrong + labels[wrong:]})
        for wrong in (8, 2)
    ]


def test_plain_words() -> None:
    assert plain_words(CASES["better"]) == (
        "The candidate gets 16 more of every 100 examples right. If the two runs were interchangeable, a"
        " difference at least this large would come up about once in 650 comparisons."
    )
    assert "57 fewer of every 100" in plain_words(accuracy(3, 60, both=37))
    assert "about 2 more of every 1,000" in plain_words(CASES["equivalent"])
    assert "at least this high" in plain_words(CASES["one-sided"])
    assert plain_words(CASES["equal"]).startswith("The two runs have the same score.")


@pytest.mark.parametrize(
    ("log10_pvalue", "words"),
    [
        (0.0, "in every comparison"),
        (-0.7257, "in about 19 of 100 comparisons"),
        (-1.4132, "in about 3.9 of 100 comparisons"),
        (-2.8125, "about once in 650 comparisons"),
        (-5.0, "about once in 100,000 comparisons"),
        (-31.85, "less than once in 10³¹ comparisons"),
        (-1000.5, "less than once in 10¹⁰⁰⁰ comparisons"),
    ],
)
def test_how_often(log10_pvalue: float, words: str) -> None:
    assert how_often(log10_pvalue) == words
