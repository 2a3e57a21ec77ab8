"""Predictions checked and logged to a run the way comparisons read them best: one Parquet file."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from trackperm.errors import InputError, InputTypeError
from trackperm.messages import listed
from trackperm.pairing import require_ids
from trackperm.tables.named_frame import named_frame
from trackperm.tables.table import ExampleTable
from trackperm.trackers.base import open_tracker, open_tracker_of
from trackperm.trackers.predictions import Predictions
from trackperm.trackers.references import RunReference

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


def log_predictions(
    run: Any,
    frame: Any,
    *,
    name: str = "predictions",
    columns: Mapping[str, str] | None = None,
    tracking_uri: str | None = None,
) -> str:
    """Log the predictions of a run, one row an example, so that the run can be compared.

    The ids are checked by the rules that pairing keeps to, before anything is written.

    Parameters
    ----------
    run : object or str
        A run that :func:`wandb.init` returned and that is not finished, online or offline; an
        ``mlflow.ActiveRun`` or ``mlflow.entities.Run``; or a reference to a run in MLflow, ``mlflow:RUN_ID``.
    frame : data frame
        Any that narwhals accepts, with a column ``id`` that identifies examples in all runs. A ``label``
        lets comparisons check that the runs agree on the reference answers.
    name : str
        What the predictions are called in the run. The same again adds nothing; something else under a name
        that is taken is refused, for comparisons may rest on what is there.
    columns : mapping, optional
        Columns that are called otherwise, such as ``{"id": "question_id", "prediction": "answer"}``. They
        are logged under the names before the colon, which statistics read; several that identify an example
        together, as in ``{"id": "question_id,epoch"}``, keep their names.
    tracking_uri : str, optional
        Where the run is recorded; by default as the run or its tracker says.

    Returns
    -------
    str
        What :func:`trackperm.compare` takes: ``mlflow:RUN_ID``, ``wandb:ENTITY/PROJECT/ID``, or ``wandb:``
        and the folder of an offline run, which can be read once the run is finished.

    Raises
    ------
    PairingError
        If examples have no id or share one.
    InputError
        If there is no such column, the run takes no predictions, or has others under that name.
    InputTypeError
        If `run` is no run or `frame` no data frame, or a column cannot be kept in Parquet.
    TrackerError
        If the tracker failed, or did not keep what it was given.
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"`{name}` is no name of predictions", hint="use at most 64 of A-Z a-z 0-9 _ . -")
    predictions = Predictions(name, _parquet(_checked(frame, columns or {})))
    if not isinstance(run, str):
        return str(open_tracker_of(run, tracking_uri).log_predictions(run, predictions))
    reference = RunReference.parse(run)
    if reference.scheme == "file":
        raise InputError(f"`{run}` names no run of a tracker", hint=f"`mlflow:{run}` names one of MLflow.")
    tracker = open_tracker(reference.scheme, tracking_uri)
    return str(tracker.log_predictions(reference.locator, predictions))


def _checked(frame: Any, columns: Mapping[str, str]) -> pl.DataFrame:
    """Examples with the columns that statistics read, under the names by which they read them."""
    if isinstance(frame, str):
        raise InputTypeError(
            f"the predictions are text, {frame[:80]!r}, not a data frame",
            hint="read the file first, for example with `polars.read_csv`.",
        )
    table = ExampleTable.from_native(frame, "predictions").loaded()
    require_ids(table, columns.get("id", "id"))
    renamed = {column: role for role, column in columns.items() if column != role and "," not in column}
    if absent := [column for column in renamed if column not in table.columns]:
        raise InputError(f"the predictions have no column {listed(absent)}, only {listed(table.columns)}")
    names = [renamed.get(column, column) for column in table.columns]
    if taken := sorted({column for column in names if names.count(column) > 1}):
        raise InputError(
            f"the predictions would have more than one column {listed(taken)}",
            hint="rename or leave out the one that is not meant.",
        )
    series = []
    for column, kept in zip(table.columns, names, strict=True):
        values = table.polars_column(column)
        if values.dtype == pl.Object:
            raise InputTypeError(
                f"column `{column}` of the predictions holds objects, which Parquet cannot keep",
                hint="leave it out, or turn its values into text.",
            )
        series.append(values.alias(kept))
    return named_frame(series)


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()
