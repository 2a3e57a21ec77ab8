r"""Exact test for two systems that attempt the same examples unequally often.

Example k has a_k attempts of the candidate, x_k of which pass, and b_k attempts of the baseline, y_k of which
pass. The statistic is the mean over examples of the difference in pass rate,

    T = 1/N sum_k (x_k / a_k - y_k / b_k).

Under the null hypothesis all a_k + b_k attempts at an example are exchangeable, whatever its difficulty.
Given the number that pass, m_k = x_k + y_k, the candidate's x_k is hypergeometric, and independent over
examples; T = sum_k ((1/a_k + 1/b_k) x_k - m_k / b_k) / N is linear in the x_k and has mean 0. Swapping the
means x_k / a_k and y_k / b_k instead is exact only if a_k = b_k: a single attempt varies more than a mean
of ten.

In units of the greatest common divisor of the weights 1/a_k + 1/b_k, T is an integer, so ties are exact. Its
law is skewed in general, so the two tails of |T| >= |T observed| are computed separately.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from trackperm.choices import Alternative
from trackperm.errors import InputError
from trackperm.exact.counts import LARGEST, checked_multiplicities, group_rows, integer_matrix
from trackperm.exact.distributions.characteristic import UNIT
from trackperm.exact.distributions.hypergeometric import HypergeometricSum
from trackperm.exact.distributions.listed_values import Listing, listing
from trackperm.exact.distributions.pmf import LOG_WINDOW
from trackperm.exact.distributions.tilt import CERTAIN, EMPTY, TailMass
from trackperm.exact.engines.attempts import (
    PERMUTED,
    attempts_tails,
    check_attempts,
    null_cells,
)
from trackperm.exact.null_distribution import NOISE, NullDistribution
from trackperm.exact.options import MEMORY_BUDGET, TestOptions
from trackperm.exact.outcome import ResultFields, TailResult, as_float, computed_result
from trackperm.exact.result import PermutationTest
from trackperm.exact.types import IntArray


def attempts_test(
    passed_u: npt.ArrayLike,
    attempts_u: npt.ArrayLike,
    passed_v: npt.ArrayLike,
    attempts_v: npt.ArrayLike,
    *,
    multiplicities: npt.ArrayLike | None = None,
    alternative: Alternative = "two-sided",
    mid_p: bool = False,
    memory_budget: int = MEMORY_BUDGET,
) -> PermutationTest:
    """Test the mean difference in pass rate of two systems that attempt examples unequally often.

    Attempts are permuted within examples. Where both systems attempt each example equally often,
    :func:`difference_test` of their passes is exact under the weaker hypothesis that the outputs for an
    example can be exchanged as a whole; use it there.

    Parameters
    ----------
    passed_u, attempts_u : array_like of int, shape (K,)
        How many attempts of the candidate u passed on each example, and how many there were.
    passed_v, attempts_v : array_like of int, shape (K,)
        The same of the baseline v.
    multiplicities : array_like of int, shape (K,), optional
        Number of examples of each row.
    alternative : {'two-sided', 'less', 'greater'}
        ``greater``: the candidate's pass rate is greater.
    mid_p : bool
        Count ties with the observed value half: less conservative, but no longer a valid p-value.
    memory_budget : int
        Bytes that the test may allocate.

    Returns
    -------
    PermutationTest
        With the method ``attempts``.

    Raises
    ------
    InputTypeError
        If counts are not integers.
    InputError
        If shapes differ, there are no examples, an example has no attempt, or more passes than attempts.
    CapacityError
        If there are too many attempts to permute.

    Examples
    --------
    One example, where three of five attempts and none of three pass, is Fisher's exact test:

    >>> attempts_test([3], [5], [0], [3], alternative="greater").pvalue
    0.17857142857142858

    Ten such examples:

    >>> attempts_test([3], [5], [0], [3], multiplicities=[10]).format_pvalue()
    '2.4e-07'

    References
    ----------
    R. A. Fisher (1935), The Design of Experiments, for one example; N. Mantel (1963), "Chi-square tests with
    one degree of freedom", JASA 58, for the same law in large samples.
    """
    options = TestOptions(alternative=alternative, mid_p=mid_p, memory_budget=memory_budget)
    return attempts_test_of(
        passed_u, attempts_u, passed_v, attempts_v, options, multiplicities=multiplicities
    )


def attempts_test_of(
    passed_u: npt.ArrayLike,
    attempts_u: npt.ArrayLike,
    passed_v: npt.ArrayLike,
    attempts_v: npt.ArrayLike,
    options: TestOptions,
    *,
    multiplicities: npt.ArrayLike | None = None,
) -> PermutationTest:
    """Test pass rates as :func:`attempts_test` does, with options that were checked before.

    `options.method` has to be ``auto``: there is one way to permute attempts.
    """
    if options.method != "auto":
        raise InputError(
            f"`--method {options.method}` is not for attempts that are permuted within examples",
            hint="leave `--method` out.",
        )
    columns = _checked(passed_u=passed_u, attempts_u=attempts_u, passed_v=passed_v, attempts_v=attempts_v)
    statistic = _PassRates.of(*group_rows(columns, checked_multiplicities(multiplicities, len(columns))))
    n_discordant = int(statistic.law.multiplicities.sum())
    fields = ResultFields(
        observed=as_float(statistic.observed),
        ties=lambda: "exact",
        n_examples=statistic.n_examples,
        n_discordant=n_discordant,
        rank=min(n_discordant, 1),
        n_better=None,
        n_worse=None,
        distribution=partial(statistic.null_distribution, options.memory_budget),
        log10_smallest=statistic.log10_smallest(options),
    )
    if n_discordant == 0:
        why = "no permutation of attempts changes the statistic"
        return computed_result(TailResult(CERTAIN, "attempts", why, certain=True), options, fields)
    is_zero = options.two_sided and statistic.observed == 0
    if is_zero and not options.mid_p:
        why = "the observed value is 0, so every value is as extreme"
        return computed_result(TailResult(CERTAIN, "attempts", why, certain=True), options, fields)
    if statistic.listing is not None:
        return _counted(statistic, statistic.listing, options, fields)
    sides, why = [], ""
    for law, closed, strict in statistic.regions(options):
        points = [closed, strict] if options.mid_p else [closed]
        tails, why = attempts_tails(law, points, options.memory_budget)
        sides.append((tails[0], tails[1] if options.mid_p else EMPTY))
    if is_zero:
        (_, above), (_, below) = sides
        found = TailResult(CERTAIN, "attempts", why, above, certain=True, lesser=(EMPTY, below))
    else:
        (mass, interior), *other = sorted(sides, key=_log, reverse=True)
        found = TailResult(mass, "attempts", why, interior, lesser=other[0] if other else (EMPTY, EMPTY))
    return computed_result(found, options, fields)


def _log(side: tuple[TailMass, TailMass]) -> float:
    return side[0].log if side[0].scaled > 0.0 else -math.inf


def _checked(**arrays: npt.ArrayLike) -> IntArray:
    """Return the counts as columns, after checking them."""
    columns = {}
    for name, values in arrays.items():
        matrix = integer_matrix(values, name)
        if np.ndim(values) != 1:
            raise InputError(f"`{name}` has shape {np.shape(values)}; expected one number for each example")
        columns[name] = matrix[:, 0].astype(np.int64)
    sizes = {name: column.size for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{size} of `{name}`" for name, size in sizes.items())
        raise InputError(
            f"the arrays have different lengths: {found}", hint="give one number for each example."
        )
    for run in ("u", "v"):
        passed, attempts = columns[f"passed_{run}"], columns[f"attempts_{run}"]
        none = np.flatnonzero(attempts < 1)
        if none.size:
            raise InputError(
                f"`attempts_{run}` is {attempts[none[0]]} at index {none[0]}; expected at least one attempt",
                hint="remove examples that one of the systems never attempted, and report it.",
            )
        beyond = np.flatnonzero((passed < 0) | (passed > attempts))
        if beyond.size:
            at = beyond[0]
            raise InputError(
                f"`passed_{run}` is {passed[at]} at index {at}; expected 0 to {attempts[at]}, the number of "
                "attempts"
            )
    return np.column_stack(list(columns.values()))


def _counted(
    statistic: _PassRates, listed: Listing, options: TestOptions, fields: ResultFields
) -> PermutationTest:
    """Return the p-value as a quotient of integers, rounded once."""
    extreme = interior = 0
    for law, closed, strict in statistic.regions(options):
        side = listed if law is statistic.law else listed.mirrored()
        extreme += side.at_least(closed)
        interior += side.at_least(strict)
    if options.two_sided and statistic.observed == 0:
        extreme = listed.total
    share = (
        Fraction(extreme + interior, 2 * listed.total) if options.mid_p else Fraction(extreme, listed.total)
    )
    pvalue = float(share)
    is_rounded = Fraction(pvalue) != share
    return fields.result(
        options,
        pvalue=pvalue,
        log10_pvalue=math.log10(pvalue),
        error_bound=UNIT if is_rounded else 0.0,
        interval=(
            math.nextafter(pvalue, 0.0) if is_rounded else pvalue,
            math.nextafter(pvalue, 1.0) if is_rounded else pvalue,
        ),
        method="attempts",
        why=f"{PERMUTED}: {listed.total} ways, counted in integers",
    )


@dataclass(frozen=True)
class _PassRates:
    """Mean difference in pass rate, origin + unit * S, with the law of S under permutations.

    Attributes
    ----------
    law : HypergeometricSum
        Distribution of S: passes of the candidate above their minimum, times a step.
    origin, unit : Fraction
        Statistic at S = 0, and its change for one unit of S; positive.
    observed : Fraction
        Observed statistic.
    n_examples : int
        Number of examples N.
    """

    law: HypergeometricSum
    origin: Fraction
    unit: Fraction
    observed: Fraction
    n_examples: int

    @classmethod
    def of(cls, rows: IntArray, counts: IntArray) -> _PassRates:
        """Build it from distinct rows (passes and attempts of u, then of v) and their multiplicities."""
        n_examples = int(counts.sum())
        passes, attempts = rows[:, 0] + rows[:, 2], rows[:, 1] + rows[:, 3]
        # Examples with no passes, or with passes only, are the same after any permutation.
        moving = (passes > 0) & (passes < attempts)
        passed_u, first, passed_v, second = rows[moving].T
        counts, passes = counts[moving], passes[moving]
        if not counts.size:
            law = HypergeometricSum(first, second, passes, first, counts)
            return cls(law, Fraction(0), Fraction(1), Fraction(0), n_examples)
        check_attempts(first, second, passes)
        least = np.maximum(0, passes - second)
        observed = _sum_of_ratios(passed_u, first, counts) - _sum_of_ratios(passed_v, second, counts)
        origin = _sum_of_ratios(least, first, counts) - _sum_of_ratios(passes - least, second, counts)
        grouped, numbers = group_rows(np.column_stack([first, second, passes]), counts)
        pairs = list(zip(grouped[:, 0].tolist(), grouped[:, 1].tolist(), strict=True))
        weights = {pair: Fraction(sum(pair), math.prod(pair)) for pair in set(pairs)}
        multiple = math.lcm(*(weight.denominator for weight in weights.values()))
        multiples = {pair: int(weight * multiple) for pair, weight in weights.items()}
        divisor = math.gcd(*multiples.values())
        steps = [multiples[pair] // divisor for pair in pairs]
        fits = max(steps) < LARGEST
        scaled = np.array(steps, dtype=np.int64 if fits else object)
        law = HypergeometricSum(grouped[:, 0], grouped[:, 1], grouped[:, 2], scaled, numbers)
        unit = Fraction(divisor, multiple * n_examples)
        return cls(law, origin / n_examples, unit, observed / n_examples, n_examples)

    @cached_property
    def listing(self) -> Listing | None:
        """All values of S with their numbers of ways; None if there are too many."""
        return listing(self.law)

    @cached_property
    def _mirrored(self) -> HypergeometricSum:
        return self.law.mirrored()

    def regions(self, options: TestOptions) -> list[tuple[HypergeometricSum, int, int]]:
        """Return, by side, a law and its least points as extreme as, and more extreme than, the observed.

        The law is mirrored for the low side.
        """
        found = []
        if options.tested != "less":
            least = (self._extreme(options) - self.origin) / self.unit
            found.append((self.law, math.ceil(least), math.floor(least) + 1))
        if options.tested != "greater":
            low = self.observed if options.tested == "less" else -self._extreme(options)
            greatest = (low - self.origin) / self.unit
            total = self.law.total
            found.append((self._mirrored, total - math.floor(greatest), total - math.ceil(greatest) + 1))
        return found

    def _extreme(self, options: TestOptions) -> Fraction:
        return abs(self.observed) if options.two_sided else self.observed

    def log10_smallest(self, options: TestOptions) -> float:
        """Return the decimal logarithm of the smallest p-value that a permutation of attempts can give."""
        if not self.law.steps.size:
            return -int(options.mid_p) * math.log10(2.0)
        ends = {"greater": self.origin + self.unit * self.law.total, "less": -self.origin}
        reached = (
            [options.tested]
            if options.tested in ends
            else [side for side, size in ends.items() if size == max(ends.values())]
        )
        logs = [(self.law if side == "greater" else self._mirrored).log_edge for side in reached]
        return (float(np.logaddexp.reduce(logs)) - int(options.mid_p) * math.log(2.0)) / math.log(10.0)

    def null_distribution(self, memory_budget: int) -> NullDistribution:
        """Return the law of the statistic; rounded where its points are too many."""
        if not self.law.steps.size:
            return NullDistribution(np.array([float(self.observed)]), np.ones(1), 0.0)
        if self.listing is not None:
            below = math.lcm(self.origin.denominator, self.unit.denominator)
            first, step = int(self.origin * below), int(self.unit * below)
            values = np.array([(first + step * s) / below for s in self.listing.values.tolist()])
            shares = self.listing.ways.astype(np.float64) / self.listing.total
            return NullDistribution(values, shares, 2.0 * UNIT)
        cells, rounded = null_cells(self.law, memory_budget)
        masses, width = cells.values, self.unit * rounded.spacing
        attained = masses > NOISE * float(masses.max())
        # The statistic has the mean 0.
        points = (cells.start + np.flatnonzero(attained)).astype(np.float64)
        error = UNIT * cells.roundings + 1.01 * cells.lost + float(np.abs(masses[~attained]).sum())
        error += math.sqrt(masses.size) * cells.error_norm
        off = 0.0 if rounded.spacing == 1 else float(self.unit * rounded.reach(LOG_WINDOW - math.log(2.0)))
        values = float(-width * rounded.means[1]) + float(width) * points
        return NullDistribution(values, masses[attained], error, off)


def _sum_of_ratios(numerators: IntArray, denominators: IntArray, counts: IntArray) -> Fraction:
    sums: dict[int, int] = {}
    for x, n, c in zip(numerators.tolist(), denominators.tolist(), counts.tolist(), strict=True):
        sums[n] = sums.get(n, 0) + c * x
    return sum((Fraction(x, n) for n, x in sums.items()), Fraction(0))
