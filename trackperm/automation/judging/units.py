"""Whether somebody has declared what a comparison takes for independent, where a policy wants that."""

from __future__ import annotations

from collections.abc import Sequence

from trackperm.automation.policy.policy import Policy
from trackperm.comparison import Comparison
from trackperm.errors import InputError
from trackperm.report.text import pvalue_name

_OF_STATISTIC = ("pass_at_k", "pass_hat_k")
"""Rules for the rows of an example that are what a statistic is about."""


def require_declared_units(policy: Policy, comparisons: Sequence[Comparison]) -> None:
    """Refuse comparisons whose units have to be declared, and are not; see :attr:`Policy.units`.

    Raises
    ------
    InputError
        If there is such a comparison; says which line declares them.
    """
    if policy.units == "any" or policy.cluster or policy.unit or policy.repeats:
        return
    declared = {spec.name for spec in policy.specs if spec.cluster or spec.repeats}
    for comparison in comparisons:
        statistic = comparison.statistic
        if statistic.name in declared:
            continue
        for seen in comparison.dependence:
            name = pvalue_name(comparison.test)
            raise InputError(
                f"the policy `{policy.name}` wants units declared, and declares none: by `{statistic.name}`,"
                f" {seen.sentence(name, comparison.alpha)}",
                hint=f"`cluster: {seen.column}` exchanges whole clusters; `unit: example` declares that"
                " examples are independent of each other.",
            )
        if statistic.repeats not in (None, *_OF_STATISTIC):
            raise InputError(
                f"the policy `{policy.name}` wants units declared, and declares none: an example has several"
                f" rows, which `{statistic.name}` took together by default",
                hint="`unit: example` declares that, and `repeats` what they come to; `unit: row` takes each"
                " row for an example.",
            )
