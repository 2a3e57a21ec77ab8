"""The callback of Lightning, with real trainers, loggers and stores."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import mlflow
import pytest
from support.hooked_runs import HookedStore, Script
from support.processes import run
from support.wandb_projects import WandbProjects
from support.wandb_standin import Standin

from trackperm.errors import InputError

pytestmark = [
    pytest.mark.tracker,
    pytest.mark.training,
    pytest.mark.usefixtures("runs"),
    *(
        pytest.mark.filterwarnings(f"ignore:{said}")
        for said in (
            ".*does not have many workers",
            "You defined a .validation_step. but have no",
            ".*recommended to use .self.log",
            "Using .DistributedSampler.",
            "Starting from v1.9.0, .tensorboardX.",
            ".*isinstance\\(treespec, LeafSpec\\)",
            "There is a wandb run already in progress",
        )
    ),
]


@pytest.fixture(scope="module")
def tiny() -> Any:
    pytest.importorskip("lightning", reason="Lightning is not installed: `make test-training`")
    from support import tiny_lightning

    return tiny_lightning


@pytest.fixture(scope="module")
def hook(tiny: Any) -> Any:
    from trackperm.automation.training import lightning

    return lightning


def mlflow_logger(runs: Script, name: str) -> Any:
    from lightning.pytorch.loggers import MLFlowLogger

    return MLFlowLogger(runs.experiment, run_name=name, tracking_uri=runs.store.uri)


def distributed(runs: Script, logger: Any, folder: Path, script: str) -> Any:
    """Run a script that starts processes, which log to the run of `logger`."""
    path = folder / "evaluate.py"
    path.write_text(script)
    arguments = [runs.store.uri, logger.run_id, runs.experiment, folder]
    environment = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    result = run([sys.executable, path, *arguments], cwd=folder, env=environment, timeout=240)
    assert result.returncode == 0, result.stderr
    return result


@pytest.mark.parametrize("named", [False, True], ids=["digests", "names"])
def test_a_baseline_and_a_candidate_of_its_own_logger(tiny: Any, hook: Any, runs: Script, named: bool):
    data, columns = tiny.Points(named=named), {"id": "name"} if named else None
    module, scores = tiny.classifier(), []
    for name, epochs in (("baseline", 0), ("candidate", 5)):
        policy = None if name == "baseline" else runs.policy_by_name()
        callback = hook.ComparisonCallback(policy, columns=columns, budget_seconds=60)
        logger = mlflow_logger(runs, name)
        trainer = tiny.trainer(runs.folder, [callback], logger, max_epochs=epochs)
        trainer.fit(module, tiny.loader(data))
        trainer.test(module, tiny.loader(data, 8 if name == "baseline" else 61), verbose=False)
        logged = runs.store.frame(logger.run_id)
        scores.append((logged["prediction"] == logged["label"]).mean())
    assert logged["label"].to_list() == data.y.tolist()
    assert logged["prediction"].to_list() == tiny.classes(module, data)
    assert scores[1] > 0.9
    if named:
        assert logged["id"].to_list() == [f"p{i}" for i in range(len(data))]
    assert logged["id"].n_unique() == len(data)
    assert runs.compared() == [f"mlflow:{logger.run_id}"]
    assert runs.store.get(logger.run_id).info.status == "FINISHED"
    [comparison] = runs.store.comparisons(runs.experiment)
    assert comparison.data.metrics["accuracy/n_examples"] == len(data)
    assert comparison.data.metrics["accuracy/difference"] == pytest.approx(scores[1] - scores[0])


def test_another_test_set_is_refused(tiny: Any, hook: Any, runs: Script):
    for name, seed in (("baseline", 1), ("candidate", 2)):
        callback = hook.ComparisonCallback(runs.policy_by_name(), budget_seconds=60)
        trainer = tiny.trainer(runs.folder, [callback], mlflow_logger(runs, name))
        trainer.test(tiny.classifier(), tiny.loader(tiny.Points(seed=seed)), verbose=False)
    assert "have no partner" in runs.told
    assert runs.compared() == []


def test_each_stage_logs_its_own(tiny: Any, hook: Any, runs: Script):
    """Validations during training, where the last counts, and a validation afterwards."""
    data = tiny.Points()
    stages = ("fit", "validate", "test")
    callbacks = [hook.ComparisonCallback(None, stage=stage, name=stage) for stage in stages]
    logger, module = mlflow_logger(runs, "all"), tiny.classifier()
    trainer = tiny.trainer(runs.folder, callbacks, logger, max_epochs=3, num_sanity_val_steps=2)
    trainer.fit(module, tiny.loader(data), tiny.loader(data))
    assert list(runs.store.artifacts(logger.run_id)) == ["fit.parquet"]
    at_the_end = tiny.classes(module, data)
    assert runs.store.frame(logger.run_id, "fit.parquet")["prediction"].to_list() == at_the_end
    other = tiny.Points(20, seed=2)
    trainer.validate(module, tiny.loader(other), verbose=False)
    assert sorted(runs.store.artifacts(logger.run_id)) == ["fit.parquet", "validate.parquet"]
    trainer.test(module, [tiny.loader(data), tiny.loader(other)], verbose=False)
    assert sorted(runs.store.artifacts(logger.run_id)) == ["fit.parquet", "test.parquet", "validate.parquet"]
    assert len(runs.store.frame(logger.run_id, "validate.parquet")) == 20
    assert len(runs.store.frame(logger.run_id, "test.parquet")) == 61, "that of the first data loader"


def test_the_active_run_without_a_logger(tiny: Any, hook: Any, runs: Script):
    mlflow.set_tracking_uri(runs.store.uri)
    mlflow.set_experiment(runs.experiment)
    with mlflow.start_run() as run:
        trainer = tiny.trainer(runs.folder, [hook.ComparisonCallback(None)])
        trainer.test(tiny.classifier(), tiny.loader(tiny.Points()), verbose=False)
    assert len(runs.store.frame(run.info.run_id)) == 61


def test_the_run_of_its_wandb_logger(tiny: Any, hook: Any, standin: Standin, tmp_path: Path):
    import wandb
    from lightning.pytorch.loggers import WandbLogger

    chosen = HookedStore(standin.url, tmp_path).policy_by_name(runs="wandb:team/lights")
    module = tiny.classifier()
    for name, policy, epochs in (("baseline", None, 0), ("candidate", chosen, 5)):
        settings = wandb.Settings(base_url=standin.url, x_disable_stats=True, silent=True)
        logger = WandbLogger(name, project="lights", entity="team", save_dir=tmp_path, settings=settings)
        callback = hook.ComparisonCallback(policy, budget_seconds=60)
        trainer = tiny.trainer(tmp_path, [callback], logger, max_epochs=epochs)
        trainer.fit(module, tiny.loader(tiny.Points()))
        trainer.test(module, tiny.loader(tiny.Points()), verbose=False)
        run_id = logger.experiment.id
        wandb.finish()
        time.sleep(1.1)  # W&B knows the seconds that runs were started in
    [comparison] = WandbProjects(standin).comparisons("team/lights")
    assert comparison.is_finished
    assert f"team/lights/{run_id}" in str(comparison.tags)


def test_trainers_of_pytorch_lightning(tiny: Any, hook: Any, runs: Script):
    """The older name of the package, whose classes are others."""
    import pytorch_lightning
    from pytorch_lightning.loggers import MLFlowLogger

    logger = MLFlowLogger(runs.experiment, run_name="old", tracking_uri=runs.store.uri)
    trainer = tiny.trainer(runs.folder, [hook.ComparisonCallback(None)], logger, pytorch_lightning.Trainer)
    module = tiny.classifier(pytorch_lightning.LightningModule)
    trainer.test(module, tiny.loader(tiny.Points()), verbose=False)
    logged = runs.store.frame(logger.run_id)
    assert logged["prediction"].to_list() == tiny.classes(module, tiny.Points())


@pytest.mark.parametrize(
    ("returned", "columns", "message"),
    [
        (lambda scores, y: None, None, "the step did not return `prediction`; it returned NoneType"),
        (lambda scores, y: {"preds": y}, None, "the step did not return `prediction`; it returned `preds`"),
        (
            lambda scores, y: {"prediction": y},
            {"id": "name"},
            "did not return `name`; it returned `prediction`",
        ),
        (lambda scores, y: {"prediction": scores}, None, r"`prediction` has the shape (8, 2)"),
        (
            lambda scores, y: {"prediction": y, "label": y[:1]},
            None,
            "differ in length",
        ),
        (lambda scores, y: {"prediction": y[:3]}, None, "expected a part per example"),
        (lambda scores, y: {"prediction": y, "id": y}, None, "share their `id` with another"),
        (
            lambda scores, y: {"prediction": y, **({"label": y} if len(y) == 8 else {})},
            None,
            "the columns of the predictions differ in length: `prediction` 61, `label` 56, `id` 61",
        ),
    ],
)
def test_a_step_that_returns_something_else_is_said_and_nothing_is_raised(
    tiny: Any,
    hook: Any,
    runs: Script,
    returned: Any,
    columns: Any,
    message: str,
):
    logger = mlflow_logger(runs, "candidate")
    trainer = tiny.trainer(runs.folder, [hook.ComparisonCallback(None, columns=columns)], logger)
    trainer.test(tiny.classifier(returned=returned), tiny.loader(tiny.Points()), verbose=False)
    assert message in runs.told
    assert not runs.store.artifacts(logger.run_id)
    assert runs.store.get(logger.run_id).info.status == "FINISHED"


@pytest.mark.slow
@pytest.mark.nightly
def test_several_processes_and_one_callback_without_a_data_loader(
    tiny: Any, hook: Any, runs: Script, tmp_path: Path
):
    """Both processes gather as often, and what there is not is said and not raised."""
    logger = mlflow_logger(runs, "candidate")
    result = distributed(runs, logger, tmp_path, _DISTRIBUTED)
    assert "no step of `test` returned anything for data loader 2" in result.stderr
    assert runs.store.frame(logger.run_id)["label"].to_list() == tiny.Points(21, seed=2).y.tolist()


_DISTRIBUTED = """
import sys

