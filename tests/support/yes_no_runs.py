"""Two runs of 40 examples with the labels yes and no, of which the second has fewer errors."""

from __future__ import annotations

import polars as pl

LABELS = ["yes", "no"] * 20


def run(wrong: range) -> pl.DataFrame:
    prediction = ["?" if i in wrong else LABELS[i] for i in range(40)]
    return pl.DataFrame({"id": range(40), "prediction": prediction, "label": LABELS})


OLD, NEW = run(range(14)), run(range(10, 16))
