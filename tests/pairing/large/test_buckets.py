"""Runs that are paired in buckets come to what they come to in memory, whatever lies in which bucket.

The other modules here pair everything in buckets too, see `conftest.py`.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from pairing.both_ways import assert_same, pair_both_ways, paired_in_buckets
from support.specs import load

from trackperm.errors import CapacityError, PairingError, SourceError, TrackpermError
from trackperm.pairing import digest, frame_file
from trackperm.pairing.checks import suspicions
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.keyed_run import KEY, KeyedRun
from trackperm.pairing.large import buckets, totals
from trackperm.pairing.pair import pair
from trackperm.statistic import Statistic, load_statistic
from trackperm.tables import read_examples
from trackperm.tables.column_types import ColumnType
from trackperm.tables.formats import json_lines
from trackperm.tables.table import ExampleTable

N = 240
OVER = "counts: {k: score > 0.5, n: 1}\nscore: k / n"

PEAK = """
import re, sys, trackperm
from trackperm.pairing.large import buckets
buckets.IN_MEMORY, buckets.BUCKET = 0, 2**22
assert trackperm.compare(*sys.argv[2:]).test.n_examples == int(sys.argv[1])
print(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])
"""

Change = Callable[[pl.DataFrame], pl.DataFrame]


class Case(NamedTuple):
    """How two runs that agree mostly are changed, and compared."""

    first: Change
    second: Change
    statistic: str = "accuracy"
    missing: str = "error"
    id: str = "id"


def same(frame: pl.DataFrame) -> pl.DataFrame:
    return frame


def put(value: Any, name: str, *rows: int) -> Change:
    """Put a value in a column of some rows, counted from 0 in the order of ids."""
    return lambda frame: frame.sort("id").with_columns(
        pl.when(pl.int_range(pl.len()).is_in(rows)).then(pl.lit(value)).otherwise(pl.col(name)).alias(name)
    )


def leave(start: int, stop: int) -> Change:
    """Leave rows from `start` to `stop` in the order of ids."""
    return lambda frame: frame.sort("id")[start:stop]


def chain(*changes: Change) -> Change:
    def changed(frame: pl.DataFrame) -> pl.DataFrame:
        for change in changes:
            frame = change(frame)
        return frame

    return changed


def columns(*expressions: pl.Expr, **named: pl.Expr) -> Change:
    return lambda frame: frame.with_columns(*expressions, **named)


def scores(offset: float) -> Change:
    return lambda frame: frame.select("id", score=pl.col("id") % 7 / 8 + offset)


def counts(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select("id", tp="label", incorrect="prediction")


def one_score(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.rename({"prediction": "score"})


TEXT = columns(*(pl.format("{}-ß{}", pl.lit(name), name).alias(name) for name in ("prediction", "label")))
IN_TEXT = columns(pl.format("q-{}", "id").alias("id"))
DECOMPOSED = pl.format("e\u0301{}", "id")
LISTS = columns(pl.col("prediction", "label").cast(pl.String).repeat_by(pl.col("id").abs() % 3))
TWO_IDS = columns(a=pl.col("id") // 10, b=pl.format("x,{}\\", "id"))
PERFECT = columns(prediction=pl.col("label"))
SOME = chain(put(None, "prediction", 0, 1, 90), leave(0, 180))

SAME_RESULT = {
    "integers": Case(same, same),
    "texts": Case(chain(TEXT, IN_TEXT), chain(TEXT, IN_TEXT)),
    "decimals that are integers": Case(columns(pl.col("prediction").cast(pl.Float64)), same),
    "decimals in the last bucket alone": Case(
        put(0.5, "prediction", N - 1), columns(pl.col("label").cast(pl.Float32))
    ),
    "not a number": Case(put(float("nan"), "prediction", 5, 200), same, missing="drop"),
    "booleans": Case(*(columns(pl.col("prediction") > 0, pl.col("label") > 0),) * 2),
    "a column without values": Case(columns(prediction=pl.lit(None, pl.Int64)), same, missing="wrong"),
    "examples left out": Case(put(None, "prediction", 3, 100), leave(20, 230), missing="drop"),
    "ends left out": Case(leave(150, N), leave(20, 200), missing="drop"),
    "examples without an id": Case(put(None, "id", 0, 1, 150), put(None, "id", 239), missing="drop"),
    "missing counted as wrong": Case(SOME, leave(7, N), missing="wrong"),
    "missing at their worst": Case(SOME, leave(7, N), missing="worst"),
    "missing at their best": Case(SOME, leave(7, N), missing="best"),
    "several counts": Case(counts, counts, "micro_f1"),
    "labels that nothing reads": Case(one_score, one_score, "mean"),
    "labels of one run alone": Case(one_score, lambda frame: one_score(frame).drop("label"), "mean"),
    "labels that nothing can read": Case(*(chain(one_score, columns(label=1 / pl.lit(0.0))),) * 2, "mean"),
    "lists": Case(LISTS, LISTS, "token_accuracy"),
    "several id columns": Case(TWO_IDS, TWO_IDS, id="a, b"),
    "ids called folds": Case(*(lambda frame: frame.rename({"id": "fold"}),) * 2, id="fold"),
    "decimals that are counted as integers": Case(scores(0.0), scores(0.3), OVER),
    # of which one should be suspicious
    "copies": Case(PERFECT, PERFECT),
    "copies but for one": Case(PERFECT, chain(PERFECT, put(9, "prediction", N - 1))),
    "copies but for the first": Case(PERFECT, chain(PERFECT, put(9, "prediction", 0))),
    "labels as predictions": Case(same, PERFECT),
    "shifted": Case(scores(0.0), scores(0.25), OVER),
    "shifted but for one": Case(chain(scores(0.0), put(9.0, "score", 130)), scores(0.25), OVER),
}

SUSPICIONS = {
    "ids called folds": "folds: the training sets",
    "copies": "are the same in both runs",
    "copies but for one": "is `label` on every example of `base`",
    "labels as predictions": "is `label` on every example of `cand`",
    "shifted": "differs by +0.25 on every example",
}

REFUSED = {
    "ids twice": Case(
        lambda frame: pl.concat([frame, frame[:9]]), lambda frame: pl.concat([frame, frame[-3:]])
    ),
    "no partner": Case(leave(9, 200), leave(0, 190)),
    "no partner at all": Case(leave(0, 100), leave(100, N), missing="drop"),
    "no id": Case(put(None, "id", *range(8), 200), put(None, "id", 239)),
    "no values": Case(put(None, "prediction", 5, 200), put(None, "label", *range(50, 90))),
    "labels that differ": Case(same, put(7, "label", 0, *range(100, 140), 239)),
    "labels missing": Case(one_score, chain(one_score, put(None, "label", 0, 239)), "mean"),
    "all at once": Case(
        chain(put(None, "id", 1), leave(9, 200)), chain(put(7, "label", 50), put(None, "label", 150))
    ),
    "ids that differ in zeros": Case(IN_TEXT, chain(IN_TEXT, columns(pl.col("id").str.replace("q-", "Q-")))),
    "integers and texts": Case(same, TEXT),
    "ids that are decimals": Case(put(0.5, "id", 200), put(0.5, "id", 200)),
    "infinite values": Case(put(float("inf"), "prediction", 200), same),
    "counts that are too large": Case(one_score, chain(one_score, put(2**62, "score", 3)), "mean"),
    "labels that differ before counts": Case(
        one_score, chain(one_score, put(2**62, "score", 3), put(7, "label", 200)), "mean"
    ),
    "no missing predictions": Case(one_score, one_score, "mean", missing="wrong"),
}

IN_MEMORY = {
    "twins in other buckets": Case(
        chain(IN_TEXT, put("\u00e9", "id", 0), put("e\u0301", "id", 239)), IN_TEXT, missing="drop"
    ),
    "decimal counts": Case(one_score, chain(one_score, put(0.5, "score", 3)), "mean"),
    "classes": Case(same, same, "macro_f1"),
    "wide integers": Case(columns(pl.col("prediction").cast(pl.UInt64)), same),
}


@pytest.fixture
def n_added(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows of the baseline were in every bucket."""
    found: list[int] = []
    add = totals.Totals.add

    def noted(self: totals.Totals, runs: totals.Runs) -> None:
        found.append(len(runs[0]))
        add(self, runs)

    monkeypatch.setattr(totals.Totals, "add", noted)
    return found


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[IO[bytes]]:
    """The temporary files that were opened."""
    found: list[IO[bytes]] = []
    open_one = frame_file.temporary_file

    def noted(files: contextlib.ExitStack) -> IO[bytes]:
        found.append(open_one(files))
        return found[-1]

    for module in (digest, frame_file):
        monkeypatch.setattr(module, "temporary_file", noted)
    return found


