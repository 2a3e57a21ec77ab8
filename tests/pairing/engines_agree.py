"""Pairing in memory and by another engine, whose results are the same to the byte."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl

from trackperm.choices import EngineName
from trackperm.errors import TrackpermError
from trackperm.pairing import PairedRuns, Pairing
from trackperm.pairing.pair import pair, pair_in_memory
from trackperm.statistic import Statistic
from trackperm.tables.table import ExampleTable


def pair_alike(
    baseline: ExampleTable,
    candidate: ExampleTable,
    statistic: Statistic,
    *,
    engine: EngineName,
    **options: Any,
) -> Pairing:
    """Pair two runs in memory, and by another engine where it can: same result, or same refusal."""

    def outcome(way: Callable[..., PairedRuns], **more: Any) -> PairedRuns | TrackpermError:
        try:
            return way(baseline, candidate, statistic, **options, **more)
        except TrackpermError as error:
            return error

    whole = outcome(pair_in_memory)
    can = not options.get("by_position") and all(
        table.has_witnesses(table.columns) and len(table) for table in (baseline, candidate)
    )
    if can:
        found = outcome(pair, engine=engine)
        if isinstance(whole, TrackpermError):
            assert isinstance(found, TrackpermError)
            assert (type(found), found.message, found.hint) == (type(whole), whole.message, whole.hint)
        else:
            if isinstance(found, TrackpermError):
                raise found
            assert_same(found, whole)
    if isinstance(whole, TrackpermError):
        raise whole
    assert isinstance(whole, Pairing)
    return whole


def assert_same(found: PairedRuns, expected: PairedRuns) -> None:
    """Compare all that results say of two runs; only in memory are predictions read that no count reads."""
    report = expected.report
    if expected.statistic.columns.get("prediction", "prediction") not in expected.statistic.used_columns:
        assert found.report.n_changed in (None, report.n_changed)
        report = replace(report, n_changed=found.report.n_changed)
    assert found.report == report
    assert found.statistic.document() == expected.statistic.document()
    tables = found.count_table, expected.count_table
    assert tables[0].names == tables[1].names
    for part in ("candidate", "baseline", "multiplicities"):
        first, second = (getattr(table, part) for table in tables)
        assert first.dtype == second.dtype
        assert first.tolist() == second.tolist()
    frames = [pl.DataFrame(pairing.discordant.to_native()) for pairing in (found, expected)]
    assert frames[0].schema == frames[1].schema
    assert frames[0].equals(frames[1])
