"""Callback for Lightning's ``Trainer``, which logs predictions when a test ends, and compares the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from trackperm.automation.policy.load import PolicyFile
from trackperm.automation.policy.policy import Policy
from trackperm.automation.training.after_evaluation import AfterEvaluation
from trackperm.automation.training.example_ids import as_array, example_digest, numbered
from trackperm.automation.training.on_exit import BUDGET_SECONDS, warn
from trackperm.errors import InputError, MissingDependencyError
from trackperm.messages import listed
from trackperm.trackers.open_runs import OpenRun, mlflow_run, open_run

try:
    import torch.distributed as distributed
    from lightning.fabric.utilities.data import sized_len
    from lightning.pytorch import Callback
    from lightning.pytorch.utilities import CombinedLoader
    from torch.utils.data.distributed import DistributedSampler
except ImportError as error:
    raise MissingDependencyError(
        f"`lightning` cannot be imported: {error}", hint="pip install 'trackperm[lightning]'"
    ) from error

_ROLES = {"id": "id", "prediction": "prediction", "label": "label"}
_DIGEST = ""  # column of digests, which become ids when equal ones are numbered
_ABSENT = object()

Columns = dict[str, list[Any]]


class ComparisonCallback(Callback):
    """Callback that collects what the steps of an evaluation return, logs it, and compares the run.

    Pass it to ``Trainer(callbacks=[...])``. A step returns a mapping with ``prediction`` and ``label``, one
    value per example of the batch, and ``id`` if examples have one. Values that it does not return are taken
    from the batch, if that is a mapping. The runs are those of the trainer's ``MLFlowLogger`` and
    ``WandbLogger``; without such loggers, those that MLflow and W&B have open in this process. The process of
    rank 0 logs, within `budget_seconds`, and failures are warnings.

    Parameters
    ----------
    policy : str, Path, PolicyFile, Policy or None
        Policy of the comparison, as in :func:`trackperm.compare_on_exit`. None only logs.
    policy_name : str, optional
        Name of the policy; by default every policy of the file that selects the run.
    stage : {'test', 'validate', 'fit'}
        Evaluation to log: that of ``trainer.test``, of ``trainer.validate``, or the last one of
        ``trainer.fit``.
    columns : mapping, optional
        Names of the values, and of further values to log, by their names in the run:
        ``{"prediction": "preds", "language": "language"}``. Without an ``id``, a digest of its part of the
        batch identifies an example, so that runs with other inputs are refused.
    dataloader : int
        Index of the data loader whose examples are logged, if there are several.
    name : str
        Name of the predictions in the run.
    budget_seconds : float
        Longest time that logging and comparison take together. A comparison that is not done in time waits in
        the queue for ``trackperm watch``.
    state : str or Path, optional
        Folder of the queue, as in :func:`trackperm.compare_on_exit`.
    """

    def __init__(
        self,
        policy: str | Path | PolicyFile | Policy | None = "trackperm.yaml",
        *,
        policy_name: str | None = None,
        stage: Literal["test", "validate", "fit"] = "test",
        columns: Mapping[str, str] | None = None,
        dataloader: int = 0,
        name: str = "predictions",
        budget_seconds: float = BUDGET_SECONDS,
        state: str | Path | None = None,
    ) -> None:
        super().__init__()
        if stage not in ("test", "validate", "fit"):
            raise InputError(f"`stage` is {stage!r}", hint="expected `test`, `validate` or `fit`.")
        self._stage = stage
        self._named = dict(columns or {})
        self._dataloader = dataloader
        self._after = AfterEvaluation(
            policy, policy_name=policy_name, name=name, budget_seconds=budget_seconds, state=state
        )
        self._columns: Columns = {}
        self._fault: str | None = None

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Read the policy, so that its errors are reported before the training."""
        if trainer.is_global_zero and stage == self._stage:
            self._after.prepare()

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        """Discard the values of an earlier evaluation."""
        self._columns, self._fault = {}, None

    on_validation_start = on_test_start

    def on_test_batch_end(
        self,
        trainer: Any,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Collect what the step returned."""
        is_meant = trainer.state.fn == self._stage and dataloader_idx == self._dataloader
        if not is_meant or trainer.sanity_checking or self._fault is not None:
            return
        try:
            for name, values in self._of_batch(outputs, batch).items():
                self._columns.setdefault(name, []).extend(values)
        except InputError as error:
            self._fault = str(error)
        except Exception as error:
            self._fault = f"{type(error).__name__}: {error}"

    on_validation_batch_end = on_test_batch_end

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        """Log and compare after ``trainer.test`` or ``trainer.validate``."""
        if trainer.state.fn == self._stage and self._stage != "fit":
            self._finish(trainer)

    on_validation_end = on_test_end

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Log and compare the last validation of ``trainer.fit``."""
        if self._stage == "fit":
            self._finish(trainer)

    def _of_batch(self, outputs: Any, batch: Any) -> Columns:
        names = {**_ROLES, **self._named}
        places = [each for each in (outputs, batch) if isinstance(each, Mapping)]
        found: Columns = {}
        for name, key in names.items():
            values = next((place[key] for place in places if key in place), _ABSENT)
            if values is not _ABSENT:
                found[name] = _each(values, key)
            elif name in self._named or name == "prediction":
                there = listed(map(str, outputs)) if isinstance(outputs, Mapping) else type(outputs).__name__
                raise InputError(
                    f"the step did not return `{key}`; it returned {there}",
                    hint="return a mapping: `{'prediction': scores.argmax(1), 'label': y}`.",
                )
        n_examples = len(found["prediction"])
        if "id" not in found:
            plain = _arrays(batch)
            found[_DIGEST] = [example_digest(_example(plain, i, n_examples)) for i in range(n_examples)]
        if any(len(values) != n_examples for values in found.values()):
            sizes = {name: len(values) for name, values in found.items()}
            raise InputError(f"the values that the step returned differ in length: {sizes}")
        return found

    def _finish(self, trainer: Any) -> None:
        """Gather the values of all processes, and log them in the process of rank 0."""
        try:
            is_spread = trainer.world_size > 1 and distributed.is_available() and distributed.is_initialized()
            parts: list[tuple[Columns, str | None]] = [(self._columns, self._fault)]
            if is_spread:
                parts *= trainer.world_size
                distributed.all_gather_object(parts, (self._columns, self._fault))
            self._columns = {}
            if trainer.is_global_zero:
                self._after.finish(lambda: self._gathered(parts, trainer), lambda: _runs(trainer))
        except Exception as error:
            warn("the predictions were not logged", error)

    def _gathered(self, found: Sequence[tuple[Columns, str | None]], trainer: Any) -> Columns:
        """Join the values in the order of the data set; each process has every n-th example."""
        for _, fault in found:
            if fault is not None:
                raise InputError(fault)
        parts: Sequence[Columns] = [columns for columns, _ in found]
        if not parts[0]:
            where = f"for data loader {self._dataloader}"
            raise InputError(f"no step of `{self._stage}` returned anything {where}")
        if len(parts) > 1:
            loaders = trainer.test_dataloaders if self._stage == "test" else trainer.val_dataloaders
            parts = _once(parts, CombinedLoader(loaders, "sequential").flattened[self._dataloader])
        names = {name: None for part in parts for name in part}
        columns = {name: _in_turn([part.get(name, []) for part in parts]) for name in names}
        if _DIGEST in columns:
            columns["id"] = numbered(columns.pop(_DIGEST))
        return columns


def _once(parts: Sequence[Columns], loader: Any) -> Sequence[Columns]:
    """Remove examples that a sampler repeats so that all processes have equally many; refuse other repeats.

    Repeated ids are refused when they are logged. Repeated digests would be numbered as equal examples; only
    a ``DistributedSampler`` of the data set itself proves that they are distinct examples.
    """
    sampler, dataset = getattr(loader, "sampler", None), getattr(loader, "dataset", None)
    is_dealt = False
    if isinstance(sampler, DistributedSampler) and sampler.num_replicas == len(parts):
        is_dealt, dataset = sampler.dataset is dataset, sampler.dataset
        if not sampler.shuffle and _n_rows(parts) <= sampler.total_size:
            shares = [len(range(rank, len(dataset), len(parts))) for rank in range(len(parts))]
            parts = [
                {name: values[:share] for name, values in part.items()}
                for part, share in zip(parts, shares, strict=True)
            ]
    n_seen, n_examples = _n_rows(parts), sized_len(dataset)
    seen_by = Counter(digest for part in parts for digest in set(part.get(_DIGEST, ())))
    n_shared = 0 if is_dealt else sum(n > 1 for n in seen_by.values())
    if not seen_by or (not n_shared and (n_examples is None or n_seen <= n_examples)):
        return parts
    what = f"several processes saw the same {n_shared:,} examples"
    if n_examples is not None and n_seen > n_examples:
        what = f"the {len(parts)} processes saw {n_seen:,} examples of a data set of {n_examples:,}"
    raise InputError(
        f"{what}; expected each example once",
        hint="a loader that does not shuffle and `Trainer(use_distributed_sampler=True)` distribute them, and"
        " `devices=1` tests in one process. If equal examples are distinct, let the step return an `id`.",
    )


def _n_rows(parts: Sequence[Columns]) -> int:
    return sum(len(part.get("prediction", ())) for part in parts)


def _runs(trainer: Any) -> list[OpenRun]:
    """Return the runs of the trainer's loggers, from `lightning` or `pytorch_lightning`."""
    runs = []
    for logger in trainer.loggers:
        kinds = {base.__name__ for base in type(logger).__mro__}
        if "MLFlowLogger" in kinds:
            runs.append(mlflow_run(str(logger.run_id), str(logger.experiment.tracking_uri)))
        elif "WandbLogger" in kinds:
            runs.append(open_run(logger.experiment))
    return runs


def _each(values: Any, key: str) -> list[Any]:
    """Return one value per example."""
    values = as_array(values)
    if isinstance(values, list | tuple):
        return [as_array(value).tolist() if hasattr(value, "tolist") else value for value in values]
    if not hasattr(values, "ndim"):
        raise InputError(f"`{key}` is a {type(values).__name__}; expected a tensor or a list")
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.ndim != 1:
        raise InputError(
            f"`{key}` has the shape {values.shape}; expected one value per example",
            hint="for scores, return the class: `scores.argmax(1)`.",
        )
    return list(values.tolist())


def _arrays(batch: Any) -> Any:
    """Return a batch with its tensors converted to arrays."""
    if isinstance(batch, Mapping):
        return {name: _arrays(value) for name, value in batch.items()}
    if isinstance(batch, list | tuple):
        return [_arrays(value) for value in batch]
    return as_array(batch)


def _example(batch: Any, index: int, size: int) -> Any:
    """Return the part of a batch of `size` examples that belongs to one example."""
    if isinstance(batch, Mapping):
        return {name: _example(value, index, size) for name, value in batch.items()}
    if isinstance(batch, list):
        is_listed = len(batch) == size and all(
            isinstance(each, str | int | float | Mapping) for each in batch
        )
        return batch[index] if is_listed else [_example(value, index, size) for value in batch]
    if getattr(batch, "shape", ())[:1] == (size,):
        return batch[index]
    raise InputError(
        f"a batch of {size} examples contains {type(batch).__name__} {getattr(batch, 'shape', '')}; expected"
        " a part per example",
        hint="let the step return an `id` for each example.",
    )


def _in_turn(parts: Sequence[list[Any]]) -> list[Any]:
    turns = zip_longest(*parts, fillvalue=_ABSENT)
    return [value for turn in turns for value in turn if value is not _ABSENT]
