"""Every integration has a README of one screen, says what tests it, and stands in the table of all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.processes import ROOT

FOLDER = ROOT / "integrations"
INTEGRATIONS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
MOST_LINES = 45
ROW = re.compile(r"\| \[([\w-]+)\]\(([\w-]+)\) \| .+ \| (.+) \|")


def table() -> dict[str, str]:
    """What tests each integration, by its name, as the table says."""
    rows = [ROW.fullmatch(line) for line in (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()]
    found = [row.groups() for row in rows if row is not None]
    assert all(name == link for name, link, _ in found)
    return {name: tested for name, _, tested in found}


def named_tests(text: str) -> list[str]:
    return re.findall(r"tests/(?:\w+/)*test_\w+\.py", text)


def test_all_are_in_the_table_in_order():
    assert list(table()) == INTEGRATIONS


@pytest.mark.parametrize("name", INTEGRATIONS)
def test_readme(name: str):
    text = (FOLDER / name / "README.md").read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert len(text.splitlines()) <= MOST_LINES, "one screen"
    assert max(map(len, text.splitlines())) <= 130, "of a usual width"
    found = named_tests(text)
    assert found or "Not executed" in text, "what tests it, or that nothing does"
    for path in found:
        assert (ROOT / path).is_file(), path
    own = {Path(path).name for path in found if path.startswith("tests/integrations/")}
    assert table()[name] == (", ".join(sorted(own)) or "not executed")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("https://") or (FOLDER / name / target).exists(), target
