"""Paired-permutation tests of statistics of counts: from arrays to a p-value with an error bound.

They are Algorithms 1 and 5 of Zmigrod, Vieira and Cotterell (2022), computed differently. A linear statistic
is one weighted sum of coins (`sums`). The null distribution of any other statistic lives on a lattice of low
rank (`engines.lattice`): ties are decided on integers, and tails are sums over a tilted characteristic
function (`distributions`) with a certified error. If that takes too long, a weighted sum close to the
statistic gives certified bounds (`engines.linearised`). If they are too wide, swaps are drawn with tilted
coins (`engines.tilted_sampling`), or with fair ones (`engines.monte_carlo`) if the statistic has no slope.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from trackperm.choices import Alternative, Method
from trackperm.errors import CapacityError, InputError
from trackperm.exact.counts import LARGEST, DifferenceHistogram, n_configurations
from trackperm.exact.distributions.characteristic import FloatArray, SwapDistribution
from trackperm.exact.distributions.tilt import EMPTY, TailMass, share_of_swaps
from trackperm.exact.engines.choice import (
    LONGEST,
    PATIENCE,
    Engine,
    cannot_solve,
    fitting_engines,
    run_first,
    run_named,
)
from trackperm.exact.engines.enumeration import count_inside
from trackperm.exact.engines.lattice.forms import in_fewer_forms
from trackperm.exact.engines.lattice.independent import cost_of_independent, independent_tail
from trackperm.exact.engines.lattice.lattice import MOST_REDUCED, Lattice, Reach, reduce_rank
from trackperm.exact.engines.lattice.plan import lattice_plan
from trackperm.exact.engines.lattice.row_direction import in_short_rows
from trackperm.exact.engines.lattice.statistic import LatticeStatistic, Statistic
from trackperm.exact.engines.lattice.tail import region_tail
from trackperm.exact.engines.linearised import linearised_bounds
from trackperm.exact.functions.monotone import direction_along
from trackperm.exact.functions.rational import RationalStatistic
from trackperm.exact.functions.real import RealStatistic
from trackperm.exact.null_distribution import linear_distribution, null_distribution
from trackperm.exact.options import MEMORY_BUDGET, TestOptions
from trackperm.exact.outcome import (
    ResultFields,
    TailResult,
    all_extreme,
    computed_result,
    drawn_result,
    tilted_result,
)
from trackperm.exact.result import PermutationTest
from trackperm.exact.sums import affine_test, linear_statistic
from trackperm.exact.types import Region

MODERATE_TERMS = 1_000
"""Largest number of terms of numerator and denominator for which a rational statistic is multiplied out: with
more terms, evaluation of its written form is faster."""

LISTABLE = 2**19
"""Largest number of configurations that are listed for several counts: two seconds, which the lattice engine
rarely needs; but of a tail far below 1e-14 it may know no more than an upper bound."""

SECONDS_OF_LATTICE = 5e-3
"""Time of the lattice engine for the smallest problems."""

BYTES_PER_CONFIGURATION = 256
"""Memory of one configuration: coordinates, its number of swaps as a Python integer, and work arrays."""


def structured_test(
    observed: npt.ArrayLike,
    swapped: npt.ArrayLike,
    h: Statistic,
    *,
    alternative: Alternative = "two-sided",
    multiplicities: npt.ArrayLike | None = None,
    mid_p: bool = False,
    method: Method = "auto",
    n_samples: int | None = None,
    seed: int = 0,
    exceedances: int | None = None,
    memory_budget: int = MEMORY_BUDGET,
) -> PermutationTest:
    """Test a statistic h(g_1, ..., g_m) of integer counts that add up over examples.

    Parameters
    ----------
    observed, swapped : array_like of int, shape (N, m)
        g(u_n, v_n) and g(v_n, u_n): contributions of example n as observed, and with its outputs exchanged.
    h : RationalStatistic, RealStatistic or callable
        Statistic of m variables. Ties of a RationalStatistic are decided exactly; ties of a RealStatistic are
        decided exactly for sums of square roots and for logarithms, and otherwise by 100 digits. A NumPy
        function from float64 arrays of shape (..., m) to arrays of shape (...) is accepted, too: values
        within 2^-40 of the largest value then count as tied with the observed one, and the result has
        ``ties='approximate'``.
    alternative : {'two-sided', 'less', 'greater'}
        Two-sided is |t| >= |t observed| and needs a statistic that changes sign when the runs are exchanged.
    multiplicities : array_like of int, shape (N,), optional
        Number of examples of each row.
    mid_p : bool
        Count ties with the observed value half: less conservative, but no longer a valid p-value.
    method : {'auto', 'enumerate', 'lattice', 'tilted', 'monte-carlo'}
        Numerical engine; for a linear h also ``binomial``, ``dp`` and ``bracket``, and not ``tilted``.
    n_samples, seed, exceedances : int
        For Monte Carlo, as in :func:`difference_test`; ``tilted`` draws 20,000 swaps by default, and fewer of
        many distinct examples.
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
        If the named engine cannot solve the problem.

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
    options = TestOptions(
        alternative=alternative,
        mid_p=mid_p,
        method=method,
        n_samples=n_samples,
        seed=seed,
        exceedances=exceedances,
        memory_budget=memory_budget,
    )
    return structured_test_of(observed, swapped, h, options, multiplicities=multiplicities)


