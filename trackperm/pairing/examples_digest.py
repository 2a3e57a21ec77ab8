"""Digest of a test set: which examples two runs were evaluated on, whatever they predicted."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.digest import DigestOfParts, digest
from trackperm.pairing.frame_file import FrameFile, Place
from trackperm.pairing.keyed_run import KEY, KeyedRun
from trackperm.tables.column_types import ColumnType

_INTEGER_TEXT = r"^(?:0|-?[1-9][0-9]{0,17})$"
_LARGEST_WHOLE = 2.0**53
_TYPES = {pl.Int64: ColumnType.INTEGER, pl.Float64: ColumnType.DECIMAL, pl.String: ColumnType.TEXT}


def digest_of_test_set(runs: tuple[KeyedRun, KeyedRun], columns: PairedColumns) -> str:
    """SHA-256 of the examples that either run has: their ids, and their labels where these were checked.

    Where labels were not checked, the columns that tell of an example's input stand in for them. Predictions,
    the statistic, the order of rows, the names of the columns, the runs' order and what is done with missing
    examples do not enter; nor does whether integers were logged as integers, as text or as whole decimals.
    All rows of one id are one example. By position, the number of the row is its id.

    Parameters
    ----------
    runs : (KeyedRun, KeyedRun)
        The two runs, before any example is left out; they agree in the label of every example of both.
    columns : PairedColumns
        Which columns these are.
    """
    return _digest(_examples(runs, _names(columns)))


class TestSetOfParts:
    """The same digest of examples that come in parts, in ascending order of their keys.

    Parameters
    ----------
    columns : PairedColumns
        As of :func:`digest_of_test_set`.
    files : ExitStack
        Closes the temporary file of what is to be kept.
    """

    def __init__(self, columns: PairedColumns, files: ExitStack) -> None:
        self._names = _names(columns)
        self._files = files
        self._parts, self._places = FrameFile(files), list[Place]()
        self._are_integers = dict.fromkeys((KEY, *self._names), True)
        self._is_text = True

    def add(self, runs: tuple[KeyedRun, KeyedRun]) -> None:
        """Add examples whose keys follow those before."""
        frame = _examples(runs, self._names)
        self._is_text = frame.schema[KEY] == pl.String
        for name, is_integer in self._are_integers.items():
            self._are_integers[name] = is_integer and _canonical(frame[name]).dtype == pl.Int64
        self._places.append(self._parts.write(frame))

    def hexdigest(self) -> str:
        """Return the digest of all examples."""
        frames = (self._parts.read(place) for place in self._places)
        if self._is_text and self._are_integers[KEY]:
            return _digest(pl.concat(frames))  # in the order of integers, which is not that of text
        written: DigestOfParts | None = None
        for frame in frames:
            values = [
                frame[name].cast(pl.Int64) if is_integer else frame[name]
                for name, is_integer in self._are_integers.items()
            ]
            typed, types = _numbered(values)
            written = written or DigestOfParts(types, self._files)
            written.add(typed)
        assert written is not None  # noqa: S101
        return _of_test_set(written.hexdigest())


def _names(columns: PairedColumns) -> tuple[str, ...]:
    return (columns.label,) if columns.label is not None else tuple(sorted(columns.identity))


def _digest(frame: pl.DataFrame) -> str:
    typed = [_canonical(values) for values in frame.iter_columns()]
    if not typed[0].is_sorted():
        order = typed[0].arg_sort()
        typed = [values.gather(order) for values in typed]
    return _of_test_set(digest(*_numbered(typed)))


def _numbered(columns: Sequence[pl.Series]) -> tuple[nw.DataFrame[Any], dict[str, ColumnType]]:
    """Name columns by their places, for those of different formats have different names."""
    named = {f"{i:03d}": values for i, values in enumerate(columns)}
    types = {name: _type(values) for name, values in named.items()}
    return nw.from_native(pl.DataFrame(named), eager_only=True), types


def _of_test_set(written: str) -> str:
    return hashlib.sha256(f"test set {written}".encode()).hexdigest()


def _examples(runs: tuple[KeyedRun, KeyedRun], names: Sequence[str]) -> pl.DataFrame:
    """One row for every id of either run; a value that one run lacks is taken from the other."""
    first, second = (run.frame.select(KEY, *names).to_polars() for run in runs)
    if first.height == second.height and first[KEY].equals(second[KEY]):
        frame = first.with_columns(
            first[name].fill_null(second[name]) if first[name].null_count() else first[name] for name in names
        )
        if not (frame[KEY][1:] == frame[KEY][:-1]).any():
            return frame
    else:
        frame = pl.concat([first, second])
    return frame.group_by(KEY).agg(_one_of(frame, name) for name in names).sort(KEY)


def _one_of(frame: pl.DataFrame, name: str) -> pl.Expr:
    """Take the least value of an id whose rows differ in it; lists have no order."""
    values = pl.col(name).drop_nulls()
    return values.first() if isinstance(frame.schema[name], pl.List) else values.min()


def _canonical(series: nw.Series[Any] | pl.Series) -> pl.Series:
    """Integers where all values are such, however they are written; else decimals, text or lists."""
    values = series if isinstance(series, pl.Series) else series.to_polars()
    if values.dtype == pl.Boolean or values.dtype.is_integer():
        return values.cast(pl.Int64)
    if values.dtype == pl.Float64:
        whole = values.drop_nulls().to_numpy()
        if (np.abs(whole) < _LARGEST_WHOLE).all() and (whole == np.floor(whole)).all():
            return values.cast(pl.Int64)
    if values.dtype == pl.String and values.str.contains(_INTEGER_TEXT).all():
        return values.cast(pl.Int64)
    return values


def _type(values: pl.Series) -> ColumnType:
    if isinstance(values.dtype, pl.List):
        return ColumnType.TEXT_LIST if values.dtype.inner == pl.String else ColumnType.INTEGER_LIST
    return _TYPES[type(values.dtype)]
