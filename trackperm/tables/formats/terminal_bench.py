"""Results of Terminal-Bench: ``results.json``, with an object for each trial of a task."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from trackperm.errors import SourceError
from trackperm.tables.json_values import has_members, member, table
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable


def read_terminal_bench(file: SourceFile) -> ExampleTable:
    """Read trials: ``id`` (the task), ``passed``, ``failure_mode``, and ``trial`` if tasks have several.

    Trials of a task are numbered in the order of the file. A trial without a verdict is not resolved, as in
    the harness. The document's own ``resolved_ids`` repeat the task of each trial and are not read. Raise
    SourceError if a trial has no task, or its ``is_resolved`` is not a boolean or null.
    """
    trials = file.document["results"]
    n: Counter[str] = Counter()
    numbers, n_without = [], 0
    for index, trial in enumerate(trials):
        task, is_resolved = member(trial, "task_id"), member(trial, "is_resolved")
        if not isinstance(task, str) or not isinstance(is_resolved, bool | None):
            raise SourceError(
                f"`{file.origin}`, result {index} is not a trial; expected an object with a text `task_id`"
                " and a boolean `is_resolved`"
            )
        n[task] += 1
        numbers.append(n[task])
        n_without += is_resolved is None
    columns: dict[str, list[Any]] = {
        "id": [trial["task_id"] for trial in trials],
        **({"trial": numbers} if max(numbers) > 1 else {}),
        "passed": [bool(trial.get("is_resolved")) for trial in trials],
        "failure_mode": [trial.get("failure_mode") for trial in trials],
    }
    read = table(columns, lambda index: f"result {index}", file.origin)
    note = f"{n_without:,} of {len(trials):,} trials have no verdict and count as not resolved"
    return replace(read, notes=(note,) if n_without else (), metrics={"resolved": "passed"})


def has_trials(document: object) -> bool:
    """Whether a JSON document has the trials of Terminal-Bench."""
    trials = member(document, "results")
    return isinstance(trials, list) and trials[:1] != [] and has_members(trials[0], "task_id", "is_resolved")


def _recognises(file: SourceFile) -> bool:
    return has_trials(file.document)


TERMINAL_BENCH = Source("terminal-bench", "Terminal-Bench results", _recognises, read_terminal_bench)