def structured_test_of(
    observed: npt.ArrayLike,
    swapped: npt.ArrayLike,
    h: Statistic,
    options: TestOptions,
    *,
    multiplicities: npt.ArrayLike | None = None,
) -> PermutationTest:
    """Test a statistic as :func:`structured_test` does, with options that were checked before."""
    histogram = DifferenceHistogram.from_pairs(observed, swapped, multiplicities)
    if isinstance(h, RationalStatistic | RealStatistic) and h.n_variables != len(histogram.observed):
        raise InputError(
            f"`h` has {h.n_variables} variables and the arrays have {len(histogram.observed)} columns"
        )
    if not isinstance(h, RationalStatistic) or h.affine is None:
        return _lattice_test(histogram, h, options)
    constant, by_variable = h.affine
    slopes = [by_variable.get(i, Fraction(0)) for i in range(h.n_variables)]
    value = constant + sum(s * x for s, x in zip(slopes, histogram.observed, strict=True))
    statistic = linear_statistic(histogram, histogram.differences, slopes, value)
    return affine_test(statistic, histogram, options)


def _lattice_test(histogram: DifferenceHistogram, h: Statistic, options: TestOptions) -> PermutationTest:
    n_examples, n_discordant = histogram.n_examples, histogram.n_discordant
    lattice = reduce_rank(histogram)
    least = 3 if isinstance(h, RationalStatistic) else 2
    if isinstance(h, RationalStatistic | RealStatistic) and least <= lattice.rank <= MOST_REDUCED:
        fewer = in_fewer_forms(h, histogram, lattice)
        if fewer is not None:
            h, histogram = fewer
            lattice = reduce_rank(histogram)
    statistic = LatticeStatistic(h, histogram, lattice)
    if isinstance(h, RationalStatistic) and not _multiplies_out(statistic):
        statistic = LatticeStatistic(RealStatistic.from_rational(h), histogram, lattice)
    if lattice.rank > 2 or not statistic.is_closed_in_rows:
        statistic = in_short_rows(statistic)
        lattice = statistic.lattice
    law = SwapDistribution(lattice.coordinates, histogram.multiplicities)
    if any(max(abs(low), abs(high)) > LARGEST for low, high in law.support):
        raise CapacityError(
            "sums of the differences exceed 2^62", hint="give a statistic with smaller integers."
        )
    observed = statistic.observed if statistic.observed_exact is None else statistic.observed_exact
    slopes = statistic.slopes()
    if slopes is not None and isinstance(observed, Fraction):
        linear = linear_statistic(histogram, lattice.coordinates, slopes, observed)
        return affine_test(linear, histogram, options)
    if options.two_sided:
        statistic.check_antisymmetric(law.total)
    direction = _direction(h, statistic, law)
    if direction is not None:
        return _monotone_test(statistic, law, direction, options)
    fields = ResultFields(
        observed=statistic.observed,
        ties=lambda: statistic.ties,
        n_examples=n_examples,
        n_discordant=n_discordant,
        rank=_rank(lattice),
        n_better=None,
        n_worse=None,
        distribution=partial(null_distribution, law, statistic.values, options.memory_budget),
    )
    upper = options.tested == "greater" or (options.two_sided and observed >= 0)
    mirror = law.total if options.two_sided else None
    region = partial(statistic.region, observed, upper=upper, mirror=mirror)
    # Tilts need a statistic with a known form, and do not stop early.
    tilts = statistic.observed_exact is not None and not options.mid_p and options.exceedances is None
    patience = PATIENCE if tilts else LONGEST

    def planned(region: Callable[[], Region]) -> Callable[[], TailResult]:
        """Choose engines; it raises CapacityError if none fits, by the pairs, whatever was observed."""
        quick = _independent_tail(law, statistic, region, options, patience)
        if quick is not None:
            return lambda: quick
        engines = _engines(law, statistic, float(observed), region, upper, options)
        if options.method == "auto":
            fitting = fitting_engines(engines, options.memory_budget, patience=patience)
            run = partial(run_first, fitting)
        else:
            others: list[Method] = ["bracket", "tilted", "monte-carlo"]
            run = partial(run_named, options.method, engines, options.memory_budget, others=others)

        def computed() -> TailResult:
            (mass,), engine = run()
            return TailResult(mass, engine.name, engine.why)

        return computed

    def drawn(method: str) -> PermutationTest:
        inside = region()
        if method == "monte-carlo":
            return drawn_result(law, inside, options, fields)
        try:
            return tilted_result(law, statistic, inside, upper, options, fields)
        except CapacityError as error:
            if options.method == "tilted":
                raise cannot_solve("tilted", error.message) from error
            result = drawn_result(law, inside, options, fields)
            return replace(result, why=f"{result.why}; tilted: {error.message}")

    def bracketed(*, only_tight: bool) -> Callable[[], TailResult]:
        if not isinstance(statistic.h, RationalStatistic | RealStatistic):
            raise CapacityError("the statistic is a NumPy function, whose slopes are not known")
        bounds, why = linearised_bounds(
            histogram,
            statistic.h,
            statistic.observed,
            options.tested,
            options.memory_budget,
            only_tight=only_tight,
        )
        return lambda: TailResult(bounds(), "bracket", why)

    found = all_extreme(law.n_coins, options.two_sided and observed == 0)
    if found is None and options.method in ("monte-carlo", "tilted"):
        return drawn(options.method)
    if options.method == "bracket" and options.mid_p:
        raise cannot_solve("bracket", "it does not separate ties, which the mid-p-value counts half")
    if found is None and options.method == "bracket":
        try:
            found = bracketed(only_tight=False)()
        except CapacityError as error:
            raise cannot_solve("bracket", error.message) from error
    if found is None:
        try:
            run = planned(region)
        except CapacityError as error:
            if options.mid_p:
                raise
            if not tilts:
                result = drawn("monte-carlo")
                return replace(result, why=f"{result.why}; {error.message}")
            if options.n_samples is not None:  # the user asked for random swaps by their number
                result = drawn("tilted")
                return replace(result, why=f"{result.why}; {error.message}")
            try:
                bounds = bracketed(only_tight=True)
            except CapacityError as loose:
                result = drawn("tilted")
                return replace(result, why=f"{result.why}; {error.message}; bracket: {loose.message}")
            found = bounds()
            found = found._replace(why=f"{found.why}; {error.message}")
        else:
            found = run()
    if options.mid_p and law.n_coins:
        interior = planned(partial(region, strict=True))()
        found = found._replace(interior=interior.mass, method=interior.method, why=interior.why)
    return computed_result(found, options, fields)