def runs(first: Change = same, second: Change = same) -> tuple[ExampleTable, ExampleTable]:
    """Two runs with most answers right, in orders of their own."""
    rng = np.random.default_rng(1)
    label = rng.integers(0, 3, N)
    tables = []
    for origin, change in (("base", first), ("cand", second)):
        prediction = np.where(rng.random(N) < 0.8, label, rng.integers(0, 3, N))
        frame = pl.DataFrame({"id": np.arange(N) * 7 - 500, "prediction": prediction, "label": label})
        frame = change(frame).sample(fraction=1, shuffle=True, seed=len(tables))
        tables.append(ExampleTable.from_native(frame, origin))
    return tables[0], tables[1]


def statistic_of(case: Case, tmp_path: Path) -> Statistic:
    names = {"id": case.id}
    if ":" in case.statistic:
        return load(tmp_path, case.statistic, columns=names)
    return load_statistic(case.statistic, columns=names)


@pytest.mark.parametrize("name", SAME_RESULT)
def test_the_result_is_the_same(name: str, n_added: list[int], tmp_path: Path) -> None:
    case = SAME_RESULT[name]
    found = pair_both_ways(*runs(case.first, case.second), statistic_of(case, tmp_path), missing=case.missing)
    assert len(n_added) > 2
    if name in SUSPICIONS:
        assert any(SUSPICIONS[name] in note for note in found.report.notes)


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_the_same(name: str, tmp_path: Path) -> None:
    case = REFUSED[name]
    with pytest.raises(TrackpermError):
        pair_both_ways(*runs(case.first, case.second), statistic_of(case, tmp_path), missing=case.missing)


