"""Samples that lm-evaluation-harness logs (``--log_samples``): one file per task, or the folder of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trackperm.errors import SourceError
from trackperm.messages import did_you_mean, listed
from trackperm.tables.formats.json_lines import json_rows
from trackperm.tables.formats.lm_eval_metrics import Metrics, holds_log_likelihoods
from trackperm.tables.formats.lm_eval_results import (
    declared_directions,
    is_result,
    result_beside,
    results_of_run,
)
from trackperm.tables.json_values import has_members, member_names, table
from trackperm.tables.source import Source, SourceFile, chosen_part
from trackperm.tables.table import ExampleTable

_MARKS = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps"}
_HASHES = ("doc_hash", "target_hash")
_NO_METRICS = {*_MARKS, *_HASHES, "prompt_hash", "filter", "metrics"}
_NAME = re.compile(r"samples_(?P<task>.+)_(?P<run>\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl")


@dataclass(frozen=True)
class _Log:
    """Samples of one task with their places, and the task and run in the file's name."""

    file: SourceFile
    samples: list[dict[str, Any]]
    places: list[str]
    task: str | None
    run: str | None

    @property
    def filters(self) -> list[str]:
        return list(dict.fromkeys(str(sample.get("filter", "none")) for sample in self.samples))

    def under(self, filter_: str) -> _Log:
        """Keep the samples whose answers went through one filter."""
        kept = [i for i, sample in enumerate(self.samples) if str(sample.get("filter", "none")) == filter_]
        return replace(self, samples=[self.samples[i] for i in kept], places=[self.places[i] for i in kept])


def read_lm_eval(file: SourceFile) -> ExampleTable:
    """Read logged samples: their metrics, and the first filtered response as prediction.

    In the file of one task the id is the harness' ``doc_id``. In the folder of a run, which contains a file
    for every task, ids are ``task/doc_id`` and the column ``task`` is the task. A single metric is also the
    column ``score``. The log's own metrics are its numeric ones; in a folder, those that all tasks log, or
    all if there is none; a metric that some tasks log belongs to their samples alone. Whether greater values
    are better is what the results file of the run declares. Where metrics are computed over all samples, as
    BLEU is, label and prediction are those that the log has for them.

    Pairing checks the hashes of document and target, but not that of the prompt, which a chat template
    changes. Raise SourceError if samples went through several filters and none was chosen, a folder contains
    several runs or other files, tasks disagree on a direction, or a sample has no ``doc_id``.
    """
    is_run = file.path.is_dir()
    logs = _logs_of_run(file) if is_run else [_log(file)]
    logs = _filtered(file, logs)
    samples = [sample for log in logs for sample in log.samples]
    places = [place for log in logs for place in log.places]
    columns: dict[str, list[Any]] = {"id": [sample["doc_id"] for sample in samples]}
    if is_run:
        columns["id"] = [f"{log.task}/{sample['doc_id']}" for log in logs for sample in log.samples]
        columns["task"] = [log.task for log in logs for _ in log.samples]
    identity = tuple(name for name in _HASHES if any(name in sample for sample in samples))
    names = [name for name in member_names(samples, file.origin) if name not in _NO_METRICS]
    metrics = Metrics.of(samples, names)
    predictions = metrics.predictions or [_prediction(sample) for sample in samples]
    if None not in predictions:
        columns["prediction"] = predictions
    columns["label"] = metrics.labels or [sample["target"] for sample in samples]
    for name in (*names, *identity):
        columns[name] = [sample.get(name) for sample in samples]
    if len(names) == 1:
        columns["score"] = columns[names[0]]
    tasks = [log.task for log in logs if log.task is not None]
    filters = dict.fromkeys(filter_ for log in logs for filter_ in log.filters)
    facts = {"filter": ", ".join(filters), **({"task": ", ".join(tasks)} if tasks else {})}
    own = metrics.of_samples
    tasks_of = {
        name: tuple(str(log.task) for log in logs if any(name in sample for sample in log.samples))
        for name in own
    }
    some = {name: those for name, those in tasks_of.items() if len(those) < len(logs)}
    directions, notes = _directions(file, logs, samples, own)
    if len(names) == 1 and names[0] in directions:
        directions["score"] = directions[names[0]]
    if some:
        by_task = "; ".join(f"`{name}` by {listed(those)}" for name, those in some.items())
        notes.append(f"some metrics are logged by some tasks alone: {by_task}")
    return replace(
        table(columns, places.__getitem__, file.origin),
        identity=identity,
        facts=facts,
        metrics={name: name for name in own if name not in some or len(some) == len(own)},
        greater_is_better=directions,
        whole_log_metrics=metrics.of_log,
        rows_of_scores={name: ("task", those) for name, those in some.items()},
        notes=tuple(notes),
    )


def _directions(
    file: SourceFile, logs: Sequence[_Log], samples: Sequence[Mapping[str, Any]], metrics: Sequence[str]
) -> tuple[dict[str, bool], list[str]]:
    """Whether greater values of each metric are better, where that is known, and notes on it."""
    run = logs[0].run
    results = results_of_run(file.path, str(run)) if file.path.is_dir() else result_beside(file, run)
    tasks = [log.task for log in logs if log.task is not None]
    found = declared_directions(results, tasks, metrics, file.origin)
    notes = []
    for name in metrics:
        if holds_log_likelihoods(name, samples):
            found[name] = True
            notes.append(f"`{name}` is the log-likelihood of each target in this log, so greater is better")
    return found, notes


