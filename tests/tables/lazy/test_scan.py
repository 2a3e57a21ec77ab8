"""Columns of files, which are read when they are used."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from support.cli_comparison import compared

from trackperm.errors import SourceError
from trackperm.pairing.pair import pair_in_memory as pair
from trackperm.statistic import load_statistic
from trackperm.tables import read_examples
from trackperm.tables.formats import delimited, json_lines
from trackperm.tables.lazy import scan, text_parts
from trackperm.tables.lazy.scan import Scan


def runs(n: int = 2000) -> Iterator[pl.DataFrame]:
    for every in (3, 4):
        yield pl.DataFrame({"id": range(n), "label": [1] * n}).with_columns(
            prediction=(pl.col("id") % every == 0).cast(pl.Int64), prompt=pl.format("prompt {}", pl.col("id"))
        )


def write(folder: Path, kind: str) -> tuple[Path, Path]:
    paths = folder / f"baseline.{kind}", folder / f"candidate[1]*.{kind}"
    for path, frame in zip(paths, runs(), strict=True):
        if kind == "folder":
            path.mkdir()
            frame[:1000].write_parquet(path / "part-0")
            frame[1000:].write_parquet(path / "part-1")
        else:
            (frame.write_ipc if kind == "arrow" else frame.write_parquet)(path)
    return paths


@pytest.fixture
def columns_read(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The columns that were read, in the order of the readings."""
    found: list[set[str]] = []
    read = Scan.read

    def noted(self: Scan, names: list[str]) -> object:
        found.append(set(names))
        return read(self, names)

    monkeypatch.setattr(Scan, "read", noted)
    return found


@pytest.mark.parametrize("kind", ["parquet", "arrow", "folder"])
def test_what_no_statistic_reads_is_not_read(kind: str, tmp_path: Path, columns_read: list[set[str]]) -> None:
    baseline, candidate = (read_examples(path) for path in write(tmp_path, kind))
    assert baseline.columns == ["id", "label", "prediction", "prompt"]
    assert len(baseline) == 2000
    assert not columns_read
    pair(baseline, candidate, load_statistic("accuracy"))
    assert columns_read == [{"id", "label", "prediction"}] * 2


def test_one_system_of_a_file_is_read_alone(tmp_path: Path, columns_read: list[set[str]]) -> None:
    for baseline, frame in zip(("prediction", "own"), runs(), strict=True):
        frame = frame.with_columns(pl.struct(prediction="prediction", time="id").alias("own"))
        frame.write_parquet(tmp_path / f"{baseline}.parquet")
    paths = tmp_path / "prediction.parquet::prediction", tmp_path / "own.parquet::own"
    assert compared(*map(str, paths), "-s", "accuracy")["n_examples"] == 2000
    assert columns_read[:4] == [{"id"}] * 2 + [{"label", "prediction"}] * 2
    assert all("time" not in columns for columns in columns_read)
    assert read_examples(tmp_path / "own.parquet", part="own").frame.columns == [
        *("id", "label", "prompt", "prediction", "time")
    ]


def test_repeats_are_found_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scan, "_COMPARED", 100)
    frame = next(runs()).with_columns(twice=pl.col("id") // 2, all_but_one=pl.col("id").clip(1))
    frame.write_parquet(tmp_path / "run.parquet")
    table = read_examples(tmp_path / "run.parquet")
    names = ["id"], ["twice"], ["all_but_one"], ["label", "prediction"], ["label", "id"], ["twice", "id"]
    assert [table.repeats(each) for each in names] == [False, True, True, True, False, False]


def test_a_file_that_is_broken_in_a_column_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    next(runs()).select("id", "label", "prediction").write_parquet(path, compression="zstd")
    table = read_examples(path)
    data = bytearray(path.read_bytes())
    data[4:200] = bytes(196)
    path.write_bytes(data)
    with pytest.raises(SourceError, match=r"`.*run\.parquet` is not a readable Parquet file"):
        table.only(["id"])


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_large_text_is_in_temporary_files_as_long_as_it_is_used(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(text_parts, "_PART", 3_000)
    path, frame = tmp_path / f"run.{kind}", next(runs())
    if kind == "csv":
        frame = frame.cast(pl.String)
    for module in (delimited, json_lines):
        monkeypatch.setattr(module, "LARGE", 1000)
    (frame.write_ndjson if kind == "jsonl" else frame.write_csv)(path)
    tables = [read_examples(path)]
    assert isinstance(tables[0].data, Scan)
    path.unlink()
    (folder,) = Path(tempfile.gettempdir()).glob("trackperm-*")
    assert len(list(folder.iterdir())) > 5
    tables.append(tables.pop().head(1500))
    assert tables[0].frame.to_polars().equals(frame[:1500])
    part = folder / "3.parquet"
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(SourceError, match=r"temporary copy of `.*run\..*` cannot be read"):
        tables[0].only(["id"])
    tables.clear()
    gc.collect()
    assert not folder.exists()
