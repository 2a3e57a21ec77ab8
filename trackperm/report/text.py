"""A comparison in words: the lines that a terminal shows, and their parts, which others show as well."""

from __future__ import annotations

import math
import re

from trackperm.choices import Alternative
from trackperm.comparison import Comparison
from trackperm.exact import PermutationTest
from trackperm.exact.engines.monte_carlo import exact_interval
from trackperm.exact.intervals import Interval
from trackperm.pairing.checks.suspicions import shared_input
from trackperm.statistic import Statistic

SCOPE = "these two runs on these examples; not other seeds, prompts or test sets"

EXACT_WITHIN = 1e-6
"""The largest certified relative error with which a p-value is called exact without qualification."""

_NAME_LIMIT = 200
_MARKDOWN_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~&#!$])")


def lines(comparison: Comparison) -> list[str]:
    """Render `comparison` as the lines that a user sees: scores, test, scope, then what else must be known.

    Parameters
    ----------
    comparison : Comparison
        The result to print.

    Returns
    -------
    list of str
        At least three lines, without line ends.
    """
    test = comparison.test
    shown = pvalue(comparison)
    if among := correction(comparison):
        shown += f" ({among})"
    facts = ", ".join((f"{how_certain(comparison)}, {test.alternative}", examples(comparison)))
    found = [f"{name} {value}" for name, value in scores(comparison)]
    if (interval := comparison.interval) is not None:
        found.append(f"{confidence(interval)} {ends(interval)}")
    return [
        "   ".join((asked(comparison), *found)),
        f"{shown}  {facts}   {comparison.marker} {comparison.decision}",
        f"scope: {scope(comparison)}",
        *notes(comparison),
        *opinions(comparison),
    ]


def asked(comparison: Comparison) -> str:
    """Name the statistic, say where lower is better, and why it was chosen where nobody named it."""
    chosen = comparison.statistic.chosen
    name = f"{comparison.title}{direction(comparison.statistic)}"
    return f"{name}, {chosen}" if chosen else name


def scope(comparison: Comparison) -> str:
    """Say what the test is about, and what it takes for granted."""
    return f"{SCOPE}; null: {comparison.null_hypothesis}"


def format_number(value: float, *, sign: bool = False) -> str:
    """Write a score with four decimals, or with as many digits as it takes to be told from zero."""
    plus = "+" if sign and value != 0 else ""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return f"{value:{plus}.4f}"
    return f"{value:{plus}.4g}"


def direction(statistic: Statistic) -> str:
    """Say behind the name of a statistic that lower is better; nothing where greater is, as mostly."""
    return "" if statistic.greater_is_better else " (lower is better)"


def pvalue_name(test: PermutationTest) -> str:
    """Say which p-value it is: ``p``, or ``mid-p`` where ties count half."""
    return "mid-p" if test.mid_p else "p"


def pvalue(comparison: Comparison, digits: int = 3) -> str:
    """Write the p-value with its name: with ≈ where it is by Monte Carlo."""
    equals = "≈" if comparison.method == "monte-carlo" else "="
    return f"{pvalue_name(comparison.test)} {equals} {comparison.format_pvalue(digits)}"


def short_pvalue(comparison: Comparison) -> str:
    """Write the p-value for a tag: the adjusted one where there is one, and what has to be known of it."""
    found = comparison.corrected
    if found is None:
        written = pvalue(comparison, 2).replace(" ", "")
    else:
        written = f"adj. p{'≈' if found.is_drawn else '='}{found.format_pvalue(2, comparison.alpha)}"
    drawn = comparison.method == "monte-carlo" if found is None else found.is_drawn
    return f"{written}{' MC' * drawn}{' uncorrected' * (comparison.n_uncorrected is not None)}"


def certainty(test: PermutationTest) -> str:
    """Say what is known about the error of a p-value, and that no level is guaranteed by a mid-p-value."""
    found = _certified(test)
    if not test.mid_p:
        return found
    return f"mid-p {'computed exactly' if found == 'exact' else found}, level not guaranteed"


def how_certain(comparison: Comparison) -> str:
    """Say what is known about the error of a p-value, and whether its level holds for many examples alone."""
    found = certainty(comparison.test)
    return found if comparison.pairing.asymptotic is None else f"{found} for these means, level asymptotic"


def _certified(test: PermutationTest) -> str:
    if test.method == "monte-carlo":
        low, high = test.interval
        return f"Monte Carlo of {test.n_samples} swaps, 99 % interval {low:.3g} to {high:.3g}"
    if test.error_bound <= EXACT_WITHIN:
        return "exact"
    if test.method == "bracket":
        low = test.interval[0]
        return f"certified upper end, lower end {low:.3g}" if low > 0.0 else "certified upper end"
    if test.error_bound < 1:
        return f"exact within ±{100 * test.error_bound:.2g} %"
    return "certified as an upper bound" if math.isfinite(test.error_bound) else "not certified"


