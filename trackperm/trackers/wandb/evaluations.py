"""Evaluations in Weave, as ``wandb.EvalTable`` logs them: one traced call per example.

They are read over HTTP, without the package ``weave``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import requests

from trackperm.errors import SourceError, TrackerError
from trackperm.tables.json_values import whole_number
from trackperm.trackers.references import TrackedRun
from trackperm.trackers.wandb.store import Store

_CLOUD, _CLOUD_TRACES = "https://api.wandb.ai", "https://trace.wandb.ai"
_EXAMPLE = "predict_and_score"
_SECONDS = (10, 120)  # to connect, and between pieces of an answer


def fetch_evaluation(
    store: Store, run: TrackedRun, key: str, entry: Mapping[str, Any], folder: Path
) -> list[Path]:
    """Write the examples of an evaluation, an `entry` of the run's summary, to a file of JSON Lines.

    Its columns are: ``id`` if examples are rows of a Weave dataset; the example's inputs; the members of its
    output or else ``prediction`` (with the prefix ``output.`` if the name is taken); the scores as
    ``score.NAME``, with dots for nested ones; and ``error`` if a prediction failed. Raise SourceError if
    examples are missing, or not in Weave's format.
    """
    what = f"evaluation `{key}` of run `{run.reference}`"
    rows = [
        _row(call, what)
        for call in _calls(store, run.container, str(entry.get("evaluate_call_id")), what)
        if _EXAMPLE in str(call.get("op_name"))
    ]
    n_rows = whole_number(entry.get("nrows"))
    if n_rows not in (None, len(rows)):
        raise SourceError(
            f"{what} has {len(rows):,} of {n_rows:,} examples",
            hint="were calls deleted in Weave, or did the run end before it sent all?",
        )
    folder.mkdir(exist_ok=True)
    file = folder / "evaluation.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return [file]


def traces_url(base_url: str) -> str:
    """Return the address of the trace server for the server at `base_url`, as Weave derives it."""
    frontend = (os.environ.get("WANDB_PUBLIC_BASE_URL") or base_url).rstrip("/")
    default = _CLOUD_TRACES if frontend == _CLOUD else f"{frontend}/traces"
    return (os.environ.get("WF_TRACE_SERVER_URL") or default).rstrip("/")


def _calls(store: Store, project: str, parent: str, what: str) -> Iterator[dict[str, Any]]:
    """Yield the calls of an evaluation in the order in which they began."""
    with store.calls(f"reading {what}") as api:
        key = api.api_key
    url = f"{traces_url(store.base_url)}/calls/stream_query"
    query: dict[str, Any] = {
        "project_id": project,
        "filter": {"parent_ids": [parent]},
        "columns": ["id", "op_name", "inputs", "output", "exception"],
        "sort_by": [{"field": "started_at", "direction": "asc"}],
    }
    try:
        with requests.post(
            url,
            json=query,
            headers={"Accept": "application/jsonl"},
            auth=("api", key or ""),
            timeout=_SECONDS,
            stream=True,
            allow_redirects=False,  # so that no other server gets the key
        ) as answer:
            if answer.status_code != 200:
                raise TrackerError(
                    f"the trace server at `{url}` answered {answer.status_code} {answer.reason}, while"
                    f" reading {what}",
                    hint="`WF_TRACE_SERVER_URL` sets its address, and `WANDB_API_KEY` the key.",
                )
            for line in answer.iter_lines():
                if line:
                    yield json.loads(line)
    except (requests.RequestException, ValueError) as error:
        raise TrackerError(
            f"the trace server at `{url}` failed while reading {what}: {error}",
            hint="`WF_TRACE_SERVER_URL` sets its address.",
        ) from error


def _row(call: Mapping[str, Any], what: str) -> dict[str, Any]:
    inputs, output = call.get("inputs"), call.get("output")
    if not isinstance(inputs, dict) or "example" not in inputs:
        raise SourceError(f"call `{call.get('id')}` of {what} has no example")
    example = inputs["example"]
    row: dict[str, Any] = dict(example) if isinstance(example, dict) else {"id": _digest(str(example))}
    output = output if isinstance(output, dict) else {}
    predicted = output.get("output", output.get("model_output"))  # the name in older versions of Weave
    members = dict(_flat(predicted)) if isinstance(predicted, dict) else {"prediction": predicted}
    _add(row, members, "output.")
    row.update(_flat(output.get("scores") or {}, "score."))
    if call.get("exception"):
        _add(row, {"error": str(call["exception"]).strip().split("\n")[-1]}, "call.")
    return row


def _add(row: dict[str, Any], members: Mapping[str, Any], prefix: str) -> None:
    row.update({prefix + name if name in row else name: value for name, value in members.items()})


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, member in value.items():
        if isinstance(member, dict):
            yield from _flat(member, f"{prefix}{name}.")
        else:
            yield prefix + name, member


def _digest(reference: str) -> str:
    """Return the digest at the end of ``weave:///.../attr/rows/id/<digest>``, which identifies a row."""
    return reference.rpartition("/")[2]
