"""Predictions on their way into a tracker: a name and the content of a Parquet file."""

from __future__ import annotations

import io
from dataclasses import dataclass

import polars as pl

from trackperm.errors import InputError

PREDICTIONS_TAG = "trackperm.predictions"
"""Tag of a run in MLflow with the digest of what was logged last, by which watchers see that it changed."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """Checked per-example predictions, ready to be logged to a run.

    Attributes
    ----------
    name : str
        Name in the run: letters, digits and ``_ - .``.
    data : bytes
        Content of a Parquet file.
    """

    name: str
    data: bytes

    @property
    def file(self) -> str:
        """Name of the file."""
        return f"{self.name}.parquet"

    def require_same(self, logged: bytes, run: object) -> None:
        """Refuse to replace the predictions that `run` has `logged` under this name by others.

        Equal tables may differ in bytes, as Parquet files name the program that wrote them. Raise InputError
        if the two tables differ.
        """
        if self.data != logged and not _are_equal(self.data, logged):
            raise InputError(
                f"run `{run}` holds other predictions as `{self.file}`, on which comparisons may depend",
                hint="log these to a new run, or under another name: `name='...'`.",
            )


def _are_equal(first: bytes, second: bytes) -> bool:
    try:
        return pl.read_parquet(io.BytesIO(first)).equals(pl.read_parquet(io.BytesIO(second)))
    except pl.exceptions.PolarsError:
        return False
