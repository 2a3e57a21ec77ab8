"""Pairing in memory and in buckets of a few rows, which has to come to the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import polars as pl

from trackperm.errors import TrackpermError
from trackperm.pairing import PairedRuns, Pairing, paired
from trackperm.pairing.large import buckets
from trackperm.pairing.pair import pair
from trackperm.statistic import Statistic
from trackperm.tables.table import ExampleTable

N_BUCKETS = 4


def paired_in_buckets(
    baseline: ExampleTable, candidate: ExampleTable, statistic: Statistic, **options: Any
) -> PairedRuns:
    """Two runs paired in about four buckets, or in memory where buckets do not add up."""
    row_bytes = 80  # about
    size = row_bytes * max(len(baseline), len(candidate)) // N_BUCKETS
    with patch.multiple(buckets, IN_MEMORY=-1, BUCKET=size):
        return paired(baseline, candidate, statistic, **options)


def pair_both_ways(
    baseline: ExampleTable, candidate: ExampleTable, statistic: Statistic, **options: Any
) -> Pairing:
    """Two runs paired in memory, which in buckets come to the same or are refused in the same words."""

    def outcome(way: Callable[..., PairedRuns]) -> PairedRuns | TrackpermError:
        try:
            return way(baseline, candidate, statistic, **options)
        except TrackpermError as error:
            return error

    whole, parts = outcome(pair), outcome(paired_in_buckets)
    if isinstance(whole, TrackpermError):
        assert isinstance(parts, TrackpermError)
        assert (type(parts), parts.message, parts.hint) == (type(whole), whole.message, whole.hint)
        raise whole
    assert isinstance(parts, PairedRuns)
    assert_same(parts, whole)
    assert isinstance(whole, Pairing)
    return whole


def assert_same(found: PairedRuns, expected: PairedRuns) -> None:
    """All that a result tells of two runs is the same; predictions that are not read are not in buckets."""
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
