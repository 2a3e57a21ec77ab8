"""Small files that hold much are refused before it is in memory, and the limit is said."""

from __future__ import annotations

import gzip
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


def _columns(write: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        frame = pl.DataFrame(
            {name: pl.Series([0], dtype=pl.Int8).new_from_index(0, MB) for name in ("id", "p")}
        )
        getattr(frame, write)(path, compression="zstd")

    return make


BOMBS: dict[str, Callable[[Path], None]] = {
    "gzip": lambda path: path.write_bytes(gzip.compress(b"id,p\n" + b"1,2\n" * MB)) and None,
    "inspect": _eval,
    "inspect, understated": _understated,
    "npz": _npz,
    "npz of text": _npz_of_text,
    "parquet": _columns("write_parquet"),
    "arrow": _columns("write_ipc"),
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
        SourceError, match=rf"^`{path}` (is compressed, and holds more than 1 MB|is a damaged)"
    ):
        _ = read_examples(path).frame


def test_the_limit_has_to_be_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKPERM_EXPANDED_MB", "much")
    path = tmp_path / "x.csv"
    path.write_bytes(gzip.compress(b"id\n1\n"))
    with pytest.raises(
        InputError, match="`TRACKPERM_EXPANDED_MB` is 'much'; expected a whole number above 0"
    ):
        read_examples(path)


def test_manifests_of_artifacts_are_no_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKPERM_EXPANDED_MB", "1")
    with pytest.raises(SourceError, match="holds more than 1 MB"):
        external_entries(gzip.compress(b" " * 3 * MB))
