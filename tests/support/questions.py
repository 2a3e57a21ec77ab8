"""Statistics that are asked of runs, and runs that differ in five predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from trackperm.comparison import Question
from trackperm.tables import read_examples
from trackperm.tables.table import ExampleTable

LABELS = ["cat", "dog"] * 10
PLAIN = pl.DataFrame({"id": range(20), "prediction": LABELS[::-1][:5] + LABELS[5:], "label": LABELS})


def asked(*sources: Any, **said: Any) -> list[Any]:
    """Return the statistics of files or frames; options as those of `Question`."""
    tables = [
        read_examples(source) if isinstance(source, Path) else ExampleTable.from_native(source, f"run {i}")
        for i, source in enumerate(sources)
    ]
    return Question(**said).statistics_of(tables)


def the_one(*sources: Any, **said: Any) -> Any:
    """Return the only statistic."""
    (statistic,) = asked(*sources, **said)
    return statistic
