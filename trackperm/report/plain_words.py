"""Result of a comparison in two plain sentences: the size of the difference, and what it shows."""

from __future__ import annotations

import math

from trackperm.comparison import Comparison
from trackperm.report import text

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def plain_words(comparison: Comparison) -> str:
    """Describe the size of the difference, and how often chance would show as much.

    For an equivalence, that is how often a difference as large as the margin would look as small as this one.

    Examples
    --------
    >>> plain_words(comparison)
    'The candidate gets 3 more of every 100 examples right. If the two runs were interchangeable, a
    difference at least this large would come up about once in 300 comparisons.'
    """
    if comparison.verdict == "equivalent":
        return f"{_size(comparison)} {_smallness(comparison)}"
    return _size(comparison) if comparison.difference == 0 else f"{_size(comparison)} {_chance(comparison)}"


def _size(comparison: Comparison) -> str:
    difference = comparison.difference
    if difference == 0:
        return "The two runs have the same score."
    if comparison.title == "accuracy":
        of, number = next(
            ((of, abs(difference) * of) for of in (100, 1000, 10_000) if abs(difference) * of >= 0.95),
            (1_000_000, abs(difference) * 1_000_000),
        )
        about = "about " if abs(number - round(number)) > 0.05 else ""
        return (
            f"The candidate gets {about}{number:.0f} {'more' if difference > 0 else 'fewer'} of every {of:,}"
            " examples right."
        )
    amount = text.format_number(abs(difference))
    if comparison.baseline_score is None or comparison.statistic.contrast != "difference":
        return f"{comparison.title} is {text.format_number(difference, sign=True)}."
    return f"{comparison.title} of the candidate is {amount} {'higher' if difference > 0 else 'lower'}."


def _chance(comparison: Comparison) -> str:
    far = "at least this large"
    if comparison.test.alternative != "two-sided":
        far = f"at least this {'high' if comparison.test.alternative == 'greater' else 'low'}"
    often = how_often(comparison.test.log10_pvalue)
    if comparison.method == "bracket":
        often = f"at most {often}"
    half = ", with equal differences counted half" if comparison.test.mid_p else ""
    return f"If the two runs were interchangeable, a difference {far} would come up {often}{half}."


def _smallness(comparison: Comparison) -> str:
    found, margin = comparison.equivalence, comparison.margin
    if found is None or margin is None:
        return _chance(comparison)
    often = how_often(math.log10(found.pvalue), is_bound=found.is_bound)
    return f"If they really differed by {margin:g} or more, results this close would come up {often}."


def how_often(log10_pvalue: float, *, is_bound: bool = False) -> str:
    """Return how often an event of this probability, or of a smaller one, occurs, in words."""
    if is_bound and log10_pvalue >= -6.0:
        return f"less than once in {math.floor(10.0**-log10_pvalue * (1 + 1e-9)):,} comparisons"
    if log10_pvalue < -6.0:
        return f"less than once in 10{str(math.floor(-log10_pvalue)).translate(_SUPERSCRIPTS)} comparisons"
    p = 10.0**log10_pvalue
    if p < 0.01:
        digits = 1 - math.floor(-log10_pvalue)
        return f"about once in {round(1 / p, digits):,.0f} comparisons"
    return f"in about {100 * p:.2g} of 100 comparisons" if p < 0.995 else "in every comparison"
