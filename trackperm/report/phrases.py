"""Phrases of a comparison: its p-value, scores, difference, interval and counts as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_FLOOR

from trackperm.choices import Alternative
from trackperm.comparison import Comparison
from trackperm.exact import PermutationTest
from trackperm.exact.engines.monte_carlo import exact_interval
from trackperm.exact.intervals import Interval
from trackperm.exact.result import EXACT_WITHIN, Relation, rounded
from trackperm.exact.scores.floats import EQUAL_BY_ROUNDING
from trackperm.messages import amount
from trackperm.report.numbers import extra_digits, format_difference, format_number
from trackperm.statistic import Statistic

SCOPE = "these two runs on these examples; not other seeds, prompts or test sets"


def statistic_title(comparison: Comparison) -> str:
    """Return the name of the statistic, its direction, and why it was chosen if nobody named it."""
    chosen = comparison.statistic.chosen
    name = f"{comparison.title}{direction(comparison.statistic)}"
    return f"{name}, {chosen}" if chosen else name


def scope(comparison: Comparison) -> str:
    """Return the scope of the test, and its null hypothesis."""
    return f"{SCOPE}; null: {comparison.null_hypothesis}"


def direction(statistic: Statistic) -> str:
    """Return " (lower is better)" if that holds for the statistic, else empty text."""
    return "" if statistic.greater_is_better else " (lower is better)"


def sides(alternative: Alternative) -> str:
    """Return ``two-sided``, or ``one-sided`` with the side."""
    return alternative if alternative == "two-sided" else f"one-sided ({alternative})"


def one_sided_word(alternative: Alternative) -> str:
    """Return ``one-sided`` if a test is; empty for a two-sided one."""
    return "" if alternative == "two-sided" else "one-sided"


def pvalue_name(test: PermutationTest) -> str:
    """Return ``p``, or ``mid-p`` if ties count half."""
    return "mid-p" if test.mid_p else "p"


def pvalue(comparison: Comparison, digits: int = 3) -> str:
    """Return the p-value with its name; ≈ marks Monte Carlo, ≤ an upper bound or tilted sampling."""
    test = comparison.test
    return f"{pvalue_name(test)} {test.relation} {comparison.format_pvalue(digits)}"


def pvalue_with_side(comparison: Comparison) -> str:
    """Return the p-value with its name, and ``one-sided`` if it is."""
    return ", ".join(filter(None, (pvalue(comparison), one_sided_word(comparison.test.alternative))))


def bare_pvalue(comparison: Comparison) -> str:
    """Return the p-value without its name, after ≈ or ≤ if it is not computed exactly."""
    return _signed(comparison.test.relation, comparison.format_pvalue())


def _signed(sign: Relation, pvalue: str) -> str:
    return pvalue if sign == "=" else f"{sign} {pvalue}"


def adjusted_pvalue(comparison: Comparison) -> str:
    """Return the adjusted p-value of a corrected comparison, after ≈ or ≤ if it is not exact."""
    found = comparison.corrected
    return "" if found is None else _signed(found.relation, found.format_pvalue(level=comparison.alpha))


def certainty_word(test: PermutationTest) -> str:
    """Return the certainty of a p-value in a word or two; empty if it is computed exactly."""
    if test.relation == "=":
        return ""
    return {"monte-carlo": "Monte Carlo", "tilted": "tilted sampling"}.get(test.method, "certified upper end")


def equivalence(comparison: Comparison) -> str:
    """Return the p-value of the equivalence within the margin, which no correction changes; empty if none."""
    if comparison.equivalence is None:
        return ""
    return f"{comparison.equivalence}{', uncorrected' * is_one_of_several(comparison)}"


def is_one_of_several(comparison: Comparison) -> bool:
    """Whether the comparison is one of several tests, corrected for or not."""
    return comparison.corrected is not None or comparison.n_uncorrected is not None


def certainty(test: PermutationTest) -> str:
    """Return the certainty of a p-value; the level of a mid-p-value is not guaranteed."""
    found = _certified(test)
    if not test.mid_p:
        return found
    return f"mid-p {'computed exactly' if found == 'exact' else found}, level not guaranteed"


def how_certain(comparison: Comparison) -> str:
    """Return the certainty of a comparison's p-value, and whether its level is asymptotic."""
    found = certainty(comparison.test)
    if comparison.pairing.asymptotic is None:
        return found
    of = "ranks" if comparison.statistic.depends_on_both else "means"
    return f"{found}{',' * (',' in found)} for these {of}, level asymptotic"


