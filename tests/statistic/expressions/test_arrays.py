from __future__ import annotations

import numpy as np
import pytest
from support.specs import parse

from trackperm.statistic.expressions.arrays import integers

SMALLEST = -(2**63)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-a", 2**63),
        ("abs(a)", 2**63),
        ("a - 1", SMALLEST - 1),
        ("a * 2", 2 * SMALLEST),
        ("a // -1", 2**63),
        ("a", SMALLEST),
    ],
)
def test_the_smallest_integer(text: str, value: int) -> None:
    assert integers(parse(text), {"a": np.array([SMALLEST])}, 1).tolist() == [value]
