"""Values of examples from Python: lists, arrays, series, and mappings from ids to values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.errors import InputError, InputTypeError, PairingError
from trackperm.tables.lazy.query import first_line
from trackperm.tables.table import holds_values, is_arrow_array, to_polars


@dataclass(frozen=True)
class Values:
    """Values of the examples of a run, with their ids if they have any.

    Attributes
    ----------
    name : str
        Name of the argument in messages, such as ``y_true``.
    values : polars.Series
        One value for each example.
    ids : polars.Series or None
        Ids of the examples: keys of a mapping, or the index of a pandas series.
    is_keyed : bool
        Whether the values are a mapping, whose order means nothing.
    is_numbered : bool
        Whether the ids are the default index of pandas, 0, 1, 2 and so on.
    """

    name: str
    values: pl.Series
    ids: pl.Series | None = None
    is_keyed: bool = False
    is_numbered: bool = False

    @classmethod
    def of(cls, given: Any, name: str, *, lists: bool = False) -> Values:
        """Read one argument; with `lists`, an array may have a row of several values for each example.

        Raises
        ------
        InputTypeError
            If it holds no values of examples, or values of several types.
        InputError
            If it has more than one dimension.
        """
        if isinstance(given, Mapping):
            ids = _column(list(given), f"keys of `{name}`")
            return cls(name, _column(list(given.values()), f"`{name}`"), ids, is_keyed=True)
        if nw.dependencies.is_pandas_series(given):
            return cls._of_pandas(given, name)
        if is_arrow_array(given):
            import pyarrow as pa

            given = pa.chunked_array([given])
        if nw.dependencies.is_into_series(given):
            return cls(name, to_polars(nw.from_native(given, series_only=True), f"`{name}`"))
        if isinstance(given, list | tuple | range):
            return cls(name, _column(list(given), f"`{name}`"))
        if not holds_values(given):
            raise InputTypeError(
                f"`{name}` is of type `{type(given).__name__}`; expected an array, a series, a list, or a"
                " mapping from ids to values"
            )
        return cls(name, _of_array(given, name, lists=lists))

    @classmethod
    def _of_pandas(cls, series: Any, name: str) -> Values:
        values = to_polars(nw.from_native(series, series_only=True), f"`{name}`")
        index = series.index
        if index.nlevels > 1:
            raise InputTypeError(
                f"`{name}` has an index of {index.nlevels} levels; expected one level of ids",
                hint="`series.reset_index(drop=True)` removes it.",
            )
        ids = to_polars(nw.from_native(index.to_series(), series_only=True), f"index of `{name}`")
        is_numbered = ids.dtype.is_integer() and bool((ids == pl.arange(len(ids), eager=True)).all())
        return cls(name, values, ids, is_numbered=is_numbered)

    def __len__(self) -> int:
        return len(self.values)


def _of_array(array: Any, name: str, *, lists: bool) -> pl.Series:
    """Convert an array of NumPy, or of a library whose arrays convert to NumPy, such as a tensor."""
    import numpy as np

    try:
        converted = np.asarray(array)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputTypeError(
            f"`{name}` cannot be converted to a NumPy array: {error}",
            hint="for a tensor, `y.detach().cpu().numpy()`.",
        ) from error
    if np.ma.isMaskedArray(array) and np.ma.getmaskarray(array).any():
        return _column(array.tolist(), f"`{name}`")
    if lists and converted.ndim == 2:
        return _column(converted.tolist(), f"`{name}`")
    if converted.ndim != 1:
        raise InputError(
            f"`{name}` has the shape {converted.shape}; expected one value for each example",
            hint="`y.ravel()` of a single column, or `scores.argmax(axis=1)` of scores of classes.",
        )
    return _column(converted.tolist() if converted.dtype.kind in "OUSM" else converted, f"`{name}`")


def _column(values: Any, where: str) -> pl.Series:
    """Make a column of values of one type."""
    try:
        column = pl.Series("", values, strict=True)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise InputTypeError(
            f"{where} mixes values of several types: {first_line(error)}",
            hint="give every value the same type.",
        ) from error
    if column.dtype == pl.Object:
        first = next((value for value in values if value is not None), None)
        raise InputTypeError(f"{where} has values of type `{type(first).__name__}`; expected numbers or text")
    return column


def paired_by_ids(given: Sequence[Values]) -> bool:
    """Whether the values are paired by their ids, or else by their positions.

    By ids, if all have ids; by position, if none has, or all have the default index of pandas. Arrays beside
    series of pandas are paired by position, if all indexes are equal.

    Raises
    ------
    PairingError
        If ids are not enough to pair the values, or contradict their positions.
    InputError
        If values that are paired by position differ in number.
    """
    with_ids = [each for each in given if each.ids is not None]
    if len(with_ids) == len(given) and not all(each.is_numbered for each in given):
        return True
    keyed, without = (
        [each for each in with_ids if each.is_keyed],
        [each for each in given if each.ids is None],
    )
    if keyed and without:
        raise PairingError(
            f"`{keyed[0].name}` has ids and `{without[0].name}` has none",
            hint="give all of them ids, or none.",
        )
    first = with_ids[0] if with_ids else given[0]
    for each in given:
        if len(each) != len(first):
            raise InputError(
                f"`{first.name}` has {len(first):,} values and `{each.name}` has {len(each):,}; expected"
                " equal numbers, as they are paired by position",
                hint="mappings, and series of pandas with ids as their index, are paired by id.",
            )
    for each in with_ids[1:]:
        if first.ids is None or each.ids is None or not _equal(first.ids, each.ids):
            raise PairingError(
                f"the indexes of `{first.name}` and `{each.name}` differ, and `{without[0].name}` has none",
                hint="to pair all by position, pass arrays: `series.to_numpy()`.",
            )
    return False


def _equal(first: pl.Series, second: pl.Series) -> bool:
    return first.dtype == second.dtype and bool(first.rename("").equals(second.rename("")))
