"""How long `import trackperm` takes, beside the start of a bare interpreter."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

LIMIT = 0.2


def seconds(code: str) -> float:
    """Wall time of a fresh interpreter that runs `code`: the best of ten."""

    def once() -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    return min(once() for _ in range(10))


@pytest.mark.parametrize(
    ("module", "beside"),
    [("trackperm", "pass"), ("trackperm.exact", "import numpy, scipy"), ("trackperm.cli", "pass")],
)
def test_import(benchmark, module: str, beside: str):
    start = seconds(beside)
    command = [sys.executable, "-c", f"{beside}; import {module}"]
    benchmark.pedantic(subprocess.run, args=(command,), kwargs={"check": True}, rounds=10, warmup_rounds=1)
    extra = benchmark.stats.stats.min - start
    benchmark.extra_info["seconds_beside_bare_start"] = extra
    if module == "trackperm":
        assert extra < LIMIT
