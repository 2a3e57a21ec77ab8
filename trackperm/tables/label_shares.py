"""Share of predictions that are labels, which tells classes from free text and decimals."""

from __future__ import annotations

import polars as pl


def share_of_labels(texts: pl.DataFrame) -> float:
    """Return the share of values of `prediction` that occur in the column `label`; 0 without any rows."""
    found = texts["prediction"].is_in(texts["label"].unique().implode())
    return int(found.sum()) / max(1, len(texts))
