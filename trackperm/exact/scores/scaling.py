"""Conversion of scores of any numeric type to integer multiples of one unit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.errors import InputError, InputTypeError, LargeScoreError
from trackperm.exact.counts import LARGEST
from trackperm.exact.scores.denominators import common_denominator
from trackperm.exact.scores.floats import (
    DOUBLE,
    MOST_DIGITS,
    ULPS,
    How,
    Run,
    ScaledScores,
    integer_type,
    read_floats,
    round_floats,
    without_common,
)
from trackperm.exact.scores.resolution import Resolution, format_unit, read_resolution

Number = Fraction | float
_NOISE = 2.0 * ULPS * DOUBLE
_MISSING = "remove the example from both runs, or score it as an absent answer."


def scale_scores(
    candidate: npt.ArrayLike,
    baseline: npt.ArrayLike,
    resolution: Resolution | None = None,
    *,
    wide: bool = True,
    differences_only: bool = False,
) -> ScaledScores:
    """Convert the scores of two runs to integers over one unit.

    Parameters
    ----------
    candidate, baseline : array_like, shape (N,)
        Booleans, integers, floats, or Python numbers; Fraction and Decimal are exact.
    resolution : str, float, Fraction or Decimal, optional
        Unit to round to, with its printed value: 0.001 is a thousandth. By default scores are read as
        integers, decimals, fractions or binary numbers, as described in
        :mod:`trackperm.exact.scores.floats`.
    wide : bool
        Whether fractions whose common denominator does not fit 62 bits may become Python integers, for at
        most 100,000 examples; otherwise they are read as binary numbers.
    differences_only : bool
        Whether only differences are used, so that a float that both runs have may become 0.

    Raises
    ------
    LargeScoreError
        If a score is so large that rounding loses differences of other examples, or beyond 62 bits of
        `resolution`.
    InputTypeError
        If scores are not numbers; the message names the first such score.
    InputError
        If shapes are wrong, there are no examples, a score is missing or not finite, or `resolution` is not
        positive, too fine for 62 bits, or so coarse that it removes every difference.

    Examples
    --------
    >>> scores = scale_scores([0.1 + 0.2, 1 / 4], [0.3, 0.3])
    >>> scores.candidate.tolist(), scores.baseline.tolist(), scores.unit
    ([30, 25], [30, 30], Fraction(1, 100))
    """
    unit = None if resolution is None else read_resolution(resolution)
    arrays = _array(candidate, "candidate"), _array(baseline, "baseline")
    if arrays[0].shape != arrays[1].shape or arrays[0].ndim != 1:
        raise InputError(
            f"`candidate` has shape {arrays[0].shape}, `baseline` {arrays[1].shape}; expected (N,) for both"
        )
    if not arrays[0].size:
        raise InputError("`candidate` and `baseline` are empty; expected at least one example")
    if unit is None and all(array.dtype.kind in "bui" for array in arrays):
        return ScaledScores(arrays[0], arrays[1], Fraction(1), "integers")
    if not all(map(_exact_in_floats, arrays)):
        numbers = _numbers(arrays[0], "candidate"), _numbers(arrays[1], "baseline")
        return _scaled_numbers(*numbers, wide=wide) if unit is None else _rounded_numbers(*numbers, unit)
    runs = _run(arrays[0], "candidate"), _run(arrays[1], "baseline")
    if unit is None:
        return read_floats(runs, wide=wide, differences_only=differences_only)
    if differences_only:
        runs = without_common(runs)
    largest = max(run.largest for run in runs)
    _require_room(largest, unit)
    scaled = round_floats(runs, unit)
    if scaled is None:
        return _rounded_numbers(runs[0].values.tolist(), runs[1].values.tolist(), unit)
    with np.errstate(over="ignore"):
        differences = np.abs(runs[0].values - runs[1].values)
    sizes = np.maximum(np.abs(runs[0].values), np.abs(runs[1].values))
    _require_difference(scaled, differences[differences > _NOISE * sizes])
    return scaled


def _array(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        index = int(np.ma.getmaskarray(values).ravel().argmax())
        raise InputError(f"`{name}` has no score at index {index} (masked)", hint=_MISSING)
    try:
        array = np.asarray(values)
        if array.dtype.kind in "USV":
            array = np.asarray(values, dtype=object)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"`{name}` cannot be read as an array of scores: {error}") from error
    if array.dtype.kind not in "buifO" or (array.dtype.kind == "f" and array.dtype.itemsize > 8):
        found = f" (index 0: {array.flat[0]})" if array.size else ""
        raise InputTypeError(
            f"`{name}` has type {array.dtype}{found}; expected booleans, integers or floats up to 64 bits"
        )
    return array


def _exact_in_floats(array: npt.NDArray[Any]) -> bool:
    if array.dtype.kind == "O":
        return False
    if array.dtype.kind == "f" or array.dtype.itemsize < 8:
        return True
    return max(-int(array.min()), int(array.max())) <= 2**53


def _run(array: npt.NDArray[Any], name: str) -> Run:
    run = Run.of(array.astype(np.float64, copy=False))
    if not math.isfinite(run.largest):
        index = int(np.argmin(np.isfinite(run.values)))
        raise _bad_score(name, index, run.values[index])
    return run


def _bad_score(name: str, index: int, value: object) -> InputError:
    return InputError(f"`{name}` is {value} at index {index}; expected a finite number", hint=_MISSING)


def _numbers(array: npt.NDArray[Any], name: str) -> list[Number]:
    """Return floats unchanged, and all else as fractions."""
    result: list[Number] = []
    for index, value in enumerate(array.tolist()):
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < 300:
            value = Fraction(value)
        if isinstance(value, Decimal) or (isinstance(value, float) and not math.isfinite(value)):
            raise _bad_score(name, index, value)
        if not isinstance(value, Rational | float):
            raise InputTypeError(
                f"`{name}` is {value!r} at index {index}, a `{type(value).__name__}`; expected a number",
                hint=_MISSING if value is None else None,
            )
        result.append(value if isinstance(value, float) else Fraction(value))
    return result


def _scaled_numbers(candidate: list[Number], baseline: list[Number], *, wide: bool) -> ScaledScores:
    """Scale fractions exactly; floats among them are read like an array of floats."""
    floats = [np.array([x for x in run if isinstance(x, float)]) for run in (candidate, baseline)]
    read = read_floats((Run.of(floats[0]), Run.of(floats[1])), wide=wide)
    u, v = _merged(candidate, read.candidate, read.unit), _merged(baseline, read.baseline, read.unit)
    denominator = common_denominator({x.denominator for x in (*u, *v)})
    if denominator is not None:
        how: How = "binary" if read.how == "binary" else "integers" if denominator == 1 else "fractions"
        digits = next((d for d in range(1, MOST_DIGITS + 1) if 10**d % denominator == 0), None)
        if how == "fractions" and digits is not None:
            denominator, how = 10**digits, "decimals"
        integers = [[x.numerator * (denominator // x.denominator) for x in run] for run in (u, v)]
        dtype = integer_type(integers[0] + integers[1], len(u), wide=wide)
        if dtype is not None:
            columns: list[npt.NDArray[Any]] = [np.array(column, dtype=dtype) for column in integers]
            return ScaledScores(columns[0], columns[1], Fraction(1, denominator), how, read.largest_change)
    rounded = read_floats((Run.of(np.array(u, dtype=float)), Run.of(np.array(v, dtype=float))), wide=False)
    changes = (
        abs(x - int(near) * rounded.unit)
        for run, column in ((u, rounded.candidate), (v, rounded.baseline))
        for x, near in zip(run, column, strict=True)
    )
    return replace(rounded, how="binary", largest_change=float(max(changes)))


def _merged(run: list[Number], floats: npt.NDArray[Any], unit: Fraction) -> list[Fraction]:
    """Replace the floats of a run by fractions, given in order as integers over `unit`."""
    read = (int(integer) * unit for integer in floats)
    return [next(read) if isinstance(x, float) else x for x in run]


def _rounded_numbers(candidate: Sequence[Number], baseline: Sequence[Number], unit: Fraction) -> ScaledScores:
    """Round to multiples of `unit`, exactly."""
    largest = max(abs(Fraction(x)) for x in (*candidate, *baseline))
    _require_room(largest, unit)
    nearest = {x: round(Fraction(x) / unit) for x in {*candidate, *baseline}}
    change = 0.0
    for x, integer in nearest.items():
        deviation = abs(Fraction(x) - integer * unit)
        if not isinstance(x, float) or deviation > ULPS * DOUBLE * abs(x):
            change = max(change, float(deviation))
    u, v = (np.array([nearest[x] for x in run], dtype=np.int64) for run in (candidate, baseline))
    scaled = ScaledScores(u, v, unit, "resolution", change)
    differences = [
        abs(float(x - y))
        for x, y in zip(candidate, baseline, strict=True)
        if abs(float(x - y)) > _NOISE * max(abs(float(x)), abs(float(y)))
    ]
    _require_difference(scaled, np.array(differences))
    return scaled


def _require_room(largest: Number, unit: Fraction) -> None:
    if Fraction(largest) / unit >= LARGEST:
        raise LargeScoreError(
            f"the resolution {format_unit(unit)} is too fine: a score of {float(largest):.3g} is 2^62 times"
            " that, or more",
            hint="use a coarser one, or correct this score if it stands for a failed or undefined value.",
        )


def _require_difference(scaled: ScaledScores, differences: npt.NDArray[np.float64]) -> None:
    """Refuse a resolution that removes all `differences`, which are no rounding errors of floats."""
    if differences.size and np.array_equal(scaled.candidate, scaled.baseline):
        raise InputError(
            f"the resolution {format_unit(scaled.unit)} makes both runs equal on every example, although "
            f"scores differ by up to {differences.max():.3g}",
            hint="use a finer one.",
        )