def _direction(h: Statistic, statistic: LatticeStatistic, law: SwapDistribution) -> int | None:
    """Return 1 or -1 if an irrational h provably rises or falls strictly along a lattice of rank 1."""
    if not isinstance(h, RealStatistic) or law.rank != 1:
        return None
    ((low, high),) = law.support
    lines = [
        (start, row[0])
        for start, row in zip(statistic.histogram.origin, statistic.lattice.basis, strict=True)
    ]
    return direction_along(h, lines, low, high)


def _monotone_test(
    statistic: LatticeStatistic, law: SwapDistribution, direction: int, options: TestOptions
) -> PermutationTest:
    """Test a strictly monotone function of one sum by that sum: the same swaps are extreme.

    The mean of the sum has the value 0 if h is antisymmetric, so |h| rises with the distance from it.
    """
    observed = Fraction(direction * (2 * statistic.observed_point[0] - law.total[0]), 2)
    histogram, slope = statistic.histogram, [Fraction(direction)]
    linear = linear_statistic(histogram, statistic.lattice.coordinates, slope, observed)
    test = affine_test(linear, histogram, options)

    def values(sums: FloatArray) -> FloatArray:
        return statistic.values([direction * sums + law.total[0] / 2])

    return replace(
        test,
        observed=statistic.observed,
        n_better=None,
        n_worse=None,
        _distribution=lambda: linear_distribution(linear, options.memory_budget).transformed(values),
    )


