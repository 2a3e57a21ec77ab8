r"""Floats as integer multiples of one unit, so that their sums and ties are exact.

Floats are read as the numbers that they most likely were computed from: 0.1 + 0.2 is 0.3. The first of these
forms that fits every score is used:

1. integers;
2. decimals of at most 9 digits: multiples of 10^-d, for the smallest sufficient d;
3. fractions with denominators up to 10^4, over their common denominator;
4. the same forms of the examples on which the runs differ, if a larger score that both runs have fits it
   too, or loses no more than as a float: what both have is no part of any difference;
5. binary numbers: exact if all fit 62 bits over one power of two, else rounded to 2^-52 of the power of two
   above the largest score of an example on which the runs differ, as far as 62 bits reach. Counts whose
   differences would not add up to 62 bits are rounded to fewer. Scores are refused if rounding loses
   differences that could change the result.

A score x is read as a decimal or fraction y if \|x - y\| <= t eps \|x\|, with t = 4 and eps = 2^-52, or 2^-23
in a run with values of single precision only. The probability of reading an arbitrary real that way bounds d
and Q: a multiple of 10^-d is as close with probability 2 t eps \|x\| 10^d, and a fraction with a denominator
up to Q with probability (6 / pi^2) t eps \|x\| Q^2, since a unit interval has about 3 Q^2 / pi^2 of them. As
*every* score has to pass, scores with at least one arbitrary real pass with at most the largest of these
probabilities. t, d and Q are limited so that each of them stays below 1/500: first t is reduced, down to the
1/2 of a correctly rounded division, then d and Q.

p / q is a convergent of the continued fraction of x if \|x - p / q\| < 1 / (2 q^2) (Legendre), which the
bound on Q implies, so no other fractions need to be tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trackperm.errors import LargeScoreError
from trackperm.exact.counts import CHUNK, LARGEST
from trackperm.exact.scores.denominators import common_denominator, denominators
from trackperm.exact.scores.resolution import format_unit

EQUAL_BY_ROUNDING = "some differences count as equal"

How = Literal["integers", "decimals", "fractions", "binary", "resolution"]
Floats = npt.NDArray[np.float64]

CHANCE = 2e-3
"""Largest probability that arbitrary reals pass as decimals or fractions.

