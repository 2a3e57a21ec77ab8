"""The HTML file of a leaderboard on a phone, a laptop and a large screen: nothing is cut or overlaps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser
from support.boards import of_scores, sweep
from support.comparisons import answers
from support.layout import board_problems, require_strongest_ink
from support.pages import chromium

import trackperm
from trackperm.leaderboards import Leaderboard

LONG = "an/organisation with a long name and words, then "

BOARDS = {
    "2": lambda: sweep(2),
    "7": lambda: sweep(7),
    "40": lambda: sweep(40),
    "129": lambda: sweep(129),
    "long names": lambda: trackperm.leaderboard(
        {f"{LONG * (1 + i % 2)}{'W' * 30} {i}": frame for i, frame in enumerate(frames())}, "accuracy"
    ),
    "all undecided": lambda: of_scores(*range(180, 192)),
    "ties": lambda: of_scores(*[180] * 8, *[60] * 6),
    "one best": lambda: of_scores(199, *range(100, 112)),
    "lower is better": lambda: of_scores(*range(20, 200, 12), statistic="error_rate"),
    "baseline": lambda: sweep(40, baseline=12),
    "false discovery rate": lambda: sweep(40, correction="by"),
}

AT_NIGHT = ("7", "40", "all undecided", "one best", "false discovery rate")


def frames() -> list[pl.DataFrame]:
    return [answers([i < 90 - 5 * k for i in range(100)]) for k in range(12)]


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=pytest.mark.nightly if name in AT_NIGHT else pytest.mark.extended,
        )
        for name in BOARDS
    ],
)
def test_nothing_is_cut_and_nothing_overlaps(chrome: Browser, tmp_path: Path, name: str) -> None:
    board: Leaderboard = BOARDS[name]()
    file = tmp_path / "board.html"
    file.write_bytes(trackperm.report.render(board, "html"))
    for scheme in ("light", "dark"):
        context = chrome.new_context(color_scheme=scheme, bypass_csp=True)
        page = context.new_page()
        page.goto(file.as_uri())
        for width in (390, 1280, 1920):
            page.set_viewport_size({"width": width, "height": 900})
            assert board_problems(page) == [], (scheme, width)
        require_strongest_ink(page)
        if len(board.rows) <= 40:
            assert [found["id"] for found in Axe().run(page).response["violations"]] == []
        context.close()


def test_the_boxes_are_looked_at(chrome: Browser, tmp_path: Path) -> None:
    file = tmp_path / "board.html"
    cut = b".board .name { width: 2rem; white-space: nowrap } .board .word { margin-left: -3rem }"
    file.write_bytes(trackperm.report.render(sweep(7), "html").replace(b"</style>", cut + b"</style>"))
    page = chrome.new_page()
    page.goto(file.as_uri())
    problems = board_problems(page)
    assert any(problem.startswith("cut: ") for problem in problems)
    assert any(problem.startswith("row: ") for problem in problems)
    page.close()


@pytest.mark.sample(1)
@pytest.mark.parametrize(("n", "kilobytes"), [(2, 15), (40, 60), (129, 150)])
def test_the_file_is_small_and_has_no_script(n: int, kilobytes: int) -> None:
    page = trackperm.report.render(sweep(n), "html")
    assert len(page) < 1000 * kilobytes
    assert b"<script" not in page
    assert b"http" not in page.replace(b"http-equiv", b"")
