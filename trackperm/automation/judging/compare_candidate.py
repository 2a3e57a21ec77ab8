"""Comparison of one candidate as its policy says, for gate, watch, receive and the training script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from trackperm.automation.judging.baseline import Baseline
from trackperm.automation.judging.duplicates import (
    Group,
    baseline_of,
    logged_before,
    logs_of,
    policy_tags,
    withdraw_duplicates,
)
from trackperm.automation.judging.judge import Judgement, credited, judge, without_credit
from trackperm.automation.policy.policy import Policy
from trackperm.automation.policy.resolve import policy_tracker, question_of
from trackperm.comparison import Comparison, RunData, compare_statistics
from trackperm.comparison.question.log_metrics import lost_metrics
from trackperm.comparison.runs import with_like_names
from trackperm.errors import InputError
from trackperm.exact import TestOptions
from trackperm.ledger.log import log_comparison
from trackperm.messages import listed
from trackperm.report.phrases import pvalue_name
from trackperm.trackers.base import Tracker, require_options
from trackperm.trackers.files import read_file
from trackperm.trackers.publication import KEY_TAG, Published
from trackperm.trackers.references import TrackedRun

_OF_STATISTIC = ("pass_at_k", "pass_hat_k")
"""Values of ``repeats`` that define what a statistic measures, and assume nothing about its rows."""


@dataclass(frozen=True)
class JudgedComparison:
    """Comparisons of a candidate with its baseline, and their judgement.

    Attributes
    ----------
    policy : Policy
        Policy of the comparison.
    candidate : TrackedRun
        Candidate: a run or a file.
    baseline : Baseline
        Baseline, and how it was found.
    judgement : Judgement
        Whether the candidate passes.
    comparisons : tuple of Comparison
        One comparison per statistic and slice, in the order of the policy.
    published : tuple of Published
        Runs that hold the comparisons; empty if they are not logged.
    is_superseded : bool
        Whether the tracker has another process's earlier comparisons with another baseline, instead of these.
    """

    policy: Policy
    candidate: TrackedRun
    baseline: Baseline
    judgement: Judgement
    comparisons: tuple[Comparison, ...]
    published: tuple[Published, ...] = ()
    is_superseded: bool = False


def compare_and_log(
    policy: Policy,
    candidate: TrackedRun,
    baseline: Baseline,
    *,
    tracker: Tracker | None = None,
    log: bool = True,
    once: bool = True,
    is_early: bool = False,
) -> JudgedComparison:
    """Compare `candidate` with `baseline` by the statistics of `policy`, judge it, and log the comparisons.

    A repeated call changes nothing: comparisons are found by their keys, and completed if a process died
    while it logged them. Comparisons of a file are logged only if the policy has ``log_to``. With `once`,
    only the group of comparisons that began first stays per candidate; without it, these comparisons stay
    beside others and are never withdrawn. `is_early` says that the candidate had not ended.

    Raise InputError if the runs cannot be compared, or units have to be declared: another attempt gives the
    same error. Raise TrackerError if a tracker failed: another attempt completes what was begun.
    """
    first, second = with_like_names(
        read_run(policy, baseline.run, tracker), read_run(policy, candidate, tracker)
    )
    _require_metrics(policy, first, second)
    place = logs_of(policy, second.tracker, candidate) if log else None
    if place is not None:
        require_options(place[0], tag_runs=policy.tag_runs)
    compared = partial(
        compare_statistics,
        first,
        second,
        question_of(policy).statistics_of([first.table, second.table]),
        TestOptions(alternative=policy.alternative, alpha=policy.alpha),
        correction=policy.correction,
        margin=policy.margin,
        engine=policy.engine,
    )
    comparisons = compared(missing=policy.missing, slices=policy.slices, require_slices=True)
    require_declared_units(policy, comparisons)
    judgement = _without_credit(policy, comparisons, compared)
    judged = JudgedComparison(policy, candidate, baseline, judgement, tuple(comparisons))
    if place is None:
        return judged
    return _logged(judged, place[0], second.tracker, once=once, is_early=is_early)


def _without_credit(
    policy: Policy, comparisons: Sequence[Comparison], compared: Callable[..., list[Comparison]]
) -> Judgement:
    """Judge comparisons, also on the examples that both runs have where the baseline lacks predictions."""
    judgement = judge(policy, comparisons)
    titles = {comparison.title for comparison in comparisons if credited(comparison)}
    if not titles or judgement.outcome == "fail":
        return judgement
    paired = compared(missing="drop", slices=policy.slices)
    return without_credit(judgement, titles, judge(policy, paired))


def read_run(policy: Policy, run: TrackedRun, opened: Tracker | None = None) -> RunData:
    """Read the predictions of a run or file, through the open tracker if it has the run."""
    if run.reference.scheme == "file":
        return RunData(read_file(run.reference.locator), run.name)
    tracker = policy_tracker(policy, run.reference, opened)
    return RunData(tracker.read(run, policy.artifact), run.name, run, tracker, policy.artifact)


def _require_metrics(policy: Policy, baseline: RunData, candidate: RunData) -> None:
    """Refuse a candidate without a metric of the baseline, where the policy leaves open what is compared."""
    if policy.specs or policy.metric:
        return
    lost = lost_metrics(baseline.table, candidate.table)
    if lost:
        raise InputError(
            f"the candidate has no metric {listed(lost)}, and the baseline has",
            hint="`statistics` or `metric` names what is compared; or log all metrics of the baseline.",
        )


def require_declared_units(policy: Policy, comparisons: Sequence[Comparison]) -> None:
    """Refuse comparisons whose units of exchange have to be declared, and are not (``Policy.units``).

    Raise InputError if examples depend on each other, or rows were combined by default; the hint declares the
    unit.
    """
    if policy.units == "any" or policy.cluster or policy.unit or policy.repeats:
        return
    problem = f"the policy `{policy.name}` has `units: declared` and declares no unit"
    declared = {spec.name for spec in policy.specs if spec.cluster or spec.repeats}
    for comparison in comparisons:
        statistic = comparison.statistic
        if statistic.name in declared:
            continue
        if comparison.dependence:
            seen = comparison.dependence[0]
            sentence = seen.sentence(pvalue_name(comparison.test), comparison.alpha)
            raise InputError(
                f"{problem}: by `{statistic.name}`, {sentence}",
                hint=f"`cluster: {seen.column}` exchanges whole clusters; `unit: example` declares that"
                " examples are independent of each other.",
            )
        if statistic.repeats not in (None, *_OF_STATISTIC):
            raise InputError(
                f"{problem}: an example has several rows, which `{statistic.name}` combined by default",
                hint="`unit: example` declares that, and `repeats` how rows are combined; `unit: row` takes"
                " each row as an example.",
            )


def _logged(
    judged: JudgedComparison, home: Tracker, tracker: Tracker | None, *, once: bool, is_early: bool
) -> JudgedComparison:
    """Log the comparisons, and withdraw duplicates."""
    policy, candidate, comparisons = judged.policy, judged.candidate, judged.comparisons
    earlier = logged_before(policy, tracker, candidate) if once else ()
    if _has_other_baseline(earlier, comparisons[0]):
        return _superseded(judged, earlier)
    outcome = judged.judgement.outcome
    tags = policy_tags(policy, len(comparisons), outcome, is_asked=not once, is_early=is_early)
    container = None if policy.log_to is None else policy.log_to.locator
    published = [
        log_comparison(comparison, home, container, tag_runs=policy.tag_runs, tags=tags)
        for comparison in comparisons
    ]
    kept = withdraw_duplicates(policy, tracker, candidate) if once else ()
    if _has_other_baseline(kept, comparisons[0]):
        return _superseded(judged, kept)
    standing = (_kept_twin(each, one, kept) for each, one in zip(published, comparisons, strict=True))
    return replace(judged, published=tuple(standing))


def _has_other_baseline(group: Group, comparison: Comparison) -> bool:
    return bool(group) and baseline_of(group) != comparison.baseline


def _superseded(judged: JudgedComparison, group: Group) -> JudgedComparison:
    logged = tuple(Published(each.run, created=False) for each in group)
    return replace(judged, published=logged, is_superseded=True)


def _kept_twin(published: Published, comparison: Comparison, kept: Group) -> Published:
    """Return the run that holds a comparison, which may be the twin that another process logged."""
    twin = next((each for each in kept if each.tags.get(KEY_TAG) == comparison.key), None)
    if twin is None or twin.run.reference == published.run.reference:
        return published
    return Published(twin.run, created=False, look=published.look, in_leaderboards=published.in_leaderboards)
