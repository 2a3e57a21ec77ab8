"""JUnit XML, written by pytest itself and by hand as Surefire does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.cli_comparison import compared
from support.processes import run

from trackperm.errors import SourceError
from trackperm.tables import read_examples

TESTS = """
import os, pytest
@pytest.mark.parametrize("i", range(6))
def test_case(i): assert i < int(os.environ["LIMIT"])
@pytest.fixture
def broken(): raise RuntimeError
def test_error(broken): pass
@pytest.mark.skip
def test_skipped(): pass
class TestIn:
    def test_case(self): pass
"""


def report(folder: Path, limit: int) -> Path:
    (folder / "test_tasks.py").write_text(TESTS)
    path = folder / f"{limit}.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={path}"]
    run([*command, "test_tasks.py"], cwd=folder, env={"LIMIT": str(limit)})
    return path


def test_reports_of_pytest(tmp_path: Path) -> None:
    table = read_examples(report(tmp_path, 4))
    rows = table.frame.to_polars().select("id", "passed").rows()
    assert rows == [
        *((f"test_tasks::test_case[{i}]", int(i < 4)) for i in range(6)),
        ("test_tasks::test_error", 0),
        ("test_tasks::test_skipped", None),
        ("test_tasks.TestIn::test_case", 1),
    ]
    assert table.notes == ("1 of 9 tests was skipped: neither passed nor failed",)


def test_two_reports_are_compared(tmp_path: Path) -> None:
    reports = [report(tmp_path, limit) for limit in (1, 6)]
    found = compared(*reports, "-s", "pass_at_1", "--missing", "drop")
    assert (found["n_examples"], found["n_discordant"], found["pvalue"]) == (8, 5, 2 / 2**5)


SUREFIRE = """<?xml version="1.0" encoding="UTF-8"?>
<!-- written by hand -->
<testsuites>
  <testsuite name="outer"><properties><property name="a" value=">"/></properties>
    <testsuite name="inner"><testcase name="plain"><system-out>x</system-out></testcase></testsuite>
    <testcase name="f" classname="C"><failure message="&lt;no&gt;"><![CDATA[a < b]]></failure></testcase>
    <testcase name="flaky" classname="C"><flakyFailure/></testcase>
    <testcase name="both" classname="C"><error/><skipped/></testcase>
  </testsuite>
</testsuites>
"""


def test_nested_suites(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(SUREFIRE)
    assert read_examples(tmp_path / "a").frame.to_polars().rows() == [
        ("plain", 1, "inner"),
        ("C::f", 0, "outer"),
        ("C::flaky", 1, "outer"),
        ("C::both", 0, "outer"),
    ]


BOMB = '<!DOCTYPE t [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
REFUSED = {
    "an entity bomb": (f'<?xml version="1.0"?>\n{BOMB}<testsuite name="&b;"/>', "line 2: a document type"),
    "cut short": ('<testsuite>\n<testcase name="a"/>\n', "line 3: no element found"),
    "without cases": ("<testsuite/>", "has no test cases"),
    **{
        f"in {encoding}": (
            f'<?xml version="1.0" encoding="{encoding}"?><testsuite/>',
            "the declared encoding cannot be read",
        )
        for encoding in ("nothing-known", "rot13", "utf-7", "big5", "idna", "punycode")
    },
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused(case: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "a").write_text(case[0])
    with pytest.raises(SourceError, match=case[1]):
        read_examples(tmp_path / "a")
