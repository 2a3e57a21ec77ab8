"""How long importing takes, beside the start of an interpreter that has what the module stands on."""

from __future__ import annotations

import subprocess
import sys

import pytest
from benchmarks.summary import Row
from benchmarks.workloads import seconds

LIMITS = {"trackperm": 0.2, "trackperm.exact": 0.15, "trackperm.cli": None}


def start(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("module", "beside"),
    [("trackperm", "pass"), ("trackperm.exact", "import numpy, scipy"), ("trackperm.cli", "pass")],
)
def test_import(benchmark, table, module: str, beside: str):
    bare = [seconds(start, beside) for _ in range(6)]
    benchmark.pedantic(start, args=(f"{beside}; import {module}",), rounds=10, warmup_rounds=1)
    bare += [seconds(start, beside) for _ in range(6)]
    table.add(
        Row(
            f"import {module}",
            benchmark.stats.stats.min - min(bare),
            beside=f"a start with `{beside}`",
            theirs=min(bare),
            compare="none",
            limit=LIMITS[module],
            note="beyond it; fastest of 10",
        )
    )
