"""The callback of `transformers.Trainer`, with real trainers and real stores."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import mlflow
import numpy as np
import pytest
from support.hooked_runs import HookedStore, Script
from support.wandb_projects import WandbProjects
from support.wandb_standin import Standin

from trackperm.errors import InputError

pytestmark = [
    pytest.mark.tracker,
    pytest.mark.training,
    pytest.mark.usefixtures("mlflow_script"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

ID = {"id": "question"}


@pytest.fixture(scope="module")
def tiny() -> Any:
    pytest.importorskip("transformers", reason="transformers is not installed: `make test-training`")
    from support import tiny_transformers

    return tiny_transformers


@pytest.fixture(scope="module")
def hook() -> Any:
    from trackperm.automation.training import huggingface

    return huggingface


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def named(runs: Script, name: str) -> Any:
    experiment = runs.store.experiment(runs.experiment)
    [run] = runs.store.client.search_runs([experiment], f"attributes.run_name = '{name}'")
    return run


def trained(tiny: Any, hook: Any, runs: Script, name: str, dataset: Any = None, **options: Any) -> Any:
    """Train with MLflow's own callback, which begins and ends the run, and return the trainer."""
    epochs = options.pop("epochs", 0.2)
    dataset = dataset or tiny.examples()
    trainer = tiny.trainer(runs.folder, dataset, epochs=epochs, report_to="mlflow", run_name=name)
    trainer.add_callback(hook.ComparisonCallback(trainer, **{"budget_seconds": 60, **options}))
    trainer.train()
    return trainer


def test_a_baseline_and_a_candidate(tiny: Any, hook: Any, runs: Script):
    """MLflow's callback begins and ends the run; by then it has been compared."""
    trained(tiny, hook, runs, "baseline", policy=None, columns=ID)
    trainer = trained(tiny, hook, runs, "candidate", policy=runs.policy_by_name(), columns=ID, epochs=6)
    candidate = named(runs, "candidate")
    logged = runs.store.frame(candidate.info.run_id)
    data = tiny.examples()
    assert logged["id"].to_list() == [example["question"] for example in data]
    assert logged["label"].to_list() == [example["labels"] for example in data]
    assert logged["prediction"].to_list() == tiny.classes(trainer.model, data)
    assert (logged["prediction"] == logged["label"]).mean() > 0.8
    assert runs.compared() == [f"mlflow:{candidate.info.run_id}"]
    [comparison] = runs.store.comparisons(runs.experiment)
    assert candidate.info.status == "FINISHED"
    assert comparison.info.end_time <= candidate.info.end_time, "compared before its run ended"
    assert mlflow.active_run() is None


def test_without_ids_examples_are_known_by_their_inputs(tiny: Any, hook: Any, runs: Script):
    """Another order of the test set pairs rightly; another test set is refused."""
    data = tiny.examples()
    shuffled = random.Random(1).sample([*data, data[0]], len(data) + 1)
    trained(tiny, hook, runs, "baseline", [*data, data[0]], policy=None)
    trained(tiny, hook, runs, "candidate", shuffled, policy=runs.policy_by_name(), epochs=6)
    [comparison] = runs.store.comparisons(runs.experiment)
    assert comparison.data.metrics["accuracy/n_examples"] == len(data) + 1
    by_id = {}
    for name in ("baseline", "candidate"):
        logged = runs.store.frame(named(runs, name).info.run_id)
        by_id[name] = dict(zip(logged["id"], logged["label"], strict=True))
    assert by_id["baseline"] == by_id["candidate"]
    assert list(by_id["baseline"]) != list(by_id["candidate"])
    other = [{**example, "input_ids": example["input_ids"][::-1]} for example in data]
    trained(tiny, hook, runs, "other", other, policy=runs.policy_by_name("other", margin=0.5))
    assert "have no partner" in runs.told


