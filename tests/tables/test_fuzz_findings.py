"""Files that `make fuzz` found, cut down: each is refused by one error that names it."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import polars as pl
import pytest
from support.eval_logs import LM_EVAL, helm_instance

import trackperm
from trackperm import tables
from trackperm.errors import SourceError
from trackperm.tables import read_examples
from trackperm.tables.columns.types import typed_columns, unusable
from trackperm.tables.table import ExampleTable

LONG = "1" * 5000


def _npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, id=np.array([2**31 - 1, 98], dtype="<u4").view("<U2"))
    return file.getvalue()


def _archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("_journal/é/start.json", "{}")
    return file.getvalue()


FILES: dict[str, tuple[bytes, str]] = {
    "a header with bytes that are no text": (b"id,\xff\n1,2\n", "line 1: byte 0xff is not UTF-8"),
    "a row with bytes that are no text": (b"id,p\n1,2\n1,\xff\n", "line 3: byte 0xff is not UTF-8"),
    "a line of JSON with bytes that are no text": (b'{"a": 1}\n{"a": "\xff"}\n', "line 2: byte 0xff is not"),
    "half a surrogate pair in a name": (
        json.dumps([{"a\ud800": 1}]).encode(),
        r"the column name 'a\\ud800' of .* is not valid Unicode",
    ),
    "half a surrogate pair in the name of a metric": (
        json.dumps(LM_EVAL[0] | {"m\ud800": 1}).encode(),
        "is not valid Unicode",
    ),
    "a metric without a name that is text": (
        json.dumps([helm_instance("a", {"name": {"name": True, "sub_split": "x"}})]).encode(),
        "item 0 is not an instance with statistics",
    ),
    "a sum beyond decimals": (
        json.dumps([helm_instance("a", {"name": {"name": "m"}, "count": 2, "sum": 10**400})]).encode(),
        "the `sum` of `m` exceeds the range of decimals",
    ),
    "numbers of thousands of digits": (f"{LONG},{LONG[1:]}\n1,2\n1,2\n".encode(), ""),
    "a word of such a number": (
        f"1\tEU\t_\tPROPN\t_\t_\t0\troot\t_\t_\n{LONG}\tEU\t_\tX\t_\t_\t0\troot\t_\t_\n".encode(),
        "line 2: 10 columns that begin with",
    ),
    "counts of such numbers": (
        f"id: (a)\nScores: (#C #S #D #I) 1 0 0 0\nid: (b)\nScores: (#C #S #D #I) {LONG} 0 0 0\n".encode(),
        "line 4: utterances and their scores do not alternate",
    ),
    "an archive whose directory is no text": (
        _archive().replace(b"start.json", b"st\xb2rt.json"),
        "not in a known format",
    ),
    "lists of integers beyond int64": (json.dumps([{"id": 1, "a": [2**70]}]).encode(), ""),
    "a column called `*`": (b"*,id\n1,2\n", r"has a column `\*`, a name that polars reads as a pattern"),
    "a column that is a pattern": (
        b'[{"^a.*$": 1, "ab": 2}]',
        r"has a column `\^a\.\*\$`, a name that polars",
    ),
    "an array of numbers that are no characters": (
        _npz(),
        "array `id` of .* contains code points that are not characters",
    ),
}


@pytest.mark.parametrize("case", FILES.values(), ids=FILES)
def test_one_error_names_the_file(case: tuple[bytes, str], tmp_path: Path) -> None:
    content, message = case
    path = tmp_path / "x.dat"
    path.write_bytes(content)
    if not message:
        assert len(read_examples(path)) > 0
        return
    with pytest.raises(SourceError, match=message) as caught:
        read_examples(path)
    assert str(path) in caught.value.message


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
def test_columns_without_rows_are_usable(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    frame = pl.DataFrame({"id": [1]}).clear()
    (frame.write_ipc if suffix == "arrow" else frame.write_parquet)(path)
    assert unusable(read_examples(path), "id") is None


@pytest.mark.parametrize("column", [[[], []], [{"b": []}, {"b": []}]], ids=["lists", "in objects"])
@pytest.mark.parametrize("is_query", [False, True])
def test_lists_that_are_all_empty(column: list[Any], is_query: bool, tmp_path: Path) -> None:
    """Regression: polars panicked on the type that narwhals gives them."""
    frame = pl.DataFrame({"id": [1, 2], "prediction": [1, 0], "label": [1, 1], "a": column})
    path = tmp_path / "x.parquet"
    frame.write_parquet(path)
    read = ExampleTable.from_native(frame.lazy(), "query") if is_query else read_examples(path)
    assert (unusable(read, "a") is None) == isinstance(column[0], list)
    run = frame.lazy() if is_query else path
    assert trackperm.compare(run, run, "accuracy").pvalue == 1.0


@pytest.mark.parametrize("suffix", ["arrow", "parquet", "npz", "json"])
@pytest.mark.parametrize("beside", ["column_0", "id"])
def test_a_column_without_a_name_keeps_its_place(suffix: str, beside: str, tmp_path: Path) -> None:
    """Regression: it was renamed `column_0`, where another may be called so, and then not found."""
    path = tmp_path / f"x.{suffix}"
    frame = pl.DataFrame({"": [1, 2], beside: [3, 4]})
    if suffix == "npz":
        np.savez(path, **{name: frame[name].to_numpy() for name in frame.columns})
    elif suffix == "json":
        path.write_text(json.dumps(frame.to_dicts()))
    else:
        (frame.write_ipc if suffix == "arrow" else frame.write_parquet)(path)
    table = read_examples(path)
    assert table.columns == ["", beside]
    assert unusable(table, "") is None
    typed, _, types = typed_columns(table, table, [beside, ""])
    assert list(types) == [beside, ""]
    assert typed.frame.to_dict(as_series=False) == {beside: [3, 4], "": [1, 2]}


@pytest.mark.parametrize("name", ["*", "^a.*$"])
def test_names_of_data_frames_are_plain(name: str) -> None:
    with pytest.raises(SourceError, match="a name that polars reads as a pattern"):
        ExampleTable.from_native(pl.DataFrame({name: [1], "id": [1]}), "run")


@pytest.mark.parametrize("error", [pl.exceptions.ComputeError, pl.exceptions.PanicException])
def test_whatever_polars_raises_is_an_error_of_the_file(
    error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,a\n1,2\n")
    monkeypatch.setattr(tables, "_source", Mock(side_effect=error("out of range")))
    with pytest.raises(SourceError, match=r"x\.csv` cannot be read: out of range"):
        read_examples(path)
