from __future__ import annotations

from pathlib import Path

import pytest

from trackperm.errors import SourceError
from trackperm.trackers.files import read_file


def test_a_reference_without_a_scheme_is_a_path(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,p\n1,2\n")
    table = read_file(str(tmp_path / "a.csv"))
    assert (table.columns, table.origin) == (["id", "p"], str(tmp_path / "a.csv"))


def test_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.csv").write_text("id,p\n1,2\n")
    assert read_file("~/a.csv").origin == "~/a.csv"


@pytest.mark.parametrize("locator", ["no such file.csv", "~nobody-of-this-name/a.csv", "~"])
def test_what_is_not_there(locator: str) -> None:
    with pytest.raises(SourceError, match=f"`{locator}`"):
        read_file(locator)
