from __future__ import annotations

import gc
import gzip
import io
import json
import math
import os
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.example_tables import columns

from trackperm.errors import InputTypeError, SourceError
from trackperm.tables import References, SourceFile, is_readable, read_examples
from trackperm.tables.columns.types import ColumnType, typed_columns
from trackperm.tables.formats import json_lines
from trackperm.tables.formats.json_lines import json_rows, read_uniform
from trackperm.tables.json_values import table
from trackperm.tables.lazy import text_parts
from trackperm.tables.lazy.scan import Scan

NAMES = [
    "a.csv",
    "b.TSV",
    "x/y.parquet",
    "c.jsonl",
    "d.ndjson",
    "e.json",
    "f.eval",
    "f.csv.gz",
    "g.JSONL.GZ",
    "h.json.gz",
]


@pytest.mark.parametrize("name", NAMES)
def test_formats_are_told_by_the_suffix(name: str) -> None:
    assert is_readable(name)


@pytest.mark.parametrize(
    "name", ["a.txt", "csv", "model.pkl", "a.csv.bak", "plot.png", "a.gz", "logs.tar.gz"]
)
def test_other_files_are_not_readable(name: str) -> None:
    assert not is_readable(name)


def test_origin_is_the_path_unless_given(write: Any) -> None:
    path = write("a.csv", "id\n1\n")
    assert read_examples(path).origin == str(path)
    assert read_examples(path, origin="mlflow:3f2a").origin == "mlflow:3f2a"