It admits 9 decimals of scores up to 1 (2e-6), and fractions with denominators up to 10^4 (5e-8), with ease,
and rejects 15 decimals, which every float has.
"""

ULPS = 4.0
"""Largest distance from a decimal or fraction, in roundings: a mean of a few terms has no more."""

MOST_DIGITS = 9
"""Largest number of decimals: more would not fit 62 bits with sums over 10^9 examples."""

MOST_DENOMINATOR = 10_000
"""Largest denominator of a fraction: scores per example are ratios of counts such as tokens or classes."""

WIDE_EXAMPLES = 100_000
"""Most scores as Python integers: some seconds and 20 MB."""

FINE = 2.0**-40
"""Part of a score below which a difference is noise of its computation, or does not change a sum."""

ROUGH = 2.0**-10
"""Largest change by rounding, as a part of the median difference, if a larger score causes it."""

FEW_KEPT = 8
"""Fewest distinct pairs beside which lost ones do not matter: they split ties, of mass 2^-8 and less."""

DOUBLE, SINGLE = 2.0**-52, 2.0**-23
_TINY = 1e-300


@dataclass(frozen=True)
class ScaledScores:
    """Scores of two runs, example by example, as integer multiples of one unit.

    Attributes
    ----------
    candidate, baseline : ndarray, shape (N,)
        Integers: int64, the given integer or boolean array, or Python integers if a common denominator does
        not fit 62 bits.
    unit : Fraction
        Unit: a score is its integer times this.
    how : {'integers', 'decimals', 'fractions', 'binary', 'resolution'}
        Form in which scores were read.
    largest_change : float
        Largest absolute difference between a score and its multiple of the unit; 0.0 if scores are exact.
    largest_lost : float
        Largest absolute difference of two scores that are the same multiple of the unit, by rounding.
    """

    candidate: npt.NDArray[Any]
    baseline: npt.NDArray[Any]
    unit: Fraction
    how: How
    largest_change: float = 0.0
    largest_lost: float = 0.0

    def note(self) -> str:
        """Describe the form of the scores, for use after ``scores:`` or the name of a count."""
        unit = format_unit(self.unit)
        if self.largest_change:
            rounded = f"rounded to multiples of {unit} (largest change {self.largest_change:.2g})"
            if not self.largest_lost:
                return rounded
            return f"{rounded}; {EQUAL_BY_ROUNDING}, of up to {self.largest_lost:.2g}"
        if self.how == "integers":
            return "integers"
        if self.how == "decimals":
            digits = len(str(self.unit.denominator)) - 1
            return f"{digits} decimal{'s' if digits > 1 else ''}, without rounding"
        kind = {"fractions": "fractions", "binary": "binary numbers"}.get(self.how, "numbers")
        if self.how == "fractions" and self.unit.denominator > LARGEST:
            bits = self.unit.denominator.bit_length()
            return f"fractions, without rounding: over a common denominator of {bits} bits"
        return f"{kind}, without rounding: multiples of {unit}"


@dataclass(frozen=True)
class Run:
    """Scores of one run.

    Attributes
    ----------
    values : ndarray of float64, shape (N,)
        Finite scores.
    largest : float
        Largest magnitude.
    eps : float
        Relative precision of the scores.
    """

    values: Floats
    largest: float
    eps: float = DOUBLE

    @classmethod
    def of(cls, values: Floats) -> Run:
        """Return a run of double precision; if a score is not finite, `largest` is not either."""
        if not values.size:
            return cls(values, 0.0)
        return cls(values, float(np.maximum(-values.min(), values.max())))

    @property
    def blocks(self) -> Iterator[Floats]:
        """A sample, which usually rules out wrong forms, and then all scores."""
        yield self.values[:: max(1, self.values.size // 1024)]
        for first in range(0, self.values.size, CHUNK):
            yield self.values[first : first + CHUNK]

    def single(self) -> Run:
        """Return the run with single precision if all its values have it."""
        with np.errstate(over="ignore"):
            is_single = all((block.astype(np.float32) == block).all() for block in self.blocks)
        return Run(self.values, self.largest, SINGLE if is_single else DOUBLE)

    def are_integers(self) -> bool:
        """Whether every score is an integer of at most 62 bits."""
        return self.largest <= LARGEST and all((np.rint(block) == block).all() for block in self.blocks)

    def are_multiples(self, scale: int) -> bool:
        """Whether every score is closer to a multiple of 1 / `scale` than chance explains."""
        ulps = min(ULPS, CHANCE / (2.0 * self.eps * scale * max(self.largest, _TINY)))
        if ulps < 0.5:
            return False
        for block in self.blocks:
            deviation = block * float(scale)
            np.rint(deviation, out=deviation)
            deviation /= scale
            deviation -= block
            if (np.abs(deviation, out=deviation) > ulps * self.eps * np.abs(block)).any():
                return False
        return True

    def scaled(self, scale: float) -> npt.NDArray[np.int64]:
        """Return the integers nearest to `scale` times the scores."""
        result = np.empty(self.values.size, dtype=np.int64)
        for first in range(0, result.size, CHUNK):
            part = self.values[first : first + CHUNK] * scale
            result[first : first + CHUNK] = np.rint(part, out=part)
        return result


Runs = tuple[Run, Run]


@dataclass(frozen=True)
class _Changed:
    """Examples on which two runs differ.

    Attributes
    ----------
    places : ndarray of bool, shape (N,)
        Whether the runs differ.
    largest, largest_common : float
        Largest magnitude of scores there, and of scores that both runs have.
    """

    places: npt.NDArray[np.bool_]
    largest: float
    largest_common: float

    @classmethod
    def find(cls, runs: Runs) -> _Changed:
        """Compare the scores of two runs; all examples count as changed if none is."""
        places = runs[0].values != runs[1].values
        if places.all() or not places.any():
            return cls(np.ones_like(places), max(run.largest for run in runs), 0.0)
        # products are many times faster than a selection
        largest = max(Run.of(run.values * places).largest for run in runs)
        return cls(places, largest, Run.of(runs[0].values * ~places).largest)

    def lost(self, runs: Runs, rounded: ScaledScores) -> float | None:
        """Return the largest difference that rounding removes; None if the result may depend on it."""
        if not rounded.largest_change:
            return 0.0
        noise = FINE * self.largest
        if rounded.largest_change > noise:
            sizes = _distances(*(run.values for run in runs))
            seen = sizes[sizes > noise]
            if seen.size and rounded.largest_change > ROUGH * np.median(seen):
                return None
        equal = (rounded.candidate == rounded.baseline) & self.places
        n_lost = np.count_nonzero(equal)
        if not n_lost:
            return 0.0
        first, second = (run.values[equal] for run in runs)
        sizes = _distances(first, second)
        is_noise = sizes <= FINE * np.maximum(np.abs(first), np.abs(second))
        if np.count_nonzero(self.places) - n_lost < FEW_KEPT and not is_noise.all():
            return None
        return float(sizes.max())


def _distances(first: Floats, second: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.abs(first - second)


def without_common(runs: Runs) -> Runs:
    """Replace scores that both runs have by 0."""
    differ = runs[0].values != runs[1].values
    return Run.of(np.where(differ, runs[0].values, 0.0)), Run.of(np.where(differ, runs[1].values, 0.0))


def _with_common(runs: Runs, changed: _Changed) -> ScaledScores | None:
    """Read the form of examples on which the runs differ, if larger scores that both have fit its unit."""
    if changed.largest_common <= changed.largest:
        return None
    places = changed.places
    found = _without_rounding((Run.of(runs[0].values[places]), Run.of(runs[1].values[places])), wide=False)
    if found is None:
        return None
    scale, common = float(1 / found.unit), runs[0].values[~places]
    if changed.largest_common * scale >= LARGEST:
        return None
    near = np.rint(common * scale)
    changes = np.abs(near / scale - common)
    changes[changes <= ULPS * DOUBLE * np.abs(common)] = 0.0
    change = float(changes.max())
    if change and scale < 2.0**52 / changed.largest_common:
        return None
    columns = tuple(np.empty(places.size, dtype=np.int64) for _ in runs)
    for column, own in zip(columns, (found.candidate, found.baseline), strict=True):
        column[places], column[~places] = own, near
    return replace(found, candidate=columns[0], baseline=columns[1], largest_change=change)


def read_floats(runs: Runs, *, wide: bool, differences_only: bool = False) -> ScaledScores:
    """Read floats as integers, decimals, fractions or binary numbers, the first that fits.

    With `differences_only`, scores that both runs have may be replaced by 0.

    Raises
    ------
    LargeScoreError
        If a score is so large that rounding loses differences of other examples.
    """
    found = _without_rounding(runs, wide=wide)
    if found is not None:
        return found
    changed = _Changed.find(runs)
    found = _with_common(runs, changed)
    if found is not None:
        return found
    rounded = _binary(runs, changed.largest, wide=wide)
    lost = changed.lost(runs, rounded)
    if lost is not None:
        return replace(rounded, largest_lost=lost)
    if differences_only and changed.largest_common > changed.largest:
        return read_floats(without_common(runs), wide=wide)
    raise _too_large(max(run.largest for run in runs), format_unit(rounded.unit), changed)


def _too_large(largest: float, unit: str, changed: _Changed) -> LargeScoreError:
    whose = ", which both runs have," if changed.largest_common > changed.largest else ""
    return LargeScoreError(
        f"a value of {largest:.3g}{whose} is too large for the other values: in multiples of {unit}, the"
        " differences of other examples are lost",
        hint="correct it where it stands for a failed or undefined value, or leave it empty in both"
        " runs; `--missing drop` then leaves out the example.",
    )


def _without_rounding(runs: Runs, *, wide: bool) -> ScaledScores | None:
    if all(run.are_integers() for run in runs):
        return ScaledScores(runs[0].scaled(1.0), runs[1].scaled(1.0), Fraction(1), "integers")
    single = runs[0].single(), runs[1].single()
    for attempt in (runs, single) if SINGLE in (single[0].eps, single[1].eps) else (runs,):
        found = _decimals(attempt) or _fractions(attempt, wide=wide)
        if found is not None:
            return found
    return None


@dataclass(frozen=True)
class DecimalForms:
    """Numbers of decimals with which one run, or several, can be read.

    Attributes
    ----------
    digits, of_single : frozenset of int
        Numbers of decimals of all values; with those of single precision read as such in `of_single`.
    are_integers : bool
        Whether all values are integers of at most 62 bits.
    largest : float
        Largest magnitude; not finite if a value is not.
    """

    digits: frozenset[int] = frozenset(range(MOST_DIGITS + 1))
    of_single: frozenset[int] = frozenset(range(MOST_DIGITS + 1))
    are_integers: bool = True
    largest: float = 0.0

    @classmethod
    def of(cls, values: Floats) -> DecimalForms:
        """Find the forms of one run; floats that are not finite have none."""
        run = Run.of(values)
        if not math.isfinite(run.largest):
            return cls(frozenset(), frozenset(), False, run.largest)
        if not values.size:
            return cls()
        single = run.single()
        digits = _digits(run)
        of_single = digits if single.eps == run.eps else _digits(single)
        return cls(digits, of_single, run.are_integers(), run.largest)

    def __and__(self, other: DecimalForms) -> DecimalForms:
        """Return the forms that both have."""
        return DecimalForms(
            self.digits & other.digits,
            self.of_single & other.of_single,
            self.are_integers and other.are_integers,
            max(self.largest, other.largest),
        )

    @property
    def places(self) -> int | None:
        """Least number of decimals, as :func:`read_floats` reads these runs together; None without any."""
        if self.are_integers:
            return 0
        return min(self.digits or self.of_single, default=None)


def _digits(run: Run) -> frozenset[int]:
    return frozenset(digits for digits in range(MOST_DIGITS + 1) if run.are_multiples(10**digits))


def _decimals(runs: Runs) -> ScaledScores | None:
    for digits in range(MOST_DIGITS + 1):
        scale = 10**digits
        if all(run.are_multiples(scale) for run in runs):
            return ScaledScores(runs[0].scaled(scale), runs[1].scaled(scale), Fraction(1, scale), "decimals")
    return None


@dataclass(frozen=True)
class _Distinct:
    """Distinct scores of a run as fractions."""

    values: Floats
    numerators: npt.NDArray[np.int64]
    denominators: npt.NDArray[np.int64]

    @classmethod
    def find(cls, run: Run, ulps: float) -> _Distinct | None:
        """Read every score as a fraction; None if one cannot be."""
        tolerance = ulps * run.eps
        chance = 6.0 / math.pi**2 * tolerance * max(run.largest, _TINY)
        limit = int(min(MOST_DENOMINATOR, math.sqrt(CHANCE / chance)))
        if limit < 2 or denominators(next(run.blocks), tolerance, limit) is None:
            return None
        distinct = np.unique(run.values)
        found = denominators(distinct, tolerance, limit)
        if found is None:
            return None
        return cls(distinct, np.rint(distinct * found).astype(np.int64), found)

    def integers(self, denominator: int) -> list[int]:
        """Return the distinct scores as integers over a common denominator."""
        pairs = zip(self.numerators.tolist(), self.denominators.tolist(), strict=True)
        return [p * (denominator // q) for p, q in pairs]


def _fractions(runs: Runs, *, wide: bool) -> ScaledScores | None:
    for ulps in (ULPS, 0.5):
        first = _Distinct.find(runs[0], ulps)
        second = None if first is None else _Distinct.find(runs[1], ulps)
        if first is not None and second is not None:
            return _over_common_denominator(runs, (first, second), wide=wide)
    return None


def _over_common_denominator(
    runs: Runs, parts: tuple[_Distinct, _Distinct], *, wide: bool
) -> ScaledScores | None:
    denominator = common_denominator(q for part in parts for q in np.unique(part.denominators).tolist())
    if denominator is None:
        return None
    integers = [part.integers(denominator) for part in parts]
    dtype = integer_type(integers[0] + integers[1], runs[0].values.size, wide=wide)
    if dtype is None:
        return None
    columns: list[npt.NDArray[Any]] = [
        np.array(own, dtype=dtype)[np.searchsorted(part.values, run.values)]
        for own, part, run in zip(integers, parts, runs, strict=True)
    ]
    return ScaledScores(columns[0], columns[1], Fraction(1, denominator), "fractions")


def integer_type(integers: Sequence[int], n_examples: int, *, wide: bool) -> type | None:
    """Return int64 if all `integers` fit 62 bits, else object; None if they are too many or not `wide`."""
    if max(map(abs, integers)) < LARGEST:
        return np.int64
    return object if wide and n_examples <= WIDE_EXAMPLES else None


def _binary(runs: Runs, largest_changed: float, *, wide: bool) -> ScaledScores:
    """Read floats as multiples of a power of two, of which sums of differences fit 62 bits unless `wide`.

    `largest_changed` is the largest magnitude of scores in which the runs differ.
    """
    _, exponent = math.frexp(max(run.largest for run in runs))
    # in units of the power of two above all values, since differences of floats can be beyond their range
    first, second = (np.ldexp(run.values, -exponent) for run in runs)
    most_bits = 61 if wide else 61 - max(math.frexp(float(np.abs(first - second).sum()))[1], 0)
    fine = [np.rint(np.ldexp(run.values, 61 - exponent)) for run in runs]
    if all(
        np.array_equal(np.ldexp(part, exponent - 61), run.values)
        for part, run in zip(fine, runs, strict=True)
    ):
        candidate, baseline = (part.astype(np.int64) for part in fine)
        # Zero bits that all integers end with belong to the unit.
        bits = int(np.bitwise_or.reduce(candidate) | np.bitwise_or.reduce(baseline))
        shift = (bits & -bits).bit_length() - 1
        if 61 - shift <= most_bits:
            unit = Fraction(2) ** (exponent - 61 + shift)
            return ScaledScores(candidate >> shift, baseline >> shift, unit, "binary")
    # Clipping, like rounding, moves a float below the power of two by at most half a unit.
    bits = min(52 + exponent - math.frexp(largest_changed)[1], 61, most_bits)
    last = 2.0**bits - 1.0
    rounded = [np.clip(np.rint(np.ldexp(run.values, bits - exponent)), -last, last) for run in runs]
    change = max(
        float(np.abs(np.ldexp(near, exponent - bits) - run.values).max())
        for near, run in zip(rounded, runs, strict=True)
    )
    candidate, baseline = (near.astype(np.int64) for near in rounded)
    return ScaledScores(candidate, baseline, Fraction(2) ** (exponent - bits), "binary", change)


def round_floats(runs: Runs, unit: Fraction) -> ScaledScores | None:
    """Round floats to multiples of `unit`; None if floats are too imprecise to decide which."""
    largest = max(run.largest for run in runs)
    p, q = unit.numerator, unit.denominator
    # Division by a power of two is exact; other quotients have relative errors below 2^-51.
    is_power = p & (p - 1) == 0 and q & (q - 1) == 0 and max(p, q) < 2**1000
    if not is_power and (max(p, q) > 2**53 or largest / unit > 2**49):
        return None
    results, change = [], 0.0
    for run in runs:
        result = np.empty(run.values.size, dtype=np.int64)
        for first in range(0, result.size, CHUNK):
            block = run.values[first : first + CHUNK]
            near = np.rint(block * float(q) / float(p))
            deviation = np.abs(near * float(p) / float(q) - block)
            deviation[deviation <= ULPS * DOUBLE * np.abs(block)] = 0.0
            change = max(change, float(deviation.max()))
            result[first : first + CHUNK] = near
        results.append(result)
    return ScaledScores(results[0], results[1], unit, "resolution", change)
