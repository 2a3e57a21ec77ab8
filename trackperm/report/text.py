"""A comparison in words: the lines that a terminal shows and the Markdown that a tracker shows."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from trackperm.comparison import Comparison
from trackperm.exact import PermutationTest
from trackperm.exact.intervals import Interval

SCOPE = "these two runs on these examples; not other seeds, prompts or test sets"

EXACT_WITHIN = 1e-6
"""The largest certified relative error with which a p-value is called exact without qualification."""

_DESCRIPTION_LIMIT = 8_000  # MLflow cuts longer tags without saying so
_NAME_LIMIT = 200
_PROSE_LIMIT = 1_000
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
    pvalue = f"{pvalue_name(test)} = {comparison.format_pvalue()}"
    if comparison.corrected is not None:
        pvalue += f" ({correction(comparison)})"
    facts = ", ".join((f"{certainty(test)}, {test.alternative}", examples(comparison)))
    found = [f"{name} {value}" for name, value in scores(comparison)]
    if (interval := comparison.interval) is not None:
        found.append(f"{confidence(interval)} {ends(interval)}")
    return [
        "   ".join((comparison.title, *found)),
        f"{pvalue}  {facts}   {comparison.marker} {comparison.decision}",
        f"scope: {SCOPE}",
        *notes(comparison),
    ]


def markdown(comparison: Comparison, remarks: Sequence[str] = ()) -> str:
    """Render `comparison` as a description for a tracker: verdict first, at most 8,000 characters.

    Parameters
    ----------
    comparison : Comparison
        The result to describe.
    remarks : sequence of str
        Further sentences, such as what was left out of the logged tables.

    Returns
    -------
    str
        Markdown in which no name of the user's can act as markup.
    """
    pvalue = comparison.format_pvalue()
    table = [
        ("p-value", f"{pvalue} ({certainty(comparison.test)}, {comparison.test.alternative})"),
        *([] if comparison.corrected is None else [("corrected", correction(comparison))]),
        *scores(comparison),
        *(
            []
            if comparison.interval is None
            else [(confidence(comparison.interval), ends(comparison.interval))]
        ),
        ("examples", f"{comparison.n_examples} ({discordance(comparison)})"),
    ]
    bullets = [_sentence(shorten(note, _PROSE_LIMIT)) for note in (*notes(comparison), *remarks)]
    parts = [
        f"**{comparison.marker} {escape_markdown(headline(comparison))}**",
        "\n".join(
            [
                f"| {escape_markdown(comparison.title)} | |",
                "|---|---|",
                *(f"| {name} | {escape_markdown(value)} |" for name, value in table),
            ]
        ),
        escape_markdown(" ".join(explanation(comparison))),
        "\n".join(f"- {escape_markdown(bullet)}" for bullet in bullets),
        escape_markdown(shorten(comparison.signature, _PROSE_LIMIT)),
    ]
    text = "\n\n".join(part for part in parts if part)
    return text if len(text) <= _DESCRIPTION_LIMIT else text[: _DESCRIPTION_LIMIT - 1].rstrip("\\") + "…"


def format_number(value: float, *, sign: bool = False) -> str:
    """Write a score with four decimals, or with as many digits as it takes to be told from zero."""
    plus = "+" if sign and value != 0 else ""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return f"{value:{plus}.4f}"
    return f"{value:{plus}.4g}"


def pvalue_name(test: PermutationTest) -> str:
    """Say which p-value it is: ``p``, or ``mid-p`` where ties count half."""
    return "mid-p" if test.mid_p else "p"


def certainty(test: PermutationTest) -> str:
    """Say what is known about the error of a p-value."""
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
    """Name an interval by its confidence, and say so if that is approximate."""
    return f"{'about ' if interval.approximate else ''}{100 * interval.confidence:.10g}% CI"


def ends(interval: Interval) -> str:
    """Write out the ends of an interval."""
    low, high = (
        format_number(end, sign=True) if math.isfinite(end) else f"{'-' if end < 0 else '+'}∞"
        for end in (interval.low, interval.high)
    )
    return f"[{low}, {high}]"


def correction(comparison: Comparison) -> str:
    """Say what the p-value is among all those that were computed together."""
    found = comparison.corrected
    if found is None:
        return ""
    adjusted = found.format_pvalue(level=comparison.alpha)
    name = "adjusted" if found.pvalue is not None else f"{comparison.alpha:g} or"
    return f"{name} {adjusted}: {found.title} over {found.n_tests} tests"


def examples(comparison: Comparison) -> str:
    """Say how many examples there are and how many of them tell the runs apart."""
    number, noun = comparison.n_examples, _unit(comparison)
    return f"{number} {noun if number == 1 else noun + 's'} ({discordance(comparison)})"


def _unit(comparison: Comparison) -> str:
    """Name what is exchanged as one."""
    return "example" if comparison.statistic.cluster is None else "cluster"


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
    if report.n_dropped:
        found.append(
            f"dropped: {report.n_dropped} without a complete row in both runs "
            f"(baseline {report.n_baseline}, candidate {report.n_candidate}, tested {report.n_paired})"
        )
    if len({case.difference for case in comparison.cases}) > 1:
        found.append(f"missing predictions: {_cases(comparison)}")
    if report.by == "position":
        found.append("paired by position: nothing proves that the rows are the same examples")
    if test.ties == "100 digits":
        found.append("ties by 100 digits: irrational values that agree in them count as ties")
    if test.ties == "approximate":
        found.append("ties approximate: values within a rounding band of the observed one count as ties")
    if test.mid_p:
        found.append("mid-p: ties with the observed value count half, so that p may be below its level")
    if test.method == "monte-carlo":
        found.append(f"Monte Carlo: {test.why}")
        if test.n_samples is not None and 1.0 - 0.005 ** (1.0 / test.n_samples) >= comparison.alpha:
            found.append(f"no verdict possible: {test.n_samples} swaps are too few; draw more")
    if comparison.n_discordant > 0 and not _is_within_reach(comparison):
        found.append(f"no verdict possible: {floor(comparison)}")
    if (
        comparison.verdict == "undecided"
        and comparison.detectable is not None
        and _is_within_reach(comparison)
    ):
        found.append(str(comparison.detectable))
    if comparison.decision.equivalent is not None and comparison.interval is not None:
        method = comparison.interval.method
        if method != "paired proportions":
            found.append(f"equivalence rests on the {method} interval: {comparison.interval.note}")
    if comparison.part is not None and not comparison.part.declared:
        found.append("exploratory: the spec declares no such slices, so nobody knows how many were looked at")
    return [*found, *report.notes]


def _cases(comparison: Comparison) -> str:
    """Say what the worst and the best case come to, and whether they agree."""
    cases = ", ".join(
        f"{case.missing} case {format_number(case.difference, sign=True)} (p = {case.pvalue:.3g},"
        f" {case.verdict})"
        for case in comparison.cases
    )
    return f"{cases}: {'not decided by the data' if comparison.is_open else 'the same verdict'}"


def floor(comparison: Comparison) -> str:
    """Say which p-value no outcome on so many discordant examples can get below."""
    exponent = comparison.test.log10_smallest_pvalue
    least = f"{10.0**exponent:.3g}" if exponent > -300 else f"1e{math.floor(exponent)}"
    number, noun = comparison.n_discordant, _unit(comparison)
    return f"with {number} discordant {noun if number == 1 else noun + 's'} no p is below {least}"


def headline(comparison: Comparison) -> str:
    """Give the verdict in one sentence, without its marker."""
    baseline, candidate = shorten(comparison.baseline_name), shorten(comparison.candidate_name)
    statistic = comparison.title
    name, pvalue = pvalue_name(comparison.test), comparison.format_pvalue()
    among = "" if comparison.corrected is None else f", {correction(comparison)}"
    found = f"({name} = {pvalue}{among})"
    if comparison.verdict == "undecided":
        return f"Undecided: {candidate} and {baseline} are not told apart by {statistic} {found}"
    if comparison.verdict == "equivalent":
        return (
            f"{candidate} and {baseline} are equivalent within {comparison.margin:g} by {statistic} {found}"
        )
    note = "" if comparison.statistic.greater_is_better else ", where less is better"
    size = f", and equivalent within {comparison.margin:g}" if comparison.decision.equivalent else ""
    return f"{candidate} is {comparison.verdict} than {baseline} by {statistic}{note}{size} {found}"


def explanation(comparison: Comparison) -> list[str]:
    """Explain in plain words what was tested and what it does not cover."""
    alternative = comparison.test.alternative
    statistic = comparison.statistic.name
    if comparison.baseline_score is not None and comparison.candidate_score is not None:
        quantity = f"the difference in {statistic} (candidate minus baseline)"
    else:
        quantity = f"the statistic {statistic}"
    extreme = {
        "two-sided": "at least as far from zero as",
        "less": "at most",
        "greater": "at least",
    }[alternative]
    description = shorten(comparison.statistic.description, _PROSE_LIMIT)
    sentences = [f"{statistic}: {_sentence(description)}"] if description else []
    sentences += [
        "If it made no difference which run an output came from, the outputs of the two runs could be "
        f"exchanged on {_exchanged(comparison)} without changing what to expect.",
        f"p is the share of all such exchanges in which {quantity} is {extreme} the observed one"
        + (", those equal to it counted half." if comparison.test.mid_p else "."),
    ]
    if comparison.is_open:
        sentences.append(
            "The data do not decide it: what the missing predictions would have been changes the verdict."
        )
    elif comparison.decision.sign == "undecided":
        sentences.append(
            f"Here that share is not shown to be below {comparison.alpha:g}{_corrected(comparison)}, so"
            " neither run is shown to be better; this does not prove that they are equally good."
        )
    else:
        sentences.append(
            f"Here that share is below {comparison.alpha:g}{_corrected(comparison)}, so chance alone is a"
            " poor explanation; whether the difference is large enough to matter is another question."
        )
    sentences += _size(comparison)
    if comparison.n_discordant > 0:
        reach = "" if _is_within_reach(comparison) else f", so that {comparison.alpha:g} is out of reach"
        sentences.append(_sentence(floor(comparison) + reach))
    return [*sentences, f"The test is about {SCOPE}."]


def _corrected(comparison: Comparison) -> str:
    """Name the correction that a p-value was held to."""
    found = comparison.corrected
    if found is None:
        return ""
    return f" once corrected for {found.n_tests} tests ({found.title}, {found.controls})"


def _size(comparison: Comparison) -> list[str]:
    """Explain how large the difference is."""
    sentences = []
    if comparison.interval is not None:
        alone = (
            "" if comparison.corrected is None else "; it is of this comparison alone, without a correction"
        )
        sentences.append(
            f"The {confidence(comparison.interval)} ({comparison.interval.method}) "
            f"{comparison.interval.note}{alone}."
        )
    sizes = comparison.effect_sizes
    if sizes.odds is not None and sizes.odds_interval is not None:
        low, high = sizes.odds_interval.low, sizes.odds_interval.high
        sentences.append(
            f"For one discordant example that is worse there are {sizes.odds:.3g} that are better "
            f"({100 * sizes.odds_interval.confidence:.10g}% CI {low:.3g} to {high:.3g})."
        )
    if sizes.cohens_dz is not None:
        sentences.append(
            f"The mean difference is {abs(sizes.cohens_dz):.3g} standard deviations of the differences."
        )
    if comparison.decision.equivalent is not None and comparison.margin is not None:
        level = f"{100 * (1 - 2 * comparison.alpha):.10g}%"
        does = "lies" if comparison.decision.equivalent else "does not lie"
        sentences.append(
            f"The interval of confidence {level} {does} within the margin of {comparison.margin:g}, which is"
            f" what two one-sided tests at {comparison.alpha:g} ask for."
        )
    return sentences


def _exchanged(comparison: Comparison) -> str:
    """Name what the two runs exchange as a whole."""
    statistic = comparison.statistic
    if statistic.cluster is not None:
        return f"all examples with the same `{statistic.columns[statistic.cluster]}` together"
    return "any example, all of its rows together," if statistic.repeats else "any example"


def _is_within_reach(comparison: Comparison) -> bool:
    """Whether some outcome on as many discordant examples would be significant."""
    return comparison.test.log10_smallest_pvalue < math.log10(comparison.alpha)


def escape_markdown(text: str) -> str:
    """Write `text` so that Markdown shows it as it is, on one line."""
    return _MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(text.split()))


def shorten(text: str, limit: int = _NAME_LIMIT) -> str:
    """Cut `text` to at most `limit` characters, the last an ellipsis where something was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:] + ("" if note.endswith(".") else ".")
