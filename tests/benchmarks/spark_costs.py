"""What pairing by Spark reads, shuffles, computes and brings to the driver, for each example of two runs.

    python tests/benchmarks/spark_costs.py 1e5 1e7 --ids text

The figures are those that Spark logs of its tasks, and the peak memory of this process, which is the driver's
Python. Runs are Parquet tables with ids in no order, ten classes, and a column of some 100 characters that
no statistic reads; on as many examples as `--changed` says the candidate has another prediction.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

_CLEAR_REFS, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
_METRICS = {
    "read": ("Input Metrics", "Bytes Read"),
    "shuffled": ("Shuffle Write Metrics", "Shuffle Bytes Written"),
    "shuffled rows": ("Shuffle Write Metrics", "Shuffle Records Written"),
    "spilled": ("Disk Bytes Spilled",),
    "cpu": ("Executor CPU Time",),
}


def main() -> None:
    """Print a line of JSON for each number of examples."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("n_examples", type=float, nargs="+")
    parser.add_argument("--ids", choices=("integer", "text"), default="integer")
    parser.add_argument("--statistic", default="accuracy")
    parser.add_argument("--changed", type=int, default=1000)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="2g")
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="trackperm-") as folder:
        session = _session(Path(folder), arguments.cores, arguments.memory)
        for n in map(int, arguments.n_examples):
            runs = [
                _write(session, f"{folder}/{name}{n}", n, arguments.ids, changed)
                for name, changed in {"base": 0, "cand": arguments.changed}.items()
            ]
            figures = measured(session, Path(folder), runs, arguments.statistic)
            sys.stdout.write(json.dumps({"examples": n, "ids": arguments.ids, **figures}) + "\n")
            sys.stdout.flush()
        session.stop()


def measured(session: Any, folder: Path, runs: Iterable[str], statistic: str) -> dict[str, float]:
    """Pair two runs, and return what it took, by example where that makes sense."""
    from trackperm.pairing.pair import pair
    from trackperm.statistic import load_statistic
    from trackperm.tables.table import ExampleTable

    tables = [ExampleTable.from_native(session.read.parquet(run), run) for run in runs]
    before, started, since = _reset_peak(), time.perf_counter(), 1000 * time.time()
    found = pair(tables[0], tables[1], load_statistic(statistic))
    seconds, peak = time.perf_counter() - started, _peak()
    n, table = found.count_table.n_examples, found.count_table
    totals = _totals(folder / "events", since)
    return {
        "seconds": round(seconds, 2),
        "core microseconds per example": round(totals["cpu"] / 1e3 / n, 3),
        "bytes read per example": round(totals["read"] / n, 2),
        "bytes shuffled per example": round(totals["shuffled"] / n, 2),
        "rows shuffled per example": round(totals["shuffled rows"] / n, 3),
        "bytes spilled per example": round(totals["spilled"] / n, 2),
        "rows of the count table": len(table.multiplicities),
        "rows shown": len(found.discordant),
        "MB of the driver's Python before": round(before / 2**20, 1),
        "MB of the driver's Python at its peak": round(peak / 2**20, 1),
    }


def _session(folder: Path, cores: int, memory: str) -> Any:
    from pyspark.sql import SparkSession

    (folder / "events").mkdir()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]").appName("costs")
    for name, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": memory,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{folder / 'events'}",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.local.dir": str(folder),
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": str(4 * cores),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _write(session: Any, path: str, n: int, ids: str, changed: int) -> str:
    """Write a run as Parquet; multiplying by an odd number permutes the integers modulo 2^40."""
    number = "id * 668265263 % 1099511627776"
    session.range(0, n, 1, 8).selectExpr(
        f"concat('question-', {number}) AS id" if ids == "text" else f"{number} AS id",
        f"IF(id < {changed}, (id + 1) % 10, IF(id % 7 = 0, 0, id % 10)) AS prediction",
        "id % 10 AS label",
        "repeat(cast(id AS STRING), 10) AS prompt",
    ).write.parquet(path)
    return path


def _totals(folder: Path, since: float) -> dict[str, float]:
    """Add up what tasks reported that were launched after a time, in milliseconds."""
    totals = dict.fromkeys(_METRICS, 0.0)
    for event in _events(folder):
        if event["Event"] != "SparkListenerTaskEnd" or event["Task Info"]["Launch Time"] < since:
            continue
        for name, path in _METRICS.items():
            value: Any = event["Task Metrics"]
            for part in path:
                value = value[part]
            totals[name] += value
    return totals


def _events(folder: Path) -> Iterator[dict[str, Any]]:
    time.sleep(2.0)  # the log is written behind the events
    for path in folder.iterdir():
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.endswith("}"):
                yield json.loads(line)


def _reset_peak() -> int:
    """Set the peak memory of this process back to what it has now (Linux), and return that."""
    _CLEAR_REFS.write_text("5", encoding="ascii")
    return _peak()


def _peak() -> int:
    found = re.search(r"VmHWM:\s*(\d+) kB", _STATUS.read_text(encoding="ascii"))
    assert found is not None
    return 1024 * int(found[1])


if __name__ == "__main__":
    main()
