from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from support.comparisons import accuracy, named

import trackperm
from trackperm.comparison import Comparison, Slice
from trackperm.report.drawings.drawing import tick_label
from trackperm.report.drawings.effect_bar import effect_bar, sides
from trackperm.report.drawings.text_bar import text_bar
from trackperm.report.plain_words import how_often, plain_words

CASES = {
    "better": accuracy(20, 4, both=76),
    "worse": accuracy(3, 60, both=40),
    "equivalent": accuracy(8, 7, both=385, margin=0.03),
    "equal": accuracy(0, 0, both=10),
    "one-sided": accuracy(20, 4, both=76, alternative="greater"),
}


def without_namespace(drawing: str) -> ET.Element:
    return ET.fromstring(drawing.replace(' xmlns="http://www.w3.org/2000/svg"', ""))


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("comparison", CASES.values(), ids=CASES)
def test_everything_is_inside_the_drawing_and_in_its_place(comparison: Comparison, narrow: bool) -> None:
    svg = without_namespace(effect_bar(comparison, narrow=narrow))
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
    assert re.fullmatch(
        r"difference \+0\.0025, 95% CI \[-0\.\d+, \+0\.\d+\], 90% CI \[-0\.\d+, \+0\.\d+\], margin 0\.03",
        label,
    )


def test_where_lower_is_better_the_sides_are_exchanged() -> None:
    higher, lower = (trackperm.compare(*two_errors(), name) for name in ("accuracy", "word_error_rate"))
    ends = [
        [each.text for each in without_namespace(effect_bar(found)) if "←" in (each.text or "")]
        for found in (higher, lower)
    ]
    assert ends == [["← baseline better"], ["← candidate better"]]


def test_the_open_side_of_a_one_sided_interval_is_an_arrow() -> None:
    svg = without_namespace(effect_bar(CASES["one-sided"]))
    (arrow,) = svg.iterfind("path")
    interval = next(each for each in svg if each.attrib.get("stroke-linecap"))
    assert arrow.attrib["d"].startswith(f"M{interval.attrib['x2']} ")
    assert float(interval.attrib["x2"]) > 800
    assert not list(without_namespace(effect_bar(CASES["better"])).iterfind("path"))


def test_beside_a_margin_the_interval_that_decides_is_drawn_thick() -> None:
    svg = without_namespace(effect_bar(CASES["equivalent"]))
    thin, thick = (
        (float(each.attrib["x1"]), float(each.attrib["x2"]))
        for each in svg
        if "stroke-linecap" in each.attrib
    )
    margin = next(svg.iterfind("rect"))
    left = float(margin.attrib["x"])
    assert thin[0] < thick[0] < thick[1] < thin[1]
    assert left < thick[0]
    assert thick[1] < left + float(margin.attrib["width"])


def test_without_an_interval_the_bar_says_so() -> None:
    comparison = trackperm.compare(*two_errors(), "macro_f1", interval="none")
    assert comparison.interval is None
    assert ">no interval</text>" in effect_bar(comparison)


def test_long_names_lose_what_they_share_and_stay_apart() -> None:
    names = [
        f"exp-2026/resnet50-imagenet21k-finetuned-lr3e-4-seed{seed}-label-smoothing-mixup"
        for seed in (17, 18)
    ]
    comparison = named(CASES["better"], *names)
    assert sides(comparison, 28) == ("…seed17-label…", "…seed18-label…")
    assert sides(comparison, 400) == tuple(names)
    assert sides(named(CASES["better"], "a", "a"), 27) == ("baseline", "candidate")
    assert sides(named(CASES["better"], "short", "a name of no more than 20"), 27) == (
        "short",
        "a name of no more tha…",
    )


def test_names_are_escaped_and_harmless() -> None:
    comparison = named(CASES["better"], "</text><script>alert(1)</script>", "a\u202eb\x00c\nd")
    svg = without_namespace(effect_bar(comparison))
    texts = [each.text or "" for each in svg.iterfind("text")]
    assert not list(svg.iter("script"))
    assert "← </text><script>alert(1)</script> better" in texts
    assert "a\ufffdb\ufffdc d better →" in texts
    assert "\n" not in "".join(text_bar(comparison))


@pytest.mark.parametrize("comparison", CASES.values(), ids=CASES)
def test_the_bar_in_characters(comparison: Comparison) -> None:
    numbers, axis, names = text_bar(comparison)
    assert len(axis) == len(names) == 60
    at = axis.index("●")
    shown = f"{comparison.difference:+.4f}" if comparison.difference else "0.0000"
    assert shown in numbers
    assert abs(numbers.index(shown) + len(shown) // 2 - at) <= 3
    zero = next((axis.index(sign) for sign in "┼╂" if sign in axis), at)
    assert (at > zero) - (at < zero) == (comparison.difference > 0) - (comparison.difference < 0)
    assert ("░" in axis) == (comparison.margin is not None)
    assert ("┼" in axis) == (comparison.interval is not None and 0.0 not in comparison.interval)


@pytest.mark.parametrize(
    ("ticks", "labels"),
    [
        ([-0.05, 0.0, 0.05], ["−0.05", "0", "+0.05"]),
        ([-2e-9, 0.0, 2e-9], ["−2e−09", "0", "+2e−09"]),
        ([0.0, 5e6, 1e7], ["0", "+5e+06", "+1.0e+07"]),
        ([0.0, 100.0], ["0", "+100"]),
    ],
)
def test_tick_labels(ticks: list[float], labels: list[str]) -> None:
    assert [tick_label(tick, ticks) for tick in ticks] == labels


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
    part = replace(CASES["better"], slice=Slice("language", "Deutsch", declared=True))
    assert plain_words(part).startswith(
        "The candidate gets 16 more of every 100 examples with language = Deutsch right. If"
    )
    assert plain_words(CASES["equivalent"]) == (
        "The candidate gets about 2 more of every 1,000 examples right. If they really differed by 0.03 or"
        " more, results this close would come up about once in 120 comparisons."
    )
    assert plain_words(accuracy(8, 7, both=385, margin=0.1)).endswith(
        "at most once in 1,000,000 comparisons."
    )
    assert "with equal differences counted half" in plain_words(accuracy(20, 4, both=76, mid_p=True))
    assert "at least this high" in plain_words(CASES["one-sided"])
    drawn = plain_words(accuracy(40, 1, both=100, method="monte-carlo", n_samples=1_999))
    assert drawn.endswith(  # regression: "about once in 2,000", where the probability is 4e-11
        "at most once in 377 comparisons (99 % confidence; none of 1,999 random swaps gave one)."
    )
    assert plain_words(CASES["equal"]) == "The two runs have the same score."


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
