"""Per-instance statistics of HELM: ``per_instance_stats.json``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trackperm.errors import SourceError
from trackperm.messages import listed
from trackperm.tables.formats.helm_directions import directions
from trackperm.tables.json_values import has_members, member, member_names, table
from trackperm.tables.source import Source, SourceFile, chosen_part
from trackperm.tables.table import ExampleTable

_ORIGINAL = "original"

# Names in HELM's basic metrics that describe an instance or its request and do not score the answer.
_BOOKKEEPING = re.compile(
    r"num_.*|training_.*|inference_.*|batch_size|finish_reason_.*|prompt_truncated|max_prob|logprob"
    r"|predicted_index|perplexity|bits_per_byte|logprob_per_byte|.*_runtime.*|.*_cost.*",
    re.DOTALL,  # bounds the backtracking after the first `_runtime`
)


def read_helm(file: SourceFile) -> ExampleTable:
    """Read one row per instance: ``id``, ``split``, ``train_trial_index`` and a column for every metric.

    A metric that was computed several times on an instance counts by its mean, and one that was never
    computed is null. A sub-split follows the name of its metric, as in ``toxic_frac/non-toxic``. Instances
    under a perturbation are the part with its name; unperturbed ones are the part ``original``. Raise
    SourceError if there are perturbations and none was chosen, or an instance is not in HELM's format.
    """
    rows = file.document
    for index, row in enumerate(rows):
        _require_instance(row, index, file.origin)
    parts = list(dict.fromkeys(_perturbation(row) for row in rows))
    part = chosen_part(file, parts, "perturbation")
    kept = [row for row in rows if _perturbation(row) == part]
    found = [_metrics(row, file.origin) for row in kept]
    names = member_names([metrics for metrics, _ in found], file.origin)
    columns = {
        "id": [row["instance_id"] for row in kept],
        "split": [split for _, split in found],
        "train_trial_index": [row.get("train_trial_index", 0) for row in kept],
        **{name: [metrics.get(name) for metrics, _ in found] for name in names},
    }
    read = table(columns, lambda index: f"instance {columns['id'][index]}", file.origin)
    return replace(
        read,
        facts={"scenario": _scenario(file, names), "perturbation": part},
        metrics={name: name for name in _own_metrics(file, names, columns)},
        greater_is_better=directions(names),
    )


def _own_metrics(
    file: SourceFile, names: Sequence[str], columns: Mapping[str, Sequence[Any]]
) -> Sequence[str]:
    """Return the metrics that score the run: those in the spec beside the file, or all but bookkeeping."""
    metrics = member(_run_spec(file), "metric_specs")
    asked: set[str] = set()
    for metric in metrics if isinstance(metrics, list) else ():
        named = member(metric, "args", "names")
        asked |= {name for name in named if isinstance(name, str)} if isinstance(named, list) else set()
    scores = [name for name in names if any(value is not None for value in columns[name])]
    return [name for name in scores if name in asked] or [
        name for name in scores if not _BOOKKEEPING.fullmatch(name.partition("/")[0])
    ]


def _run_spec(file: SourceFile) -> Any:
    beside = SourceFile(file.path.with_name("run_spec.json"))
    return beside.document if beside.path.is_file() else None


def _scenario(file: SourceFile, metrics: Sequence[str]) -> str:
    """Describe the instances by the run's spec or else by their metrics; scenarios share their numbers."""
    spec = member(_run_spec(file), "scenario_spec")
    name, arguments = member(spec, "class_name"), member(spec, "args")
    if not isinstance(name, str):
        return f"one of the metrics {listed(sorted(metrics))}"
    said = sorted(arguments.items()) if isinstance(arguments, dict) else []
    return " ".join([name.rpartition(".")[2], *(f"{key}={value}" for key, value in said)])


def _require_instance(row: object, index: int, origin: str) -> None:
    stats = member(row, "stats")
    is_instance = isinstance(row, dict) and "instance_id" in row and isinstance(stats, list)
    if not is_instance or not all(isinstance(member(stat, "name", "name"), str) for stat in stats):
        raise SourceError(
            f"`{origin}`, item {index} is not an instance with statistics",
            hint="HELM writes `instance_id` and `stats`, each with a `name` and a `sum`, for every instance.",
        )


def _perturbation(row: Mapping[str, Any]) -> str:
    is_perturbed = isinstance(row.get("perturbation"), dict)
    return str(member(row, "perturbation", "name")) if is_perturbed else _ORIGINAL


def _metrics(row: Mapping[str, Any], origin: str) -> tuple[dict[str, Any], str | None]:
    """Return the value of every metric of an instance, and the instance's split."""
    metrics: dict[str, Any] = {}
    split = None
    for stat in row["stats"]:
        name = stat["name"]
        if not _is_of_instance(name):
            continue
        split = name.get("split", split)
        column = name["name"] + (f"/{name['sub_split']}" if name.get("sub_split") else "")
        value = _value(stat, row, origin)
        if metrics.setdefault(column, value) != value:
            raise SourceError(
                f"`{origin}`, instance {row['instance_id']!r}: two values of `{column}`:"
                f" {metrics[column]!r} and {value!r}"
            )
    return metrics, split


def _is_of_instance(name: Mapping[str, Any]) -> bool:
    """Whether a statistic is about the instance, not about its original or the worse of both."""
    perturbation = name.get("perturbation")
    return not isinstance(perturbation, dict) or perturbation.get("computed_on", "perturbed") == "perturbed"


def _value(stat: Mapping[str, Any], row: Mapping[str, Any], origin: str) -> float | int | None:
    count, total = stat.get("count"), stat.get("sum")
    if count == 0:
        return None
    if not isinstance(count, int) or not isinstance(total, int | float):
        raise SourceError(
            f"`{origin}`, instance {row['instance_id']!r}: `{stat['name']['name']}` has no `count` and `sum`"
        )
    try:
        return total if count == 1 else total / count
    except OverflowError:
        raise SourceError(
            f"`{origin}`, instance {row['instance_id']!r}: the `sum` of `{stat['name']['name']}` exceeds"
            " the range of decimals"
        ) from None


def _recognises(file: SourceFile) -> bool:
    if b'"instance_id"' not in file.head or not isinstance(file.document, list) or not file.document:
        return False
    return has_members(file.document[0], "instance_id", "stats")


HELM = Source("helm", "HELM per-instance statistics", _recognises, read_helm, part="perturbation")
