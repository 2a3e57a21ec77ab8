"""Columns of pandas that PyArrow does not convert quietly: sparse ones, and times of a zone."""

from __future__ import annotations

from typing import Any

import narwhals as nw


def convertible_frame(frame: Any) -> Any:
    """Return a data frame of pandas whose columns all convert to PyArrow; the given one stays as it is."""
    kinds = {name: _kind(dtype) for name, dtype in frame.dtypes.items()}
    return frame.assign(**{name: convertible_series(frame[name]) for name, kind in kinds.items() if kind})


def convertible_series(series: Any) -> Any:
    """Return a series of pandas that converts to PyArrow, with the same values."""
    kind = _kind(series.dtype)
    if kind == "SparseDtype":
        return series.sparse.to_dense()
    if kind == "DatetimeTZDtype":
        import pyarrow as pa

        pandas: Any = nw.dependencies.get_pandas()
        times = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return times.astype(pandas.ArrowDtype(pa.timestamp("ns", "UTC")))
    return series


def _kind(dtype: object) -> str:
    """Return the name of a type that has to be converted first; empty for other types."""
    name = type(dtype).__name__
    return name if name in ("SparseDtype", "DatetimeTZDtype") else ""
