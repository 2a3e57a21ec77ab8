"""Text of a comparison: lines for a terminal."""

from __future__ import annotations

from trackperm.comparison import Comparison
from trackperm.messages import printable
from trackperm.report import phrases
from trackperm.report.notes import notes_of


def lines(comparison: Comparison) -> list[str]:
    """Render a comparison as at least three lines: scores, test, scope, and notes."""
    test = comparison.test
    shown = phrases.pvalue(comparison)
    if among := phrases.correction(comparison):
        shown += f" ({among})"
    certainty, sides = phrases.how_certain(comparison), phrases.sides(test.alternative)
    verdict = comparison.decision.sentence(phrases.equivalence(comparison))
    found = [f"{name} {value}" for name, value in phrases.scores(comparison)]
    found += [f"{name} {value}" for name, value in phrases.intervals(comparison)]
    said = [
        "   ".join((phrases.statistic_title(comparison), *found)),
        f"{shown}  {certainty}, {sides}, {phrases.examples(comparison)}   {comparison.marker} {verdict}",
        f"scope: {phrases.scope(comparison)}",
        *notes_of(comparison),
        *phrases.opinions(comparison),
    ]
    return [printable(line) for line in said]
