"""Notes on a comparison: what a reader has to know beyond the numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trackperm.comparison import Comparison
from trackperm.exact.power import EquivalencePower
from trackperm.exact.result import format_pvalue
from trackperm.exact.scores.floats import EQUAL_BY_ROUNDING
from trackperm.messages import amount
from trackperm.pairing.checks.pairing_warnings import shared_input
from trackperm.report import phrases
from trackperm.report.numbers import format_difference

RARE = 0.5
"""Power below which equivalence is not shown in most comparisons of equal runs."""

_CAUTION = re.compile(
    "(?:look|dropped|missing predictions(?: counted as wrong)?|paired by position): "
    f"|`[^`]*`: rounded to .*{EQUAL_BY_ROUNDING}"
    "|`[^`]*`: look: "
    "|`[^`]*`: the run (?:crashed|failed|was killed|was preempted)"
)


def notes_of(comparison: Comparison) -> list[str]:
    """Return what a reader has to know beyond the numbers, as sentences; empty for most comparisons."""
    seen = comparison.dependence
    repeated = {f"look: {shared_input(each.n_shared, each.n_examples, each.column)}" for each in seen}
    others = (note for note in comparison.pairing.notes if note not in repeated)
    name = phrases.pvalue_name(comparison.test)
    return [
        *_notes_on_examples(comparison),
        *_notes_on_test(comparison),
        *_notes_on_power(comparison),
        *_notes_on_equivalence(comparison),
        *_notes_on_slice(comparison),
        *with_names(comparison, comparison.remarks),
        *with_names(comparison, others),
        *(
            f"look: {each.sentence(name, comparison.alpha)}; `--cluster {each.column}` tests whole clusters"
            for each in seen
        ),
    ]


def _notes_on_examples(comparison: Comparison) -> list[str]:
    """Return which examples are equal, changed, dropped or without a prediction."""
    report, found = comparison.pairing, []
    if comparison.n_discordant == 0:
        where = f"on every {phrases.unit(comparison)}"
        if phrases.is_rounded(comparison):
            found.append(f"equal by rounding: both runs have the same rounded scores {where}")
        else:
            found.append(
                f"identical{phrases.in_one_case(comparison)}: both runs have the same counts {where}"
            )
    if (changed := _changed(comparison)) is not None:
        found.append(changed)
    if report.n_dropped:
        found.append(
            f"dropped: {amount(report.n_dropped, 'example')} without a complete row in both runs "
            f"(baseline {report.n_baseline:,}, candidate {report.n_candidate:,}, tested {report.n_paired:,})"
        )
    if phrases.is_range(comparison):
        found.append(f"missing predictions: {_cases(comparison)}")
    return found


def _notes_on_test(comparison: Comparison) -> list[str]:
    """Return what the p-value assumes, and how it was computed if it is not exact."""
    report, test, found = comparison.pairing, comparison.test, []
    if report.asymptotic is not None:
        found.append(f"asymptotic: {report.asymptotic}")
    if report.by == "position":
        found.append("paired by position: nothing proves that the rows are the same examples")
    if test.ties == "100 digits":
        found.append("ties by 100 digits: irrational values that agree in 100 digits count as ties")
    if comparison.statistic.function is not None:
        found.append(
            f"Python function: logs do not contain `{comparison.statistic.function.text}`, so that `trackperm"
            " verify` cannot recompute the result"
        )
    if test.ties == "approximate":
        found.append("ties approximate: values within a rounding band of the observed one count as ties")
    if test.mid_p:
        found.append("mid-p: ties with the observed value count half; the error rate may exceed alpha")
    if test.alternative != "two-sided":
        found.append(phrases.one_sided(test.alternative))
    if test.method == "monte-carlo":
        found.append(f"Monte Carlo: {test.why}")
        if phrases.least_drawn(comparison) >= comparison.alpha:
            found.append(
                f"no difference can be shown: {test.n_samples:,} swaps are too few; increase `--samples`"
            )
    if test.method == "tilted":
        found.append(f"tilted sampling: {test.why}")
    if test.method == "bracket" and test.rank > 1:
        found.append(f"certified ends: {test.why}")
    return found


def _notes_on_power(comparison: Comparison) -> list[str]:
    """Return why there is no interval, and which differences these examples can show."""
    found = []
    if comparison.interval_unavailable is not None:
        found.append(f"no interval: {comparison.interval_unavailable}")
    is_unchangeable = (comparison.n_better, comparison.n_worse) == (0, 0)
    if comparison.n_discordant > 0 and is_unchangeable:
        found.append(phrases.unchangeable(comparison))
    elif comparison.n_discordant > 0 and not phrases.is_within_reach(comparison):
        found.append(f"no difference can be shown: {phrases.smallest_p_sentence(comparison)}")
    if (
        comparison.verdict == "undecided"
        and not phrases.is_range(comparison)
        and not is_unchangeable
        and comparison.detectable is not None
        and phrases.is_within_reach(comparison)
    ):
        found.append(str(comparison.detectable))
    return found


def _notes_on_equivalence(comparison: Comparison) -> list[str]:
    """Return the power of equivalence, and by what it is shown or not, if there is a margin."""
    found = []
    if comparison.equivalence_power is not None:
        found.append(equivalence_power(comparison, comparison.equivalence_power))
    if comparison.decision.equivalent is not None:
        basis = comparison.size.basis
        shown = "equivalence is" if comparison.decision.equivalent else "equivalence is not"
        if isinstance(basis, str):
            bound = f"a bound on discordant examples: {comparison.size.unseen}"
            found.append(f"{shown} shown by {bound}")
        elif basis.method != "paired proportions":
            found.append(f"{shown} shown by the {basis.method} interval: {basis.note}")
    return found


def _notes_on_slice(comparison: Comparison) -> list[str]:
    """Return that a slice was not declared before the results were seen, if it was not."""
    if comparison.slice is None or comparison.slice.declared:
        return []
    return [
        "exploratory: the spec does not declare this slice, so slices that were looked at before are not"
        " corrected for"
    ]


def with_names(comparison: Comparison, notes: Iterable[str]) -> list[str]:
    """Return notes with the runs called as in the headline, not by references such as ``mlflow:RUN_ID``."""
    references = (comparison.baseline, comparison.candidate)
    if references[0] == references[1]:
        return list(notes)
    names = dict(zip(references, comparison.shown_names, strict=True))
    called = re.compile(f"`({'|'.join(map(re.escape, references))})`")
    return [called.sub(lambda found: f"`{names[found[1]]}`", note) for note in notes]


def cautions_of(comparison: Comparison) -> list[str]:
    """Return the notes without which the result may mislead."""
    return [note for note in notes_of(comparison) if _CAUTION.match(note)]


def _changed(comparison: Comparison) -> str | None:
    """Return how many predictions changed, if more changed than the score shows."""
    report, n_discordant = comparison.pairing, comparison.n_discordant
    if report.n_changed is None or report.n_changed <= n_discordant:
        return None
    of_case = phrases.in_one_case(comparison)
    verb_end = "s" * (n_discordant == 1)
    if report.n_paired == comparison.n_examples:
        return f"{report.changed}; {n_discordant:,} change{verb_end} the score{of_case}"
    units = amount(comparison.n_examples, phrases.unit(comparison))
    return f"{report.changed}; {n_discordant:,} of {units} differ{verb_end} in score{of_case}"


def _cases(comparison: Comparison) -> str:
    """Return the results of the worst and the best case, and whether they agree."""
    name = phrases.pvalue_name(comparison.test)
    found = []
    for case in comparison.cases:
        shown = format_pvalue(case.pvalue, case.log10_pvalue, 3, comparison.alpha, case.relation)
        size = format_difference(case.difference, extra=phrases.score_digits(comparison))
        found.append(f"{case.missing} case {size} ({name} {case.relation} {shown}, {case.verdict})")
    cases = ", ".join(found)
    return f"{cases}: {'the verdicts differ' if comparison.depends_on_missing else 'the same verdict'}"


def equivalence_power(comparison: Comparison, power: EquivalencePower) -> str:
    """Return the power of equivalence, and what it means if equivalence is not shown."""
    if comparison.decision.equivalent or power.at_zero >= RARE:
        return str(power)
    rarely = f"{power}; even equal runs would rarely be shown equivalent"
    # Below `least` the range of the scores decides, with many examples as well.
    hidden = not isinstance(comparison.size.basis, str) and comparison.size.lack(power.margin) is not None
    return rarely if hidden else f"{rarely} with so few {phrases.unit(comparison)}s"
