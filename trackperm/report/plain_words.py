"""Result of a comparison in two plain sentences: the size of the difference, and what it shows."""

from __future__ import annotations

import math
from collections.abc import Mapping

from trackperm.choices import Alternative
from trackperm.comparison import Comparison
from trackperm.report import phrases
from trackperm.report.numbers import format_difference, format_number

_FAR: Mapping[Alternative, str] = {
    "two-sided": "at least this large",
    "greater": "at least this high",
    "less": "at least this low",
}
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
    if phrases.is_range(comparison):
        return _size_by_case(comparison)
    if difference == 0:
        return "The two runs have the same score."
    if comparison.statistic.name == "accuracy":
        of, number = next(
            ((of, abs(difference) * of) for of in (100, 1000, 10_000) if abs(difference) * of >= 0.95),
            (1_000_000, abs(difference) * 1_000_000),
        )
        about = "about " if abs(number - round(number)) > 0.05 else ""
        return (
            f"The candidate gets {about}{number:.0f} {'more' if difference > 0 else 'fewer'} of every {of:,}"
            f" {_examples(comparison)} right."
        )
    amount = format_number(abs(difference))
    if comparison.baseline_score is None or comparison.statistic.contrast != "difference":
        return f"{comparison.title} is {format_difference(difference)}."
    return f"{comparison.title} of the candidate is {amount} {'higher' if difference > 0 else 'lower'}."


def _size_by_case(comparison: Comparison) -> str:
    """Describe the worst and the best case of missing predictions."""
    low, high = phrases.differences(comparison)
    if comparison.statistic.name != "accuracy":
        return (
            f"Depending on the missing predictions, the difference in {comparison.title} is between"
            f" {format_difference(low)} and {format_difference(high)}."
        )
    of = next((of for of in (100, 1000, 10_000) if (high - low) * of >= 2.0), 1_000_000)
    if low < 0 < high:
        size = f"between {_short(-low * of)} fewer and {_short(high * of)} more"
    else:
        ends = sorted((abs(low * of), abs(high * of)))
        size = f"{_short(ends[0])} to {_short(ends[1])} {'more' if high > 0 else 'fewer'}"
    of_every = f"of every {of:,} {_examples(comparison)}"
    return f"Depending on the missing predictions, the candidate gets {size} {of_every} right."


def _examples(comparison: Comparison) -> str:
    return "examples" if comparison.slice is None else f"examples with {comparison.slice}"


def _short(number: float) -> str:
    return f"{number:,.1f}".removesuffix(".0")


def _chance(comparison: Comparison) -> str:
    """Say how often chance shows as much; of two cases of missing predictions, in that with the larger p."""
    test = comparison.test
    far = f"a difference {_FAR[test.alternative]}"
    if phrases.is_range(comparison):
        far = f"in the less extreme case, {far}"
    often = how_often(test.log10_pvalue, is_bound=test.relation == "≤")
    if (
        test.method == "monte-carlo" and test.interval[0] <= 0.0
    ):  # no draw: (0 + 1) / (n + 1) estimates nothing
        at_most = how_often(math.log10(test.interval[1]), is_bound=True)
        often = f"{at_most} (99 % confidence; none of {test.n_samples:,} random swaps gave one)"
    other = "" if test.alternative == "two-sided" else "; differences in the other direction do not count"
    half = ", with equal differences counted half" if test.mid_p else ""
    n_tests = None if comparison.corrected is None else comparison.corrected.n_tests
    before = f", before the correction for {n_tests} tests" if n_tests else ""
    return f"If the two runs were interchangeable, {far} would come up {often}{half}{before}{other}."


def _smallness(comparison: Comparison) -> str:
    found, margin = comparison.equivalence, comparison.margin
    if found is None or margin is None:
        return _chance(comparison)
    often = how_often(math.log10(found.pvalue), is_bound=found.is_bound)
    return f"If they really differed by {margin:g} or more, results this close would come up {often}."


def how_often(log10_pvalue: float, *, is_bound: bool = False) -> str:
    """Return how often an event of this probability, or of a smaller one, occurs, in words.

    `is_bound` says that the probability is only known to be at most this.
    """
    if log10_pvalue < -6.0:
        return f"less than once in 10{str(math.floor(-log10_pvalue)).translate(_SUPERSCRIPTS)} comparisons"
    p = 10.0**log10_pvalue
    if p < 0.01:
        if is_bound:
            return f"at most once in {math.floor((1 + 1e-9) / p):,} comparisons"
        digits = 1 - math.floor(-log10_pvalue)
        return f"about once in {round(1 / p, digits):,.0f} comparisons"
    if p < 0.995:
        return f"in {'at most' if is_bound else 'about'} {_percent(p, is_bound)} of 100 comparisons"
    return "in every comparison" if p > 1.0 - 1e-9 else "in nearly every comparison"


def _percent(p: float, is_bound: bool) -> str:
    """Return 100 p with two digits, rounded up if p is a bound."""
    step = 10.0 ** (math.floor(math.log10(100 * p)) - 1)
    return f"{math.ceil(100 * p / step - 1e-9) * step:.2g}" if is_bound else f"{100 * p:.2g}"