class TestPlaces:
    def test_missing(self, tmp_path: Path) -> None:
        (tmp_path / "answers_old.csv").write_text("id\n1\n")
        with pytest.raises(SourceError, match="does not exist") as caught:
            read_examples(tmp_path / "answer_old.csv")
        assert str(caught.value.hint).endswith("Did you mean `answers_old.csv`?")
        with pytest.raises(SourceError, match=r"`.*a\.csv` does not exist"):
            read_examples(tmp_path / "a.csv")

    def test_directory(self, write: Any) -> None:
        folder = write("a.csv", "id,p\n1,2\n").parent
        write("b.txt", "notes")
        with pytest.raises(SourceError, match=r"is a directory that cannot be read") as caught:
            read_examples(folder)
        assert caught.value.hint == f"name a file or folder in it: `{folder}/a.csv`, `{folder}/b.txt`."

    def test_pipes_and_devices(self, tmp_path: Path) -> None:
        pipe = tmp_path / "a.csv"
        os.mkfifo(pipe)
        for path, kind in ((pipe, "a pipe"), (Path("/dev/zero"), "a device")):
            with pytest.raises(SourceError, match=rf"^`{path}` is {kind}; expected an ordinary file"):
                read_examples(path)

    def test_unknown_format(self, write: Any) -> None:
        with pytest.raises(
            SourceError, match=r"`.*a\.csv` is not in a known format\n\nHint: known formats: .*Parquet, "
        ):
            read_examples(write("a.csv", b"\x89PNG\r\n\x1a\n\0\0"))

    def test_what_the_system_refuses(self, write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        path = write("a.csv", "id\n1\n")
        monkeypatch.setattr(Path, "read_bytes", Mock(side_effect=PermissionError(13, "Permission denied")))
        with pytest.raises(SourceError, match=r"`.*a\.csv` cannot be read: Permission denied"):
            read_examples(path)

    def test_names_with_wildcards_are_plain_names(self, write: Any) -> None:
        write("run1.parquet", b"")
        path = write("run[1]*.parquet", b"")
        pl.DataFrame({"id": [1]}).write_parquet(path)
        assert columns(read_examples(path)) == {"id": [1]}


class TestCompressed:
    """Files that gzip has compressed, told by their content."""

    TEXT = "id,prediction,label\n1,a,a\n2,b,a\n"

    def test_is_read_whatever_it_is_called(self, write: Any) -> None:
        for name in ("a.csv.gz", "a.csv", "a"):
            table = read_examples(write(name, gzip.compress(self.TEXT.encode())))
            assert columns(table) == {"id": ["1", "2"], "prediction": ["a", "b"], "label": ["a", "a"]}
            assert table.origin.endswith(name)

    def test_a_part_of_it_is_chosen(self, write: Any) -> None:
        path = write("a.csv.gz", gzip.compress(self.TEXT.encode()))
        assert columns(read_examples(path, part="label"))["prediction"] == ["a", "a"]

    def test_errors_name_the_file_and_the_line(self, write: Any) -> None:
        path = write("a.csv.gz", gzip.compress(b"id,p\n1,2\n3\n"))
        with pytest.raises(SourceError, match=r"`.*a\.csv\.gz`, line 3: 1 fields under a header of 2"):
            read_examples(path)
        with pytest.raises(SourceError, match=r"`.*a\.csv\.gz` is empty"):
            read_examples(write("a.csv.gz", gzip.compress(b"")))

    def test_broken(self, write: Any) -> None:
        whole = gzip.compress(self.TEXT.encode() * 100)
        for broken in (
            whole[:-1],
            whole[:20],
            whole[:-6] + b"\0\0\0\0" + whole[-2:],
            whole[:10] + b"no deflate",
        ):
            with pytest.raises(SourceError, match=r"a\.csv\.gz` is a broken gzip file: .*\n\n.*completely\?"):
                read_examples(write("a.csv.gz", broken))

    def test_more_than_it_may_hold(self, write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TRACKPERM_EXPANDED_MB", "1")
        path = write("a.csv.gz", gzip.compress(b"id\n" + b"1\n" * 10**6))
        with pytest.raises(
            SourceError, match=r"has more than 1 MB after decompression\n\nHint: `TRACKPERM_EXPANDED_MB=2`"
        ):
            read_examples(path)

    def test_what_is_read_later_is_there_and_then_gone(
        self, write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As of Parquet, and of JSON Lines too large for memory, whose columns are read when used."""
        (tmp_path / "temporary").mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
        monkeypatch.setattr(json_lines, "LARGE", 10)
        path = write("a.jsonl.gz", gzip.compress(b'{"id": 1}\n{"id": 2}\n'))
        table = read_examples(path)
        gc.collect()
        assert isinstance(table.data, Scan)
        assert columns(table) == {"id": [1, 2]}
        del table
        gc.collect()
        assert not list((tmp_path / "temporary").iterdir())

    def test_reference_answers(self, write: Any) -> None:
        gold = write("gold.csv.gz", gzip.compress(b"id,label\n1,a\n2,b\n"))
        table = read_examples(write("a.csv", "id,prediction\n1,a\n2,b\n"), references=References(gold))
        assert columns(table)["label"] == ["a", "b"]


REFUSED = {
    "empty csv": ("a.csv", "", "is empty"),
    "empty tsv": ("a.tsv", "", "is empty"),
    "empty parquet": ("a.parquet", "", "is empty"),
    "empty jsonl": ("a.jsonl", "", "is empty"),
    "empty json": ("a.json", "", "is empty"),
    "blank csv": ("a.csv", "\n\n", "is blank"),
    "blank jsonl": ("a.jsonl", "\n  \n", "is blank"),
    "csv row too short": ("a.csv", "id,p\n1,2\n3\n", ", line 3: 1 fields under a header of 2"),
    "csv row too long": ("a.csv", "id,p\n1,2\n\n3,4,5\n", ", line 4: 3 fields under a header of 2"),
    "csv row ends in a comma": ("a.csv", "id,p\n1,2,", ", line 2: 3 fields under a header of 2"),
    "csv row ends early after newlines in a field": ("a.csv", 'id,p\n"1\n\n1",2\n3\n', ", line 5: 1 fields"),
    "csv quote does not close": ("a.csv", 'id,p\n1,"2\n3,4\n', ", line 3: unexpected end of data"),
    "csv text after a quote": ("a.csv", 'id,p\n1,"2"x\n', ", line 2: ',' expected after '\"'"),
    "csv column twice": ("a.csv", "id,p,id\n1,2,3\n", "more than one column `id`"),
    "csv column twice without rows": ("a.csv", "id,id\n", "more than one column `id`"),
    "tsv column twice": ("a.tsv", "id\tid\n1\t2\n", "more than one column `id`"),
    "csv in latin-1": ("a.csv", "id,p\n1,x\n2,é\n".encode("latin-1"), ", line 3: byte 0xe9 is not UTF-8"),
    "csv in utf-16": ("a.csv", "id,p\n1,2\n".encode("utf-16"), "is UTF-16 text"),
    "jsonl in latin-1": (
        "a.jsonl",
        '{"a": "x"}\n{"a": "é"}\n'.encode("latin-1"),
        ", line 2: byte 0xe9 is not UTF-8",
    ),
    "json in latin-1": (
        "a.json",
        '{"columns": ["é"], "data": []}'.encode("latin-1"),
        "byte 0xe9 is not UTF-8",
    ),
    "jsonl is not JSON": ("a.jsonl", '{"a": 1}\n{"a": 2\n', ", line 2: not JSON: Expecting ',' delimiter"),
    "jsonl holds arrays": ("a.jsonl", '{"a": 1}\n\n[1]\n', ", line 3: not an object"),
    "jsonl is one document": (
        "a.jsonl",
        '{\n"a": 1\n}\n',
        "not in a known format: it is a JSON object with `a`",
    ),
    "jsonl object names a member twice": (
        "a.jsonl",
        '{"a": 1, "b": 2, "a": 3}\n',
        "begins like JSON, but is not valid (more than one value for `a`)",
    ),
    "jsonl is nested too deeply": (
        "a.jsonl",
        '{"a": ' + "[" * 10**5 + "\n",
        "begins like JSON, but is not valid (nested too deeply)",
    ),
    "json is not JSON": ("a.json", '{"columns": [', "but is not valid (Expecting value"),
    "json is a list of numbers": ("a.json", "[1]", "it is a JSON array without objects"),
    "json is a list of objects and others": ("a.json", '[{"id": 1}, 2]', ", item 1: not an object"),
    "json is another object": ("a.json", '{"id": [1],\n"p": [2]}', "it is a JSON object with `id`, `p`"),
    "json data are no list": (
        "a.json",
        '{"columns": ["a"], "data": {"a": 1}}',
        "does not have the lists `columns` and `data`",
    ),
    "json column names are numbers": (
        "a.json",
        '{"columns": [0], "data": [[1]]}',
        "a column named 0, which is not text",
    ),
    "json column twice": ("a.json", '{"columns": ["a", "a"], "data": [[1, 2]]}', "more than one column `a`"),
    "json row too short": (
        "a.json",
        '{"columns": ["a", "b"], "data": [[1, 2], [3]]}',
        ", row 1: 1 values for 2 columns",
    ),
    "json row is no list": (
        "a.json",
        '{"columns": ["a"], "data": [[1], 2]}',
        ", row 1 is not a list of values for 1 columns",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_files_that_hold_no_table_are_refused(case: Any, write: Any) -> None:
    name, content, message = case
    path = write(name, content)
    with pytest.raises(SourceError) as caught:
        read_examples(path)
    assert caught.value.message.startswith(f"`{path}`")
    assert message in caught.value.message


def test_parquet_cut_anywhere_is_refused(write: Any) -> None:
    buffer = io.BytesIO()
    pl.DataFrame({"id": [1, 2], "p": ["a", "b"]}).write_parquet(buffer)
    for size in range(1, len(buffer.getvalue()), 7):
        with pytest.raises(
            SourceError, match="is not a readable Parquet file" if size > 3 else "not in a known format"
        ):
            read_examples(write("a.parquet", buffer.getvalue()[:size]))


JSON_VALUES = {
    "ids stay text": (["001", "1", "01"], pl.String, ["001", "1", "01"]),
    "integers": ([1, 2], pl.Int64, [1, 2]),
    "integers and null": ([1, None], pl.Int64, [1, None]),
    "integers and NaN": ([2**53 + 1, math.nan], pl.Int64, [2**53 + 1, None]),
    "integers above 2^53": ([2**53 + 1, 2**63 - 1], pl.Int64, [2**53 + 1, 2**63 - 1]),
    "decimals": ([0.1, 2, None], pl.Float64, [0.1, 2.0, None]),
    "booleans": ([True, None, False], pl.Boolean, [True, None, False]),
    "text": (["a", None, "\u2028 ü"], pl.String, ["a", None, "\u2028 ü"]),
    "text and NaN": (["a", math.nan], pl.String, ["a", None]),
    "null": ([None, None], pl.Null, [None, None]),
    "lists of text": ([["a", None], None, []], pl.List(pl.String), [["a", None], None, []]),
    "lists of integers": ([[1], [-1, 2]], pl.List(pl.Int64), [[1], [-1, 2]]),
    "lists of booleans": ([[True]], pl.List(pl.Boolean), [[True]]),
    "lists of decimals": ([[0.5, 1], [], None], pl.List(pl.Float64), [[0.5, 1.0], [], None]),
    "lists of decimals and null": ([[0.25, None]], pl.List(pl.Float64), [[0.25, None]]),
    "empty lists": ([[], None], pl.List(pl.String), [[], None]),
}


@pytest.mark.parametrize("case", JSON_VALUES.values(), ids=JSON_VALUES)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_json_values_keep_their_types(case: Any, ascii_only: bool, write: Any) -> None:
    values, dtype, expected = case
    lines = "\r\n \n".join(json.dumps({"x": value}, ensure_ascii=ascii_only) for value in values)
    split = json.dumps({"columns": ["x"], "data": [[value] for value in values]}, ensure_ascii=ascii_only)
    for path in (write("a.jsonl", lines), write("a.json", split)):
        table = read_examples(path)
        assert not table.untyped
        assert table.frame.to_polars().schema["x"] == dtype
        assert columns(table) == {"x": expected}


UNUSABLE = {
    "text and integers": (["a", None, 1, 2], "mixes text (line 1) and integers (line 3)"),
    "booleans and integers": ([True, 1], "mixes booleans (line 1) and integers (line 2)"),
    "objects and text": ([{"a": 1}, "a"], "mixes objects (line 1) and text (line 2)"),
    "lists of both types": ([[1], ["a"]], "holds lists that are not of text alone or of numbers alone"),
    "lists of lists": ([[[1]]], "holds lists that are not of text alone or of numbers alone"),
    "objects": ([None, {"a": "b"}, {"b": 2}], "holds lists or objects; the first one has the keys `a`"),
    "lists and objects": ([{"a": 1}, {"b": 2}, [3]], "holds lists or objects"),
    "an integer beyond int64": ([1, 2**63], "has an integer outside the range of int64 (line 2)"),
    "an integer below int64": ([1, -(2**63) - 1], "has an integer outside the range of int64 (line 2)"),
    "an integer that would round": ([0.5, 2**53 + 1], "mixes decimals with an integer above 2^53 (line 2)"),
    "half a surrogate pair": (["a", "\ud800"], "is not valid Unicode: it has half a surrogate pair (line 2)"),
}


@pytest.mark.parametrize("case", UNUSABLE.values(), ids=UNUSABLE)
def test_json_columns_without_one_type_are_refused_when_used(case: Any, write: Any) -> None:
    values, reason = case
    path = write("a.jsonl", "\n".join(json.dumps({"id": i, "x": v}) for i, v in enumerate(values)))
    table = read_examples(path)
    assert columns(table) == {"id": list(range(len(values))), "x": values}
    assert typed_columns(table, table, ["id"])[2] == {"id": ColumnType.INTEGER}
    with pytest.raises(InputTypeError) as caught:
        typed_columns(table, table, ["x"])
    assert caught.value.message == f"column `x` of `{path}` {reason}"


def test_json_lines_may_lack_members(write: Any) -> None:
    table = read_examples(write("a.jsonl", '\ufeff{"a": 1}\n{"b": "x"}\n{}'))
    assert columns(table) == {"a": [1, None, None], "b": [None, "x", None]}


def test_log_table_without_rows(write: Any) -> None:
    table = read_examples(write("a.json", '{"columns": ["a", "b"], "data": []}'))
    assert columns(table) == {"a": [], "b": []}


def test_log_table_of_pandas_with_an_index(write: Any) -> None:
    frame = pd.DataFrame({"id": ["001", "1"], "p": [1, 2]})
    table = read_examples(write("a.json", frame.to_json(orient="split")))
    assert columns(table) == {"id": ["001", "1"], "p": [1, 2]}


@pytest.mark.parametrize(
    ("index", "own"),
    [
        (["b", "a"], {"index": ["b", "a"]}),
        ([1, 0], {"index": [1, 0]}),
        ([[0, "x"], [0, "y"]], {"level_0": [0, 0], "level_1": ["x", "y"]}),
        ([0, 1], {}),
        (["a"], {}),
        ([["a"], "b"], {}),
        ("ab", {}),
    ],
)
def test_an_index_of_pandas_is_a_column(index: Any, own: dict[str, Any], write: Any) -> None:
    """Regression: ids in the index were left out, and rows in another order compared by position."""
    split = {"columns": ["score"], "data": [[1], [0]]}
    table = read_examples(write("a.json", json.dumps({**split, "index": index})))
    assert columns(table) == {**own, "score": [1, 0]}


def test_an_index_beside_a_column_of_its_name(write: Any) -> None:
    frame = pd.DataFrame({"index": [5, 6]}, index=["a", "b"])
    table = read_examples(write("a.json", frame.to_json(orient="split")))
    assert columns(table) == {k: [*v] for k, v in frame.reset_index().items()}


def test_parquet_keeps_types_and_nested_columns(write: Any) -> None:
    path = write("a.parquet", b"")
    frame = pl.DataFrame(
        {"id": [2**63], "l": [[1]], "c": ["a"]}, schema_overrides={"id": pl.UInt64, "c": pl.Categorical}
    )
    frame.write_parquet(path)
    table = read_examples(path)
    assert (columns(table), table.untyped) == ({"id": [2**63], "l": [[1]], "c": ["a"]}, False)


UNIFORM = {
    "as programs write them": '{"a": 1, "b": "x", "c": 0.5}\n{"a": null, "b": "ü", "c": 2}\n',
    "booleans": '{"a": true}\n{"a": null}\n{"a": false}\n',
    "without blanks": '{"a":1,"b":"x"}\n{"a":-2,"b":""}',
    "decimals": '{"a": 0.1}\n{"a": 1e-7}\n{"a": -0.00006236271698000001}\n{"a": 1.7976931348623157e99}\n',
}
NOT_UNIFORM = {
    "a member twice": '{"a": 1}\n{"a": 1, "a": 2}\n',
    "a member missing": '{"a": 1, "b": 2}\n{"a": 1}\n',
    "text and integers": '{"a": "x"}\n{"a": 1}\n',
    "integers and decimals": '{"a": 1}\n{"a": 0.5}\n',
    "integers that would round": '{"a": 0.5}\n{"a": 9007199254740993}\n',
    "an integer beyond int64": '{"a": 1}\n{"a": 9223372036854775808}\n',
    "escapes": '{"a": "x"}\n{"a": "\\u0041"}\n',
    "a blank line": '{"a": 1}\n\n{"a": 2}\n',
    "an object in two lines": '{"a": 1}\n{"a":\n2}\n',
    "a control character": '{"a": "x"}\n{"a": "\x01"}\n',
    "lists": '{"a": [1]}\n{"a": [2]}\n',
    "nothing on the first line": '{"a": null}\n{"a": 2}\n',
    "windows": '{"a": 1}\r\n{"a": 2}\r\n',
}


@pytest.fixture
def in_small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read JSON Lines as large ones are, a few bytes at a time and then to the end of the line."""
    monkeypatch.setattr(text_parts, "_PART", 2)
    monkeypatch.setattr(json_lines, "LARGE", 1)


@pytest.mark.parametrize("text", UNIFORM.values(), ids=UNIFORM)
def test_polars_reads_uniform_json_lines_as_the_exact_reader_does(
    text: str, write: Any, in_small_parts: None
) -> None:
    file = SourceFile(write("a.jsonl", text))
    frame = read_uniform(text.encode(), file.first_record or {})
    assert frame is not None
    rows, _ = json_rows(file)
    exact = table({name: [row[name] for row in rows] for name in rows[0]}, str, "a.jsonl")
    assert frame.equals(exact.frame.to_polars())
    assert frame.schema == exact.frame.to_polars().schema
    scan = read_examples(file.path).data
    assert isinstance(scan, Scan)
    assert scan.read(frame.columns).to_polars().equals(frame)


@pytest.mark.parametrize("text", NOT_UNIFORM.values(), ids=NOT_UNIFORM)
def test_other_json_lines_are_left_to_the_exact_reader(text: str, write: Any, in_small_parts: None) -> None:
    file = SourceFile(write("a.jsonl", text))
    first = file.first_record or {}
    assert read_uniform(text.encode(), first) is None
    assert text_parts.scan_parts(file.path, lambda data, _: read_uniform(data, first), "a.jsonl") is None


@settings(deadline=None)
@given(values=st.lists(st.floats(-1e99, 1e99).filter(lambda x: x == 0 or abs(x) > 1e-90), min_size=1))
def test_decimals_of_uniform_json_lines_are_not_rounded(values: list[float]) -> None:
    data = "".join(json.dumps({"a": value}) + "\n" for value in values).encode()
    frame = read_uniform(data, {"a": values[0]})
    assert frame is None or frame["a"].to_list() == values
