"""What print, notebooks and browsers show of results."""

from __future__ import annotations

import re
import sys
from dataclasses import replace

import polars as pl
import pytest
from support.command_line import invoke
from support.comparisons import accuracy, answers
from support.markup import Markup
from support.pages import chromium
from support.processes import python

import trackperm
from trackperm.errors import MissingDependencyError
from trackperm.presentation import Presented
from trackperm.report import description, text
from trackperm.report.drawings import picture
from trackperm.report.leaderboard import text as leaderboard_text

ATTACK = "</style></div><script>window.hacked = 1</script>"


def board() -> trackperm.Leaderboard:
    runs = {f"run {k}": answers([i % (k + 2) != 0 for i in range(60)]) for k in range(4)}
    return trackperm.leaderboard(runs, "accuracy")


def hostile() -> trackperm.Comparison:
    found = accuracy(20, 4, both=30)
    return replace(found, candidate_data=replace(found.candidate_data, name=ATTACK))


RESULTS = {"comparison": lambda: accuracy(20, 4, both=30), "leaderboard": board, "hostile": hostile}


@pytest.mark.parametrize("build", RESULTS.values(), ids=RESULTS)
def test_a_fragment_has_no_script_and_no_style_for_others(build):
    shown = build()._repr_html_()
    tags = Markup(shown).tags
    assert tags[0] == "div"
    assert not {"script", "link", "html", "body", "iframe", "img"} & set(tags)
    (style,) = re.findall("<style>(.*?)</style>", shown, re.DOTALL)
    for selector in outer_selectors(style):
        assert all(part.strip().startswith(".trackperm") for part in selector.split(","))
    assert len(shown) < 40_000


def outer_selectors(style: str) -> list[str]:
    """Return the selectors that are in no other one's braces: nested ones apply inside of theirs alone."""
    found: list[str] = []
    around: list[str] = []
    for part in re.findall(r"[^{};]*[{};]", style):
        words, end = part[:-1].strip(), part[-1]
        if end == "{":
            if not words.startswith(("@container", "@media")) and all(
                each.startswith("@") for each in around
            ):
                found.append(words)
            around.append(words)
        elif end == "}":
            around.pop()
    return found


def test_str_is_what_the_command_line_prints(tmp_path):
    paths = []
    for name, correct in (("a", [True] * 10 + [False] * 12), ("b", [True] * 22)):
        paths.append(str(tmp_path / f"{name}.parquet"))
        answers(correct).write_parquet(paths[-1])
    printed = invoke("compare", *paths, "-s", "accuracy", "--no-log")
    assert str(trackperm.compare(*paths, "accuracy")) + "\n" == printed
    ranked = invoke("leaderboard", *paths, "-s", "accuracy", "--no-log")
    assert str(trackperm.leaderboard(paths, "accuracy")).rstrip() == ranked.rstrip()


def test_repr_is_short():
    assert len(repr(accuracy(20, 4, both=30))) < 120
    assert repr(board()) == "<Leaderboard of 4 runs by accuracy: 6 comparisons, 2 significant>"


def test_the_bundle_has_what_was_asked_for():
    comparison = accuracy(20, 4, both=30)
    bundle = comparison._repr_mimebundle_()
    assert bundle == {
        "text/plain": "\n".join(text.lines(comparison)),
        "text/html": comparison._repr_html_(),
        "text/markdown": description.markdown(comparison),
    }
    assert set(comparison._repr_mimebundle_(exclude={"text/html"})) == {"text/plain", "text/markdown"}
    assert set(comparison._repr_mimebundle_(include={"text/plain", "x/y"})) == {"text/plain"}
    assert comparison._repr_mimebundle_(include=["image/png"]) == {"image/png": picture.png(comparison)}
    ranking = board()
    assert ranking._repr_mimebundle_()["text/markdown"] == leaderboard_text.markdown(ranking)
    assert ranking._repr_mimebundle_(include=["image/png"])["image/png"].startswith(b"\x89PNG")


def test_to_html_is_the_page():
    comparison, ranking = accuracy(20, 4, both=30), board()
    assert comparison.to_html() == trackperm.report.html(comparison)
    assert ranking.to_html() == trackperm.report.render(ranking, "html").decode()


def test_pictures_need_the_extra_and_pages_do_not(monkeypatch):
    comparison = accuracy(12, 3, both=10)
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingDependencyError, match="need `vl-convert-python`") as caught:
        picture.png(comparison)
    assert caught.value.hint == "pip install 'trackperm[plots]'"
    assert "<svg" in comparison.to_html()
    assert "<svg" in comparison._repr_html_()


