"""Per-example predictions on their way into a tracker, the same for all of them."""

from __future__ import annotations

import io
from dataclasses import dataclass

import polars as pl

from trackperm.errors import InputError


@dataclass(frozen=True, eq=False)
class Predictions:
    """Per-example predictions that were checked, ready to be logged to a run.

    Attributes
    ----------
    name : str
        What they are called in the run: letters, digits and ``_ - .``.
    data : bytes
        The content of a Parquet file.
    """

    name: str
    data: bytes

    @property
    def file(self) -> str:
        """Name of the file."""
        return f"{self.name}.parquet"

    def require_same(self, logged: bytes, run: object) -> None:
        """Refuse to replace what `run` has `logged` under this name by something else.

        Equal tables may be different bytes, for Parquet files tell of the program that wrote them.

        Raises
        ------
        InputError
            If it is not the same table.
        """
        if self.data != logged and not _are_equal(self.data, logged):
            raise InputError(
                f"run `{run}` has logged something else as `{self.file}`, which comparisons may rest on",
                hint="log these to a run of their own, or under another name: `name='...'`.",
            )


def _are_equal(first: bytes, second: bytes) -> bool:
    try:
        return pl.read_parquet(io.BytesIO(first)).equals(pl.read_parquet(io.BytesIO(second)))
    except pl.exceptions.PolarsError:
        return False
