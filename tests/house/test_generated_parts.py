"""Parts of the documentation that are made from the code are as the code says; a page may be rewritten."""

from __future__ import annotations

import runpy

import pytest
from support.comparisons import check_golden
from support.processes import ROOT

GENERATED = runpy.run_path(str(ROOT / "docs" / "generated.py"))
PAGES = [
    page
    for page in sorted((ROOT / "docs" / "pages").rglob("*.md"))
    if GENERATED["WRITTEN"].search(page.read_text())
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_as_the_code_says(page):
    check_golden(GENERATED["with_written_parts"](page.read_text(encoding="utf-8")), page)


def test_all_parts_are_in_a_page():
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "pages").rglob("*.md"))
    marks = [mark for kind in ("WRITTEN", "BUILT") for mark in GENERATED[kind].findall(text)]
    assert sorted(marks) == sorted(GENERATED["PARTS"])
