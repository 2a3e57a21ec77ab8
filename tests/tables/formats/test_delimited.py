"""Delimited files: values, separators, spaces and headers."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.example_tables import columns

from trackperm.errors import SourceError
from trackperm.tables import read_examples
from trackperm.tables.formats.delimited import exact, fast, scan_delimited
from trackperm.tables.lazy import text_parts

CSV = {
    "plain": (b"id,p\n001,1\n1,\n", {"id": ["001", "1"], "p": ["1", None]}),
    "no newline at the end": (b"id,p\n1,2", {"id": ["1"], "p": ["2"]}),
    "windows": (b"id,p\r\n1,2\r\n3,4\r\n", {"id": ["1", "3"], "p": ["2", "4"]}),
    "old mac": (b"id,p\r1,2\r3,4\r", {"id": ["1", "3"], "p": ["2", "4"]}),
    "byte order mark": (b"\xef\xbb\xbfid,p\n1,2\n", {"id": ["1"], "p": ["2"]}),
    "byte order mark and quotes": (b'\xef\xbb\xbf"id",p\n1,2\n', {"id": ["1"], "p": ["2"]}),
    "quotes": (b'id,p\n"a,b","say ""hi"""\n', {"id": ["a,b"], "p": ['say "hi"']}),
    "newline in a field": (b'id,p\n"a\nb",2\n', {"id": ["a\nb"], "p": ["2"]}),
    "windows newline in a field": (b'id,p\r\n"a\r\nb",2\r\n', {"id": ["a\r\nb"], "p": ["2"]}),
    "quote within a field": (b'id,p\n5" pipe,6" pipe\n', {"id": ['5" pipe'], "p": ['6" pipe']}),
    "empty quotes": (b'id,p\n"",""\n', {"id": [None], "p": [None]}),
    "blank lines": (b"\nid,p\n1,2\n\n\n3,4\n\n", {"id": ["1", "3"], "p": ["2", "4"]}),
    "empty last field": (b"id,p\n1,\n2,x\n", {"id": ["1", "2"], "p": [None, "x"]}),
    "spaces behind separators go": (b"id, p\n 1, 2 \n", {"id": ["1"], "p": ["2 "]}),
    "spaces stay": (b"id, p\n 1,2 \n", {"id": [" 1"], " p": ["2 "]}),
    "no rows": (b"id,p\n", {"id": [], "p": []}),
    "one column": (b"id\n1\n\n2\n", {"id": ["1", "2"]}),
    "a column without a name": (b",id\n0,1\n", {"column_1": ["0"], "id": ["1"]}),
    "a name that polars would give": (b"id,id_duplicated_0\n1,2\n", {"id": ["1"], "id_duplicated_0": ["2"]}),
    "text for nothing stays": (b"id,p\nNA,null\nNone,nan\n", {"id": ["NA", "None"], "p": ["null", "nan"]}),
    "a line that begins with # is a row": (b"id,p\n#1,2\n", {"id": ["#1"], "p": ["2"]}),
    "a field of a megabyte": (
        b'id,p\n1,"' + b"x" * 10**6 + b'"\n',
        {"id": ["1"], "p": ["x" * 10**6]},
    ),
}


@pytest.mark.parametrize("case", CSV.values(), ids=CSV)
def test_csv(case: Any, write: Any) -> None:
    content, expected = case
    table = read_examples(write("a.csv", content))
    assert table.untyped
    assert columns(table) == expected
    assert set(table.frame.to_polars().dtypes) == {pl.String}
    if b"\t" not in content:
        tabs = content.replace(b",", b"\t")
        unquoted = {key: [v and v.replace(",", "\t") for v in values] for key, values in expected.items()}
        assert columns(read_examples(write("a.tsv", tabs))) == unquoted


def test_csv_field_limit_is_put_back(write: Any) -> None:
    limit = csv.field_size_limit()
    read_examples(write("a.csv", 'id\n"1"\n'))
    assert csv.field_size_limit() == limit


@settings(deadline=None)
@example(body='1,""1"a"', windows=False)
@example(body="a,b\rc", windows=False)
@example(body="1,2,", windows=False)
@given(body=st.text(st.sampled_from(',,\n\n\r"ab1 '), max_size=14), windows=st.booleans())
def test_polars_reads_csv_as_the_exact_reader_does_or_not_at_all(body: str, windows: bool) -> None:
    text = "p,q\n" + body.replace("\r", "\r\n" if windows else "\r")
    frame = fast(text.encode(), ",")
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_parts, "_PART", 2)
        path = Path(folder, "a.csv")
        path.write_bytes(text.encode())
        scan = scan_delimited(path, ",", "a.csv")
        in_parts = None if scan is None else scan.read(["p", "q"]).to_polars()
    for found in (frame, in_parts):
        assert found is None or found.fill_null("").rows() == exact(text, "a.csv", ",").rows()


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("1,cat,cat\n2,dog,cat\n", "the first line looks like an example"),
        ("q1,cat,cat\nq2,dog,cat\n", "the first line looks like an example"),
        ("id,p,p\nq1,dog,cat\n", "rename all but one"),
    ],
)
def test_a_right_prediction_on_the_first_line_is_no_header(text: str, way: str, write: Any) -> None:
    with pytest.raises(SourceError, match="more than one column") as caught:
        read_examples(write("a.csv", text))
    assert str(caught.value.hint).startswith(way)


@pytest.mark.parametrize("bar", ["|", " | "])
def test_vertical_bars(bar: str, write: Any) -> None:
    rows = (("id", "prediction", "label"), ("1", "a, b", "a; b"), ("2", "", "c"))
    path = write("a.csv", "\n".join(map(bar.join, rows)).encode())
    found = {"id": ["1", "2"], "prediction": ["a, b", None], "label": ["a; b", "c"]}
    assert columns(read_examples(path)) == found


def test_a_bar_in_a_header_with_commas(write: Any) -> None:
    assert columns(read_examples(write("a.csv", b"id,a|b\n1,x|y\n"))) == {"id": ["1"], "a|b": ["x|y"]}


@pytest.mark.parametrize("text", ["| id | label |\n| 1 | a |\n", "<id>|<label>\n1|a\n"])
def test_no_words_between_bars(text: str, write: Any) -> None:
    assert len(read_examples(write("a.csv", text.encode())).columns) == 1


def test_spaces_behind_separators(write: Any) -> None:
    path = write("a.csv", b'id, label, score\n1, "a, b", 0.5\n2,, 1\n')
    assert columns(read_examples(path)) == {
        "id": ["1", "2"],
        "label": ["a, b", None],
        "score": ["0.5", "1"],
    }


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("id,label\n1,a, b\n", "write values that contain `,` in double quotes"),
        ("id\tlabel\n1\ta\tb\n", "write values that contain a tab in double quotes"),
        ("id|label\n1|a|b\n", r"write values that contain `\|` in double quotes"),
        ("id,label\n1,a\n2\n", "remove lines that are not rows, such as a total"),
    ],
)
def test_the_hint_on_other_fields(text: str, hint: str, write: Any) -> None:
    with pytest.raises(SourceError, match=hint):
        read_examples(write("a.csv", text.encode()))