@pytest.mark.extended
def test_results_present_themselves_in_a_fresh_interpreter():
    """The package root, which any import of a part of it runs, names the presenters."""
    code = (
        "from trackperm.comparison.compare import compare\n"
        "import polars as pl\n"
        "runs = [pl.DataFrame({'id': range(9), 'prediction': [k] * 9, 'label': [1] * 9}) for k in (0, 1)]\n"
        "print(compare(*runs, 'accuracy'))"
    )
    assert python(code).startswith("accuracy   baseline 0.0000   candidate 1.0000")


def test_every_kind_of_result_has_a_presenter():
    found = {kind.__name__ for kind in Presented.__subclasses__()}
    assert found == {"Comparison", "Leaderboard"}
    for build in RESULTS.values():
        for name in ("text", "markdown", "fragment", "page", "png"):
            assert callable(getattr(build()._presenter, name))


def test_frames_of_comparisons_can_be_concatenated():
    runs = answers([False] * 12 + [True] * 20), answers([True] * 32)
    several = trackperm.compare(*runs, ["accuracy", "error_rate"], margin=0.6)
    alone = accuracy(5, 4, both=20, alternative="greater")
    frame = pl.concat([each.to_frame() for each in (*several, alone)])
    assert frame["statistic"].to_list() == ["accuracy", "error_rate", "accuracy"]
    assert frame["difference"].to_list() == [*(each.difference for each in several), alone.difference]
    assert frame["verdict"].to_list() == ["better", "better", "undecided"]
    assert frame["adjusted_p"].to_list() == [several[0].corrected.pvalue, several[1].corrected.pvalue, None]
    assert frame["equivalence_p"].null_count() == 1
    assert frame["n_better"].dtype == pl.Int64


def test_the_frame_of_a_leaderboard_has_a_row_for_each_run():
    ranking = board()
    frame = ranking.to_frame()
    assert frame["run"].to_list() == [row.name for row in ranking.rows]
    assert frame["score"].to_list() == [row.score for row in ranking.rows]
    assert frame["adjusted_p"].to_list() == [None, *(row.pair.adjusted for row in ranking.rows[1:])]
    assert frame["worst_rank"].to_list() == [row.ranks[1] for row in ranking.rows]
    against = trackperm.leaderboard(
        {"a": answers([True] * 9), "b": answers([False] * 9)}, "accuracy", baseline="a"
    )
    assert against.to_frame()["letters"].null_count() == 2


NOTEBOOK = """<style>body {{ background: {ground}; color: {ink}; font: 13px sans-serif; }}</style>
<h2>Theirs</h2><p>Text</p><table id="theirs"><tr><td>cell</td></tr></table>
<div style="width: {width}px">{shown}</div>"""

SEEN = """selector => [...document.querySelectorAll(selector)].map((each) => {
  const {color, fontSize, margin, padding, borderBottomWidth, whiteSpace} = getComputedStyle(each);
  return [color, fontSize, margin, padding, borderBottomWidth, whiteSpace];
})"""


@pytest.mark.slow
@pytest.mark.parametrize(("ground", "ink"), [("#ffffff", "#212121"), ("#111111", "#e0e0e0")])
def test_a_notebook_keeps_its_styles_and_reads_well_in_both_themes(ground, ink):
    with chromium() as started:
        page = started.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
        page.set_content(NOTEBOOK.format(ground=ground, ink=ink, width=900, shown=""))
        before = page.evaluate(SEEN, "body, h2, p, #theirs td")
        for build in RESULTS.values():
            for width in (340, 900):
                page.set_content(
                    NOTEBOOK.format(ground=ground, ink=ink, width=width, shown=build()._repr_html_())
                )
                after = page.evaluate(SEEN, "body, body > h2, body > p, #theirs td")
                assert after == before
                assert page.evaluate("window.hacked") is None
                own = page.evaluate(SEEN, ".trackperm, .trackperm p:not(.soft)")
                assert {colour for colour, *_ in own} == {before[0][0]}
                box = page.locator(".trackperm").bounding_box()
                assert box["width"] <= width
                assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        page.close()


def test_notes_name_arguments_in_python() -> None:
    """Regression: `print(comparison)` said `--slice`, which is an option of the command line."""
    parts = pl.Series("split", ["train", "test"] * 12)
    comparison = trackperm.compare(
        answers([True] * 24).with_columns(parts),
        answers([False] * 9 + [True] * 15).with_columns(parts),
        "accuracy",
    )
    for shown in (str(comparison), comparison._repr_html_().replace("&#34;", '"')):
        assert '`slices=["split"]` compares each part' in shown
