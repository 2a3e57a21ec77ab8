"""Small logs of evaluation harnesses, as these write them.

Those of Inspect (0.3.285), promptfoo (0.121.20) and lm-evaluation-harness (0.4.13) were cut down from real
ones; those of HELM (0.5.16), LightEval (0.13.0; 0.8.1 and 0.6.2 for the older layouts), SWE-bench (5.0.2) and
Terminal-Bench (0.2) follow the code that writes them.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl


def lm_eval_sample(doc_id: int, score: float, filter_: str = "none", **more: Any) -> dict[str, Any]:
    return {
        "doc_id": doc_id,
        "doc": {"question": f"{doc_id}+{doc_id}?"},
        "target": str(2 * doc_id),
        "arguments": {"gen_args_0": {"arg_0": f"{doc_id}+{doc_id}?", "arg_1": {"until": ["\n"]}}},
        "resps": [["Four.\n"]],
        "filtered_resps": ["4"],
        "filter": filter_,
        "metrics": ["exact_match"],
        "doc_hash": f"doc{doc_id}",
        "prompt_hash": "differs with chat templates",
        "target_hash": f"target{doc_id}",
        "exact_match": score,
        **more,
    }


LM_EVAL = [lm_eval_sample(i, float(i == 2)) for i in range(4)]


def inspect_sample(id_: int, epoch: int, **scores: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "epoch": epoch,
        "input": f"{id_}+{id_}?",
        "target": str(2 * id_),
        "messages": [],
        "output": {"model": "m", "choices": [], "completion": "the answer is 4"},
        "scores": {
            name: {"value": value, "answer": "4", "explanation": "the answer is 4", "history": []}
            for name, value in scores.items()
        },
        "metadata": {},
    }


def inspect_log(samples: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": "sums", "dataset": {"name": "small", "samples": 2}, "model": "m"},
        "plan": {"name": "plan", "steps": []},
        "results": {"total_samples": len(samples), "completed_samples": len(samples), "scores": []},
        "samples": samples,
        **more,
    }


INSPECT = inspect_log([inspect_sample(1, 1, match="I"), inspect_sample(2, 1, match="C")])


def write_eval(path: Path, log: Mapping[str, Any], compression: int = zipfile.ZIP_DEFLATED) -> None:
    header = {name: value for name, value in log.items() if name != "samples"}
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, **_spec(header)}))
        for sample in log["samples"]:
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, json.dumps(sample))
        archive.writestr("summaries.json", "[]")
        archive.writestr("header.json", json.dumps(header))


def _spec(header: Mapping[str, Any]) -> dict[str, Any]:
    return {name: header[name] for name in ("eval", "plan")}


def helm_stat(name: str, *values: float, **of_name: Any) -> dict[str, Any]:
    stat: dict[str, Any] = {
        "name": {"name": name, "split": "test", **of_name},
        "count": len(values),
        "sum": sum(values),
        "sum_squared": sum(value**2 for value in values),
    }
    return stat | ({"mean": sum(values) / len(values)} if values else {})


def helm_instance(id_: str, *stats: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"instance_id": id_, "train_trial_index": 0, "stats": list(stats), **more}


HELM = [helm_instance(f"id{i}", helm_stat("exact_match", i % 2), helm_stat("co2")) for i in range(3)]


def promptfoo_result(test: int, provider: str, prompt: str, score: float, **more: Any) -> dict[str, Any]:
    return {
        "cost": 0,
        "id": "f0f288d7-5a7a-44df-8b4c-9f577a8a6d92",
        "latencyMs": 1,
        "namedScores": {"equal": score},
        "prompt": {"raw": f"{prompt} hi", "label": f"{prompt} {{{{word}}}}", "config": {}},
        "promptIdx": 0,
        "provider": {"id": provider, "label": ""},
        "response": {"output": f"{prompt} hi", "cost": 0, "cached": False},
        "score": score,
        "success": score == 1,
        "testIdx": test,
        "vars": {"word": f"hi {test}"},
        "failureReason": int(score != 1),
        **more,
    }


def promptfoo(results: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "evalId": "eval-wJv-2026-11-21T08:38:20",
        "results": {"version": 3, "timestamp": "", "prompts": [], "results": results, "stats": {}},
        "config": {},
        "shareableUrl": None,
    }


PROMPTFOO = promptfoo([promptfoo_result(i, "echo", "Say", i % 2) for i in range(3)])

SWE_BENCH = {
    "total_instances": 5,
    "submitted_instances": 4,
    "completed_ids": ["a__a-1", "a__a-2"],
    "incomplete_ids": ["a__a-5"],
    "empty_patch_ids": ["a__a-3"],
    "submitted_ids": ["a__a-1", "a__a-2", "a__a-3", "a__a-4"],
    "resolved_ids": ["a__a-1"],
    "unresolved_ids": ["a__a-2"],
    "error_ids": ["a__a-4"],
    "schema_version": 2,
}


def terminal_bench(tasks: Mapping[str, Iterable[bool | None]]) -> dict[str, Any]:
    """Results of each task's trials."""
    results = [
        {"id": f"{task}/{n}", "task_id": task, "is_resolved": is_resolved, "failure_mode": "unset"}
        for task, trials in tasks.items()
        for n, is_resolved in enumerate(trials)
    ]
    ids = {
        outcome: [each["task_id"] for each in results if bool(each["is_resolved"]) is outcome]
        for outcome in (True, False)
    }
    return {
        "id": "x",
        "results": results,
        "n_resolved": len(ids[True]),
        "resolved_ids": ids[True],
        "unresolved_ids": ids[False],
    }


def lighteval(rows: Iterable[Mapping[str, float]]) -> pl.DataFrame:
    """Details of 0.10 and later, cut down to the members that are read and some that are not."""
    return pl.DataFrame(
        {
            "doc": {
                "query": f"{i}+{i}?",
                "choices": ["4", "5"],
                "gold_index": [i % 2],
                "id": str(i),
                "task_name": "lighteval|sums",
            },
            "metric": dict(metrics),
            "model_response": {"text": ["4 "], "text_post_processed": ["4"], "logprobs": [-0.5]},
        }
        for i, metrics in enumerate(rows)
    )


def lighteval_before_0_10(rows: Iterable[Mapping[str, float]], *, as_text: bool) -> pl.DataFrame:
    """Details of 0.8, or with every value as Python's text of 0.6."""
    details = [
        {
            "example": f"{i}+{i}?",
            "full_prompt": f"Add.\n{i}+{i}?",
            "predictions": ["4"],
            "gold": ["4"],
            "gold_index": [0],
            "metrics": dict(metrics),
        }
        for i, metrics in enumerate(rows)
    ]
    return pl.DataFrame(
        [{name: str(value) for name, value in detail.items()} for detail in details] if as_text else details
    )


def write_json(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document), encoding="utf-8")


def write_lines(path: Path, rows: Iterable[Any]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
