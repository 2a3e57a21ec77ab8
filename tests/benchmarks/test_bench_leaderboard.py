"""Many systems: all pairs of 129 on 50 topics and of 50 on a million examples, and runs paired with one."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from benchmarks.summary import Row
from benchmarks.workloads import scipy_resamples, seconds
from support.reference_data import ABSENT, DATA, available

import trackperm
from trackperm.exact import difference_test
from trackperm.pairing.many_runs import pair_many
from trackperm.pairing.pair import pair_in_memory
from trackperm.statistic import load_statistic
from trackperm.tables.table import ExampleTable

RESAMPLED = 20

on_topics = pytest.mark.skipif(not available(), reason=ABSENT)
of_topics = pytest.mark.parametrize(
    ("score", "file", "scale", "limit"),
    [("P@10", "adhoc8_p10.csv", 10, 3.0), ("average precision", "adhoc8_ap.csv", 10_000, 10.0)],
)


class Times(NamedTuple):
    """Seconds on the clock, and of the processor in this process and those that it has waited for."""

    wall: float
    processor: float

    @classmethod
    def of(cls, work: Callable[[], object]) -> Times:
        start, before = time.perf_counter(), _processor()
        work()
        return cls(time.perf_counter() - start, _processor() - before)

    def mean(self, other: Times) -> Times:
        return Times((self.wall + other.wall) / 2, (self.processor + other.processor) / 2)

    def note(self, whose: str = "") -> str:
        return f"{self.processor:.2g} s of processor time{whose}"


def _processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


@on_topics
@pytest.mark.parametrize("scaled", [True, False], ids=["integers", "decimals"])
@of_topics
def test_every_pair(benchmark, table, score: str, file: str, scale: int, limit: float, scaled: bool):
    systems = np.loadtxt(DATA / "reference_pvalues/urbano_trec" / file, delimiter=",", skiprows=1).T.copy()
    if scaled:
        systems = np.rint(scale * systems).astype(np.int64)
    pairs = list(combinations(systems, 2))
    assert len(pairs) == 8_256

    def every_pair():
        return [difference_test(u, v) for u, v in pairs]

    results = benchmark.pedantic(every_pair, rounds=1)
    methods = Counter(result.method for result in results).most_common()
    largest = max(result.error_bound for result in results)
    table.add(
        Row(
            f"{len(pairs):,} pairs of adhoc8, {score} as {'integers' if scaled else 'decimals in floats'}",
            benchmark.stats.stats.median,
            beside="SciPy, 9,999 resamples",
            theirs=resampling_of_all(pairs),
            limit=limit,
            note=", ".join(f"{name} {n:,}" for name, n in methods)
            + f"; error_bound at most {largest:.1e}; SciPy scaled up from {RESAMPLED} pairs",
        )
    )


def resampling_of_all(pairs: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """Seconds that SciPy would take for all pairs, from some of them."""
    chosen = pairs[:: len(pairs) // RESAMPLED][:RESAMPLED]
    return seconds(lambda: [scipy_resamples(u, v) for u, v in chosen]) * len(pairs) / len(chosen)


@on_topics
@pytest.mark.parametrize("intervals", [False, True], ids=["no intervals", "intervals"])
@of_topics
def test_leaderboard_of_topics(benchmark, table, score, file, scale, limit, intervals: bool):
    topics = pl.read_csv(DATA / "reference_pvalues/urbano_trec" / file)
    rows = range(len(topics))
    runs = {name: pl.DataFrame({"id": rows, "score": topics[name]}) for name in topics.columns}

    def leaderboard():
        return trackperm.leaderboard(runs, "mean", intervals=intervals)

    times = benchmark.pedantic(Times.of, args=(leaderboard,), rounds=1)
    columns = topics.to_numpy().T.copy()
    table.add(
        Row(
            f"leaderboard of 129 data frames, {score}" + (", with 128 intervals" if intervals else ""),
            times.wall,
            beside="SciPy, 9,999 resamples",
            theirs=resampling_of_all(list(combinations(columns, 2))),
            limit=None if intervals else limit,
            note=f"{times.note()}; SciPy scaled up from {RESAMPLED} of 8,256 pairs, and pairs nothing",
            summary=True,
        )
    )


def classifiers(k: int, n_examples: int) -> Iterator[pl.DataFrame]:
    """Runs that agree on most examples, with the same ids and labels."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 5, n_examples)
    hard = rng.random(n_examples)
    shared = pl.DataFrame({"id": pl.Series(np.arange(n_examples)), "label": label})
    for i in range(k):
        right = hard + 0.3 * rng.random(n_examples) < 0.9 + 0.1 * i / k
        yield shared.with_columns(prediction=np.where(right, label, (label + 1) % 5))


