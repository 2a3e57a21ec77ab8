"""Number of examples that equivalence takes, from a pilot comparison or a discordance."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from trackperm.comparison import Comparison
from trackperm.comparison.inference.equivalence_power import law_by_interval
from trackperm.comparison.inference.verdict import checked_margin
from trackperm.comparison.planning.pilot import Pilot, unit_of
from trackperm.comparison.planning.planned_unit import EXAMPLES, PlannedUnit
from trackperm.errors import InputError
from trackperm.exact.power.equivalence import DifferenceLaw, PairedLaw, examples_for_equivalence
from trackperm.exact.power.paired import share_better_of


@dataclass(frozen=True)
class EquivalencePlan:
    """Number of examples of a comparison that is to find equivalence.

    Attributes
    ----------
    margin, difference : float
        Margin of the equivalence, and true difference within it.
    discordance : float or None
        Share of examples on which exactly one run is right; None unless scores are 0 or 1.
    power, alpha : float
        Required probability of equivalence, and level of both one-sided tests.
    needed : int
        About as many examples, or other units, have the required power.
    n_examples : int or None
        Number of examples whose power was requested.
    power_there : float or None
        Power with so many examples.
    unit : PlannedUnit
        Unit that `needed` counts: examples, rows or clusters.
    pilot : Pilot or None
        Pilot that the plan starts from.
    """

    margin: float
    difference: float
    discordance: float | None
    power: float
    alpha: float
    needed: int
    n_examples: int | None = None
    power_there: float | None = None
    unit: PlannedUnit = EXAMPLES
    pilot: Pilot | None = None

    def lines(self) -> list[str]:
        """Format the plan as lines for a terminal."""
        seen = f"to find equivalence within {self.margin:g} with {100 * self.power:.4g} % power"
        test = f"alpha {self.alpha:g}, true difference {self.difference:g}"
        if self.discordance is not None:
            test += f", discordance {self.discordance:.4g}"
        found = [*self.pilot.lines()] if self.pilot is not None else []
        found.append(f"{seen} ({test}): about {self.unit.amount(self.needed)}")
        if self.n_examples is not None and self.power_there is not None:
            there = self.unit.amount(self.unit.of_examples(self.n_examples))
            found.append(f"with {there} the power is {self.power_there:.2f}")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {**asdict(self), **self.unit.sizes(self.needed, self.n_examples)}


def plan_equivalence(
    margin: float,
    source: float | Comparison,
    *,
    difference: float | None = None,
    n_examples: int | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
) -> EquivalencePlan:
    """Compute the number of examples that equivalence takes, from a discordance of 0/1 scores or a pilot.

    From a pilot come the statistic and how much the runs disagree, not the difference, which is 0 unless it
    is given.

    Raises
    ------
    InputError
        If an argument is out of range, or the pilot has no interval that can show equivalence.
    CapacityError
        If more than 10^7 examples are needed.
    """
    margin = checked_margin(margin, alpha)
    true = 0.0 if difference is None else difference
    if n_examples is not None and n_examples < 1:
        raise InputError(f"`n_examples` is {n_examples}; expected at least 1")
    unit = EXAMPLES
    if isinstance(source, float | int):
        share_better_of(true, source)
        law: DifferenceLaw | None = PairedLaw(source, 0)
    else:
        unit, basis = unit_of(source), source.size.basis
        if isinstance(basis, str):
            raise InputError(
                f"the pilot cannot show equivalence: {basis}", hint="use a pilot with more examples."
            )
        law = law_by_interval(source.statistic, source.count_table, basis, source.pairing.influences)
    if law is None:
        raise InputError("no example of the pilot distinguishes the runs, so that no power is known")
    return EquivalencePlan(
        margin,
        true,
        law.discordance if isinstance(law, PairedLaw) and law.gap == 1.0 else None,
        power,
        alpha,
        examples_for_equivalence(law, margin, true, power=power, alpha=alpha),
        n_examples,
        None if n_examples is None else law.power(margin, true, alpha, unit.of_examples(n_examples)),
        unit,
    )
