"""Search for discordant examples among rows that are not in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from operator import or_

import narwhals as nw
import polars as pl

from trackperm.pairing.counts.classes import counted_by_class
from trackperm.pairing.counts.counting import DIFFERS, STRATUM, counted, differ, discordant_rows, label_counts
from trackperm.pairing.engines.base import Types
from trackperm.pairing.engines.in_memory import InMemory
from trackperm.pairing.joined import IN_TEST, KEY, SIDES, SIZE, JoinedRows, of
from trackperm.statistic import Outcome, Statistic
from trackperm.statistic.expressions.frames import Decimals

MOST = 2**17
"""Most examples that are searched for discordant ones if the rows are not in memory.

They are brought into memory and counted there, so that their number is bounded.
"""

_SAMPLED = 2**14  # keys by which quantiles are estimated, to within about 1 %
_MARGIN = 1.5  # factor on the share of keys that is read, because the quantile is an estimate


def few_discordant_rows(
    rows: JoinedRows,
    statistic: Statistic,
    types: Types,
    outcomes: tuple[Outcome, Outcome] | None,
    decimals: Mapping[str, Decimals],
) -> pl.DataFrame:
    """Select, among the first :data:`MOST` rows by id whose columns differ, those whose counts differ.

    `decimals` are the columns that are decimals on all rows, and `statistic` has the classes and units found
    there.
    """
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
    units = statistic.resolution if isinstance(statistic.resolution, Mapping) else {}
    if statistic.has_classes:
        frame, _ = counted_by_class(local, statistic, types, outcomes, decimals, units=units)
    else:
        labels = label_counts(rows, statistic)
        own = counted(local, few, statistic, types, outcomes, decimals=decimals, units=units, labels=labels)
        frame = own.frame
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
        run = max(rows.runs, key=lambda run: run.n_keyed)
        keys = engine.collected(engine.sampled(run.frame.select(KEY), _SAMPLED))[KEY].sort()
        runs = rows.with_keys_up_to(keys[int(share * (len(keys) - 1))])
        found = engine.collected(runs.filter(f.col(IN_TEST) & changed).sort(*rows.keys).head(MOST))
        if len(found) == MOST:
            return found
    return engine.collected(rows.rows_in_test.filter(changed).sort(*rows.keys).head(MOST))
