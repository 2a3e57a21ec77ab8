"""Whether a candidate passes: the comparisons of a policy, judged together.

``fail_on: regression``

1. Fail where a comparison, corrected, says that the candidate is worse.
2. Else undecided where a comparison that is undecided had too few examples to show what matters: no outcome
   on as many discordant examples has p < alpha, corrected, or the smallest difference that the test detects
   at 80 % power is larger than the margin, where there is one; or where what is missing decides it.
3. Else pass. So does a candidate whose outputs count the same on every example, if as many examples could
   have shown a difference.

``fail_on: not-shown-non-inferior``

1. Pass where for every comparison the interval of confidence 1 - 2 alpha lies above -margin, in the direction
   of better: each is a one-sided test at level alpha. That all have to pass needs no correction
   (an intersection-union test; Berger 1982). An interval by resampling knows nothing of what no example
   showed: it counts from 5 examples on, and where none tells the runs apart only if the share of examples
   that do so is below the margin, by its upper bound 1 - alpha^(1/n) (Clopper and Pearson 1934).
2. Else fail where one that does not is worse, or could have been expected to pass: its test detects a
   difference as large as the margin.
3. Else undecided.

References
----------
R. L. Berger (1982), "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24.
C. J. Clopper and E. S. Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of
the binomial", Biometrika 26.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trackperm.comparison import Comparison
from trackperm.errors import InputError
from trackperm.exact.multiplicity import ADJUSTMENTS, TARONE_HOLM, adjust_log10, tarone_holm_log10
from trackperm.hooks.policy import Policy
from trackperm.report import text

Outcome = Literal["pass", "fail", "undecided"]

_WORST_FIRST: tuple[Outcome, ...] = ("fail", "undecided", "pass")

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
        return [float(each) for each in tarone_holm_log10(floors, floors)]
    if rule.method in ADJUSTMENTS:
        return [float(each) for each in adjust_log10(floors, rule.method)]
    return floors


def _floor(comparison: Comparison) -> float:
    if comparison.n_discordant:
        return min(comparison.test.log10_smallest_pvalue, 0.0)
    # if all examples told the runs apart
    sides = 2.0 if comparison.test.alternative == "two-sided" else 1.0
    return min(math.log10(sides) + comparison.n_examples * math.log10(0.5), 0.0)


def _regression(comparison: Comparison, floor: float) -> Finding:
    title, sign, numbers = comparison.title, comparison.decision.sign, _numbers(comparison)
    if sign == "worse":
        return Finding(title, "fail", f"the candidate is significantly worse ({numbers})")
    if sign == "better":
        return Finding(title, "pass", f"the candidate is better ({numbers})")
    if comparison.verdict == "equivalent" and not _is_tiny(comparison):
        return Finding(title, "pass", f"equivalent within {comparison.margin:g} ({numbers})")
    if comparison.is_open:
        return Finding(title, "undecided", "what the missing predictions would have been decides it")
    lack = _lack(comparison, floor)
    if lack is not None:
        return Finding(title, "undecided", f"too few examples to tell: {lack}")
    if comparison.n_discordant == 0:
        return Finding(title, "pass", f"both runs count the same on all {_examples(comparison)}")
    return Finding(title, "pass", f"not shown to be worse ({numbers})")


def _is_tiny(comparison: Comparison) -> bool:
    """Whether the interval is of so few examples, resampled, that no one-sided test of them has p < alpha."""
    interval = comparison.interval_at(2.0 * comparison.alpha)
    if interval is None or not interval.approximate:
        return False
    return comparison.n_examples * math.log(0.5) >= math.log(comparison.alpha)


def _lack(comparison: Comparison, floor: float) -> str | None:
    """Say why the test could not have shown what matters; None where it could."""
    is_out_of_reach = floor >= math.log10(comparison.alpha)
    if comparison.n_discordant == 0:
        return f"{_examples(comparison)} cannot show a difference" if is_out_of_reach else None
    if not text.is_within_reach(comparison):
        return text.floor(comparison)
    if is_out_of_reach and comparison.corrected is not None:
        rule = comparison.corrected
        return f"{text.floor(comparison)}, {10.0**floor:.3g} by {rule.title} over {rule.n_tests} tests"
    found = comparison.detectable
    if comparison.margin is None or found is None:
        return None
    if found.effect is None or found.effect > comparison.margin:
        return f"{found}, and the margin is {comparison.margin:g}"
    return None


def _non_inferiority(comparison: Comparison, margin: float) -> Finding:
    title, interval = comparison.title, comparison.interval_at(2.0 * comparison.alpha)
    if interval is not None:
        worst = interval.low if comparison.statistic.greater_is_better else -interval.high
        where = f"{text.confidence(interval)} {text.ends(interval)}"
        if worst > -margin and not _is_tiny(comparison) and not _is_unseen(comparison, margin):
            return Finding(title, "pass", f"at most {margin:g} worse ({where})")
    else:
        where = "no interval" if comparison.no_interval is None else f"no interval: {comparison.no_interval}"
    if comparison.decision.sign == "worse":
        return Finding(title, "fail", f"the candidate is significantly worse ({_numbers(comparison)})")
    shown, found = f"not shown to be at most {margin:g} worse ({where})", comparison.detectable
    if interval is not None and found is not None and found.effect is not None and found.effect <= margin:
        return Finding(title, "fail", shown)
    if interval is None:
        return Finding(title, "undecided", shown)
    lack = "" if found is None else f": {found}"
    return Finding(title, "undecided", f"{shown}; too few examples to tell{lack}")


def _is_unseen(comparison: Comparison, margin: float) -> bool:
    """Whether no example tells the runs apart, and more of all examples may do so than a margin lets."""
    interval = comparison.interval_at(2.0 * comparison.alpha)
    if comparison.n_discordant or interval is None or not interval.approximate:
        return False
    return -math.expm1(math.log(comparison.alpha) / comparison.n_examples) >= margin


def _numbers(comparison: Comparison) -> str:
    pvalue = f"{text.pvalue_name(comparison.test)} = {comparison.format_pvalue()}"
    if comparison.corrected is not None:
        pvalue += f", {text.correction(comparison)}"
    return f"difference {text.format_number(comparison.difference, sign=True)}, {pvalue}"


def _examples(comparison: Comparison) -> str:
    return f"{comparison.n_examples} example{'s' * (comparison.n_examples != 1)}"
