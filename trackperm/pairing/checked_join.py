"""Join of two runs, which refuses ids that repeat: every example has one row, or as many as are allowed."""

from __future__ import annotations

from trackperm.choices import Missing
from trackperm.errors import PairingError
from trackperm.pairing.checks.differences import (
    ids_of,
    require_distinct_ids,
    require_same_length,
    require_unique_ids,
)
from trackperm.pairing.columns.roles import PairedColumns
from trackperm.pairing.counts.repeats import require_equal_rows
from trackperm.pairing.engines.base import Engine, Types
from trackperm.pairing.joined import KEY, SIDES, JoinedRows, KeyedRun, has_beyond_ascii

_SAMPLED = 2**16
"""Size of the sample of ids in which equal ids are sought, if the engine does not count them exactly.

A sample of m of n ids, of which k pairs are equal, contains none of these pairs with probability
exp(-k m^2 / n^2). Among 10^9 ids, 7 * 10^8 equal pairs, which a join turns into as many rows, are missed once
in twenty times.
"""


def joined_runs(
    engine: Engine,
    runs: tuple[KeyedRun, KeyedRun],
    columns: PairedColumns,
    types: Types,
    missing: Missing,
) -> JoinedRows:
    """Join two runs, and prove that every example has one row, or as many as the statistic allows.

    Ids that repeat often are refused before the join, which would multiply their rows. Repeats that the
    sample missed are found after the join: it has more rows than the runs.

    Raises
    ------
    PairingError
        If an example has more rows than the statistic allows.
    """
    if columns.id is None:
        require_same_length(*runs)
    elif not columns.repeats and any(_some_repeat(engine, run) for run in runs):
        _require_unique_ids(engine, runs, columns)
    for run in runs:
        if columns.id is not None and has_beyond_ascii(engine, run):
            require_distinct_ids(engine, run, columns.id)
    rows = JoinedRows.of(engine, runs, columns, types, missing)
    if columns.repeats:
        require_equal_rows(rows)
    elif columns.id is not None and not engine.is_local:
        f, alone = rows.functions, rows.keyed("baseline") != rows.keyed("candidate")
        n = rows.counted(alone=alone, **{side: rows.there(side) for side in SIDES})
        repeated = rows.rows.filter(alone).group_by(KEY).agg(f.len().alias("n")).filter(f.col("n") > 1)
        is_repeated = any(n[side] != run.n_keyed for side, run in zip(SIDES, runs, strict=True))
        if is_repeated or (n["alone"] and len(engine.collected(repeated.head(1)))):
            _require_unique_ids(engine, runs, columns)
        changed = [run.origin for side, run in zip(SIDES, runs, strict=True) if n[side] != run.n_keyed]
        if changed:
            raise PairingError(
                f"`{changed[0]}` does not have the same rows each time it is read",
                hint="a sample, or a limit without an order, changes with every read: write the table to a"
                " file.",
            )
    return rows


def _require_unique_ids(engine: Engine, runs: tuple[KeyedRun, KeyedRun], columns: PairedColumns) -> None:
    found = [ids_of(engine, run, columns.ids) for run in runs]
    require_unique_ids(found, str(columns.id), [run.table for run in runs])


def _some_repeat(engine: Engine, run: KeyedRun) -> bool:
    """Whether several rows have the same id; in memory all ids are checked, in other engines a sample."""
    if engine.is_local:
        return engine.n_distinct(run.frame, KEY) < run.n_keyed
    f, ids = engine.functions, engine.sampled(run.frame.select(KEY), _SAMPLED)
    repeated = ids.group_by(KEY).agg(f.len().alias("n")).filter(f.col("n") > 1)
    return len(engine.collected(repeated.head(1))) > 0
