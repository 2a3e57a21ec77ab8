"""Callback for ``transformers.Trainer``, which logs predictions when training ends, and compares the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from trackperm.automation.policy.load import PolicyFile
from trackperm.automation.policy.policy import Policy
from trackperm.automation.training.after_evaluation import AfterEvaluation
from trackperm.automation.training.example_ids import as_array, example_digest, numbered
from trackperm.automation.training.on_exit import BUDGET_SECONDS, warn
from trackperm.errors import InputError, MissingDependencyError
from trackperm.messages import listed

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise MissingDependencyError(
        f"`transformers` cannot be imported: {error}", hint="pip install 'trackperm[huggingface]'"
    ) from error

_LABELS = ("label", "labels", "label_ids")
_OWN = "`examples=` takes a function that turns the output of `Trainer.predict` into columns."
_WHOLE = {
    "batch_eval_metrics": False,
    "eval_do_concat_batches": True,
    "prediction_loss_only": False,
    "group_by_length": False,
    "train_sampling_strategy": "random",
}
"""Training arguments that make predictions whole, and keep them in the order of the data set."""


def classified(output: Any) -> dict[str, Any]:
    """Return the class with the highest score as the prediction; single numbers and classes stay unchanged.

    Parameters
    ----------
    output : transformers.trainer_utils.PredictionOutput
        Output of ``Trainer.predict``. If it has several arrays of predictions, the first one is used.

    Returns
    -------
    dict
        ``prediction`` and, if there are labels, ``label``.

    Raises
    ------
    InputError
        If an example has several labels or predictions, as in tagging; if scores are not finite; or if they
        do not determine a class, like whole numbers (perhaps classes in order of their scores) or a single
        logit.
    """
    scores = _column(output.predictions)
    columns = {"prediction": _classes(scores) if scores.ndim == 2 else scores}
    if output.label_ids is not None:
        columns["label"] = _column(output.label_ids)
    for what, values in columns.items():
        if values.ndim != 1:
            raise InputError(
                f"an example has several {what}s: an array of shape {values.shape}; expected one value",
                hint=_OWN,
            )
    if scores.ndim == 1:
        _require_no_logits(scores, columns.get("label"))
    return {what: values.tolist() for what, values in columns.items()}


class ComparisonCallback(TrainerCallback):
    """Callback that predicts a data set when training ends, logs the predictions, and compares the run.

    Pass it to ``trainer.add_callback``. The runs are those that MLflow and W&B have open in this process,
    started by the trainer's own callbacks or by you. All processes together predict the data set with
    ``Trainer.predict``, after the best model was loaded if the trainer does that. The process of rank 0 logs,
    within `budget_seconds`, and failures are warnings.

    Parameters
    ----------
    trainer : transformers.Trainer
        The trainer.
    dataset : object, optional
        Examples with labels; by default the trainer's ``eval_dataset``.
    policy : str, Path, PolicyFile, Policy or None
        Policy of the comparison, as in :func:`trackperm.compare_on_exit`. None only logs.
    policy_name : str, optional
        Name of the policy; by default every policy of the file that selects the run.
    columns : mapping, optional
        Columns of the data set to log, by their names in the run. ``{"id": "question_id"}`` names the column
        that identifies examples. Without it, a digest of its inputs identifies an example, so that runs with
        other inputs, such as those of another tokeniser, are refused.
    examples : callable
        Turns the output of ``Trainer.predict`` into columns, row by row: ``prediction``, ``label`` and
        others.
    name : str
        Name of the predictions in the run.
    budget_seconds : float
        Longest time that logging and comparison take together. A comparison that is not done in time waits in
        the queue for ``trackperm watch``.
    state : str or Path, optional
        Folder of the queue, as in :func:`trackperm.compare_on_exit`.

    Raises
    ------
    InputError
        Before the training, if the data set or a column does not exist.
    """

    def __init__(
        self,
        trainer: Any,
        dataset: Any = None,
        *,
        policy: str | Path | PolicyFile | Policy | None = "trackperm.yaml",
        policy_name: str | None = None,
        columns: Mapping[str, str] | None = None,
        examples: Callable[[Any], Mapping[str, Any]] = classified,
        name: str = "predictions",
        budget_seconds: float = BUDGET_SECONDS,
        state: str | Path | None = None,
    ) -> None:
        self._trainer = trainer
        self._dataset = trainer.eval_dataset if dataset is None else dataset
        self._columns = dict(columns or {})
        self._examples = examples
        self._after = AfterEvaluation(
            policy, policy_name=policy_name, name=name, budget_seconds=budget_seconds, state=state
        )
        if self._dataset is None or isinstance(self._dataset, Mapping):
            found = "none" if self._dataset is None else f"several, {listed(map(str, self._dataset))}"
            raise InputError(
                f"expected one data set to predict, found {found}",
                hint="`ComparisonCallback(trainer, dataset)` names it.",
            )
        if hasattr(self._dataset, "__getitem__") and hasattr(self._dataset, "__len__") and len(self._dataset):
            self._described([self._dataset[0]])
        if trainer.is_world_process_zero():
            self._after.prepare()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Become the first callback, because the one of MLflow ends the run when training ends."""
        handler = self._trainer.callback_handler
        handler.callbacks = [self, *(each for each in handler.callbacks if each is not self)]

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Predict, log and compare."""
        self.log_and_compare()

    def log_and_compare(self) -> None:
        """Predict, log and compare now, in a script without training; call it in all processes."""
        try:
            with _whole(self._trainer):
                output = self._trainer.predict(self._dataset)
        except Exception as error:
            warn("the data set was not predicted, and the run is not compared", error)
            return
        if self._trainer.is_world_process_zero():
            self._after.finish(lambda: self._predicted(output))

    def _predicted(self, output: Any) -> dict[str, Any]:
        described = self._described(self._dataset)
        own, labels = described.pop("", None), output.label_ids
        if own and isinstance(labels, np.ndarray) and labels.shape == (len(own),) and labels.tolist() != own:
            raise InputError(
                "the labels of the prediction differ from those of the data set, in its order",
                hint="does a data loader of yours sort it? `log_predictions` takes ids with predictions.",
            )
        return {**self._examples(output), **described}

    def _described(self, examples: Iterable[Any]) -> dict[str, list[Any]]:
        """Return ids and further columns of the examples; labels, if numeric, are under the empty name."""
        found: dict[str, list[Any]] = {name: [] for name in ("id", *self._columns)}
        labels = {*_LABELS, *(self._trainer.label_names or ())}
        own: list[Any] = []
        for example in examples:
            for name, column in self._columns.items():
                found[name].append(_plain(_value(example, column)))
            if isinstance(example, Mapping):
                given = [_plain(value) for key, value in example.items() if key in labels]
                own += [given[0]] if len(given) == 1 and isinstance(given[0], int | float) else []
                inputs: Any = {key: value for key, value in example.items() if key not in labels}
            else:
                inputs = example
            if "id" not in self._columns:
                found["id"].append(example_digest(inputs))
        if "id" not in self._columns:
            found["id"] = numbered(found["id"])
        return {**found, **({"": own} if len(own) == len(found["id"]) else {})}


def _column(arrays: Any) -> Any:
    """Return the first of several arrays, without an axis of length one."""
    array = np.asarray(arrays[0] if isinstance(arrays, tuple) else arrays)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _classes(scores: Any) -> Any:
    """Return the class of the highest score; scores of masked classes may be -inf."""
    if scores.dtype.kind in "biu":
        raise InputError(
            f"the predictions are {scores.shape[1]} whole numbers per example; expected scores of classes",
            hint=_OWN,
        )
    _require_finite(scores.max(axis=1))
    return scores.argmax(axis=1)


def _require_finite(scores: Any) -> None:
    if scores.dtype.kind == "f" and not np.isfinite(scores).all():
        raise InputError(
            f"the scores of {(~np.isfinite(scores)).sum():,} of {len(scores):,} examples are not finite,"
            " which happens when a model diverges",
            hint=f"correct the model; {_OWN}",
        )


def _require_no_logits(values: Any, labels: Any) -> None:
    """Refuse fractions if all labels are 0 or 1: a single logit is a score of two classes."""
    _require_finite(values)
    fractions = values[values % 1 != 0] if values.dtype.kind == "f" else values[:0]
    if labels is None or not len(fractions):
        return
    if np.isin(labels, (0, 1)).all():
        raise InputError(
            f"the predictions are single scores, such as {fractions[0]}, and the labels are 0 and 1; expected"
            " classes",
            hint=f"{_OWN} For logits, the class is `(output.predictions[:, 0] > 0).astype(int)`.",
        )


@contextmanager
def _whole(trainer: Any) -> Iterator[None]:
    """Make the trainer predict whole arrays in the order of the data set, without metrics."""
    arguments = {name: getattr(trainer.args, name) for name in _WHOLE if hasattr(trainer.args, name)}
    metrics = trainer.compute_metrics
    try:
        for name in arguments:
            setattr(trainer.args, name, _WHOLE[name])
        trainer.compute_metrics = None
        yield
    finally:
        trainer.compute_metrics = metrics
        for name, value in arguments.items():
            setattr(trainer.args, name, value)


def _value(example: Any, column: str) -> Any:
    if not isinstance(example, Mapping) or column not in example:
        there = listed(map(str, example)) if isinstance(example, Mapping) else f"a {type(example).__name__}"
        raise InputError(f"the examples of the data set have no column `{column}`; they have {there}")
    return example[column]


def _plain(value: Any) -> Any:
    value = as_array(value)
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