def scores(comparison: Comparison) -> list[tuple[str, str]]:
    """Name and write out what was observed: both scores and their difference, or the statistic itself."""
    baseline, candidate = comparison.baseline_score, comparison.candidate_score
    if baseline is None or candidate is None:
        return [("observed", format_number(comparison.observed, sign=True))]
    return [
        ("baseline", format_number(baseline)),
        ("candidate", format_number(candidate)),
        ("difference", format_number(comparison.difference, sign=True)),
    ]


def confidence(interval: Interval) -> str:
    """Name an interval by its confidence, and say so if that is approximate, or it is bounded on one side."""
    about = "about " if interval.approximate else ""
    sides = "" if interval.alternative == "two-sided" else "one-sided "
    return f"{about}{sides}{100 * interval.confidence:.10g}% CI"


def ends(interval: Interval) -> str:
    """Write out the ends of an interval."""
    low, high = (
        format_number(end, sign=True) if math.isfinite(end) else f"{'-' if end < 0 else '+'}∞"
        for end in (interval.low, interval.high)
    )
    return f"[{low}, {high}]"


def correction(comparison: Comparison) -> str:
    """Say what the p-value is among all those that were computed together; nothing of a test alone."""
    found = comparison.corrected
    if comparison.n_uncorrected is not None:
        return f"uncorrected: one of {comparison.n_uncorrected} tests"
    if found is None:
        return ""
    adjusted = f"{'≈ ' * found.is_drawn}{found.format_pvalue(level=comparison.alpha)}"
    return f"adjusted {adjusted}: {found.title} over {found.n_tests} tests"


def examples(comparison: Comparison) -> str:
    """Say how many examples there are and how many of them tell the runs apart."""
    number, noun = comparison.n_examples, _unit(comparison)
    return f"{number} {noun if number == 1 else noun + 's'} ({discordance(comparison)})"


def _unit(comparison: Comparison) -> str:
    """Name what is exchanged as one."""
    if comparison.statistic.cluster is not None:
        return "cluster"
    return "row" if comparison.statistic.repeats == "rows" else "example"


def discordance(comparison: Comparison) -> str:
    """Say how many examples tell the runs apart and, in one dimension, in whose favour."""
    found = f"{comparison.n_discordant} discordant"
    if comparison.n_better is not None and comparison.n_worse is not None:
        found += f": {comparison.n_better} better, {comparison.n_worse} worse"
    return found


def notes(comparison: Comparison) -> list[str]:
    """List what a reader must know beyond the numbers; empty for most comparisons."""
    report, test = comparison.pairing, comparison.test
    found = []
    if comparison.n_discordant == 0:
        found.append("identical: the counts of both runs are the same on every example")
    if (changed := _changed(comparison)) is not None:
        found.append(changed)
    if report.n_dropped:
        found.append(
            f"dropped: {report.n_dropped} without a complete row in both runs "
            f"(baseline {report.n_baseline}, candidate {report.n_candidate}, tested {report.n_paired})"
        )
    if len({case.difference for case in comparison.cases}) > 1:
        found.append(f"missing predictions: {_cases(comparison)}")
    if report.asymptotic is not None:
        found.append(f"asymptotic: {report.asymptotic}")
    if report.by == "position":
        found.append("paired by position: nothing proves that the rows are the same examples")
    if test.ties == "100 digits":
        found.append("ties by 100 digits: irrational values that agree in them count as ties")
    if test.ties == "approximate":
        found.append("ties approximate: values within a rounding band of the observed one count as ties")
    if test.mid_p:
        found.append("mid-p: ties with the observed value count half, so that its level may be exceeded")
    if test.alternative != "two-sided":
        found.append(one_sided(test.alternative))
    if test.method == "monte-carlo":
        found.append(f"Monte Carlo: {test.why}")
        if least_drawn(comparison) >= comparison.alpha:
            found.append(f"no verdict possible: {test.n_samples} swaps are too few; draw more")
    if comparison.no_interval is not None:
        found.append(f"no interval: {comparison.no_interval}")
    if comparison.n_discordant > 0 and not is_within_reach(comparison):
        found.append(f"no verdict possible: {floor(comparison)}")
    if (
        comparison.verdict == "undecided"
        and comparison.detectable is not None
        and is_within_reach(comparison)
    ):
        found.append(str(comparison.detectable))
    if comparison.decision.equivalent is not None:
        basis = comparison.size.basis
        if isinstance(basis, str):
            found.append(f"equivalence rests on how few examples can differ: {comparison.size.unseen}")
        elif basis.method != "paired proportions":
            found.append(f"equivalence rests on the {basis.method} interval: {basis.note}")
    if comparison.part is not None and not comparison.part.declared:
        found.append("exploratory: the spec declares no such slices, so nobody knows how many were looked at")
    seen = comparison.dependence
    said = {f"look: {shared_input(each.n_shared, each.n_examples, each.column)}" for each in seen}
    name = pvalue_name(test)
    return [
        *found,
        *comparison.remarks,
        *(note for note in report.notes if note not in said),
        *(
            f"look: {each.sentence(name, comparison.alpha)}; `--cluster {each.column}` tests so"
            for each in seen
        ),
    ]


