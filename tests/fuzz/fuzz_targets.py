"""Fuzz the meanings of an expression: properties of the tests, on inputs that reach new places in code."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris
from harness import INSTRUMENTED, run
from hypothesis import given

sys.path.insert(0, str(Path(__file__).parents[1]))

with atheris.instrument_imports(include=INSTRUMENTED):
    from statistic.test_functions_of_sums import (
        test_conditional_functions_against_fractions,
        test_integer_arrays_against_python,
        test_rational_functions_against_fractions,
    )
    from statistic.test_specs_against_swaps import test_against_all_swaps
    from statistic.test_targets import COUNTS, EXTREME, check_counts
    from support.written_expressions import Written


@given(COUNTS)
def counts_of_extreme_values(expression: Written) -> None:
    check_counts(expression, EXTREME, ("polars",))


PROPERTIES = (
    counts_of_extreme_values,
    test_integer_arrays_against_python,
    test_rational_functions_against_fractions,
    test_conditional_functions_against_fractions,
    test_against_all_swaps,
)


def check(content: bytes) -> None:
    if content:
        PROPERTIES[content[0] % len(PROPERTIES)].hypothesis.fuzz_one_input(content[1:])


if __name__ == "__main__":
    run(check, "targets", [bytes([kind]) * 200 for kind in range(len(PROPERTIES))])
