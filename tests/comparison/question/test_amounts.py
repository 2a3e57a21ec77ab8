"""Whole numbers that are amounts, such as forecasts, are compared by accuracy only with a caution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from support.questions import the_one

N = 200


def classes(rng: np.random.Generator, n: int, right: float) -> list[int]:
    truth = np.arange(N) % n
    return np.where(rng.random(N) < right, truth, rng.integers(0, n, N)).tolist()


def amounts(rng: np.random.Generator) -> list[int]:
    return (np.arange(N) % 60 + rng.integers(-9, 10, N)).tolist()


@pytest.mark.parametrize(
    ("n_values", "predicted", "is_cautioned"),
    [
        (60, amounts, True),
        (5, lambda rng: np.clip(np.arange(N) % 5 + rng.integers(-1, 2, N), 0, 4).tolist(), False),
        (60, lambda rng: classes(rng, 60, 0.2), False),
        (60, lambda rng: np.where(rng.random(N) < 0.7, np.arange(N) % 60, amounts(rng)).tolist(), False),
    ],
    ids=["amounts", "ratings", "weak classes", "classes by taxonomy"],
)
def test_amounts(
    n_values: int, predicted: Callable[[np.random.Generator], list[int]], is_cautioned: bool
) -> None:
    rng = np.random.default_rng(5)
    labels = (np.arange(N) % n_values).tolist()
    runs = [pl.DataFrame({"id": range(N), "label": labels, "prediction": predicted(rng)}) for _ in range(2)]
    statistic = the_one(*runs)
    assert statistic.name == "accuracy"
    assert ["`--statistic mae`" in note for note in statistic.found] == [True] * is_cautioned
