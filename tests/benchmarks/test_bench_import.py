"""What it costs to start: CPU time of processes, beside a polars script that joins the same files."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks.summary import Row
from benchmarks.workloads import answers, of_processor

import trackperm

N_EXAMPLES = 1_000
COMMAND = "import sys; from trackperm.cli import main; sys.exit(main())"
SCRIPT = """\
import sys, polars as pl
a, b = map(pl.read_csv, sys.argv[1:])
joined = a.join(b, on="id", validate="1:1")
change = joined["correct_right"] - joined["correct"]
print(change.mean(), change.value_counts())
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[str]:
    folder = tmp_path_factory.mktemp("runs")
    candidate, baseline = answers(N_EXAMPLES)
    names = []
    for name, right in (("baseline.csv", baseline), ("candidate.csv", candidate)):
        lines = "".join(f"e{i},{value}\n" for i, value in enumerate(right))
        (folder / name).write_text(f"id,correct\n{lines}", encoding="utf-8")
        names.append(str(folder / name))
    return names


def of_process(arguments: Sequence[str], repeats: int = 6) -> float:
    """Seconds of CPU, the system's included, of a process of Python that runs to its end: the fewest."""
    # Compiled modules are written and read again, as where trackperm is installed.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(Path(trackperm.__file__).parents[1])

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, env=environment, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    once()
    return min(once() for _ in range(repeats))


def test_start(table, files: list[str]):
    script = of_process(["-c", SCRIPT, *files])
    for work, limit, arguments in (
        ("trackperm --version", 0.1, ["-c", COMMAND, "--version"]),
        ("import trackperm", 0.1, ["-c", "import trackperm"]),
        ("trackperm compare", 0.6, ["-c", COMMAND, "compare", *files]),
    ):
        table.add(
            Row(
                f"CPU time of `{work}`, {N_EXAMPLES:,} examples",
                of_process(arguments),
                beside="a polars script that joins the files",
                theirs=script,
                compare="share",
                limit=limit,
                note="user and system; least of 6",
            )
        )


def test_second_comparison(table, files: list[str]):
    table.add(
        Row(
            f"CPU time of a second `compare` in a process, {N_EXAMPLES:,} examples",
            of_processor(lambda: trackperm.compare(*files), 20),
            limit=0.02,
            note="from CSV files; least of 20",
        )
    )
