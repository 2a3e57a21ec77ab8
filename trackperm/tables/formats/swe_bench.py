"""Which instances of SWE-bench a system has resolved: reports of the harness, and lists of resolved ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trackperm.errors import SourceError
from trackperm.tables.json_values import table
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable

_TRIED = ("submitted_ids", "completed_ids", "unresolved_ids", "error_ids", "empty_patch_ids")
_LISTED = ("no_generation", "no_logs")


def read_swe_bench(file: SourceFile) -> ExampleTable:
    """Read ``id`` and ``passed``: 1 for a resolved instance, 0 for one that was submitted and is not.

    Statistic: `pass_at_1`, whose ``missing`` lets ``--missing wrong`` count an instance that a run lacks as
    not resolved. In a report of the harness (``resolved_ids``) instances without a prediction
    (``incomplete_ids``) have no value; a list of resolved instances (``resolved``) leaves out the others.

    Raises
    ------
    SourceError
        If ids are no text, or one is resolved that was not submitted.
    """
    document = file.document
    passed: dict[str, int | None]
    if "resolved_ids" in document:
        passed, notes = _of_report(document, file.origin)
    elif isinstance(document.get("resolved"), list):
        passed, notes = _of_list(document, file.origin)
    else:
        passed, notes = {id_: int(report["resolved"]) for id_, report in document.items()}, []
    if not passed:
        raise SourceError(f"`{file.origin}` names no instances")
    columns: dict[str, list[Any]] = {"id": list(passed), "passed": list(passed.values())}
    return replace(table(columns, lambda index: f"instance {index}", file.origin), notes=tuple(notes))


def _of_report(document: Mapping[str, Any], origin: str) -> tuple[dict[str, int | None], list[str]]:
    resolved = set(_ids(document, "resolved_ids", origin))
    tried = list(dict.fromkeys(id_ for name in _TRIED for id_ in _ids(document, name, origin)))
    strangers = sorted(resolved - set(tried))
    if strangers and document.get("submitted_ids") is not None:
        raise SourceError(
            f"`{origin}`: {len(strangers)} instances are resolved that were not submitted"
            f" (first: {strangers[0]!r})"
        )
    passed: dict[str, int | None] = dict.fromkeys(_ids(document, "incomplete_ids", origin))
    passed |= {id_: int(id_ in resolved) for id_ in (*tried, *strangers)}
    failures = {
        "empty patches": "empty_patch_ids",
        "errors": "error_ids",
        "likely failures of the infrastructure": "infra_failure_ids",
    }
    found = {kind: len(_ids(document, name, origin)) for kind, name in failures.items()}
    said = ", ".join(f"{kind} ({n})" for kind, n in found.items() if n)
    return passed, [f"counted as not resolved: {said}"] if said else []


def _of_list(document: Mapping[str, Any], origin: str) -> tuple[dict[str, int | None], list[str]]:
    names = ["resolved", *(name for name in document if name != "resolved")]
    lists = {name: _ids(document, name, origin) for name in names if isinstance(document[name], list)}
    resolved = set(lists["resolved"])
    passed: dict[str, int | None] = {id_: int(id_ in resolved) for ids in lists.values() for id_ in ids}
    note = (
        "it lists the resolved instances, and not all that there are: the size of the benchmark is unknown;"
        " use `--missing wrong`, which counts those that the other run has as not resolved, for `--missing"
        " drop` would leave them out by their outcome"
    )
    return passed, [] if "generated" in lists else [note]


def _ids(document: Mapping[str, Any], name: str, origin: str) -> list[str]:
    ids = document.get(name) or []
    if not isinstance(ids, list) or not all(isinstance(id_, str) for id_ in ids):
        raise SourceError(f"`{origin}`: `{name}` is no list of instance ids")
    return ids


def _recognises(file: SourceFile) -> bool:
    document = file.document
    if not isinstance(document, dict) or not document:
        return False
    if isinstance(document.get("resolved_ids"), list):
        return any(isinstance(document.get(name), list) for name in _TRIED)
    if isinstance(document.get("resolved"), list):
        return any(isinstance(document.get(name), list) for name in _LISTED)
    return all(
        isinstance(report, dict) and isinstance(report.get("resolved"), bool) for report in document.values()
    )


SWE_BENCH = Source("swe-bench", "SWE-bench report", _recognises, read_swe_bench)
