"""Whole numbers that are amounts, such as forecasts, are compared by accuracy only with a caution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from support.questions import the_one

RNG = np.random.default_rng(5)
N = 200


def classes(n: int, right: float) -> list[int]:
    truth = np.arange(N) % n
    return np.where(RNG.random(N) < right, truth, RNG.integers(0, n, N)).tolist()


def amounts(noise: int) -> list[int]:
    return (np.arange(N) % 60 + RNG.integers(-noise, noise + 1, N)).tolist()


@pytest.mark.parametrize(
    ("n_values", "predicted", "is_cautioned"),
    [
        (60, lambda: amounts(9), True),
        (5, lambda: np.clip(np.arange(N) % 5 + RNG.integers(-1, 2, N), 0, 4).tolist(), False),
        (60, lambda: classes(60, 0.2), False),
        (60, lambda: np.where(RNG.random(N) < 0.7, np.arange(N) % 60, amounts(9)).tolist(), False),
    ],
    ids=["amounts", "ratings", "weak classes", "classes by taxonomy"],
)
def test_amounts(n_values: int, predicted: Callable[[], list[int]], is_cautioned: bool) -> None:
    labels = (np.arange(N) % n_values).tolist()
    runs = [pl.DataFrame({"id": range(N), "label": labels, "prediction": predicted()}) for _ in range(2)]
    statistic = the_one(*runs)
    assert statistic.name == "accuracy"
    assert ["`--statistic mae`" in note for note in statistic.found] == [True] * is_cautioned