def _certified(test: PermutationTest) -> str:
    if test.method == "monte-carlo":
        low, high = test.interval
        return f"Monte Carlo of {test.n_samples:,} swaps, 99 % interval {low:.3g} to {high:.3g}"
    if test.method == "tilted":
        about = "no estimate: too few draws are as extreme" if test.estimate is None else str(test.estimate)
        return f"valid (tilted sampling, {test.n_samples:,} draws); {about}"
    if test.error_bound <= EXACT_WITHIN:
        return "exact"
    if test.relation == "=":
        return f"exact within ±{100 * test.error_bound:.2g} %"
    low = test.interval[0]
    if low <= 0.0:
        return "certified upper end"
    return f"certified upper end, lower end {rounded(low, rounding=ROUND_FLOOR)}"


def scores(comparison: Comparison) -> list[tuple[str, str]]:
    """Return names and values: both scores and their difference, or the observed statistic.

    If they depend on the missing predictions, the values are ranges.
    """
    extra = score_digits(comparison)
    found = []
    for name in ("baseline", "candidate"):
        values = [getattr(case, f"{name}_score") for case in _shown_cases(comparison)]
        if values and None not in values:
            found.append((name, _range([format_number(end, extra=extra) for end in _ends(values)])))
    if None in (comparison.baseline_score, comparison.candidate_score):
        return [("observed", difference(comparison))]
    return [*found, ("difference", difference(comparison))]


def score_digits(comparison: Comparison) -> int:
    """Return how many digits the scores need beyond the usual ones, so that unequal ones look unequal."""
    pairs = [
        (case.baseline_score, case.candidate_score)
        for case in _shown_cases(comparison)
        if case.baseline_score is not None and case.candidate_score is not None
    ]
    return extra_digits([score for pair in pairs for score in pair], pairs)


def _shown_cases(comparison: Comparison) -> Sequence[Comparison]:
    """Return both cases of missing predictions if they differ and are known, else the comparison."""
    return comparison.bounds if is_range(comparison) else (comparison,)


def is_range(comparison: Comparison) -> bool:
    """Whether the worst and the best case of missing predictions have different differences."""
    return len({case.difference for case in comparison.cases}) > 1


def differences(comparison: Comparison) -> tuple[float, float]:
    """Return the smallest and the largest difference of the cases of missing predictions; else it twice."""
    return _ends([case.difference for case in comparison.cases] or [comparison.difference])


def difference(comparison: Comparison) -> str:
    """Return the difference with its sign, or its range if it depends on the missing predictions."""
    extra = score_digits(comparison)
    return _range([format_difference(end, extra=extra) for end in differences(comparison)])


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def _range(ends: Sequence[str]) -> str:
    return " to ".join(dict.fromkeys(ends))


def confidence(interval: Interval) -> str:
    """Return the name of an interval by its confidence, which may be approximate or one-sided."""
    about = "about " if interval.approximate else ""
    sides = "" if interval.alternative == "two-sided" else "one-sided "
    return f"{about}{sides}{100 * interval.confidence:.10g}% CI"


def ends(interval: Interval) -> str:
    """Return the ends of an interval as text."""
    low, high = (
        format_number(end, sign=True) if math.isfinite(end) else f"{'-' if end < 0 else '+'}∞"
        for end in (interval.low, interval.high)
    )
    return f"[{low}, {high}]"


def intervals(comparison: Comparison) -> list[tuple[str, str]]:
    """Return names and ends of the interval and of the one that decides equivalence, where there are any.

    Neither is corrected for other tests, and their names say so where there are any.
    """
    found = []
    for each in (comparison.interval, deciding_interval(comparison)):
        if each is not None:
            kind = f"uncorrected{',' * each.approximate} " if is_one_of_several(comparison) else ""
            found.append((f"{kind}{confidence(each)}", ends(each)))
    return found


def deciding_interval(comparison: Comparison) -> Interval | None:
    """Return the interval that decides equivalence, with each end at level alpha; None without one."""
    size = comparison.size if comparison.margin is not None else None
    if size is None or isinstance(size.basis, str):
        return None
    return replace(size.basis, low=size.low, high=size.high)


