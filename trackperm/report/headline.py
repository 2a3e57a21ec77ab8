"""Headline of a comparison: its verdict as a sentence, with everything that qualifies the p-value."""

from __future__ import annotations

from trackperm.comparison import Comparison
from trackperm.report import phrases
from trackperm.report.fitting_names import fitting_names, shorten_in_the_middle

_NAMES = 400
"""Characters of the names of both runs together where there is room."""

_STATISTIC = 60
"""Characters of the statistic's title in a short headline."""


def headline(comparison: Comparison, room: int | None = None) -> str:
    """Return the verdict as a sentence, without its marker.

    With `room`, names are cut in their middles so that the sentence has about as many characters: the end of
    a name often tells two runs apart, and the p-value is at the end of the sentence.
    """
    names = comparison.shown_names
    if room is None:
        baseline, candidate = fitting_names(names, _NAMES)
        return _sentence(comparison, baseline, candidate, comparison.title)
    title = shorten_in_the_middle(comparison.title, _STATISTIC)
    rest = len(_sentence(comparison, "", "", title))
    baseline, candidate = fitting_names(names, max(room - rest, 0))
    return _sentence(comparison, baseline, candidate, title)


def _sentence(comparison: Comparison, baseline: str, candidate: str, statistic: str) -> str:
    found = f"({', '.join([phrases.pvalue(comparison), *_qualifiers(comparison)])})"
    if comparison.verdict == "undecided":
        sought = phrases.one_sided_claim(comparison)
        shown = f"{candidate} is not shown to be {sought} than {baseline}"
        if sought is None:
            shown = f"{candidate} and {baseline} are not shown to differ"
        return f"Undecided: {shown} by {statistic} {found}{_on_missing(comparison)}"
    if comparison.verdict == "equivalent":
        within = f"{comparison.margin:g} by {statistic} ({phrases.equivalence(comparison)} for equivalence)"
        return f"{candidate} and {baseline} are equivalent within {within}{_on_missing(comparison)}"
    note = "" if comparison.statistic.greater_is_better else ", where lower is better"
    size = ""
    if comparison.equivalence is not None:
        shown = phrases.equivalence(comparison)
        size = f", and equivalent within {comparison.margin:g} ({shown} for equivalence)"
    return f"{candidate} is {comparison.verdict} than {baseline} by {statistic}{note} {found}{size}"


def _on_missing(comparison: Comparison) -> str:
    """Say that the sign depends on the missing predictions, if it does."""
    if not comparison.decision.depends_on_missing:
        return ""
    what = "it" if comparison.verdict == "undecided" else "the sign"
    return f"; {what} depends on the missing predictions"


def _qualifiers(comparison: Comparison) -> list[str]:
    """Return what the p-value depends on: its certainty, its side and its correction."""
    found = (
        phrases.certainty_word(comparison.test),
        phrases.one_sided_word(comparison.test.alternative),
        phrases.correction(comparison),
    )
    return [words for words in found if words]
