"""The exact paired-permutation test: from integer arrays to a p-value with its certificate.

Zmigrod, Vieira and Cotterell (2022), Algorithms 1 and 5, by other means: the null distribution lives on a
lattice of low rank (`lattice`), its mass comes from one inverse transform of a tilted characteristic
function (`characteristic`, `pmf`), ties are decided on integers (`region`), and tails add up with a
certificate (`tail`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from trackperm.errors import CapacityError, InputError
from trackperm.exact.characteristic import UNIT, SwapSum
from trackperm.exact.counts import LARGEST, DifferenceHistogram, integer_matrix
from trackperm.exact.distribution import NullDistribution, null_distribution
from trackperm.exact.enumeration import count_inside, n_configurations
from trackperm.exact.lattice import reduce_rank
from trackperm.exact.lattice_statistic import Alternative, LatticeStatistic, Statistic
from trackperm.exact.line import half_line
from trackperm.exact.pmf import LOG_WINDOW, plan_window
from trackperm.exact.rational import RationalStatistic
from trackperm.exact.tail import region_tail
from trackperm.exact.tilt import CERTAIN, TailMass

Method = Literal["auto", "enumerate", "lattice"]

MEMORY_BUDGET = 2**30
"""Bytes that a test may allocate by default."""

EXACT_IN_FLOATS = 2**52
"""Largest coordinate on the lattice whose half is exact in float64."""

ENUMERABLE = 1024
"""Configurations up to which swaps are listed in any case."""

BYTES_PER_CONFIGURATION = 256
"""Memory for one configuration: coordinates, its number of swaps as a Python integer, and work arrays."""

LISTABLE = 2**17
"""Configurations up to which swaps are listed where the window would be far larger."""


@dataclass(frozen=True)
class PermutationTest:
    """Result of an exact paired-permutation test.

    Attributes
    ----------
    alternative : {'two-sided', 'less', 'greater'}
        Which values count as extreme: |t| >= |t observed|, t <= t observed or t >= t observed.
    observed : float
        The statistic of the runs as they are.
    pvalue : float
        Probability, under independent fair swaps, of a value at least as extreme. 0.0 only where it is below
        the range of floats.
    log10_pvalue : float
        Its decimal logarithm, always finite.
    error_bound : float
        Certified bound on the error of the p-value, relative to it. 1 means that `pvalue` is only known to be
        an upper bound.
    method : str
        Engine: ``enumerate`` or ``lattice``.
    why : str
        Why that engine.
    ties : {'exact', 'approximate'}
        Whether ties with the observed value were decided exactly, or within a stated rounding band.
    n_examples, n_discordant : int
        Examples, and those that a swap changes.
    rank : int
        Dimension of the lattice that the null distribution lives on.
    n_better, n_worse : int or None
        Discordant examples that raise and that lower the statistic, where it is one-dimensional and linear.
    """

    alternative: Alternative
    observed: float
    pvalue: float
    log10_pvalue: float
    error_bound: float
    method: str
    why: str
    ties: Literal["exact", "approximate"]
    n_examples: int
    n_discordant: int
    rank: int
    n_better: int | None
    n_worse: int | None
    _problem: _Problem = field(repr=False, compare=False)
    _memory_budget: int = field(repr=False, compare=False, default=MEMORY_BUDGET)

    def format_pvalue(self, digits: int = 3) -> str:
        """Write the p-value with `digits` significant digits, from its logarithm below 1e-300; never as 0."""
        if self.pvalue >= 1e-300:
            return f"{self.pvalue:.{digits}g}"
        exponent = math.floor(self.log10_pvalue)
        mantissa = f"{10 ** (self.log10_pvalue - exponent):.{digits}g}"
        return f"1e{exponent + 1}" if float(mantissa) >= 10.0 else f"{mantissa}e{exponent}"

    @cached_property
    def null_distribution(self) -> NullDistribution:
        """The law of the statistic under fair swaps, computed when first asked for.

        Raises
        ------
        CapacityError
            If it does not fit the memory budget of the test.
        """
        return null_distribution(self._problem.law, self._problem.statistic, self._memory_budget)


@dataclass(frozen=True)
class _Problem:
    """A statistic on a lattice with the law of its random part, after linear collapse."""

    law: SwapSum
    statistic: LatticeStatistic
    rank: int


def difference_test(
    candidate: npt.ArrayLike,
    baseline: npt.ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    method: Method = "auto",
    memory_budget: int = MEMORY_BUDGET,
) -> PermutationTest:
    """Test the difference in mean of integer scores of two systems on the same examples.

    Parameters
    ----------
    candidate, baseline : array_like of int, shape (N,)
        Scores of the two systems, example by example; booleans count as 0 and 1.
    alternative : {'two-sided', 'less', 'greater'}
        ``greater``: the candidate's mean is greater.
    method : {'auto', 'enumerate', 'lattice'}
        Numerical engine.
    memory_budget : int
        Bytes that the test may allocate.

    Raises
    ------
    InputTypeError
        If scores are not integers.
    InputError
        If shapes differ, there are no examples, or values exceed 2^62.
    CapacityError
        If the computation does not fit `memory_budget`.

    Examples
    --------
    >>> difference_test([1, 1, 1, 1, 0, 1], [0, 0, 1, 0, 0, 0]).pvalue
    0.125

    References
    ----------
    Zmigrod, Vieira and Cotterell (2022), Algorithm 1.
    """
    u, v = integer_matrix(candidate, "candidate"), integer_matrix(baseline, "baseline")
    if u.shape != v.shape or u.shape[1] != 1:
        raise InputError(
            f"`candidate` has shape {np.shape(candidate)} and `baseline` {np.shape(baseline)}; "
            "expected (N,) twice"
        )
    histogram = DifferenceHistogram.from_pairs(u, v)
    # With S the sum of u and T that of both, the mean difference is (2 S - T) / N; swaps leave T as it is.
    both = histogram.stay[0] + histogram.swap[0]
    mean_difference = (2 * RationalStatistic.variable(0, 1) - both) / histogram.n_examples
    return _test(histogram, mean_difference, alternative, method, memory_budget)


def structured_test(
    stay: npt.ArrayLike,
    swap: npt.ArrayLike,
    h: Statistic,
    *,
    alternative: Alternative = "two-sided",
    multiplicities: npt.ArrayLike | None = None,
    method: Method = "auto",
    memory_budget: int = MEMORY_BUDGET,
) -> PermutationTest:
    """Test a statistic h(g_1, ..., g_m) of integer counts that add up over examples.

    Parameters
    ----------
    stay, swap : array_like of int, shape (N, m)
        g(u_n, v_n) and g(v_n, u_n): what example n contributes as it is, and with its outputs exchanged.
    h : RationalStatistic or callable
        A RationalStatistic of m variables: ties are decided exactly. Or a NumPy function from float64 arrays
        of shape (..., m) to arrays of shape (...): values within 2^-40 of the largest value seen then count
        as tied with the observed one, and the result says ``ties='approximate'``.
    alternative : {'two-sided', 'less', 'greater'}
        Two-sided is |t| >= |t observed| and needs a statistic that changes sign when the runs are exchanged.
    multiplicities : array_like of int, shape (N,), optional
        How many examples each row stands for.
    method : {'auto', 'enumerate', 'lattice'}
        Numerical engine.
    memory_budget : int
        Bytes that the test may allocate.

    Raises
    ------
    InputTypeError
        If counts are not integers.
    InputError
        If shapes differ, there are no examples, values exceed 2^62, the statistic is undefined where it is
        needed, or it is not antisymmetric and the test is two-sided.
    CapacityError
        If the computation does not fit `memory_budget`.

    Examples
    --------
    F1 of six sentences, from true positives and incorrect predictions:

    >>> u = np.array([[1, 0], [1, 2], [1, 3], [0, 3], [0, 0], [4, 4]])
    >>> v = np.array([[1, 4], [0, 3], [0, 1], [1, 0], [0, 0], [1, 0]])
    >>> tp_u, inc_u, tp_v, inc_v = (RationalStatistic.variable(i, 4) for i in range(4))
    >>> f1_u = tp_u.divide(tp_u + inc_u / 2, undefined=0)
    >>> f1_v = tp_v.divide(tp_v + inc_v / 2, undefined=0)
    >>> structured_test(np.hstack([u, v]), np.hstack([v, u]), f1_u - f1_v).pvalue
    0.6875

    References
    ----------
    Zmigrod, Vieira and Cotterell (2022), Algorithm 5 and Appendix B.
    """
    histogram = DifferenceHistogram.from_pairs(stay, swap, multiplicities)
    if isinstance(h, RationalStatistic) and h.n_variables != len(histogram.stay):
        raise InputError(
            f"`h` has {h.n_variables} variables and the arrays have {len(histogram.stay)} columns"
        )
    return _test(histogram, h, alternative, method, memory_budget)


def _test(
    histogram: DifferenceHistogram,
    h: Statistic,
    alternative: Alternative,
    method: Method,
    memory_budget: int,
) -> PermutationTest:
    if alternative not in get_args(Alternative):
        raise InputError(f"`alternative` is {alternative!r}; expected 'two-sided', 'less' or 'greater'")
    if method not in get_args(Method):
        raise InputError(f"`method` is {method!r}; expected 'auto', 'enumerate' or 'lattice'")
    problem = _problem(histogram, h)
    law, statistic = problem.law, problem.statistic
    if alternative == "two-sided":
        statistic.check_antisymmetric(law.total, np.random.default_rng(0))
    tail, used, why = _pvalue(problem, alternative, method, memory_budget)
    better, worse = _directions(problem)
    log10 = min(tail.log / math.log(10.0), 0.0)
    return PermutationTest(
        alternative=alternative,
        observed=statistic.observed,
        pvalue=min(math.exp(tail.log_scale) * tail.scaled if tail.log_scale > -700.0 else 10.0**log10, 1.0),
        log10_pvalue=log10,
        error_bound=tail.error,
        method=used,
        why=why,
        ties="exact" if statistic.is_exact else "approximate",
        n_examples=histogram.n_examples,
        n_discordant=histogram.n_discordant,
        rank=problem.rank,
        n_better=better,
        n_worse=worse,
        _problem=problem,
        _memory_budget=memory_budget,
    )


def _problem(histogram: DifferenceHistogram, h: Statistic) -> _Problem:
    """Reduce the rank, and collapse to one dimension where h is affine and that makes the window smaller."""
    lattice = reduce_rank(histogram)
    law = SwapSum(lattice.coordinates, histogram.multiplicities)
    if any(max(abs(low), abs(high)) > LARGEST for low, high in law.support):
        raise CapacityError(
            "sums of the differences exceed 2^62", hint="give a statistic with smaller integers."
        )
    statistic = LatticeStatistic(h, histogram, lattice)
    if lattice.rank > 1:
        collapsed = _collapsed(histogram, statistic)
        if collapsed is not None:
            none, box = np.zeros(lattice.rank), plan_window(law, [(np.zeros(lattice.rank), LOG_WINDOW)])
            line = plan_window(collapsed.law, [(none[:1], LOG_WINDOW)])
            if line.size <= box.size:
                return _Problem(collapsed.law, collapsed.statistic, lattice.rank)
    return _Problem(law, statistic, lattice.rank)


def _collapsed(histogram: DifferenceHistogram, statistic: LatticeStatistic) -> _Problem | None:
    """Return the problem of the single weighted sum that an affine statistic is, or None."""
    affine, observed = statistic.affine(), statistic.observed_exact
    if affine is None or observed is None or not any(affine[1]):
        return None
    constant, slopes = affine
    denominator = math.lcm(constant.denominator, *(slope.denominator for slope in slopes))
    weights = np.array([int(slope * denominator) for slope in slopes], dtype=object)
    steps = statistic.lattice.coordinates.astype(object) @ weights
    if max(abs(int(step)) for step in steps) * histogram.n_examples > LARGEST:
        return None
    up, down = histogram.n_up, histogram.multiplicities - histogram.n_up
    differences = np.concatenate([steps, -steps, [0]]).astype(np.int64)
    counts = np.concatenate([up, down, [histogram.n_examples - histogram.n_discordant]])
    present = counts > 0
    line = DifferenceHistogram.from_pairs(
        differences[present], np.zeros_like(differences[present]), counts[present]
    )
    offset = observed - Fraction(line.stay[0], denominator)
    scaled = RationalStatistic.variable(0, 1) / denominator + offset
    lattice = reduce_rank(line)
    return _Problem(
        SwapSum(lattice.coordinates, line.multiplicities),
        LatticeStatistic(scaled, line, lattice),
        statistic.lattice.rank,
    )


def _pvalue(
    problem: _Problem, alternative: Alternative, method: Method, memory_budget: int
) -> tuple[TailMass, str, str]:
    law, statistic = problem.law, problem.statistic
    observed = statistic.observed if statistic.observed_exact is None else statistic.observed_exact
    if law.n_coins == 0:
        return (
            TailMass(0.0, 1.0, 0.0),
            "enumerate",
            "no example differs, so every swap gives the observed value",
        )
    if alternative == "two-sided" and observed == 0:
        return CERTAIN, "enumerate", "the observed value is 0, so every value is as extreme"
    affine = statistic.affine()
    if affine is not None and not any(affine[1]):
        return CERTAIN, "enumerate", "no swap changes the statistic"
    upper = alternative == "greater" or (alternative == "two-sided" and observed > 0)
    mirror = law.total if alternative == "two-sided" else None
    sides = 2 if alternative == "two-sided" else 1
    configurations = n_configurations(law.multiplicities)
    if method == "enumerate" or (method == "auto" and _prefers_enumeration(law, configurations)):
        if configurations * BYTES_PER_CONFIGURATION > memory_budget:
            raise CapacityError(
                f"enumeration would list 2^{configurations.bit_length() - 1} configurations or more; "
                f"the memory budget is enough for {memory_budget // BYTES_PER_CONFIGURATION}",
                hint="`method='lattice'` or `'auto'`.",
            )
        region = statistic.region(observed, statistic.observed_point, upper=upper, mirror=mirror)
        share = Fraction(sides * count_inside(law, [region]), 2**law.n_coins)
        why = f"{configurations} ways to swap, counted in integers"
        return _from_fraction(min(share, Fraction(1))), "enumerate", why
    if any(max(abs(low), abs(high)) > EXACT_IN_FLOATS for low, high in law.support):
        raise CapacityError(
            "sums of the differences exceed 2^52, beyond which floats are not exact",
            hint="give a statistic with smaller integers.",
        )
    if affine is not None and law.rank == 1:
        # X and E - X have the same law, so a lower tail is an upper tail of the mirrored point.
        (point,), (total,) = statistic.observed_point, law.total
        rising = affine[1][0] > 0
        tail = half_line(law, point if upper == rising else total - point, memory_budget)
        why = "linear statistic: one-dimensional lattice"
    else:
        tail = region_tail(
            law,
            statistic,
            float(observed),
            lambda centre: statistic.region(observed, centre, upper=upper, mirror=mirror),
            upper=upper,
            memory_budget=memory_budget,
        )
        why = f"{len(statistic.histogram.stay)} counts on a lattice of rank {law.rank}"
    return TailMass(tail.log_scale, sides * tail.scaled, tail.error), "lattice", why


def _prefers_enumeration(law: SwapSum, configurations: int) -> bool:
    """Whether listing what swaps can do is cheaper than a window: tiny inputs, and few huge differences."""
    if configurations <= ENUMERABLE:
        return True
    if configurations > LISTABLE:
        return False
    return plan_window(law, [(np.zeros(law.rank), LOG_WINDOW)]).size > 64 * configurations


def _from_fraction(share: Fraction) -> TailMass:
    """Return a probability that is known exactly, rounded once, or as a logarithm where floats end."""
    if share > Fraction(1, 2**1000):
        return TailMass(0.0, float(share), UNIT if share.denominator.bit_length() > 53 else 0.0)
    exponent = share.numerator.bit_length() - share.denominator.bit_length()
    scaled = float(share / Fraction(2) ** exponent)
    return TailMass(exponent * math.log(2.0), scaled, (2.0 + 2.0 * abs(exponent)) * UNIT)


def _directions(problem: _Problem) -> tuple[int | None, int | None]:
    """Count the discordant examples that raise and that lower a one-dimensional linear statistic."""
    statistic = problem.statistic
    if problem.law.n_coins == 0:
        return 0, 0
    affine = statistic.affine() if problem.law.rank == 1 else None
    if affine is None:
        return None, None
    rises = (statistic.lattice.coordinates[:, 0] > 0) == (affine[1][0] > 0)
    n_up, counts = statistic.histogram.n_up, statistic.histogram.multiplicities
    better = int(np.where(rises, n_up, counts - n_up).sum())
    return better, int(counts.sum()) - better
