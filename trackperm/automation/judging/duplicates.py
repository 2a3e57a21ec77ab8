"""What a tracker has of one candidate under one policy: whether it is all there, and what stays of two.

Two machines that do not see each other's queue may compare the same run, with different baselines if one was
tagged in between. The comparisons of a candidate under a policy, one for each statistic and slice, belong
together and are complete or count for nothing. Who finds complete ones adds nothing to them. Where two began
at the same time, so that neither found the other's, who finishes last sees both: the earliest begun stays,
and all else is withdrawn. Both may do so, for both keep the same.

What a gate has logged is marked, and never withdrawn, for the gate's report refers to it: comparisons with
several baselines stay side by side. Who looks for complete ones finds it like any other.

All this is about runs in a tracker. The path of a file says nothing of what is in it: the next candidate may
have the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timezone

from trackperm.automation.policy.policy import Policy
from trackperm.trackers.base import Tracker
from trackperm.trackers.history import history_of
from trackperm.trackers.publication import KEY_TAG, LoggedComparison
from trackperm.trackers.references import TrackedRun

POLICY_TAG = "trackperm.policy"
DIGEST_TAG = "trackperm.policy_digest"
PARTS_TAG = "trackperm.policy_parts"
"""How many comparisons belong together."""

RULE_TAG = "trackperm.policy_fail_on"
"""By which rule they were judged."""

ASKED_TAG = "trackperm.policy_asked"
"""Marks a comparison that was asked for, as by a gate: it stays beside others."""

_LAST = datetime.max.replace(tzinfo=timezone.utc)

Group = tuple[LoggedComparison, ...]
"""Comparisons that belong together: of one candidate with one baseline, all finished."""


def policy_tags(policy: Policy, n_parts: int, *, is_asked: bool = False) -> dict[str, str]:
    """Return the tags of a comparison that was made for a policy, as one of `n_parts`.

    What was asked for is marked, so that nobody withdraws it.
    """
    tags = {
        POLICY_TAG: policy.name,
        DIGEST_TAG: policy.digest,
        RULE_TAG: policy.fail_on,
        PARTS_TAG: str(n_parts),
    }
    return {**tags, ASKED_TAG: "true"} if is_asked else tags


def logged_before(policy: Policy, tracker: Tracker | None, candidate: TrackedRun) -> Group:
    """Return the complete comparisons of `candidate` that are logged for equal policies; empty if none are.

    Parameters
    ----------
    policy : Policy
        The policy, which says where comparisons are logged.
    tracker : Tracker or None
        That of the candidate; None where it lies in a file.
    candidate : TrackedRun
        The run.

    Raises
    ------
    InputError
        If the experiment or project that the policy logs to does not exist.
    TrackerError
        If the tracker cannot be reached or refuses.
    """
    place = logs_of(policy, tracker, candidate)
    if place is None or _is_file(candidate):
        return ()
    home, near = place
    return next(iter(complete(policy, home.comparisons(near)).get(str(candidate.reference), [])), ())


def complete(policy: Policy, logged: Iterable[LoggedComparison]) -> dict[str, list[Group]]:
    """Group what is logged for equal policies, by candidate; of each the earliest begun first.

    Comparisons that are unfinished, or whose others are, are left out.
    """
    found: dict[tuple[str, str], list[LoggedComparison]] = defaultdict(list)
    for each in logged:
        if each.is_finished and each.tags.get(DIGEST_TAG) == policy.digest:
            found[_runs(each)].append(each)
    groups: dict[str, list[Group]] = defaultdict(list)
    for (candidate, _), members in found.items():
        parts = members[0].tags.get(PARTS_TAG, "")
        keys = {each.tags.get(KEY_TAG) for each in members}
        if parts.isdecimal() and len(keys) >= int(parts):
            groups[candidate].append(tuple(sorted(members, key=_order)))
    return {candidate: sorted(each, key=lambda group: _order(group[0])) for candidate, each in groups.items()}


def withdraw_duplicates(policy: Policy, tracker: Tracker | None, candidate: TrackedRun) -> Group:
    """Withdraw the complete comparisons of `candidate` that are neither the earliest begun nor asked for.

    Returns
    -------
    Group
        The earliest begun; empty if none is complete.

    Raises
    ------
    InputError
        If the experiment or project that the policy logs to does not exist.
    TrackerError
        If the tracker cannot be reached or refuses.
    """
    place = logs_of(policy, tracker, candidate)
    if place is None or _is_file(candidate):
        return ()
    home, near = place
    groups = complete(policy, home.comparisons(near)).get(str(candidate.reference), [])
    if not groups:
        return ()
    asked = [group for group in groups[1:] if any(map(_is_asked, group))]
    first, *others = (_without_twins(group) for group in (groups[0], *asked))
    references = {each.run.reference for group in (first, *others) for each in group}
    for each in (each for group in groups for each in group if each.run.reference not in references):
        history_of(home).withdraw(each, str(first[0].run.reference))
    return first


def logs_of(
    policy: Policy, tracker: Tracker | None, candidate: TrackedRun
) -> tuple[Tracker, TrackedRun | str] | None:
    """Return the tracker and the place in it where comparisons of `candidate` are logged, if they are."""
    if policy.log_to is not None:
        home = tracker if tracker is not None and tracker.scheme == policy.log_to.scheme else None
        return home or policy.tracker_for(policy.log_to), policy.log_to.locator
    return None if tracker is None else (tracker, candidate)


def baseline_of(group: Group) -> str:
    """Return what comparisons that belong together call their baseline."""
    return _runs(group[0])[1]


def _is_file(candidate: TrackedRun) -> bool:
    """Whether nothing tells the candidate from others that were called so before."""
    return candidate.reference.scheme == "file"


def _without_twins(group: Group) -> Group:
    """Return of each key what was asked for, else the earliest begun."""
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
    """Return what orders comparisons as they were begun, the same for whoever asks."""
    return comparison.created or _LAST, comparison.run.reference.locator
