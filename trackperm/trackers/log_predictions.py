"""``log_predictions``: check predictions and log them to a run as one Parquet file."""

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
    """Log the predictions of a run, one row per example, so that the run can be compared.

    Ids are checked by the rules of pairing before anything is written. A script that only has files needs
    none of this: :func:`trackperm.compare` reads files as they are.

    Parameters
    ----------
    run : object or str
        A run that :func:`wandb.init` returned and that is not finished, online or offline; an
        ``mlflow.ActiveRun`` or ``mlflow.entities.Run``; or a reference to a run in MLflow, ``mlflow:RUN_ID``.
    frame : data frame
        Any data frame that narwhals accepts, with a column ``id`` that identifies examples in all runs. A
        column ``label`` lets comparisons check that runs agree on the reference answers.
    name : str
        Name of the predictions in the run. Logging the same again adds nothing; other predictions under a
        name that is taken are refused, as comparisons may depend on what is stored.
    columns : mapping, optional
        Columns with other names, such as ``{"id": "question_id", "prediction": "answer"}``. They are logged
        under the names that statistics read, those before the colon. Several columns that identify an example
        together, as in ``{"id": "question_id,epoch"}``, keep their names.
    tracking_uri : str, optional
        Server or store where the run is recorded; by default as the run or its tracker says.

    Returns
    -------
    str
        Reference for :func:`trackperm.compare`: ``mlflow:RUN_ID``, ``wandb:ENTITY/PROJECT/ID``, or ``wandb:``
        and the folder of an offline run, which can be read once the run is finished.

    Raises
    ------
    PairingError
        If examples have no id or share one.
    InputError
        If a column does not exist, or the run does not accept predictions or holds others under that name.
    InputTypeError
        If `run` is not a run or `frame` not a data frame, or a column cannot be stored as Parquet.
    TrackerError
        If the tracker failed, or did not store what it was sent.

    Examples
    --------
    ``trackperm.log_predictions(run, frame)`` returns the reference of the run. Nothing is written where ids
    are missing or repeated:

    >>> import polars as pl
    >>> trackperm.log_predictions("mlflow:3f2a", pl.DataFrame({"id": ["q", "q"], "prediction": ["a", "b"]}))
    Traceback (most recent call last):
        ...
    trackperm.errors.PairingError: 2 of 2 rows of `predictions` share their `id` with another row (first: 'q')
    ...
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"`{name}` is not a name for predictions; expected at most 64 of A-Z a-z 0-9 _ . -",
            hint="`name='predictions'` is the default.",
        )
    predictions = Predictions(name, _parquet(_checked(frame, columns or {})))
    if not isinstance(run, str):
        return str(open_tracker_of(run, tracking_uri).log_predictions(run, predictions))
    reference = RunReference.parse(run)
    if reference.scheme == "file":
        raise InputError(f"`{run}` is not a run of a tracker", hint=f"`mlflow:{run}` names one of MLflow.")
    tracker = open_tracker(reference.scheme, tracking_uri)
    return str(tracker.log_predictions(reference.locator, predictions))


def _checked(frame: Any, columns: Mapping[str, str]) -> pl.DataFrame:
    """Return examples with the columns that statistics read, under the names that statistics use."""
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
            hint="rename or remove all but one.",
        )
    series = []
    for column, kept in zip(table.columns, names, strict=True):
        values = table.polars_column(column)
        if values.dtype == pl.Object:
            raise InputTypeError(
                f"column `{column}` of the predictions holds objects, which Parquet cannot store",
                hint="remove it, or convert its values to text.",
            )
        series.append(values.alias(kept))
    return named_frame(series)


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()