def correction(comparison: Comparison) -> str:
    """Return the correction of a p-value among several tests, or empty text for a single test."""
    found = comparison.corrected
    if comparison.n_uncorrected is not None:
        return f"uncorrected: one of {comparison.n_uncorrected} tests"
    if found is None:
        return ""
    return f"adjusted {adjusted_pvalue(comparison)}: {found.title} over {found.n_tests} tests"


def examples(comparison: Comparison) -> str:
    """Return the number of examples, and of discordant ones."""
    return f"{amount(comparison.n_examples, unit(comparison))} ({discordance(comparison)})"


def unit(comparison: Comparison) -> str:
    """Return the noun of the exchanged unit."""
    if comparison.statistic.cluster is not None:
        return "cluster"
    return "row" if comparison.statistic.repeats == "rows" else "example"


def discordance(comparison: Comparison) -> str:
    """Return the number of discordant examples, and of better and worse ones if examples have a direction.

    If they depend on the missing predictions, the numbers are ranges, or those of one case, which is named.
    """
    found = f"{_counts(comparison, 'n_discordant')} discordant"
    if comparison.n_better is not None and comparison.n_worse is not None:
        better, worse = (_counts(comparison, name) for name in ("n_better", "n_worse"))
        found += f": {better} better, {worse} worse"
    return found if comparison.bounds else f"{found}{in_one_case(comparison)}"


def _counts(comparison: Comparison, name: str) -> str:
    numbers = [getattr(case, name) for case in comparison.bounds or (comparison,)]
    return _range([f"{number:,}" for number in _ends(numbers)])


def in_one_case(comparison: Comparison) -> str:
    """Return `` in the worst case`` or `` in the best case``, whose numbers stand for both; or nothing."""
    if not is_range(comparison):
        return ""
    shown = next(case for case in comparison.cases if case.difference == comparison.difference)
    return f" in the {shown.missing} case"


def is_rounded(comparison: Comparison) -> bool:
    """Whether some scores that differ between the runs are equal by rounding."""
    return any(EQUAL_BY_ROUNDING in note for note in comparison.pairing.notes)


def one_sided(alternative: Alternative) -> str:
    """Return the assumption of a one-sided test."""
    return f"one-sided: p is valid only if `{alternative}` was chosen before the results were seen"


def smallest_p_sentence(comparison: Comparison) -> str:
    """Return the smallest p-value that any outcome on as many discordant examples has, as a sentence."""
    test = comparison.test
    exponent = test.log10_smallest_pvalue
    units = amount(comparison.n_discordant, f"discordant {unit(comparison)}")
    found = f"with {units}{in_one_case(comparison)}"
    drawn = test.n_samples if test.method == "monte-carlo" else None
    if drawn is not None and exponent < -math.log10(drawn + 1):
        exponent = -math.log10(drawn + 1)  # the observed outcome counts as one of the swaps
        found += f" and {drawn:,} random swaps"
    least = rounded(10.0**exponent, rounding=ROUND_FLOOR) if exponent > -300 else f"1e{math.floor(exponent)}"
    return f"{found}, {pvalue_name(test)} is at least {least}"


def unchangeable(comparison: Comparison) -> str:
    """Return why p is 1 although counts differ, such as F1 where no run found a positive example."""
    return f"the exchange of no single {unit(comparison)} changes the score"


def opinions(comparison: Comparison) -> list[str]:
    """Return the second opinions, one line each."""
    return [f"{each.name}: {each.sentence}" for each in comparison.second_opinions]


def one_sided_claim(comparison: Comparison) -> str | None:
    """Return what a one-sided test can show, ``better`` or ``worse``; None for a two-sided test."""
    alternative = comparison.test.alternative
    if alternative == "two-sided":
        return None
    return "better" if (alternative == "greater") == comparison.statistic.greater_is_better else "worse"


def is_within_reach(comparison: Comparison) -> bool:
    """Whether some outcome on as many discordant examples would be significant."""
    return comparison.test.log10_smallest_pvalue < math.log10(comparison.alpha)


def least_drawn(comparison: Comparison) -> float:
    """Return the smallest upper end of a Monte Carlo p-value's 99 % interval; 0 for other p-values.

    It is the upper end if none of the requested random swaps is extreme.
    """
    drawn = comparison.test.n_samples
    if drawn is None or comparison.method != "monte-carlo":
        return 0.0
    # drawing stops early if the p-value is large
    return exact_interval(0, int(comparison.options.get("n_samples", drawn)), stopped=False)[1]
