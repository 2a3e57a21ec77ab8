"""The page of a leaderboard in a real browser, without network; names cannot act as markup."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from support.browser import rendered
from support.comparisons import answers

import trackperm

RAN = "document.documentElement.dataset.ran=1"
NAMES = {
    f"<script>{RAN}</script>": 30,
    f"</script><script>{RAN}</script>": 29,
    f"<img src=x onerror={RAN}>": 12,
    f'"><svg onload="{RAN}">': 8,
    "{{7*7}}${7*7}": 3,
}
WATCH = """<script>
const seen = {errors: [], violations: [], requests: []};
addEventListener("error", event => seen.errors.push(event.message || event.target.tagName), true);
addEventListener("unhandledrejection", event => seen.errors.push(String(event.reason)));
addEventListener("securitypolicyviolation", event => seen.violations.push(event.blockedURI));
addEventListener("load", () => setTimeout(() => {
  seen.requests = performance.getEntriesByType("resource").map(entry => entry.name);
  document.documentElement.setAttribute("data-seen", JSON.stringify(seen));
}, 1000));
</script>"""


class Document(HTMLParser):
    """The attributes of the root, and the cells of the tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.root: dict[str, str | None] = {}
        self.tables: list[list[list[str]]] = []
        self._in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_cell = tag in ("td", "th")
        if tag == "html":
            self.root = dict(attrs)
        elif tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif self._in_cell:
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.tables[-1][-1][-1] += data


def opened(page: str, tmp_path: Path) -> tuple[Document, dict[str, Any], str]:
    """Open a page, and return the errors and requests of its scripts."""
    text = rendered(page.replace("<head>", f"<head>{WATCH}", 1), tmp_path)
    document = Document(text)
    return document, json.loads(document.root["data-seen"] or ""), text


def test_in_a_browser(tmp_path: Path) -> None:
    runs = {name: answers([i < right for i in range(40)]) for name, right in NAMES.items()}
    runs[f"short <script>{RAN}</script>"] = answers([True] * 30)
    board = trackperm.leaderboard(dict(sorted(runs.items())))
    document, seen, text = opened(trackperm.report.render(board, "html").decode(), tmp_path)
    assert seen == {"errors": [], "violations": [], "requests": []}
    assert "data-ran" not in document.root
    pairs, (header, *rows) = document.tables
    assert header[:3] == ["rank", "run", "accuracy"]
    assert [row[1] for row in rows] == list(NAMES)
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5"]
    scores = [float(row[2]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert [row[0].split()[0] for row in pairs[1:]] == ["1", "2", "3", "4", "5"]
    assert text.count('<svg class="difference"') == len(NAMES)
    assert "<script" not in trackperm.report.render(board, "html").decode()
    assert html.escape(f"short <script>{RAN}</script>", quote=False) in text


@pytest.mark.slow
def test_the_watch_sees(tmp_path: Path) -> None:
    page = (
        "<html><head><meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; script-src "
        f"'unsafe-inline'\"></head><body><script>{RAN}; nothing()</script>"
        "<img src='http://elsewhere.invalid/x.png'></body></html>"
    )
    document, seen, _ = opened(page, tmp_path)
    assert "nothing is not defined" in seen["errors"][0]
    assert seen["violations"] == ["http://elsewhere.invalid/x.png"]
    assert document.root["data-ran"] == "1"


def test_verdicts_stay_beside_their_markers_in_print() -> None:
    """Regression: ≈ was alone on a line above "undecided"."""
    board = trackperm.leaderboard(
        {name: answers([i < right for i in range(40)]) for name, right in (("a", 30), ("b", 29))}
    )
    page = trackperm.report.render(board, "html").decode()
    assert re.search(
        r"#numbers tr :nth-child\(\d\) \{ color: var\(--verdict\); white-space: nowrap; \}", page
    )