def one_sided(alternative: Alternative) -> str:
    """Say what a one-sided test takes for granted."""
    return f"one-sided: p holds only if `{alternative}` was chosen before anybody saw the results"


def _changed(comparison: Comparison) -> str | None:
    """Say how many predictions changed, where that is more than the score tells."""
    report, n_discordant = comparison.pairing, comparison.n_discordant
    if report.n_changed is None or report.n_changed <= n_discordant:
        return None
    changed = f"{report.n_changed} of {report.n_paired} predictions changed"
    if report.n_paired == comparison.n_examples:
        return f"{changed}, {n_discordant} in score"
    return f"{changed}; {n_discordant} of {comparison.n_examples} {_unit(comparison)}s differ in score"


def _cases(comparison: Comparison) -> str:
    """Say what the worst and the best case come to, and whether they agree."""
    name = f"{pvalue_name(comparison.test)} {'≈' if comparison.method == 'monte-carlo' else '='}"
    cases = ", ".join(
        f"{case.missing} case {format_number(case.difference, sign=True)} ({name} {case.pvalue:.3g},"
        f" {case.verdict})"
        for case in comparison.cases
    )
    return f"{cases}: {'not decided by the data' if comparison.is_open else 'the same verdict'}"


def floor(comparison: Comparison) -> str:
    """Say which p-value no outcome on so many discordant examples can get below."""
    test = comparison.test
    exponent = test.log10_smallest_pvalue
    number, noun = comparison.n_discordant, _unit(comparison)
    found = f"with {number} discordant {noun if number == 1 else noun + 's'}"
    if test.n_samples is not None and exponent < -math.log10(test.n_samples + 1):
        exponent = -math.log10(test.n_samples + 1)  # the observed outcome counts as one of those drawn
        found += f" and {test.n_samples} random swaps"
    least = f"{10.0**exponent:.3g}" if exponent > -300 else f"1e{math.floor(exponent)}"
    return f"{found} no {pvalue_name(test)} is below {least}"


def opinions(comparison: Comparison) -> list[str]:
    """Say what other tests say, where somebody asked."""
    return [f"{each.name}: {each.sentence}" for each in comparison.second_opinions]


def headline(comparison: Comparison) -> str:
    """Give the verdict in one sentence, without its marker."""
    baseline, candidate = shorten(comparison.baseline_name), shorten(comparison.candidate_name)
    statistic = comparison.title
    among = correction(comparison)
    drawn = ", Monte Carlo" if comparison.method == "monte-carlo" else ""
    found = f"({pvalue(comparison)}{drawn}{among and f', {among}'})"
    if comparison.verdict == "undecided":
        sought = looked_for(comparison)
        shown = f"{candidate} is not shown to be {sought} than {baseline}"
        if sought is None:
            shown = f"{candidate} and {baseline} are not told apart"
        return f"Undecided: {shown} by {statistic} {found}"
    if comparison.verdict == "equivalent":
        return (
            f"{candidate} and {baseline} are equivalent within {comparison.margin:g} by {statistic} {found}"
        )
    note = "" if comparison.statistic.greater_is_better else ", where lower is better"
    size = f", and equivalent within {comparison.margin:g}" if comparison.decision.equivalent else ""
    return f"{candidate} is {comparison.verdict} than {baseline} by {statistic}{note}{size} {found}"


def looked_for(comparison: Comparison) -> str | None:
    """Say what alone a one-sided test can show of the candidate; None for a two-sided one."""
    alternative = comparison.test.alternative
    if alternative == "two-sided":
        return None
    return "better" if (alternative == "greater") == comparison.statistic.greater_is_better else "worse"


def is_within_reach(comparison: Comparison) -> bool:
    """Whether some outcome on as many discordant examples would be significant."""
    return comparison.test.log10_smallest_pvalue < math.log10(comparison.alpha)


def least_drawn(comparison: Comparison) -> float:
    """Return where the 99 % interval of a Monte Carlo p-value ends at the least; 0 of other p-values.

    That is its upper end where none of the random swaps that were asked for is extreme.
    """
    drawn = comparison.test.n_samples
    if drawn is None:
        return 0.0
    # Drawing may have stopped early, where the p-value is large.
    return exact_interval(0, int(comparison.options.get("n_samples", drawn)), stopped=False)[1]


def escape_markdown(text: str) -> str:
    """Write `text` so that Markdown shows it as it is, on one line."""
    return _MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(text.split()))


def shorten(text: str, limit: int = _NAME_LIMIT) -> str:
    """Cut `text` to at most `limit` characters, the last an ellipsis where something was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
