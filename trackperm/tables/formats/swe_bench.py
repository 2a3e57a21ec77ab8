"""Instances of SWE-bench or Multi-SWE-bench that a system resolved: reports, and lists of resolved ones.

Multi-SWE-bench has two reports. ``final_report.json`` of its harness has the lists of SWE-bench's report,
with instances named ``org/repo:pr-12``. ``results.json`` of its leaderboard lists the resolved ones in
``resolved``, and empty or faulty patches in ``empty_error_patch_ids``, with instances named ``org__repo-12``
as in the data set. Both are read with the names of the data set, so that they can be paired.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trackperm.errors import SourceError
from trackperm.tables.formats.terminal_bench import has_trials
from trackperm.tables.json_values import table
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable

_TRIED = (
    "submitted_ids",
    "completed_ids",
    "unresolved_ids",
    "error_ids",
    "empty_patch_ids",
    "empty_error_patch_ids",
)
_LISTED = ("no_generation", "no_logs")
_ATTEMPTS = (
    "a report has one outcome for each instance; write several attempts as a table with a row for each, with"
    " `id` and `passed`."
)
_PULL_REQUEST = re.compile(r"([^/:]+)/([^/:]+):pr-(\d+)")


def read_swe_bench(file: SourceFile) -> ExampleTable:
    """Read ``id`` and ``passed``: 1 for a resolved instance, 0 for a submitted one that is not resolved.

    The statistic is `pass_at_1`. Its ``missing`` makes an instance that a run lacks count as not resolved
    under ``--missing wrong``. In a report (``resolved_ids``, or ``resolved`` beside other lists) instances
    without a prediction (``incomplete_ids``) have no value; a list of resolved instances (``resolved``) does
    not contain the others. Multi-SWE-bench's ``org/repo:pr-12`` becomes ``org__repo-12``. Raise SourceError
    if ids are not text, a resolved instance was not submitted or is also unresolved, or a list of outcomes
    names an instance twice.
    """
    document = file.document
    passed: dict[str, int | None]
    if (resolved := _name_of_resolved(document)) is not None:
        passed, notes = _of_report(document, resolved, file.origin)
    elif isinstance(document.get("resolved"), list):
        passed, notes = _of_list(document, file.origin)
    else:
        passed, notes = {id_: int(report["resolved"]) for id_, report in document.items()}, []
    if not passed:
        raise SourceError(
            f"`{file.origin}` names no instances",
            hint="was the run evaluated? Its lists of ids, such as `resolved_ids` and `unresolved_ids`, are"
            " empty.",
        )
    columns: dict[str, list[Any]] = {"id": list(passed), "passed": list(passed.values())}
    read = table(columns, lambda index: f"instance {index}", file.origin)
    return replace(read, notes=tuple(notes), metrics={"resolved": "passed"})


def _name_of_resolved(document: Mapping[str, Any]) -> str | None:
    """Return the name of a report's list of resolved instances; None if the document is not a report."""
    if not any(isinstance(document.get(name), list) for name in _TRIED):
        return None
    return next((name for name in ("resolved_ids", "resolved") if isinstance(document.get(name), list)), None)


def _of_report(
    document: Mapping[str, Any], name_of_resolved: str, origin: str
) -> tuple[dict[str, int | None], list[str]]:
    resolved = set(_once(document, name_of_resolved, origin))
    if both := sorted(resolved.intersection(_once(document, "unresolved_ids", origin))):
        raise SourceError(
            f"`{origin}`: {len(both):,} instances are both in `{name_of_resolved}` and in `unresolved_ids`"
            f" (first: {both[0]!r})",
            hint=_ATTEMPTS,
        )
    tried = list(dict.fromkeys(id_ for name in _TRIED for id_ in _ids(document, name, origin)))
    strangers = sorted(resolved - set(tried))
    if strangers and document.get("submitted_ids") is not None:
        raise SourceError(
            f"`{origin}`: {len(strangers)} resolved instances were not submitted (first: {strangers[0]!r})"
        )
    passed: dict[str, int | None] = dict.fromkeys(_ids(document, "incomplete_ids", origin))
    passed |= {id_: int(id_ in resolved) for id_ in (*tried, *strangers)}
    failures = {
        "empty patches": "empty_patch_ids",
        "empty or faulty patches": "empty_error_patch_ids",
        "errors": "error_ids",
        "likely failures of the infrastructure": "infra_failure_ids",
    }
    found = {kind: len(_ids(document, name, origin)) for kind, name in failures.items()}
    said = ", ".join(f"{kind} ({n})" for kind, n in found.items() if n)
    notes = [f"counted as not resolved: {said}"] if said else []
    total = document.get("total_instances")
    if isinstance(total, int) and total > len(passed):
        notes.append(
            f"it names {len(passed):,} of all {total:,} instances; use `--missing wrong`, which counts"
            " instances that only the other run has as not resolved"
        )
    return passed, notes


def _of_list(document: Mapping[str, Any], origin: str) -> tuple[dict[str, int | None], list[str]]:
    names = ["resolved", *(name for name in document if name != "resolved")]
    lists = {name: _ids(document, name, origin) for name in names if isinstance(document[name], list)}
    resolved = set(_once(document, "resolved", origin))
    passed: dict[str, int | None] = {id_: int(id_ in resolved) for ids in lists.values() for id_ in ids}
    note = (
        "it lists the resolved instances alone, so the size of the benchmark is unknown; use `--missing"
        " wrong`, which counts instances that only the other run has as not resolved, as `--missing drop`"
        " would select examples by their outcome"
    )
    return passed, [] if "generated" in lists else [note]


def _once(document: Mapping[str, Any], name: str, origin: str) -> list[str]:
    """Return a list of ids; raise SourceError if it names an instance twice."""
    ids = _ids(document, name, origin)
    if repeated := [id_ for id_, n in Counter(ids).items() if n > 1]:
        raise SourceError(
            f"`{origin}`: {len(repeated):,} instances are more than once in `{name}`"
            f" (first: {repeated[0]!r})",
            hint=_ATTEMPTS,
        )
    return ids


def _ids(document: Mapping[str, Any], name: str, origin: str) -> list[str]:
    ids = document.get(name) or []
    if not isinstance(ids, list) or not all(isinstance(id_, str) for id_ in ids):
        raise SourceError(f"`{origin}`: `{name}` is not a list of instance ids")
    return [_PULL_REQUEST.sub(r"\1__\2-\3", id_) if _PULL_REQUEST.fullmatch(id_) else id_ for id_ in ids]


def _recognises(file: SourceFile) -> bool:
    document = file.document
    if not isinstance(document, dict) or not document or has_trials(document):
        return False
    if _name_of_resolved(document) is not None:
        return True
    if isinstance(document.get("resolved"), list):
        return any(isinstance(document.get(name), list) for name in _LISTED)
    return all(
        isinstance(report, dict) and isinstance(report.get("resolved"), bool) for report in document.values()
    )


SWE_BENCH = Source("swe-bench", "SWE-bench report", _recognises, read_swe_bench)
