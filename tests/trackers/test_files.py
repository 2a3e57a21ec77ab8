from __future__ import annotations

from pathlib import Path

import pytest

from trackperm.errors import InputError, SourceError
from trackperm.tables import split_part
from trackperm.trackers.files import read_file
from trackperm.trackers.references import RunReference


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


class TestParts:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "a.csv").write_text("id,a::b,label\n1,x,x\n")

    @pytest.mark.parametrize("text", ["a.csv::a::b", "samples.jsonl::acc", "x::y:z"])
    def test_no_tracker(self, text: str) -> None:
        assert RunReference.parse(text) == RunReference("file", text)

    def test_a_part_with_colons(self) -> None:
        table = read_file("a.csv::a::b")
        assert (table.origin, table.frame["prediction"].to_list()) == ("a.csv::a::b", ["x"])

    def test_a_file_with_colons(self, tmp_path: Path) -> None:
        (tmp_path / "b::c.csv").write_text("id,x::y\n1,z\n")
        assert read_file("b::c.csv").columns == ["id", "x::y"]
        assert read_file("b::c.csv::x::y").frame["prediction"].to_list() == ["z"]

    @pytest.mark.parametrize("locator", ["", "  ", "::part"])
    def test_no_file(self, locator: str) -> None:
        with pytest.raises(SourceError, match=f"'{locator}' is not the name of a file"):
            read_file(locator)

    def test_a_url_ends_at_the_first_colons(self) -> None:
        assert split_part("s3://bucket/a.parquet::b::c") == ("s3://bucket/a.parquet", "b::c")
        assert split_part("s3://bucket/a.parquet") == ("s3://bucket/a.parquet", None)


@pytest.mark.parametrize("text", ["MLflow:g/base", " mlflow:g/base", "mlflow : g/base", "mlflow::g/base"])
def test_a_misspelt_scheme_is_not_a_file(text: str):
    """Regression: it was a file that does not exist, which a gate may pass."""
    with pytest.raises(InputError, match="expected `mlflow:g/base`"):
        RunReference.parse(text)
    assert RunReference.parse(f"./{text}") == RunReference("file", f"./{text}")


@pytest.mark.parametrize("text", ["spark:a.b", "C:\\runs\\a.csv", "a.csv::part", "mlflow://host/a.parquet"])
def test_other_colons_are_of_files(text: str):
    assert RunReference.parse(text).scheme == "file"
