"""Parquet in parts, Arrow, NumPy archives, and tables at a URL."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.feather
import pytest
from support.cli_comparison import compared
from support.served_objects import Served, served_objects

import trackperm
from trackperm.errors import InputError, SourceError
from trackperm.tables import read_examples, split_part, tables_in_parts
from trackperm.tables.remote import shown_locator
from trackperm.trackers.files import read_file

FRAME = pl.DataFrame({"id": ["a", "b", "c"], "prediction": [1, 0, 1], "label": [1, 1, 1]})


SPARK = ("part-00000-1f-c000.snappy.parquet", "part-00001-1f-c000.snappy.parquet")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([*SPARK, "_SUCCESS", ".part-00000-1f-c000.snappy.parquet.crc"], [SPARK]),
        ([SPARK[0], "_SUCCESS"], [SPARK[:1]]),
        (["b.parquet", "a.parquet", "_metadata"], [("a.parquet", "b.parquet")]),
        (["part.0.parquet", "part.1.parquet", "notes.txt"], [("part.0.parquet", "part.1.parquet")]),
        (["data_1.parquet", "data_0.parquet"], [("data_0.parquet", "data_1.parquet")]),
        (["00000000.parquet", "00000001.parquet"], [("00000000.parquet", "00000001.parquet")]),
        (["dev-1-of-2.parquet", "dev-2-of-2.parquet"], [("dev-1-of-2.parquet", "dev-2-of-2.parquet")]),
        (["dev-1-of-2.parquet"], [("dev-1-of-2.parquet",)]),
        (
            ["dev-1-of-2.parquet", "dev-2-of-2.parquet", "test-2-of-2.parquet", "train-1-of-1.parquet"],
            [("dev-1-of-2.parquet", "dev-2-of-2.parquet"), ("test-2-of-2.parquet",)],
        ),
        (["part-0.parquet"], []),
        (["baseline.parquet", "candidate.parquet"], []),
        (["fold1.parquet", "fold2.parquet", "seed-1.parquet", "seed-2.parquet"], []),
        (["partial.parquet", "parts.parquet"], []),
        ([], []),
    ],
)
def test_names_of_parts(names: list[str], expected: list[tuple[str, ...]]) -> None:
    assert tables_in_parts(names) == expected
    assert tables_in_parts(reversed(names)) == expected


class TestIndexOfPandas:
    """A range is in no column of the file: pandas writes its name, start, stop and step."""

    @pytest.mark.parametrize("values", [range(4), range(5, 9), range(10, 2, -2)])
    def test_a_named_range_is_a_column(self, values: range, tmp_path: Path) -> None:
        data = pl.DataFrame({"label": [1, 0, 1, 1]}).to_pandas()
        data.index = pd.RangeIndex(values.start, values.stop, values.step, name="id")
        data.to_parquet(tmp_path / "a.parquet")
        table = read_examples(tmp_path / "a.parquet")
        assert table.columns == ["id", "label"]
        rows = [*zip(values, data["label"], strict=True)]
        assert table.frame.to_polars().rows() == rows
        assert [row for part in table.slices(["id", "label"], 3) for row in part.rows()] == rows
        chosen = table.among("label", pl.Series([1])).only(["id"])
        assert chosen.polars_column("id").to_list() == [id_ for id_, label in rows if label]

    def test_engines_read_it(self, tmp_path: Path) -> None:
        for i, correct in enumerate(([1, 0, 0, 0], [1, 1, 1, 0])):
            data = pl.DataFrame({"correct": correct}).to_pandas().rename_axis("id")
            data.to_parquet(tmp_path / f"{i}.parquet")
        for engine in ("polars", "duckdb"):
            found = trackperm.compare(tmp_path / "0.parquet", tmp_path / "1.parquet", engine=engine)
            assert (found.n_examples, found.difference) == (4, 0.5)

    def test_others_are_not(self, tmp_path: Path) -> None:
        data = pl.DataFrame({"id": [3, 4]}).to_pandas()
        for index in (pd.RangeIndex(2), pd.RangeIndex(2, name="id")):
            data.set_index(index).to_parquet(tmp_path / "a.parquet")
            assert read_examples(tmp_path / "a.parquet").frame.to_dict(as_series=False) == {"id": [3, 4]}


class TestParts:
    def write(self, folder: Path) -> Path:
        folder.mkdir()
        FRAME[:2].write_parquet(folder / "part-00000.parquet")
        FRAME[2:].write_parquet(folder / "part-00001.parquet")
        (folder / "_SUCCESS").write_bytes(b"")
        (folder / ".part-00000.parquet.crc").write_bytes(b"crc")
        return folder

    def test_parts_are_one_table(self, tmp_path: Path) -> None:
        assert read_examples(self.write(tmp_path / "run")).frame.to_polars().equals(FRAME)

    def test_one_that_its_name_tells_to_be_lacking(self, tmp_path: Path) -> None:
        folder = tmp_path / "run"
        folder.mkdir()
        for number in (0, 2):
            FRAME[number : number + 1].write_parquet(folder / f"test-0000{number}-of-00003.parquet")
        with pytest.raises(SourceError, match=r"run` has 2 of the 3 parts of a table: `test-00000-of-00003"):
            read_examples(folder)
        FRAME[1:2].write_parquet(folder / "test-00001-of-00003.parquet")
        assert read_examples(folder).frame.to_polars().equals(FRAME)

    @pytest.mark.parametrize(
        "names",
        [
            ["part-00000-a.parquet", "part-00001-a.parquet"],
            ["test-00000-of-00002.parquet", "test-00001-of-00002.parquet"],
            ["test-00000-of-00002.parquet"],
            ["a.parquet", "b.parquet", "_SUCCESS"],
        ],
    )
    def test_a_single_part_is_refused(self, names: list[str], tmp_path: Path) -> None:
        """Regression: half of the rows were compared, without a word."""
        for name in names:
            pl.DataFrame({"id": [name], "score": [1.0]}).write_parquet(tmp_path / name)
        with pytest.raises(SourceError, match=f"`{names[0]}` is one of 2 parts of a table"):
            read_examples(tmp_path / names[0], names[0])

    @pytest.mark.parametrize("names", [["1.parquet", "2.parquet"], ["part-00000-a.parquet", "other.csv"]])
    def test_files_that_may_be_runs_are_read(self, names: list[str], tmp_path: Path) -> None:
        for name in names:
            pl.DataFrame({"id": [name], "score": [1.0]}).write_parquet(tmp_path / name)
        assert len(read_examples(tmp_path / names[0], "run")) == 1

    def test_parts_with_other_columns_are_refused(self, tmp_path: Path) -> None:
        folder = self.write(tmp_path / "run")
        FRAME.with_columns(pl.col("label").cast(pl.String)).write_parquet(folder / "part-00002.parquet")
        with pytest.raises(
            SourceError, match=r"`part-00000.parquet` and `part-00002.parquet` .* differ in `label`"
        ):
            read_examples(folder)

    def test_a_part_that_is_cut_is_named(self, tmp_path: Path) -> None:
        folder = self.write(tmp_path / "run")
        (folder / "part-00002.parquet").write_bytes(b"PAR1 and no more")
        with pytest.raises(SourceError, match=r"run/part-00002.parquet` is not a readable Parquet file"):
            read_examples(folder)

    def test_another_file_among_them_is_not_a_part(self, tmp_path: Path) -> None:
        folder = self.write(tmp_path / "run")
        (folder / "notes.txt").write_text("x")
        with pytest.raises(SourceError, match="is a directory"):
            read_examples(folder)


class TestArrow:
    def test_file_stream_and_feather(self, tmp_path: Path) -> None:
        FRAME.write_ipc(tmp_path / "file")
        FRAME.write_ipc_stream(tmp_path / "stream")
        pyarrow.feather.write_feather(FRAME.to_arrow(), tmp_path / "feather")
        for name in ("file", "stream", "feather"):
            assert read_examples(tmp_path / name).frame.to_polars().equals(FRAME)

    def test_feather_of_version_1_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "old").write_bytes(b"FEA1\0\0\0\0")
        with pytest.raises(SourceError, match="is Feather of version 1"):
            read_examples(tmp_path / "old")

    @pytest.mark.parametrize("write", ["write_ipc", "write_ipc_stream"])
    def test_cut_short(self, write: str, tmp_path: Path) -> None:
        getattr(FRAME, write)(tmp_path / "whole")
        data = (tmp_path / "whole").read_bytes()
        for size in range(16, len(data) - 16, 41):
            (tmp_path / "cut").write_bytes(data[:size])
            with pytest.raises(SourceError, match=r"`.*cut` is not readable as Arrow IPC"):
                read_examples(tmp_path / "cut")


REFUSED_NPZ = {
    "objects": ({"id": np.array(["a", None])}, r"array `id` of `.*` cannot be read: Object arrays"),
    "lengths": ({"id": np.arange(2), "p": np.arange(3)}, r"differ in length: `id` 2, `p` 3"),
    "no columns": ({"x": np.zeros((2, 2))}, r"has no one-dimensional array of numbers or text: `x`"),
}


class TestNpz:
    def save(self, path: Path, **arrays: Any) -> Path:
        with path.open("wb") as file:
            np.savez(file, **arrays)
        return path

    def test_arrays_are_columns(self, tmp_path: Path) -> None:
        path = self.save(
            tmp_path / "predictions.npz",
            id=np.array(["a", "b"]),
            prediction=np.array([1, 0], dtype=">i2"),
            score=np.array([0.5, 0.25], dtype=np.float16),
            passed=np.array([True, False]),
            logits=np.zeros((2, 3)),
        )
        table = read_examples(path)
        assert table.frame.to_polars().to_dict(as_series=False) == {
            "id": ["a", "b"],
            "prediction": [1, 0],
            "score": [0.5, 0.25],
            "passed": [True, False],
        }
        assert table.notes[0].endswith("`logits` (float64, shape (2, 3))")

    @pytest.mark.parametrize("width", [3, 1])
    def test_predictions_in_rows(self, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What `Trainer.predict` returns; of a regression the array has one column."""
        monkeypatch.chdir(tmp_path)
        labels = np.arange(12) % 3
        path = self.save(Path("a.npz"), predictions=np.eye(3)[labels][:, :width], label_ids=labels)
        for options in ({}, {"statistic": "accuracy"}):
            with pytest.raises(InputError) as caught:
                trackperm.compare(path, path, by_position=True, **options)
            code = re.search("`(a = [^`]+)`", str(caught.value.hint))
            assert code is not None
            assert "label_ids`)" not in str(caught.value.hint)
        exec(code[1], {"np": np})
        found = trackperm.compare("run.npz", "run.npz", statistic="accuracy", by_position=True)
        assert found.baseline_score == (1.0 if width == 3 else 0.0)

    def test_compressed(self, tmp_path: Path) -> None:
        with (tmp_path / "p").open("wb") as file:
            np.savez_compressed(file, id=np.arange(2))
        assert read_examples(tmp_path / "p").frame["id"].to_list() == [0, 1]

    @pytest.mark.parametrize("case", REFUSED_NPZ.values(), ids=REFUSED_NPZ)
    def test_refused(self, case: tuple[dict[str, Any], str], tmp_path: Path) -> None:
        arrays, message = case
        with pytest.raises(SourceError, match=message):
            read_examples(self.save(tmp_path / "p.npz", **arrays))

    def test_damaged(self, tmp_path: Path) -> None:
        path = self.save(tmp_path / "p.npz", id=np.arange(1000))
        data = bytearray(path.read_bytes())
        data[4000] ^= 255
        path.write_bytes(data)
        with pytest.raises(SourceError, match="is not a readable NumPy archive"):
            read_examples(path)


