"""Representatives of a column: a few values that determine its type as all values do."""

from __future__ import annotations

import io
from collections.abc import Collection

import polars as pl

from trackperm.tables.named_frame import named_frame

_INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)  # int64 holds all of them
_PLAIN = (*_INTEGERS, pl.Boolean, pl.String)
_WITNESSED = (*_PLAIN, pl.UInt64, pl.Float32, pl.Float64, pl.Categorical, pl.Enum, pl.Null)
_DECIMAL_TEXT = r"^-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_DECIMAL = -3
_MOST_DIGITS = 25  # digits up to which the length of integers is distinguished; int64 has at most 19


def has_representatives(dtype: pl.DataType) -> bool:
    """Whether :func:`type_representatives` determine the type of a column of data type `dtype`."""
    if isinstance(dtype, pl.List):
        return dtype.inner in (*_PLAIN, pl.Float32, pl.Float64)
    return dtype.is_decimal() or dtype in _WITNESSED


def type_representatives(frame: pl.DataFrame, untyped: Collection[str] = ()) -> pl.DataFrame:
    """Return a few values of each column that determine its type as all its values do.

    They are the first value, the smallest and the largest number or text, the first number that is not
    integral, and the first list that is not empty. For columns in `untyped`, whose text may be numbers, they
    also include the smallest and the largest text of each kind (integers of each sign and length, decimals,
    NaN, infinities, and others), and the smallest, the largest and a fractional decimal. The concatenated
    representatives of all slices of a frame represent the frame.
    """
    columns = []
    for values in frame:
        present = (values.fill_nan(None) if values.dtype.is_float() else values).drop_nulls()
        found = [present.head(1)]
        if len(present) and (values.dtype.is_numeric() or values.dtype in (pl.String, pl.Boolean)):
            found += [pl.Series(values.name, [present.min(), present.max()], values.dtype)]
        if values.dtype.is_float() or values.dtype.is_decimal():
            found.append(present.filter(present != present.round()).head(1))
        if isinstance(values.dtype, pl.List):
            found.append(present.filter(present.list.len() > 0).head(1))
        if values.dtype == pl.String and values.name in untyped:
            found.append(_kinds_of_text(present))
        columns.append(pl.concat(found))
    n = max((len(column) for column in columns), default=0)
    return copied(named_frame(column.extend_constant(None, n - len(column)) for column in columns))


def _kinds_of_text(texts: pl.Series) -> pl.Series:
    """Return texts of each kind that matters for numbers: integers by sign and length, and others."""
    integers = texts.cast(pl.Int64, strict=False)
    if not integers.has_nulls() and (integers.cast(pl.String) == texts).all():
        # All are canonical integers of int64: the smallest and the largest determine the type.
        return pl.Series(texts.name, [integers.min(), integers.max()], pl.Int64).drop_nulls().cast(pl.String)
    text = pl.col("text")
    kinds = (
        texts.alias("text")
        .to_frame()
        .select(
            text,
            kind=pl.when(text.str.contains(r"^-?[0-9]+$"))
            .then(text.str.len_bytes().clip(0, _MOST_DIGITS).cast(pl.Int64) + text.str.starts_with("-") * 100)
            .when(text.str.contains(r"^[nN]a[nN]$"))
            .then(-1)
            .when(text.str.contains(r"^-?[iI]nf(?:inity)?$"))
            .then(-2)
            .when(text.str.contains(_DECIMAL_TEXT))
            .then(_DECIMAL)
            .otherwise(-4),
            zero=text.str.contains(r"^-?0[0-9]|^-0$"),
        )
    )
    ends = kinds.group_by("kind", "zero").agg(low=text.min(), high=text.max())
    decimals = kinds.filter(kind=_DECIMAL).select(text, number=text.cast(pl.Float64, strict=False))
    number = pl.col("number")
    # Texts are not in the order of their numbers, whose size and integrality decide between the types.
    chosen = [decimals.sort(number)["text"], decimals.filter(number != number.round())["text"]]
    parts = [ends["low"], ends["high"], chosen[0].head(1), chosen[0].tail(1), chosen[1].head(1)]
    return pl.concat(parts).alias(texts.name)


def copied(part: pl.DataFrame) -> pl.DataFrame:
    """Copy a part of a frame, so that it does not keep all texts of the frame in memory."""
    stream = io.BytesIO()
    part.write_ipc_stream(stream)
    stream.seek(0)
    return pl.read_ipc_stream(stream)
