"""Tests whether text columns of predictions and labels hold classes, rather than free text or decimals."""

from __future__ import annotations

import polars as pl

_CLASSES = 0.8
"""Least share of predictions that are labels, in columns of classes."""


def are_classes(texts: pl.DataFrame) -> bool:
    """Whether most predictions are among the labels, and at most half of the labels are distinct."""
    return 2 * texts["label"].n_unique() <= len(texts) and share_of_labels(texts) >= _CLASSES


def share_of_labels(texts: pl.DataFrame) -> float:
    """Return the share of values of `prediction` that are in the column `label`; 0 without any rows."""
    found = texts["prediction"].is_in(texts["label"].unique().implode())
    return int(found.sum()) / max(1, len(texts))
