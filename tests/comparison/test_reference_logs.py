"""Every per-example log of the reference data is compared by the metric that it declares."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import reference_data
from support.command_line import call_trackperm
from support.reference_data import DATA

LOGS = DATA / "per_example"
HELM = ["exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match"]

pytestmark = reference_data.needs_data


def compared(folder: Path, baseline: str, candidate: str) -> list[dict[str, Any]]:
    """Results of the plain command."""
    called = call_trackperm(folder, "compare", baseline, candidate, "--format", "json")
    assert called.returncode == 0, called.stderr
    found: list[dict[str, Any]] = json.loads(called.stdout)
    return found


def changed_inspect(text: str) -> str:
    log = json.loads(text)
    for score in log["samples"][0]["scores"].values():
        score["value"] = "C" if score["value"] == "I" else "I"
    return json.dumps(log)


def changed_line(member: str) -> Callable[[str], str]:
    def changed(text: str) -> str:
        first, *others = text.splitlines()
        row = json.loads(first)
        return "\n".join([json.dumps({**row, member: 1.0 - row[member]}), *others]) + "\n"

    return changed


def changed_helm(text: str) -> str:
    instances = json.loads(text)
    for stat in instances[0]["stats"]:
        if stat["name"]["name"] == "exact_match":
            stat["sum"] = 1 - stat["sum"]
    return json.dumps(instances)


@pytest.mark.parametrize(
    ("log", "change", "statistics"),
    [
        ("every_eval_ever/inspect/data_arc_qwen.json", changed_inspect, ["choice"]),
        ("every_eval_ever/inspect/data_arc_sonnet.json", changed_inspect, ["choice"]),
        ("every_eval_ever/inspect/data_pubmedqa_gpt4o_mini.json", changed_inspect, ["choice"]),
        (
            "every_eval_ever/inspect/data_cyse2_vuln_exploit_challenges.json",
            changed_inspect,
            ["vul_exploit_scorer"],
        ),
        (
            "every_eval_ever/lm_eval/samples_math_perturbed_full_2026-01-21T03-44-18.458309.jsonl",
            changed_line("exact_match"),
            ["mean_exact_match"],
        ),
        ("inspect_eval_docent/tb_airline.json", changed_line("reward"), ["reward"]),
    ],
)
def test_against_a_copy_with_changed_answers(
    tmp_path: Path, log: str, change: Callable[[str], str], statistics: list[str]
) -> None:
    path = LOGS / log
    copy = tmp_path / path.name
    copy.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    found = compared(tmp_path, str(path), str(copy))
    assert [each["statistic"] for each in found] == statistics
    assert found[0]["n_discordant"] == 1
    assert found[0]["chosen"]


@pytest.mark.parametrize("scenario", ["commonsense", "mmlu", "narrative_qa"])
def test_helm_by_the_metrics_of_its_run(tmp_path: Path, scenario: str) -> None:
    (run,) = (LOGS / "every_eval_ever" / "helm").glob(f"{scenario}*")
    for name in ("per_instance_stats.json", "run_spec.json"):
        text = (run / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(changed_helm(text) if name.startswith("per") else text, encoding="utf-8")
    found = compared(
        tmp_path, str(run / "per_instance_stats.json"), str(tmp_path / "per_instance_stats.json")
    )
    names = [each["statistic"] for each in found]
    by_scenario = {"narrative_qa": ["f1_score", "rouge_l", "bleu_1", "bleu_4"]}
    wanted = ["mean_exact_match", "quasi_exact_match", *by_scenario.get(scenario, HELM[2:])]
    assert [name for name in names if "_5" not in name] == wanted
    assert found[0]["n_discordant"] == 1
    assert found[0]["corrected"]["n_tests"] == len(names)


def test_inspect_archive(tmp_path: Path) -> None:
    path, copy = LOGS / "inspect_eval_docent" / "log.eval", tmp_path / "copy.eval"
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(copy, "w") as other:
        samples = [name for name in archive.namelist() if name.startswith("samples/")]
        for name in archive.namelist():
            data = archive.read(name)
            if name == samples[0]:
                sample = json.loads(data)
                sample["scores"]["includes"]["value"] = (
                    "C" if sample["scores"]["includes"]["value"] == "I" else "I"
                )
                data = json.dumps(sample).encode()
            other.writestr(name, data)
    (found,) = compared(tmp_path, str(path), str(copy))
    assert (found["statistic"], found["n_discordant"]) == ("includes", 1)


@pytest.mark.parametrize(
    "task", ["gsm8k", "mmlu_pro_plus_chemistry", "mmlu_pro_plus_health", "mmlu_pro_plus_psychology"]
)
def test_two_models_by_the_harness_own_metric(tmp_path: Path, task: str) -> None:
    first, second = sorted((LOGS / "lm_eval_pyfade").glob(f"samples_{task}_2025*.jsonl"))
    (found,) = compared(tmp_path, str(first), str(second))
    assert (found["statistic"], found["chosen"]) == ("mean_exact_match", "the metric of the log")
    logged = [
        [json.loads(line)["exact_match"] for line in path.read_text(encoding="utf-8").splitlines()]
        for path in (first, second)
    ]
    scores = found["baseline_score"], found["candidate_score"]
    assert scores == tuple(pytest.approx(sum(each) / len(each)) for each in logged)


def test_systems_of_one_file(tmp_path: Path) -> None:
    (path,) = (LOGS / "gsm8k_openai").glob("*.jsonl")
    (found,) = compared(tmp_path, f"{path}::6b_finetuning", f"{path}::175b_finetuning")
    assert (found["statistic"], found["n_examples"]) == ("is_correct", 1319)
    assert (found["n_better"], found["n_worse"]) == (260, 88)
