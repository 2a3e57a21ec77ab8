"""Least and greatest values of counts, by conditions and declared ranges."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from trackperm.statistic import read_statistic


@pytest.mark.parametrize(
    ("count", "ends"),
    [
        ("prediction == label", (0, 1)),
        ("not (a > 1 and b > 1)", (0, 1)),
        ("3", (3, 3)),
        ("a", (1, 5)),
        ("-a", (-5, -1)),
        ("2 * a - b + 1", (2 - 2 + 1, 10 + 1 + 1)),
        ("b * a", (-5, 10)),
        ("where(a > b, a, 0)", (0, 5)),
        ("c", None),
        ("a + c", None),
        ("abs(a)", None),
    ],
)
def test_ends_of_a_count(count: str, ends: tuple[int, int] | None) -> None:
    known = {"a": "[1, 5]", "b": "[-1, 2]"}
    read = [name for name in known if name in re.findall(r"\w+", count)]
    ranges = ", ".join(f"{name}: {known[name]}" for name in read)
    text = f"name: own\ngreater_is_better: true\ncounts: {{x: {count!r}, n: 1}}\nscore: x / n\n"
    spec = read_statistic(text + (f"ranges: {{{ranges}}}\n" if ranges else ""), "own.yaml", "own")
    found = spec.count_ranges["x"]
    assert found == (None if ends is None else tuple(map(Fraction, ends)))
