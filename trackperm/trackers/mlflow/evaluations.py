"""Runs of ``mlflow.genai.evaluate``: examples are traces, and scores are assessments of them.

These runs log no artifact. A row is paired by the request id of its trace, which comes from the evaluated
data or is MLflow's digest of the inputs. Where MLflow called a ``predict_fn`` the request id is random, and a
digest of the traced inputs replaces it. That digest needs the spans, which take longer to read.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import Any

import polars as pl
from mlflow import MlflowClient
from mlflow.entities import AssessmentError, Feedback, Run, Trace

from trackperm.errors import SourceError, TrackerError
from trackperm.messages import amount
from trackperm.tables.table import ExampleTable
from trackperm.trackers.mlflow.store import Store
from trackperm.trackers.references import TrackedRun

TRACES = "traces"
"""Name that selects the evaluation in place of an artifact."""

ID, REQUEST_ID, INPUTS, OUTPUTS = "id", "request_id", "inputs", "outputs"

_REQUEST_ID_TAG = "mlflow.eval.requestId"
_SCORERS_TAG = "mlflow.genaiEvaluate.scorersDigest"
_RATINGS = {"yes": 1.0, "no": 0.0}
_RANDOM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_DIGITS = 16  # of a digest: among 10^6 examples, two share one of 64 bits with a probability of 3e-8
_PAGE, _PAGE_OF_SPANS = 500, 100
_LONGEST_WORD = 40  # longer ones are sentences, such as a judge's reasons


@dataclass(frozen=True)
class _Row:
    """One example of an evaluation.

    Attributes
    ----------
    trace : Trace
        Trace without its spans.
    id : str or None
        Id by which the example is paired.
    feedback : mapping of str to sequence of Feedback
        Assessments by this run's evaluation, by scorer.
    """

    trace: Trace
    id: str | None
    feedback: Mapping[str, Sequence[Feedback]]


def is_evaluation(run: Run) -> bool:
    """Whether ``mlflow.genai.evaluate`` made the run."""
    return run.data.tags.get("mlflow.runType") == "genai_evaluate"


def has_assessed_traces(store: Store, run: TrackedRun) -> bool:
    """Whether a run has assessed traces; older versions do not mark evaluations."""
    # a server without traces refuses the search
    with suppress(TrackerError), store.calls(f"looking for traces of run `{run.reference}`") as client:
        return any(trace.info.assessments for trace in islice(_traces(client, store.run(run)), _PAGE))
    return False


def read_evaluation(store: Store, run: TrackedRun) -> ExampleTable:
    """Read the examples of an evaluation, with a column for each scorer.

    Columns are ``id``, ``request_id`` where the id differs from it, ``inputs`` and ``outputs`` as MLflow
    shows them, and the values of each scorer: numbers; booleans and yes or no as 1 and 0; text otherwise.
    Several values of a scorer for one example are averaged, as MLflow averages them. A scorer whose name is
    taken gets the prefix ``score.``. Raise SourceError if the run has no traces, or no scorer has given a
    value.
    """
    found = store.run(run)
    called = f"run `{run.reference}` ({run.name})"
    with store.calls(f"reading the traces of run `{run.reference}`") as client:
        traces = list(_traces(client, found))
        if not traces:
            raise SourceError(
                f"{called} has no traces",
                hint="`mlflow.genai.evaluate` makes one for each example; were they deleted?",
            )
        request_ids = [trace.info.tags.get(_REQUEST_ID_TAG) for trace in traces]
        by_inputs = any(each is None or _RANDOM.fullmatch(each) for each in request_ids)
        ids = _ids_of_inputs(client, found, traces) if by_inputs else request_ids
    rows = [
        _Row(trace, id_, _feedback(trace, found.info.run_id)) for trace, id_ in zip(traces, ids, strict=True)
    ]
    columns: dict[str, Any] = {ID: [row.id for row in rows]}
    if by_inputs and any(request_ids):
        columns[REQUEST_ID] = request_ids
    columns[INPUTS] = [trace.info.request_preview for trace in traces]
    columns[OUTPUTS] = [trace.info.response_preview for trace in traces]
    scorers = sorted({name for row in rows for name in row.feedback})
    if not scorers:
        raise SourceError(
            f"no scorer has given a value to any of the {len(rows)} traces of {called}",
            hint="`mlflow.genai.evaluate(..., scorers=[...])` names scorers.",
        )
    notes = [_pairing_note(rows)] if by_inputs else []
    columns_of = {scorer: f"score.{scorer}" if scorer in columns else scorer for scorer in scorers}
    for scorer, name in columns_of.items():
        columns[name], said = _column(scorer, [row.feedback.get(scorer, ()) for row in rows])
        notes += said
        if words := {value for value in columns[name] if isinstance(value, str)}:
            notes.append(_note_on_words(scorer, name, words))
    frame = pl.DataFrame({name: pl.Series(values, strict=False) for name, values in columns.items()})
    table = ExampleTable.from_native(frame, str(run.reference))
    return ExampleTable(
        table.data,
        table.origin,
        facts={"evaluation": "mlflow.genai.evaluate", **_scorers(found)},
        notes=tuple(notes),
        metrics={name: column for name, column in columns_of.items() if frame.schema[column].is_numeric()},
        ordered=False,  # examples are evaluated in parallel
    )


def _traces(client: MlflowClient, run: Run, *, spans: bool = False) -> Iterator[Trace]:
    """Yield the traces of a run."""
    token: str | None = None
    while True:
        page = client.search_traces(
            locations=[run.info.experiment_id],
            run_id=run.info.run_id,
            include_spans=spans,
            max_results=_PAGE_OF_SPANS if spans else _PAGE,
            page_token=token,
        )
        yield from page
        token = page.token
        if not token:
            return


def _ids_of_inputs(client: MlflowClient, run: Run, traces: Sequence[Trace]) -> list[str | None]:
    """Digest the inputs of each trace; None where they were not traced."""
    digests = {trace.info.trace_id: _digest(trace) for trace in _traces(client, run, spans=True)}
    if lost := [trace.info.trace_id for trace in traces if trace.info.trace_id not in digests]:
        raise TrackerError(
            f"MLflow did not give the spans of {len(lost)} of {len(traces)} traces of run"
            f" `mlflow:{run.info.run_id}` (first: {lost[0]})"
        )
    return [digests[trace.info.trace_id] for trace in traces]


def _digest(trace: Trace) -> str | None:
    """Digest the inputs of the root span, whatever the order of their keys."""
    root = next((span for span in trace.data.spans if span.parent_id is None), None)
    if root is None or root.inputs is None:
        return None
    written = json.dumps(root.inputs, sort_keys=True, default=str)
    if _ADDRESS.search(written):
        raise SourceError(
            f"the inputs of trace `{trace.info.trace_id}` hold an object whose text is its address in memory,"
            f" so they cannot be compared: {written[:200]}",
            hint="evaluate inputs that JSON can represent.",
        )
    return hashlib.sha256(written.encode()).hexdigest()[:_DIGITS]


def _feedback(trace: Trace, run_id: str) -> dict[str, list[Feedback]]:
    """Return the assessments of a trace by this run's scorers and by people, without overridden ones."""
    found = defaultdict(list)
    for assessment in trace.info.assessments:
        is_own = assessment.run_id in (None, run_id)  # a trace can be evaluated by several runs
        if isinstance(assessment, Feedback) and assessment.valid is not False and is_own:
            found[assessment.name].append(assessment)
    return dict(found)


