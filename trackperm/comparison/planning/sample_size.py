"""Sample size of a planned comparison, from a pilot comparison or a discordance."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from trackperm.choices import Alternative
from trackperm.comparison import Comparison, count_table_test
from trackperm.comparison.inference.unseen import unit_scores
from trackperm.comparison.planning.pilot import Pilot, unit_of
from trackperm.comparison.planning.planned_unit import EXAMPLES, PlannedUnit
from trackperm.errors import CapacityError
from trackperm.exact import CountTable, PermutationTest, TestOptions
from trackperm.exact.power import (
    ExamplesNeeded,
    MinimumDetectableEffect,
    SimulatedPower,
    approximate_examples_needed,
    examples_needed,
    minimum_detectable_effect,
    null_standard_deviation,
    paired_power,
    simulated_power,
)
from trackperm.exact.power.fewest import fewest_examples
from trackperm.exact.power.needed import require_sought
from trackperm.exact.power.paired import MOST_EXAMPLES
from trackperm.exact.power.simulated import N_RESAMPLES
from trackperm.statistic import Statistic


@dataclass(frozen=True)
class Plan:
    """Sample size and power of a planned comparison.

    Attributes
    ----------
    difference : float
        The true difference that the comparison has to detect.
    discordance : float or None
        Share of examples on which exactly one run is right; None unless scores are 0 or 1.
    power, alpha : float
        Probability that p < alpha, and alpha.
    alternative : {'two-sided', 'less', 'greater'}
        Alternative of the test.
    needed : ExamplesNeeded or None
        Exact numbers of units, for scores of 0 and 1.
    about : int or None
        Number of units by the normal approximation, for other statistics.
    about_by : str or None
        How `about` was found: the approximation can be below what any test needs, or what resampling shows.
    n_examples : int or None
        Number of examples whose power was requested.
    power_there : float or None
        Exact power with `n_examples`, for scores of 0 and 1.
    simulated : SimulatedPower or None
        Estimated power with `n_examples`, or else with `about` units, for other statistics.
    detectable : MinimumDetectableEffect or None
        Smallest difference that `n_examples` detect.
    from_pilot : bool
        Whether the difference is that of a pilot comparison.
    taking_part : tuple of int or None
        Number of the pilot's examples that the statistic counts, such as positives for recall, and number of
        all examples. All sample sizes refer to counted examples. None if the statistic counts all examples.
    unit : PlannedUnit
        Unit that sample sizes count: examples, rows or clusters.
    pilot : Pilot or None
        Pilot that the plan starts from.
    """

    difference: float
    discordance: float | None
    power: float
    alpha: float
    alternative: Alternative
    needed: ExamplesNeeded | None = None
    about: int | None = None
    about_by: str | None = None
    n_examples: int | None = None
    power_there: float | None = None
    simulated: SimulatedPower | None = None
    detectable: MinimumDetectableEffect | None = None
    from_pilot: bool = False
    taking_part: tuple[int, int] | None = None
    unit: PlannedUnit = EXAMPLES
    pilot: Pilot | None = None

    def lines(self) -> list[str]:
        """Format the plan as lines for a terminal."""
        seen = f"to detect a difference of {self.difference:+.4g} with {100 * self.power:.4g} % power"
        test = f"alpha {self.alpha:g}, {self.alternative}"
        unit = self.unit
        found = [*self.pilot.lines()] if self.pilot is not None else []
        if self.needed is not None:
            first, stays = self.needed.first, self.needed.stays
            later = "" if first == stays else f", and any number of {unit.noun}s from {stays:,}"
            found.append(
                f"{seen} ({test}, discordance {self.discordance:.4g}): {unit.amount(first)}{later} (exact)"
            )
        if self.about is not None:
            found.append(f"{seen} ({test}): about {unit.amount(self.about)} ({self.about_by})")
        if self.n_examples is not None and self.power_there is not None:
            there = unit.amount(unit.of_examples(self.n_examples))
            found.append(f"with {there} the power is {self.power_there:.4f} (exact)")
        if self.simulated is not None:
            found.append(self.simulated.sentence(unit.amount(self.simulated.n_examples)))
        if self.detectable is not None:
            found.append(f"with {unit.amount(self.detectable.n_examples)}: {self.detectable}")
        if self.taking_part is not None:
            counted, n = self.taking_part
            found.append(
                f"these are numbers of {unit.noun}s that the statistic counts:"
                f" {counted:,} of {n:,} in the pilot"
            )
        if self.from_pilot:
            found.append(
                "the difference is that of the pilot, which tends to be too large if it is why the study"
                " continues; set the smallest that matters by `--difference`"
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        n_needed = self.about if self.needed is None else self.needed.first
        return {**asdict(self), **self.unit.sizes(n_needed, self.n_examples)}


def plan_paired(
    difference: float,
    discordance: float,
    *,
    n_examples: int | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    unit: PlannedUnit = EXAMPLES,
) -> Plan:
    """Compute the exact sample size for scores of 0 and 1 of examples, or of another `unit`.

    Other options are those of :func:`trackperm.power`.

    Raises
    ------
    InputError
        If an argument is out of range.
    CapacityError
        If more than 10^7 examples are needed.
    """
    options: dict[str, Any] = {"alpha": alpha, "alternative": alternative}
    there = detectable = None
    if n_examples is not None:
        n_units = unit.of_examples(n_examples)
        there = paired_power(n_units, difference, discordance, **options)
        detectable = minimum_detectable_effect(n_units, discordance, power=power, **options)
    return Plan(
        difference,
        discordance,
        power,
        alpha,
        alternative,
        needed=examples_needed(difference, discordance, power, alpha, alternative),
        n_examples=n_examples,
        power_there=there,
        detectable=detectable,
        unit=unit,
    )


def plan_from_pilot(
    pilot: Comparison,
    *,
    difference: float | None = None,
    n_examples: int | None = None,
    power: float = 0.8,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Plan:
    """Compute the sample size from a pilot by the same statistic, level and alternative.

    The difference is by default that of the pilot; other options are those of :func:`plan_from_counts`.
    """
    plan = plan_from_counts(
        pilot.statistic,
        pilot.count_table,
        pilot.test,
        pilot.difference if difference is None else difference,
        n_examples=n_examples,
        power=power,
        alpha=pilot.alpha,
        n_resamples=n_resamples,
        seed=seed,
        unit=unit_of(pilot),
    )
    return replace(plan, from_pilot=difference is None)


def plan_from_counts(
    statistic: Statistic,
    table: CountTable,
    test: PermutationTest,
    difference: float,
    *,
    n_examples: int | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    unit: PlannedUnit = EXAMPLES,
) -> Plan:
    """Compute the sample size from the counts of a pilot: exactly for scores of 0 and 1, else by resampling.

    `test` is the test of these counts, with the alternative of the planned one; `table` has the counts of
    examples, or of another `unit`. No power is simulated if the pilot's difference is smaller than
    `difference`, or has the wrong sign for a one-sided test. Else the approximate sample size is raised until
    its simulated power is not below `power`. Other options are those of :func:`trackperm.power`.

    Raises
    ------
    InputError
        If the pilot has no discordant examples, or its discordance is too small for the difference.
    CapacityError
        If too many examples are needed.
    """
    alternative = test.alternative
    share, counted = paired_discordance(statistic, table)
    n = table.n_examples
    if share is not None:
        plan = plan_paired(
            difference,
            share,
            n_examples=n_examples,
            power=power,
            alpha=alpha,
            alternative=alternative,
            unit=unit,
        )
        return replace(plan, taking_part=None if counted == n else (counted, n))
    require_sought(difference, alternative)
    about, about_by = _approximate(statistic, table, test, difference, power=power, alpha=alpha)
    effect = difference / test.observed if test.observed else 0.0
    if alternative == "two-sided":
        effect = abs(effect)
    simulated = None
    if 0.0 < effect <= 1.0:
        simulate = partial(
            simulated_power,
            table,
            partial(_tested, statistic, test),
            effect=effect,
            alpha=alpha,
            n_resamples=n_resamples,
            seed=seed,
        )
        try:
            simulated = simulate(about)
            while simulated.interval[1] < power:
                about = _raised(about, simulated.power, power, alpha, alternative)
                about_by, simulated = "normal approximation, raised by resampling", simulate(about)
        except CapacityError:
            if n_examples is None:
                raise
        if n_examples is not None:
            simulated = simulate(unit.of_examples(n_examples))
    return Plan(
        difference,
        None,
        power,
        alpha,
        alternative,
        about=about,
        about_by=about_by,
        n_examples=n_examples,
        simulated=simulated,
        unit=unit,
    )


def _approximate(
    statistic: Statistic,
    table: CountTable,
    test: PermutationTest,
    difference: float,
    *,
    power: float,
    alpha: float,
) -> tuple[int, str]:
    """Return the sample size by the normal approximation, or the least that any test needs, and by which."""
    n, alternative = table.n_examples, test.alternative
    of_attempts = statistic.repeats == "attempts"
    about = approximate_examples_needed(
        difference,
        null_deviation(statistic, table),
        n,
        power=power,
        alpha=alpha,
        alternative=alternative,
        critical_sd=_deviation(test) if of_attempts else None,
    )
    if of_attempts:  # examples have more outcomes than two
        return about, "normal approximation"
    share = max(table.n_discordant, test.n_discordant) / n
    fewest = fewest_examples(share, power, alpha, alternative)
    if about >= fewest:
        return about, "normal approximation"
    return fewest, f"with fewer, p < {alpha:g} is too rarely possible"


def _raised(n_units: int, reached: float, power: float, alpha: float, alternative: Alternative) -> int:
    """Return a larger sample size, by the normal approximation from the power that was reached."""
    options: dict[str, Any] = {"alpha": alpha, "alternative": alternative}
    # any difference that is small beside the spread gives the ratio of two sample sizes
    wanted, had = (
        approximate_examples_needed(1.0, 1e3, 1, power=each, **options)
        for each in (power, max(reached, (1.0 + 1e-3) * alpha))
    )
    return n_units + max(1, min(n_units, math.ceil(n_units * (wanted / had - 1.0))))


def paired_discordance(statistic: Statistic, table: CountTable) -> tuple[float | None, int]:
    """Return the share of counted examples on which exactly one run is right, and the number of counted ones.

    The share is None if scores are not 0 or 1, or if there are too many examples for the exact power.
    """
    scores = unit_scores(statistic, table)
    is_paired = scores is not None and scores.gap == 1 and scores.equally_weighted
    if scores is None or not is_paired or table.n_examples > MOST_EXAMPLES:
        return None, table.n_examples
    return (scores.n_up + scores.n_down) / scores.n_rows, scores.n_rows


def null_deviation(statistic: Statistic, table: CountTable) -> float:
    """Return the standard deviation of the null distribution, to first order."""
    observed, swapped = statistic.pairs(table.candidate, table.baseline)
    return null_standard_deviation(observed, swapped, statistic.h, table.multiplicities)


def _deviation(test: PermutationTest) -> float:
    """Return the standard deviation of a null distribution with mean 0."""
    law = test.null_distribution
    return math.sqrt(float(law.mass @ law.values**2))


def _tested(statistic: Statistic, like: PermutationTest, table: CountTable) -> PermutationTest:
    """Test resampled counts with the options of the pilot."""
    try:
        return count_table_test(statistic, table, TestOptions(alternative=like.alternative, mid_p=like.mid_p))
    except CapacityError as error:
        raise CapacityError(
            f"the pilot cannot be resampled at this size: {error.message}", hint="plan fewer examples."
        ) from error
