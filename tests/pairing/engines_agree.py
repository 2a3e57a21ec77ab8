"""Pairing in memory, by single and by grouped rows, and on another engine has the same result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from trackperm.choices import EngineName
from trackperm.errors import TrackpermError
from trackperm.pairing import Pairing, PairingResult, joined
from trackperm.pairing.pair import pair, pair_in_memory
from trackperm.statistic import Statistic
from trackperm.statistic.written_spec import written_spec
from trackperm.tables.table import ExampleTable


def pair_both_ways(
    baseline: ExampleTable,
    candidate: ExampleTable,
    statistic: Statistic,
    *,
    engine: EngineName,
    **options: Any,
) -> Pairing:
    """Pair two runs in memory in both ways, and by another engine where it can: same result or refusal."""

    def outcome(way: Callable[..., PairingResult], **more: Any) -> PairingResult | TrackpermError:
        try:
            return way(baseline, candidate, statistic, **options, **more)
        except TrackpermError as error:
            return error

    whole = outcome(pair_in_memory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joined, "_FEW", 0)
        patch.setattr(joined, "_FIRST", 2**30)
        require_same(outcome(pair_in_memory), whole)
    can = not options.get("by_position") and all(
        table.has_representatives(table.columns) and len(table) for table in (baseline, candidate)
    )
    if can:
        require_same(outcome(pair, engine=engine), whole)
    if isinstance(whole, TrackpermError):
        raise whole
    assert isinstance(whole, Pairing)
    return whole


def require_same(found: PairingResult | TrackpermError, expected: PairingResult | TrackpermError) -> None:
    """Compare two results, or two refusals."""
    if isinstance(expected, TrackpermError):
        assert isinstance(found, TrackpermError)
        refusals = [(type(error), error.message, error.hint) for error in (found, expected)]
        assert refusals[0] == refusals[1]
        return
    if isinstance(found, TrackpermError):
        raise found
    assert_same(found, expected)
    if isinstance(found, Pairing) and isinstance(expected, Pairing):
        frames = [each.counts.frame for each in (found, expected)]
        assert frames[0].equals(frames[1])
        units = [each.by_unit() for each in (found, expected)]
        for part in ("candidate", "baseline"):
            counts = [getattr(each, part)[each.rows] for each in units]
            assert counts[0].tolist() == counts[1].tolist()


def assert_same(found: PairingResult, expected: PairingResult) -> None:
    """Compare all that results say of two runs; only in memory are predictions read that no count reads."""
    report = expected.report
    if expected.statistic.columns.get("prediction", "prediction") not in expected.statistic.used_columns:
        assert found.report.n_changed in (None, report.n_changed)
        report = replace(report, n_changed=found.report.n_changed)
    assert found.report == report
    assert written_spec(found.statistic) == written_spec(expected.statistic)
    tables = found.count_table, expected.count_table
    assert tables[0].names == tables[1].names
    for part in ("candidate", "baseline", "multiplicities"):
        first, second = (getattr(table, part) for table in tables)
        assert first.dtype == second.dtype
        assert first.tolist() == second.tolist()
    frames = [pairing.discordant for pairing in (found, expected)]
    assert frames[0].schema == frames[1].schema
    assert frames[0].equals(frames[1])
