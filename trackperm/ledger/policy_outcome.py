"""Outcomes of a policy that one logged comparison allows, by the rules of ``automation.judging.judge``.

A policy judges a candidate by all of its comparisons, and every one of them is tagged with the outcome. One
comparison alone bounds it: a candidate that is worse in one does not pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trackperm.comparison import Comparison

POLICY_TAG = "trackperm.policy"
RULE_TAG = "trackperm.policy_fail_on"
OUTCOME_TAG = "trackperm.policy_outcome"
PARTS_TAG = "trackperm.policy_parts"

_ALL = frozenset({"pass", "undecided", "fail"})
_FAIL = frozenset({"fail"})
_NONE = frozenset[str]()


def agreed_outcome(parts: Sequence[Mapping[str, str]]) -> str | None:
    """Return the outcome with which all comparisons of a group are tagged.

    None if one lacks it or has another, and if one is worse and the group did not fail: then the outcome has
    to be computed again.
    """
    outcomes = {tags.get(OUTCOME_TAG) for tags in parts}
    is_worse = any(tags.get("trackperm.verdict", "").endswith("worse") for tags in parts)
    if len(outcomes) > 1 or (is_worse and outcomes != _FAIL):
        return None
    return outcomes.pop()


def possible_outcomes(comparison: Comparison, tags: Mapping[str, str]) -> frozenset[str]:
    """Return the outcomes that a comparison allows, by the rule and the number of parts in its `tags`.

    It is empty if the rule is unknown, or cannot judge a comparison without a margin.
    """
    is_alone = tags.get(PARTS_TAG) == "1"
    match tags.get(RULE_TAG):
        case "regression":
            return _by_regression(comparison, is_alone=is_alone)
        case "not-shown-non-inferior":
            return _by_non_inferiority(comparison, is_alone=is_alone)
    return _NONE


def _by_regression(comparison: Comparison, *, is_alone: bool) -> frozenset[str]:
    if comparison.decision.sign == "worse":
        return _FAIL
    if not is_alone:
        return _ALL
    is_decided = comparison.verdict in ("better", "equivalent")
    return frozenset({"pass"}) if is_decided else frozenset({"pass", "undecided"})


def _by_non_inferiority(comparison: Comparison, *, is_alone: bool) -> frozenset[str]:
    margin, sign = comparison.margin, comparison.decision.sign
    if margin is None:
        return _NONE
    if comparison.cases and not comparison.bounds:  # the bounds of the difference need both cases
        return _ALL
    size = comparison.size
    low, high = (size.low, size.high) if comparison.statistic.greater_is_better else (-size.high, -size.low)
    counts = size.lack(margin) is None
    if (counts and low > -margin) or sign == "better":
        return frozenset({"pass"}) if is_alone else _ALL
    return _FAIL if sign == "worse" or (counts and high < -margin) else _ALL
