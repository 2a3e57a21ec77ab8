"""Results files of lm-evaluation-harness: whether greater values of each metric are better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trackperm.errors import SourceError
from trackperm.messages import listed
from trackperm.tables.json_values import has_members, member
from trackperm.tables.source import SourceFile


def is_result(path: Path) -> bool:
    """Whether a path is a results file, by its content."""
    if path.is_dir():
        return False
    document = SourceFile(path).document if path.suffix == ".json" else None
    return has_members(document, "results", "configs")


def results_of_run(folder: Path, run: str) -> list[SourceFile]:
    """Return the results file of the run that ended at a time; all of a folder if none has this time."""
    same_time = folder / f"results_{run}.json"
    if same_time.is_file():
        return [SourceFile(same_time)]
    return [SourceFile(path) for path in sorted(folder.iterdir()) if path.is_file() and is_result(path)]


def result_beside(file: SourceFile, run: str | None) -> list[SourceFile]:
    """Return the results file beside the samples of one task; no file if there is none of the same time.

    Raise SourceError if the file of this name has other content.
    """
    path = file.folder / f"results_{run}.json"
    if run is None or not path.is_file():
        return []
    if not is_result(path):
        raise SourceError(
            f"`{path}` beside `{file.origin}` is not a results file of lm-evaluation-harness; expected an"
            " object with `results` and `configs`, which says whether greater values of a metric are better",
            hint="copy it again, or move it away.",
        )
    return [SourceFile(path)]


def declared_directions(
    results: Sequence[SourceFile], tasks: Sequence[str], metrics: Sequence[str], origin: str
) -> dict[str, bool]:
    """Whether greater values are better, for each of the metrics of which a results file says it.

    Raise SourceError if it is so in one task and not in another.
    """
    said: dict[str, dict[bool, list[str]]] = {}
    for task in tasks:
        for file in results:
            for metric, is_greater in _of_task(file.document, task):
                said.setdefault(metric, {}).setdefault(is_greater, []).append(task)
    for metric in metrics:
        if len(found := said.get(metric, {})) > 1:
            greater, lower = (listed(list(dict.fromkeys(found[each]))) for each in (True, False))
            raise SourceError(
                f"the tasks of `{origin}` disagree: greater values of `{metric}` are better in {greater} and"
                f" lower ones in {lower}, by `higher_is_better` of the results file",
                hint="compare their `samples_*.jsonl` one by one.",
            )
    return {metric: next(iter(said[metric])) for metric in metrics if metric in said}


def _of_task(document: Any, task: str) -> Iterator[tuple[str, bool]]:
    """Yield the metrics of a task with their directions, or else those that its configuration has."""
    declared = member(document, "higher_is_better", task)
    if not isinstance(declared, dict):
        listed_ = member(document, "configs", task, "metric_list")
        entries = [each for each in listed_ if isinstance(each, dict)] if isinstance(listed_, list) else []
        declared = {str(each.get("metric")): each.get("higher_is_better") for each in entries}
    for metric, is_greater in declared.items():
        if isinstance(is_greater, bool):
            yield metric, is_greater