from support import tiny_lightning as tiny
from lightning.pytorch.loggers import MLFlowLogger

from trackperm.automation.training.lightning import ComparisonCallback

uri, run_id, experiment, folder = sys.argv[1:]
logger = MLFlowLogger(experiment, run_id=run_id, tracking_uri=uri)
callbacks = [ComparisonCallback(None, dataloader=number, budget_seconds=60) for number in (2, 1)]
trainer = tiny.trainer(folder, callbacks, logger, devices=2, strategy="ddp")
loaders = [tiny.loader(tiny.Points(21, seed=seed)) for seed in (1, 2)]
trainer.test(tiny.classifier(), loaders, verbose=False)
"""


_SHARED = """
import os
import sys

from support import tiny_lightning as tiny
import torch
from lightning.pytorch.loggers import MLFlowLogger
from torch.utils.data import DataLoader, IterableDataset, SubsetRandomSampler

from trackperm.automation.training.lightning import ComparisonCallback


class Stream(IterableDataset):
    def __iter__(self):
        return iter(list(tiny.Points(20)))


uri, run_id, experiment, folder = sys.argv[1:]
logger = MLFlowLogger(experiment, run_id=run_id, tracking_uri=uri)
own = torch.Generator().manual_seed(int(os.environ.get("LOCAL_RANK", 0)))
odd, even, named = tiny.Points(21), tiny.Points(20), tiny.Points(20, named=True)
cases = {
    "whole": (False, [tiny.loader(even)], None),
    "some": (False, [tiny.loader(even)], None),
    "named": (False, [tiny.loader(named)], {"id": "name"}),
    "stream": (False, [DataLoader(Stream(), 8)], None),
    "padded": (True, [DataLoader(odd, 8, shuffle=True)], None),
    "shuffled": (True, [DataLoader(even, 8, shuffle=True)], None),
    "subset": (True, [DataLoader(odd, 8, sampler=list(range(0, 21, 2)))], None),
    "drawn": (True, [DataLoader(odd, 8, sampler=SubsetRandomSampler(range(20), own))], None),
    "dict": (True, {"one": tiny.loader(odd)}, None),
}
for name, (is_dealt, loaders, columns) in cases.items():
    callback = ComparisonCallback(None, name=name, columns=columns, budget_seconds=60)
    limit = 1 if name == "some" else None
    options = {"use_distributed_sampler": is_dealt, "limit_test_batches": limit}
    trainer = tiny.trainer(folder, [callback], logger, devices=2, strategy="ddp", **options)
    trainer.test(tiny.classifier(), loaders, verbose=False)
