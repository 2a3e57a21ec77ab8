"""Evaluator for ``mlflow.models.evaluate`` that logs predictions, so that the run can be compared.

Importing MLflow imports this module, and fails with any error here but a failed import. This module therefore
loads nothing before it is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mlflow.models.evaluation.base import EvaluationResult, ModelEvaluator

_OPTIONS: dict[str, tuple[type, ...]] = {
    "id": (object,),
    "name": (str,),
    "baseline_run_id": (str,),
    "baseline_artifact": (str,),
    "statistic": (str,),
    "parameters": (dict,),
    "alternative": (str,),
    "alpha": (int, float),
    "margin": (int, float),
    "missing": (str,),
    "log": (bool,),
}
_PASSED_ON = ("parameters", "alternative", "alpha", "margin", "missing")
_OF_COMPARISON = ("baseline_artifact", "statistic", *_PASSED_ON, "log")
_METRICS = {
    "p_value": "pvalue",
    "difference": "difference",
    "baseline_score": "baseline_score",
    "candidate_score": "candidate_score",
}


class CountsEvaluator(ModelEvaluator):
    """Evaluator that logs prediction, label and a digest of the input per example, and may compare the run.

    ``mlflow.models.evaluate(..., evaluators=["default", "trackperm"])`` runs it beside MLflow's own.
    ``evaluator_config={"trackperm": {...}}`` takes these options, all of them optional:

    id : str or sequence
        Column of the data that identifies examples, or the ids; by default row numbers.
    name : str
        Name of the predictions in the run, by default ``predictions``.
    baseline_run_id : str
        Id of a run to compare with at once.
    baseline_artifact : str
        Artifact path of its predictions; by default the path to which this evaluator logs.
    statistic : str
        As in :func:`trackperm.compare`; by default ``accuracy`` for classifiers.
    parameters, alternative, alpha, margin, missing
        As in :func:`trackperm.compare`.
    log : bool
        Whether the comparison is logged; by default true.

    Without ``evaluators=``, MLflow runs all installed evaluators; this one runs only if it has options.
    """

    def __init__(self) -> None:
        self._times_asked = 0

    def can_evaluate(  # type: ignore[override]
        self,
        *,
        model_type: str,  # noqa: ARG002
        evaluator_config: dict[str, Any],
        **_: Any,
    ) -> bool:
        """Whether the evaluator was named, or has options.

        MLflow calls it once for a named evaluator. Without names it calls every evaluator, and each chosen
        one again.
        """
        self._times_asked += 1
        return self._times_asked == 1 or any(name in _OPTIONS for name in evaluator_config or {})

    def evaluate(
        self,
        *,
        model_type: str,
        dataset: Any,
        run_id: str,
        evaluator_config: dict[str, Any],
        model: Any = None,
        extra_metrics: Any = None,  # noqa: ARG002
        custom_artifacts: Any = None,  # noqa: ARG002
        predictions: str | None = None,
        **_: Any,
    ) -> EvaluationResult:
        """Log predictions to the run, and compare it if there is a baseline.

        Raises
        ------
        InputError
            If an option is unknown or has the wrong type, a column is missing, ids are not distinct, or the
            run has other predictions of that name.
        TrackerError
            If MLflow failed.
        """
        import mlflow

        from trackperm.comparison.compare import compare
        from trackperm.ledger.log import log
        from trackperm.trackers.log_predictions import log_predictions
        from trackperm.trackers.mlflow.evaluated import ROW_NUMBERS, ids_tag

        config = _checked(evaluator_config or {}, model_type)
        name, ids = config.get("name", "predictions"), config.get("id")
        run, uri = f"mlflow:{run_id}", mlflow.get_tracking_uri()
        examples = _examples(dataset, ids, _predictions(dataset, model, predictions))
        log_predictions(run, examples, name=name, tracking_uri=uri)
        told = ROW_NUMBERS if ids is None else f"column {ids}" if isinstance(ids, str) else "given"
        mlflow.MlflowClient(uri).set_tag(run_id, ids_tag(name), told)
        metrics = {}
        if "baseline_run_id" in config:
            comparison = compare(
                f"mlflow:{config['baseline_run_id'].removeprefix('mlflow:')}",
                run,
                config.get("statistic", "accuracy"),
                artifact=(config.get("baseline_artifact", f"{name}.parquet"), f"{name}.parquet"),
                tracking_uri=uri,
                **{option: config[option] for option in _PASSED_ON if option in config},
            )
            if config.get("log", True):
                log(comparison)
            metrics = _metrics(comparison)
        return EvaluationResult(metrics=metrics, artifacts={}, run_id=run_id)  # type: ignore[no-untyped-call]


def _metrics(comparison: Any) -> dict[str, float]:
    values = {name: getattr(comparison, attribute) for name, attribute in _METRICS.items()}
    return {
        f"{comparison.statistic.name}/{name}": float(value)
        for name, value in values.items()
        if value is not None and math.isfinite(value)
    }


def _checked(config: Mapping[str, Any], model_type: str) -> Mapping[str, Any]:
    """Refuse unknown options, wrong types, and options of a comparison without a baseline."""
    from trackperm.errors import InputError
    from trackperm.messages import did_you_mean, listed

    for name, value in config.items():
        if name not in _OPTIONS:
            raise InputError(
                f"the evaluator `trackperm` has no option `{name}`",
                hint=f"it has {listed(_OPTIONS)}.{did_you_mean(str(name), _OPTIONS)}",
            )
        if not isinstance(value, _OPTIONS[name]) or (isinstance(value, bool) and name != "log"):
            expected = " or ".join(type_.__name__ for type_ in _OPTIONS[name])
            raise InputError(
                f"option `{name}` of the evaluator `trackperm` is {value!r:.80}; expected {expected}"
            )
    if "baseline_run_id" not in config:
        if idle := [name for name in _OF_COMPARISON if name in config]:
            raise InputError(
                f"options {listed(idle)} of the evaluator `trackperm` need a baseline",
                hint="`baseline_run_id` names the run to compare with.",
            )
    elif "statistic" not in config and model_type != "classifier":
        raise InputError(
            f"the evaluator `trackperm` compares classifiers by accuracy; a {model_type or 'model'} needs a"
            " `statistic`",
            hint="`statistic`: a name that `trackperm statistic list` shows, or the path of a spec.",
        )
    return config


def _examples(dataset: Any, ids: Any, predictions: Sequence[Any]) -> Any:
    """Return one row per example: id, prediction, label and digest of the input."""
    import pandas as pd  # type: ignore[import-untyped]

    data = dataset.features_data
    names = [str(name) for name in dataset.feature_names]
    features = (
        data.set_axis(names, axis=1) if isinstance(data, pd.DataFrame) else pd.DataFrame(data, columns=names)
    )
    columns = {"id": _ids(ids, features), "prediction": predictions}
    if dataset.labels_data is not None:
        columns["label"] = list(dataset.labels_data)
    columns |= _digests(features.drop(columns=ids) if isinstance(ids, str) else features)
    return pd.DataFrame({name: pd.Series(values) for name, values in columns.items()})


def _ids(given: Any, features: Any) -> Sequence[Any]:
    """Return ids from a column of the data, the given ids, or row numbers."""
    from trackperm.errors import InputError
    from trackperm.messages import listed

    if given is None:
        return range(len(features))
    if isinstance(given, str):
        if given not in features.columns:
            raise InputError(
                f"the inputs of the evaluated data have no column `{given}`; they have"
                f" {listed(features.columns)}",
                hint="`id` may also be a list of the ids; use that for a column that is not among"
                " `feature_names`.",
            )
        return list(features[given])
    if isinstance(given, Mapping) or not hasattr(given, "__len__"):
        raise InputError(
            f"option `id` of the evaluator `trackperm` is {given!r:.80}; expected a column name, or ids"
        )
    if len(given) != len(features):
        raise InputError(
            f"option `id` has {len(given):,} ids; expected one for each of {len(features):,} examples"
        )
    return list(given)


def _predictions(dataset: Any, model: Any, column: str | None) -> Sequence[Any]:
    """Return the predictions in the data, or those of the model, which is called once more."""
    import pandas as pd

    from trackperm.errors import InputError
    from trackperm.messages import listed

    if model is None:
        if dataset.predictions_data is None:
            raise InputError(
                "the evaluation has neither a model nor a column of predictions",
                hint="`mlflow.models.evaluate(predictions='COLUMN')` names one.",
            )
        found = dataset.predictions_data
    else:
        data = dataset.features_data
        found = model.predict(data.copy() if hasattr(data, "copy") else data)
    is_records = isinstance(found, list) and all(isinstance(each, dict) for each in found)
    if is_records or isinstance(found, dict):
        found = pd.DataFrame(found)
    if isinstance(found, pd.DataFrame):
        if column not in found.columns and len(found.columns) != 1:
            raise InputError(
                f"the model gives several columns, {listed(map(str, found.columns))}",
                hint="`mlflow.models.evaluate(predictions='COLUMN')` names the prediction.",
            )
        found = found[column if column in found.columns else found.columns[0]]
    n_examples = len(dataset.features_data)
    if len(found) != n_examples:
        raise InputError(f"the model gives {len(found):,} predictions for {n_examples:,} examples")
    return list(found.tolist() if hasattr(found, "tolist") else found)


def _digests(features: Any) -> dict[str, Any]:
    """Return a digest of each example's input: 64 bits in hexadecimal, independent of the order of columns.

    Return nothing if values are written with their address in memory, which differs between runs.
    """
    import pandas as pd

    from trackperm.trackers.mlflow.evaluated import inputs_column

    plain = {}
    for name in sorted(features.columns):
        values = features[name]
        if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_complex_dtype(values):
            # -0.0 equals 0.0, and adding 0 makes their bytes equal
            plain[name] = pd.Series(values.to_numpy(dtype="float64", na_value=math.nan) + 0.0)
        else:
            plain[name] = pd.Series([str(value) for value in values], dtype=object)
            if plain[name].str.contains(" at 0x", regex=False).any():
                return {}
    if not plain:
        return {}
    digests = pd.util.hash_pandas_object(pd.DataFrame(plain), index=False)
    return {inputs_column(plain): [f"{digest:016x}" for digest in digests]}