def _rank(lattice: Lattice) -> int:
    """Return the rank of the coordinates; above `MOST_REDUCED` their number is not reduced to it."""
    if lattice.rank <= MOST_REDUCED:
        return lattice.rank
    return int(np.linalg.matrix_rank(lattice.coordinates))


def _multiplies_out(statistic: LatticeStatistic) -> bool:
    """Whether h is a quotient of two polynomials of moderate size on the lattice."""
    if statistic.lattice.rank > MOST_REDUCED:
        return False
    try:
        local = statistic.local
    except CapacityError:
        return False
    return local is not None and len(local.numerator.terms) + len(local.denominator.terms) <= MODERATE_TERMS


def _independent_tail(
    law: SwapDistribution,
    statistic: LatticeStatistic,
    region: Callable[[], Region],
    options: TestOptions,
    patience: float,
) -> TailResult | None:
    """Return the tail of two independent counts; None if another engine is faster, or has to compute it."""
    cost = cost_of_independent(law, statistic) if options.method in ("auto", "lattice") else None
    if cost is None:
        return None
    seconds, n_bytes = SECONDS_OF_LATTICE + cost[0], cost[1]
    listing = _seconds_of_listing(n_configurations(law.multiplicities))
    is_slow = options.method == "auto" and (seconds > patience or seconds >= listing)
    if is_slow or n_bytes > options.memory_budget:
        return None
    reach = Reach(law, statistic.histogram.origin, statistic.lattice.basis)
    try:
        mass = independent_tail(law, region(), reach, options.memory_budget)
    except CapacityError:
        return None
    return TailResult(mass, "lattice", _size_of_lattice(law, statistic))


def _seconds_of_listing(n_configurations: int) -> float:
    """Return the estimated time of enumeration; infinite for more configurations than are listed."""
    return 1e-4 + 4e-6 * n_configurations if n_configurations <= LISTABLE else math.inf


def _size_of_lattice(law: SwapDistribution, statistic: LatticeStatistic) -> str:
    return f"{len(statistic.histogram.observed)} counts on a lattice of rank {law.rank}"


def _engines(
    law: SwapDistribution,
    statistic: LatticeStatistic,
    threshold: float,
    region: Callable[[], Region],
    upper: bool,
    options: TestOptions,
) -> list[Engine]:
    configurations = n_configurations(law.multiplicities)
    ways = str(configurations) if configurations < LARGEST else f"2^{configurations.bit_length() - 1}"
    budget = options.memory_budget
    plan = lattice_plan(law, statistic, budget)

    def counted() -> list[TailMass]:
        count = count_inside(law, region())
        return [share_of_swaps(count, law.n_coins) if count else EMPTY]

    def summed() -> list[TailMass]:
        floor = plan.log_floor
        return [
            region_tail(
                law, statistic, threshold, region(), upper=upper, memory_budget=budget, log_floor=floor
            )
        ]

    return [
        Engine(
            "enumerate",
            seconds=_seconds_of_listing(configurations),
            n_bytes=configurations * (BYTES_PER_CONFIGURATION + law.n_coins // 4),
            refusal=None,
            why=f"{ways} configurations, counted in integers",
            run=counted,
        ),
        Engine(
            "lattice",
            seconds=SECONDS_OF_LATTICE + plan.seconds,
            n_bytes=plan.n_bytes,
            refusal=plan.refusal,
            why=_size_of_lattice(law, statistic),
            run=summed,
        ),
    ]
