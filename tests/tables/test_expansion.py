"""Small files that hold much are refused before it is in memory, and the limit is said."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support import eval_logs

from trackperm.errors import InputError, SourceError
from trackperm.tables import read_examples
from trackperm.tables.wandb.run_log import external_entries

MB = 2**20


def _eval(path: Path) -> None:
    log = eval_logs.inspect_log([eval_logs.inspect_sample(1, 1, match="C") | {"messages": [" " * (3 * MB)]}])
    eval_logs.write_eval(path, log)


def _understated(path: Path) -> None:
    """An archive whose directory says that a member is small."""
    _eval(path)
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("samples/1_epoch_1.json").file_size
    path.write_bytes(data.replace(size.to_bytes(4, "little"), (1000).to_bytes(4, "little")))


def _npz(path: Path) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, id=np.zeros(MB, dtype=np.int64))


def _npz_of_text(path: Path) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, id=np.full(MB // 32, "a"))


def _of_frame(write: str, frame: pl.DataFrame) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        getattr(frame, write)(path, compression="zstd")

    return make


ZEROS = pl.DataFrame({name: pl.Series([0], dtype=pl.Int8).new_from_index(0, MB) for name in ("id", "p")})
TEXTS = pl.DataFrame({"id": range(4), "p": [f"{i}" * MB for i in range(4)]})
LISTS = pl.DataFrame({"id": [1], "p": [[0] * (MB // 4)]})
STRUCTURES = pl.DataFrame({"p": [{f"m{i}": 1 for i in range(1000)}] * 100})
SHARED = pl.DataFrame({"p": pl.Series(["a" * 100]).new_from_index(0, MB // 50)})


BOMBS: dict[str, Callable[[Path], None]] = {
    "gzip": lambda path: path.write_bytes(gzip.compress(b"id,p\n" + b"1,2\n" * MB)) and None,
    "inspect": _eval,
    "inspect, understated": _understated,
    "npz": _npz,
    "npz of text": _npz_of_text,
    **{
        f"{write}, {name}": _of_frame(write, frame)
        for write in ("write_parquet", "write_ipc", "write_ipc_stream")
        for name, frame in (("zeros", ZEROS), ("texts", TEXTS), ("lists", LISTS))
    },
    "parquet, structures": _of_frame("write_parquet", STRUCTURES),
    "parquet, a text that rows share": _of_frame("write_parquet", SHARED),
}


@pytest.mark.parametrize("make", BOMBS.values(), ids=BOMBS)
def test_is_refused(make: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.dat"
    make(path)
    monkeypatch.setattr("trackperm.tables.expansion.COLUMNAR_RATIO", 1)
    if "understated" not in str(make):
        read_examples(path)
    monkeypatch.setenv("TRACKPERM_EXPANDED_MB", "1")
    with pytest.raises(
        SourceError, match=rf"^`{path}` (has more than 1 MB after decompression|is a damaged)"
    ):
        _ = read_examples(path).frame


@pytest.mark.parametrize("make", [_of_frame("write_parquet", TEXTS), _of_frame("write_parquet", SHARED)])
@pytest.mark.parametrize("system", [None, "p"])
def test_the_limit_covers_parts_of_a_file(
    make: Callable[[Path], None], system: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.parquet"
    make(path)
    monkeypatch.setattr("trackperm.tables.expansion.COLUMNAR_RATIO", 1)
    monkeypatch.setenv("TRACKPERM_EXPANDED_MB", "1")
    table = read_examples(path, part=system)
    name = "p" if system is None else "prediction"
    with pytest.raises(SourceError, match="has more than 1 MB"):
        list(table.slices([name], 2**16))


def test_columns_that_are_small_are_read_beside_large_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.parquet"
    TEXTS.write_parquet(path)
    monkeypatch.setattr("trackperm.tables.expansion.COLUMNAR_RATIO", 1)
    monkeypatch.setenv("TRACKPERM_EXPANDED_MB", "1")
    assert read_examples(path).polars_column("id").to_list() == [0, 1, 2, 3]


def test_the_limit_has_to_be_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKPERM_EXPANDED_MB", "much")
    path = tmp_path / "x.csv"
    path.write_bytes(gzip.compress(b"id\n1\n"))
    with pytest.raises(
        InputError, match="`TRACKPERM_EXPANDED_MB` is 'much'; expected a whole number above 0"
    ):
        read_examples(path)


def test_the_limit_covers_manifests_of_artifacts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKPERM_EXPANDED_MB", "1")
    with pytest.raises(SourceError, match="has more than 1 MB"):
        external_entries(gzip.compress(b" " * 3 * MB))


OBJECTS = [{f"m{i}": i} for i in range(300)]
RAGGED = {
    "JSON Lines": "\n".join(map(json.dumps, OBJECTS)),
    "JSON": json.dumps(OBJECTS),
    "promptfoo": json.dumps(
        {"results": {"results": [{"success": True, "provider": "p", "vars": each} for each in OBJECTS]}}
    ),
    "HELM": json.dumps(
        [
            {"instance_id": i, "stats": [{"name": {"name": f"m{i}"}, "count": 1, "sum": 1}]}
            for i in range(len(OBJECTS))
        ]
    ),
    "a column of objects": json.dumps([{"id": i, "p": each} for i, each in enumerate(OBJECTS)]),
}


@pytest.mark.parametrize("text", RAGGED.values(), ids=RAGGED)
def test_objects_of_members_that_no_other_has_are_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    part = "p" if '"p": {' in text else None
    read_examples(path, part=part)
    monkeypatch.setenv("TRACKPERM_EXPANDED_MB", "1")
    with pytest.raises(
        SourceError, match=r"has 30[0-9] different members in 300 objects, on average 1 in each;"
    ):
        read_examples(path, part=part)


def test_objects_of_the_same_members_are_as_large_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text((json.dumps({f"m{i}": [] for i in range(300)}) + "\n") * 300)
    monkeypatch.setenv("TRACKPERM_EXPANDED_MB", "1")
    assert len(read_examples(path)) == 300


MANY = 100_001
WIDE = {
    "CSV": "," * MANY + "\n" + "," * MANY + "\n",
    "numbers": 2 * ("\t".join(["0.5"] * MANY) + "\n"),
    "JSON Lines": json.dumps(dict.fromkeys(map(str, range(MANY)), 1)) + "\n",
    "JSON": json.dumps([dict.fromkeys(map(str, range(MANY)), 1)]),
    "log_table": json.dumps({"columns": [str(i) for i in range(MANY)], "data": []}),
}


@pytest.mark.parametrize("text", WIDE.values(), ids=WIDE)
def test_more_columns_than_any_table_has_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.dat"
    path.write_text(text)
    with pytest.raises(SourceError, match=r"has 100,00[12] columns; expected at most 100,000"):
        read_examples(path)


def test_fields_of_many_lines_do_not_count_as_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,b\r" * MANY)
    assert len(read_examples(path)) == MANY - 1
