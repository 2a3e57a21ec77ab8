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

1. Pass where for every comparison the interval of confidence 1 - 2 alpha lies above -margin, in the direction
   of better: each is a one-sided test at level alpha. That all have to pass needs no correction
   (an intersection-union test; Berger 1982), as long as the interval counts.
2. Else fail where one that does not is worse, lies below -margin, or could have been expected to pass: its
   test detects a difference as large as the margin.
3. Else undecided, also where what is missing decides it.

Which intervals count, for this and for equivalence. Those for paired proportions are exact, and always do:
without a worse example they end above 0 just where a one-sided test of the better ones has p < alpha. An
interval by resampling, or by shifts of the scores, knows nothing of what no example showed. Where so few
examples tell the runs apart that no one-sided test of them has p < alpha, whomever they favour, or an end is
exactly 0, which ties alone hold it to, it counts

- if 1 - alpha^(1/n) of all examples, as many as may be worse unseen (Clopper and Pearson 1934), each by the
  whole range of 0 and the scores, or by 1 where it is resampled, cost less than the margin;
- and from so many examples on that a one-sided test of all of them has p < alpha: 5 at the level 0.05.

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

import numpy as np

from trackperm.automation.policy.policy import Policy
from trackperm.comparison import Comparison
from trackperm.errors import InputError
from trackperm.exact import RationalStatistic
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
    if comparison.verdict == "equivalent" and _unseen(comparison, comparison.margin) is None:
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
    title, interval = comparison.title, comparison.interval_at(2.0 * comparison.alpha)
    unseen = _unseen(comparison, margin)
    if interval is not None:
        where = f"{text.confidence(interval)} {text.ends(interval)}"
    else:
        where = "no interval" if comparison.no_interval is None else f"no interval: {comparison.no_interval}"
    worst, best = _ends(comparison)
    if worst > -margin and unseen is None:
        return Finding(title, "pass", f"at most {margin:g} worse ({where})")
    if comparison.decision.sign == "worse":
        return Finding(title, "fail", f"the candidate is significantly worse ({_numbers(comparison)})")
    if best < -margin and unseen is None:
        return Finding(title, "fail", f"more than {margin:g} worse ({where})")
    shown, found = f"not shown to be at most {margin:g} worse ({where})", comparison.detectable
    if comparison.is_open:
        return Finding(title, "undecided", f"{shown}; {_OPEN}")
    if worst > -margin:
        return Finding(title, "undecided", f"{shown}; too few examples to tell: {unseen}")
    if interval is not None and found is not None and found.effect is not None and found.effect <= margin:
        return Finding(title, "fail", shown)
    if interval is None:
        return Finding(title, "undecided", shown)
    lack = "" if found is None else f": {found}"
    return Finding(title, "undecided", f"{shown}; too few examples to tell{lack}")


def _is_non_inferior(comparison: Comparison, margin: float | None) -> bool:
    """Whether an interval that counts lies above -margin."""
    return margin is not None and _ends(comparison)[0] > -margin and _unseen(comparison, margin) is None


def _ends(comparison: Comparison) -> tuple[float, float]:
    """Return the ends of the interval of confidence 1 - 2 alpha, the worse first; infinite without one."""
    interval = comparison.interval_at(2.0 * comparison.alpha)
    if interval is None:
        return -math.inf, math.inf
    if comparison.statistic.greater_is_better:
        return interval.low, interval.high
    return -interval.high, -interval.low


def _unseen(comparison: Comparison, margin: float | None) -> str | None:
    """Say what the interval may have missed, if that can matter; None where the interval counts."""
    interval = comparison.interval_at(2.0 * comparison.alpha)
    if margin is None or interval is None or interval.method == "paired proportions":
        return None
    is_held = 0.0 in (interval.low, interval.high) and comparison.n_discordant < comparison.n_examples
    if 0.5**comparison.n_discordant < comparison.alpha and not is_held:
        return None
    share = -math.expm1(math.log(comparison.alpha) / comparison.n_examples)
    reach = _range_of_scores(comparison) if interval.method == "shift" else 1.0
    if 0.5**comparison.n_examples < comparison.alpha and share * reach < margin:
        return None
    return (
        f"{comparison.n_discordant} of {_examples(comparison)} tell the runs apart,"
        f" and up to {100.0 * share:.2g} % of all may be worse unseen"
    )


def _range_of_scores(comparison: Comparison) -> float:
    """Return the length of the interval that holds 0 and the scores of single examples; 1 without scores."""
    score, table = comparison.statistic.score, comparison.count_table
    if not isinstance(score, RationalStatistic):
        return 1.0
    # The score of a run all of whose examples are like one of them: a sum is as large as that of all.
    rows = np.concatenate([table.candidate, table.baseline]).astype(np.float64) * comparison.n_examples
    values = np.broadcast_to(score.values(rows), len(rows))
    values = values[np.isfinite(values)]
    return float(values.max(initial=0.0) - values.min(initial=0.0)) if values.size else 1.0


def _numbers(comparison: Comparison) -> str:
    pvalue = f"{text.pvalue_name(comparison.test)} = {comparison.format_pvalue()}"
    if comparison.corrected is not None:
        pvalue += f", {text.correction(comparison)}"
    return f"difference {text.format_number(comparison.difference, sign=True)}, {pvalue}"


def _examples(comparison: Comparison) -> str:
    return f"{comparison.n_examples} example{'s' * (comparison.n_examples != 1)}"
