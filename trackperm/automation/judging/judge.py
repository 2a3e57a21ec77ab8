"""Whether a candidate passes: the comparisons of a policy, judged together.

``fail_on: regression``

1. Fail where a comparison, corrected, says that the candidate is worse.
2. Else undecided where a comparison that is undecided had too few examples to show what matters: no outcome
   on as many discordant examples has p < alpha, corrected, or the smallest difference that the test detects
   at 80 % power is larger than the margin, where there is one, unless the interval of confidence 1 - 2 alpha
   lies above -margin; or where what is missing decides it. By Monte Carlo, no outcome has p < alpha if the
   interval that goes with no extreme swap at all does not end below.
3. Else pass. So does a candidate whose outputs count the same on every example, if as many examples could
   have shown a difference.

``fail_on: not-shown-non-inferior``

1. Pass where for every comparison the lower bound of level alpha lies above -margin, in the direction of
   better, or the test shows by one side, at alpha, that the candidate is better. That all have to pass needs
   no correction (an intersection-union test; Berger 1982), as long as the bounds count.
2. Else fail where one that does not is worse, lies below -margin, or could have been expected to pass: its
   test detects a difference as large as the margin.
3. Else undecided, also where what is missing decides it.

Which bounds count, for this and for equivalence, is the same for verdicts, and said in
:mod:`trackperm.comparison.evidence`.

References
----------
R. L. Berger (1982), "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trackperm.automation.policy.policy import Policy
from trackperm.comparison import Comparison
from trackperm.errors import InputError
from trackperm.exact.engines.monte_carlo import CONFIDENCE
from trackperm.exact.multiplicity import ADJUSTMENTS, TARONE_HOLM, adjust_log10, tarone_holm_log10
from trackperm.report import text

Outcome = Literal["pass", "fail", "undecided"]

_WORST_FIRST: tuple[Outcome, ...] = ("fail", "undecided", "pass")

_OPEN = "what the missing predictions would have been decides it"

EXIT_CODES: Mapping[Outcome, int] = {"pass": 0, "fail": 1, "undecided": 4}
"""What ``trackperm gate`` exits with."""


@dataclass(frozen=True)
class Finding:
    """What one comparison contributes to a judgement.

    Attributes
    ----------
    title : str
        The statistic, and the slice if it is of one.
    outcome : {'pass', 'fail', 'undecided'}
        Of this comparison alone.
    reason : str
        Why, in one sentence without a full stop.
    """

    title: str
    outcome: Outcome
    reason: str

    def __str__(self) -> str:
        return f"{self.title}: {self.reason}"


@dataclass(frozen=True)
class Judgement:
    """Whether a candidate passes.

    Attributes
    ----------
    outcome : {'pass', 'fail', 'undecided'}
        Fail where one comparison fails, else undecided where one is, else pass.
    findings : tuple of Finding
        One for each comparison, in their order.
    reasons : tuple of str
        Those of the findings that decide.
    """

    outcome: Outcome
    findings: tuple[Finding, ...]
    reasons: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0 for pass, 1 for fail, 4 for undecided."""
        return EXIT_CODES[self.outcome]

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Judgement:
        """Join the findings of all comparisons."""
        findings = tuple(findings)
        outcomes = {each.outcome for each in findings}
        outcome = next(each for each in _WORST_FIRST if each in outcomes)
        return cls(outcome, findings, tuple(str(each) for each in findings if each.outcome == outcome))


def judge(policy: Policy, comparisons: Sequence[Comparison]) -> Judgement:
    """Judge the comparisons of one candidate by the rules of this module.

    Raises
    ------
    InputError
        If there are none, or the policy wants a margin and has none.
    """
    if not comparisons:
        raise InputError("there is no comparison to judge")
    if policy.fail_on == "regression":
        return Judgement.of(map(_regression, comparisons, _floors(comparisons)))
    if policy.margin is None:
        raise InputError("`not-shown-non-inferior` needs a `margin`")
    margin = policy.margin
    return Judgement.of(_non_inferiority(comparison, margin) for comparison in comparisons)


def _floors(comparisons: Sequence[Comparison]) -> list[float]:
    """Return log10 of the smallest p-value that each could have had, corrected, if all had their smallest."""
    floors = [_floor(each) for each in comparisons]
    rule = comparisons[0].corrected
    if rule is None or len(floors) != rule.n_tests:
        return floors
    if rule.method == TARONE_HOLM.name:
        # of drawn p-values the correction knows no smallest
        known = [
            -math.inf if text.least_drawn(each) else least
            for each, least in zip(comparisons, floors, strict=True)
        ]
        return [float(each) for each in tarone_holm_log10(floors, known)]
    if rule.method in ADJUSTMENTS:
        return [float(each) for each in adjust_log10(floors, rule.method)]
    return floors


def _floor(comparison: Comparison) -> float:
    if comparison.n_discordant:
        drawn = text.least_drawn(comparison)
        least = comparison.test.log10_smallest_pvalue
        return min(max(least, math.log10(drawn)) if drawn else least, 0.0)
    # if all examples told the runs apart
    sides = 2.0 if comparison.test.alternative == "two-sided" else 1.0
    return min(math.log10(sides) + comparison.n_examples * math.log10(0.5), 0.0)


