"""Pages for everybody: axe finds nothing, the keyboard suffices, what happens is said."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from support.pages import CUT, FIRST, Watched, watched

pytestmark = [pytest.mark.tracker, pytest.mark.slow]


def violations(opened: Watched, picture: str = "") -> list[str]:
    """Ask axe in light and in dark colours."""
    found = []
    for scheme in ("dark", "light"):
        opened.page.emulate_media(color_scheme=scheme)
        if picture:
            opened.photograph(f"{picture}-{scheme}")
        found += opened.violations()
    return found


def test_axe_finds_nothing_on_the_compare_page(chrome, site, tmp_path):
    with watched(chrome, tmp_path, site.uri, checks=True) as opened:
        page = opened.page
        page.goto(f"{site.uri}/trackperm/compare")
        assert violations(opened) == []
        opened.open(site.compare())
        page.locator("#changed-scroll tbody tr").first.wait_for()
        assert violations(opened, "compare") == []
        page.locator("#more summary").click()
        page.get_by_role("button", name="Log this comparison").click()
        page.locator("#logged a").wait_for()
        page.get_by_role("searchbox").fill("no such text")
        expect(page.locator("#changed-place")).to_have_text("No example matches")
        assert violations(opened) == []
        page.goto(site.compare(more="&column.id=nosuch"))
        expect(page.get_by_role("alert")).to_contain_text("nosuch")
        assert violations(opened) == []


def test_axe_finds_nothing_on_the_leaderboard(chrome, site, tmp_path):
    with watched(chrome, tmp_path, site.uri, checks=True) as opened:
        page = opened.page
        page.goto(f"{site.uri}/trackperm/leaderboard")
        assert violations(opened) == []
        opened.open(site.leaderboard())
        page.locator("#board").get_by_role("button", name="difference").click()
        page.locator("#matrix a[tabindex='0']").focus()
        assert violations(opened, "leaderboard") == []
        opened.open(site.leaderboard(f"&baseline={site.runs[FIRST]}"))
        assert violations(opened) == []


def test_a_narrow_window_shows_all_without_scrolling_sideways(site, opened):
    opened.page.set_viewport_size({"width": 380, "height": 700})
    for address in (site.compare(), site.leaderboard()):
        opened.open(address)
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= 380
    opened.open(site.compare(more="&margin=0.05"))
    assert opened.page.evaluate(CUT) == []
    broken = """() => [...document.querySelectorAll(".whole")].filter((each) => (
        each.getClientRects().length > 1)).map((each) => each.textContent)"""
    assert opened.page.locator(".whole").count() > 5
    assert opened.page.evaluate(broken) == []
    opened.photograph("narrow")


def test_keyboard_suffices_to_compare_and_to_log(site, opened):
    page = opened.open(site.compare())
    press = page.keyboard.press

    def until(target: str) -> None:
        """Press Tab until `target` has the focus, which is then seen."""
        for _ in range(60):
            press("Tab")
            if page.evaluate("target => document.activeElement.matches(target)", target):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none"
                return
        pytest.fail(f"Tab does not lead to {target}")

    press("Tab")
    expect(page.get_by_role("link", name="Skip to the result")).to_be_focused()
    until("#alternative")
    press("g")
    press("Tab")
    expect(page.locator("#alpha")).to_be_focused()
    page.keyboard.type("0.1")
    press("Enter")
    expect(page.locator("#signature")).to_contain_text("alt:greater")
    expect(page.locator("#headline")).to_be_focused()
    until("#log")
    press("Enter")
    page.locator("#logged a").wait_for()
    until("#directions input")
    press("ArrowRight")
    expect(page.locator("#changed-scroll tbody td.change").first).to_have_text("▲ better")
    until("#changed-scroll")


def test_arrow_keys_move_in_the_matrix(site, opened):
    page = opened.open(site.leaderboard())
    detail = page.locator("#pair-detail")
    page.locator("#matrix a[tabindex='0']").focus()
    names = page.locator("#board td.name").all_inner_texts()
    expect(detail).to_contain_text(f"{names[0]} against {names[1]}")
    page.keyboard.press("ArrowRight")
    expect(detail).to_contain_text(f"{names[0]} against {names[2]}")
    page.keyboard.press("ArrowDown")
    expect(detail).to_contain_text(f"{names[1]} against {names[2]}")
    page.keyboard.press("ArrowLeft")  # over the diagonal
    expect(detail).to_contain_text(f"{names[1]} against {names[0]}")
    page.keyboard.press("ArrowLeft")
    expect(detail).to_contain_text(f"{names[1]} against {names[0]}")
    assert page.locator("#matrix a[tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    opened.settled()
    assert names[1] in page.locator("#headline").inner_text()


def test_progress_is_said_while_a_large_artifact_is_read(large, opened):
    page = opened.page
    page.add_init_script(
        """window.said = [];
        new MutationObserver(() => {
            const step = document.getElementById("step")?.textContent;
            if (step && step !== window.said.at(-1)) window.said.push(step);
        }).observe(document, { childList: true, subtree: true, characterData: true });"""
    )
    page.goto(large.compare())
    page.locator("#progress:not([hidden])").wait_for()
    assert page.locator("#step").get_attribute("role") == "status"
    opened.settled()
    expect(page.locator("#progress")).to_be_hidden()
    assert [step for step in page.evaluate("window.said") if "reading" in step or "pairing" in step]
    expect(page.locator("#changed-place")).to_contain_text("1–50 of")