@pytest.mark.parametrize("name", IN_MEMORY)
def test_what_does_not_add_up_stays_in_memory(name: str, n_added: list[int], tmp_path: Path) -> None:
    case = IN_MEMORY[name]
    with contextlib.suppress(PairingError):
        pair_both_ways(*runs(case.first, case.second), statistic_of(case, tmp_path), missing=case.missing)
    assert not n_added


def test_what_agrees_by_chance_is_seen_in_some_of_the_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspicions, "N_SAMPLED", 1100)
    seen, agreement = [], suspicions._agreement

    def noted(a: pl.Series, b: pl.Series, type_: ColumnType) -> float | None:
        seen.append((a.to_list(), b.to_list()))
        return agreement(a, b, type_)

    monkeypatch.setattr(suspicions, "_agreement", noted)
    tables = []
    for step, origin in enumerate(("base", "cand"), start=1):
        ids = pl.DataFrame({"id": range(4000)}).sample(fraction=1, shuffle=True, seed=step)
        frame = ids.with_columns(prediction=pl.col("id") // step % 2, label=0)
        tables.append(ExampleTable.from_native(frame, origin))
    notes = pair_both_ways(tables[0], tables[1], load_statistic("accuracy")).report.notes
    assert notes == (
        "look: `prediction` of the runs agrees no better than by chance: do the rows belong together?",
    )
    in_memory, in_buckets = seen[0], seen[len(seen) // 2]
    assert in_memory == in_buckets
    assert len(in_memory[0]) == 4000 // 3 + 1


def test_evidence_adds_up() -> None:
    frames = [table.frame.with_columns(nw.col("id").alias(KEY)) for table in runs()]
    whole = KeyedRun(frames[0], "base", N), KeyedRun(frames[1], "cand", N)
    found = PairedColumns.find(*runs(), load_statistic("accuracy"), False, "error")
    types = dict.fromkeys(("id", "prediction", "label"), ColumnType.INTEGER)

    def evidence(start: int, stop: int) -> suspicions.Evidence:
        first, second = (replace(run, frame=run.frame[start:stop]) for run in whole)
        return suspicions.Evidence.of((first, second), found, types, every=7, start=start)

    total = evidence(0, 100) + evidence(100, 103) + evidence(103, 105) + evidence(105, N)
    assert total.n == N
    for sample, run in zip(total.samples, whole, strict=True):
        assert sample["prediction"].to_list() == run.frame["prediction"].to_list()[::7]


def test_digests_are_those_of_version_0_1() -> None:
    frame = pl.DataFrame(
        {
            "i": [3, None, -1, 4, 5, 6, 7, 8, None],
            "d": [0.5, -0.0, None, 2.0, 1e300, 0.1, 0.2, 0.3, 0.4],
            "b": [True, None, False, True, True, True, False, False, True],
            "t": ["a", None, "", "ßé", "b,c", "d", "e", "f", "g"],
            "tt": [["a", None], None, [], ["ß"], ["b", "c"], [], [], [], ["d"]],
            "ii": [[1, None], None, [], [2], [3, 4], [], [], [], [5]],
        },
        schema_overrides={"tt": pl.List(pl.String), "ii": pl.List(pl.Int64)},
    )
    kinds = ("INTEGER", "DECIMAL", "BOOLEAN", "TEXT", "TEXT_LIST", "INTEGER_LIST")
    types = {name: ColumnType[kind] for name, kind in zip(frame.columns, kinds, strict=True)}
    expected = "6fbf9e37bcded82a44aea8e72cbbe1f975fb22510599c2bf9a94789b1702cb22"
    assert digest.digest(nw.from_native(frame, eager_only=True), types) == expected
    for size in (1, 4, 5, 8):
        with contextlib.ExitStack() as files:
            parts = digest.DigestOfParts(types, files)
            for part in frame.iter_slices(size):
                parts.add(nw.from_native(part, eager_only=True))
            assert parts.hexdigest() == expected


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_files(kind: str, tmp_path: Path, n_added: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "LARGE", 1000)
    text = chain(TEXT, IN_TEXT)
    tables = []
    for table in runs(text, text):
        path, frame = tmp_path / f"{table.origin}.{kind}", table.frame.to_polars()
        if kind == "parquet":
            frame.write_parquet(path, row_group_size=50)
        else:
            frame.write_ndjson(path)
        tables.append(read_examples(path, table.origin))
    found = pair_both_ways(tables[0], tables[1], load_statistic("accuracy"))
    assert len(n_added) > 2
    assert_same(found, pair(*runs(text, text), load_statistic("accuracy")))


def test_a_file_that_breaks_off_is_named(tmp_path: Path, opened: list[IO[bytes]]) -> None:
    path = tmp_path / "base.parquet"
    table, other = runs()
    table.frame.to_polars().write_parquet(path, row_group_size=20, compression="zstd")
    scanned = read_examples(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 400] = bytes(400)
    path.write_bytes(data)
    with pytest.raises(SourceError, match=r"`.*base\.parquet` is not a readable Parquet file"):
        paired_in_buckets(scanned, other, load_statistic("accuracy"))


@pytest.mark.parametrize("second", [same, put(7, "label", 3)], ids=["paired", "refused"])
def test_temporary_files_are_gone(second: Change, opened: list[IO[bytes]]) -> None:
    with contextlib.suppress(PairingError):
        paired_in_buckets(*runs(same, second), load_statistic("accuracy"))
    assert len(opened) > 4
    assert all(file.closed for file in opened)


def test_temporary_files_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(CapacityError, match=r"cannot be written: .*No such file"):
        paired_in_buckets(*runs(), load_statistic("accuracy"))


def test_progress() -> None:
    told: list[float] = []
    paired_in_buckets(*runs(), load_statistic("accuracy"), progress=told.append)
    assert told == sorted(told)
    assert len(told) > 10
    assert told[-1] == 1.0


@pytest.mark.extended
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from /proc")
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    peaks = []
    for n in (250_000, 1_000_000):
        paths = tmp_path / f"base-{n}.parquet", tmp_path / f"cand-{n}.parquet"
        for step, path in enumerate(paths, start=7):
            ids = pl.DataFrame({"number": range(n)}).sample(fraction=1, shuffle=True, seed=step)
            texts = [
                pl.format("question number {}", "number").alias("id"),
                pl.lit("label of it").alias("label"),
            ]
            right = pl.col("number") % (20 + step) != 0
            frame = ids.select(
                *texts, prediction=pl.when(right).then(pl.lit("label of it")).otherwise(pl.lit("no"))
            )
            frame.write_parquet(path, row_group_size=50_000)
        found = subprocess.check_output([sys.executable, "-c", PEAK, str(n), *map(str, paths)], text=True)
        peaks.append(int(found))
    assert peaks[1] - peaks[0] < 100_000  # KiB, half of what it grows by in memory


def test_small_runs_stay_in_memory(n_added: list[int]) -> None:
    buckets.paired(*runs(), load_statistic("accuracy"))
    assert not n_added
