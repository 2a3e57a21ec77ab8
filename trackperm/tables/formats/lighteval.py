"""Details that LightEval saves of every sample, as Parquet."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import polars as pl

from trackperm.errors import SourceError
from trackperm.tables.formats.parquet import read_parquet
from trackperm.tables.json_values import is_score, member_names, table
from trackperm.tables.lazy.scan import UNREADABLE
from trackperm.tables.panics import panics_unprinted
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable

_NEW = {"doc", "metric", "model_response"}  # from 0.10
_OLD = {"example", "full_prompt", "metrics", "predictions"}  # before 0.8 every value is a Python literal
_NUMPY = re.compile(r"np\.\w+\(([^()]*)\)")


def read_lighteval(file: SourceFile) -> ExampleTable:
    """Read details: a column for every metric, and ``prediction`` and ``label`` where each is a single text.

    A single metric is also the column ``score``. ``input_hash`` is the SHA-256 of the query, which pairing
    checks. The layout before 0.10 has no ids: use `--id input_hash` or `--by-position`. Raise SourceError if
    the file is truncated, or metrics are not a mapping.
    """
    frame = read_parquet(file).frame.to_polars()
    is_new = set(frame.columns) >= _NEW
    columns = _new(frame, file.origin) if is_new else _old(frame)
    metrics = [
        _mapping(value, f"`{file.origin}`, row {row}")
        for row, value in enumerate(frame["metric" if is_new else "metrics"].to_list())
    ]
    names = member_names(metrics, file.origin)
    columns |= {name: [of_sample.get(name) for of_sample in metrics] for name in names}
    if len(names) == 1:
        columns["score"] = columns[names[0]]
    present = {name: values for name, values in columns.items() if any(v is not None for v in values)}
    tasks = dict.fromkeys(str(task) for task in columns.get("task", ()) if task)
    return replace(
        table(present, lambda row: f"row {row}", file.origin),
        identity=("input_hash",),
        facts={"task": ", ".join(tasks)} if tasks else {},
        metrics={name: name for name in names if name in present and all(map(is_score, columns[name]))},
    )


def _new(frame: pl.DataFrame, origin: str) -> dict[str, list[Any]]:
    docs, responses = frame["doc"].to_list(), frame["model_response"].to_list()
    for row, pair in enumerate(zip(docs, responses, strict=True)):
        if None in pair:
            raise SourceError(f"`{origin}`, row {row}: no `{('doc', 'model_response')[pair.index(None)]}`")
    texts = [response.get("text_post_processed") or response.get("text") for response in responses]
    return {
        "id": [doc.get("id") or None for doc in docs],
        "task": [doc.get("task_name") or None for doc in docs],
        "prediction": _ones(texts),
        "label": _ones([_gold(doc.get("choices"), doc.get("gold_index")) for doc in docs]),
        "input_hash": [_hash(doc.get("query")) for doc in docs],
    }


def _old(frame: pl.DataFrame) -> dict[str, list[Any]]:
    columns = {"prediction": "predictions", "label": "gold"}
    return {
        **{
            name: _ones(map(_literal, frame[column].to_list()))
            for name, column in columns.items()
            if column in frame.columns
        },
        "input_hash": [_hash(example) for example in frame["example"].to_list()],
    }


def _gold(choices: Any, index: Any) -> list[Any]:
    indices = index if isinstance(index, list) else [index]
    texts = choices if isinstance(choices, list) else []
    return [texts[i] for i in indices if isinstance(i, int) and 0 <= i < len(texts)]


def _ones(values: Iterable[Any]) -> list[Any]:
    """Return the text of every sample if each has exactly one, else nulls."""
    found = [value[0] if isinstance(value, list) and len(value) == 1 else value for value in values]
    return found if all(isinstance(value, str) for value in found) else [None] * len(found)


def _mapping(value: Any, place: str) -> dict[str, Any]:
    found = _literal(value)
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise SourceError(f"{place}: the metrics {value!r} are not a mapping of names to values")
    return found


def _literal(value: Any) -> Any:
    """Parse a value that LightEval up to 0.7 wrote as a Python literal; return others unchanged."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return ast.literal_eval(_NUMPY.sub(r"\1", value))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return value


def _hash(query: Any) -> str:
    return hashlib.sha256(str(query).encode("utf-8", "surrogatepass")).hexdigest()


def _recognises(file: SourceFile) -> bool:
    if not file.head.startswith(b"PAR1"):
        return False
    try:
        with panics_unprinted():
            schema = pl.read_parquet_schema(file.path)
    except UNREADABLE:
        return False
    if schema.keys() >= _NEW:
        return all(isinstance(schema[name], pl.Struct) for name in _NEW)
    return schema.keys() >= _OLD and isinstance(schema["metrics"], pl.Struct | pl.String)


LIGHTEVAL = Source("lighteval", "LightEval details", _recognises, read_lighteval)
