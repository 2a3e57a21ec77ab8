"""Frames of Spark Connect, Delta Lake and Iceberg: compared where they are, with the results of polars."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.engines import QUICK_JAVA

import trackperm
from trackperm.errors import PairingError

pytestmark = pytest.mark.spark

N = 600


def runs() -> list[pl.DataFrame]:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, N)
    return [
        pl.DataFrame(
            {
                "id": [f"q{i}" for i in range(N)],
                "label": label,
                "prediction": np.where(rng.random(N) < share, label, 1 - label),
                "prompt": "x" * 50,
            }
        ).sample(fraction=1, shuffle=True, seed=seed)
        for seed, share in ((1, 0.7), (2, 0.8))
    ]


def outcome(comparison: trackperm.Comparison) -> list[Any]:
    counts = comparison.count_table
    return [
        comparison.pvalue,
        comparison.pairing.test_set,
        *(getattr(counts, name).tolist() for name in ("candidate", "baseline", "multiplicities")),
        comparison.discordant["id"].to_list(),
    ]


CONNECTED = """
import json, sys
from pyspark.sql import SparkSession

sys.path.insert(0, sys.argv[1])
from pairing.engines.test_lakes import outcome, runs
import trackperm
from trackperm.errors import TrackpermError

session = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", 2).getOrCreate()
frames = [session.createDataFrame(run.to_arrow()) for run in runs()]
assert "connect" in type(frames[0]).__module__
print(json.dumps([outcome(trackperm.compare(*frames, name)) for name in ("accuracy", "f1")]))
try:
    trackperm.compare(frames[0].union(frames[0].limit(1)), frames[1], "accuracy")
except TrackpermError as error:
    print(type(error).__name__, error.message.splitlines()[0])
session.stop()
"""


@pytest.mark.nightly
def test_spark_connect() -> None:
    pytest.importorskip("grpc_status", reason="pip install 'pyspark[connect]'")
    environment = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    environment["JAVA_TOOL_OPTIONS"] = QUICK_JAVA
    command = [sys.executable, "-W", "ignore", "-c", CONNECTED, str(Path(__file__).parents[2])]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    found, refusal, *_ = [*done.stdout.splitlines(), "", ""]
    assert found.startswith("["), done.stderr
    frames = runs()
    for each, name in zip(json.loads(found), ("accuracy", "f1"), strict=True):
        assert each == outcome(trackperm.compare(*frames, name))
    with pytest.raises(PairingError) as caught:
        trackperm.compare(pl.concat([frames[0], frames[0].head(1)]), frames[1], "accuracy")
    assert refusal == f"PairingError {caught.value.message.splitlines()[0]}"


def test_delta_lake(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    frames = runs()
    for name, frame in zip("ab", frames, strict=True):
        frame.write_delta(str(tmp_path / name))
    tables = [pl.scan_delta(str(tmp_path / name)) for name in "ab"]
    assert outcome(trackperm.compare(*tables, "f1")) == outcome(trackperm.compare(*frames, "f1"))


@pytest.mark.filterwarnings("ignore:Iceberg scan planning")  # polars recommends a faster planner
def test_iceberg(tmp_path: Path) -> None:
    catalogs = pytest.importorskip("pyiceberg.catalog.sql")
    catalog = catalogs.SqlCatalog("runs", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("eval")
    frames = runs()
    tables = []
    for name, frame in zip("ab", frames, strict=True):
        table = catalog.create_table(f"eval.{name}", schema=frame.to_arrow().schema)
        table.append(frame.to_arrow())
        tables.append(pl.scan_iceberg(table))
    assert outcome(trackperm.compare(*tables, "f1")) == outcome(trackperm.compare(*frames, "f1"))
