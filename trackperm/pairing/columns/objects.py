"""Refuse columns of objects, such as `{"total": 10, "tax": 0}`, that the statistic does not read by name.

Objects of numbers become JSON text, in which the order of names counts although objects have none. Only
statistics of probabilities by class, or of grades by item, read them by name.
"""

from __future__ import annotations

from collections.abc import Iterable

import narwhals as nw

from trackperm.errors import InputTypeError
from trackperm.statistic import Statistic
from trackperm.tables.columns.nested_fields import fields_of, named_fields
from trackperm.tables.columns.types import unusable
from trackperm.tables.table import ExampleTable


def require_no_objects(columns: Iterable[tuple[ExampleTable, str]], statistic: Statistic) -> None:
    """Refuse columns of objects, except for objects in JSON files that the statistic reads by name.

    Columns with values of other types that cannot be used are refused where they are read.

    Raises
    ------
    InputTypeError
        If a column has objects; the hint says how they become columns.
    """
    for table, name in columns:
        is_struct = isinstance(table.schema[name], nw.Struct)
        is_json = name in table.unusable and unusable(table, name) is None
        is_read = name in statistic.object_columns
        if not is_struct and (is_read or not is_json):
            continue
        fields = named_fields(table, [name])
        if is_read:
            is_by_class = name in map(statistic.columns.get, statistic.names_by_class)
            classes = ",".join(fields_of(table, name))
            chosen = f"; `--set labels={classes}` then names the classes" if is_by_class else ""
            problem = f"`{statistic.name}` reads such objects in JSON files alone"
            hint = f"{fields}{chosen}."
        else:
            problem = f"`{statistic.name}` does not read objects"
            written = "or write each object as text, with its names in one order"
            hint = f"{fields}; {written}." if fields else f"{written.removeprefix('or ')}."
        raise InputTypeError(f"column `{name}` of `{table.origin}` holds objects: {problem}", hint=hint)