def test_predictions_are_whole_and_in_the_order_of_the_data(tiny: Any, hook: Any, runs: Script):
    """Whatever the arguments: batches sorted by length, metrics by batch, only the loss."""

    def metrics(prediction: Any, compute_result: bool) -> dict[str, float]:
        return {"n": float(len(prediction.predictions))} if compute_result else {}

    data = tiny.examples(61, seed=3)
    settings: dict[str, Any] = {
        "batch_eval_metrics": True,
        "eval_accumulation_steps": 1,
        "eval_do_concat_batches": False,
        "prediction_loss_only": True,
        "per_device_eval_batch_size": 4,
        "train_sampling_strategy": "group_by_length",
    }
    with mlflow.start_run() as run:
        trainer = tiny.trainer(runs.folder, data, epochs=4, compute_metrics=metrics, **settings)
        callback = hook.ComparisonCallback(trainer, policy=None, columns={**ID, "size": "question"})
        trainer.add_callback(callback)
        trainer.train()
    logged = runs.store.frame(run.info.run_id)
    assert logged["id"].to_list() == [example["question"] for example in data]
    assert logged["prediction"].to_list() == tiny.classes(trainer.model, data)
    assert logged["label"].to_list() == [example["labels"] for example in data]
    assert 0 < sum(logged["prediction"]) < len(data), "both classes"
    assert logged["size"].to_list() == logged["id"].to_list()
    assert {name: getattr(trainer.args, name) for name in settings} == settings
    assert trainer.compute_metrics is metrics


