"""Choice of an engine: the next one if an engine gives up or knows no more than an upper bound."""

from __future__ import annotations

import math

import pytest

from trackperm.choices import Method
from trackperm.errors import CapacityError
from trackperm.exact.distributions.tilt import TailMass
from trackperm.exact.engines.choice import Engine, run_cheapest


def engine(name: Method, seconds: float, *tails: TailMass) -> Engine:
    def run() -> list[TailMass]:
        if not tails:
            raise CapacityError("it has no result")
        return list(tails)

    return Engine(name, seconds, 0, None, "", run)


BOUND = engine("lattice", 0.1, TailMass(-30.0, 1.0, 1.0))
GREATER_BOUND = engine("dp", 0.05, TailMass(-20.0, 1.0, 1.0))
EXACT = engine("enumerate", 1.0, TailMass(-60.0, 1.0, 0.0))
NONE = engine("binomial", 0.01)


@pytest.mark.parametrize(
    ("engines", "expected"),
    [
        ([EXACT, BOUND], EXACT),
        ([NONE, BOUND, EXACT, GREATER_BOUND], EXACT),
        ([GREATER_BOUND, BOUND, NONE], BOUND),
        ([GREATER_BOUND], GREATER_BOUND),
        ([engine("lattice", 0.1, TailMass(-30.0, 1.0, 1e-9), TailMass(-31.0, 1.0, 1.0)), EXACT], EXACT),
    ],
)
def test_upper_bounds_are_kept_for_want_of_anything_better(engines: list[Engine], expected: Engine) -> None:
    """Regression: p = 1.95e-15 by the first engine, where the next one knew that it was 2e-28."""
    tails, used = run_cheapest(engines, 1)
    assert used is expected
    assert tails == expected.run()


def test_no_engine_has_a_result() -> None:
    with pytest.raises(CapacityError, match="no exact engine has a result: binomial: it has no result"):
        run_cheapest([NONE], 1)
    with pytest.raises(CapacityError, match="binomial: it would take about 9 s"):
        run_cheapest([engine("binomial", 9.0)], 1, patience=2.0)
    assert TailMass(-5.0, 0.0, 0.0).log == -math.inf
