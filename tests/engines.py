"""The same table in every data frame library that tests know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa

ENGINES = ("polars", "pandas", "pandas nullable", "pandas pyarrow", "pandas object", "pyarrow")


def frame(engine: str, data: Mapping[str, Sequence[Any]]) -> nw.DataFrame[Any]:
    """`data` as a table of `engine`; values without a common type give an object column in pandas."""
    if engine == "polars":
        return nw.from_native(pl.DataFrame(data))
    if engine == "pyarrow":
        return nw.from_native(pa.table(dict(data)))
    table = pd.DataFrame(data)
    if engine == "pandas nullable":
        nullable = {"int64": "Int64", "float64": "Float64", "bool": "boolean"}
        table = table.astype(
            {name: nullable.get(str(dtype), "string") for name, dtype in table.dtypes.items()}
        )
    elif engine == "pandas pyarrow":
        table = pa.table(dict(data)).to_pandas(types_mapper=pd.ArrowDtype)
    elif engine == "pandas object":
        table = table.astype(object)
    return nw.from_native(table)
