"""The table of changed examples on disk: values as they were, searched and filtered without wildcards."""

from __future__ import annotations

from pathlib import Path

import pytest

from trackperm.server.jobs.changed_examples import ChangedPage, read_changed_examples, write_changed_examples

COLUMNS = ("change", "id", "text", "n")
ROWS = [
    ("better", "a", "Ünïcode <b>% _</b>", 1),
    ("worse", "b", None, 2.5),
    ("changed", "c", "STRASSE straße", True),
    ("better", "d", "100", None),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "a folder with # and ?" / "changed.sqlite"
    file.parent.mkdir()
    write_changed_examples(file, COLUMNS, ROWS, "change")
    return file


def ids(page: ChangedPage) -> list[str]:
    return [row[1] for row in page.rows]


def test_values_are_kept(path: Path) -> None:
    page = read_changed_examples(path, offset=0, limit=10)
    assert (page.total, page.matching, tuple(page.columns)) == (4, 4, COLUMNS)
    assert [tuple(row) for row in page.rows] == ROWS
    assert page.rows[2][3] is True


def test_pages(path: Path) -> None:
    assert ids(read_changed_examples(path, offset=1, limit=2)) == ["b", "c"]
    assert ids(read_changed_examples(path, offset=4, limit=2)) == []
    assert read_changed_examples(path, offset=0, limit=0).matching == 4


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("ÜNÏ", "a"),
        ("%", "a"),
        ("_", "a"),
        ("strasse", "c"),
        ("STRASSE S", "c"),
        ("100", "d"),
        ("' or 1=1 --", ""),
    ],
)
def test_search(path: Path, search: str, found: str) -> None:
    page = read_changed_examples(path, offset=0, limit=10, search=search)
    assert ids(page) == list(found)
    assert (page.total, page.matching) == (4, len(found))


def test_both_values_of_a_pair_are_kept_and_found(tmp_path: Path) -> None:
    rows = [("a", ("Fish", "OWL")), ("b", (None, 3)), ("c", "same")]
    write_changed_examples(tmp_path / "changed", ("id", "prediction"), rows, None)
    page = read_changed_examples(tmp_path / "changed", offset=0, limit=10)
    assert page.rows == [["a", ["Fish", "OWL"]], ["b", [None, 3]], ["c", "same"]]
    for search, found in (("owl", "a"), ("fish", "a"), ("3", "b"), ("none", "")):
        matching = read_changed_examples(tmp_path / "changed", offset=0, limit=10, search=search)
        assert [row[0] for row in matching.rows] == list(found)


def test_directions(path: Path) -> None:
    assert ids(read_changed_examples(path, offset=0, limit=10, direction="better")) == ["a", "d"]
    assert ids(read_changed_examples(path, offset=0, limit=10, direction="better", search="100")) == ["d"]
    assert ids(read_changed_examples(path, offset=0, limit=10, direction="worse")) == ["b"]


def test_without_directions(tmp_path: Path) -> None:
    write_changed_examples(tmp_path / "changed", COLUMNS[1:], [row[1:] for row in ROWS], None)
    assert read_changed_examples(tmp_path / "changed", offset=0, limit=10, direction="better").matching == 0
    assert read_changed_examples(tmp_path / "changed", offset=0, limit=10).matching == 4
