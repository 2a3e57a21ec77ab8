"""Runs of equal quality on examples of documents, each of which suits one run or the other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

Integers = npt.NDArray[np.int64]


def documents(k: int = 40, size: int = 10) -> Integers:
    return np.repeat(np.arange(k), size)


def sides(
    rng: np.random.Generator, document: Integers, effect: float, *, better: float = 0.0
) -> list[pl.DataFrame]:
    """Two runs of equal quality, each of which some documents suit more than others, by `effect`."""
    n, k = document.size, int(document.max()) + 1
    label = rng.integers(0, 2, n)
    common = rng.normal(0.8, 1.0, n)
    frames = []
    for shift in (0.0, better):
        answered = common + shift + effect * rng.normal(size=k)[document] + rng.normal(size=n) > 0
        frames.append(
            pl.DataFrame(
                {
                    "id": np.arange(n),
                    "document": document,
                    "label": label,
                    "prediction": np.where(answered, label, 1 - label),
                }
            )
        )
    return frames
