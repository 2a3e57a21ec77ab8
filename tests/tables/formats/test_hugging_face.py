"""Folders that `save_to_disk` of Hugging Face's `datasets` writes: shards of Arrow streams, and splits."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from trackperm.errors import SourceError
from trackperm.tables import read_examples

FRAME = pl.DataFrame({"idx": [5, 3, 4], "prediction": [1, 0, 1], "label": [1, 1, 1]})
NAMES = [f"data-0000{i}-of-00003.arrow" for i in range(3)]


def saved(folder: Path, names: list[str] = NAMES, **state: object) -> Path:
    folder.mkdir(parents=True)
    for i, name in enumerate(names):
        FRAME[i : i + 1].write_ipc_stream(folder / name)
    files = [{"filename": name} for name in names]
    (folder / "state.json").write_text(json.dumps({"_data_files": files, "_split": None, **state}))
    (folder / "dataset_info.json").write_text("{}")
    return folder


@pytest.mark.parametrize("names", [NAMES, NAMES[::-1]], ids=["in order", "order of the state"])
def test_shards_are_one_table(names: list[str], tmp_path: Path) -> None:
    assert read_examples(saved(tmp_path / "run", names)).frame.to_polars().equals(FRAME)


@pytest.mark.parametrize("name", NAMES)
def test_a_single_shard_is_refused(name: str, tmp_path: Path) -> None:
    """Regression: 40 of 80 examples were compared, without a word."""
    with pytest.raises(SourceError, match=f"`{name}` is one of 3 parts of a table") as caught:
        read_examples(saved(tmp_path / "run") / name, name)
    assert "name the folder of the parts" in str(caught.value.hint)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    (saved(tmp_path / "run") / NAMES[1]).unlink()
    with pytest.raises(SourceError, match=f"run` lacks 1 of the 3 parts of a table: `{NAMES[1]}`"):
        read_examples(tmp_path / "run")


def test_shards_with_other_columns_are_refused(tmp_path: Path) -> None:
    FRAME[:1].rename({"label": "gold"}).write_ipc_stream(saved(tmp_path / "run") / NAMES[2])
    with pytest.raises(SourceError, match=f"`{NAMES[0]}` and `{NAMES[2]}` of .* differ in `gold`, `label`"):
        read_examples(tmp_path / "run")


def test_rows_that_indices_choose_are_refused(tmp_path: Path) -> None:
    saved(tmp_path / "run", _indices_data_files=[{"filename": "indices.arrow"}])
    with pytest.raises(SourceError, match="file of indices"):
        read_examples(tmp_path / "run")


def test_one_of_several_splits_is_chosen(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    for split in ("train", "test"):
        saved(folder / split)
    (folder / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(SourceError, match=r"has 2 splits, which must not be mixed: `train`, `test`"):
        read_examples(folder)
    assert len(read_examples(folder, part="test")) == 3
    (folder / "dataset_dict.json").write_text('{"splits": ["test", "../../etc"]}')
    assert len(read_examples(folder)) == 3
    (folder / "test" / "state.json").unlink()
    with pytest.raises(SourceError, match="run/test` is not a data set"):
        read_examples(folder)


@pytest.mark.parametrize("state", ["{", "[]", "{}", '{"_data_files": [1, {"filename": "../run/x"}]}'])
def test_other_folders_are_not_data_sets(state: str, tmp_path: Path) -> None:
    (saved(tmp_path / "run") / "state.json").write_text(state)
    with pytest.raises(SourceError, match="is a directory that cannot be read as one table"):
        read_examples(tmp_path / "run")
