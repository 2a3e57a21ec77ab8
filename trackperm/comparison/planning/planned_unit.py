"""Unit in which sample sizes are planned: examples, rows, or clusters of examples."""

from __future__ import annotations

from dataclasses import dataclass

from trackperm.messages import amount
from trackperm.statistic import Statistic

_ROUNDING = 1e-9  # of a division, so that 400 examples in clusters of 400/3 are three clusters


@dataclass(frozen=True)
class PlannedUnit:
    """Unit that the planned test exchanges between the runs.

    Attributes
    ----------
    noun : {'example', 'row', 'cluster'}
        Name of the unit.
    column : str or None
        Column whose values are the clusters.
    mean_examples : float
        Mean number of examples of a cluster in the pilot; 1 for other units.
    """

    noun: str = "example"
    column: str | None = None
    mean_examples: float = 1.0

    @classmethod
    def of(cls, statistic: Statistic, n_units: int, n_examples: int) -> PlannedUnit:
        """Return the unit of a statistic's test; a pilot had `n_units` of them, with `n_examples`."""
        if statistic.cluster is not None:
            return cls("cluster", statistic.cluster, n_examples / n_units)
        return cls("row" if statistic.repeats == "rows" else "example")

    def of_examples(self, n_examples: int) -> int:
        """Return how many whole units so many examples are, at least one; rows are requested as rows."""
        return max(1, int(n_examples / self.mean_examples + _ROUNDING))

    def examples(self, n_units: int) -> int:
        """Return about how many examples so many units have."""
        return round(n_units * self.mean_examples)

    def sizes(self, n_needed: int | None, n_examples: int | None) -> dict[str, int | None]:
        """Return how many examples are needed, and how many units the requested ones are, for JSON."""
        return {
            "needed_examples": None if n_needed is None else self.examples(n_needed),
            "n_units": None if n_examples is None else self.of_examples(n_examples),
        }

    def amount(self, n_units: int) -> str:
        """Return a number of units with their noun, and for clusters the number of their examples."""
        found = amount(n_units, self.noun)
        if self.column is None:
            return found
        return f"{found} (`{self.column}`), about {amount(self.examples(n_units), 'example')}"


EXAMPLES = PlannedUnit()
"""Single examples, which are the units if no pilot has clusters."""
