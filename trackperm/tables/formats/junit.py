"""Test reports in JUnit's XML, as pytest, Gradle, Surefire and most others write them."""

from __future__ import annotations

import re
from typing import Any
from xml.parsers import expat

from trackperm.errors import SourceError
from trackperm.tables.json_values import table
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable

_BEFORE_ROOT = re.compile(
    rb"\s+|<\?xml.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL
)  # one item at a time before the root element, so that a comment ends at its first end
_ROOT = re.compile(rb"<testsuites?[\s>/]")
_FAILED = ("failure", "error")


class _Cases:
    """State of the parser: the test cases so far, and the open elements."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._suites: list[str] = []
        self._path: list[str] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "testsuite":
            self._suites.append(attributes.get("name", ""))
        elif tag == "testcase":
            name, classname = attributes.get("name", ""), attributes.get("classname", "")
            self.rows.append(
                {
                    "id": f"{classname}::{name}" if classname else name,
                    "passed": 1,
                    "suite": self._suites[-1] if self._suites else "",
                }
            )
        elif self._path[-1:] == ["testcase"] and tag in _FAILED:
            self.rows[-1]["passed"] = 0
        elif self._path[-1:] == ["testcase"] and tag == "skipped" and self.rows[-1]["passed"]:
            self.rows[-1]["passed"] = None
        self._path.append(tag)

    def end(self, tag: str) -> None:
        self._path.pop()
        if tag == "testsuite":
            self._suites.pop()


def read_junit(file: SourceFile) -> ExampleTable:
    """Read ``passed`` of every test case ``classname::name``: 1, 0 after a failure or error, null if skipped.

    A document type is refused, as reports have none and entities could be declared in one. Raise SourceError
    if the file is not well-formed XML, has a document type, or has no test cases.
    """
    cases = _Cases()
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise SourceError(
            f"`{file.origin}`, line {parser.CurrentLineNumber}: a document type is not allowed",
            hint="remove the `<!DOCTYPE ...>`.",
        )

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = cases.start, cases.end
    try:
        parser.Parse(file.path.read_bytes(), True)
    except expat.ExpatError as error:
        raise SourceError(
            f"`{file.origin}`, line {error.lineno}: {expat.ErrorString(error.code)}",
            hint="was the report written completely?",
        ) from error
    except SourceError:
        raise
    except (LookupError, ValueError) as error:  # from Python's codecs
        raise SourceError(
            f"`{file.origin}`: the declared encoding cannot be read: {error}",
            hint="save it as UTF-8.",
        ) from error
    if not cases.rows:
        raise SourceError(f"`{file.origin}` has no test cases")
    columns = {name: [row[name] for row in cases.rows] for name in cases.rows[0]}
    skipped = columns["passed"].count(None)
    read = table(columns, lambda index: f"test case {index}", file.origin)
    verb = "was" if skipped == 1 else "were"
    notes = (
        (f"{skipped:,} of {len(read):,} tests {verb} skipped: neither passed nor failed",) if skipped else ()
    )
    return ExampleTable(read.frame, read.origin, notes=notes, metrics={"passed": "passed"})


def _recognises(file: SourceFile) -> bool:
    head = file.head.removeprefix(b"\xef\xbb\xbf")
    place = 0
    while found := _BEFORE_ROOT.match(head, place):
        place = found.end()
    return _ROOT.match(head, place) is not None


JUNIT = Source("junit", "JUnit XML", _recognises, read_junit)
