"""Branch and bound over frequencies, against the whole grid."""

from __future__ import annotations

import math

import numpy as np
import pytest

from trackperm.errors import CapacityError
from trackperm.exact.spectrum.characteristic import SwapSum, characteristic_function
from trackperm.exact.spectrum.frequencies import surviving_frequencies

LAWS = {
    "one step": SwapSum(np.array([[1]]), np.array([200])),
    "one odd among many even": SwapSum(np.array([[1], [2]]), np.array([1, 500])),
    "two scales": SwapSum(np.array([[1], [100]]), np.array([50, 40])),
    "a step that is an eighth of the period": SwapSum(np.array([[1], [64]]), np.array([2, 3])),
    "plane": SwapSum(np.array([[1, 0], [0, 1], [1, -2]]), np.array([60, 40, 9])),
    "space": SwapSum(np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 2, 1]]), np.array([30, 20, 25, 1])),
}


@pytest.mark.parametrize("log_threshold", [-2.0, -20.0])
@pytest.mark.parametrize("tilt_size", [0.0, 1e-8, 0.05, 2.0])
@pytest.mark.parametrize("name", LAWS)
def test_no_frequency_above_the_threshold_is_lost(name: str, tilt_size: float, log_threshold: float) -> None:
    law = LAWS[name]
    periods = (512,) if law.rank == 1 else (48, 40) if law.rank == 2 else (16, 12, 18)
    tilt = tilt_size * np.ones(law.rank)
    found = surviving_frequencies(law, tilt, periods, log_threshold, 10**6)
    half = (*periods[:-1], periods[-1] // 2 + 1)
    everything = np.stack(np.unravel_index(np.arange(math.prod(half)), half), axis=1)
    values, _ = characteristic_function(law, tilt, [0] * law.rank, periods, everything)
    above = {tuple(row) for row in everything[np.abs(values) > math.exp(log_threshold)]}
    listed = [tuple(row) for row in found]
    assert above <= set(listed)
    assert len(set(listed)) == len(listed)
    assert set(listed) <= {tuple(row) for row in everything}


def test_too_many_frequencies_are_refused() -> None:
    law = SwapSum(np.array([[1]]), np.array([1]))
    with pytest.raises(CapacityError, match="frequencies matter"):
        surviving_frequencies(law, np.zeros(1), (10_000,), -50.0, 100)
