"""Scores and differences as text, with enough digits to tell unequal ones apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

MOST_EXTRA = 6
"""Most digits beyond the usual ones: scores have at most ten decimals."""

_ALIKE = 0.1
"""Largest share of a difference by which the difference of the printed scores may be off.

Of scores with four decimals, it only takes effect if the difference is below 0.001.
"""


_ROUNDING = 1e-12
"""Distance from 1 that may come from the rounding of floats."""


def format_number(value: float, *, sign: bool = False, extra: int = 0) -> str:
    """Format a score with four decimals, or fewer digits if it is small or large, and `extra` digits.

    From 10,000 on it has seven significant digits, and four below 0.001 and from 10,000,000 on. What is below
    1 gets more digits if it would be rounded to 1, and is cut if even the most digits would be.
    """
    while _rounds_to_one(value, extra):
        if extra == MOST_EXTRA:
            value = math.copysign(1 - 10.0 ** -(4 + MOST_EXTRA), value)
        else:
            extra += 1
    plus = "+" if sign and value != 0 else ""
    if 1e4 <= abs(value) < 1e7:
        return f"{value:{plus}.{6 + extra - math.floor(math.log10(abs(value)))}f}"
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:{plus}.{4 + extra}f}"
    return f"{value:{plus}.{4 + extra}g}"


def format_difference(value: float, *, extra: int = 0) -> str:
    """Format a difference with its sign, beside scores with `extra` digits; small ones have enough digits."""
    return format_number(value, sign=True, extra=extra if abs(value) >= 1e-3 else 0)


def extra_digits(scores: Iterable[float], pairs: Sequence[tuple[float, float]] = ()) -> int:
    """Return how many digits scores need beyond the usual ones, so that unequal ones look unequal.

    Also, no score below 1 looks like 1, and the printed scores of `pairs` differ by about as much as
    the scores.
    """
    values = sorted({value for value in scores if math.isfinite(value)})
    compared = [pair for pair in pairs if all(map(math.isfinite, pair))]
    best = _n_faults(values, compared, MOST_EXTRA)
    return next(n for n in range(MOST_EXTRA + 1) if _n_faults(values, compared, n) <= best)


def _n_faults(values: Sequence[float], pairs: Sequence[tuple[float, float]], extra: int) -> int:
    """Count values that look like their neighbours or like 1, and pairs whose printed scores mislead."""
    shown = {value: float(format_number(value, extra=extra)) for value in values}
    alike = sum(shown[one] == shown[other] for one, other in pairwise(values))
    ones = sum(_rounds_to_one(value, extra) for value in values)
    off = sum(
        abs((shown[one] - shown[other]) - (one - other)) > _ALIKE * abs(one - other) for one, other in pairs
    )
    return alike + ones + off


def _rounds_to_one(value: float, extra: int) -> bool:
    return abs(value) < 1 - _ROUNDING and round(abs(value), 4 + extra) >= 1
