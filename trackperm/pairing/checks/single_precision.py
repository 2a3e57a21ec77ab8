"""Numbers that differ between the runs only because one run stores them in single precision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import narwhals as nw
import numpy as np

from trackperm.tables.polars_code import rewriting, text_of, without_ending
from trackperm.tables.table import ExampleTable


def hint_on_single_precision(
    tables: Sequence[ExampleTable], name: str, cases: Iterable[Sequence[str]]
) -> str | None:
    """Return a hint with the cast that makes a column equal in both runs; None where no cast does.

    `cases` have an example and both values of it, as text.
    """
    are_single = [table.schema[name] == nw.Float32 for table in tables]
    if are_single.count(True) != 1:
        return None
    place = are_single.index(True)
    single, other = tables[place], tables[1 - place]
    try:
        values = [(np.float32(case[1 + place]), float(case[2 - place])) for case in cases]
    except ValueError:
        return None
    if not all(found == np.float32(value) for found, value in values):
        return None
    if all(float(str(found)) == value for found, value in values):
        run, change = single, "pl.col(pl.Float32).cast(pl.String).cast(pl.Float64)"
    else:
        run, change = other, f"pl.col({text_of(name)}).cast(pl.Float32).cast(pl.Float64)"
    code = rewriting(run.origin, f"with_columns({change})", f"{without_ending(run.origin)}-numbers")
    return (
        f"They are equal in the single precision (float32) of `{single.origin}`: `{code}` makes them equal."
    )
