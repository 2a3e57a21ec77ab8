"""Discordant examples: their counts differ between two runs. They are shown with the columns of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from operator import or_

import narwhals as nw
import polars as pl

from trackperm.pairing.classes import DIFFERS, counted_by_class
from trackperm.pairing.counting import count_of, counted
from trackperm.pairing.engines.base import Frame, Types
from trackperm.pairing.engines.in_memory import InMemory
from trackperm.pairing.grouping import STRATUM
from trackperm.pairing.joined import IN_TEST, SIDES, SIZE, JoinedRows, of
from trackperm.pairing.keyed_run import KEY
from trackperm.statistic import Outcome, Statistic
from trackperm.statistic.expressions.functions import Functions

MOST = 2**17
"""Most examples that are searched for discordant ones if the rows are not in memory.

They are brought into memory and counted there, so that their number is bounded.
"""

_SAMPLED = 2**14  # keys by which quantiles are estimated, to within about 1 %
_MARGIN = 1.5  # factor on the share of keys that is read, because the quantile is an estimate


def discordant_rows(
    rows: JoinedRows, frame: Frame, statistic: Statistic, *, has_values: bool
) -> pl.DataFrame:
    """Select the rows whose counts differ, ordered by id.

    Parameters
    ----------
    frame : narwhals.LazyFrame
        Rows with ``id``, the counts, :data:`~trackperm.pairing.classes.DIFFERS`, and columns of both runs.
    has_values : bool
        Whether a row is one example, so that its columns can be shown.
    """
    columns, f, schema = rows.columns, rows.functions, frame.collect_schema()
    counts = {f"{side}.{name}": (side, name) for name in statistic.count_names for side in SIDES}
    selected = {"id": f.col("id")}
    if has_values and columns.label is not None:
        selected["label"] = rows.example(columns.label)
    if STRATUM in schema:
        selected[STRATUM] = f.col(STRATUM)
    if has_values:
        values = {f"{side}.{name}": f.col(of(side, name)) for name in columns.of_runs for side in SIDES}
        selected |= {name: value for name, value in values.items() if name not in counts}
    units = {} if isinstance(statistic.resolution, Fraction) else statistic.resolution
    for column, (side, name) in counts.items():
        count = f.col(count_of(side, name))
        if STRATUM in schema and statistic.pair_term is not None:
            selected[column] = _real_by_stratum(f, count, name, statistic, units)
        else:
            selected[column] = _real(f, count, units[name]) if name in units else count
    differing = frame.filter(f.col(DIFFERS)).sort("id", *([STRATUM] if STRATUM in schema else []))
    names = {f"shown_{i}": name for i, name in enumerate(selected)}
    found = rows.engine.collected(
        differing.select(value.alias(name) for name, value in zip(names, selected.values(), strict=True))
    )
    return found.rename(names)


def few_discordant_rows(
    rows: JoinedRows, statistic: Statistic, types: Types, outcomes: tuple[Outcome, Outcome] | None
) -> pl.DataFrame:
    """Select, among the first :data:`MOST` rows by id whose columns differ, those whose counts differ."""
    columns, in_memory = rows.columns, InMemory()
    f = rows.functions
    conditions = [
        f.col(KEY).is_null(),  # never true: the only condition of a statistic that reads no column of runs
        *(
            (f.col(of("baseline", name)) != f.col(of("candidate", name))).fill_null(False)
            | (f.col(of("baseline", name)).is_null() != f.col(of("candidate", name)).is_null())
            for name in columns.of_runs
        ),
        # A missing prediction becomes a different outcome in each run.
        *(~rows.present(side, columns.of_runs) for side in SIDES if len({*(outcomes or ())}) > 1),
    ]
    first = _first(rows, reduce(or_, conditions)).with_columns(pl.lit(1, pl.Int64).alias(SIZE))
    few = in_memory.local(first)
    local = replace(rows, engine=in_memory, rows=few, frame=few)
    if statistic.has_classes:
        frame, _ = counted_by_class(local, statistic, types, outcomes)
    else:
        units = statistic.resolution if isinstance(statistic.resolution, Mapping) else {}
        frame = counted(local, few, statistic, types, outcomes, units=units).frame
        frame = frame.with_columns(differ(in_memory.functions, statistic).alias(DIFFERS))
    if columns.strata is not None:
        frame = frame.with_columns(
            local.example(columns.strata).cast(in_memory.functions.String).alias(STRATUM)
        )
    frame = frame.with_columns(in_memory.functions.col(KEY).alias("id"))
    return discordant_rows(local, frame, statistic, has_values=True)


def _first(rows: JoinedRows, changed: nw.Expr) -> pl.DataFrame:
    """Return the first rows on which a condition holds; if it holds often, only the first keys are joined."""
    engine, f = rows.engine, rows.functions
    n_changed = rows.counted(changed=f.col(IN_TEST) & changed)["changed"]
    share = _MARGIN * MOST / max(1, n_changed)
    if share < 1.0:
        keys = engine.collected(engine.sampled(rows.runs[0].frame.select(KEY), _SAMPLED))[KEY].sort()
        runs = rows.with_keys_up_to(keys[int(share * (len(keys) - 1))])
        found = engine.collected(runs.filter(f.col(IN_TEST) & changed).sort(*rows.keys).head(MOST))
        if len(found) == MOST:
            return found
    return engine.collected(rows.rows_in_test.filter(changed).sort(*rows.keys).head(MOST))


def differ(f: Functions, statistic: Statistic) -> nw.Expr:
    """Whether any count differs between the runs."""
    sides = [[f.col(count_of(side, name)) for side in SIDES] for name in statistic.count_names]
    return reduce(or_, (candidate != baseline for baseline, candidate in sides))


def _real_by_stratum(
    f: Functions, count: nw.Expr, name: str, statistic: Statistic, units: Mapping[str, Fraction]
) -> nw.Expr:
    """Convert integers whose units are those of their strata to decimals."""
    values = f.lit(None, f.Float64)
    for stratum in statistic.weights:
        real = _real(f, count, units[f"{name}[{stratum}]"])
        values = f.when(f.col(STRATUM) == f.lit(stratum)).then(real).otherwise(values)
    return values


def _real(f: Functions, count: nw.Expr, unit: Fraction) -> nw.Expr:
    """Convert integer multiples of a unit to decimals, rounded once if floats hold the unit's two parts."""
    values = count.cast(f.Float64)
    if max(unit.numerator, unit.denominator) < 2**53:
        return values * float(unit.numerator) / float(unit.denominator)
    return values * float(unit)
