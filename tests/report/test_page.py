from __future__ import annotations

import html
import itertools
import random
import re
from pathlib import Path

import polars as pl
import pytest
from support.comparisons import accuracy, answers, check_golden, named, without_digests
from support.markup import Markup
from support.pages import CUT, chromium

import trackperm
from trackperm.errors import CapacityError
from trackperm.report import view

GOLDEN = Path(__file__).parent / "golden"
ATTACK = "<script>alert(1)</script>"


def hostile():
    rows = answers([False] * 5 + [True], wrong=ATTACK)
    comparison = trackperm.compare(rows, answers([True] * 6), "accuracy")
    return named(comparison, "baseline", f"</script>{ATTACK}\"'`")


def test_outline():
    page = Markup(trackperm.report.html(accuracy(20, 4, both=10)))
    assert page.within("h1", "h2") == [
        ("h1", "▲"),
        ("h1", "candidate is better than baseline by accuracy ("),
        ("h1", "p = 0.00154"),
        ("h1", ")"),
        ("h2", "Examples that changed"),
        ("h2", "Null distribution"),
        ("h2", "What was tested"),
        ("h2", "Pairing"),
    ]
    assert ("html", {"lang": "en"}) in page.elements


def test_page_loads_nothing_from_outside():
    page = Markup(trackperm.report.html(accuracy(20, 4, both=10)))
    assert not [
        tag for tag, attributes in page.elements if {"src", "href", "action", "srcset"} & set(attributes)
    ]
    assert "script" not in page.tags
    contents = [attributes.get("content") or "" for _, attributes in page.elements]
    (policy,) = [content for content in contents if "default-src" in content]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_golden():
    page = trackperm.report.html(accuracy(3, 9, both=2, by_position=True, alternative="less"))
    check_golden(without_digests(page), GOLDEN / "page.html")


def test_hostile_text_stays_text():
    page = trackperm.report.html(hostile())
    assert "script" not in Markup(page).tags
    assert ATTACK not in page
    assert html.escape(ATTACK) in page


def noisy_words(n):
    rng = random.Random(0)
    return ["".join(rng.choices("<>&\"'éabc", k=900)) for _ in range(n)]