"""


@pytest.mark.slow
def test_examples_that_several_processes_see_count_once_or_not_at_all(
    tiny: Any, hook: Any, runs: Script, tmp_path: Path
):
    """Without a sampler that deals them out, and with one that repeats some out of order."""
    logger = mlflow_logger(runs, "candidate")
    result = distributed(runs, logger, tmp_path, _SHARED)
    said = re.findall("were not logged: (.*); expected each example once", result.stderr)
    assert said[:4] == [
        "the 2 processes saw 40 examples of a data set of 20",
        "several processes saw the same 8 examples",
        "several processes saw the same 20 examples",
        "the 2 processes saw 22 examples of a data set of 21",
    ]
    assert [each.startswith("several processes saw the same ") for each in said[4:]] == [True]
    assert re.search(r"\b40 .*share their `id` with another", result.stderr)
    logged = {name: runs.store.frame(logger.run_id, name) for name in runs.store.artifacts(logger.run_id)}
    assert {name: len(rows) for name, rows in logged.items()} == {
        "dict.parquet": 21,
        "shuffled.parquet": 20,
        "subset.parquet": 11,
    }
    assert all(rows["id"].str.len_bytes().unique().to_list() == [16] for rows in logged.values())
    assert logged["subset.parquet"]["label"].to_list() == tiny.Points(21).y[::2].tolist()


def test_stages_that_there_are_not(tiny: Any, hook: Any):
    with pytest.raises(InputError, match="`stage` is 'train'"):
        hook.ComparisonCallback(None, stage="train")