def test_leaderboard_of_a_million_examples(benchmark, table):
    runs = {f"run {i:02}": run for i, run in enumerate(classifiers(50, 10**6))}
    times = benchmark.pedantic(Times.of, args=(lambda: trackperm.leaderboard(runs),), rounds=1)
    u, v = ((run["prediction"] == run["label"]).to_numpy().astype(np.int8) for run in list(runs.values())[:2])
    n_resamples = 99
    one = seconds(scipy_resamples, u, v, n_resamples=n_resamples, batch=9)
    table.add(
        Row(
            "leaderboard of 50 data frames, N = 10^6, accuracy",
            times.wall,
            beside="SciPy, 9,999 resamples",
            theirs=one * 1_225 * 9_999 / n_resamples,
            limit=60.0,
            note=f"{times.note()}; SciPy scaled up from {n_resamples} resamples of one of 1,225 pairs",
            summary=True,
        )
    )


@pytest.mark.parametrize(("k", "n", "each"), [(129, 1_000, 20), (200, 10**5, 5)])
def test_pairing_with_one_run(benchmark, table, k: int, n: int, each: int):
    """The second is a fifth of 1,000 runs, whose time it scales to."""
    runs = [ExampleTable.from_native(run, f"run {i}") for i, run in enumerate(classifiers(k, n))]
    statistic = load_statistic("accuracy")

    def one_by_one() -> None:
        for other in runs[1 : each + 1]:
            pair_in_memory(runs[0], other, statistic)

    one_by_one()  # what is imported on first use is not what is measured
    times = benchmark.pedantic(Times.of, args=(lambda: pair_many(runs[0], runs[1:], statistic),), rounds=1)
    table.add(
        Row(
            f"{k} runs paired with one of them, N = {n:,}, accuracy",
            times.wall,
            beside="pairing run by run",
            theirs=seconds(one_by_one) * (k - 1) / each,
            note=f"{times.note()}; run by run scaled up from {each} runs;"
            f" {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2g} GiB at most in this process",
        )
    )


THOUSAND = """
import json, re, sys, time
sys.path[:0] = {path}
from benchmarks.test_bench_leaderboard import classifiers
import polars as pl, trackperm
runs = {{f"run {{i:04}}": run.with_columns(pl.col("prediction").cast(pl.Int8))
        for i, run in enumerate(classifiers(1_000, 10**5))}}
start = time.process_time()
board = trackperm.leaderboard(runs, "accuracy", baseline={baseline!r})
seconds = time.process_time() - start
peak = re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]
print(json.dumps([len(board.pairs), seconds, int(peak)]))
"""


@pytest.mark.parametrize("baseline", ["run 0000", None], ids=["one baseline", "all pairs"])
def test_a_thousand_runs(table, baseline: str | None):
    """On 10^5 examples, in a process of their own: its peak memory, the runs themselves included."""
    code = THOUSAND.format(path=sys.path, baseline=baseline)
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    n_pairs, took, kibibytes = json.loads(done.stdout)
    work = f"leaderboard of 1,000 data frames, N = 10^5, accuracy, {n_pairs:,} pairs"
    table.add(Row(work, took, note="processor time of this process", summary=True))
    table.add(Row(f"{work}: memory", 1024 * kibibytes, unit="B", limit=2**32, summary=True))
