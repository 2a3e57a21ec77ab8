"""Spark in processes of their own: the session that is started, its memory, its end, and a job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from support.engines import QUICK_JAVA
from support.processes import ROOT

pytestmark = pytest.mark.spark

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if "SPARK" not in name and name != "MASTER"},
    "JAVA_TOOL_OPTIONS": QUICK_JAVA,
}

PAIRED = """
import os, polars as pl, sys
from pathlib import Path
from trackperm.pairing.pair import pair
from trackperm.statistic import load_statistic
from trackperm.tables.table import ExampleTable

run = pl.DataFrame({"id": [1, 2, 3], "prediction": [1, 1, 0], "label": [1, 0, 0]})
table = ExampleTable.from_native(run, "run")
def paired():
    return pair(table, table, load_statistic("accuracy"), engine="spark").report.n_paired
"""

LISTENING = """
print(paired())
from pyspark.sql import SparkSession
process = SparkSession.getActiveSession()._jvm.java.lang.ProcessHandle.current().pid()
sockets = {os.readlink(each) for each in Path(f"/proc/{process}/fd").iterdir() if each.exists()}
for family in ("tcp", "tcp6"):
    for line in Path(f"/proc/{process}/net/{family}").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
            print(fields[1].partition(":")[0])
os.kill(process, 9)
try:
    paired()
except Exception as error:
    print(type(error).__name__, error.message)
"""


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        check=False, capture_output=True, text=True, env={**ENVIRONMENT, **environment},
    )  # fmt: skip


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="sockets are looked up as on Linux")
def test_a_local_session_listens_on_localhost_and_its_end_is_an_error() -> None:
    done = run_python(PAIRED + LISTENING)
    paired, *addresses, error = done.stdout.splitlines()
    assert paired == "3", done.stderr
    assert {address[-8:] for address in addresses} == {"0100007F"}
    assert error.startswith("EngineError the Java process of Spark has ended")
    assert "\tat " not in done.stderr


def test_java_is_not_installed() -> None:
    code = PAIRED + "try: paired()\nexcept Exception as error: print(type(error).__name__, error)"
    done = run_python(code, PATH="/nowhere", JAVA_HOME="/nowhere")
    assert done.stdout.startswith("MissingDependencyError Spark could not start its Java process"), (
        done.stderr
    )
    assert "pip install 'trackperm[spark]', and Java" in done.stdout


@pytest.mark.nightly
@pytest.mark.parametrize("n", [1_000_000, 10_000_000])
def test_memory_of_the_driver_does_not_grow_with_the_runs(n: int) -> None:
    program = ROOT / "tests" / "benchmarks" / "spark_costs.py"
    done = subprocess.run(
        [sys.executable, program, "100000", str(n)],
        check=False,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    small, large = map(json.loads, done.stdout.splitlines())
    peaks = [figures["MB of the driver's Python at its peak"] for figures in (small, large)]
    assert large["examples"] == n
    assert peaks[1] < peaks[0] + 20, (small, large)
    assert large["rows shown"] == small["rows shown"] > 800
    assert large["bytes read per example"] < 50  # 150 with the column that is not used


def test_the_example_is_a_job_for_spark_submit(tmp_path: Path) -> None:
    import pyspark

    for name, wrong in (("a", 7), ("b", 5)):
        ids = pl.int_range(200, eager=True)
        frame = pl.DataFrame({"id": ids, "label": ids % 2, "prediction": (ids % 2 + (ids % wrong == 0)) % 2})
        (tmp_path / name).mkdir()
        frame.write_parquet(tmp_path / name / "part.parquet")
    submit = Path(pyspark.__path__[0]) / "bin" / "spark-submit"
    settings = {
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
        "spark.pyspark.python": sys.executable, "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.codegen.wholeStage": "false",
    }  # fmt: skip
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    done = subprocess.run(
        [submit, "--master", "local[2]", *options, ROOT / "examples" / "spark_job.py",
         tmp_path / "a", tmp_path / "b", "--output", tmp_path / "out"],
        check=False, capture_output=True, text=True, env={**ENVIRONMENT, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (part,) = (tmp_path / "out" / "result").glob("part-*")
    result = json.loads(part.read_text(encoding="utf-8"))
    assert result["n_examples"] == 200
    assert result["baseline_score"] > result["candidate_score"]
    changed = pl.read_parquet(tmp_path / "out" / "changed" / "*.parquet")
    assert len(changed) == result["n_discordant"]
    assert changed.columns[:2] == ["id", "label"]
