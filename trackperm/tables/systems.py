"""Selection of one system from a table in which every system has a column."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import narwhals as nw
import polars as pl

from trackperm.errors import SourceError
from trackperm.messages import did_you_mean, listed
from trackperm.tables.json_values import member_names
from trackperm.tables.json_values import table as json_table
from trackperm.tables.lazy.scan import Scan
from trackperm.tables.named_frame import named_frame
from trackperm.tables.table import ExampleTable


def of_system(table: ExampleTable, system: str) -> ExampleTable:
    """Select one system from a table with a column for every system.

    The values of the column `system` become the columns ``prediction`` and ``score``; if they are objects,
    every member becomes a column under its own name. These replace columns of the same names. Raise
    SourceError if the table does not have the column.
    """
    if system not in table.columns:
        raise SourceError(
            f"`{table.origin}` has no column `{system}`",
            hint=f"it has {listed(table.columns)}.{did_you_mean(system, table.columns)}",
        )
    origin = f"{table.origin}::{system}"
    if isinstance(table.data, Scan):
        return _scanned(table, table.data, system, origin)
    members = _members(table.frame.get_column(system).to_polars(), origin)
    others = table.frame.drop(system, *(name for name in members.columns if name in table.columns))
    columns = [series.to_polars() for frame in (others, members.frame) for series in frame.iter_columns()]
    unusable = {name: why for name, why in table.unusable.items() if name in others.columns}
    return replace(
        table,
        data=nw.from_native(named_frame(columns), eager_only=True),
        origin=origin,
        unusable={**unusable, **members.unusable},
    )


def _scanned(table: ExampleTable, scan: Scan, system: str, origin: str) -> ExampleTable:
    """Select one system from a file without reading it."""
    dtype, column = scan.lazy.collect_schema()[system], pl.col(system)
    members = {"prediction": column, "score": column}
    if isinstance(dtype, pl.Struct):
        members = {field.name: column.struct.field(field.name) for field in dtype.fields}
    others = [name for name in table.columns if name != system and name not in members]
    lazy = scan.lazy.select(*others, *(value.alias(name) for name, value in members.items()))
    held = scan.held
    if held is not None:
        whole = held

        def held(names: Collection[str]) -> int:
            return whole({system if name in members else name for name in names})

    return replace(table, data=replace(scan, lazy=lazy, held=held, parquet=()), origin=origin)


def _members(values: pl.Series, origin: str) -> ExampleTable:
    if isinstance(values.dtype, pl.Struct):
        return ExampleTable(nw.from_native(values.struct.unnest(), eager_only=True), origin)
    objects = values.to_list() if values.dtype == pl.Object else []
    if objects and all(value is None or isinstance(value, Mapping) for value in objects):
        rows = [value or {} for value in objects]
        columns = {name: [row.get(name) for row in rows] for name in member_names(rows, origin)}
        return json_table(columns, lambda index: f"row {index}", origin)
    renamed = pl.DataFrame([values.alias("prediction"), values.alias("score")])
    return ExampleTable(nw.from_native(renamed, eager_only=True), origin)