def unlike_runs(n):
    """Return two runs with everything that makes a page long."""
    words = [noisy_words(n) for _ in range(4)]
    runs = [
        {"id": words[0], "label": words[1], "prediction": [*words[1][: n // 2 - 200 * run], *words[2]][:n]}
        for run in (0, 1)
    ]
    return [pl.DataFrame({**run, "topic of the question": words[3]}) for run in runs]


@pytest.mark.parametrize(
    "build",
    [
        lambda: accuracy(30_000, 29_900),
        lambda: accuracy(150, 140, both=300, margin=0.1).with_second_opinions(),
        lambda: long_names(accuracy(1500, 20)),
        lambda: trackperm.compare(*unlike_runs(1000), "accuracy"),
    ],
    ids=["large", "opinions", "names", "texts"],
)
def test_the_page_stays_below_100_kb(build):
    assert len(trackperm.report.html(build()).encode()) < 100_000


def long_names(comparison):
    return named(comparison, "é" * 3000, "&" * 3000)


def test_as_many_examples_as_fit_are_shown():
    page = trackperm.report.html(accuracy(1500, 20))
    shown = int(re.search(r"The first (\d+) of 1,520 examples", page)[1])
    assert 200 < shown < 1000
    assert page.split("Examples that changed</h2>")[1].count("<tr><td") == shown
    assert "All 24 examples" in trackperm.report.html(accuracy(20, 4))


def test_long_texts_are_cut():
    rows = answers([False, True], wrong="x" * 5000)
    page = trackperm.report.html(trackperm.compare(rows, answers([True, True]), "accuracy"))
    assert "x" * 499 + "…" in page
    assert "x" * 500 not in page


def test_cells_that_are_not_plain_numbers():
    frame = pl.DataFrame({"id": [1, 2], "prediction": [3, 4], "label": [5, 4], "big": [1, 2**60]})
    other = frame.with_columns(prediction=pl.Series([5, 6]))
    page = trackperm.report.html(trackperm.compare(frame, other, "accuracy"))
    assert '<td class="number">1</td>' in page
    assert '<td><bdi>3</bdi> <span class="to">→</span> <bdi>5</bdi></td>' in page


def test_changes_are_in_one_column_and_counts_that_say_no_more_are_left_out():
    page = trackperm.report.html(accuracy(20, 4))
    assert re.findall("<th [^>]*>(.*?)</th>", page) == ["change", "id", "label", "prediction"]
    assert page.count('<td class="better">▲ better</td>') == 20
    assert page.count('<td><bdi>no</bdi> <span class="to">→</span> <bdi>yes</bdi></td>') == 20
    assert page.count('<td><bdi>yes</bdi> <span class="to">→</span> <bdi>no</bdi></td>') == 4


def test_clusters_are_not_called_examples():
    """Regression: 10 documents were "all 10 examples", under the head "id"."""
    rows = pl.DataFrame({"id": range(40), "document": [f"d{i // 4}" for i in range(40)], "label": [1] * 40})
    runs = [rows.with_columns(prediction=pl.lit(value)) for value in (0, 1)]
    comparison = trackperm.compare(*runs, "accuracy", cluster="document")
    shown = trackperm.report.html(comparison)
    assert "<h2>Clusters that changed</h2>" in shown
    assert "All 10 clusters on which the counts of the two runs differ; cells with an arrow show" in shown
    assert '<th scope="col">document</th>' in shown
    assert "No discordant cluster is worse, so the odds" in shown
    assert not re.search(r"examples? (that|is worse|on which)|>id</th>", shown)
    assert (
        trackperm.compare(runs[0], runs[0], "accuracy", cluster="document")
        ._repr_html_()
        .count("every cluster")
    )


def test_ranks_of_clusters_have_a_page():
    """Regression: its table raised KeyError; a row is an example, as ranks are those of examples."""
    rows = pl.DataFrame({"id": range(12), "document": [i // 3 for i in range(12)], "label": range(12)})
    runs = [rows.with_columns(score=pl.Series([i * k % 13 for i in range(12)])) for k in (2, 5)]
    comparison = trackperm.compare(*runs, "spearman", cluster="document")
    shown = trackperm.report.html(comparison)
    assert comparison.n_discordant == 4 < len(comparison.discordant)
    assert f"All {len(comparison.discordant)} examples on which" in shown


def test_only_long_cells_wrap():
    rows = answers([False, True], wrong="no " * 20)
    page = trackperm.report.html(trackperm.compare(rows, answers([True, True]), "accuracy"))
    assert page.count('<td class="long">') == 1
    assert "<td>dev-0000</td>" in page


def test_no_line_breaks_inside_a_number():
    page = trackperm.report.html(accuracy(156, 5, both=700))
    assert '(<span class="whole">p = 5.98e-40</span>)' in page
    assert re.search(r'<span class="whole">\[\+\d\.\d+,</span> <span class="whole">\+\d\.\d+\]</span>', page)
    assert re.search(r'<span class="whole">1e-13</span>', trackperm.report.html(accuracy(12, 3)))


def test_the_p_of_an_equivalence_is_that_of_the_equivalence():
    comparison = accuracy(8, 7, both=385, margin=0.03)
    page = trackperm.report.html(comparison)
    assert '(<span class="whole">p = 0.00849</span> for equivalence)</span></h1>' in page
    tiles = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page)
    assert ("p-value of equivalence", '<span class="whole">0.00849</span>') in tiles
    assert ("p-value of a difference", '<span class="whole">1</span>') in tiles


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        (
            (20, 4),
            r"outputs; the orange parts add up to the p-value, within <span [^>]*>1e-1\d</span>\.</fig",
        ),
        ((0, 0), r"outputs; the orange parts add up to the p-value\.</fig"),
        ((150, 0), r"outputs; the p-value is the probability of the orange region\.</fig"),
    ],
)
def test_caption_locates_the_pvalue(counts, sentence):
    assert re.search(sentence, trackperm.report.html(accuracy(*counts, both=5)))


def test_a_distribution_too_large_to_draw_is_reported(monkeypatch):
    def refuse(comparison, narrow=False):
        raise CapacityError("needs 7 TiB <here>")

    monkeypatch.setattr(view, "null_drawing", refuse)
    page = trackperm.report.html(accuracy(20, 4))
    assert "Not drawn: needs 7 TiB &lt;here&gt;." in page
    Markup(page)


CASES = {
    "better": lambda: accuracy(156, 5, both=700, neither=38),
    "both": lambda: accuracy(20, 4, both=376, margin=0.1),
    "one-sided": lambda: accuracy(20, 4, both=76, alternative="less"),
    "large": lambda: long_names(accuracy(30_000, 29_900)),
    "texts": lambda: trackperm.compare(*unlike_runs(500), "accuracy"),
}


@pytest.mark.slow
def test_nothing_is_cut_at_any_width(tmp_path):
    """Every text of a drawing lies in it, and only the table of examples scrolls."""
    with chromium() as started:
        for name, build in CASES.items():
            file = tmp_path / f"{name}.html"
            file.write_text(trackperm.report.html(build()), encoding="utf-8")
            page = started.new_page()
            page.goto(file.as_uri())
            for scheme, width in itertools.product(("light", "dark"), (390, 760, 1280, 1920)):
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size({"width": width, "height": 900})
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                assert page.evaluate(CUT) == []
                assert page.locator("svg:visible").count() == 2
            page.close()


HEIGHTS = """(cells) => [...document.querySelectorAll(cells)].map((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return range.getBoundingClientRect().height;
})"""


@pytest.mark.slow
def test_ids_and_verdicts_stay_whole_on_paper():
    """Regression: beside long texts, ids had a digit per line, and verdicts were apart from their markers."""
    texts = [text[:300] for text in noisy_words(10)]
    runs = [
        pl.DataFrame({"id": range(100_000, 100_010), "prediction": own, "label": texts})
        for own in ([f"{each} more" for each in texts], texts)
    ]
    with chromium() as started:
        page = started.new_page(viewport={"width": 718, "height": 1000})
        page.emulate_media(media="print")
        page.set_content(trackperm.report.html(trackperm.compare(*runs, "accuracy")))
        heights = page.evaluate(HEIGHTS, "td.number, td.better")
        assert len(heights) == 20
        assert max(heights) < 1.6 * min(heights)
        assert page.evaluate("document.documentElement.scrollWidth") <= 718


@pytest.mark.parametrize(
    ("scores", "shown"),
    [
        ((1 / 3, 2 / 3), ("0.333333", "0.666667")),
        ((1 / 3, 1 / 3 + 1e-9), ("0.33333333333333", "0.33333333433333")),
    ],
)
def test_changed_numbers_are_rounded_while_they_differ(scores, shown):
    runs = [pl.DataFrame({"id": range(12), "score": [score] * 12}) for score in scores]
    rows = view.changed_rows(trackperm.compare(*runs, "mean"), 10_000).rows
    assert all(tuple(float(each) for each in shown) in row for row in rows)
    assert rows
