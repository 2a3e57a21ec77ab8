"""Check that the examples of two runs are in the same slices."""

from __future__ import annotations

from trackperm.choices import EngineName
from trackperm.errors import PairingError
from trackperm.pairing.internal_names import internal
from trackperm.pairing.joined import KEY, SIDES, with_key
from trackperm.pairing.pair import engine_for
from trackperm.tables.columns.types import typed_columns
from trackperm.tables.table import ExampleTable


def require_same_slices(
    tables: tuple[ExampleTable, ExampleTable],
    column: str,
    ids: tuple[str, ...],
    *,
    by_position: bool,
    engine: EngineName = "auto",
) -> None:
    """Refuse examples whose value in a column is not the same in all their rows; the message shows the first.

    `ids` are the columns of ids. If rows are matched by their order, the column is read into memory;
    otherwise `engine` joins rows by their ids. It raises InputTypeError if a column cannot be used, or its
    types in the two runs are not compatible.
    """
    if by_position:
        first, second, _ = typed_columns(*tables, [column], text=[column])
        sides = [side.frame.get_column(column).to_polars() for side in (first, second)]
        if len(sides[0]) == len(sides[1]):  # pairing refuses runs of different lengths
            places = sides[0].ne_missing(sides[1]).arg_true()
            if len(places):
                raise _differ(column, len(places), "", *(side[places[0]] for side in sides))
        return
    with engine_for(engine, tables, (*ids, column)) as chosen:
        f = chosen.functions
        frames, _ = chosen.typed(tables, (*ids, column), (*ids, column))
        values = [
            with_key(f, frame, ids).select(KEY, f.col(internal(column)).alias(side)).unique()
            for frame, side in zip(frames, SIDES, strict=True)
        ]
        for table, frame, side in zip(tables, values, SIDES, strict=True):
            several = frame.group_by(KEY).agg(f.len().alias("n"), f.col(side).max()).filter(f.col("n") > 1)
            n = int(chosen.collected(several.select(f.len())).item())
            if n:
                key, value = chosen.collected(several.sort(KEY).head(1).select(KEY, side)).row(0)
                raise PairingError(
                    f"column `{column}` has several values on the rows of {n:,} examples of `{table.origin}`:"
                    f" first of example {key!r}, such as {value!r}",
                    hint="a slice contains all rows of its examples; name a column whose value is the same in"
                    " all rows of an example.",
                )
        a, b = (f.col(side) for side in SIDES)
        differ = (a != b).fill_null(False) | (a.is_null() != b.is_null())
        found = values[0].join(values[1], on=KEY, how="inner").filter(differ)
        n = int(chosen.collected(found.select(f.col(KEY).n_unique())).item() or 0)
        if n:
            key, *both = chosen.collected(found.sort(KEY, *SIDES).head(1).select(KEY, *SIDES)).row(0)
            raise _differ(column, n, f" of example {key!r}", *both)


def _differ(column: str, n: int, where: str, first: object, second: object) -> PairingError:
    return PairingError(
        f"column `{column}` differs between the runs on {n:,} examples: first{where},"
        f" {first!r} in the baseline and {second!r} in the candidate",
        hint="slices belong to the examples and must be the same in both runs.",
    )
