"""Examples whose counts differ between two runs, with what the statistic read of both."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import narwhals as nw

from trackperm.pairing.classes import DIFFERS
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.counting import count_of
from trackperm.pairing.engines.base import Engine, Frame
from trackperm.pairing.grouping import STRATUM
from trackperm.pairing.joined import SIDES, example, of
from trackperm.statistic import Statistic

MOST = 2**17
"""Examples that are shown, the first by their ids, where the rows are not in memory."""


def discordant_rows(
    engine: Engine, frame: Frame, columns: PairedColumns, statistic: Statistic, *, has_values: bool
) -> nw.DataFrame[Any]:
    """Select the rows that differ, ordered by id.

    Parameters
    ----------
    frame : narwhals.LazyFrame
        ``id``, the counts, whether they differ, and the columns of both runs.
    has_values : bool
        Whether rows are examples, of which columns can be shown.
    """
    schema = frame.collect_schema()
    counts = {f"{side}.{name}": (side, name) for name in statistic.count_names for side in SIDES}
    selected = {"id": nw.col("id")}
    if has_values and columns.label is not None:
        selected["label"] = example(columns.label)
    if STRATUM in schema:
        selected[STRATUM] = nw.col(STRATUM)
    if has_values:
        values = {f"{side}.{name}": nw.col(of(side, name)) for name in columns.of_runs for side in SIDES}
        selected |= {name: value for name, value in values.items() if name not in counts}
    units = {} if isinstance(statistic.resolution, Fraction) else statistic.resolution
    for column, (side, name) in counts.items():
        count = nw.col(count_of(side, name))
        selected[column] = _real(count, units[name]) if name in units else count
    rows = frame.filter(nw.col(DIFFERS)).sort("id", *([STRATUM] if STRATUM in schema else []))
    if not engine.is_local:
        rows = rows.head(MOST)
    names = {f"shown_{i}": name for i, name in enumerate(selected)}
    found = engine.collected(rows.select(value.alias(name) for name, value in zip(names, selected.values(), strict=True)))
    return nw.from_native(found.rename(names), eager_only=True)


def _real(count: nw.Expr, unit: Fraction) -> nw.Expr:
    """Give integers of a unit as decimals, rounded once where floats hold both parts of it."""
    values = count.cast(nw.Float64)
    if max(unit.numerator, unit.denominator) < 2**53:
        return values * float(unit.numerator) / float(unit.denominator)
    return values * float(unit)
