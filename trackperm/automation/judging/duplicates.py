"""Logged comparisons of one candidate under one policy: whether they are complete, and which duplicates stay.

Two machines with separate queues may compare the same run, with different baselines if a run was tagged in
between. The comparisons of a candidate under a policy, one per statistic and slice, form a group, which
counts only when it is complete. A worker that finds a complete group adds nothing. If two workers began at
the same time and did not see each other's group, the one that finishes last sees both: the group that began
first stays, and all others are withdrawn. Both workers may do this, for both keep the same group.

Comparisons of a gate are marked and never withdrawn, because the report of the gate refers to them:
comparisons with several baselines stay side by side. They complete a group like any others.

Comparisons of a candidate that had not ended are marked as well, and complete no group, because the candidate
may have logged other predictions afterwards. They stay, for somebody has seen them.

All this is about runs in a tracker. The path of a file does not identify its content, and the next candidate
may have the same path.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timezone

from trackperm.automation.judging.judge import Outcome
from trackperm.automation.policy.policy import Policy
from trackperm.automation.policy.resolve import policy_tracker
from trackperm.trackers.base import Tracker
from trackperm.trackers.history import history_of
from trackperm.trackers.publication import KEY_TAG, LoggedComparison
from trackperm.trackers.references import TrackedRun

POLICY_TAG = "trackperm.policy"
DIGEST_TAG = "trackperm.policy_digest"
PARTS_TAG = "trackperm.policy_parts"
"""Number of comparisons in the group."""

RULE_TAG = "trackperm.policy_fail_on"
"""Rule by which the group was judged."""

OUTCOME_TAG = "trackperm.policy_outcome"
"""Outcome of the group by that rule."""

EARLY_TAG = "trackperm.policy_early"
"""Marks a comparison of a candidate that had not ended."""

ASKED_TAG = "trackperm.policy_asked"
"""Marks a comparison that a gate requested, which stays beside others."""

_LAST = datetime.max.replace(tzinfo=timezone.utc)

Group = tuple[LoggedComparison, ...]
"""Finished comparisons of one candidate with one baseline."""


def policy_tags(
    policy: Policy, n_parts: int, outcome: Outcome, *, is_asked: bool = False, is_early: bool = False
) -> dict[str, str]:
    """Return the tags of a comparison in a group of `n_parts`; `is_asked` protects it from withdrawal."""
    tags = {
        POLICY_TAG: policy.name,
        DIGEST_TAG: policy.digest,
        RULE_TAG: policy.fail_on,
        OUTCOME_TAG: outcome,
        PARTS_TAG: str(n_parts),
    }
    marks = {ASKED_TAG: is_asked, EARLY_TAG: is_early}
    return {**tags, **{mark: "true" for mark, is_set in marks.items() if is_set}}


def logged_before(policy: Policy, tracker: Tracker | None, candidate: TrackedRun) -> Group:
    """Return the complete group of `candidate` that began first under an equal policy; empty if none exists.

    `tracker` is None for a file. Raise InputError if the place that the policy logs to does not exist.
    """
    _, groups = _complete_groups(policy, tracker, candidate)
    return groups[0] if groups else ()


def withdraw_duplicates(policy: Policy, tracker: Tracker | None, candidate: TrackedRun) -> Group:
    """Withdraw later groups of the same comparisons, but not those of gates; return the first group."""
    home, groups = _complete_groups(policy, tracker, candidate)
    if home is None or not groups:
        return ()
    asked = [group for group in groups[1:] if any(map(_is_asked, group))]
    first, *others = (_without_twins(group) for group in (groups[0], *asked))
    kept = {each.run.reference for group in (first, *others) for each in group}
    for each in (each for group in groups for each in group if each.run.reference not in kept):
        history_of(home).withdraw(each, str(first[0].run.reference))
    return first


def _complete_groups(
    policy: Policy, tracker: Tracker | None, candidate: TrackedRun
) -> tuple[Tracker | None, list[Group]]:
    """Return the complete groups of a candidate, and the tracker that has them."""
    place = logs_of(policy, tracker, candidate)
    if place is None or candidate.reference.scheme == "file":
        return None, []
    home, near = place
    return home, complete(policy, home.comparisons(near)).get(str(candidate.reference), [])


def complete(policy: Policy, logged: Iterable[LoggedComparison]) -> dict[str, list[Group]]:
    """Return the complete groups under equal policies, by candidate, in the order in which they began."""
    found: dict[tuple[str, str], list[LoggedComparison]] = defaultdict(list)
    for each in logged:
        is_equal = each.tags.get(DIGEST_TAG) == policy.digest
        if each.is_finished and is_equal and EARLY_TAG not in each.tags:
            found[_runs(each)].append(each)
    groups: dict[str, list[Group]] = defaultdict(list)
    for (candidate, _), members in found.items():
        parts = members[0].tags.get(PARTS_TAG, "")
        keys = {each.tags.get(KEY_TAG) for each in members}
        if parts.isdecimal() and len(keys) >= int(parts):
            groups[candidate].append(tuple(sorted(members, key=_order)))
    return {candidate: sorted(each, key=lambda group: _order(group[0])) for candidate, each in groups.items()}


def logs_of(
    policy: Policy, tracker: Tracker | None, candidate: TrackedRun
) -> tuple[Tracker, TrackedRun | str] | None:
    """Return the tracker, and the place in it, to which comparisons of `candidate` are logged, if any."""
    if policy.log_to is not None:
        return policy_tracker(policy, policy.log_to, tracker), policy.log_to.locator
    return None if tracker is None else (tracker, candidate)


def baseline_of(group: Group) -> str:
    """Return the reference of a group's baseline."""
    return _runs(group[0])[1]


def _without_twins(group: Group) -> Group:
    """Keep one comparison per key: those that gates requested, else the one that began first."""
    asked = [each for each in group if _is_asked(each)]
    stay = {each.tags.get(KEY_TAG): each for each in reversed(group)}
    for each in asked:
        stay.pop(each.tags.get(KEY_TAG), None)
    return tuple(sorted([*asked, *stay.values()], key=_order))


def _is_asked(comparison: LoggedComparison) -> bool:
    return ASKED_TAG in comparison.tags


def _runs(comparison: LoggedComparison) -> tuple[str, str]:
    tags = comparison.tags
    return tags.get("trackperm.candidate", ""), tags.get("trackperm.baseline", "")


def _order(comparison: LoggedComparison) -> tuple[datetime, str]:
    """Return a sort key by beginning, which is the same for every reader."""
    return comparison.created or _LAST, comparison.run.reference.locator