@pytest.fixture
def objects() -> Iterator[Served]:
    with served_objects() as served:
        yield served


class TestUrls:
    @pytest.mark.parametrize(
        ("locator", "expected"),
        [
            ("s3://bucket//a.parquet", ("s3://bucket//a.parquet", None)),
            ("hf://datasets/o/d@~parquet/x.parquet::A", ("hf://datasets/o/d@~parquet/x.parquet", "A")),
            ("~/a.csv::A", (Path.home() / "a.csv", "A")),
            ("odd name://a.csv", (Path("odd name://a.csv"), None)),
        ],
    )
    def test_a_url_stays_as_it_is_written(self, locator: str, expected: Any) -> None:
        assert split_part(locator) == expected

    def test_file(self, tmp_path: Path) -> None:
        FRAME.write_parquet(tmp_path / "a")
        FRAME.write_ipc(tmp_path / "b")
        for name in ("a", "b"):
            url = f"file://{tmp_path}/{name}"
            assert read_file(url).frame.to_polars().equals(FRAME)
            assert read_file(url).origin == url

    def test_http(self, objects: Served, tmp_path: Path) -> None:
        address, served = objects
        FRAME.write_parquet(tmp_path / "a")
        served["/runs/a.parquet"] = (tmp_path / "a").read_bytes()
        url = f"{address}/runs/a.parquet"
        assert read_file(url).frame.to_polars().equals(FRAME)
        assert read_file(f"{url}::label").origin == f"{url}::label"
        assert compared(url, url, "-s", "accuracy")["pvalue"] == 1

    def test_nothing_says_the_credentials(self, objects: Served, tmp_path: Path) -> None:
        address, served = objects
        FRAME.write_parquet(tmp_path / "a")
        served["/a.parquet"] = (tmp_path / "a").read_bytes()
        url = f"{address.replace('//', '//ann:hunter2@')}/a.parquet?sig=hunter2"
        assert read_file(f"{url}::label").origin == f"{address}/a.parquet?sig=…::label"
        found = compared(url, url, "-s", "accuracy")
        assert found["candidate"] == f"{address}/a.parquet?sig=…"
        assert "hunter" not in json.dumps(found)
        with pytest.raises(SourceError) as caught:
            read_file(url.replace("a.parquet", "nowhere"))
        assert "hunter" not in str(caught.value)

    @pytest.mark.parametrize(
        ("locator", "shown"),
        [
            ("https://host/a?token=b::A", "https://host/a?token=…::A"),
            ("https://ann:b::c@host/a", "https://host/a"),
            ("https://host/a?key=b::c&token=d", "https://host/a?key=…&token=…"),
            ("a?token=b", "a?token=b"),
        ],
    )
    def test_what_is_shown_of_a_locator(self, locator: str, shown: str) -> None:
        assert shown_locator(locator) == shown

    def test_s3(self, objects: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        address, served = objects
        for name, value in {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }.items():
            monkeypatch.setenv(name, value)
        FRAME.write_parquet(tmp_path / "a")
        served["/bucket/runs/a.parquet"] = (tmp_path / "a").read_bytes()
        assert read_file("s3://bucket/runs/a.parquet").frame.to_polars().equals(FRAME)

    def test_an_invalid_table_is_refused_once(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("id,p\n1,2\n")
        url = f"file://{tmp_path}/a.csv"
        with pytest.raises(SourceError) as caught:
            read_file(url)
        assert str(caught.value).startswith(f"`{url}` cannot be read\n\n    as Parquet: ")
        assert "as Arrow IPC: " in caught.value.message

    def test_what_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match=r"nowhere.parquet` cannot be read"):
            read_file(f"file://{tmp_path}/nowhere.parquet")
