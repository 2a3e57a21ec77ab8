"""Results of promptfoo as JSON or JSON Lines: ``promptfoo eval -o results.json`` or ``results.jsonl``."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace
from itertools import chain
from typing import Any

from trackperm.errors import SourceError
from trackperm.tables.formats.json_lines import json_rows
from trackperm.tables.json_values import has_members, member, member_names, table
from trackperm.tables.source import Source, SourceFile, chosen_part
from trackperm.tables.table import ExampleTable

_ERROR = 2  # `failureReason` of a failed call; that of a failed assertion is 1


def read_promptfoo(file: SourceFile) -> ExampleTable:
    """Read the results of one provider and prompt: ``id``, ``passed``, ``score``, ``prediction``, metrics.

    The id is the index of the test, or the values of its variables if it has no index. Variables are
    columns under their own names. ``--repeat`` produces identical tests, which promptfoo numbers like others:
    here they have the id of the first one, and the column ``repeat`` numbers them. ``input_hash`` is the
    SHA-256 of the variables, which pairing checks. Raise SourceError if there are several providers or
    prompts and none was chosen, or a result is not in promptfoo's format.
    """
    results = json_rows(file)[0] if _is_lines(file) else file.document["results"]["results"]
    for index, result in enumerate(results):
        if not isinstance(result, dict) or not isinstance(result.get("vars", {}), dict):
            raise SourceError(f"`{file.origin}`, result {index} is not an object with `vars` and `success`")
        if not isinstance(result.get("namedScores") or {}, dict):
            raise SourceError(f"`{file.origin}`, result {index}: its `namedScores` are not an object")
    systems = _systems(results)
    part = chosen_part(file, list(dict.fromkeys(systems)), "provider")
    kept = [result for result, system in zip(results, systems, strict=True) if system == part]
    variables = [json.dumps(result.get("vars", {}), sort_keys=True) for result in kept]
    has_index = all(isinstance(result.get("testIdx"), int) for result in kept)
    ids, numbers = _repeated([result["testIdx"] for result in kept] if has_index else list(variables), kept)
    columns: dict[str, list[Any]] = {
        "id": ids,
        **({"repeat": numbers} if any(numbers) else {}),
        "passed": [result.get("success") for result in kept],
        "score": [result.get("score") for result in kept],
        "prediction": [member(result, "response", "output") for result in kept],
        "input_hash": [hashlib.sha256(text.encode()).hexdigest() for text in variables],
    }
    for group in ("namedScores", "vars"):
        for name in member_names([result.get(group) or {} for result in kept], file.origin):
            columns.setdefault(name, [(result.get(group) or {}).get(name) for result in kept])
    n_errors = sum(result.get("failureReason") == _ERROR for result in kept)
    notes = (f"{n_errors:,} of {len(kept):,} results are errors of the provider and count as failed",)
    named = dict.fromkeys(chain.from_iterable(result.get("namedScores") or {} for result in kept))
    passed = columns["passed"]
    others = [name for name in ("score", *named) if columns[name] != passed]
    metrics = {name: name for name in ("passed", *others)}
    read = table(columns, lambda index: f"result {index}", file.origin)
    return replace(read, identity=("input_hash",), notes=notes if n_errors else (), metrics=metrics)


def _repeated(ids: list[Any], results: list[dict[str, Any]]) -> tuple[list[Any], list[int]]:
    """Assign the id of the first of identical tests to all of them, and number them from 0."""
    first: dict[str, Any] = {}
    n: Counter[str] = Counter()
    own, numbers = [], []
    for id_, result in zip(ids, results, strict=True):
        said = [member(result, "testCase", name) for name in ("description", "assert")] + [result.get("vars")]
        test = json.dumps(said, sort_keys=True, default=str)
        own.append(first.setdefault(test, id_))
        numbers.append(n[test])
        n[test] += 1
    return own, numbers


def _systems(results: list[dict[str, Any]]) -> list[str]:
    """Name the system behind each result: its provider, its prompt, or both where both vary."""
    providers = [_name(result.get("provider"), "label", "id") for result in results]
    prompts = [_name(result.get("prompt"), "label", "raw") for result in results]
    if len(set(prompts)) == 1:
        return providers
    if len(set(providers)) == 1:
        return prompts
    return [f"{provider} | {prompt}" for provider, prompt in zip(providers, prompts, strict=True)]


def _name(value: Any, *members: str) -> str:
    if isinstance(value, dict):
        return str(next((value[name] for name in members if value.get(name)), value))
    return str(value)


def _is_lines(file: SourceFile) -> bool:
    """Whether the file is JSON Lines with a result on each line."""
    return has_members(file.first_record, "testIdx", "promptIdx", "provider", "success", "vars")


def _recognises(file: SourceFile) -> bool:
    if _is_lines(file):
        return True
    rows = member(file.document, "results", "results")
    return isinstance(rows, list) and rows[:1] != [] and has_members(rows[0], "success", "provider")


PROMPTFOO = Source("promptfoo", "promptfoo results", _recognises, read_promptfoo, part="provider")
