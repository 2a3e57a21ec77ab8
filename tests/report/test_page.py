from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from support.browser import rendered
from support.comparisons import accuracy, answers, check_golden, without_digests

import trackperm
from trackperm.errors import CapacityError
from trackperm.report import charts

GOLDEN = Path(__file__).parent / "golden"
ATTACK = "<script>alert(1)</script>"
VOID = {"meta", "link", "br", "img", "hr", "input", "wbr"}


class Outline(HTMLParser):
    """Headings, element counts and proof that every element is closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.headings, self.tags, self.attributes = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        heading = [tag for tag in self.open if re.fullmatch(r"h\d", tag)]
        if heading:
            self.headings.append((heading[0], data))


def hostile():
    rows = answers([False] * 5 + [True], wrong=ATTACK)
    comparison = trackperm.compare(rows, answers([True] * 6), "accuracy")
    named = replace(comparison.candidate_data, name=f"</script>{ATTACK}\"'`")
    return replace(comparison, candidate_data=named)


def test_outline():
    outline = Outline(trackperm.report.html(accuracy(20, 4, both=10)))
    assert not outline.open
    verdict = "candidate is better than baseline by accuracy (p = 0.00154)"
    assert outline.headings == [
        ("h1", "▲"),
        ("h1", verdict),
        ("h2", "Null distribution"),
        ("h2", "What was tested"),
        ("h2", "Pairing"),
        ("h2", "Discordant examples"),
    ]
    assert ("html", "lang", "en") in outline.attributes


def test_page_loads_nothing_from_outside():
    outline = Outline(trackperm.report.html(accuracy(20, 4, both=10)))
    assert not [
        (tag, name) for tag, name, _ in outline.attributes if name in {"src", "href", "action", "srcset"}
    ]
    policy = next(
        value for _, name, value in outline.attributes if name == "content" and "default-src" in value
    )
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_golden():
    page = trackperm.report.html(accuracy(3, 9, both=2, by_position=True, alternative="less"))
    page = without_digests(page.replace(charts.program(), "PROGRAM"))
    page = re.sub(r'(id="pmf-chart">).*?(</script>)', r"\1CHART\2", page)
    check_golden(page, GOLDEN / "page.html")


def test_hostile_text_stays_text():
    page = trackperm.report.html(hostile())
    outline = Outline(page)
    assert outline.tags.count("script") == 3
    assert ATTACK not in page
    assert html.escape(ATTACK) in page
    json.loads(re.search(r'id="pmf-chart">(.*?)</script>', page)[1])


def test_only_the_first_thousand_examples_are_shown():
    page = trackperm.report.html(accuracy(1500, 20))
    assert "The first 1000 of 1520 examples" in page
    assert page.split("<h2>Discordant examples")[1].count("<tr><td") == 1000
    assert "All 24 examples" in trackperm.report.html(accuracy(20, 4))


def test_long_texts_are_cut():
    rows = answers([False, True], wrong="x" * 5000)
    page = trackperm.report.html(trackperm.compare(rows, answers([True, True]), "accuracy"))
    assert "x" * 999 + "…" in page
    assert "x" * 1000 not in page


def test_cells_that_are_not_plain_numbers():
    frame = pl.DataFrame({"id": [1, 2**60], "prediction": ["a", "a"], "label": ["a", "b"]})
    other = frame.with_columns(prediction=pl.Series(["b", "b"]))
    page = trackperm.report.html(trackperm.compare(frame, other, "accuracy"))
    assert f"<td>{2**60}</td>" in page
    assert '<td class="number">1</td>' in page


def test_counts_that_never_differ_are_left_out():
    page = trackperm.report.html(accuracy(20, 0))
    heads = re.findall("<th [^>]*>(.*?)</th>", page.replace("<wbr>", ""))
    runs = ("baseline", "candidate")
    assert heads == ["id", "label", *(f"{run}.{name}" for name in ("prediction", "correct") for run in runs)]


def test_only_long_cells_wrap():
    rows = answers([False, True], wrong="no " * 20)
    page = trackperm.report.html(trackperm.compare(rows, answers([True, True]), "accuracy"))
    assert page.count('<td class="long">') == 1
    assert "<td>dev-0000</td>" in page


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ((20, 4), r"outputs; the orange parts add up to the p-value, within 1e-1\d\. "),
        ((0, 0), r"outputs; the orange parts add up to the p-value\. "),
        ((150, 0), r"outputs; the p-value is the probability of the orange region\. "),
    ],
)
def test_caption_locates_the_pvalue(counts, sentence):
    assert re.search(sentence, trackperm.report.html(accuracy(*counts, both=5)))


def test_a_distribution_too_large_to_draw_is_reported(monkeypatch):
    def refuse(comparison):
        raise CapacityError("needs 7 TiB <here>")

    monkeypatch.setattr(charts, "pmf_chart", refuse)
    page = trackperm.report.html(accuracy(20, 4))
    assert "Not drawn: needs 7 TiB &lt;here&gt;." in page
    assert "<script" not in page
    Outline(page)


@pytest.mark.parametrize("dark", [False, True])
def test_browser_draws_the_chart(tmp_path, dark):
    options = ["--blink-settings=preferredColorScheme=0"] if dark else []
    page = rendered(trackperm.report.html(hostile()), tmp_path, *options)
    assert re.search(r'<div id="pmf"[^>]*aria-label="Null distribution[^>]*><svg', page)
    assert "observed +0.8333" in page
    assert 'class="vega-actions"' not in page
    assert ("background-color: rgb(255, 255, 255)" in page) is not dark