def _regression(comparison: Comparison, floor: float) -> Finding:
    title, sign, numbers = comparison.title, comparison.decision.sign, _numbers(comparison)
    if sign == "worse":
        return Finding(title, "fail", f"the candidate is significantly worse ({numbers})")
    if sign == "better":
        return Finding(title, "pass", f"the candidate is better ({numbers})")
    if comparison.verdict == "equivalent":
        return Finding(title, "pass", f"equivalent within {comparison.margin:g} ({numbers})")
    if comparison.is_open:
        return Finding(title, "undecided", _OPEN)
    lack = _lack(comparison, floor)
    if lack is not None and _is_non_inferior(comparison, comparison.margin):
        return Finding(title, "pass", f"at most {comparison.margin:g} worse ({numbers})")
    if lack is not None:
        return Finding(title, "undecided", f"too few {lack}")
    if comparison.n_discordant == 0:
        return Finding(title, "pass", f"both runs count the same on all {_examples(comparison)}")
    return Finding(title, "pass", f"not shown to be worse ({numbers})")


def _lack(comparison: Comparison, floor: float) -> str | None:
    """Say of what there was too little for the test to show what matters; None where there was enough."""
    is_out_of_reach = floor >= math.log10(comparison.alpha)
    if comparison.n_discordant == 0:
        return (
            f"examples to tell: {_examples(comparison)} cannot show a difference" if is_out_of_reach else None
        )
    if not text.is_within_reach(comparison):
        return f"examples to tell: {text.floor(comparison)}"
    if is_out_of_reach:
        rule = comparison.corrected
        by = "" if rule is None else f", {10.0**floor:.3g} by {rule.title} over {rule.n_tests} tests"
        drawn = text.least_drawn(comparison)
        if drawn and math.log10(drawn) > comparison.test.log10_smallest_pvalue:
            return _lack_of_swaps(comparison, drawn, floor, by)
        return f"examples to tell: {text.floor(comparison)}{by}"
    found = comparison.detectable
    if comparison.margin is None or found is None:
        return None
    if found.effect is None or found.effect > comparison.margin:
        return f"examples to tell: {found}, and the margin is {comparison.margin:g}"
    return None


def _lack_of_swaps(comparison: Comparison, drawn: float, floor: float, by: str) -> str:
    """Say how many random swaps it takes: the fewest n for which 1 - 0.005^(1/n) is below the level."""
    level = comparison.alpha * drawn / 10.0**floor
    needed = math.floor(math.log((1.0 - CONFIDENCE) / 2.0) / math.log1p(-level)) + 1
    return (
        f"random swaps to tell: of {comparison.test.n_samples} no 99 % interval ends below {drawn:.3g}{by};"
        f" it takes {needed} at least, which `trackperm compare --samples` draws;"
        f" a policy needs a larger `alpha`{' or fewer tests' if by else ''}"
    )


def _non_inferiority(comparison: Comparison, margin: float) -> Finding:
    title, basis, sign = comparison.title, comparison.size.basis, comparison.decision.sign
    where = (
        comparison.size.unseen if isinstance(basis, str) else f"{text.confidence(basis)} {text.ends(basis)}"
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
    shown, found = f"not shown to be at most {margin:g} worse", comparison.detectable
    if lack is not None:
        shown = f"{shown}; too few examples to tell: {basis if isinstance(basis, str) else lack}"
    else:
        shown = f"{shown} ({where})"
    if comparison.is_open:
        return Finding(title, "undecided", f"{shown}; {_OPEN}")
    if lack is not None:
        return Finding(title, "undecided", shown)
    if found is not None and found.effect is not None and found.effect <= margin:
        return Finding(title, "fail", shown)
    few = "" if found is None else f": {found}"
    return Finding(title, "undecided", f"{shown}; too few examples to tell{few}")


def _is_non_inferior(comparison: Comparison, margin: float | None) -> bool:
    """Whether a bound that counts lies above -margin."""
    return margin is not None and _ends(comparison)[0] > -margin and comparison.size.lack(margin) is None


def _is_better(comparison: Comparison) -> bool:
    """Whether a one-sided test at alpha shows that the candidate is better, in every case that is open."""
    if comparison.outcomes:
        return all(map(_is_better, comparison.outcomes))
    rises = comparison.observed > 0.0
    if comparison.decision.sign != "undecided" or rises != comparison.statistic.greater_is_better:
        return comparison.decision.sign == "better"
    # Swapping all outputs turns a difference of scores into its negative, so that its law is symmetric.
    is_symmetric = comparison.statistic.score is not None and comparison.test.alternative == "two-sided"
    return is_symmetric and max(comparison.pvalue, comparison.test.interval[1]) / 2.0 < comparison.alpha


def _ends(comparison: Comparison) -> tuple[float, float]:
    """Return the bounds of the difference of level alpha, the worse first."""
    size = comparison.size
    if comparison.statistic.greater_is_better:
        return size.low, size.high
    return -size.high, -size.low


def _numbers(comparison: Comparison) -> str:
    pvalue = text.pvalue(comparison)
    if among := text.correction(comparison):
        pvalue += f", {among}"
    return f"difference {text.format_number(comparison.difference, sign=True)}, {pvalue}"


def _examples(comparison: Comparison) -> str:
    return f"{comparison.n_examples} example{'s' * (comparison.n_examples != 1)}"
