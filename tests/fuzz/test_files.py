from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from support.processes import run

FUZZER = Path(__file__).with_name("fuzz_files.py")


@pytest.mark.slow
def test_changed_files_are_read_or_refused_by_one_error(tmp_path: Path) -> None:
    """Half a minute of `make fuzz`; the seed is the day, so that each has inputs of its own."""
    seed = int(time.time()) // 86400
    found = run([sys.executable, FUZZER, "30", str(seed), str(tmp_path)])
    assert found.returncode == 0, found.stdout + found.stderr
    assert " inputs" in found.stdout
