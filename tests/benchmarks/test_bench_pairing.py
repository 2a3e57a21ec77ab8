"""Two runs in files, read, paired, counted and tested, beside reading and joining them and no more."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.summary import Row
from benchmarks.workloads import of_processor, seconds

import trackperm
from trackperm.pairing.pair import pair_in_memory
from trackperm.statistic import load_statistic
from trackperm.tables.table import ExampleTable

AT_MOST = 2.0
"""Times what polars takes to read and join the columns that the statistic reads."""

PROGRAMS = {
    "trackperm": "import trackperm\nx = trackperm.compare(*files)\nn, held = x.test.n_examples, x.discordant",
    "polars, Parquet": "x, y = (pl.read_parquet(f, columns=c) for f in files)\nn = len(x.join(y, on=id))",
    "polars, JSON Lines": "x, y = (pl.read_ndjson(f) for f in files)\nn = len(x.join(y, on=id))",
    "pandas, Parquet": "x, y = (pd.read_parquet(f, columns=c) for f in files)\nn = len(x.merge(y, on=id))",
    "pandas, JSON Lines": "x, y = (pd.read_json(f, lines=True) for f in files)\nn = len(x.merge(y, on=id))",
}
FRAME = """
import json, re, sys, time
import pandas as pd, polars as pl
files = sys.argv[1:]
id, c = "id", ["id", "prediction", "label"]
start, held = time.perf_counter(), pl.DataFrame()
{program}
seconds = time.perf_counter() - start
peak = re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]
print(json.dumps([n, seconds, int(peak), held.estimated_size()]))
"""


def measured(program: str, files: tuple[Path, Path], n_examples: int) -> tuple[float, int, int]:
    """(seconds, peak bytes, bytes that the result holds) of a program in a fresh process."""
    code = FRAME.format(program=PROGRAMS[program])
    done = subprocess.run([sys.executable, "-c", code, *files], check=True, stdout=subprocess.PIPE, text=True)
    found, took, kibibytes, held = json.loads(done.stdout)
    assert found == n_examples
    return took, 1024 * kibibytes, held


def runs(n_examples: int, *, text: bool) -> Iterator[pl.DataFrame]:
    """Two runs with a column that no statistic reads, the candidate in an order of its own."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 5, n_examples)
    for is_candidate in (False, True):
        prediction = np.where(rng.random(n_examples) < 0.9, label, rng.integers(0, 5, n_examples))
        frame = pl.DataFrame({"id": np.arange(n_examples), "prediction": prediction, "label": label})
        frame = frame.with_columns(seconds=pl.Series(rng.random(n_examples)))
        if text:
            names = [("id", "question"), ("prediction", "class"), ("label", "class")]
            frame = frame.with_columns(
                pl.format(f"{word}-{{}}", pl.col(name)).alias(name) for name, word in names
            )
        yield frame.sample(fraction=1, shuffle=True, seed=1) if is_candidate else frame


def write(folder: Path, n_examples: int, *, text: bool, suffix: str) -> tuple[Path, Path]:
    files = folder / f"baseline{suffix}", folder / f"candidate{suffix}"
    for file, frame in zip(files, runs(n_examples, text=text), strict=True):
        (frame.write_ndjson if suffix == ".jsonl" else frame.write_parquet)(file)
    return files


CASES = {
    "Parquet, integer ids, N = 10^7": (10**7, False, ".parquet", "Parquet"),
    "Parquet, text ids, N = 10^7": (10**7, True, ".parquet", "Parquet"),
    "JSON Lines, text ids, N = 10^6": (10**6, True, ".jsonl", "JSON Lines"),
}


@pytest.mark.parametrize("case", CASES)
def test_pairing(benchmark, table, case: str, tmp_path: Path):
    n_examples, text, suffix, kind = CASES[case]
    files = write(tmp_path, n_examples, text=text, suffix=suffix)
    time.sleep(1)  # lets the disk settle
    theirs, their_peak, _ = measured(f"polars, {kind}", files, n_examples)
    with_pandas, *_ = measured(f"pandas, {kind}", files, n_examples)
    took, peak, held = benchmark.pedantic(measured, args=("trackperm", files, n_examples), rounds=1)
    table.add(
        Row(
            f"compare, {case}",
            took,
            beside="polars reads and joins",
            theirs=theirs,
            compare="share",
            limit=AT_MOST,
            limit_on="ratio",
            note=f"pandas reads and joins in {with_pandas:.3g} s",
            summary=True,
        )
    )
    table.add(
        Row(
            f"compare, {case}: memory",
            peak,
            unit="B",
            beside="polars",
            theirs=their_peak,
            compare="share",
            note=f"the examples that differ hold {held / 2**20:.0f} MiB of it",
            summary=True,
        )
    )


@pytest.mark.parametrize("n_examples", [10**4, 10**6])
def test_what_is_asked_by_default(benchmark, table, n_examples: int, tmp_path: Path):
    """Beside the same statistic by its name: what the look at columns, labels and repeats costs."""
    files = write(tmp_path, n_examples, text=True, suffix=".parquet")
    named = seconds(trackperm.compare, *files, "accuracy", rounds=5)
    benchmark.pedantic(trackperm.compare, args=files, rounds=5, warmup_rounds=1)
    table.add(
        Row(
            f"compare, nothing named, Parquet, text ids, N = {n_examples:,}",
            benchmark.stats.stats.median,
            beside="`accuracy` named",
            theirs=named,
            compare="share",
            limit=1.5,
            limit_on="ratio",
        )
    )


@pytest.mark.parametrize("text", [False, True], ids=["integer ids", "text ids"])
@pytest.mark.parametrize(
    ("n_examples", "limit"), [(10**3, None), (10**4, None), (10**5, 8.0), (4 * 10**5, 8.0)]
)
def test_pairing_in_memory(table, n_examples: int, limit: float | None, text: bool):
    """Beside the join and the group-by alone, in processor time."""
    frames = list(runs(n_examples, text=text))
    tables = [ExampleTable.from_native(frame, "run") for frame in frames]
    statistic, rounds = load_statistic("accuracy"), max(3, 4 * 10**5 // n_examples // 10)

    def joined() -> pl.DataFrame:
        right = [
            frame.lazy().select("id", (pl.col("prediction") == pl.col("label")).alias("right"))
            for frame in frames
        ]
        both = right[0].join(right[1], on="id", how="full")
        return both.group_by("right", "right_right").agg(pl.len()).collect()

    table.add(
        Row(
            f"pairing in memory, {'text' if text else 'integer'} ids, N = {n_examples:,}",
            of_processor(lambda: pair_in_memory(*tables, statistic), rounds),
            beside="polars joins and groups",
            theirs=of_processor(joined, rounds),
            compare="share",
            limit=limit,
            limit_on="ratio",
            note="processor time; least of several",
        )
    )


def test_memory_does_not_grow_with_the_rows(benchmark, table, tmp_path: Path):
    n_examples = 3 * 10**7
    files = write(tmp_path, n_examples, text=False, suffix=".parquet")
    _, peak, held = benchmark.pedantic(measured, args=("trackperm", files, n_examples), rounds=1)
    table.add(
        Row(
            "compare, Parquet, integer ids, N = 3 * 10^7: memory beside the examples that differ",
            peak - held,
            unit="B",
            limit=2**29,
            note=f"the examples that differ hold {held / 2**20:.0f} MiB",
            summary=True,
        )
    )
