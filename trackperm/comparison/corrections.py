"""Correction of several comparisons of the same two runs for each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from trackperm.comparison.context import AdjustedPValue
from trackperm.comparison.result import Comparison
from trackperm.errors import InputError
from trackperm.exact.multiplicity import (
    ADJUSTMENTS,
    TARONE_HOLM,
    Correction,
    adjust,
    adjust_log10,
    log10_smallest_pvalue,
    tarone_holm,
    tarone_holm_log10,
)
from trackperm.exact.options import require_choice
from trackperm.exact.result import adjusted_relations
from trackperm.messages import listed

CORRECTIONS: Mapping[str, Correction] = MappingProxyType({**ADJUSTMENTS, TARONE_HOLM.name: TARONE_HOLM})
"""Corrections by name."""


def corrected(comparisons: Sequence[Comparison], method: str = "holm") -> list[Comparison]:
    """Correct comparisons of the same two runs for each other; their verdicts use the adjusted p-values.

    All of `comparisons` form the family; tests that are left out are not corrected for. `method` is a key of
    :data:`CORRECTIONS`.

    Raises
    ------
    InputError
        If the correction is unknown, or the levels of the comparisons differ.
    """
    require_choice("correction", method, CORRECTIONS)
    rule = CORRECTIONS[method]
    if not comparisons:
        return []
    levels = {comparison.alpha for comparison in comparisons}
    if len(levels) > 1:
        raise InputError(
            f"the comparisons have several levels: {listed(map(str, sorted(levels)))}; expected one"
        )
    adjusted = _adjusted(comparisons, rule)
    signs = adjusted_relations([each.test.relation for each in comparisons], adjusted)
    names = _names(comparisons)
    result = []
    for comparison, (pvalue, logarithm), sign in zip(comparisons, adjusted, signs, strict=True):
        found = AdjustedPValue(
            method=rule.name,
            title=rule.title,
            controls=rule.controls,
            valid_under=rule.valid_under,
            n_tests=len(comparisons),
            pvalue=pvalue,
            log10_pvalue=logarithm,
            rejected=pvalue < comparison.alpha,
            relation=sign,
        )
        options = {**comparison.options, "correction": method, "family": names}
        result.append(replace(comparison, corrected=found, options=options))
    return result


def uncorrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Mark each comparison as one of several that are not corrected for each other."""
    names, number = _names(comparisons), str(len(comparisons))
    return [
        replace(
            comparison,
            options={**comparison.options, "correction": "none", "family": names, "n_tests": number},
        )
        for comparison in comparisons
    ]


def _names(comparisons: Sequence[Comparison]) -> str:
    return ", ".join(sorted(comparison.title for comparison in comparisons))


def _adjusted(comparisons: Sequence[Comparison], rule: Correction) -> list[tuple[float, float]]:
    """Return adjusted p-values and their decimal logarithms."""
    pvalues = [max(comparison.pvalue, comparison.test.interval[1]) for comparison in comparisons]
    logs = [_log10_upper(comparison) for comparison in comparisons]
    if rule is TARONE_HOLM:
        smallest = [log10_smallest_pvalue(comparison.test) for comparison in comparisons]
        linear = tarone_holm(pvalues, [10.0**least for least in smallest]).tolist()
        found = tarone_holm_log10(logs, smallest).tolist()
    else:
        linear, found = adjust(pvalues, rule.name).tolist(), adjust_log10(logs, rule.name).tolist()
    # Below the range of floats, only the logarithms are exact.
    return [(p if log > -300.0 else 10.0**log, log) for p, log in zip(linear, found, strict=True)]


def _log10_upper(comparison: Comparison) -> float:
    """Return the decimal logarithm of the upper end of the p-value's interval."""
    known, error = comparison.log10_pvalue, comparison.error_bound
    if known > -300.0:
        return max(known, math.log10(comparison.test.interval[1]))
    # |p - truth| <= error * truth; where the error is 1, p itself is an upper bound.
    return known - math.log10(1.0 - error) if error < 1.0 else known