def _log(file: SourceFile) -> _Log:
    if isinstance(file.document, list):  # the layout before 0.4.3
        samples, places = file.document, [f"item {i}" for i in range(len(file.document))]
    else:
        samples, lines = json_rows(file)
        places = [f"line {line}" for line in lines]
    for sample, place in zip(samples, places, strict=True):
        if not has_members(sample, *_MARKS):
            lacking = _MARKS - sample.keys() if isinstance(sample, dict) else _MARKS
            raise SourceError(
                f"`{file.origin}`, {place}: a sample without {listed(sorted(lacking))}",
                hint="lm-evaluation-harness writes one object per document with `--log_samples`.",
            )
    named = _NAME.fullmatch(file.path.name)
    return _Log(file, samples, places, *(named.group("task", "run") if named else (None, None)))


def _logs_of_run(folder: SourceFile) -> list[_Log]:
    paths = _visible(folder.path)
    others = [path.name for path in paths if not _is_log(path) and not is_result(path)]
    if others:
        raise SourceError(
            f"`{folder.origin}` contains samples of lm-evaluation-harness and other files: {listed(others)}",
            hint="a folder that is read as one run has only its `samples_*.jsonl` and `results_*.json`.",
        )
    logs = [_log(SourceFile(path, f"{folder.origin}/{path.name}")) for path in paths if _is_log(path)]
    if any(log.task is None for log in logs):
        unnamed = [log.file.path.name for log in logs if log.task is None]
        raise SourceError(
            f"the names of {listed(unnamed)} in `{folder.origin}` do not contain task and run",
            hint="lm-evaluation-harness names them `samples_TASK_TIME.jsonl`.",
        )
    runs = list(dict.fromkeys(log.run for log in logs))
    if len(runs) > 1:
        raise SourceError(
            f"`{folder.origin}` contains {len(runs)} runs: {listed([str(run) for run in runs])}",
            hint="name one file, or move the files of each run to a folder of its own.",
        )
    return logs


def _filtered(file: SourceFile, logs: Sequence[_Log]) -> list[_Log]:
    """Keep one filter of every task: the only one, or the chosen one."""
    there = list(dict.fromkeys(filter_ for log in logs for filter_ in log.filters))
    if file.part is not None and file.part not in there:
        hint = f"it has {listed(there)}.{did_you_mean(file.part, there)}"
        raise SourceError(f"`{file.origin}` has no filter `{file.part}`", hint=hint)
    return [log.under(log.filters[0] if len(log.filters) == 1 else _chosen(file, log)) for log in logs]


def _chosen(file: SourceFile, log: _Log) -> str:
    """Return the chosen one of the filters of a task; in a folder, errors name the task."""
    try:
        return chosen_part(file, log.filters, "filter")
    except SourceError as error:
        if file.path.is_dir():
            error.message = f"task `{log.task}`: {error.message}"
            error.hint = f"{error.hint} Tasks with one filter keep it."
        raise


def _prediction(sample: dict[str, Any]) -> str | None:
    """Return the filtered response if there is one and it is text; likelihoods of choices are lists."""
    responses = sample["filtered_resps"]
    is_one = isinstance(responses, list) and len(responses) == 1 and isinstance(responses[0], str)
    return responses[0] if is_one else None


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _is_log(path: Path) -> bool:
    return path.is_file() and _recognises_file(SourceFile(path))


def _recognises_file(file: SourceFile) -> bool:
    if file.first_record is not None:
        return file.first_record.keys() >= _MARKS
    if b'"filtered_resps"' not in file.head or not isinstance(file.document, list):
        return False
    return bool(file.document) and has_members(file.document[0], *_MARKS)


def _recognises(file: SourceFile) -> bool:
    return _holds_logs(file.path) if file.path.is_dir() else _recognises_file(file)


def _holds_logs(folder: Path) -> bool:
    try:
        return any(_is_log(path) for path in _visible(folder))
    except OSError:
        return False


def _runs_within(folder: Path) -> list[Path]:
    """Return the subfolders with samples: the harness makes one for each model in its output path."""
    if not folder.is_dir():
        return []
    return [path for path in _visible(folder) if path.is_dir() and _holds_logs(path)]


def _read_output(file: SourceFile) -> ExampleTable:
    """Read the only run in an output path of the harness; raise SourceError if there are several."""
    runs = [f"{file.origin.rstrip('/')}/{path.name}" for path in _runs_within(file.path)]
    if len(runs) > 1:
        raise SourceError(
            f"`{file.origin}` has samples of lm-evaluation-harness in {len(runs)} subfolders, {listed(runs)};"
            " expected one run",
            hint="name one of the subfolders.",
        )
    return read_lm_eval(SourceFile(_runs_within(file.path)[0], runs[0], file.part))


LM_EVAL = Source("lm-eval", "lm-evaluation-harness samples", _recognises, read_lm_eval, part="filter")
LM_EVAL_OUTPUT = Source(
    "lm-eval-output",
    LM_EVAL.title,
    lambda file: bool(_runs_within(file.path)),
    _read_output,
    part="filter",
)
