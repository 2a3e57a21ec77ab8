"""Runs of the Text Retrieval Conference: ranked documents, scored by the relevance in a file of qrels."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from trackperm.errors import MissingDependencyError, SourceError
from trackperm.messages import listed
from trackperm.tables.json_values import table
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable

_COMMON = ("AP", "nDCG@10", "P@10", "RR", "R@1000")
_RUN_HINT = "a line of a run is `query Q0 document rank score name`."
_RELEVANCE = re.compile(r"-?[0-9]{1,9}")
_BEIR = ["query-id", "corpus-id", "score"]  # the header of judgements in BEIR, which have three columns
_QRELS_HINT = "a line of qrels is `query 0 document relevance`."


def read_trec(file: SourceFile) -> ExampleTable:
    """Score every query of the qrels by the measure that ``FILE::MEASURE`` names, with ir_measures.

    Its columns are ``id`` (the query), ``score`` and ``measure``. A query that the run lacks scores 0, as in
    `trec_eval -c`; a query that the qrels lack is left out. Raise SourceError if no measure was chosen or it
    does not exist, or a line is not in the format of a run or of qrels, and MissingDependencyError if
    ir_measures is not installed.
    """
    if file.part is None:
        raise SourceError(
            f"`{file.origin}` is a ranking, which needs a measure",
            hint=f"choose one, as in `{file.origin}::{_COMMON[0]}`; common ones are {listed(_COMMON)}.",
        )
    if file.references is None:
        raise SourceError(f"`{file.origin}` is a ranking without qrels", hint="`--labels QRELS` names them.")
    run, qrels = _run(file), _qrels(file.references)
    name, scores = _scored(file, qrels, run)
    ids = list(qrels)
    columns: dict[str, list[str] | list[float]] = {
        "id": ids,
        "score": [scores.get(query, 0.0) for query in ids],
        "measure": [name] * len(ids),
    }
    read = table(columns, lambda index: f"query {ids[index]}", file.origin)
    return replace(
        read,
        identity=("measure",),
        notes=_notes(qrels, run),
        metrics={name: "score"},
        greater_is_better={"score": True},  # ERR is Expected Reciprocal Rank; no measure is an error
    )


def _scored(
    file: SourceFile, qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]
) -> tuple[str, dict[str, float]]:
    try:
        import ir_measures
    except ImportError as error:
        raise MissingDependencyError(
            "rankings are scored by `ir_measures`, which is not installed",
            hint="pip install 'trackperm[trec]'",
        ) from error
    try:
        measure = ir_measures.parse_measure(file.part or "")
        metrics = list(ir_measures.iter_calc([measure], qrels, run))
    except Exception as error:  # each measure is computed by a library with its own errors
        raise SourceError(
            f"`{file.origin}::{file.part}`: ir_measures does not compute `{file.part}`: {error}",
            hint=f"common measures are {listed(_COMMON)}.",
        ) from error
    return str(measure), {metric.query_id: float(metric.value) for metric in metrics}


def _run(file: SourceFile) -> dict[str, dict[str, float]]:
    run: dict[str, dict[str, float]] = {}
    for where, fields in _lines(file, 6, _RUN_HINT):
        query, _, document, _, text, _ = fields
        try:
            score = float(text)
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise SourceError(f"{where}: {text!r} is not a score", hint=_RUN_HINT)
        if document in run.setdefault(query, {}):
            raise SourceError(f"{where}: document `{document}` is ranked twice for query `{query}`")
        run[query][document] = score
    return run


def _qrels(file: SourceFile) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    is_beir = file.first_line.split() == _BEIR
    for where, fields in _lines(file, 3 if is_beir else 4, _QRELS_HINT):
        if fields == _BEIR:
            continue
        query, document, relevance = fields[0], *fields[-2:]
        if not _RELEVANCE.fullmatch(relevance):
            raise SourceError(f"{where}: {relevance!r} is not a degree of relevance", hint=_QRELS_HINT)
        if document in qrels.setdefault(query, {}):
            raise SourceError(f"{where}: document `{document}` is judged twice for query `{query}`")
        qrels[query][document] = int(relevance)
    if not qrels:
        raise SourceError(f"`{file.origin}` contains no judgement", hint=_QRELS_HINT)
    return qrels


def _lines(file: SourceFile, width: int, hint: str) -> Iterator[tuple[str, list[str]]]:
    for number, line in enumerate(file.text.split("\n"), start=1):
        fields = line.split()
        if fields and len(fields) != width:
            raise SourceError(
                f"`{file.origin}`, line {number}: {len(fields)} fields; expected {width}", hint=hint
            )
        if fields:
            yield f"`{file.origin}`, line {number}", fields


def _notes(qrels: dict[str, Any], run: dict[str, Any]) -> tuple[str, ...]:
    lacking = [query for query in qrels if query not in run]
    unjudged = [query for query in run if query not in qrels]
    notes = []
    if lacking:
        notes.append(
            f"{len(lacking):,} of {len(qrels):,} queries have no ranking and score 0: {listed(lacking)}"
        )
    if unjudged:
        notes.append(f"{len(unjudged):,} queries have no judgements and are left out: {listed(unjudged)}")
    return tuple(notes)


def _recognises(file: SourceFile) -> bool:
    fields = file.first_line.split()
    if len(fields) != 6 or fields[1].upper() not in ("Q0", "0"):
        return False
    are_numbers = [is_number(field) for field in fields]
    # Six numbers are a row of a table, unless the second field is `Q0`.
    return fields[3].isdecimal() and are_numbers[4] and not all(are_numbers)


def is_number(field: str) -> bool:
    """Whether a field is a number, as Python reads it."""
    try:
        float(field)
    except ValueError:
        return False
    return True


TREC = Source("trec", "TREC runs", _recognises, read_trec, part="measure", needs_references=True)
