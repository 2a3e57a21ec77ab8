"""Roots by Brent's method, beside SciPy's."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from scipy.optimize import brentq

from trackperm.exact.root import bracketed_root

RTOL = 8.9e-16


def functions(rng: random.Random) -> list[Callable[[float], float]]:
    root, scale, power = rng.uniform(-2, 2), 10 ** rng.uniform(-8, 8), rng.choice([1, 3, 7])
    return [
        lambda x: scale * (x - root) ** power,
        lambda x: math.exp(min(scale * (x - root), 700.0)) - 1.0,
        lambda x: math.atan(scale * (x - root)),
        lambda x: min(max(scale * (x - root), -40.0), 40.0),
        lambda x: 1.0 if x > root else -1.0,
        lambda x: math.inf if x > root else -1e-300 * scale,
    ]


@pytest.mark.parametrize("seed", range(50))
def test_against_brentq(seed: int):
    rng = random.Random(seed)
    xtol = rng.choice([1e-18, 2e-12, 1e-6])
    for f in functions(rng):
        found = bracketed_root(f, -3.0, 4.0, xtol=xtol, rtol=RTOL, max_steps=300)
        theirs = brentq(f, -3.0, 4.0, xtol=xtol, rtol=RTOL, maxiter=300)
        assert abs(found - theirs) <= 2 * (xtol + RTOL * abs(theirs))


@pytest.mark.parametrize("seed", range(10))
def test_steps_against_brentq(seed: int):
    for f in functions(random.Random(seed)):
        ours: list[float] = []
        theirs: list[float] = []
        bracketed_root(lambda x, f=f, seen=ours: seen.append(x) or f(x), -3.0, 4.0, max_steps=300)
        brentq(lambda x, f=f, seen=theirs: seen.append(x) or f(x), -3.0, 4.0, maxiter=300)
        assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-9)


def test_a_root_at_an_end_is_found():
    assert bracketed_root(lambda x: x - 1.0, 1.0, 2.0) == 1.0
    assert bracketed_root(lambda x: x - 2.0, 1.0, 2.0) == 2.0


def test_functions_without_a_root_are_refused():
    with pytest.raises(ValueError, match="same sign"):
        bracketed_root(lambda x: x * x + 1.0, -1.0, 1.0)
    with pytest.raises(ValueError, match="NaN"):
        bracketed_root(lambda x: math.nan if 0.0 < x < 1.0 else x - 0.5, 0.0, 1.0)


def test_steps_that_do_not_suffice_are_an_error_unless_a_guess_will_do():
    with pytest.raises(RuntimeError, match="in 3 steps"):
        bracketed_root(math.atan, -1.0, 1e9, max_steps=3)
    assert -1.0 < bracketed_root(math.atan, -1.0, 1e9, max_steps=3, must_converge=False) < 1e9
