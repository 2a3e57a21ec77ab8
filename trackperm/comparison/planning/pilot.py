"""Pilot of a planned comparison: its statistic, its size, and what limits it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trackperm.comparison.planning.planned_unit import PlannedUnit
from trackperm.comparison.result import Comparison


@dataclass(frozen=True)
class Pilot:
    """Pilot that a plan starts from.

    Attributes
    ----------
    statistic : str
        Name of the statistic, with the reason for it if nobody named it.
    size : str
        Number of examples, rows or clusters that were tested.
    missing_case : {'worst', 'best'} or None
        Case of missing predictions that the plan starts from, if both were tested and differ.
    notes : tuple of str
        Notes of the pilot without which its numbers may mislead.
    """

    statistic: str
    size: str
    missing_case: str | None
    notes: tuple[str, ...]

    @classmethod
    def of(cls, comparison: Comparison, statistic: str, notes: Sequence[str]) -> Pilot:
        """Return the pilot of a plan, with the notes of its report."""
        differs = len({case.difference for case in comparison.cases}) > 1
        return cls(
            statistic,
            unit_of(comparison).amount(comparison.n_examples),
            comparison.pairing.missing if differs else None,
            tuple(notes),
        )

    def lines(self) -> list[str]:
        """Return the pilot as lines for a terminal."""
        case = self.missing_case
        found = [f"pilot: {self.statistic}; {self.size}"]
        if case is not None:
            found.append(
                f"the plan is from the {case} case of the missing predictions, which has the greater p-value"
            )
        return [*found, *self.notes]


def unit_of(comparison: Comparison) -> PlannedUnit:
    """Return the unit of a pilot's test."""
    return PlannedUnit.of(comparison.statistic, comparison.n_examples, comparison.pairing.n_paired)