def test_the_run_that_wandb_has_open(
    tiny: Any, hook: Any, standin: Standin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    import wandb

    monkeypatch.setenv("WANDB_ENTITY", "team")
    monkeypatch.setenv("WANDB_PROJECT", "hugging")
    chosen = HookedStore(standin.url, tmp_path).policy_by_name(runs="wandb:team/hugging")
    for name, policy, epochs in (("baseline", None, 0.2), ("candidate", chosen, 6)):
        trainer = tiny.trainer(tmp_path, tiny.examples(), epochs=epochs, report_to="wandb", run_name=name)
        trainer.add_callback(hook.ComparisonCallback(trainer, policy=policy, columns=ID, budget_seconds=60))
        trainer.train()
        run_id = wandb.run.id
        wandb.finish()
        time.sleep(1.1)  # W&B knows the seconds that runs were started in
    [comparison] = WandbProjects(standin).comparisons("team/hugging")
    assert comparison.is_finished
    assert f"team/hugging/{run_id}" in str(comparison.tags)


@pytest.mark.parametrize(
    ("dataset", "columns", "message"),
    [
        ("none", None, "expected one data set to predict, found none"),
        ("several", None, "found several, `a`, `b`"),
        ("one", {"id": "questoin"}, "have no column `questoin`; they have `input_ids`, `labels`, `question`"),
    ],
)
def test_what_cannot_work_is_refused_before_the_training(
    tiny: Any, hook: Any, runs: Script, dataset: str, columns: Any, message: str
):
    data = tiny.examples(4)
    given = {"none": None, "several": {"a": data, "b": data}, "one": data}[dataset]
    trainer = tiny.trainer(runs.folder, None)
    with pytest.raises(InputError, match=message):
        hook.ComparisonCallback(trainer, given, policy=None, columns=columns)


def test_a_failure_is_not_raised(tiny: Any, hook: Any, runs: Script):
    """Neither one of the model on the data set, nor one of the user's function."""
    trained(tiny, hook, runs, "one", [{"input_ids": [10**6], "labels": 0}], policy=None)
    assert "the data set was not predicted" in runs.told
    trained(tiny, hook, runs, "two", policy=None, examples=Mock(side_effect=RuntimeError("oops")))
    assert "the predictions were not logged: RuntimeError: oops" in runs.told
    trained(tiny, hook, runs, "three", policy=None, examples=lambda _: {"prediction": [1]})
    assert "the columns of the predictions differ in length" in runs.told
    assert [named(runs, name).info.status for name in ("one", "two", "three")] == ["FINISHED"] * 3


def test_a_data_loader_that_sorts_is_noticed(tiny: Any, hook: Any, runs: Script):
    data = tiny.examples()
    trainer = tiny.trainer(runs.folder, data)
    loader = trainer.get_test_dataloader
    trainer.get_test_dataloader = lambda dataset: loader(sorted(dataset, key=lambda each: each["labels"]))
    with mlflow.start_run() as run:
        hook.ComparisonCallback(trainer, policy=None, columns=ID).log_and_compare()
    assert "differ from those of the data set, in its order" in runs.told
    assert not runs.store.artifacts(run.info.run_id)


@pytest.mark.parametrize(
    ("predictions", "labels", "expected"),
    [
        ([[0.2, 0.8], [0.9, 0.1]], [1, 1], {"prediction": [1, 0], "label": [1, 1]}),
        ([[0.5], [1.5]], [[0.25], [1.0]], {"prediction": [0.5, 1.5], "label": [0.25, 1.0]}),
        ([1, 0], None, {"prediction": [1, 0]}),
        ([[1], [0]], [1, 1], {"prediction": [1, 0], "label": [1, 1]}),
        ([[1.0], [0.0]], [1, 1], {"prediction": [1.0, 0.0], "label": [1, 1]}),
        ([[3.25], [4.5]], [[3.0], [5.0]], {"prediction": [3.25, 4.5], "label": [3.0, 5.0]}),
        ([[2.5], [3.5]], [1, 5], {"prediction": [2.5, 3.5], "label": [1, 5]}),
        ([[-np.inf, 0.8], [0.9, -np.inf]], [1, 1], {"prediction": [1, 0], "label": [1, 1]}),
    ],
)
def test_predictions_of_classifiers_and_regressors(
    tiny: Any, hook: Any, predictions: Any, labels: Any, expected: dict[str, list[float]]
):
    arrays = np.array(predictions), None if labels is None else np.array(labels)
    assert hook.classified(SimpleNamespace(predictions=arrays[0], label_ids=arrays[1])) == expected
    output = SimpleNamespace(predictions=(arrays[0], np.zeros(3)), label_ids=arrays[1])
    assert hook.classified(output) == expected


@pytest.mark.parametrize(("shape", "labels"), [((2, 3, 4), (2, 3)), ((2, 3), (2, 3))])
def test_taggers_need_a_function_of_their_own(tiny: Any, hook: Any, shape: Any, labels: Any):
    with pytest.raises(InputError, match=r"an example has several (prediction|label)s"):
        hook.classified(SimpleNamespace(predictions=np.zeros(shape), label_ids=np.zeros(labels)))


@pytest.mark.parametrize(
    ("predictions", "labels", "message"),
    [
        ([[3, 1, 2], [1, 0, 2]], [3, 0], "the predictions are 3 whole numbers per example"),
        ([[3, 1], [1, 0]], None, "the predictions are 2 whole numbers per example"),
        ([[True, False], [True, True]], [0, 1], "the predictions are 2 whole numbers per example"),
        ([[np.nan, np.nan], [0.1, 0.2]], [0, 1], "the scores of 1 of 2 examples are not finite"),
        ([[0.1, np.inf], [-np.inf, -np.inf]], [0, 1], "the scores of 2 of 2 examples are not finite"),
        ([[np.nan], [0.5]], [[0.25], [1.5]], "the scores of 1 of 2 examples are not finite"),
        ([[2.5], [-3.5]], [1, 0], "the predictions are single scores, such as 2.5, and"),
        ([2.5, -3.5], [[1], [0]], "the predictions are single scores, such as 2.5, and"),
        ([[1.0], [-3.5]], [1.0, 0.0], "the predictions are single scores, such as -3.5, and"),
    ],
)
def test_other_outputs_than_classes_need_a_function(
    tiny: Any, hook: Any, predictions: Any, labels: Any, message: str
):
    """Best classes in order, a diverged model, the logit of a single class."""
    label_ids = None if labels is None else np.array(labels)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        hook.classified(SimpleNamespace(predictions=np.array(predictions), label_ids=label_ids))
    assert "`examples=`" in str(caught.value)
