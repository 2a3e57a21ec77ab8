"""Frame of one comparison: its columns and their types, which do not depend on the result."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

TYPES: Mapping[str, type[pl.DataType]] = {
    "statistic": pl.String,
    "baseline": pl.String,
    "candidate": pl.String,
    "baseline_score": pl.Float64,
    "candidate_score": pl.Float64,
    "difference": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "p_value": pl.Float64,
    "adjusted_p": pl.Float64,
    "equivalence_p": pl.Float64,
    "equivalence_power": pl.Float64,
    "verdict": pl.String,
    "n_examples": pl.Int64,
    "n_discordant": pl.Int64,
    "n_better": pl.Int64,
    "n_worse": pl.Int64,
    "signature": pl.String,
}
"""Columns in order."""


def one_row(values: Mapping[str, object]) -> pl.DataFrame:
    """Return a frame with one row of `values`, which has all columns of :data:`TYPES`."""
    return pl.DataFrame([values], schema=dict(TYPES))