def _column(scorer: str, feedback: Sequence[Sequence[Feedback]]) -> tuple[list[Any], list[str]]:
    """Return the values of a scorer by example, and notes for readers of the result."""
    given = [
        [each.value for each in of_one if each.error is None and each.value is not None]
        for of_one in feedback
    ]
    numbers = [[number for value in of_one if (number := _number(value)) is not None] for of_one in given]
    is_numeric = any(numbers) or not any(given)
    values: list[Any] = (
        [fmean(of_one) if of_one else None for of_one in numbers]
        if is_numeric
        else [_text(of_one[0]) if of_one else None for of_one in given]
    )
    notes = []
    errors = [each.error for of_one in feedback for each in of_one if each.error is not None]
    failure = f"{len(errors)} of its assessments failed, the first by {_reason(errors[0])}" if errors else ""
    if lacking := sum(value is None for value in values):
        other = next((value for of_one in given for value in of_one if _number(value) is None), None)
        is_other = is_numeric and other is not None
        unusual = f"values such as {other!r} are neither numbers nor booleans, yes or no" if is_other else ""
        reasons = [failure, unusual]
        because = "; ".join(filter(None, reasons))
        notes.append(
            f"scorer `{scorer}` has no value for {lacking:,} of {len(values):,} examples"
            + (f": {because}" if because else "")
        )
    elif failure:
        notes.append(f"scorer `{scorer}` has a value for each example, though {failure}")
    if several := sum(len(of_one) > 1 for of_one in given):
        how = "averaged, as MLflow does" if is_numeric else "and the first is used"
        notes.append(f"scorer `{scorer}` has several values for {amount(several, 'example')}, {how}")
    return values, notes


def _note_on_words(scorer: str, column: str, words: Iterable[str]) -> str:
    """Say why a scorer is not among the metrics, and how it can be compared."""
    word = min(words, key=lambda each: (len(each), each))
    if len(word) > _LONGEST_WORD:
        return f"scorer `{scorer}` gives text, which has no mean"
    share = shlex.quote(f"{column}={word}")
    return f"scorer `{scorer}` gives words, which have no mean: `--metric {share}` compares the share of one"


def _number(value: object) -> float | None:
    """Convert a value as MLflow does when it averages a scorer."""
    if isinstance(value, bool | int | float):
        return float(value)
    return _RATINGS.get(value.lower()) if isinstance(value, str) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def _reason(error: AssessmentError) -> str:
    said = error.error_message or error.error_code or "an error without a message"
    return str(said).strip().partition("\n")[0][:120]


def _pairing_note(rows: Sequence[_Row]) -> str:
    lacking = sum(row.id is None for row in rows)
    note = "ids are digests of the inputs, as MLflow's request ids are random where it calls a `predict_fn`"
    return f"{note}; {lacking:,} of {len(rows):,} examples have no inputs" if lacking else note


def _scorers(run: Run) -> dict[str, str]:
    """Return the digest of the scorers, where this version of MLflow records it."""
    try:
        tag = json.loads(run.data.tags.get(_SCORERS_TAG, ""))
        partial = "" if tag["hashed"] == tag["total"] else f", of {tag['hashed']} of {tag['total']} scorers"
        return {"scorers' digest": tag["digest"].removeprefix("sha256:")[:_DIGITS] + partial}
    except (ValueError, TypeError, KeyError):
        return {}
