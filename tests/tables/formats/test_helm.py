from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import reference_data
from support.cli_comparison import compared
from support.eval_logs import HELM, helm_instance, helm_stat, write_json
from support.example_tables import columns_of_file
from support.questions import asked

from trackperm.errors import SourceError
from trackperm.tables import read_examples

RUNS = reference_data.DATA / "per_example" / "every_eval_ever" / "helm"

TYPOS = {"name": "typos", "prob": 0.1}
OF_TYPOS = {**TYPOS, "computed_on": "perturbed"}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(instances: Any) -> Path:
        path = tmp_path / "per_instance_stats.json"
        write_json(path, instances)
        return path

    return write


def test_columns(write: Any) -> None:
    assert columns_of_file(write(HELM)) == {
        "id": ["id0", "id1", "id2"],
        "split": ["test"] * 3,
        "train_trial_index": [0, 0, 0],
        "exact_match": [0, 1, 0],
        "co2": [None, None, None],
    }


def test_a_metric_of_several_values_counts_by_their_mean(write: Any) -> None:
    path = write([helm_instance("id0", helm_stat("logprob", -1.0, -2.5))])
    assert columns_of_file(path)["logprob"] == [-1.75]


def test_sub_splits_have_columns_of_their_own(write: Any) -> None:
    stats = [helm_stat("toxic", 1), helm_stat("toxic", 0, sub_split="non-toxic")]
    found = columns_of_file(write([helm_instance("id0", *stats)]))
    assert (found["toxic"], found["toxic/non-toxic"]) == ([1], [0])


def test_perturbations_are_refused_until_one_is_chosen(write: Any) -> None:
    worst = helm_stat("exact_match", 0, perturbation={**TYPOS, "computed_on": "worst"})
    before = helm_stat("exact_match", 1, perturbation={**TYPOS, "computed_on": "original"})
    path = write(
        [
            helm_instance("id0", helm_stat("exact_match", 1), before, worst),
            helm_instance(
                "id1", helm_stat("exact_match", 1, perturbation=OF_TYPOS), worst, perturbation=TYPOS
            ),
        ]
    )
    with pytest.raises(SourceError, match=r"has 2 perturbations, .*: `original`, `typos`"):
        read_examples(path)
    assert columns_of_file(path, "original")["exact_match"] == [1]
    assert columns_of_file(path, "typos")["exact_match"] == [1]
    scenario = "one of the metrics `exact_match`"
    assert read_examples(path, part="typos").facts == {"scenario": scenario, "perturbation": "typos"}
    found = compared(f"{path}::original", f"{path}::typos", "-s", "mean", "--column", "score=exact_match",
                     "--by-position")  # fmt: skip
    assert (
        "perturbation differs: `original` in the baseline, `typos` in the candidate"
        in found["pairing"]["notes"]
    )


def test_the_run_beside_tells_the_scenario(write: Any) -> None:
    path = write(HELM)
    scenario = {"class_name": "helm.scenarios.MMLUScenario", "args": {"subject": "law"}}
    write_json(path.with_name("run_spec.json"), {"scenario_spec": scenario})
    assert read_examples(path).facts["scenario"] == "MMLUScenario subject=law"


def test_trials_are_one_unit(write: Any) -> None:
    path = write([{**instance, "train_trial_index": trial} for trial in (0, 1) for instance in HELM])
    arguments = ("-s", "mean", "--column", "score=exact_match")
    assert compared(path, path, *arguments)["n_examples"] == 3
    assert compared(path, path, *arguments, "--unit", "row")["n_examples"] == 6


def test_metrics_are_those_of_the_run(write: Any) -> None:
    path = write(
        [helm_instance("id0", *(helm_stat(name, 1) for name in ("num_bytes", "f1", "rouge_l", "logprob")))]
    )
    assert list(read_examples(path).metrics) == ["f1", "rouge_l"]
    spec = {
        "metric_specs": [{"class_name": "m", "args": {"names": ["rouge_l", "bleu_1"]}}, {"class_name": "n"}]
    }
    path.with_name("run_spec.json").write_text(json.dumps(spec))
    assert list(read_examples(path).metrics) == ["rouge_l"]


@pytest.mark.parametrize(
    ("metric", "is_greater"),
    [
        ("nsfw_frac", False),
        ("nsfw_frac_given_toxic_prompt=True", False),
        ("max_toxicity_probability", False),
        ("bbq_metric_ambiguous_bias", False),
        ("lpips_similarity", True),
    ],
)
def test_directions_are_those_of_the_schemas(write: Any, metric: str, is_greater: bool) -> None:
    path = write([helm_instance(f"id{i}", helm_stat(metric, i % 3), helm_stat("f1", 1)) for i in range(6)])
    assert read_examples(path).greater_is_better == {metric: is_greater}
    (found,) = asked(path, path, metrics=(metric,))
    which = "greater" if is_greater else "lower"
    assert found.greater_is_better is is_greater
    assert found.found == (f"direction: {which} values of `{metric}` are better, by the log",)


def test_copies_of_protected_texts_are_not_wanted(write: Any) -> None:
    both = [helm_stat("edit_distance", 3), helm_stat("edit_similarity", 0.5)]
    assert read_examples(write([helm_instance("id0", *both)])).greater_is_better == {}
    copied = helm_stat("longest_common_prefix_length", 4)
    assert read_examples(write([helm_instance("id0", *both, copied)])).greater_is_better == {
        "edit_distance": True,
        "edit_similarity": False,
        "longest_common_prefix_length": False,
    }


REFUSED = {
    "no statistics": ([*HELM, {"instance_id": "id9"}], "item 3 is not an instance with statistics"),
    "a statistic without a name": (
        [helm_instance("id0", {"count": 1, "sum": 1})],
        "item 0 is not an instance with statistics",
    ),
    "no sum": (
        [helm_instance("id0", {"name": {"name": "f1"}, "count": 1})],
        "instance 'id0': `f1` has no `count` and `sum`",
    ),
    "two values": (
        [helm_instance("id0", helm_stat("f1", 0), helm_stat("f1", 1))],
        "instance 'id0': two values of `f1`: 0 and 1",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_other_instances_are_refused(case: Any, write: Any) -> None:
    instances, message = case
    with pytest.raises(SourceError, match=message):
        read_examples(write(instances))


@reference_data.needs_data
@pytest.mark.parametrize(("name", "n"), [("mmlu", 10), ("commonsense", 10), ("narrative_qa", 5)])
def test_published(name: str, n: int) -> None:
    (path,) = RUNS.glob(f"{name}*/per_instance_stats.json")
    exact_match = {
        row["instance_id"]: stat["mean"]
        for row in json.loads(path.read_text(encoding="utf-8"))
        for stat in row["stats"]
        if stat["name"]["name"] == "exact_match"
    }
    found = columns_of_file(path)
    assert dict(zip(found["id"], found["exact_match"], strict=True)) == exact_match
    assert len(found["id"]) == n
    result = compared(path, path, "-s", "mean", "--column", "score=exact_match")
    assert result["baseline_score"] == pytest.approx(sum(exact_match.values()) / n)
