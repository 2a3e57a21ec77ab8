"""Judgement of a candidate: whether it passes, by all comparisons of its policy.

``fail_on: regression``

1. Fail if a comparison, after correction, shows that the candidate is worse.
2. Else undecided if an undecided comparison had too few examples to show what matters: no outcome on as many
   discordant examples has p < alpha after correction; or there is a margin, the test at the corrected level
   detects only larger differences at 80 % power, and the interval of confidence 1 - 2 alpha does not lie
   above -margin. Undecided too if the missing predictions decide, or no exchange changes a score whose counts
   differ. By Monte Carlo, no outcome has p < alpha if the interval of p ends at alpha or above even without
   an extreme swap.
3. Else pass. A candidate whose outputs count the same on every example passes too, if so many examples could
   have shown a difference.

With ``missing: wrong``, a comparison whose baseline lacks more predictions than the candidate passes only if
the examples that both runs have pass as well (:func:`without_credit`): examples that were added to the test
set do not make the candidate better.

``fail_on: not-shown-non-inferior``

1. Pass if for every comparison the lower bound of level alpha lies above -margin, in the direction of better,
   or a one-sided test at alpha shows that the candidate is better. Since all comparisons have to pass, no
   correction is needed (an intersection-union test; Berger 1982), provided that the bounds count.
2. Else fail if a comparison that does not pass is worse, lies below -margin, or could have been expected to
   pass: its test detects a difference as large as the margin.
3. Else undecided, also if the missing predictions decide.

:mod:`trackperm.comparison.inference.evidence` says which bounds count, for judgements and for verdicts.

References
----------
R. L. Berger (1982), "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from trackperm.automation.policy.policy import Policy
from trackperm.automation.policy.wording import in_policies
from trackperm.comparison import Comparison
from trackperm.errors import InputError
from trackperm.exact.engines.monte_carlo import CONFIDENCE
from trackperm.exact.multiplicity import ADJUSTMENTS, TARONE_HOLM, adjust_log10, tarone_holm_log10
from trackperm.messages import amount
from trackperm.pairing.notes import counted_as_wrong
from trackperm.report import phrases
from trackperm.report.notes import cautions_of
from trackperm.report.numbers import format_difference

Outcome = Literal["pass", "fail", "undecided"]

_WORST_FIRST: tuple[Outcome, ...] = ("fail", "undecided", "pass")

_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?")

_OPEN = "the result depends on the missing predictions"

EXIT_CODES: Mapping[Outcome, int] = {"pass": 0, "fail": 1, "undecided": 4}
"""Exit codes of ``trackperm gate``."""


@dataclass(frozen=True)
class Finding:
    """Contribution of one comparison to a judgement.

    Attributes
    ----------
    title : str
        Name of the statistic, and of the slice if there is one.
    outcome : {'pass', 'fail', 'undecided'}
        Outcome of this comparison alone.
    reason : str
        Reason, as a sentence without a full stop.
    notes : tuple of str
        What a reader has to know beyond the reason, such as dropped examples.
    """

    title: str
    outcome: Outcome
    reason: str
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.title}: {self.reason}"


@dataclass(frozen=True)
class Judgement:
    """Outcome of all comparisons of a candidate.

    Attributes
    ----------
    outcome : {'pass', 'fail', 'undecided'}
        Fail if one comparison fails, else undecided if one is undecided, else pass.
    findings : tuple of Finding
        One finding per comparison, in order.
    reasons : tuple of str
        Reasons of the findings that have this outcome.
    """

    outcome: Outcome
    findings: tuple[Finding, ...]
    reasons: tuple[str, ...]

    @property
    def notes(self) -> list[str]:
        """Notes of all findings, each once."""
        return notes_of(self.findings)

    @property
    def exit_code(self) -> int:
        """0 for pass, 1 for fail, 4 for undecided."""
        return EXIT_CODES[self.outcome]

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Judgement:
        """Combine the findings of all comparisons."""
        findings = tuple(findings)
        outcomes = {each.outcome for each in findings}
        outcome = next(each for each in _WORST_FIRST if each in outcomes)
        reasons = tuple(str(each) for each in findings if each.outcome == outcome)
        return cls(outcome, findings, reasons)


def notes_of(findings: Iterable[Finding]) -> list[str]:
    """Return the notes of all findings, each once."""
    return list(dict.fromkeys(note for each in findings for note in each.notes))


def judge(policy: Policy, comparisons: Sequence[Comparison]) -> Judgement:
    """Judge the comparisons of one candidate by the rules of this module.

    Raise InputError if there are no comparisons, or the rule needs a margin and the policy has none.
    """
    if not comparisons:
        raise InputError("no comparison was made; expected at least one to judge")
    margin = policy.margin
    if policy.fail_on == "regression":
        findings = list(map(_regression, comparisons, _smallest_corrected(comparisons)))
    elif margin is None:
        raise InputError("`not-shown-non-inferior` needs a `margin`")
    else:
        findings = [_non_inferiority(comparison, margin) for comparison in comparisons]
    return Judgement.of(
        replace(finding, notes=notes) for finding, notes in zip(findings, _notes(comparisons), strict=True)
    )


def credited(comparison: Comparison) -> bool:
    """Whether the baseline lacks more predictions than the candidate, which are counted as wrong."""
    found = [counted_as_wrong(note) for note in comparison.pairing.notes]
    return any(each is not None and each[0] > each[1] for each in found)


def without_credit(judgement: Judgement, titles: Collection[str], paired: Judgement) -> Judgement:
    """Return a judgement in which findings of `titles` pass only if those of `paired` with this title do."""
    alone = {finding.title: finding for finding in paired.findings}
    return Judgement.of(
        finding
        if finding.title not in titles or finding.outcome != "pass"
        else _without_credit(finding, alone.get(finding.title))
        for finding in judgement.findings
    )


def _without_credit(finding: Finding, paired: Finding | None) -> Finding:
    if paired is not None and paired.outcome == "pass":
        return finding
    reason = "no example is left" if paired is None else paired.reason
    return replace(
        finding,
        outcome="undecided",
        reason="it passes only because predictions that the baseline lacks count as wrong; on the examples"
        f" that both runs have: {reason}",
    )


def _notes(comparisons: Sequence[Comparison]) -> list[tuple[str, ...]]:
    """Return the cautions of each comparison, in the words of policies.

    A caution of a slice is left out if it differs only in numbers from one of all examples by the same
    statistic. A caution that not all comparisons of all examples have begins with the title of its own.
    """
    cautions = [[in_policies(note) for note in cautions_of(comparison)] for comparison in comparisons]
    wholes = [place for place, comparison in enumerate(comparisons) if comparison.slice is None]
    of_all = set.intersection(*(set(cautions[place]) for place in wholes)) if wholes else set()
    known = {
        (comparisons[place].statistic.name, _shape(note)) for place in wholes for note in cautions[place]
    }
    found = []
    for comparison, own in zip(comparisons, cautions, strict=True):
        if comparison.slice is not None:
            own = [note for note in own if (comparison.statistic.name, _shape(note)) not in known]
        is_alone = len(comparisons) == 1
        found.append(
            tuple(note if is_alone or note in of_all else f"{comparison.title}: {note}" for note in own)
        )
    return found


def _shape(note: str) -> str:
    """Return a note without its numbers."""
    return _NUMBER.sub("#", note)


def _smallest_corrected(comparisons: Sequence[Comparison]) -> list[float]:
    """Return log10 of the smallest attainable p-values, corrected as if all tests attained theirs."""
    smallest = [_smallest(each) for each in comparisons]
    rule = comparisons[0].corrected
    if rule is None or len(smallest) != rule.n_tests:
        return smallest
    if rule.method == TARONE_HOLM.name:
        # the correction does not know the smallest value of a p-value from random swaps
        known = [
            -math.inf if each.test.is_drawn else least
            for each, least in zip(comparisons, smallest, strict=True)
        ]
        return [float(each) for each in tarone_holm_log10(smallest, known)]
    if rule.method in ADJUSTMENTS:
        return [float(each) for each in adjust_log10(smallest, rule.method)]
    return smallest


def _smallest(comparison: Comparison) -> float:
    """Return log10 of the smallest p-value that the comparison could have had."""
    if comparison.n_discordant:
        drawn = phrases.least_drawn(comparison)
        least = comparison.test.log10_smallest_pvalue
        return min(max(least, math.log10(drawn)) if drawn else least, 0.0)
    # the smallest value if all examples were discordant
    sides = 2.0 if comparison.test.alternative == "two-sided" else 1.0
    return min(math.log10(sides) + comparison.n_examples * math.log10(0.5), 0.0)


def _regression(comparison: Comparison, smallest: float) -> Finding:
    title, sign, numbers = comparison.title, comparison.decision.sign, _numbers(comparison)
    if sign == "worse":
        return Finding(title, "fail", f"the candidate is significantly worse ({numbers})")
    if sign == "better":
        return Finding(title, "pass", f"the candidate is better ({numbers})")
    if comparison.verdict == "equivalent":
        shown = f"{phrases.equivalence(comparison)} for equivalence; {numbers}"
        return Finding(title, "pass", f"equivalent within {comparison.margin:g} ({shown})")
    if comparison.depends_on_missing:
        return Finding(title, "undecided", _OPEN)
    if comparison.n_discordant and (comparison.n_better, comparison.n_worse) == (0, 0):
        return Finding(title, "undecided", f"the test cannot tell: {phrases.unchangeable(comparison)}")
    lack = _lack(comparison, smallest)
    if lack is not None and _is_non_inferior(comparison, comparison.margin):
        return Finding(title, "pass", f"at most {comparison.margin:g} worse ({numbers})")
    if lack is not None:
        return Finding(title, "undecided", f"too few {lack}")
    if comparison.n_discordant == 0:
        same = "have the same rounded scores" if phrases.is_rounded(comparison) else "count the same"
        return Finding(title, "pass", f"both runs {same} on all {_examples(comparison)}")
    return Finding(title, "pass", f"not shown to be worse ({numbers})")


def _lack(comparison: Comparison, smallest: float) -> str | None:
    """Complete "too few ..." if the test could not have shown what matters; None if it could have."""
    is_out_of_reach = smallest >= math.log10(comparison.alpha)
    if comparison.n_discordant == 0:
        return (
            f"examples to tell: {_examples(comparison)} cannot show a difference" if is_out_of_reach else None
        )
    if not phrases.is_within_reach(comparison):
        return f"examples to tell: {phrases.smallest_p_sentence(comparison)}"
    if is_out_of_reach:
        rule = comparison.corrected
        by = "" if rule is None else f", {10.0**smallest:.3g} by {rule.title} over {rule.n_tests} tests"
        drawn = phrases.least_drawn(comparison)
        if drawn and math.log10(drawn) > comparison.test.log10_smallest_pvalue:
            return _lack_of_swaps(comparison, drawn, smallest, by)
        return f"examples to tell: {phrases.smallest_p_sentence(comparison)}{by}"
    found = comparison.detectable
    if comparison.margin is None or found is None:
        return None
    if found.effect is None or found.effect > comparison.margin:
        return f"examples to tell: {found}, and the margin is {comparison.margin:g}"
    return None


def _lack_of_swaps(comparison: Comparison, drawn: float, smallest: float, by: str) -> str:
    """Return how many random swaps are needed: the smallest n with 1 - 0.005^(1/n) below the level."""
    level = comparison.alpha * drawn / 10.0**smallest
    needed = math.floor(math.log((1.0 - CONFIDENCE) / 2.0) / math.log1p(-level)) + 1
    return (
        f"random swaps to tell: with {comparison.test.n_samples:,} no 99 % interval ends below"
        f" {drawn:.3g}{by}; at least {needed:,} are needed, which `trackperm compare --samples` draws;"
        f" a policy needs a larger `alpha`{' or fewer tests' if by else ''}"
    )


def _non_inferiority(comparison: Comparison, margin: float) -> Finding:
    title, basis, sign = comparison.title, comparison.size.basis, comparison.decision.sign
    where = (
        comparison.size.unseen
        if isinstance(basis, str)
        else f"{phrases.confidence(basis)} {phrases.ends(basis)}"
    )
    lack, (worst, best) = comparison.size.lack(margin), _ends(comparison)
    if worst > -margin and lack is None:
        return Finding(title, "pass", f"at most {margin:g} worse ({where})")
    if _is_better(comparison):
        return Finding(title, "pass", f"the candidate is better ({_numbers(comparison)})")
    if sign == "worse":
        return Finding(title, "fail", f"the candidate is significantly worse ({_numbers(comparison)})")
    if best < -margin and lack is None:
        return Finding(title, "fail", f"more than {margin:g} worse ({where})")
    # this rule corrects no level
    shown, found = f"not shown to be at most {margin:g} worse", replace(comparison, corrected=None).detectable
    if lack is not None:
        shown = f"{shown}; {f'too few examples to tell: {basis}' if isinstance(basis, str) else lack}"
    else:
        shown = f"{shown} ({where})"
    if comparison.depends_on_missing:
        return Finding(title, "undecided", f"{shown}; {_OPEN}")
    if lack is not None:
        return Finding(title, "undecided", shown)
    if found is not None and found.effect is not None and found.effect <= margin:
        return Finding(title, "fail", shown)
    few = "" if found is None else f": {found}"
    return Finding(title, "undecided", f"{shown}; too few examples to tell{few}")


def _is_non_inferior(comparison: Comparison, margin: float | None) -> bool:
    """Whether a lower bound that counts lies above -margin."""
    return margin is not None and _ends(comparison)[0] > -margin and comparison.size.lack(margin) is None


def _is_better(comparison: Comparison) -> bool:
    """Whether a one-sided test at alpha shows that the candidate is better, for all missing predictions."""
    if comparison.bounds:
        return all(map(_is_better, comparison.bounds))
    rises = comparison.difference > 0.0
    if comparison.decision.sign != "undecided" or rises != comparison.statistic.greater_is_better:
        return comparison.decision.sign == "better"
    # Swapping all outputs negates a difference of scores, so its null distribution is symmetric.
    is_symmetric = comparison.statistic.has_score and comparison.test.alternative == "two-sided"
    return is_symmetric and max(comparison.pvalue, comparison.test.interval[1]) / 2.0 < comparison.alpha


def _ends(comparison: Comparison) -> tuple[float, float]:
    """Return the bounds of the difference at level alpha, in the direction of better."""
    size = comparison.size
    if comparison.statistic.greater_is_better:
        return size.low, size.high
    return -size.high, -size.low


def _numbers(comparison: Comparison) -> str:
    pvalue = phrases.pvalue_with_side(comparison)
    if among := phrases.correction(comparison):
        pvalue += f", {among}"
    return f"difference {format_difference(comparison.difference)}, {pvalue}"


def _examples(comparison: Comparison) -> str:
    return amount(comparison.n_examples, phrases.unit(comparison))
