"""One candidate compared as its policy says: what gate, watch, receive and the training script all do."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trackperm.automation.judging.baseline import Baseline
from trackperm.automation.judging.duplicates import (
    Group,
    baseline_of,
    logs_of,
    policy_tags,
    settled_before,
    withdraw_duplicates,
)
from trackperm.automation.judging.judge import Judgement, judge
from trackperm.automation.judging.units import require_declared_units
from trackperm.automation.policy.policy import Policy
from trackperm.comparison import Comparison, RunData, compare_statistics
from trackperm.exact import TestOptions
from trackperm.ledger.log import log_comparison
from trackperm.trackers.base import Tracker, require_options
from trackperm.trackers.files import read_file
from trackperm.trackers.publication import KEY_TAG, Published
from trackperm.trackers.references import TrackedRun

__all__ = ["Settled", "loaded", "settle", "settled_before"]


@dataclass(frozen=True)
class Settled:
    """A candidate that was compared and judged.

    Attributes
    ----------
    policy : Policy
        By which.
    candidate : TrackedRun
        The run, or file.
    baseline : Baseline
        What it was compared with, and why.
    judgement : Judgement
        Whether it passes.
    comparisons : tuple of Comparison
        By each statistic: all examples, then its slices.
    published : tuple of Published
        Where they are logged; empty where nothing is.
    is_superseded : bool
        Whether another process had compared the candidate with another baseline before, so that what is
        logged is its comparison and not this one.
    """

    policy: Policy
    candidate: TrackedRun
    baseline: Baseline
    judgement: Judgement
    comparisons: tuple[Comparison, ...]
    published: tuple[Published, ...] = ()
    is_superseded: bool = False


def settle(
    policy: Policy, candidate: TrackedRun, baseline: Baseline, *, log: bool = True, once: bool = True
) -> Settled:
    """Compare `candidate` with `baseline` by the statistics of `policy`, judge it, and log the comparisons.

    The same again changes nothing: a comparison is found by its key, and completed where a process died
    over it.

    Parameters
    ----------
    policy : Policy
        What is compared, and where the result goes.
    candidate : TrackedRun
        A run, or what :func:`trackperm.automation.judging.baseline.file_run` returns.
    baseline : Baseline
        What :func:`trackperm.automation.judging.baseline.find_baseline` returned, now or before.
    log : bool
        Whether the comparisons are logged; those of a file are only where the policy says ``log_to``.
    once : bool
        Whether these comparisons give way to those of the candidate with another baseline that another
        process began before for an equal policy, or else the others to these; if not, they stay side by side,
        and nobody withdraws these.

    Raises
    ------
    InputError
        If the runs cannot be compared, or the policy wants units declared that are not; another try leads to
        the same.
    TrackerError
        If a tracker failed; another try completes what was begun.
    MissingDependencyError, CapacityError
        If a library or memory is missing.
    """
    first, second = loaded(policy, baseline.run), loaded(policy, candidate)
    place = logs_of(policy, second.tracker, candidate) if log else None
    if place is not None:
        require_options(place[0], tag_runs=policy.tag_runs)
    comparisons = compare_statistics(
        first,
        second,
        policy.question.statistics_of([first.table, second.table]),
        TestOptions(alternative=policy.alternative, alpha=policy.alpha),
        slices=policy.slices,
        correction=policy.correction,
        margin=policy.margin,
        missing=policy.missing,
        engine=policy.engine,
    )
    require_declared_units(policy, comparisons)
    settled = Settled(policy, candidate, baseline, judge(policy, comparisons), tuple(comparisons))
    return settled if place is None else _logged(settled, place[0], second.tracker, once=once)


def loaded(policy: Policy, run: TrackedRun) -> RunData:
    """Read the predictions of a run, or file.

    Raises
    ------
    InputError
        If it has none that can be read.
    TrackerError
        If the tracker cannot be reached or refuses.
    """
    if run.reference.scheme == "file":
        return RunData(read_file(run.reference.locator), run.name)
    tracker = policy.tracker_for(run.reference)
    return RunData(tracker.read(run, policy.artifact), run.name, run, tracker)


def _logged(settled: Settled, home: Tracker, tracker: Tracker | None, *, once: bool) -> Settled:
    """Log the comparisons, and withdraw what was made twice."""
    policy, candidate, comparisons = settled.policy, settled.candidate, settled.comparisons
    earlier = settled_before(policy, tracker, candidate) if once else ()
    if _is_other(earlier, comparisons[0]):
        return _superseded(settled, earlier)
    tags = policy_tags(policy, len(comparisons), is_asked=not once)
    container = None if policy.log_to is None else policy.log_to.locator
    published = [
        log_comparison(comparison, home, container, tag_runs=policy.tag_runs, tags=tags)
        for comparison in comparisons
    ]
    kept = withdraw_duplicates(policy, tracker, candidate) if once else ()
    if _is_other(kept, comparisons[0]):
        return _superseded(settled, kept)
    standing = (_standing(each, one, kept) for each, one in zip(published, comparisons, strict=True))
    return replace(settled, published=tuple(standing))


def _is_other(group: Group, comparison: Comparison) -> bool:
    """Whether what is logged was compared with another baseline."""
    return bool(group) and baseline_of(group) != comparison.baseline


def _superseded(settled: Settled, group: Group) -> Settled:
    logged = tuple(Published(each.run, created=False) for each in group)
    return replace(settled, published=logged, is_superseded=True)


def _standing(published: Published, comparison: Comparison, kept: Group) -> Published:
    """Return where a comparison stands, which another process may have logged at the same time."""
    twin = next((each for each in kept if each.tags.get(KEY_TAG) == comparison.key), None)
    if twin is None or twin.run.reference == published.run.reference:
        return published
    return Published(twin.run, created=False, look=published.look, in_leaderboards=published.in_leaderboards)
