"""The claims of results held against integer counts of swaps, fast enough for 100,000 generated cases.

`certificates.check_pvalue` does so for one result and any Fraction; here p = count / 2**bits. To run one
case of a failed chunk alone, paste it: `check([Case("few", 17, 3, "less", "dp", False)], coin_sums.answer)`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import flint
import pytest

from trackperm.choices import Alternative, Method
from trackperm.errors import CapacityError
from trackperm.exact import PermutationTest

UNIT = 2.0**-53

TARGET = 1e-10
"""Relative error of p, and of its logarithm below 1e-300, that every engine but the bracket must reach."""

CHUNK = 250
"""Cases that are checked, and whose median is taken, together."""

LOOSE = 400.0
"""In the median a bound may be this many times the true error, or 2^-52 where that is smaller."""

NORMAL = -1021
"""Binary logarithm above which floats have full precision."""


@dataclass(frozen=True)
class Case:
    """One generated test: which law, which of its outcomes was observed, and what is asked."""

    family: str
    number: int
    outcome: int
    alternative: Alternative
    method: Method
    mid_p: bool


@dataclass(frozen=True)
class Share:
    """A probability between low / 2**bits and high / 2**bits; the two are equal where it was counted."""

    low: int
    high: int
    bits: int

    @classmethod
    def of(cls, count: int, bits: int) -> Share:
        return cls(count, count, bits)

    @property
    def is_known(self) -> bool:
        """Whether the ends are so close that they do not matter."""
        return self.low > (self.high - self.low) << 80

    @property
    def is_normal(self) -> bool:
        return self.low.bit_length() - self.bits > NORMAL

    def doubled(self) -> Share:
        return Share(2 * self.low, 2 * self.high, self.bits)

    def middle(self, other: Share) -> Share:
        bits = max(self.bits, other.bits)
        low, high = (
            sum(end << (bits - share.bits) for share, end in ends)
            for ends in (((self, self.low), (other, other.low)), ((self, self.high), (other, other.high)))
        )
        return Share(low, high, bits + 1)

    def log10(self) -> tuple[flint.arb, flint.arb]:
        ten, two = flint.arb(10).log(), flint.arb(2).log()
        low, high = ((flint.arb(end).log() - self.bits * two) / ten for end in (self.low, self.high))
        return low, high


Answer = Callable[[Case], tuple[PermutationTest, Share]]
"""The result of a case, and the truth."""


def chunks(n_chunks: Mapping[str, int]) -> list[object]:
    """Chunks of families: the first always runs, two with every change, the others at night."""
    marks = [[], pytest.mark.slow, pytest.mark.slow]
    return [
        pytest.param(family, i, marks=marks[i] if i < 3 else pytest.mark.nightly, id=f"{family}-{i}")
        for family, n in n_chunks.items()
        for i in range(n)
    ]


def check(cases: Iterable[Case], answer: Answer) -> None:
    """Check what the results of a chunk of cases claim, and that their bounds are not loose."""
    failures, looseness, n_checked = [], [], 0
    for case in cases:
        if n_checked == CHUNK:
            break
        try:
            result, truth = answer(case)
        except CapacityError:
            assert case.method != "auto", f"auto takes every case: {case}"
            continue
        except Exception as error:
            failures.append(f"{case}: {error!r}")
            continue
        if not truth.is_known:
            continue
        n_checked += 1
        failures += [f"{case}: {failure}" for failure in violations(result, truth)]
        if result.method != "bracket" and result.error_bound > 0.0:
            looseness.append(result.error_bound / max(true_error(result, truth), 2 * UNIT))
    assert not failures, "\n".join([f"{len(failures)} claims are not kept", *failures[:10]])
    assert statistics.median(looseness or [0.0]) <= LOOSE


def true_error(result: PermutationTest, truth: Share) -> float:
    """Relative error of the p-value, or of what its logarithm says where floats end."""
    if truth.is_normal:
        a, b = result.pvalue.as_integer_ratio()
        off = abs((a << truth.bits) - truth.low * b)
        parts = (off << 100) // (truth.low * b)
        return parts / 2.0**100 if parts.bit_length() < 1000 else math.inf
    with flint.ctx.workprec(160):
        low, _ = truth.log10()
        return abs(float((flint.arb(result.log10_pvalue) - low) * flint.arb(10).log()))


def violations(result: PermutationTest, truth: Share) -> Iterator[str]:
    """Say what a result claims and does not keep."""
    p, e = result.pvalue, result.error_bound
    if not 0.0 <= p <= 1.0 or not math.isfinite(result.log10_pvalue) or not e >= 0.0:
        yield "no p-value"
        return
    bracketed = result.method == "bracket"
    if not bracketed and e > TARGET * max(-result.log10_pvalue / 300.0, 1.0):
        yield f"the bound is {e:.1e}"
    if truth.is_normal:
        if p == 0.0:
            yield "p is 0"
        if not _within(p, e, truth, bracketed=bracketed):
            yield f"p errs by {true_error(result, truth):.3e}, the bound is {e:.3e}"
        low, high = result.interval
        if _exceeds(low, truth.high, truth.bits) or _exceeds(high, truth.low, truth.bits, reverse=True):
            yield f"the interval {result.interval} does not hold the truth"
    with flint.ctx.workprec(160):
        low, high = truth.log10()
        # The logarithm is a float itself: 4 roundings of its own size.
        slack = 4 * UNIT * abs(result.log10_pvalue)
        below = (-math.log1p(-e) if e < 1.0 else math.inf) / math.log(10.0) + slack
        above = math.log1p(e) / math.log(10.0) + slack
        if bracketed:
            below, above = slack + 1e-15, above
        found = flint.arb(result.log10_pvalue)
        if found < low - below or found > high + above:
            yield f"log10 p is {result.log10_pvalue!r}, {float(found - low):.3e} off, the bound is {e:.3e}"


def _within(p: float, e: float, truth: Share, *, bracketed: bool) -> bool:
    """|p - truth| <= e truth, or truth <= p <= (1 + e) truth for a bracket, in integers."""
    a, b = p.as_integer_ratio()
    if e == math.inf:
        return a << truth.bits >= truth.low * b
    ea, eb = e.as_integer_ratio()
    scaled = (a << truth.bits) * eb
    low = truth.low * b * (eb if bracketed else max(eb - ea, 0))
    return low <= scaled <= truth.high * b * (eb + ea)


def _exceeds(value: float, count: int, bits: int, *, reverse: bool = False) -> bool:
    a, b = value.as_integer_ratio()
    return (a << bits) < count * b if reverse else (a << bits) > count * b
